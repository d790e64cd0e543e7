"""Joints that close loops, given in addition to a file whose format has trees alone."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ..._checks import listed, shown
from ..._errors import ModelError
from ._description import Description, GROUND, Joint, Link, Matrix, Omission, Vector
from ._geometry import rotation_vector


# Joints that a loop may be closed by, and how many axes each has.
_KINDS = {
    "spherical": 0,
    "fixed": 0,
    "revolute": 1,
    "cylindrical": 1,
    "translational": 1,
    "universal": 2,
}
_APART = 1e-9


class _Frame(NamedTuple):
    """The frame of a link in the world."""

    origin: Vector
    axes: Matrix


def closed(description: Description, loops: Sequence[str]) -> Description:
    """A description with a joint for each loop, `a=b:joint` or `a=b:joint:axis`, between the frames
    of two links.

    **Raises:** `ModelError` for a link or a joint that there is not.
    """
    joints, told = [], []
    for loop in loops:
        joint, own = _joint(description, loop)
        joints.append(joint)
        told.extend(own)
    return description._replace(
        joints=(*description.joints, *joints), omissions=(*description.omissions, *told)
    )


def _joint(description: Description, loop: str) -> tuple[Joint, list[Omission]]:
    pair, _, rest = loop.partition(":")
    kind, _, axis = rest.partition(":")
    first, equals, second = pair.partition("=")
    if not equals or not kind:
        raise ModelError(
            f"loop {shown(loop)} is not FIRST=SECOND:JOINT, such as tip=crank:spherical, or "
            "tip=crank:revolute:y with an axis of FIRST."
        )
    if kind not in _KINDS:
        raise ModelError(f"loop {shown(loop)}: joint {shown(kind)} is none of {listed(_KINDS)}.")
    if axis not in ("", "x", "y", "z"):
        raise ModelError(f"loop {shown(loop)}: axis {shown(axis)} must be x, y or z of {first!r}.")
    links = {link.name: link for link in description.links}
    one, other = (_frame(links, name, loop) for name in (first, second))
    if first == second:
        raise ModelError(f"loop {shown(loop)} joins {shown(first)} with itself.")
    place = "xyz".index(axis or "z")
    axes = [one.axes[:, (place + k) % 3] for k in range(_KINDS[kind])]
    points = np.stack([one.origin, other.origin])
    name = f"{first}={second}"
    told = []
    apart = float(np.linalg.norm(one.origin - other.origin))
    if apart > _APART and kind != "translational":
        why = f"is open by {apart:.3g} m in the file's configuration; --assemble closes it"
        told.append(Omission("loop", name, why))
    turned = float(np.linalg.norm(rotation_vector(one.axes.T @ other.axes)))
    if turned > _APART and kind != "spherical":
        why = (
            f"takes its axes from {first!r}, and holds {second!r} as it is turned in the file's "
            f"configuration, {turned:.3g} rad away from it"
        )
        told.append(Omission("loop", name, why))
    return Joint(name, kind, first, second, points, tuple(axes)), told


def _frame(links: dict[str, Link], name: str, loop: str) -> _Frame:
    if name == GROUND:
        return _Frame(np.zeros(3), np.eye(3))
    if name not in links:
        raise ModelError(
            f"loop {shown(loop)}: there is no link {shown(name)}; there are {listed(links)}."
        )
    return _Frame(links[name].position, links[name].rotation)
