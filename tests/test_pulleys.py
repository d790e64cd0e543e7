"""Ropes around pulleys in space: those of the plane turned anywhere, a slow oracle, derivatives."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from helpers import dot_product_gap, forward_and_reverse
from scipy.optimize import root

import jaxmbs as jm
from jaxmbs import forces, planar, spatial
from jaxmbs._constraints._ropes import rope_length, way_axes
from jaxmbs._drawing import rope_lines
from jaxmbs._geometry import SpatialFrame
from jaxmbs.formulations import MinimumNorm


G = 9.81
# A way with outer and inner tangents, an eyelet, and more than half a turn.
POINTS = np.array([(-2.0, -1.0), (0.0, 0.0), (1.0, -1.5), (2.2, 0.3), (3.0, -0.4), (4.0, -2.0)])
RADII, SENSES = [0.0, 0.3, 0.25, 0.4, 0.0, 0.0], [0, -1, 1, -1, 0, 0]
NAMES = ("ground", "a", "b", "ground", "c", "ground")


def turn(seed: int) -> np.ndarray:
    found = np.linalg.qr(np.random.default_rng(seed).normal(size=(3, 3)))[0]
    return found * np.sign(np.linalg.det(found))


def lifted(points: np.ndarray, rotation: np.ndarray) -> np.ndarray:
    """Points of the plane in a plane of space."""
    flat = np.pad(np.asarray(points), [(0, 0), (0, 1)])
    return flat @ rotation.T + [0.3, -0.2, 0.5]


@pytest.mark.parametrize("seed", [1, 2])
def test_a_plane_in_space_has_the_ropes_of_the_plane(seed: int):
    """Lengths at other places of the pulleys, and forces: the derivative by the points."""
    rotation, rng = turn(seed), np.random.default_rng(seed)
    flat = planar.Rope("R", NAMES, points=POINTS, radii=RADII, senses=SENSES)
    axes = np.where(np.array(RADII)[:, None] > 0, rotation[:, 2], 0.0)
    # An axis turned over makes a clockwise rope of it.
    over = rng.choice([-1.0, 1.0], size=(6, 1))
    deep = spatial.Rope(
        "R",
        NAMES,
        points=lifted(POINTS, rotation),
        radii=RADII,
        senses=np.array(SENSES) * over[:, 0],
        axes=axes * over,
    )
    np.testing.assert_allclose(deep.reference_length(), flat.reference_length(), rtol=1e-13)
    own: Any = deep.primitives()[0]
    wanted: Any = flat.primitives()[0]
    turns = way_axes(jnp.asarray(axes * over))
    grad = jax.jit(jax.value_and_grad(lambda p: rope_length(p, own.radii, own.arcs, turns)))
    plane = jax.value_and_grad(lambda p: rope_length(p, wanted.radii, wanted.arcs))
    for _ in range(3):
        moved = POINTS + 0.15 * rng.normal(size=POINTS.shape)
        length, slope = grad(jnp.asarray(lifted(moved, rotation)))
        expected, flat_slope = plane(jnp.asarray(moved))
        np.testing.assert_allclose(length, expected, rtol=1e-13)
        np.testing.assert_allclose(slope @ rotation[:, :2], flat_slope, atol=1e-12)
        np.testing.assert_allclose(slope @ rotation[:, 2], 0.0, atol=1e-12)


def touching(
    centres: np.ndarray, turns: np.ndarray, signed: np.ndarray, start: np.ndarray
) -> tuple[float, np.ndarray]:
    """Length between two circles by SciPy's root finder, with the tangent's angles."""

    def ends(angles: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        radials = [
            turns[k] @ np.array([np.cos(angles[k]), np.sin(angles[k]), 0.0]) for k in range(2)
        ]
        return np.stack(radials), centres + signed[:, None] * np.stack(radials)

    def errors(angles: np.ndarray) -> np.ndarray:
        radials, points = ends(angles)
        return radials @ (points[1] - points[0])

    found = root(errors, start, tol=1e-15)
    points = ends(found.x)[1]
    return float(np.linalg.norm(points[1] - points[0])), found.x


@pytest.mark.parametrize("inner", [False, True])
def test_circles_in_two_planes(inner: bool):
    """Neighbours with tilted axes: two equations in two angles."""
    rng = np.random.default_rng(7)
    senses = np.array([-1.0, 1.0 if inner else -1.0])
    radii = np.array([0.3, 0.2])
    for _ in range(3):
        tilt = 0.03 * rng.normal(size=(2, 3))
        axes = np.array([0.0, 0.0, 1.0]) + tilt
        centres = np.array([(0.0, 0.0, 0.0), (2.0, 0.4, 0.05 * rng.normal())])
        points = np.stack([[-1.0, -1.0, 0.02], *centres, [3.0, -1.5, -0.03]])
        rope = spatial.Rope(
            "R",
            ("ground", "a", "b", "ground"),
            points=points,
            radii=[0, *radii, 0],
            senses=[0, *senses, 0],
            axes=[(0, 0, 0), *axes, (0, 0, 0)],
        )
        turns = np.asarray(way_axes(jnp.asarray(axes)))
        signed = radii * senses
        # From the tangent of the plane: the touch lies to the right of the heading.
        between = centres[1] - centres[0]
        offset = signed[1] - signed[0]
        flat = np.hypot(between[0], between[1])
        heading = np.arctan2(between[1], between[0]) - np.arcsin(offset / flat)
        lengths = 0.0
        side = np.array([np.sin(heading), -np.cos(heading), 0.0])
        start = np.array([np.arctan2(*(turns[k].T @ side)[1::-1]) for k in range(2)])
        length, angles = touching(centres, turns, signed, start)
        lengths += length
        arcs = []
        for k, (free, sign) in enumerate(((points[0], -1.0), (points[3], 1.0))):
            local = turns[k].T @ (free - centres[k])
            flat = np.hypot(local[0], local[1])
            # The right triangle of radius, tangent and centre.
            own = np.arctan2(local[1], local[0])
            own += sign * np.sign(signed[k]) * -np.arccos(radii[k] / flat)
            touch = centres[k] + turns[k] @ (radii[k] * np.array([np.cos(own), np.sin(own), 0.0]))
            lengths += np.linalg.norm(free - touch)
            # Those of the other span count along the outward normal, too.
            other = angles[k] + (np.pi if signed[k] < 0 else 0.0)
            swept = sign * np.sign(signed[k]) * (own - other)
            arcs.append(radii[k] * np.mod(swept, 2 * np.pi))
        found = rope.reference_length()
        np.testing.assert_allclose(found, lengths + sum(arcs), rtol=1e-12)


MASSES = {"beam": 5.0, "load": 4.0, "counter": 3.0}


def hoist(rotation: np.ndarray, elastic: bool = False) -> jm.MultibodySystem:
    """A beam that bears the rope's anchor and a fixed pulley, a load on a movable pulley, and a
    counterweight, in a plane of space; gravity along its second axis."""
    places = lifted(np.array([(0.0, 0.0), (0.0, -2.0), (1.2, -1.0)]), rotation)
    inertia = (0.1, 0.2, 0.3)
    bodies = [
        spatial.Body(name, mass=mass, inertia=inertia, position=place)
        for (name, mass), place in zip(MASSES.items(), places, strict=True)
    ]
    keys: dict[str, Any] = {
        "points": lifted(np.array([(-0.2, 0.0), (0.0, -2.0), (0.7, 0.0), (1.2, -1.0)]), rotation),
        "radii": [0.0, 0.2, 0.5, 0.0],
        "senses": [0, 1, -1, 0],
        "axes": [(0, 0, 0), rotation[:, 2], rotation[:, 2], (0, 0, 0)],
    }
    names = ("beam", "load", "beam", "counter")
    joints: list[Any] = [
        spatial.Fixed("wall", ("ground", "beam"), at=places[0]),
        spatial.Translational("A", ("ground", "load"), at=places[1], axis=rotation[:, 1]),
        spatial.Translational("B", ("ground", "counter"), at=places[2], axis=rotation[:, 1]),
    ]
    loads = []
    if elastic:
        loads = [forces.ElasticRope("rope", names, stiffness=1e3, length=4.0, **keys)]
    else:
        joints.append(spatial.Rope("rope", names, **keys))
    return jm.MultibodySystem(bodies, joints, forces=loads, gravity=-G * rotation[:, 1])


def test_the_beam_carries_three_times_the_tension():
    """m1 a = 2 T - m1 g and 2 m2 a = m2 g - T of a load on a movable pulley."""
    rotation = turn(5)
    system = hoist(rotation)
    q, v = system.reference_q, jnp.zeros(18)
    solved = jax.jit(lambda q, v: MinimumNorm().solve(system.equations(q, v, 0.0)))(q, v)
    multipliers = np.asarray(solved.multipliers)
    load, counter = 4.0, 3.0
    a = G * (2 * counter - load) / (load + 4 * counter)
    tension = load * (G + a) / 2
    np.testing.assert_allclose(multipliers[-1], tension, rtol=1e-11)
    rows = np.asarray(system.constraint_matrix(q, v, 0.0))[list(system.structure.rows_of("wall"))]
    # What the wall exerts on the beam, along the axes of the plane.
    wall = -(rows[:, :3].T @ multipliers[: len(rows)]) @ rotation
    np.testing.assert_allclose(wall, [0.0, 3 * tension + 5.0 * G, 0.0], atol=1e-9)


def test_an_elastic_rope_in_space_pulls_with_its_elongation():
    rotation = turn(5)
    system = hoist(rotation, elastic=True)
    flat = planar.Rope(
        "R",
        ("ground", "a", "ground", "b"),
        points=[(-0.2, 0.0), (0.0, -2.0), (0.7, 0.0), (1.2, -1.0)],
        radii=[0.0, 0.2, 0.5, 0.0],
        senses=[0, 1, -1, 0],
    )
    tension = 1e3 * (float(flat.reference_length()) - 4.0)
    assert tension > 0
    force = system.force(system.reference_q, jnp.zeros(18), 0.0).reshape(3, 6)[:, :3] @ rotation
    own = -G * np.array([*MASSES.values()])
    np.testing.assert_allclose(force[:, 1] - own, tension * np.array([-3, 2, 1]), rtol=1e-10)


def tilted() -> tuple[Any, Any, Any]:
    """A way between two tilted pulleys: lengths by points and orientations."""
    points = jnp.array([(-1.0, -1.0, 0.02), (0.0, 0.0, 0.0), (2.0, 0.4, 0.05), (3.0, -1.5, -0.03)])
    axes = way_axes(jnp.array([(0, 0, 0), (0.02, 0.05, 1.0), (-0.04, 0.01, 1.0), (0, 0, 0)]))
    rope = spatial.Rope(
        "R",
        ("ground", "a", "b", "ground"),
        points=points,
        radii=[0, 0.3, 0.2, 0],
        senses=[0, -1, 1, 0],
        axes=[(0, 0, 0), (0.02, 0.05, 1.0), (-0.04, 0.01, 1.0), (0, 0, 0)],
    )
    return rope.primitives()[0], points, axes


def test_derivatives_of_first_and_second_order():
    """Forward, backward and by differences: of the length, and of its gradient."""
    primitive, points, axes = tilted()
    rng = np.random.default_rng(8)
    d = jnp.asarray(rng.normal(size=points.shape))
    w = jnp.ones(1)

    def length(points: Any) -> Any:
        return rope_length(points, primitive.radii, primitive.arcs, axes)[None]

    gradient = jax.jit(jax.grad(lambda p: length(p)[0]))
    pushed, pulled = forward_and_reverse(length, points, d, w)
    assert dot_product_gap(pushed, pulled, d, w) < 1e-12
    ends = [length(points + s * d) for s in (1e-5, -1e-5)]
    np.testing.assert_allclose(pushed, (ends[0] - ends[1]) / 2e-5, rtol=1e-8)
    second = jax.jvp(gradient, (points,), (d,))[1]
    ends = [gradient(points + s * d) for s in (1e-5, -1e-5)]
    np.testing.assert_allclose(second, (ends[0] - ends[1]) / 2e-5, rtol=1e-6, atol=1e-7)
    # A rope that would shorten presses along a span nearly: the share that is not is the known one.
    pull = np.asarray(gradient(points)[0])
    np.testing.assert_allclose(np.linalg.norm(pull), 1.0, atol=5e-3)


def test_ways_out_of_the_plane_are_not_known():
    primitive, points, axes = tilted()
    frames = [spatial_frame(p, a) for p, a in zip(points, axes, strict=True)]
    assert np.isfinite(primitive.position(tuple(frames), 0.0)).all()
    frames[0] = spatial_frame(points[0] + jnp.array([0.0, 0.0, 0.3]), axes[0])
    assert np.isnan(primitive.position(tuple(frames), 0.0)).all()


def spatial_frame(point: Any, rotation: Any) -> Any:
    return SpatialFrame(point, rotation)


@pytest.mark.thorough
def test_a_run_that_leaves_the_plane_ends_with_the_ropes_name():
    """A load that swings out of the plane of its pulley."""
    bodies = [
        spatial.Body(n, mass=1.0, inertia=(0.1, 0.1, 0.1), position=p)
        for n, p in (("bob", (0.3, 0.0, -1.0)), ("counter", (-0.3, 0.0, -1.0)))
    ]
    rope = spatial.Rope(
        "rope",
        ("counter", "ground", "bob"),
        points=[(-0.3, 0.0, -1.0), (0.0, 0.0, 0.0), (0.3, 0.0, -1.0)],
        radii=[0, 0.3, 0],
        senses=[0, 1, 0],
        axes=[(0, 0, 0), (0, 1, 0), (0, 0, 0)],
    )
    rail = spatial.Translational(
        "rail", ("ground", "counter"), at=(-0.3, 0.0, -1.0), axis=(0.0, 0.0, 1.0)
    )
    system = jm.MultibodySystem(bodies, [rope, rail], gravity=(0.0, 0.0, -G))
    v = jnp.zeros(12).at[1].set(0.5)
    with pytest.raises(jm.SimulationError, match=r"'rope' is not defined: it leaves the plane"):
        jm.simulate(system, system.reference_q, v, end=1.0, every=0.05)


ROPE: dict[str, Any] = {
    "bodies": ("ground", "a", "ground"),
    "points": [(-0.3, 0.0, -1.0), (0.0, 0.0, 0.0), (0.3, 0.0, -1.0)],
    "radii": [0, 0.3, 0],
    "senses": [0, 1, 0],
    "axes": [(0, 0, 0), (0, 1, 0), (0, 0, 0)],
}


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"axes": None}, "axes is missing"),
        ({"radii": None, "senses": None}, "axes are given without `radii`"),
        ({"axes": [(0, 0, 0)] * 3}, "axes, entry 2 must not be zero"),
        ({"axes": [(0, 1, 0)]}, "one entry for each of the 3"),
        ({"axes": [0, 1, 0]}, "a direction of 3 numbers"),
        ({"axes": [(0, 0, 0), (0.3, 1, 0.3), (0, 0, 0)]}, "leaves the plane of a pulley by"),
        ({"points": [(-0.3, 0, -1), (0, 0, 0), (0.0, 1.0, 0.1)]}, "between entries 2 and 3"),
    ],
)
def test_ropes_around_pulleys_in_space_that_cannot_be(changed: Any, words: str):
    with pytest.raises(ValueError, match=words):
        spatial.Rope("R", **(ROPE | changed))
    with pytest.raises(ValueError, match=words):
        spatial.PathTendon("R", **(ROPE | changed))
    with pytest.raises(ValueError, match=words):
        forces.ElasticRope("R", stiffness=1.0, **(ROPE | changed))


def test_a_plane_has_no_axes():
    with pytest.raises(ValueError, match="points are of the plane"):
        planar.Rope("R", NAMES, points=POINTS, radii=RADII, senses=SENSES, axes=np.zeros((6, 3)))


def test_lines_for_drawings():
    """Every point of an arc lies on its circle, and the line is as long as the rope."""
    rope = spatial.Rope(**(ROPE | {"name": "R"}))
    line = rope.outline()
    steps = np.linalg.norm(np.diff(line, axis=0), axis=1)
    np.testing.assert_allclose(steps.sum(), rope.reference_length(), rtol=2e-4)
    np.testing.assert_allclose(np.linalg.norm(line[1:-1], axis=1), 0.3, rtol=1e-12)
    assert np.all(line[:, 2] < 0.3 + 1e-12)
    assert np.max(line[:, 2]) > 0.299


def length_of(line: np.ndarray) -> float:
    return float(np.linalg.norm(np.diff(line, axis=0), axis=1).sum())


def test_pictures_show_ropes_belts_and_tendons_with_their_pulleys():
    """Of two states: lines as long as the ways, and circles of the radii."""
    system = hoist(turn(5))
    q = np.asarray(system.reference_q)
    (rope,), pulleys = rope_lines(system, np.stack([q, q]))
    (flat,) = (j for j in system.constraint_groups if "rope" in j.names)
    own: Any = flat.primitives[0]
    way = float(own.length[0])
    np.testing.assert_allclose([length_of(line) for line in rope], way, rtol=2e-3)
    radii = [np.linalg.norm(own[0] - own[0, :-1].mean(axis=0), axis=1) for own in pulleys]
    np.testing.assert_allclose([own.min() for own in radii], [0.2, 0.5], rtol=1e-9)
    np.testing.assert_allclose([own.max() for own in radii], [0.2, 0.5], rtol=1e-9)


def test_pictures_of_the_plane():
    inertia = {"mass": 1.0, "inertia": 0.1}
    bodies = [planar.Body(n, position=(x, 0.0), **inertia) for n, x in (("p", 0.0), ("w", 2.0))]
    belt = planar.Belt("belt", ("p", "w"), points=[(0, 0), (2, 0)], radii=[0.2, 0.4])
    tendon = planar.PathTendon("tendon", ("ground", "w"), points=[(2, -2), (2, 0)])
    elastic = forces.ElasticRope("E", ("ground", "p"), points=[(0, 1), (0, 0)], stiffness=1.0)
    spring = forces.AxialSpring("pull", "tendon", force=-1.0)
    system = jm.MultibodySystem(bodies, [belt, tendon], forces=[elastic, spring])
    ropes, pulleys = rope_lines(system, np.asarray(system.reference_q)[None])
    found = sorted(length_of(line[0]) for line in ropes)
    np.testing.assert_allclose(found, [1.0, 2.0, float(belt.reference_length())], rtol=2e-3)
    assert len(pulleys) == 2
    assert all(np.all(line[..., 2] == 0) for line in ropes)
