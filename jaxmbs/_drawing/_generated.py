"""Shapes of bodies that have none of their own, from the points of their joints."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from .._constraints._curves import OnFlatFace, OnPlanarCurve, OnSpatialCurve
from .._constraints._primitives import Touches
from .._geometry import sampled
from ._moving import DrawnJoint, Hold, Moving
from ._solids import (
    ball,
    bar,
    box,
    Colour,
    cylinder,
    distinct,
    prism,
    rounded,
    Solid,
    through,
    tube,
)
from ._symbols import JOINT_COLOUR


# Adjacent bodies of a linkage differ, also in grey.
PALETTE: tuple[Colour, ...] = (
    (0.58, 0.69, 0.80),
    (0.83, 0.75, 0.58),
    (0.62, 0.76, 0.66),
    (0.80, 0.66, 0.66),
    (0.70, 0.68, 0.80),
    (0.72, 0.74, 0.75),
)

# Wheels whose first hold is at their centre, and whose pitch point is at the third one.
_WHEELS = {"gear_pair": 2, "bevel_pair": 2, "worm_pair": 2, "rack_and_pinion": 1}

# Their markers are where the body touches another, and no part of it needs to be there.
_ON_CURVES = ("cam", "point_on_curve")
_NOT_OF_SHAPE = (*_WHEELS, *_ON_CURVES, "rolling_disk", "belt")

# Joints that let a body turn about their axis alone.
_TURNING = ("revolute", "cylindrical", "screw")
_PARALLEL = 1e-4

# Joints along whose line a body slides.
SLIDES = ("translational", "cylindrical", "screw", "point_on_line")


class Sizes:
    """Sizes of what is drawn (m): `unit`, half of the width of a bar, and across the plane the
    `height` of a body and the `pitch` of the layers in which bodies lie."""

    def __init__(self, unit: float):
        self.unit = unit
        self.height = 0.9 * unit
        self.pitch = 1.1 * unit


def unit_of(extents: Sequence[float], size: float) -> float:
    """Half of the width of a bar, from the extents of bodies and of all (m)."""
    known = [extent for extent in extents if extent > 1e-9 * size]
    usual = float(np.median(known)) if known else 0.1 * size
    return float(np.clip(0.07 * usual, 0.002 * size, 0.022 * size))


def points_of(holds: Sequence[Hold], joints: dict[int, DrawnJoint]) -> Float[np.ndarray, "n 3"]:
    """Points of a body's joints and springs in its coordinates."""
    own = [hold.origin for hold in holds if _shapes(hold, joints.get(hold.constraint))]
    return np.array(own).reshape(-1, 3)


def _shapes(hold: Hold, joint: DrawnJoint | None) -> bool:
    """Does the body reach to that point?"""
    if joint is None:
        return True
    if joint.kind in _ON_CURVES:
        return hold is joint.holds[1]
    return joint.located and joint.kind not in _NOT_OF_SHAPE


def body_solids(
    points: Float[np.ndarray, "n 3"], sizes: Sizes, planar: bool, layer: float, colour: Colour
) -> tuple[Solid, ...]:
    """The shape through the points of a body's joints, in its coordinates; one point alone is
    joined to its origin. `layer`: the height at which a body of the plane lies."""
    unit = sizes.unit
    span = float(np.max(np.abs(points), initial=0.0))
    corners = distinct(points, max(span, unit))
    if len(corners) == 0:
        return (_bob(1.8 * unit, sizes, planar, layer, colour),)
    if len(corners) == 1:
        if np.linalg.norm(corners[0]) <= 1e-6 * max(span, unit):
            return (_bob(1.6 * unit, sizes, planar, layer, colour),)
        corners = np.stack([corners[0], np.zeros(3)])
        bob = _bob(1.8 * unit, sizes, planar, layer, colour)
        return (_through(corners, sizes, planar, layer, colour), bob)
    return (_through(corners, sizes, planar, layer, colour),)


