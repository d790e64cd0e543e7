from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .. import _settings
from .._bodies import ReducedBody
from .._custom_types import Setting
from .._errors import ModelError
from ._attachment import Attachment
from ._craig_bampton import craig_bampton
from ._damping import AbstractDamping, ModalDamping
from ._elements import FiniteElements
from ._integrals import inertia_integrals
from ._interface import interface
from ._second_order import second_order
from ._storage import body_of, cached, digest
from ._strains import AbstractStrains


_UNDAMPED = ModalDamping()


def reduce(
    elements: Setting[FiniteElements],
    attachments: Setting[list[Attachment] | tuple[Attachment, ...]],
    modes: Setting[int] = 20,
    *,
    damping: Setting[AbstractDamping] = _UNDAMPED,
    stiffening: Setting[bool | None] = None,
    cache: Setting[str | Path | None] = None,
) -> ReducedBody:
    """Craig-Bampton reduction of finite elements to a body of few modes.

    The body is described by constraint modes, one for each of the six degrees of freedom of every
    attachment, and `modes` normal modes with all attachments held; loads on the attachments alone
    then deform the body at rest as they deform the full mesh. The modes are orthogonalised, and the
    six rigid-body motions removed, since the floating frame describes these: 6 attachments + modes
    - 6 remain, of unit modal mass and ascending frequency. They have no momentum and no angular
    momentum about the centre of mass (the frame is the mean axes of the body).

    The frame of the reduced body has the axes of the mesh, and its origin at the centre of mass
    (`elements.centre_of_mass` in the frame of the mesh).

    **Arguments:**

    - `elements`: `tube`, `plate`, `solid`, `read_matrices`, or `FiniteElements` of own matrices.
    - `attachments`: a list of `Attachment`; empty: the lowest vibrations of the free body.
    - `modes`: how many fixed-interface normal modes, at least 0.
    - `damping`: `ModalDamping(ratio)` or `StiffnessDamping(beta)`; by default there is none.
    - `stiffening`: compute the displacements of second order (`SecondOrder`), by which forces along
      the body stiffen or soften its bending? None: where `elements` define the strains for it
      (solid meshes, beams between two nodes each) and there are attachments. False: no, which
      leaves the reduced body smaller (they are numbers for each pair of modes).
    - `cache`: a file that keeps the result (`.npz`). If it holds that of the same arguments it is
      read and nothing computed, else it is written anew. None: no file.

    **Returns:** a `ReducedBody` whose nodes are the attachments.

    **Raises:** `ModelError` for impossible attachments, more modes than degrees of freedom, a body
    with more than six motions of frequency zero, `stiffening` of elements without strains of second
    order, and a cache that is another file. `TypeError` and `ValueError` for settings out of their
    range.

    Craig & Bampton (1968); Shabana (2020, chapter 5); Wallrapp & Schwertassek (1991).
    """
    elements, attachments, count = _settings_of(elements, attachments, modes)
    damping = _settings.instance(
        damping, AbstractDamping, "damping", "ModalDamping(...) or StiffnessDamping(...)"
    )
    strains = _chosen_strains(elements, attachments, stiffening)

    def computed() -> dict[str, Any]:
        return _reduced(elements, attachments, count, damping, strains)

    if cache is None:
        return body_of(computed())
    path = Path(_settings.path(cache, "cache"))
    return body_of(cached(path, digest(elements, attachments, count, damping, strains), computed))


def mode_shapes(
    elements: Setting[FiniteElements],
    attachments: Setting[list[Attachment] | tuple[Attachment, ...]],
    modes: Setting[int] = 20,
) -> Float[Array, "nodes 3 modes"]:
    """The displacements of all nodes of the mesh in the modes of `reduce`, in their order, to be
    drawn, or to find what a body's deformation does where it has no attachment.

    **Arguments:** as of `reduce`.

    **Returns:** the displacement along x, y and z of each node (`elements.points`) for a unit of
    each modal coordinate.

    **Raises:** as `reduce`.
    """
    elements, attachments, count = _settings_of(elements, attachments, modes)
    found = craig_bampton(elements, interface(elements, attachments), count)
    return jnp.asarray(found.shapes[elements.displacements])


def _settings_of(
    elements: Any, attachments: Any, modes: Any
) -> tuple[FiniteElements, tuple[Attachment, ...], int]:
    return (
        _settings.instance(
            elements, FiniteElements, "elements", "FiniteElements(...), tube(...) or plate(...)"
        ),
        _settings.instances(attachments, Attachment, "attachments", "Attachment(...)"),
        _settings.whole_number(modes, "modes", least=0),
    )


def _chosen_strains(
    elements: FiniteElements, attachments: tuple[Attachment, ...], stiffening: Any
) -> AbstractStrains | None:
    wanted = None if stiffening is None else _settings.flag(stiffening, "stiffening")
    known = elements.strains if attachments else None
    if wanted and known is None:
        raise ModelError(
            "stiffening needs an attachment, and elements that know their strains of second order: "
            "solid meshes (`solid`, `tube`, `plate`), or matrices of beams between two nodes with "
            "rotations each. Give such elements, or leave out stiffening."
        )
    return None if wanted is False else known


def _reduced(
    elements: FiniteElements,
    attachments: tuple[Attachment, ...],
    count: int,
    damping: AbstractDamping,
    strains: AbstractStrains | None,
) -> dict[str, Any]:
    """The fields of the reduced body."""
    tied = interface(elements, attachments)
    found = craig_bampton(elements, tied, count)
    held = found.held.reshape(len(attachments), 2, 3, len(found.squares))
    return inertia_integrals(elements, found.shapes) | {
        "stiffness": np.diag(found.squares),
        "damping": damping.matrix(np.sqrt(found.squares)),
        "points": tied.points - elements.centre_of_mass,
        "translations": held[:, 0],
        "rotations": held[:, 1],
        "nodes": tuple(attachment.name for attachment in attachments),
        "second_order": None if strains is None else second_order(elements, strains, tied, found),
    }


def frequencies(reduced: Setting[ReducedBody]) -> Float[Array, " modes"]:
    """The natural frequencies (Hz) of a reduced body that is free in space, ascending; without its
    six rigid motions.

    **Arguments:** `reduced`: of `reduce` or `load`.

    **Raises:** `TypeError` for anything else.
    """
    reduced = _settings.instance(reduced, ReducedBody, "reduced", "what reduce(...) returns")
    mass = np.einsum("aaij->ij", np.asarray(reduced.mode_products, float))
    lower = np.linalg.cholesky(mass)
    half = np.linalg.solve(lower, np.asarray(reduced.stiffness, float))
    squares = np.linalg.eigvalsh(np.linalg.solve(lower, half.T))
    return jnp.asarray(np.sqrt(np.maximum(squares, 0.0)) / (2 * np.pi))
