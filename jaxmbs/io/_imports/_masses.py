"""Masses and inertias of files: compared with what is stated, welded together, zero, or in the
wrong order.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from ..._checks import shown
from ..._errors import ModelError
from ._description import (
    Dynamics,
    GROUND,
    is_physical,
    Joint,
    JointCoordinate,
    Link,
    Matrix,
    moved_inertia,
    Omission,
    POINT,
    Slip,
    thin_or_point,
    Vector,
)


# --------------------------------------------------------------------------------------------------
# Links that are welded together are one body.
# --------------------------------------------------------------------------------------------------


class Fused(NamedTuple):
    """`links`: one for each body. `body_of`: of each link the one, or the ground, that it is a part
    of."""

    links: tuple[Link, ...]
    body_of: Mapping[str, str]


def fused(links: Sequence[Link], joints: Iterable[Joint], grounded: Iterable[str]) -> Fused:
    """One link for each set of links that joints weld together; those that are welded to the
    ground, or `grounded`, become part of it. A body has the name and the axes of its first link."""
    leader = {name: name for name in (GROUND, *(link.name for link in links))}
    order = {name: k for k, name in enumerate(leader)}

    def find(name: str) -> str:
        while leader[name] != name:
            name = leader[name]
        return name

    pairs = [(joint.parent, joint.child) for joint in joints if joint.welds]
    for first, second in (*pairs, *((GROUND, name) for name in grounded)):
        a, b = sorted((find(first), find(second)), key=order.__getitem__)
        leader[b] = a
    body_of = {name: find(name) for name in leader}
    members: dict[str, list[Link]] = {}
    for link in links:
        members.setdefault(body_of[link.name], []).append(link)
    bodies = tuple(_one(own) for name, own in members.items() if name != GROUND)
    return Fused(bodies, body_of)


def _one(members: Sequence[Link]) -> Link:
    first = members[0]._replace(between=all(link.between for link in members))
    # Some files have links with an inertia and no mass.
    masses = np.array([link.mass or 0.0 for link in members])
    if len(members) == 1 or not (np.any(masses) or any(np.any(x.inertia) for x in members)):
        return first
    mass, center = float(masses.sum()), first.center
    if np.any(masses > 0):
        center = masses @ np.array([link.center for link in members]) / mass
    inertia = np.zeros((3, 3))
    for link, own in zip(members, masses, strict=True):
        turn = first.rotation.T @ link.rotation
        offset = first.rotation.T @ (link.center - center)
        inertia = inertia + moved_inertia(turn @ link.inertia @ turn.T, float(own), offset)
    return first._replace(mass=mass, center=center, inertia=(inertia + inertia.T) / 2)


# --------------------------------------------------------------------------------------------------
# Inertias of files that no body has, and those that are zero.
# --------------------------------------------------------------------------------------------------


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


# --------------------------------------------------------------------------------------------------
# Physically impossible inertias whose numbers are in the wrong order.
# --------------------------------------------------------------------------------------------------


# Rows and columns of the six places of a triangle, by what they are called.
_PLACES: Mapping[str, tuple[int, int]] = {
    f"{'xyz'[i]}{'xyz'[j]}": (i, j) for i in range(3) for j in range(i, 3)
}


# The orders in which formats write them.
URDF_ORDER = ("xx", "xy", "xz", "yy", "yz", "zz")
MJCF_ORDER = ("xx", "yy", "zz", "xy", "xz", "yz")

# Other orders in which they may have been written; of a matrix row by row the fourth is the second
# again, and the last is not there.
_ROWS = ("xx", "xy", "xz", "xy", "yy", "yz")
_OTHERS = (URDF_ORDER, MJCF_ORDER, ("xx", "xy", "yy", "xz", "yz", "zz"))


def with_slip(link: Link) -> Link:
    """The link with the defect of its inertia, and with the intended inertia where its numbers show
    it."""
    if link.slip is not None:
        return link
    slip = slip_of(link.mass, link.inertia)
    return link if slip is None else link._replace(slip=slip, inertia=slip.inertia)


def slip_of(
    mass: float | None, inertia: Matrix, order: tuple[str, ...] | None = None
) -> Slip | None:
    """The defect of an inertia along the axes in which a file writes it, in that order of its six
    numbers; None for a physically possible inertia, and for one that is zero up to rounding."""
    size = float(np.max(np.abs(inertia)))
    if (
        size <= POINT**2 * max(mass or 0.0, 0.0)
        or is_physical(1.0, inertia)
        or thin_or_point(inertia)
    ):
        return None
    found = [] if order is None else list(_readings(inertia, order))
    if len(found) == 1 and found[0].repaired:
        return found[0]._replace(said=f"{found[0].said}; it is read so")
    if found:
        return Slip("perhaps " + ", or ".join(own.said for own in found), inertia)
    if np.ptp(inertia) <= 1e-12 * size:
        said = f"all its six numbers are {size:.6g}, products of inertia too, which a body has not"
        return Slip(said, inertia)
    return Slip(_one_wrong(inertia), inertia)


def _readings(inertia: Matrix, order: tuple[str, ...]) -> Iterator[Slip]:
    """Physically possible inertias whose numbers were written in another order."""
    written = [float(inertia[_PLACES[name]]) for name in order]
    if written[1] == written[3]:
        yield from _of_rows(written)
    for other in _OTHERS:
        meant = np.zeros((3, 3))
        for name, value in zip(other, written, strict=True):
            _put(meant, name, value)
        if other != order and is_physical(1.0, meant):
            said = f"its six numbers stand in the order {' '.join(other)}"
            yield Slip(f"{said} ({_numbers(meant, other)})", meant, repaired=_is_plain(meant))


def _of_rows(written: Sequence[float]) -> Iterator[Slip]:
    """Six of nine numbers: zz is in the middle of what a body can have, which for a body of
    revolution about an axis across it is its other moment."""
    meant = np.zeros((3, 3))
    for name, value in zip(_ROWS, written, strict=True):
        _put(meant, name, value)
    between = _range(meant, "zz")
    if between is None:
        return
    low, high = between
    _put(meant, "zz", (low + high) / 2)
    names = [name for name in URDF_ORDER if name != "zz"]
    said = (
        "its six numbers are the first six of nine, of a matrix written row by row "
        f"({_numbers(meant, names)}), without zz, for which {meant[2, 2]:.6g} is taken, the middle "
        f"of what a body can have then, {low:.6g} to {high:.6g}"
    )
    # Two equal nonzero numbers are not a coincidence.
    yield Slip(said, meant, repaired=bool(written[1]) or _is_plain(meant))


def _put(inertia: Matrix, name: str, value: float) -> None:
    i, j = _PLACES[name]
    inertia[i, j] = inertia[j, i] = value


def _numbers(inertia: Matrix, names: Sequence[str]) -> str:
    return ", ".join(f"{name} {inertia[_PLACES[name]]:.6g}" for name in names)


def _is_plain(inertia: Matrix) -> bool:
    """Are the moments so much larger than the products that each number is surely what it is
    taken for?"""
    products = np.abs(inertia[np.triu_indices(3, 1)])
    return bool(2 * np.max(products) <= np.min(np.diag(inertia)))


def _one_wrong(inertia: Matrix) -> str:
    """The number that alone may be the wrong one, and what a body has in its place."""
    if is_physical(1.0, 2 * np.diag(np.diag(inertia)) - inertia):
        return (
            "a body could have it with the other sign of all products of inertia, for which "
            "programs have different rules"
        )
    found = []
    for name, place in _PLACES.items():
        between = _range(inertia, name)
        if between is None:
            continue
        same = [x for x in _PLACES if x != name and inertia[_PLACES[x]] == inertia[place] != 0]
        also = f", which is {same[0]} too" if same else ""
        low, high = between
        found.append(f"{name} ({inertia[place]:.6g}{also}) were between {low:.6g} and {high:.6g}")
    return f"a body could have it if {', or if '.join(found)}" if found else ""


def _range(inertia: Matrix, name: str) -> tuple[float, float] | None:
    """Range of the number at one place for which the inertia is physically possible, with all the
    others unchanged: those for which no second moment of mass is negative, a convex set."""
    size = float(np.max(np.abs(inertia)))
    i, j = _PLACES[name]

    def margin(value: float) -> float:
        matrix = inertia / size
        matrix[i, j] = matrix[j, i] = value
        return float(np.linalg.eigvalsh(np.trace(matrix) / 2 * np.eye(3) - matrix)[0])

    low, high = -2.0, 2.0
    # Of a concave function, its largest value lies where it is larger.
    for _ in range(100):
        first, second = low + (high - low) / 3, high - (high - low) / 3
        low, high = (first, high) if margin(first) < margin(second) else (low, second)
    best = (low + high) / 2
    if margin(best) <= 1e-6:
        return None
    ends = []
    for end in (-2.0, 2.0):
        inside, outside = best, end
        for _ in range(60):
            middle = (inside + outside) / 2
            inside, outside = (middle, outside) if margin(middle) > 0 else (inside, middle)
        ends.append(inside * size if abs(inside) > 1e-12 else 0.0)
    return ends[0], ends[1]


class Told(NamedTuple):
    """Defects of inertias of links: by body, and those that were replaced, or are used although
    they are wrong."""

    of_bodies: Mapping[str, str]
    omissions: tuple[Omission, ...]


def told_of(links: Sequence[Link], bodies: Sequence[Link], body_of: Mapping[str, str]) -> Told:
    """The defects of the links of a file, by the bodies that were made of them."""
    whole = {body.name: is_physical(body.mass or 0.0, body.inertia) for body in bodies}
    found: dict[str, dict[str, list[str]]] = {}
    omissions = []
    for link in links:
        body = body_of[link.name]
        if link.slip is None or body not in whole:
            continue
        alone = sum(held == body for held in body_of.values()) == 1
        why = link.slip.said
        if not link.slip.repaired:
            values = np.linalg.eigvalsh(link.slip.inertia)
            values[np.abs(values) <= 1e-12 * np.max(np.abs(values))] = 0.0
            moments = ", ".join(f"{x:.6g}" for x in values)
            which = f"has principal moments {moments} kg m2, which no body has"
            why = "; ".join(x for x in ("" if alone else which, why) if x)
            if whole[body]:
                used = f"{why}; they count in {body!r} as they stand"
                omissions.append(Omission("inertia", link.name, used))
        else:
            omissions.append(Omission("inertia", link.name, why))
        found.setdefault(body, {}).setdefault(why, []).append("" if alone else repr(link.name))
    return Told({body: _texts(own) for body, own in found.items()}, tuple(omissions))


def _texts(own: Mapping[str, Sequence[str]]) -> str:
    """Reasons, each with the parts of a body for which it holds."""
    return "; ".join(
        f"{'part' if len(names) == 1 else 'each of the parts'} {', '.join(names)}: {why}"
        if names[0]
        else why
        for why, names in own.items()
    )


# --------------------------------------------------------------------------------------------------
# The mass of a model, compared with that stated in its file.
# --------------------------------------------------------------------------------------------------


class DerivedMass(NamedTuple):
    """A mass (kg) that the file does not give in numbers: its link, and its origin."""

    link: str
    mass: float
    why: str


class Masses(NamedTuple):
    """Masses in kg: of all that moves, of the links that are part of the ground, and those that the
    file gives in numbers (`stated`); and each derived mass."""

    moving: float
    ground: float
    stated: float
    derived: tuple[DerivedMass, ...]

    def lines(self) -> list[str]:
        """The sum compared with that of the file, and the origin of the difference."""
        ground = f", and {self.ground:.6g} kg are part of the ground" if self.ground else ""
        # The same digits for sums that differ by rounding.
        stated = self.moving if np.isclose(self.moving, self.stated, 1e-9, 0) else self.stated
        head = f"mass: {self.moving:.6g} kg move{ground}; the file gives {stated:.6g} kg in numbers"
        if not self.derived:
            return [head]
        grouped: dict[str, list[str]] = {}
        for own in self.derived:
            grouped.setdefault(own.why, []).append(f"{own.link} {own.mass:.6g} kg")
        total = sum(own.mass for own in self.derived)
        return [
            f"{head}, and {total:.6g} kg follow otherwise:",
            *(f"  {why}: {', '.join(each)}" for why, each in grouped.items()),
        ]


def masses_of(links: Sequence[Link], bodies: Iterable[Link], body_of: Mapping[str, str]) -> Masses:
    """The masses of the links of a file, and of the bodies that were made of them."""
    return Masses(
        moving=sum((body.mass or 0.0 for body in bodies), 0.0),
        ground=sum((link.mass or 0.0 for link in links if body_of[link.name] == GROUND), 0.0),
        stated=sum((link.stated or 0.0 for link in links), 0.0),
        derived=tuple(
            DerivedMass(link.name, link.mass, link.derived)
            for link in links
            if link.derived and link.mass is not None
        ),
    )