def with_panel(
    points: Float[np.ndarray, "n 3"], holds: Sequence[Hold], joints: dict[int, DrawnJoint]
) -> Float[np.ndarray, "m 3"]:
    """The points of a body that turns about the line through all of them, as a door does, and those
    of the panel whose middle is its centre of mass: a bar on that line would not show how it turns.
    """
    if len(points) < 2:
        return points
    line = points[np.argmax(np.linalg.norm(points - points[0], axis=1))] - points[0]
    length = float(np.linalg.norm(line))
    if length == 0:
        return points
    line = line / length
    shaping = [hold for hold in holds if _shapes(hold, joints.get(hold.constraint))]
    turning = all(
        hold.constraint in joints
        and joints[hold.constraint].kind in _TURNING
        and abs(hold.rotation[:, 2] @ line) > 1 - _PARALLEL
        for hold in shaping
    )
    away = -points + ((points @ line)[:, None] * line)
    off = points - points[0]
    off = off - (off @ line)[:, None] * line
    straight = float(np.max(np.abs(off))) <= 1e-3 * length
    if not turning or not straight or float(np.linalg.norm(away[0])) <= 0.02 * length:
        return points
    return np.concatenate([points, points + 2 * away])


def _through(
    corners: Float[np.ndarray, "n 3"], sizes: Sizes, planar: bool, layer: float, colour: Colour
) -> Solid:
    extent = float(np.max(np.ptp(corners, axis=0)))
    radius = min(sizes.unit, 0.25 * extent)
    if not planar:
        return through(corners, radius, colour)
    half = sizes.height / 2
    return prism(rounded(corners[:, :2], radius), layer - half, layer + half, colour)


def _bob(radius: float, sizes: Sizes, planar: bool, layer: float, colour: Colour) -> Solid:
    if not planar:
        return ball(radius, colour)
    disc = cylinder(radius, sizes.height, colour, 24)
    return disc.placed(np.array([0.0, 0.0, layer]), np.eye(3))


def layers_of(moving: Moving, names: Sequence[str], ground: str) -> dict[str, int]:
    """Layers of the bodies of the plane, so that no two that a joint connects share one; the ground
    has the first."""
    beside: dict[str, set[str]] = {name: set() for name in names}
    for joint in moving.joints:
        owners = {hold.owner for hold in joint.holds}
        for owner in owners & set(names):
            beside[owner] |= owners - {owner}
    found = {ground: 0}
    for name in names:
        used = {found[other] for other in beside[name] if other in found}
        found[name] = next(k for k in range(len(names) + 2) if k not in used)
    return found


# --------------------------------------------------------------------------------------------------
# What joints add to the shapes of their bodies: wheels, cams, guides, rolling disks.
# --------------------------------------------------------------------------------------------------


def joint_parts(
    joint: DrawnJoint,
    sizes: Sizes,
    planar: bool,
    layers: dict[str, float],
    colours: dict[str, Colour],
) -> list[tuple[str, Solid]]:
    """Solids that a joint adds to its bodies, each with the name of the frame that holds it."""
    wheels = _WHEELS.get(joint.kind, 0)
    if wheels and len(joint.holds) == 3:
        return [
            part for k in range(wheels) for part in _wheel(joint, k, sizes, planar, layers, colours)
        ]
    found: list[tuple[str, Solid]] = []
    for primitive in joint.primitives:
        hold = joint.holds[0]
        colour = colours.get(hold.owner, PALETTE[0])
        if isinstance(primitive, Touches):
            disc = cylinder(float(primitive.radius), 0.1 * float(primitive.radius), colour, 32)
            found.append((hold.site, disc.placed(hold.origin, hold.rotation)))
        elif isinstance(primitive, OnPlanarCurve | OnFlatFace) and joint.kind == "cam":
            outline = sampled(primitive.spline)[:, 0]
            layer, half = layers.get(hold.owner, 0.0), sizes.height / 2
            plate = prism(outline, layer - half, layer + half, colour)
            found.append((hold.site, plate.placed(hold.origin, hold.rotation)))
            found += _follower(joint.holds[1], primitive, sizes, layers, colours)
    return found


def reach_of(joint: DrawnJoint) -> float:
    """Radius to which a wheel, cam or disk of a joint extends (m)."""
    if len(joint.holds) == 3 and joint.kind in _WHEELS:
        apart = joint.holds[2].marker.origin[0] - joint.holds[0].marker.origin[0]
        return float(np.linalg.norm(apart))
    found = 0.0
    for primitive in joint.primitives:
        if isinstance(primitive, Touches):
            found = max(found, float(primitive.radius))
        elif isinstance(primitive, OnPlanarCurve | OnFlatFace | OnSpatialCurve):
            points = sampled(primitive.spline)[:, 0]
            found = max(found, float(np.linalg.norm(np.ptp(points, axis=0))))
    return found


