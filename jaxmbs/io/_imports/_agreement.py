"""The two frames of a joint, one on each of its links: where they agree within the precision of the
file they are made equal, otherwise the gap is reported."""

from typing import NamedTuple

import numpy as np

from .._digits import Digits
from ._description import Description, Joint, Omission, Vector


# Between two frames lie several errors of numbers: those of a link's place, of its orientation and
# of the point in it, of each of two links.
_ERRORS = 8.0

# Of double precision, relative to the largest coordinate, or rad: sums of many rounded numbers.
_ROUNDING = 1e-9

# Joints whose link may be displaced along the axis.
_SLIDING = ("translational", "cylindrical", "screw")
# Joints whose two points need not coincide.
_APART = ("distance",)


class Agreed(NamedTuple):
    """The description with joints that are closed within the precision of its numbers; by how much
    points were moved for that (m); and what does not agree."""

    description: Description
    moved: float
    omissions: tuple[Omission, ...]


def agreed(description: Description, digits: Digits) -> Agreed:
    """Close what is open by no more than the numbers may be off."""
    size = size_of(description)
    length = max(_ERRORS * digits.length, _ROUNDING * size)
    angle = max(_ERRORS * digits.angle, _ROUNDING)
    joints, moved, omissions = [], 0.0, []
    for joint in description.joints:
        gap = _gap(joint)
        distance, turn = float(np.linalg.norm(gap)), _turn(joint)
        if distance > length or turn > angle:
            omissions.append(Omission("joint", joint.name, _difference(joint, gap, turn, length)))
        if distance <= length:
            # To the child's, which is often that of its own origin, and exact.
            moved = max(moved, distance)
            joint = joint._replace(points=joint.points + np.stack([gap, 0 * gap]))  # noqa: PLW2901
        joints.append(joint)
    return Agreed(description._replace(joints=tuple(joints)), moved, tuple(omissions))


def size_of(description: Description) -> float:
    """The largest coordinate of a joint or a link (m)."""
    points = [own.points for own in description.joints]
    places = [own.position[None] for own in description.links]
    return max((float(np.max(np.abs(own))) for own in (*points, *places)), default=0.0)


def _gap(joint: Joint) -> Vector:
    """Vector from the first point to the second, without the joint's free directions."""
    gap = joint.points[1] - joint.points[0]
    if joint.kind in _APART:
        return np.zeros(3)
    if joint.kind in _SLIDING:
        axis = joint.axes[0] / np.linalg.norm(joint.axes[0])
        return gap - axis * (axis @ gap)
    return gap


def _turn(joint: Joint) -> float:
    """The largest angle (rad) between axes of the two frames that are meant to be one."""
    found = [joint.turned]
    for first, second in zip(joint.axes, joint.child_axes, strict=False):
        sine = np.linalg.norm(np.cross(first, second))
        found.append(float(np.arctan2(sine, first @ second)))
    return max(found)


def _difference(joint: Joint, gap: Vector, turn: float, length: float) -> str:
    distance = float(np.linalg.norm(gap))
    said = []
    if distance > length:
        away = ", ".join(f"{x:.6g}" for x in gap)
        of = "frame" if joint.welds else "point"
        kept = (
            "; the links are welded as they lie"
            if joint.welds
            else ", and it is open in the reference configuration"
        )
        said.append(
            f"its {of} on {joint.child!r} lies {distance:.6g} m away from that on "
            f"{joint.parent!r} ({away}){kept}"
        )
    if turn > 0 and not (said and turn <= _ROUNDING):
        what = "the orientation" if joint.kind == "fixed" else f"the axis on {joint.parent!r}"
        said.append(
            f"its axes on {joint.parent!r} and {joint.child!r} are {turn:.6g} rad apart; {what} "
            "in the reference configuration is kept"
        )
    return "; ".join(said)
