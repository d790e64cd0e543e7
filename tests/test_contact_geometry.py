"""Distances of shapes in contact, against bounded least squares of SciPy on their axes and faces,
which share no code with them: at random poses, and where formulas divide by zero.
"""

import functools
import itertools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import lsq_linear, nnls
from scipy.spatial import ConvexHull
from scipy.spatial.transform import Rotation

from jaxmbs import shapes
from jaxmbs._forces._contact_geometry import Ball, Block, Hull, Rod, Touch, touch, Wall
from jaxmbs._geometry import PlanarFrame, SpatialFrame


# The kinds of the pairs by name, first and second.
PAIRS = ("ball ball", "ball rod", "rod rod", "ball wall", "rod wall", "block wall", "ball block")
PAIRS = (*PAIRS, "rod block", "ball hull", "hull wall")


def random_shape(kind: str, dimension: int, rng: np.random.Generator, scale: float) -> Any:
    radius = scale * rng.uniform(0.05, 0.4)
    vector = rng.normal(size=dimension)
    if kind == "ball":
        return Ball(jnp.asarray(radius))
    if kind == "rod":
        return Rod(jnp.asarray(radius), jnp.asarray(0.5 * scale * vector))
    if kind == "block":
        return Block(jnp.asarray(scale * rng.uniform(0.2, 0.7, size=dimension)))
    if kind == "hull":
        # Linear maps of one polytope, whose faces are the same, so that there is one program.
        base = a_hull(dimension)
        stretch = np.eye(dimension) + 0.5 * rng.uniform(-0.5, 0.5, size=(dimension, dimension))
        return Hull(jnp.asarray(scale * np.asarray(base.corners) @ stretch.T), base.faces)
    return Wall(jnp.asarray(vector / np.linalg.norm(vector)))


@functools.cache
def a_hull(dimension: int) -> Hull:
    return hull(np.random.default_rng(dimension).normal(size=(dimension + 4, dimension)))


def hull(points: np.ndarray) -> Hull:
    return shapes.ContactPolytope(points + 1.0).solid()


def random_frame(dimension: int, rng: np.random.Generator, scale: float) -> Any:
    origin = jnp.asarray(scale * rng.normal(size=dimension))
    if dimension == 2:
        return PlanarFrame(origin, jnp.asarray(rng.uniform(-4, 4)))
    return SpatialFrame(origin, jnp.asarray(Rotation.from_quat(rng.normal(size=4)).as_matrix()))


@functools.cache
def evaluator() -> Any:
    return jax.jit(touch)


def found(first: Any, second: Any, frames: Any) -> Touch:
    return Touch(*jax.tree.map(np.asarray, evaluator()(first, second, frames)))


# --------------------------------------------------------------------------------------------------
# The oracle
# --------------------------------------------------------------------------------------------------


def least(columns: list[np.ndarray], target: np.ndarray, bound: float = 1.0) -> float:
    """The least |target + sum x_k columns_k| over -bound <= x_k <= bound."""
    if not columns:
        return float(np.linalg.norm(target))
    scale = max(np.linalg.norm(x) for x in [*columns, target]) or 1.0
    made = lsq_linear(
        np.stack(columns, axis=1) / scale,
        -target / scale,
        (-bound, bound),
        tol=1e-15,
        method="bvls",
    )
    return float(np.linalg.norm(target + np.stack(columns, axis=1) @ made.x))


def surface_distance(point: np.ndarray, half: np.ndarray) -> float:
    """The signed distance of a point from the surface of a box, the least of those of its faces."""
    distances = []
    for axis, side in itertools.product(range(len(half)), (-1.0, 1.0)):
        centre = np.zeros(len(half))
        centre[axis] = side * half[axis]
        edges = [half[k] * np.eye(len(half))[k] for k in range(len(half)) if k != axis]
        distances.append(least(edges, centre - point))
    return min(distances) * (-1 if np.all(np.abs(point) < half) else 1)


