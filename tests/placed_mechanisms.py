"""Mechanisms as points, axes and pairs of bodies: as models, in any unit and at any place, and as
constraints in NumPy whose closed configurations nearby are sampled.

The samples are the oracle of `mobility`: displacements by chance along the first-order motions are
led back onto the constraints, and what the ends that are near each other span is their dimension.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from jaxmbs import Model, planar, spatial


class Joint(NamedTuple):
    """`kind`: a key of `KINDS`; points, and an axis or a ratio where it has one."""

    kind: str
    pair: tuple[str, str]
    point: Any
    more: Any = None


class Mechanism(NamedTuple):
    """Bodies by their centres of mass, and joints."""

    bodies: Mapping[str, np.ndarray]
    joints: Sequence[Joint]

    @property
    def dimension(self) -> int:
        return len(next(iter(self.bodies.values())))


class Place(NamedTuple):
    """Lengths times `size`, then turned and shifted (m)."""

    size: float
    turn: np.ndarray
    shift: np.ndarray

    def point(self, x: Any) -> np.ndarray:
        return self.shift + self.turn @ (self.size * np.asarray(x, float))

    def axis(self, x: Any) -> np.ndarray:
        return self.turn @ np.asarray(x, float)


def here(dimension: int) -> Place:
    return Place(1.0, np.eye(dimension), np.zeros(dimension))


def elsewhere(dimension: int, size: float, seed: int = 3) -> Place:
    """A thousand metres away, turned by chance."""
    rng = np.random.default_rng(seed)
    turn, _ = np.linalg.qr(rng.standard_normal((dimension, dimension)))
    turn[:, 0] *= np.linalg.det(turn)
    away = rng.standard_normal(dimension)
    return Place(size, turn, 1e3 * away / np.linalg.norm(away))


def of(bodies: Mapping[str, Any], *joints: Joint) -> Mechanism:
    """Bodies between points, their centre of mass in the mean."""
    means = {name: np.mean(np.array(points, float), axis=0) for name, points in bodies.items()}
    return Mechanism(means, joints)


class Kind(NamedTuple):
    """`part`: of jaxmbs, from name, joint and place; `rows`: in NumPy, (n, rows), from what becomes
    of points and directions of either body."""

    part: Callable[[str, Joint, Place], Any]
    rows: Callable[[Joint, "Pose", "Pose"], np.ndarray]


class Pose(NamedTuple):
    """Of a body from where it was drawn: centre (d,), shift (n, d), turn (n, d, d), planar angle
    (n, 1)."""

    centre: np.ndarray
    shift: np.ndarray
    turn: np.ndarray
    angle: np.ndarray

    def point(self, x: Any) -> np.ndarray:
        return self.centre + self.shift + self.turn @ (np.asarray(x, float) - self.centre)

    def axis(self, x: Any) -> np.ndarray:
        return self.turn @ np.asarray(x, float)


def _met(joint: Joint, a: Pose, b: Pose) -> np.ndarray:
    return a.point(joint.point) - b.point(joint.point)


def _hinged(joint: Joint, a: Pose, b: Pose) -> np.ndarray:
    return np.concatenate([_met(joint, a, b), a.axis(joint.more) - b.axis(joint.more)], axis=1)


def _across(x: np.ndarray) -> np.ndarray:
    """Orthonormal directions across a direction, in rows."""
    return np.linalg.svd(np.asarray(x, float)[None])[2][1:]


def _guided(joint: Joint, a: Pose, b: Pose) -> np.ndarray:
    gap, sides = _met(joint, a, b), _across(joint.more)
    along = [np.sum(gap * a.axis(side), axis=1, keepdims=True) for side in sides]
    turned = (a.turn - b.turn).reshape(len(gap), -1)
    return np.concatenate([*along, turned], axis=1)


def _spaced(joint: Joint, a: Pose, b: Pose) -> np.ndarray:
    first, second = joint.point
    between = a.point(first) - b.point(second)
    length = np.sum(np.subtract(first, second, dtype=float) ** 2)
    return np.sum(between**2, axis=1, keepdims=True) - length


def _meshed(joint: Joint, a: Pose, b: Pose) -> np.ndarray:
    return a.angle - joint.more * b.angle


KINDS: Mapping[str, Kind] = {
    "pin": Kind(lambda name, j, at: planar.Revolute(name, j.pair, at.point(j.point)), _met),
    "guide": Kind(
        lambda name, j, at: planar.Translational(name, j.pair, at.point(j.point), at.axis(j.more)),
        _guided,
    ),
    "gear": Kind(lambda name, j, at: planar.Gear(name, j.pair, ratio=j.more), _meshed),
    "ball": Kind(lambda name, j, at: spatial.Spherical(name, j.pair, at.point(j.point)), _met),
    "hinge": Kind(
        lambda name, j, at: spatial.Revolute(name, j.pair, at.point(j.point), at.axis(j.more)),
        _hinged,
    ),
    "slide": Kind(
        lambda name, j, at: spatial.Translational(name, j.pair, at.point(j.point), at.axis(j.more)),
        _guided,
    ),
    "leg": Kind(
        lambda name, j, at: spatial.Distance(
            name, j.pair, points=np.stack([at.point(x) for x in j.point])
        ),
        _spaced,
    ),
}


def model(made: Mechanism, place: Place) -> Model:
    inertia = 0.1 * place.size**2
    if made.dimension == 2:
        bodies: list[Any] = [
            planar.Body(name, mass=1.0, inertia=inertia, position=place.point(x))
            for name, x in made.bodies.items()
        ]
    else:
        bodies = [
            spatial.Body(name, mass=1.0, inertia=3 * (inertia,), position=place.point(x))
            for name, x in made.bodies.items()
        ]
    joints = [KINDS[j.kind].part(f"J{k}", j, place) for k, j in enumerate(made.joints)]
    return Model("placed", made.dimension, bodies=bodies, joints=joints)


def _exponential(w: np.ndarray) -> np.ndarray:
    """Of rotation vectors (n, 3), by its series (also at complex numbers)."""
    zero = np.zeros_like(w[:, 0])
    x, y, z = w.T
    skew = np.stack([zero, -z, y, z, zero, -x, -y, x, zero], axis=1).reshape(-1, 3, 3)
    term = np.broadcast_to(np.eye(3), skew.shape).astype(w.dtype)
    found = term.copy()
    for n in range(1, 19):
        term = term @ skew / n
        found += term
    return found


def residual(made: Mechanism, x: np.ndarray) -> np.ndarray:
    """(n, rows) at displacements (n, coordinates)."""
    d, n = made.dimension, len(x)
    width = 3 if d == 2 else 6
    still = np.broadcast_to(np.eye(d), (n, d, d))
    poses = {"ground": Pose(np.zeros(d), np.zeros((n, d)), still, np.zeros((n, 1)))}
    for k, (name, centre) in enumerate(made.bodies.items()):
        own = x[:, width * k : width * (k + 1)]
        if d == 2:
            c, s = np.cos(own[:, 2]), np.sin(own[:, 2])
            turn = np.stack([c, -s, s, c], axis=1).reshape(-1, 2, 2)
        else:
            turn = _exponential(own[:, 3:])
        poses[name] = Pose(centre, own[:, :d], turn, own[:, 2:3])
    rows = [KINDS[j.kind].rows(j, poses[j.pair[0]], poses[j.pair[1]]) for j in made.joints]
    return np.concatenate(rows, axis=1)


def jacobian(made: Mechanism, x: np.ndarray) -> np.ndarray:
    """(n, rows, coordinates), by complex steps."""
    n, count = x.shape
    moved = x[:, None, :] + 1e-30j * np.eye(count)
    slopes = np.imag(residual(made, moved.reshape(n * count, count))) / 1e-30
    return slopes.reshape(n, count, -1).swapaxes(1, 2)


def led_back(made: Mechanism, x: np.ndarray, steps: int = 60) -> tuple[np.ndarray, np.ndarray]:
    """Closed configurations next to x (n, coordinates), and which of them are closed: steps of
    minimum norm, damped by the square of what is open, so that they converge onto whatever is
    there, to multiple zeros by a constant factor."""
    x = x.copy()
    for _ in range(steps):
        gap, slope = residual(made, x), jacobian(made, x)
        size = np.sum(gap**2, axis=1)
        normal = slope @ slope.swapaxes(1, 2)
        normal += (size + 1e-13)[:, None, None] * np.eye(gap.shape[1])
        x -= np.einsum("nrc,nr->nc", slope, np.linalg.solve(normal, gap[..., None])[..., 0])
        if np.max(size) < 1e-30:
            break
    return x, np.linalg.norm(residual(made, x), axis=1) < 1e-12


class Sampled(NamedTuple):
    """To first order; the largest dimension of closed configurations nearby; of curves, how many
    directions they have (None: not curves)."""

    first_order: int
    mobility: int
    directions: int | None


def _spread(offsets: np.ndarray) -> int:
    sizes = np.linalg.svd(offsets, compute_uv=False)
    return int(np.sum(sizes > 0.15 * sizes[0])) if len(sizes) else 0


def sampled(made: Mechanism, radius: float, seed: int = 0) -> Sampled:
    """By closed configurations at about that distance."""
    rng = np.random.default_rng(seed)
    count = (3 if made.dimension == 2 else 6) * len(made.bodies)
    _, sizes, right = np.linalg.svd(jacobian(made, np.zeros((1, count)))[0])
    free = right[np.sum(sizes > 1e-9 * sizes[0]) :]
    k = len(free)
    if k == 0:
        return Sampled(0, 0, None)

    def about(x: np.ndarray, distance: float, number: int) -> np.ndarray:
        u = rng.standard_normal((number, k))
        u /= np.linalg.norm(u, axis=1, keepdims=True)
        ends, closed = led_back(made, x + distance * u @ free)
        return ends[closed]

    points = about(np.zeros(count), radius, 40 * k)
    away = np.linalg.norm(points, axis=1)
    points, away = points[away > radius / 3], away[away > radius / 3]
    if not len(points):
        return Sampled(k, 0, None)
    # Where curves and surfaces meet the samples of either are looked at.
    chosen = points[np.linspace(0, len(points) - 1, min(6, len(points))).astype(int)]
    dimension = 0
    for p in chosen:
        offsets = about(p, 0.02 * radius, 4 + 4 * k) - p
        dimension = max(dimension, _spread(offsets))
    if dimension != 1:
        return Sampled(k, dimension, None)
    lines, along = [], points / away[:, None]
    for u in along:
        if all(abs(u @ v) < 0.95 for v in lines):
            lines.append(u)
    return Sampled(k, 1, len(lines))
