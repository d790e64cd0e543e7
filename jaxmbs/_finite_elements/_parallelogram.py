"""The bodies of the spatial parallelogram of Wojtyra & Fraczek (2012, section 5)."""

import math
from pathlib import Path

from .._bodies import ReducedBody
from .._custom_types import Setting
from ._attachment import Attachment
from ._damping import AbstractDamping, StiffnessDamping
from ._elements import FiniteElements
from ._material import Material
from ._meshes import plate, tube
from ._node_sets import NodesOnPlane, NodesWithin
from ._reduce import reduce


# Poisson's ratios are usual ones, and so is Young's modulus of the steel: the source has none.
_ALUMINIUM = Material(young=6.9e10, poisson=0.33, density=2700.0)
_STEEL = Material(young=2.1e11, poisson=0.3, density=7800.0)
_LENGTH = math.sqrt(0.5)  # m
_HALF = 0.25  # m, of the platform's width
_PLATFORM_NODES = {
    "B": (-_HALF, -_HALF),
    "D": (_HALF, -_HALF),
    "F": (_HALF, _HALF),
    "H": (-_HALF, _HALF),
    "L": (-_HALF, 0.0),
    "N": (_HALF, 0.0),
    "load": (0.0, 0.0),
}
# m: nodes of the mesh are 0.025 m apart, so that the joint at a corner holds the corner and the
# nodes next to it along both edges.
_PAD = 0.03
# s: that of the rods which take the place of links elsewhere. The mode of 150 Hz, in which the
# platform vibrates on its links, is damped by the ratio 0.24, and faster ones by more.
_DAMPING = StiffnessDamping(5e-4)


def parallelogram_link(
    modes: Setting[int] = 20,
    *,
    damping: Setting[AbstractDamping] = _DAMPING,
    cache: Setting[str | Path | None] = None,
) -> ReducedBody:
    """A link of the spatial parallelogram: a tube of aluminium, 26 mm and 30 mm in diameter, with
    nodes "base" and "platform" in the middle of its end rings.

    One serves all six links of `mechanisms.elastic_parallelogram`. (The source prints 28 mm for the
    inner diameter, which its mass and stiffness contradict: these need 26 mm.)

    **Arguments:** `modes`: with both ends held, as of `reduce`; the source has 20. `damping`:
    default `StiffnessDamping(5e-4)`, chosen. `cache`: a file that keeps the result; None: none.

    **Returns:** the reduced body, z along the link, from "base" to "platform".

    **Raises:** as `reduce`; `ModelError` if scikit-fem is not installed (extra `elastic`).

    Wojtyra & Fraczek (2012, section 5).
    """
    elements, attachments = parallelogram_link_elements()
    return reduce(elements, attachments, modes, damping=damping, cache=cache)


def parallelogram_platform(
    modes: Setting[int] = 30,
    *,
    damping: Setting[AbstractDamping] = _DAMPING,
    cache: Setting[str | Path | None] = None,
) -> ReducedBody:
    """The platform of the spatial parallelogram: a plate of steel, 0.5 m by 0.5 m by 20 mm, with
    nodes at its joints, "B", "D", "F", "H" at the corners and "L", "N" in the middle of two edges,
    and "load" in its centre.

    Each is tied rigidly to what lies within 30 mm in the plate. Young's modulus of the steel is
    chosen (2.1e11 Pa).

    **Arguments:** `modes`: with all nodes held, as of `reduce`; the source has 30. `damping`:
    default `StiffnessDamping(5e-4)`, chosen. `cache`: a file that keeps the result; None: none.

    **Returns:** the reduced body, z normal to the plate, x and y along its edges.

    **Raises:** as `reduce`; `ModelError` if scikit-fem is not installed (extra `elastic`).

    Wojtyra & Fraczek (2012, section 5).
    """
    elements, attachments = parallelogram_platform_elements()
    return reduce(elements, attachments, modes, damping=damping, cache=cache)


def parallelogram_link_elements() -> tuple[FiniteElements, list[Attachment]]:
    """The mesh and the attachments of `parallelogram_link`, as `reduce` and `mode_shapes` take
    them."""
    elements = tube(0.026, 0.03, _LENGTH, _ALUMINIUM, around=8, along=24)
    ring = NodesOnPlane([0.0, 0.0, 1.0])
    ends = {"base": -_LENGTH / 2, "platform": _LENGTH / 2}
    return elements, [Attachment(name, [0.0, 0.0, z], ring) for name, z in ends.items()]


def parallelogram_platform_elements() -> tuple[FiniteElements, list[Attachment]]:
    """The mesh and the attachments of `parallelogram_platform`, as `reduce` and `mode_shapes` take
    them."""
    elements = plate(2 * _HALF, 2 * _HALF, 0.02, _STEEL, across=10)
    pad = NodesWithin(_PAD)
    return elements, [
        Attachment(name, [x, y, 0.0], pad) for name, (x, y) in _PLATFORM_NODES.items()
    ]