def segment_distance(centre: np.ndarray, along: np.ndarray, half: np.ndarray) -> float:
    """The signed distance of the points centre + s along, -1 <= s <= 1, from a box: the least one,
    a convex function of s, and where it vanishes that of the centre from the box swept along."""

    def signed(s: float) -> float:
        beyond = np.abs(centre + s * along) - half
        return float(np.linalg.norm(np.maximum(beyond, 0.0)))

    low, high = -1.0, 1.0
    golden = (np.sqrt(5) - 1) / 2
    for _ in range(70):
        a, b = high - golden * (high - low), low + golden * (high - low)
        low, high = (low, b) if signed(a) < signed(b) else (a, high)
    least = min(signed(s) for s in (-1.0, low, 1.0))
    corners = np.array(list(itertools.product((-1, 1), repeat=len(half)))) * half
    hull = ConvexHull(np.concatenate([corners - along, corners + along]))
    depth = float(np.max(hull.equations[:, :-1] @ centre + hull.equations[:, -1]))
    return least if depth > 0 else depth


def hull_distance(point: np.ndarray, corners: np.ndarray) -> float:
    """Of a point from the convex hull of corners. min |sum x (v - p)|^2 + (sum x - 1)^2 over x >= 0
    has the weights x / sum x of the nearest point."""
    equations = ConvexHull(corners).equations
    height = float(np.max(equations[:, :-1] @ point + equations[:, -1]))
    if height <= 0:
        return height
    size = np.max(np.abs(corners - point))
    matrix = np.vstack([(corners - point).T / size, np.ones(len(corners))])
    weights, _ = nnls(matrix, np.append(np.zeros(len(point)), 1.0))
    return float(np.linalg.norm((weights / weights.sum()) @ (corners - point)))


def oracle(first: Any, second: Any, frames: Any) -> float:
    """The gap of a pair."""
    one, two = (np.asarray(f.rotation) for f in frames)
    apart = np.asarray(frames[0].origin) - np.asarray(frames[1].origin)
    radius = sum(float(s.radius) for s in (first, second) if isinstance(s, Ball | Rod))
    if isinstance(second, Wall):
        normal = two @ np.asarray(second.normal)
        half = np.asarray(first.half) if isinstance(first, Rod | Block) else np.zeros((0,))
        points = [np.zeros(len(apart))]
        if isinstance(first, Rod):
            points = [one @ half * x for x in np.linspace(-1, 1, 11)]
        if isinstance(first, Hull):
            points = list(np.asarray(first.corners) @ one.T)
        if isinstance(first, Block):
            points = [one @ (half * x) for x in itertools.product((-1, -0.3, 1), repeat=len(half))]
        return min(float(normal @ (apart + point)) for point in points) - radius
    if isinstance(second, Hull):
        return hull_distance(two.T @ apart, np.asarray(second.corners)) - radius
    if isinstance(first, Rod) and isinstance(second, Block):
        turned = two.T @ apart, two.T @ one @ np.asarray(first.half)
        return segment_distance(*turned, np.asarray(second.half)) - radius
    if isinstance(second, Block):
        return surface_distance(two.T @ apart, np.asarray(second.half)) - radius
    shapes = zip((1, -1), (one, two), (first, second), strict=True)
    axes = [s * r @ np.asarray(own.half) for s, r, own in shapes if isinstance(own, Rod)]
    return least(axes, apart) - radius


