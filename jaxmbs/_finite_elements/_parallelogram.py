"""The bodies of the spatial parallelogram of Wojtyra & Fraczek (2012, section 5)."""

import math

from ._attachment import Attachment, NodesOnPlane, NodesWithin
from ._elements import FiniteElements
from ._meshes import Material, plate, tube


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


def parallelogram_link() -> tuple[FiniteElements, tuple[Attachment, ...]]:
    """A link of the spatial parallelogram and where its joints are, for `reduce` and `mode_shapes`:

        reduce(*parallelogram_link(), modes=20, damping=StiffnessDamping(5e-4))

    is the `link` of `mechanisms.modal_parallelogram`, one for all six. It is a tube of aluminium,
    26 mm and 30 mm in diameter, z along it; the attachments "base" and "platform" are in the middle
    of its end rings and rigidly tied to them, at z = -l/2 and l/2, l = sqrt(1/2) m. (The source
    prints 28 mm for the inner diameter, which its mass and stiffness contradict: these need 26 mm.)
    Poisson's ratio is chosen (0.33).

    **Raises:** `ModelError` if scikit-fem is not installed (extra `elastic`).

    Wojtyra & Fraczek (2012, section 5), where a link has 20 normal modes.
    """
    elements = tube(0.026, 0.03, _LENGTH, _ALUMINIUM, around=8, along=24)
    ring = NodesOnPlane([0.0, 0.0, 1.0])
    ends = {"base": -_LENGTH / 2, "platform": _LENGTH / 2}
    return elements, tuple(Attachment(name, [0.0, 0.0, z], ring) for name, z in ends.items())


def parallelogram_platform() -> tuple[FiniteElements, tuple[Attachment, ...]]:
    """The platform of the spatial parallelogram and where its joints and its load are, for `reduce`
    and `mode_shapes`:

        reduce(*parallelogram_platform(), modes=30, damping=StiffnessDamping(5e-4))

    is the `platform` of `mechanisms.modal_parallelogram`. It is a plate of steel, 0.5 m by 0.5 m
    by 20 mm, z normal to it, x and y along its edges. The attachments "B", "D", "F", "H" are at its
    corners, "L" and "N" in the middle of two edges, "load" in its centre, each rigidly tied to what
    lies within 30 mm. Young's modulus (2.1e11 Pa) and Poisson's ratio (0.3) are chosen.

    **Raises:** `ModelError` if scikit-fem is not installed (extra `elastic`).

    Wojtyra & Fraczek (2012, section 5), where the platform has 30 normal modes.
    """
    elements = plate(2 * _HALF, 2 * _HALF, 0.02, _STEEL, across=10)
    pad = NodesWithin(_PAD)
    return elements, tuple(
        Attachment(name, [x, y, 0.0], pad) for name, (x, y) in _PLATFORM_NODES.items()
    )
