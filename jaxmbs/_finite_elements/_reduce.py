"""Reduction of a mesh to a body with modes (Craig-Bampton), with displacements of second order
and damping.
"""

import abc
import itertools
from pathlib import Path
from typing import Any, NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import scipy.linalg
import scipy.sparse as sp
from jaxtyping import Array, Float
from scipy.sparse.linalg import eigsh, LinearOperator

from .. import _checks, _settings
from .._bodies import ReducedBody
from .._checks import shown
from .._custom_types import NumberList, Setting
from .._errors import ModelError
from ._attachment import Attachment, Interface, interface
from ._elements import AbstractStrains, Factor, FiniteElements, inertia_integrals, SparseMatrix
from ._storage import body_of, cached, digest


# Below this the few degrees of freedom are quicker to solve at once.
_DENSE = 150

# A frequency counts as zero if its square is below this part of the largest one's: those of hinges
# come out at 1e-15 and less, and of a bar a thousand times as long as thick the first is at 1e-6.
_ZERO = 1e-13

# The squares of the rigid motions' frequencies, as the stiffness has them, are at most this part of
# the first elastic one's. Rounding leaves 1e-9 in a bar a hundred times as long as thick, 1e-5 in
# one of a thousand; the elastic frequencies have errors as large.
_RIGID = 1e-2

# Frequencies count as one where their squares differ by less, relative to themselves: rounding of
# the stiffness, whose entries are those of the stiffest direction, is at 1e-9 of the squares of
# slender bodies.
_EQUAL = 1e-7


class ElasticModes(NamedTuple):
    """Orthogonal modes of a free body, of unit modal mass, without the six rigid motions.

    `squares`: of the angular frequencies (rad^2/s^2), ascending. `shapes`: displacements of all
    nodes (kg^-1/2 and 1/(m kg^1/2)). `held`: those of the attachments, displacements and rotations.
    `rigid_squares`: quadratic forms of the stiffness in the rigid motions: zero up to rounding.
    """

    squares: Float[np.ndarray, " modes"]
    shapes: Float[np.ndarray, "dof modes"]
    held: Float[np.ndarray, "held modes"]
    rigid_squares: Float[np.ndarray, "6"]


def craig_bampton(elements: FiniteElements, tied: Interface, count: int) -> ElasticModes:
    """Orthogonalised Craig-Bampton modes.

    The body is held at its attachments (index b, the rest i). *Constraint modes* are the static
    displacements for a unit displacement of each degree of freedom of the attachments,
    -K_ii^-1 K_ib, *normal modes* the `count` lowest vibrations with all attachments held,
    K_ii phi = omega^2 M_ii phi (shift-invert about zero, with the same factor of K_ii). They span a
    space that holds every static displacement by loads on the attachments, and all rigid motions.
    The eigenvectors of the body's mass and stiffness in that space diagonalise both, and the rigid
    motions, which are known, are taken out exactly: the eigenproblem is solved in their complement.
    With no attachments these are the lowest vibrations of the free body.

    **Raises:** `ModelError` for more modes than degrees of freedom, and for parts that move without
    resistance.

    Craig & Bampton (1968); orthogonalised as Wojtyra & Fraczek (2012, section 5.1) use them.
    """
    mass: SparseMatrix = sp.csc_array(tied.expansion.T @ elements.mass @ tied.expansion)
    stiffness: SparseMatrix = sp.csc_array(tied.expansion.T @ elements.stiffness @ tied.expansion)
    held = tied.held
    # A free body has rigid motions in addition.
    most = mass.shape[0] - held if held else mass.shape[0] - 6
    if count > most:
        why = "when the attachments are held" if held else "besides the rigid motions"
        raise ModelError(
            f"modes must be at most {most}, the degrees of freedom that remain {why}, got {count}."
        )
    basis = _basis(mass, stiffness, held, count)
    origin = elements.centre_of_mass
    if held:
        rigid = np.zeros((basis.shape[1], 6))
        rigid[:held] = tied.rigid_motions(origin)
    else:
        rigid = basis.T @ (mass @ elements.rigid_motions(origin))
    small = basis.T @ (mass @ basis), basis.T @ (stiffness @ basis)
    squares, vectors, left = _elastic(*small, rigid)
    _check_zeros(squares, left)
    reduced = basis @ vectors
    shapes = tied.expansion @ reduced
    squares, groups = _grouped(squares)
    turn = _orientation(elements, groups, shapes)
    return ElasticModes(squares, shapes @ turn, reduced[:held] @ turn, left)