# --------------------------------------------------------------------------------------------------
# Random poses
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dimension", [2, 3])
@pytest.mark.parametrize("pair", PAIRS)
def test_gaps_of_random_poses(pair: str, dimension: int):
    rng = np.random.default_rng(sum(map(ord, pair)) + dimension)
    worst = 0.0
    for k in range(40):
        scale = 1e-3 if k % 2 else 1.0
        first, second = (random_shape(kind, dimension, rng, scale) for kind in pair.split())
        frames = tuple(random_frame(dimension, rng, scale) for _ in range(2))
        at = found(first, second, frames)
        worst = max(worst, abs(float(np.min(at.gap)) - oracle(first, second, frames)) / scale)
        # Both levers lead to one point.
        ends = [np.asarray(f.origin) + x for f, x in zip(frames, at.levers, strict=True)]
        assert np.allclose(ends[0], ends[1], atol=1e-14)
        assert np.allclose(np.linalg.norm(at.normal, axis=1), 1.0, atol=1e-14)
        # The order of a pair is that of its bodies.
        other = found(second, first, frames[::-1])
        assert np.allclose(other.gap, at.gap, rtol=0, atol=1e-14)
        # (The small weight on the middle of parallel capsules moves points by 1e-10 or so.)
        assert np.allclose(other.normal, -at.normal, rtol=0, atol=1e-7)
    # (The oracle's bounded least squares end at 1e-10 or so.)
    assert worst < 1e-9


@pytest.mark.parametrize("pair", PAIRS)
def test_the_contact_point_is_halfway_between_the_surfaces(pair: str):
    """A small sphere there has the distance gap / 2 from both."""
    rng = np.random.default_rng(7)
    for _ in range(10):
        first, second = (random_shape(kind, 3, rng, 1.0) for kind in pair.split())
        frames = tuple(random_frame(3, rng, 2.0) for _ in range(2))
        at = found(first, second, frames)
        nearest = int(np.argmin(at.gap))
        if at.gap[nearest] < 0:
            continue
        place = np.asarray(frames[0].origin) + at.levers[0][nearest]
        point, there = Ball(jnp.asarray(0.0)), SpatialFrame(jnp.asarray(place), jnp.eye(3))
        distances = [oracle(point, second, (there, frames[1]))]
        if not isinstance(first, Block | Hull):
            distances.append(oracle(point, first, (there, frames[0])))
        assert np.allclose(distances, at.gap[nearest] / 2, atol=1e-8)


@pytest.mark.parametrize("pair", PAIRS)
def test_the_normal_is_the_gradient_of_the_gap(pair: str):
    rng = np.random.default_rng(11)
    for _ in range(5):
        first, second = (random_shape(kind, 3, rng, 1.0) for kind in pair.split())
        frames = tuple(random_frame(3, rng, 1.5) for _ in range(2))
        at, step = found(first, second, frames), 1e-6
        nearest = int(np.argmin(at.gap))
        slopes = []
        for axis in np.eye(3):
            ends = [
                float(
                    oracle(
                        first,
                        second,
                        (
                            SpatialFrame(frames[0].origin + s * step * axis, frames[0].rotation),
                            frames[1],
                        ),
                    )
                )
                for s in (1, -1)
            ]
            slopes.append((ends[0] - ends[1]) / (2 * step))
        assert np.allclose(slopes, at.normal[nearest], atol=1e-5)


# --------------------------------------------------------------------------------------------------
# Where formulas divide by zero
# --------------------------------------------------------------------------------------------------


def still(x: float, y: float = 0.0, z: float = 0.0) -> SpatialFrame:
    return SpatialFrame(jnp.array([x, y, z], float), jnp.eye(3))


BALL, BLOCK = Ball(jnp.asarray(0.1)), Block(jnp.array([0.3, 0.2, 0.1]))
WALL = Wall(jnp.array([0.0, 0.0, 1.0]))


# A tetrahedron whose centroid is the origin.
WEDGE = hull(np.array([[1.0, 1, 0], [-1.0, 1, 0], [0.0, -1, 0], [0.0, 0, 1]]))
CORNERS = WEDGE.corners


def rod(x: float, y: float, z: float) -> Rod:
    return Rod(jnp.asarray(0.1), jnp.array([x, y, z], float))


