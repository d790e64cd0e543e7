"""Symbols of joints, drivers and the ground, as solids in the frame of the joint: its z axis is the
joint's axis in space, in the plane z is across it and x is along the joint's line. A length of 1 is
half the width of a bar.
"""

from collections.abc import Callable

import numpy as np

from ._solids import arc, axes_along, ball, box, Colour, cone, cylinder, prism, Solid, tube


JOINT_COLOUR: Colour = (0.25, 0.27, 0.30)
BLOCK_COLOUR: Colour = (0.45, 0.48, 0.52)
GROUND_COLOUR: Colour = (0.55, 0.52, 0.47)
DRIVER_COLOUR: Colour = (0.85, 0.45, 0.10)

_Z_TO_X = np.array([[0.0, 0.0, 1.0], [0.0, 1.0, 0.0], [-1.0, 0.0, 0.0]])
_ZERO = np.zeros(3)


def scaled(solids: tuple[Solid, ...], unit: float) -> tuple[Solid, ...]:
    """The solids in m, from those whose lengths count in units."""
    return tuple(solid._replace(vertices=unit * solid.vertices) for solid in solids)


# --------------------------------------------------------------------------------------------------
# Joints.
# --------------------------------------------------------------------------------------------------


def _pin(height: float) -> tuple[Solid, ...]:
    return (cylinder(0.55, height, JOINT_COLOUR),)


def _planar_block(height: float) -> tuple[Solid, ...]:
    return (box((4.4, 2.6, height), BLOCK_COLOUR),)


def _planar_weld(height: float) -> tuple[Solid, ...]:
    return (box((1.6, 1.6, height), JOINT_COLOUR),)


def _planar_slot(height: float) -> tuple[Solid, ...]:
    return (cylinder(0.7, height, JOINT_COLOUR), box((3.6, 0.5, 0.8 * height), BLOCK_COLOUR))


def _planar_mark(height: float) -> tuple[Solid, ...]:
    return (cylinder(0.7, height, JOINT_COLOUR),)


def _planar_edge(height: float) -> tuple[Solid, ...]:
    return (box((5.0, 0.5, height), JOINT_COLOUR),)


_PLANAR: dict[str, Callable[[float], tuple[Solid, ...]]] = {
    "revolute": _pin,
    "translational": _planar_block,
    "fixed": _planar_weld,
    "point_on_line": _planar_slot,
    "knife_edge": _planar_edge,
}


def _hinge() -> tuple[Solid, ...]:
    return (cylinder(1.35, 3.0, JOINT_COLOUR), cylinder(0.6, 4.2, BLOCK_COLOUR))


def _ball() -> tuple[Solid, ...]:
    return (ball(1.5, JOINT_COLOUR),)


def _slider() -> tuple[Solid, ...]:
    return (box((2.8, 2.8, 4.4), BLOCK_COLOUR),)


def _sleeve() -> tuple[Solid, ...]:
    return (tube(1.7, 1.0, 4.4, BLOCK_COLOUR),)


def _thread() -> tuple[Solid, ...]:
    rings = [tube(2.0, 1.0, 0.7, JOINT_COLOUR) for _ in range(3)]
    eye = np.eye(3)
    placed = [ring.placed(z * eye[2], eye) for ring, z in zip(rings, (-1.5, 0.0, 1.5), strict=True)]
    return (tube(1.7, 1.0, 4.4, BLOCK_COLOUR), *placed)


def _cross() -> tuple[Solid, ...]:
    along = cylinder(0.6, 4.0, JOINT_COLOUR)
    return (along, along.placed(_ZERO, _Z_TO_X), ball(0.9, BLOCK_COLOUR, 1))


def _weld() -> tuple[Solid, ...]:
    return (box((2.2, 2.2, 2.2), JOINT_COLOUR),)


def _flat() -> tuple[Solid, ...]:
    return (cylinder(2.6, 0.5, BLOCK_COLOUR), ball(0.8, JOINT_COLOUR, 1))


def _mark() -> tuple[Solid, ...]:
    return (ball(1.1, JOINT_COLOUR, 1),)


def _bead() -> tuple[Solid, ...]:
    return (tube(1.5, 0.8, 2.0, BLOCK_COLOUR),)


_SPATIAL: dict[str, Callable[[], tuple[Solid, ...]]] = {
    "revolute": _hinge,
    "spherical": _ball,
    "translational": _slider,
    "cylindrical": _sleeve,
    "screw": _thread,
    "universal": _cross,
    "fixed": _weld,
    "planar": _flat,
    "point_on_plane": _flat,
    "point_on_line": _bead,
}


def joint_solids(kind: str, planar: bool, height: float) -> tuple[Solid, ...]:
    """The symbol of a kind of joints, in units. `height`: across the plane."""
    if planar:
        return _PLANAR.get(kind, _planar_mark)(height)
    return _SPATIAL.get(kind, _mark)()


# --------------------------------------------------------------------------------------------------
# Drivers and the ground.
# --------------------------------------------------------------------------------------------------


def turning_arrow(height: float) -> tuple[Solid, ...]:
    """A curved arrow about z in the positive sense, at that height."""
    ring, turn = 2.6, 1.5 * np.pi
    shaft = arc(ring, 0.22, turn, DRIVER_COLOUR)
    end = ring * np.array([np.cos(turn), np.sin(turn), 0.0])
    ahead = np.array([-np.sin(turn), np.cos(turn), 0.0])
    head = cone(0.7, 1.4, DRIVER_COLOUR).placed(end, axes_along(ahead))
    return tuple(x.placed(np.array([0.0, 0.0, height]), np.eye(3)) for x in (shaft, head))


def straight_arrow(planar: bool) -> tuple[Solid, ...]:
    """An arrow beside the joint, along its line: x in the plane, z in space."""
    shaft = cylinder(0.25, 3.4, DRIVER_COLOUR)
    eye = np.eye(3)
    shaft = shaft.placed(np.array([0.0, 0.0, -0.7]), eye)
    head = cone(0.7, 1.6, DRIVER_COLOUR).placed(np.array([0.0, 0.0, 1.0]), eye)
    beside = np.array([0.0, 2.4, 0.0]) if planar else np.array([2.6, 0.0, 0.0])
    return tuple(x.placed(beside, _Z_TO_X if planar else eye) for x in (shaft, head))


def planar_foot(height: float) -> tuple[Solid, ...]:
    """A bearing block below a joint of the plane, -y is down."""
    turns = np.linspace(0.0, np.pi, 9)
    top = 1.1 * np.stack([np.cos(turns), np.sin(turns)], axis=1)
    outline = np.concatenate([[[2.0, -2.8]], top, [[-2.0, -2.8]]])
    base = box((6.0, 0.5, height), GROUND_COLOUR).placed(np.array([0.0, -3.05, 0.0]), np.eye(3))
    return (prism(outline, -height / 2, height / 2, GROUND_COLOUR), base)


def spatial_foot() -> tuple[Solid, ...]:
    """A post on a plate below a joint of space, -z is down."""
    eye = np.eye(3)
    post = cylinder(0.8, 2.6, GROUND_COLOUR).placed(np.array([0.0, 0.0, -1.5]), eye)
    plate = box((5.0, 5.0, 0.5), GROUND_COLOUR).placed(np.array([0.0, 0.0, -3.0]), eye)
    return (post, plate)