def _follower(
    hold: Hold,
    primitive: OnPlanarCurve | OnFlatFace,
    sizes: Sizes,
    layers: dict[str, float],
    colours: dict[str, Colour],
) -> list[tuple[str, Solid]]:
    colour, layer = colours.get(hold.owner, PALETTE[0]), layers.get(hold.owner, 0.0)
    up = np.array([0.0, 0.0, layer])
    if isinstance(primitive, OnFlatFace):
        unit = sizes.unit
        away = -float(primitive.side) * 0.4 * unit
        face = box((12 * unit, 0.8 * unit, sizes.height), colour)
        face = face.placed(np.array([0.0, away, layer]), np.eye(3))
        return [(hold.site, face.placed(hold.origin, hold.rotation))]
    radius = abs(float(primitive.offset))
    if radius == 0:
        return []
    roller = cylinder(radius, sizes.height, JOINT_COLOUR, 24).placed(up, np.eye(3))
    return [(hold.site, roller.placed(hold.origin, hold.rotation))]


def _wheel(
    joint: DrawnJoint,
    k: int,
    sizes: Sizes,
    planar: bool,
    layers: dict[str, float],
    colours: dict[str, Colour],
) -> list[tuple[str, Solid]]:
    """A disc of the pitch radius, with a mark that shows how it turns; of an internal gear a
    ring."""
    hold, other, pitch = joint.holds[k], joint.holds[1 - k], joint.holds[2]
    origin = hold.marker.origin[0]
    reach = pitch.marker.origin[0] - origin
    radius = float(np.linalg.norm(reach))
    if radius == 0:
        return []
    apart = pitch.marker.origin[0] - other.marker.origin[0]
    internal = joint.kind == "gear_pair" and float(reach @ apart) > 0
    internal = internal and radius > float(np.linalg.norm(apart))
    height = sizes.height if planar else max(2.0 * sizes.unit, 0.12 * radius)
    colour = colours.get(hold.owner, PALETTE[k])
    up = np.array([0.0, 0.0, layers.get(hold.owner, 0.0)])
    if internal:
        disc = tube(radius + 1.5 * sizes.unit, radius, height, colour, 48)
    else:
        disc = cylinder(radius, height, colour, 40)
    solids = [disc]
    if not internal:
        mark = bar(np.zeros(3), np.array([0.8 * radius, 0.0, 0.0]), 0.03 * radius, JOINT_COLOUR)
        flat = mark.vertices * np.array([1.0, 1.0, 0.55 * height / (0.03 * radius)])
        solids.append(mark._replace(vertices=flat))
    eye = np.eye(3)
    return [(hold.site, x.placed(up, eye).placed(hold.origin, hold.rotation)) for x in solids]


def guide(
    joint: DrawnJoint, carrier: int, sizes: Sizes, planar: bool, layer: float, colour: Colour
) -> Solid:
    """The bar along which the other body slides, in the coordinates of the body that carries it."""
    one, other = joint.holds[carrier], joint.holds[1 - carrier]
    axis = 0 if planar else 2
    along = np.einsum("ni,ni->n", one.marker.rotation[:, :, axis], _apart(one, other))
    beyond = 5.0 * sizes.unit
    low, high = float(np.min(along)) - beyond, float(np.max(along)) + beyond
    if planar:
        half = sizes.height / 2
        rail = box((high - low, 1.0 * sizes.unit, 2 * half), colour)
        rail = rail.placed(np.array([(low + high) / 2, 0.0, layer]), np.eye(3))
    else:
        rail = cylinder(0.8 * sizes.unit, high - low, colour, 12)
        rail = rail.placed(np.array([0.0, 0.0, (low + high) / 2]), np.eye(3))
    return rail.placed(one.origin, one.rotation)


def _apart(one: Hold, other: Hold) -> Float[np.ndarray, "n 3"]:
    return other.marker.origin - one.marker.origin


def curve_of(joint: DrawnJoint) -> Float[np.ndarray, "n m 3"] | None:
    """The curve along which a point of a joint is guided, in n states."""
    for primitive in joint.primitives:
        if isinstance(primitive, OnPlanarCurve | OnSpatialCurve) and joint.kind != "cam":
            points = sampled(primitive.spline)[:, 0]
            points = np.pad(points, [(0, 0), (0, 3 - points.shape[1])])
            if primitive.spline.closed:
                points = np.concatenate([points, points[:1]])
            marker = joint.holds[0].marker
            return np.einsum("nij,mj->nmi", marker.rotation, points) + marker.origin[:, None]
    return None
