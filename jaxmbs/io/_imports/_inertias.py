"""Inertias of files that no body has, and those that are zero."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from ..._checks import shown
from ..._errors import ModelError
from ._description import Dynamics, Joint, JointCoordinate, Link, Omission, Vector
from ._fusion import Fused
from ._geometry import is_physical, POINT, thin_or_point


# Directions that are equal, and points on a line (m).
_PARALLEL, _ON_LINE = 1e-6, 1e-9


def without_rounding(one: Fused) -> tuple[Fused, list[Omission]]:
    """The bodies, where moments are zero up to rounding as point masses."""
    links, told = list(one.links), []
    for k, link in enumerate(links):
        largest = float(np.max(np.abs(link.inertia)))
        if link.mass is None or not 0 < largest <= POINT**2 * link.mass:
            continue
        why = (
            f"is taken as zero, that of a point: {largest:.3g} kg m2 at most, a radius of gyration "
            f"of less than {POINT:g} m, is the rounding of zero"
        )
        told.append(Omission("inertia", link.name, why))
        links[k] = link._replace(inertia=np.zeros((3, 3)))
    return one._replace(links=tuple(links)), told


def is_massless(link: Link) -> bool:
    """Has it neither mass nor inertia?"""
    return link.mass is None or (link.mass == 0 and not np.any(link.inertia))


def moments_without_mass(
    links: Sequence[Link], bodies: Sequence[Link], body_of: Mapping[str, str]
) -> tuple[dict[str, str], list[Omission]]:
    """Links of a file that have moments of inertia and no mass, among those that are welded
    together to these bodies: what is wrong with bodies that have no mass at all, by name, and what
    is to be told of those that have one."""
    whole = {body.name: bool(body.mass) for body in bodies}
    refused: dict[str, str] = {}
    told = []
    for link in links:
        body = body_of[link.name]
        if link.mass or not np.any(link.inertia) or body not in whole:
            continue
        largest = float(np.max(np.abs(link.inertia)))
        why = f"has moments of inertia, of up to {largest:.6g} kg m2, and no mass"
        if not whole[body]:
            before = f"{refused[body]}; " if body in refused else ""
            part = "it" if link.name == body else f"part {link.name!r}"
            refused[body] = f"{before}{part} {why}; give it a mass, or no moments"
        else:
            told.append(Omission("inertia", link.name, f"{why}; they count in {body!r}"))
    return refused, told


def is_slender(link: Link) -> bool:
    """Is it a body with moments that are exactly zero: a rod without thickness, a point?"""
    if not link.mass or link.mass < 0 or is_physical(link.mass, link.inertia):
        return False
    return thin_or_point(link.inertia)


def balanced(links: Sequence[Link]) -> tuple[list[Link], list[Omission]]:
    """The links, with the mean moment in place of the moments of a physically impossible
    inertia."""
    found, changed = list(links), []
    for k, link in enumerate(links):
        if link.slip is None or link.slip.repaired:
            continue
        mean = float(np.trace(link.inertia)) / 3
        why = f"has moments that no body can have; all are their mean, {mean:.6g} kg m2"
        changed.append(Omission("inertia", link.name, why))
        found[k] = link._replace(inertia=mean * np.eye(3), slip=None)
    return found, changed


def without_loose_ends(
    one: Fused, joints: Sequence[Joint], held: Sequence[JointCoordinate], loaded: Sequence[str]
) -> tuple[list[Joint], list[str], list[Omission]]:
    """Joints that weld links without mass to the one that alone holds them: nothing follows from
    their motion. `held`: coordinates that couplings hold; `loaded`: links on which forces act.

    **Returns:** the joints, welding where they are; links without mass that nothing holds; and the
    omissions.
    """
    body_of, moved = dict(one.body_of), list(joints)
    light = {link.name for link in one.links if is_massless(link)}
    kept = {body_of[name] for side in held for name in (side.parent, side.child)}
    kept |= {body_of[name] for name in loaded}
    told: list[Omission] = []
    while True:
        found = next(_ends(light - kept, moved, body_of), None)
        if found is None:
            break
        end, joint = found
        other = next(x for x in (body_of[joint.parent], body_of[joint.child]) if x != end)
        moved[moved.index(joint)] = joint._replace(welds=True)
        body_of = {link: other if body == end else body for link, body in body_of.items()}
        light.discard(end)
        why = (
            f"is left out: link {end!r} behind it has no mass and nothing else holds it, so that "
            f"nothing follows from its motion; it is part of {other!r}"
        )
        told.append(Omission("joint", joint.name, why))
    holding = {body_of[name] for joint in moved for name in (joint.parent, joint.child)}
    free = [name for name in light - kept if name not in holding]
    told.extend(
        Omission("link", name, "is left out: it has no mass and no joint holds it")
        for name in sorted(free)
    )
    return moved, sorted(free), told


def _ends(
    light: set[str], joints: Sequence[Joint], body_of: Mapping[str, str]
) -> Iterator[tuple[str, Joint]]:
    """The massless links that are held by one joint, each with that joint."""
    at: dict[str, list[Joint]] = {}
    for joint in joints:
        pair = {body_of[joint.parent], body_of[joint.child]}
        for body in pair if len(pair) == 2 and not joint.welds else ():
            at.setdefault(body, []).append(joint)
    for body in sorted(light):
        own = at.get(body, [])
        if len(own) == 1 and not any(_determines(x) for x in own[0].dynamics):
            yield body, own[0]


def _determines(own: Dynamics) -> bool:
    """Does what acts along a coordinate give an acceleration, or a force that nothing balances?"""
    return bool(own.armature or (own.effort and not (own.stiffness or own.damping)))


def refuse_loose(one: Fused, joints: Sequence[Joint], coupled: Sequence[JointCoordinate]) -> None:
    """
    **Raises:** `ModelError` for a body that can turn about an axis about which it has no inertia.
    """
    driven = {one.body_of[name] for side in coupled for name in (side.parent, side.child)}
    for link in one.links:
        if not is_slender(link) or link.name in driven:
            continue
        own = [
            joint
            for joint in joints
            if link.name in (one.body_of[joint.parent], one.body_of[joint.child])
            and one.body_of[joint.parent] != one.body_of[joint.child]
        ]
        for axis in _axes(link, own):
            if all(_turns(joint, one, link, axis) for joint in own):
                raise ModelError(
                    f"body {shown(link.name)} has a principal moment of inertia of zero, and no "
                    "joint keeps it from turning about that axis, so that nothing says how it "
                    "does; give it that moment, or a joint that holds it."
                )


def _axes(link: Link, joints: Sequence[Joint]) -> Iterator[Vector]:
    """Directions (world) about which the link has no inertia, and joints may leave its rotation
    free."""
    values, vectors = np.linalg.eigh(link.inertia)
    none = link.rotation @ vectors[:, np.abs(values) <= 1e-12 * max(values[-1], 1e-300)]
    if none.shape[1] == 1:
        yield none[:, 0]
        return
    yield none[:, 0]
    for joint in joints:
        yield from (axis / np.linalg.norm(axis) for axis in joint.axes)
        for point in joint.points:
            arm = point - link.center
            if np.linalg.norm(arm) > _ON_LINE:
                yield arm / np.linalg.norm(arm)


def _turns(joint: Joint, one: Fused, link: Link, axis: Vector) -> bool:
    """Does a joint allow a link to rotate about an axis through its centre of mass?"""
    if any(own.armature for own in joint.dynamics):
        return False
    point = joint.points[0 if one.body_of[joint.parent] == link.name else 1]
    on_line = np.linalg.norm(np.cross(point - link.center, axis)) <= _ON_LINE
    if joint.kind == "spherical":
        return bool(on_line)
    if joint.kind in ("revolute", "cylindrical"):
        own = joint.axes[0] / np.linalg.norm(joint.axes[0])
        return bool(on_line and np.linalg.norm(np.cross(own, axis)) <= _PARALLEL)
    return False