def _basis(
    mass: SparseMatrix, stiffness: SparseMatrix, held: int, count: int
) -> Float[np.ndarray, "dof basis"]:
    """Constraint modes and normal modes, concatenated."""
    inner_mass = sp.csc_array(mass[held:, held:])
    inner = sp.csc_array(stiffness[held:, held:])
    shift = 0.0
    if held == 0:
        # The free body's stiffness is singular. A shift far below all frequencies, and far above
        # the rounding of those that are zero.
        shift = 1e-10 * float(np.max(np.divide(stiffness.diagonal(), mass.diagonal())))
        count += 6
    factor = Factor(sp.csc_array(inner + shift * inner_mass) if shift else inner)
    if not factor.positive_definite:
        raise ModelError(
            "the stiffness leaves some part free to move though all attachments are held: the body "
            "has more than six motions of frequency zero; join the parts, or leave them out. (Of a "
            "body ten thousand times as long as thick rounding hides the stiffness: use beams.)"
        )
    basis = np.zeros((mass.shape[0], held + count))
    basis[:held, :held] = np.eye(held)
    if held:
        basis[held:, :held] = -factor.solve(stiffness[held:, :held].toarray())
    if count:
        basis[held:, held:] = _normal_modes(inner, inner_mass, factor, count, shift)
    return basis


def _normal_modes(
    stiffness: SparseMatrix, mass: SparseMatrix, factor: Factor, count: int, shift: float
) -> Float[np.ndarray, "dof count"]:
    """The eigenvectors of the lowest eigenvalues."""
    size = mass.shape[0]
    if size <= _DENSE or 2 * count >= size:
        return scipy.linalg.eigh(
            stiffness.toarray(), mass.toarray(), subset_by_index=[0, count - 1]
        )[1]
    # A reproducible start without a symmetry that would hide a mode.
    start = np.random.default_rng(0).standard_normal(size)
    operator: Any = LinearOperator
    inverse = operator((size, size), matvec=factor.solve, dtype=float)
    return eigsh(stiffness, k=count, M=mass, sigma=-shift, OPinv=inverse, v0=start)[1]


def _elastic(
    mass: Float[np.ndarray, "n n"],
    stiffness: Float[np.ndarray, "n n"],
    rigid: Float[np.ndarray, "n 6"],
) -> tuple[Float[np.ndarray, " m"], Float[np.ndarray, "n m"], Float[np.ndarray, "6"]]:
    """Eigenvalues and eigenvectors in the complement of the rigid motions, orthogonal by mass; and
    what of stiffness the rigid motions have left."""
    # In units in which the mass is the identity.
    unit = 1 / np.sqrt(np.diag(mass))
    lower = scipy.linalg.cholesky(unit[:, None] * mass * unit, lower=True)

    def divided(x: Float[np.ndarray, "n k"]) -> Float[np.ndarray, "n k"]:
        return scipy.linalg.solve_triangular(lower, unit[:, None] * x, lower=True)

    whole = divided(divided(stiffness).T)
    whole = (whole + whole.T) / 2
    directions, _ = np.linalg.qr(lower.T @ (rigid / unit[:, None]), mode="complete")
    left, free = directions[:, :6], directions[:, 6:]
    squares, vectors = np.linalg.eigh(free.T @ whole @ free)
    back = unit[:, None] * scipy.linalg.solve_triangular(lower.T, free @ vectors)
    return squares, back, np.linalg.eigvalsh(left.T @ whole @ left)


