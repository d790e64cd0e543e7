"""Links that are welded together are one body."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from ._description import GROUND, Joint, Link
from ._geometry import moved_inertia


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