# Shapes, frames, and the gap where it is known in closed form.
NASTY: dict[str, tuple[Any, Any, Any, float]] = {
    "coinciding spheres": (BALL, BALL, (still(0.5), still(0.5)), -0.2),
    "touching spheres": (BALL, BALL, (still(0.25), still(0.05)), 0.0),
    "sphere on a capsule's axis": (BALL, rod(1, 0, 0), (still(0.2), still(0)), -0.2),
    "sphere at a capsule's end": (BALL, rod(1, 0, 0), (still(1.0, 0.3), still(0)), 0.1),
    "parallel capsules": (rod(1, 0, 0), rod(1, 0, 0), (still(0, 0.5), still(0.5)), 0.3),
    "antiparallel capsules": (rod(1, 0, 0), rod(-2, 0, 0), (still(0, 0.5), still(0.5)), 0.3),
    "one axis": (rod(1, 0, 0), rod(0.5, 0, 0), (still(0), still(3)), 1.3),
    "overlapping on one axis": (rod(1, 0, 0), rod(1, 0, 0), (still(0), still(0.5)), -0.2),
    "same capsule": (rod(1, 0, 0), rod(1, 0, 0), (still(0), still(0)), -0.2),
    "crossing axes": (rod(1, 0, 0), rod(0, 1, 0), (still(0), still(0)), -0.2),
    "nearly parallel": (rod(1, 0, 0), rod(1, 1e-9, 0), (still(0, 0, 0.5), still(0)), 0.3),
    "sphere at a box's centre": (BALL, BLOCK, (still(0.5), still(0.5)), -0.2),
    "sphere on a face": (BALL, BLOCK, (still(0, 0, 0.1), still(0)), -0.1),
    "sphere on an edge": (BALL, BLOCK, (still(0.3, 0.2, 0), still(0)), -0.1),
    "sphere on a corner": (BALL, BLOCK, (still(0.3, 0.2, 0.1), still(0)), -0.1),
    "sphere within": (BALL, BLOCK, (still(0.25, 0, 0), still(0)), -0.15),
    "capsule flat on a box": (rod(1, 0, 0), BLOCK, (still(0.1, 0, 0.2), still(0)), 0.0),
    "capsule along an edge": (rod(1, 0, 0), BLOCK, (still(0, 0.3, 0.1), still(0)), 0.0),
    "capsule through a box": (rod(1, 0, 0), BLOCK, (still(0, 0, 0), still(0)), -0.2),
    "capsule across a box": (rod(1, 0.3, 0), BLOCK, (still(0, 0, 0.05), still(0)), -0.15),
    "capsule above a corner": (rod(0, 0, 1), BLOCK, (still(0.3, 0.2, 1.1), still(0)), -0.1),
    "capsule in a face": (rod(0.1, 0.1, 0), BLOCK, (still(0, 0, 0.1), still(0)), -0.1),
    "sphere at a wedge's middle": (BALL, WEDGE, (still(0, 0, 0), still(0)), -0.1 - 0.25),
    "sphere on a wedge's face": (BALL, WEDGE, (still(0.1, 0.1, -0.25), still(0)), -0.1),
    "sphere on a wedge's edge": (BALL, WEDGE, (still(1.0 / 3, 0.05, -0.25), still(0)), -0.1),
    "point on a wedge's corner": (
        Ball(jnp.asarray(0.0)),
        WEDGE,
        (SpatialFrame(CORNERS[0], jnp.eye(3)), still(0)),
        0.0,
    ),
    "wedge on a wall": (WEDGE, WALL, (still(0, 0, 0.25), still(0)), 0.0),
    "point on a wall": (Ball(jnp.asarray(0.0)), WALL, (still(3, 2, 0), still(0)), 0.0),
    "capsule flat on a wall": (rod(1, 0, 0), WALL, (still(0, 0, 0.1), still(0)), 0.0),
    "box flat on a wall": (BLOCK, WALL, (still(0, 0, 0.05), still(5, 5, 0)), -0.05),
}