def _check_zeros(squares: Float[np.ndarray, " modes"], rigid: Float[np.ndarray, "6"]) -> None:
    if squares.size == 0:
        return
    zeros = int(np.sum(squares <= _ZERO * squares[-1]))
    if zeros:
        raise ModelError(
            f"the body has {6 + zeros} motions of frequency zero, where a free body has six; some "
            "part moves without resistance: join it to the rest, or leave it out."
        )
    if np.max(np.abs(rigid)) > _RIGID * squares[0]:
        hertz = np.sqrt([np.max(np.abs(rigid)), squares[0]]) / (2 * np.pi)
        raise ModelError(
            f"the stiffness gives rigid motions of the body up to {hertz[0]:.3g} Hz, beside "
            f"{hertz[1]:.3g} Hz of its first elastic mode: a node is held by a spring, or the body "
            "is so slender that rounding hides its stiffness; give the matrix of the free body, or "
            "use beams."
        )


def _grouped(
    squares: Float[np.ndarray, " modes"],
) -> tuple[Float[np.ndarray, " modes"], list[slice]]:
    """Groups of modes of one frequency, and the squares of frequencies with a common value in
    each."""
    apart = np.diff(squares) > _EQUAL * squares[1:]
    ends = [0, *(np.flatnonzero(apart) + 1), len(squares)]
    groups = [slice(a, b) for a, b in itertools.pairwise(ends) if b > a]
    means = [np.full(g.stop - g.start, np.mean(squares[g])) for g in groups]
    return np.concatenate([np.zeros(0), *means]), groups


def _orientation(
    elements: FiniteElements, groups: list[slice], shapes: Float[np.ndarray, "dof modes"]
) -> Float[np.ndarray, "modes modes"]:
    """The orthogonal matrix that makes modes reproducible.

    Modes of one frequency may be mixed at will, as the two bending modes of a tube. Of such the
    first moves most along x, weighing y half; then the first of the largest displacements of each
    mode is made positive.
    """
    turn = np.eye(shapes.shape[1])
    x, y, _ = elements.displacements.T
    scalar = elements.node_mass
    for group in groups:
        if group.stop - group.start > 1:
            mixed = shapes[:, group]
            along = [mixed[rows].T @ (scalar @ mixed[rows]) for rows in (x, y)]
            turn[group, group] = np.linalg.eigh(-along[0] - along[1] / 2)[1]
    moved = (shapes @ turn)[elements.displacements.ravel()]
    large = np.abs(moved) >= 0.99 * np.max(np.abs(moved), axis=0, initial=0.0)
    first = np.take_along_axis(moved, np.argmax(large, axis=0)[None], axis=0)[0]
    return turn * np.where(first < 0, -1.0, 1.0)


# --------------------------------------------------------------------------------------------------
# Displacements of second order: by them what bends becomes shorter, and forces along a body act on
# its bending.
#
# Strains are e(u) + 1/2 eps(u, u). For displacements u = phi eta + 1/2 Gamma eta eta the strains of
# second order are 1/2 (e(Gamma_ij) + eps(phi_i, phi_j)) eta_i eta_j, and Gamma is chosen so that
# they do no work on any displacement:
#
#     K Gamma_ij = -h_ij,   h_ij = the integral of e^T C eps(phi_i, phi_j).
#
# The strain energy to third order is 1/2 eta K eta then, as of the linear body: what the third
# derivative of the energy adds, 1/2 h_ij(phi_k) eta_i eta_j eta_k, K Gamma takes away. A force f
# does work on Gamma, which is a geometric stiffness, -f^T Gamma_ij = the stresses that f causes,
# times eps(phi_i, phi_j) (Wallrapp & Schwertassek 1991; modal derivatives, Idelsohn & Cardona 1985,
# hold that part of them). Where modes turn a part of the body as a rigid one, Gamma is the second
# order of the rotation.
# --------------------------------------------------------------------------------------------------


# So many pairs of modes at once: memory against calls.
_CHUNK = 16


