"""The drawing of a moving mechanism, independent of any library: bodies as lines from the centre of
mass to the points of their joints.

Models contain no shapes. So each body is a hub, at the origin of its frame (the centre of mass of a
rigid body), and a spoke to every point at which a joint or driver acts on it. A body whose
coordinates do not define a frame has its hub in the middle of these points.
"""

from typing import Any, NamedTuple

import jax
import numpy as np
from jaxtyping import Array, Float

from .._programs import Compiling, program
from .._reactions import Reactions
from .._system import AbstractSystem, MultibodySystem


# Points that stay as near to each other as this, against the size of the mechanism, are drawn as
# one.
_SAME = 1e-9


class Spoke(NamedTuple):
    """The line from a body's hub to a point of a constraint: indices of `Skeleton`'s arrays, and
    of the constraint."""

    hub: int
    point: int
    constraint: int


class Skeleton(NamedTuple):
    """A mechanism at n states; points of planar ones have z = 0.

    - `hubs` (n, hubs, 3), called `hub_names`. `points` (n, places, 3): where constraints act.
    - `spokes` between them; `ground`: those of the points that lie on the fixed frame.
    - `ropes` (n, points, 3): lines of ropes, belts and tendons; `pulleys` (n, points, 3): circles.
    - `joints`: constraints that are drawn at one point, together: the point, and who they are.
    - `low`, `high` (3,): the box that holds everything at all times. `planar`: all in one plane?
    """

    hubs: Float[np.ndarray, "n hubs 3"]
    hub_names: tuple[str, ...]
    points: Float[np.ndarray, "n places 3"]
    spokes: tuple[Spoke, ...]
    ground: tuple[int, ...]
    joints: tuple[tuple[int, tuple[int, ...]], ...]
    low: Float[np.ndarray, "3"]
    high: Float[np.ndarray, "3"]
    planar: bool
    ropes: tuple[Float[np.ndarray, "n _ 3"], ...] = ()
    pulleys: tuple[Float[np.ndarray, "n _ 3"], ...] = ()

    @property
    def size(self) -> float:
        """The diagonal of the box (m), or one where it is a point."""
        diagonal = float(np.linalg.norm(self.high - self.low))
        return diagonal if diagonal > 0 else 1.0

    @property
    def drawable(self) -> bool:
        """Is there anything to draw?"""
        return bool(self.hubs.shape[1] or self.points.shape[1])


def skeleton(
    system: AbstractSystem, reactions: Reactions, q: Float[np.ndarray, "n nq"]
) -> Skeleton:
    """The drawing of n states.

    **Arguments:** `reactions` of these states, which contain the points of joints; `q` (n, nq).
    """
    ropes, pulleys = rope_lines(system, q)
    structure, layout = reactions.structure, reactions.layout
    points = _in_space(np.asarray(reactions.point))
    owners = layout.owners
    tracks: dict[str, np.ndarray] = {}
    for body in structure.bodies:
        if body.posed:
            place = list(body.coordinates[: len(body.force)])
            tracks[body.name] = _in_space(q[:, place])
    for owner, body in zip(owners, layout.bodies, strict=True):
        if body != layout.ground and owner not in tracks:
            own = [k for k, other in enumerate(owners) if other == owner]
            tracks[owner] = points[:, own].mean(axis=1)
    names = tuple(tracks)
    hubs = np.stack([tracks[name] for name in names], axis=1) if names else points[:, :0]
    spokes = tuple(
        Spoke(names.index(owners[k]), k, constraint)
        for k, constraint in enumerate(layout.constraints)
        if layout.bodies[k] != layout.ground
    )
    everything = np.concatenate([hubs, points, *ropes, *pulleys], axis=1).reshape(-1, 3)
    finite = everything[np.all(np.isfinite(everything), axis=1)]
    box = finite if len(finite) else np.zeros((1, 3))
    low, high = box.min(axis=0), box.max(axis=0)
    ground = tuple(k for k, body in enumerate(layout.bodies) if body == layout.ground)
    joints = _together(points, layout.seconds, float(np.linalg.norm(high - low)))
    planar = 2 in (reactions.point.shape[-1], *(len(body.force) for body in structure.bodies))
    drawn = (hubs, names, points, spokes, ground, joints, low, high, planar)
    return Skeleton(*drawn, ropes, pulleys)


# Each of as many points as its way needs.
Lines = tuple[Float[np.ndarray, "n _ 3"], ...]


def rope_lines(system: AbstractSystem, q: Float[np.ndarray, "n nq"]) -> tuple[Lines, Lines]:
    """Lines of ropes, belts and tendons in n states, and the circles around which they run."""
    if not isinstance(system, MultibodySystem) or not system.has_ways:
        return (), ()
    ropes: list[np.ndarray] = []
    pulleys: list[np.ndarray] = []
    for line, circles in jax.tree.map(np.asarray, _drawn_ways(system, q)):
        ropes += [_in_space(line[:, k]) for k in range(line.shape[1])]
        for k, place in np.ndindex(circles.shape[1:3]):
            circle = _in_space(circles[:, k, place])
            if np.any(circle != circle[:, :1]):
                pulleys.append(circle)
    return tuple(ropes), tuple(pulleys)


@program(compiling=Compiling.ONCE)
def _drawn_ways(system: MultibodySystem, q: Any) -> list[tuple[Array, Array]]:
    return jax.lax.map(system.drawn_ways, q)


def _in_space(points: Float[np.ndarray, "..."]) -> Float[np.ndarray, "..."]:
    """The points in space, with z = 0 in the plane."""
    missing = 3 - points.shape[-1]
    return np.pad(points, [(0, 0)] * (points.ndim - 1) + [(0, missing)])


def _together(
    points: Float[np.ndarray, "n places 3"], seconds: tuple[int, ...], size: float
) -> tuple[tuple[int, tuple[int, ...]], ...]:
    """Constraints by the points on their second bodies, those that never part as one."""
    found: dict[int, list[int]] = {}
    for constraint, place in enumerate(seconds):
        if place < 0:
            continue
        for other in found:
            if np.max(np.abs(points[:, other] - points[:, place]), initial=0.0) <= _SAME * size:
                found[other].append(constraint)
                break
        else:
            found[place] = [constraint]
    return tuple((place, tuple(own)) for place, own in found.items())