@pytest.mark.parametrize("case", NASTY)
def test_nasty_poses(case: str):
    first, second, frames, gap = NASTY[case]
    at = found(first, second, frames)
    # (The square root of a difference of 1e-16 is below 1e-8 where axes cross.)
    assert np.allclose(np.min(at.gap), gap, atol=1e-12)
    assert np.allclose(np.linalg.norm(at.normal, axis=1), 1.0)
    assert abs(gap - oracle(first, second, frames)) < 1e-9


@functools.cache
def slopes() -> Any:
    def numbers(given: Any) -> Any:
        return jnp.concatenate([x.ravel() for x in jax.tree.leaves(touch(*given))])

    return jax.jit(lambda given: (jax.jacfwd(numbers)(given), jax.jacrev(numbers)(given)))


@pytest.mark.parametrize("case", NASTY)
def test_derivatives_there_are_finite_and_agree(case: str):
    forward, reverse = slopes()(NASTY[case][:3])
    for a, b in zip(jax.tree.leaves(forward), jax.tree.leaves(reverse), strict=True):
        assert np.all(np.isfinite(a))
        assert np.all(np.isfinite(b))
        assert np.allclose(a, b, rtol=1e-9, atol=1e-9)


def test_parallel_capsules_touch_in_the_middle_of_their_overlap():
    """On the axes from -1 to 1 and from -0.5 to 1.5 that is 0.25."""
    for tilt in (0.0, 1e-12, -1e-12):
        frames = (still(0, 0, 0.5), still(0.5))
        at = found(rod(1, 0, 0), rod(1, tilt, 0), frames)
        assert np.allclose(at.levers[0], [[0.25, 0.0, -0.25]], atol=1e-9)


@pytest.mark.parametrize("case", NASTY)
def test_far_from_the_origin(case: str):
    """At 1e6 m a position has the rounding 1e-10 m, and a gap no other."""
    first, second, frames, gap = NASTY[case]
    far = tuple(SpatialFrame(f.origin + jnp.array([1e6, -2e6, 5e5]), f.rotation) for f in frames)
    at = found(first, second, far)
    assert abs(float(np.min(at.gap)) - gap) < 1e-9
    assert np.all(np.isfinite(at.levers[0]))


@pytest.mark.thorough
def test_gaps_are_those_of_mujoco():
    """`mj_geomDistance` of spheres, capsules and boxes."""
    mujoco = pytest.importorskip("mujoco")
    rng = np.random.default_rng(5)
    for pair in ("ball ball", "ball rod", "rod rod", "ball block", "rod block"):
        for _ in range(20):
            first, second = (random_shape(kind, 3, rng, 1.0) for kind in pair.split())
            frames = tuple(random_frame(3, rng, 1.5) for _ in range(2))
            geoms = [_geom(own, f) for own, f in zip((first, second), frames, strict=True)]
            text = f"<mujoco><worldbody>{''.join(geoms)}</worldbody></mujoco>"
            model = mujoco.MjModel.from_xml_string(text)
            data = mujoco.MjData(model)
            mujoco.mj_forward(model, data)
            gap = float(np.min(found(first, second, frames).gap))
            if gap > 0:
                theirs = mujoco.mj_geomDistance(model, data, 0, 1, 100.0, None)
                assert abs(theirs - gap) < 1e-6, pair


def _geom(shape: Any, frame: Any) -> str:
    def words(x: Any) -> str:
        return " ".join(f"{y:.17g}" for y in np.asarray(x).ravel())

    rotation = np.asarray(frame.rotation)
    x, y, z, w = Rotation.from_matrix(rotation).as_quat()
    place = f'pos="{words(frame.origin)}" quat="{words([w, x, y, z])}"'
    if isinstance(shape, Ball):
        return f'<geom type="sphere" size="{float(shape.radius):.17g}" {place}/>'
    if isinstance(shape, Block):
        return f'<geom type="box" size="{words(shape.half)}" {place}/>'
    half = rotation @ np.asarray(shape.half)
    ends = words([*(frame.origin - half), *(frame.origin + half)])
    return f'<geom type="capsule" size="{float(shape.radius):.17g}" fromto="{ends}"/>'