def second_order(
    elements: FiniteElements, strains: AbstractStrains, tied: Interface, found: ElasticModes
) -> dict[str, Float[np.ndarray, "..."]]:
    """The fields of `SecondOrder`, by these names. Gamma has no momentum and no angular momentum,
    as the modes have none."""
    expansion, count = tied.expansion, found.shapes.shape[1]
    stiffness: SparseMatrix = sp.csc_array(expansion.T @ elements.stiffness @ expansion)
    # The forces of strains leave a rigid motion alone, so that it does not matter where the body
    # is held to solve for Gamma: here at its first attachment.
    factor = Factor(sp.csc_array(stiffness[6:, 6:]))
    centre = elements.centre_of_mass
    rigid, held_rigid = elements.rigid_motions(centre), tied.rigid_motions(centre)
    weighted = elements.mass @ rigid
    momenta = np.linalg.inv(rigid.T @ weighted) @ weighted.T
    # Of p_a along the axis b.
    axes = elements.displacements.T
    places = elements.points - centre
    moments = np.stack([elements.mass[rows][:, rows] @ places for rows in axes])
    prepared = strains.prepared(found.shapes)
    pairs = np.stack(np.triu_indices(count))
    second = np.zeros((3, 3, count, count))
    held = np.zeros((tied.held, count, count))
    for start in range(0, pairs.shape[1], _CHUNK):
        one, other = pairs[:, start : start + _CHUNK]
        own = tied.second_order(found.held[:, one], found.held[:, other])
        forces = strains.forces(prepared, one, other) + elements.stiffness @ own
        answer = np.zeros((stiffness.shape[0], len(one)))
        answer[6:] = factor.solve(np.ascontiguousarray(-(expansion.T @ forces)[6:]))
        fields = expansion @ answer + own
        part = momenta @ fields
        fields = fields - rigid @ part
        at_attachments = answer[: tied.held] - held_rigid @ part
        moment = np.einsum("bka,bkn->abn", moments, fields[axes])
        for i, j in ((one, other), (other, one)):
            held[:, i, j] = at_attachments
            # The odd part is angular momentum, which is zero.
            second[:, :, i, j] = (moment + moment.transpose(1, 0, 2)) / 2
    nodes = held.reshape(tied.held // 6, 2, 3, count, count)
    return {
        "first_moment": np.zeros((3, count, count)),
        "second_moment": second,
        "translations": nodes[:, 0],
        "rotations": nodes[:, 1],
    }


# --------------------------------------------------------------------------------------------------
# Damping of modes.
# --------------------------------------------------------------------------------------------------


class AbstractDamping(eqx.Module):
    """Damping of the modes of an elastic body."""

    @abc.abstractmethod
    def matrix(self, omega: Float[np.ndarray, " modes"]) -> Float[np.ndarray, "modes modes"]:
        """The damping matrix of modes of unit modal mass and angular frequencies `omega` (rad/s).

        **Raises:** `ValueError` where numbers for each mode were given and there are more or fewer.
        """


class ModalDamping(AbstractDamping):
    """Each mode with its own damping ratio: D = diag(2 zeta_i omega_i).

    **Arguments:** `ratio`: zeta, at least 0 (1 is critical), one for all modes or one for each in
    the order of their frequencies.
    """

    ratio: Float[np.ndarray, " ratios"] | float

    def __init__(self, ratio: Setting[float | NumberList] = 0.0):
        self.ratio = _not_negative(ratio)

    def matrix(self, omega: Float[np.ndarray, " modes"]) -> Float[np.ndarray, "modes modes"]:
        if np.ndim(self.ratio) and np.shape(self.ratio) != omega.shape:
            raise ValueError(
                f"ratio must be one number, or one for each of {len(omega)} modes, got "
                f"{np.size(self.ratio)}."
            )
        return np.diag(2 * self.ratio * omega)


class StiffnessDamping(AbstractDamping):
    """Damping in proportion to the stiffness: D = beta K, so the ratio beta omega / 2 grows with
    the frequency.

    **Arguments:** `beta`: s, at least 0.
    """

    beta: float

    def __init__(self, beta: Setting[float]):
        self.beta = _settings.known_number(beta, "beta", least=0)

    def matrix(self, omega: Float[np.ndarray, " modes"]) -> Float[np.ndarray, "modes modes"]:
        return np.diag(self.beta * omega**2)


def _not_negative(ratio: Any) -> Float[np.ndarray, " ratios"] | float:
    if not _checks.holds_numbers(ratio) or np.ndim(ratio) == 0:
        return _settings.known_number(ratio, "ratio", least=0)
    ratios = np.asarray(_settings.vector(ratio, "ratio"), float)
    if np.any(ratios < 0):
        raise ValueError(f"ratio must be at least 0, got {shown(ratios.tolist())}.")
    return ratios


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
