"""Ropes over pulleys, belts and elastic ropes: closed forms, a slow oracle, a peer, derivatives."""

import functools
import importlib
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from helpers import forward_and_reverse
from scipy.integrate import solve_ivp

import jaxmbs as jm
from jaxmbs import bounds, forces, planar, reactions, spatial
from jaxmbs._dynamics._ropes_left import ropes_left
from jaxmbs.formulations import MinimumNorm


mujoco: Any = importlib.import_module("mujoco")

G = 9.81
DOWN = (0.0, -G)


def weight(name, x, y, mass, inertia=0.1):
    return planar.Body(name, mass=mass, inertia=inertia, position=(x, y))


def rail(name, body, x, y):
    """A vertical guide."""
    return planar.Translational(name, ("ground", body), at=(x, y), axis=(0.0, 1.0))


@eqx.filter_jit
def solution(system, q, v):
    """Accelerations and multipliers of one state."""
    return MinimumNorm().solve(system.equations(q, v, 0.0))


# --------------------------------------------------------------------------------------------------
# Closed forms. All machines stand side by side in one system, which is one program.
# --------------------------------------------------------------------------------------------------


def atwood():
    """Two weights on a rope over a fixed pulley, whose beam hangs on a fixed joint."""
    bodies = [
        weight("left", -0.3, -1.0, 3.0),
        weight("right", 0.3, -2.0, 2.0),
        weight("beam", 0.0, 0.0, 5.0),
    ]
    rope = planar.Rope(
        "atwood",
        ("left", "beam", "right"),
        points=[(-0.3, -1.0), (0.0, 0.0), (0.3, -2.0)],
        radii=[0.0, 0.3, 0.0],
        senses=[0, -1, 0],
    )
    return bodies, [rope, planar.Fixed("wall", ("ground", "beam"), at=(0.0, 0.0))], []


LOAD, COUNTER = 4.0, 3.0


def movable():
    """A load on a movable pulley, its rope from the ceiling around it and over a fixed pulley to a
    counterweight."""
    bodies = [weight("load", 0.0, -2.0, LOAD), weight("counter", 1.2, -1.0, COUNTER)]
    rope = planar.Rope(
        "movable",
        ("ground", "load", "ground", "counter"),
        points=[(-0.2, 0.0), (0.0, -2.0), (0.7, 0.0), (1.2, -1.0)],
        radii=[0.0, 0.2, 0.5, 0.0],
        senses=[0, 1, -1, 0],
    )
    return bodies, [rope, rail("A", "load", 0.0, -2.0)], []


def tackle(sheaves=2):
    """A load of 100 kg on a block of `sheaves` pulleys under one of as many, its free end held."""
    radius, bodies, points, radii, senses = 0.1, ["ground"], [(-0.1, 0.0)], [0.0], [0]
    x = 0.0
    for _ in range(sheaves):
        bodies += ["block", "ground"]
        points += [(x, -3.0), (x + 2 * radius, 0.0)]
        radii += [radius, radius]
        senses += [1, -1]
        x += 4 * radius
    end = (x - radius, -1.0)
    masses = [weight("block", 0.0, -3.0, 100.0), weight("hand", *end, 1.0)]
    rope = planar.Rope(
        "tackle",
        (*bodies, "hand"),
        points=[*points, end],
        radii=[*radii, 0.0],
        senses=[*senses, 0],
    )
    hold = planar.Fixed("hold", ("ground", "hand"), at=end)
    return masses, [rope, rail("B", "block", 0.0, -3.0), hold], []


def inclined():
    """A weight in the middle of a rope between two points."""
    points = [(-1, 0), (0, -0.75), (1, 0)]
    rope = planar.Rope("inclined", ("ground", "lamp", "ground"), points=points)
    return [weight("lamp", 0.0, -0.75, 2.0)], [rope], []


def twins():
    """Two ropes side by side on one load in a guide."""
    ropes = [
        planar.Rope(f"{n} twin", ("ground", "twins"), points=[(x, 0.0), (x, -2.0)])
        for n, x in (("left", -0.1), ("right", 0.1))
    ]
    return [weight("twins", 0.0, -2.0, 2.0)], [*ropes, rail("C", "twins", 0.0, -2.0)], []


MOTOR = 6.0


def drive(name, senses, tensioner=False):
    """A motor's pulley drives a wheel; with a tensioner its bearing slides under a force."""
    p, w = f"{name} p", f"{name} w"
    bodies = [weight(p, 0.0, 0.0, 1.0, 0.02), weight(w, 2.0, 0.0, 3.0, 0.4)]
    joints: list[Any] = [planar.Revolute(f"{name} K", ("ground", w), at=(2.0, 0.0))]
    load = forces.Applied(f"{name} M", p, at=(0.0, 0.0), force=(0.0, 0.0), torque=MOTOR)
    loads = [load]
    bearing = f"{name} slide" if tensioner else "ground"
    joints.append(planar.Revolute(f"{name} J", (bearing, p), at=(0.0, 0.0)))
    if tensioner:
        bodies.append(weight(bearing, 0.0, 0.0, 2.0))
        way = {"at": (0.0, 0.0), "axis": (1.0, 0.0)}
        joints.append(planar.Translational(f"{name} S", ("ground", bearing), **way))
        loads.append(forces.Applied(f"{name} F", bearing, at=(0.0, 0.0), force=(-300.0, 0.0)))
    points = [(0, 0), (2, 0)]
    joints.append(planar.Belt(name, (p, w), points=points, radii=[0.2, 0.5], senses=senses))
    return bodies, joints, loads


@functools.cache
def park():
    """All machines: accelerations by body, reactions, and what `analyze` says."""
    machines = (
        *(atwood(), movable(), tackle(), inclined(), twins()),
        *(drive("fixed", [1, 1]), drive("crossed", [1, -1]), drive("tight", [1, 1], True)),
    )
    every: Any = [[part for m in machines for part in m[k]] for k in range(3)]
    bodies, joints, loads = every
    system = jm.MultibodySystem(bodies, joints, forces=loads, gravity=DOWN)
    q, v = system.reference_q, jnp.zeros(system.structure.nv)
    found = solution(system, q, v)
    rates = np.asarray(found.acceleration).reshape(-1, 3)
    report = reactions(system, q, v, 0.0, found.multipliers)
    by_body = {body.name: rate for body, rate in zip(bodies, rates, strict=True)}
    return by_body, report, jm.analyze(system, q)


def tension(name):
    return float(park()[1].one_sided_force(name))


def on(body, name):
    return park()[1].on(body).wrench(name).force


def test_fixed_pulley():
    """Atwood's machine: a = g (m1 - m2) / (m1 + m2), T = 2 m1 m2 g / (m1 + m2), 2 T on the beam."""
    rates, found, _ = park()
    expected = 2 * 3.0 * 2.0 * G / 5.0
    np.testing.assert_allclose(rates["left"], [0, -G / 5, 0], atol=1e-10)
    np.testing.assert_allclose(rates["right"], [0, G / 5, 0], atol=1e-10)
    assert tension("atwood") == pytest.approx(expected, rel=1e-10)
    wrench = found.wrench("atwood")
    np.testing.assert_allclose(wrench.force, [0.0, -2 * expected], atol=1e-10)
    np.testing.assert_allclose(wrench.torque, 0.0, atol=1e-10)
    np.testing.assert_allclose(on("left", "atwood"), [0.0, expected], atol=1e-10)
    wall = found.wrench("wall").force
    np.testing.assert_allclose(wall, [0.0, 2 * expected + 5.0 * G], atol=1e-10)
    assert bool(found.unique("atwood"))
    assert f"tension {expected:.6g} N" in str(found)


def test_movable_pulley():
    """2 T - M g = M a, T - m g = -2 m a: a = g (2 m - M) / (M + 4 m)."""
    rates = park()[0]
    up = G * (2 * COUNTER - LOAD) / (LOAD + 4 * COUNTER)
    np.testing.assert_allclose(rates["load"], [0, up, 0], atol=1e-10)
    np.testing.assert_allclose(rates["counter"], [0, -2 * up, 0], atol=1e-10)
    expected = LOAD * (up + G) / 2
    assert tension("movable") == pytest.approx(expected, rel=1e-10)
    np.testing.assert_allclose(on("load", "movable"), [0.0, 2 * expected], atol=1e-10)
    # At the ceiling: one part at the anchor and two at the fixed pulley.
    np.testing.assert_allclose(on("ground", "movable"), [0.0, -3 * expected], atol=1e-10)


def test_block_and_tackle():
    """With 4 parts of the rope the hand carries a fourth of the load."""
    assert tension("tackle") == pytest.approx(100.0 * G / 4, rel=1e-10)
    np.testing.assert_allclose(on("hand", "tackle"), [0, 100.0 * G / 4], atol=1e-9)
    np.testing.assert_allclose(on("block", "tackle"), [0, 100.0 * G], atol=1e-9)


def test_inclined_parts():
    """T = m g / (2 sin(angle))."""
    assert tension("inclined") == pytest.approx(2.0 * G / 1.2, rel=1e-10)


def test_two_ropes_on_one_load_are_redundant():
    """Neither tension is unique; what both carry together is right."""
    _, found, report = park()
    assert not report.unique("left twin")
    assert not report.unique("right twin")
    assert bool(report.unique("movable"))
    # One more set is that of each belt between fixed centres.
    assert int(report.redundancy) == 3
    assert "Held both ways here: atwood, movable, tackle, " in str(report)
    assert tension("left twin") + tension("right twin") == pytest.approx(2.0 * G, rel=1e-10)
    assert str(found).count("NOT UNIQUE") >= 2


def test_length_of_a_belt():
    """Open and crossed belts of two pulleys, from their tangents and arcs."""
    r, big, apart = 0.2, 0.5, 2.0
    given: dict[str, Any] = {"points": [(0.0, 0.0), (apart, 0.0)], "radii": [r, big]}
    lean = np.arcsin((big - r) / apart)
    opened = 2 * apart * np.cos(lean) + np.pi * (r + big) + 2 * lean * (big - r)
    lean = np.arcsin((big + r) / apart)
    closed = 2 * apart * np.cos(lean) + (r + big) * (np.pi + 2 * lean)
    for sense in (1, -1):
        for other, expected in ((sense, opened), (-sense, closed)):
            belt = planar.Belt("B", ("p", "w"), **given, senses=[sense, other])
            assert float(belt.reference_length()) == pytest.approx(expected, rel=1e-14)


def test_rows_of_a_belt_add_up_to_its_length():
    """Of a belt of three pulleys and a given length, wherever the pulleys stand and turn."""
    names, radii, senses = ("p", "w", "u"), [0.2, 0.5, 0.3], [1, 1, -1]
    points = np.array([(0.0, 0.0), (2.0, 0.0), (1.0, 1.5)])
    bodies = [weight(name, x, y, 1.0) for name, (x, y) in zip(names, points, strict=True)]
    belt = planar.Belt("B", names, points=points, radii=radii, senses=senses, length=8.0)
    system = jm.MultibodySystem(bodies, [belt])
    moved = points + np.array([(0.1, -0.2), (0.3, 0.1), (-0.1, 0.4)])
    q = np.concatenate([moved, [[0.3], [-2.0], [1.0]]], axis=1).ravel()
    there = planar.Belt("B", names, points=moved, radii=radii, senses=senses)
    total = float(jnp.sum(system.position_residual(jnp.asarray(q), 0.0)))
    assert total == pytest.approx(float(there.reference_length()) - 8.0, abs=1e-13)


@pytest.mark.thorough
def test_spans_that_pull_bound_the_load_of_a_bearing():
    """The slack span carries nothing at least, so that the bearing carries the other one."""
    bodies, joints, loads = drive("belt", [1, 1])
    system = jm.MultibodySystem(bodies, joints, forces=loads, gravity=DOWN)
    pulls = [bounds.PullsOnly("belt.1"), bounds.PullsOnly("belt.2")]
    found = jm.ranges(system, system.reference_q, bounds=pulls)
    least = 0.4 * MOTOR / (0.02 + 0.4 * 0.16) * 0.4 / 0.5
    wrench = found.wrench("belt K")
    assert float(wrench.force_low[0]) == pytest.approx(least * np.sqrt(1 - 0.15**2), rel=1e-6)
    assert np.isinf(float(wrench.force_high[0]))


def test_fixed_centres_leave_the_pretension_open():
    """alpha = M / (I1 + I2 (r1 / r2)^2); the torque is unique, the pull on the bearings is not."""
    rates, found, _ = park()
    ratio = 0.2 / 0.5
    alpha = MOTOR / (0.02 + 0.4 * ratio**2)
    for name, sign in (("fixed", 1), ("crossed", -1)):
        np.testing.assert_allclose(rates[f"{name} p"], [0, 0, alpha], atol=1e-8)
        np.testing.assert_allclose(rates[f"{name} w"], [0, 0, sign * alpha * ratio], atol=1e-8)
        assert not found.unique(name)
        wrench = found.wrench(name)
        assert bool(wrench.torque_unique)
        assert not bool(wrench.force_unique[0])
        torque = 0.4 * sign * alpha * ratio
        assert float(wrench.torque) == pytest.approx(torque, rel=1e-10)
        difference = tension(f"{name}.2") - tension(f"{name}.1")
        assert difference == pytest.approx(0.4 * alpha * ratio / 0.5, rel=1e-10)
    assert str(found).count("whether the belt would be slack is not determined") == 2


def test_a_tensioner_makes_all_of_it_unique():
    """Both spans lean by asin((r2 - r1) / a): (T1 + T2) cos(lean) = pull."""
    rates, found, _ = park()
    torque = 0.4 * float(rates["tight w"][2])
    assert float(rates["tight p"][2]) == pytest.approx(MOTOR / (0.02 + 0.4 * 0.16), rel=1e-10)
    first, second = (tension(f"tight.{k}") for k in (1, 2))
    assert bool(found.unique("tight"))
    assert (second - first) * 0.5 == pytest.approx(torque, rel=1e-10)
    assert (first + second) * np.sqrt(1 - 0.15**2) == pytest.approx(300.0, rel=1e-10)


def test_a_belt_on_a_turning_carrier():
    """Planetary belt: relative to the arm the pulleys turn in the ratio of the radii, however often
    it turns. (Fixed sun of radius r1: the planet turns by (1 - r1 / r2) of the arm's angle.)"""
    arm = planar.Body("arm", mass=1.0, inertia=0.2, position=(0.5, 0.0))
    planet = weight("planet", 1.0, 0.0, 1.0)
    belt = planar.Belt(
        "belt", ("ground", "planet"), points=[(0, 0), (1, 0)], radii=[0.3, 0.2], carrier="arm"
    )
    joints = [
        planar.Revolute("A", ("ground", "arm"), at=(0.0, 0.0)),
        planar.Revolute("B", ("arm", "planet"), at=(1.0, 0.0)),
    ]
    system = jm.MultibodySystem([arm, planet], [*joints, belt])
    for angle in (0.1, 2.0, 4.0, -9.0, 40.0):
        c, s = np.cos(angle), np.sin(angle)
        q = jnp.array([0.5 * c, 0.5 * s, angle, c, s, (1 - 1.5) * angle])
        np.testing.assert_allclose(system.position_residual(q, 0.0), 0.0, atol=1e-13)


# --------------------------------------------------------------------------------------------------
# A slow oracle: the shortest string around the circles, found by walking along them.
# --------------------------------------------------------------------------------------------------


def tangent_by_search(centre, radius, sense, other, radius2, sense2):
    """Leaving and arriving angle of the span between two circles: among all pairs of points the one
    at which it runs along both circles in their senses, by refining a grid."""

    def miss(a, b):
        p = centre + radius * np.array([np.cos(a), np.sin(a)])
        s = other + radius2 * np.array([np.cos(b), np.sin(b)])
        along = (s - p) / np.linalg.norm(s - p)
        heading = sense * np.array([-np.sin(a), np.cos(a)])
        heading2 = sense2 * np.array([-np.sin(b), np.cos(b)])
        gap = np.zeros(2)
        if radius:
            gap = gap + (along - heading)
        gap2 = along - heading2 if radius2 else np.zeros(2)
        return gap @ gap + gap2 @ gap2

    grid = np.linspace(0.0, 2 * np.pi, 25)
    best = min((miss(a, b), a, b) for a in grid for b in grid)
    width = grid[1]
    while width > 1e-13:
        steps = width * np.linspace(-1.0, 1.0, 5)
        best = min(
            (miss(best[1] + x, best[2] + y), best[1] + x, best[2] + y) for x in steps for y in steps
        )
        width /= 1.9
    return best[1], best[2]


def length_by_search(points, radii, senses):
    """Length of the way from its tangent points and the arcs between them."""
    points = np.asarray(points, float)
    count, total, arrived = len(points), 0.0, None
    for k in range(count - 1):
        leave, arrive = tangent_by_search(
            points[k], radii[k], senses[k], points[k + 1], radii[k + 1], senses[k + 1]
        )
        start = points[k] + radii[k] * np.array([np.cos(leave), np.sin(leave)])
        end = points[k + 1] + radii[k + 1] * np.array([np.cos(arrive), np.sin(arrive)])
        total += np.linalg.norm(end - start)
        if arrived is not None and radii[k]:
            total += radii[k] * (senses[k] * (leave - arrived) % (2 * np.pi))
        arrived = arrive
    return total


WAYS = (
    ([(-1, 0), (0, 1.2), (1.5, -0.5)], [0, 0.4, 0], [0, -1, 0]),
    ([(-1, 0), (0, 1.2), (1.5, -0.5), (3, 1)], [0, 0.4, 0.3, 0], [0, -1, 1, 0]),
    ([(0, -1), (0.5, 1.2), (-1.5, 1.5), (2, 3)], [0, 0.4, 0.6, 0], [0, 1, 1, 0]),
    ([(0, -1), (0.5, 1.2), (1.5, 1.5), (0.2, -2)], [0, 0, 0.6, 0], [0, 0, -1, 0]),
)


@pytest.mark.parametrize("way", WAYS)
def test_length_is_that_of_a_walk(way):
    points, radii, senses = way
    bodies = ("ground", *["a"] * (len(points) - 1))
    rope = planar.Rope("R", bodies, points=points, radii=radii, senses=senses)
    # The search minimises a square, so that angles are known to the root of rounding.
    walk = length_by_search(points, radii, senses)
    assert float(rope.reference_length()) == pytest.approx(walk, rel=1e-7)


def test_outline_has_the_length_of_the_way():
    """Chords of arcs of 0.05 rad are shorter than these by 1e-4."""
    for points, radii, senses in WAYS:
        rope = _rope(
            bodies=("ground", *"abc"[: len(points) - 1]), points=points, radii=radii, senses=senses
        )
        line = rope.outline()
        drawn = np.sum(np.linalg.norm(np.diff(line, axis=0), axis=1))
        assert drawn == pytest.approx(float(rope.reference_length()), rel=2e-4)
        np.testing.assert_allclose(line[[0, -1]], np.asarray(points)[[0, -1]], atol=1e-14)
    belt = planar.Belt("B", ("p", "w"), points=[(0, 0), (2, 0)], radii=[0.2, 0.5], senses=[1, -1])
    line = belt.outline([(0, 0), (0, 2)])
    drawn = np.sum(np.linalg.norm(np.diff(line, axis=0), axis=1))
    assert drawn == pytest.approx(float(belt.reference_length()), rel=2e-4)
    np.testing.assert_allclose(line[0], line[-1], atol=1e-14)


# --------------------------------------------------------------------------------------------------
# A peer: MuJoCo's spatial tendons without wrapping.
# --------------------------------------------------------------------------------------------------


SITES = np.array([[0.1, -0.2, 2.0], [0.3, 0.4, 0.5], [-0.5, 0.2, 0.1], [1.2, 0.9, 0.3]])
TENDON = """<mujoco><worldbody><site name="s0" pos="0.1 -0.2 2"/>
<body name="a" pos="0.2 0.3 0.4"><freejoint/>
<inertial pos="0 0 0" mass="2" diaginertia=".1 .2 .25"/>
<site name="s1" pos="0.1 0.1 0.1"/><site name="s2" pos="-0.7 -0.1 -0.3"/></body>
<body name="b" pos="1 1 0.2"><freejoint/><inertial pos="0 0 0" mass="3" diaginertia=".2 .2 .3"/>
<site name="s3" pos="0.2 -0.1 0.1"/></body></worldbody>
<tendon><spatial name="t"><site site="s0"/><site site="s1"/><site site="s2"/><site site="s3"/>
</spatial></tendon></mujoco>"""


def eyelets():
    bodies = [
        spatial.Body("a", mass=2.0, inertia=(0.1, 0.2, 0.25), position=(0.2, 0.3, 0.4)),
        spatial.Body("b", mass=3.0, inertia=(0.2, 0.2, 0.3), position=(1.0, 1.0, 0.2)),
    ]
    rope = spatial.Rope("R", ("ground", "a", "a", "b"), points=SITES)
    return jm.MultibodySystem(bodies, [rope])


def test_length_and_jacobian_of_a_spatial_tendon(rng):
    model = mujoco.MjModel.from_xml_string(TENDON)
    data = mujoco.MjData(model)
    system = eyelets()
    primitive: Any = system.constraint_groups[0].primitives[0]
    way = float(primitive.length[0])
    for _ in range(3):
        q = np.array(system.reference_q)
        for k in (0, 7):
            q[k : k + 3] += rng.uniform(-0.3, 0.3, 3)
            quaternion = q[k + 3 : k + 7] + rng.normal(size=4)
            q[k + 3 : k + 7] = quaternion / np.linalg.norm(quaternion)
        data.qpos[:] = q
        mujoco.mj_forward(model, data)
        v = jnp.zeros(12)
        residual = float(system.position_residual(jnp.asarray(q), 0.0)[0])
        assert residual + way == pytest.approx(data.ten_length[0], rel=1e-14)
        jacobian = np.zeros((1, 12))
        jacobian[0] = np.asarray(data.ten_J).reshape(-1)[:12]
        # MuJoCo's velocities of free bodies are linear in the world and angular in body axes, too.
        np.testing.assert_allclose(
            system.constraint_matrix(jnp.asarray(q), v, 0.0), jacobian, atol=1e-13
        )


# --------------------------------------------------------------------------------------------------
# Motions: energy, elastic ropes, slack.
# --------------------------------------------------------------------------------------------------


STIFF, NATURAL = 400.0, 2.4
WAY = 0.2 + 1.0 + 0.3 * np.pi


def bungee(damping=0.0, length=NATURAL):
    """A load in a guide under an elastic rope over a pulley, whose way is `WAY` long."""
    rope = forces.ElasticRope(
        "E",
        ("ground", "ground", "load"),
        points=[(-0.3, -0.2), (0.0, 0.0), (0.3, -1.0)],
        radii=[0.0, 0.3, 0.0],
        senses=[0, -1, 0],
        stiffness=STIFF,
        damping=damping,
        length=length,
    )
    return weight("load", 0.3, -1.0, 2.0), rail("L", "load", 0.3, -1.0), rope


def hung(damping=0.0, length=NATURAL):
    load, guide, rope = bungee(damping, length)
    return jm.MultibodySystem([load], [guide], forces=[rope], gravity=DOWN)


@functools.cache
def run():
    """A swinging Atwood machine (a counterweight on a rail, a pendulum on the other side), and a
    load that falls into its slack elastic rope."""
    load, guide, elastic = bungee()
    bodies = [weight("counter", -0.3, -1.0, 1.0), weight("bob", 0.3, -1.0, 1.0), load]
    rope = planar.Rope(
        "R",
        ("counter", "ground", "bob"),
        points=[(-0.3, -1.0), (0.0, 0.0), (0.3, -1.0)],
        radii=[0.0, 0.3, 0.0],
        senses=[0, -1, 0],
    )
    joints = [rope, rail("A", "counter", -0.3, -1.0), guide]
    system = jm.MultibodySystem(bodies, joints, forces=[elastic], gravity=DOWN)
    v = jnp.zeros(9).at[3].set(1.5)
    span: dict[str, Any] = {"end": 1.0, "every": 0.1, "rtol": 1e-10, "atol": 1e-10}
    return jm.simulate(system, system.reference_q, v, **span)


@pytest.mark.thorough
def test_swinging_atwood_machine_against_its_lagrangian():
    """The bob hangs on a strand of length l = 1 - y + r a that leaves the circle at angle a."""
    found_run = run()
    r, mass, bob = 0.3, 1.0, 1.0

    # Coordinates: a, the angle of the bob's strand from below, and y, the descent of the counter.
    # The strand unwinds from the circle, so that its end moves across it and along it alone.
    def rates(t, s):
        del t
        a, y, da, dy = s
        length, rate = 1.0 - y + r * a, -dy + r * da
        along, across = np.array([np.sin(a), -np.cos(a)]), np.array([np.cos(a), np.sin(a)])
        jac = np.stack([length * across, -along], axis=1)
        bend = (rate * across - length * da * along) * da - across * da * dy
        matrix = bob * jac.T @ jac + np.diag([0.0, mass])
        force = jac.T @ (np.array([0.0, -bob * G]) - bob * bend) + np.array([0.0, mass * G])
        return np.concatenate([s[2:], np.linalg.solve(matrix, force)])

    times = np.asarray(found_run.times)
    start = [0.0, 0.0, 1.5, 0.0]
    found = solve_ivp(rates, (0.0, 1.0), start, t_eval=times, rtol=1e-11, atol=1e-12)
    a, y = found.y[:2]
    length = 1.0 - y + r * a
    q = np.asarray(found_run.q)
    np.testing.assert_allclose(q[:, 3], r * np.cos(a) + length * np.sin(a), atol=2e-8)
    np.testing.assert_allclose(q[:, 4], r * np.sin(a) - length * np.cos(a), atol=2e-8)
    np.testing.assert_allclose(q[:, 1], -1.0 - y, atol=2e-8)


def test_energy_of_a_run_is_constant():
    """Of the swinging machine and of the load that is thrown back by its rope."""
    system: Any = run().system
    kinetic, potential = jax.jit(jax.vmap(system.energy))(run().q, run().v, run().times)
    energy = kinetic + potential
    np.testing.assert_allclose(energy, energy[0], atol=5e-7)
    drop, free = -1.0 - np.asarray(run().q[:, 7]), NATURAL - WAY
    assert drop.max() > free
    # Free fall until it is taut.
    times = np.asarray(run().times)
    early = times < np.sqrt(2 * free / G)
    assert 1 < early.sum() < early.size
    np.testing.assert_allclose(drop[early], G * times[early] ** 2 / 2, atol=1e-9)


def test_elastic_rope_pulls_and_never_pushes():
    """m a = T - m g with T = k (L - length) + c dL/dt where taut; the slack rope does nothing."""
    for length, speed, damping in (
        (1.5, 0.0, 0.0),
        (1.5, -2.0, 7.0),
        (1.5, 60.0, 20.0),
        (3.0, -1.0, 7.0),
    ):
        system = hung(damping, length)
        v = jnp.zeros(3).at[1].set(speed)
        found = solution(system, system.reference_q, v)
        tension = max(STIFF * (WAY - length) - damping * speed, 0.0) if length < WAY else 0.0
        assert float(found.acceleration[1]) == pytest.approx(tension / 2.0 - G, rel=1e-12)


def test_a_rope_that_would_leave_its_pulley_is_told():
    """A pulley above the line of its neighbours, pushed under it."""
    body = weight("guide", 0.0, 0.5, 1.0)
    rope = planar.Rope(
        "R",
        ("ground", "guide", "ground"),
        points=[(-1.0, 0.0), (0.0, 0.5), (1.0, 0.0)],
        radii=[0.0, 0.2, 0.0],
        senses=[0, -1, 0],
    )
    system = jm.MultibodySystem([body], [rope])
    q = jnp.stack([system.reference_q.at[1].set(y) for y in (0.5, -0.2, -0.3)])
    arcs = [float(system.wound(x, 0.0)[0]) for x in q]
    # The direction of a span from (-1, 0) to a circle of radius r at (0, y) that passes above it.
    for y, arc in zip((0.5, -0.2, -0.3), arcs, strict=True):
        far = np.hypot(1.0, y)
        assert arc == pytest.approx(2 * (np.arctan2(y, 1.0) + np.arcsin(0.2 / far)), abs=1e-14)
    (line,) = ropes_left(system, jnp.arange(3.0), q)
    assert "The rope 'R' would have left a pulley from 2 s on (an arc of down to -11.3 deg)" in line
    assert ropes_left(system, jnp.arange(2.0), q[:2]) == []


@pytest.mark.thorough
def test_a_run_and_reactions_tell_of_a_rope_that_leaves_its_pulley():
    bob = weight("bob", 0.1, -1.0, 1.0)
    rope = planar.Rope(
        "R",
        ("ground", "ground", "bob"),
        points=[(-1.0, 0.0), (0.0, 0.0), (0.1, -1.0)],
        radii=[0.0, 0.1, 0.0],
        senses=[0, -1, 0],
    )
    system = jm.MultibodySystem([bob], [rope], gravity=DOWN)
    v = jnp.array([9.0, 0.0, 0.0])
    motion = jm.simulate(system, system.reference_q, v, end=0.3, every=0.02)
    assert "The rope 'R' would have left a pulley from 0.22 s on" in str(motion)
    found = reactions(system, motion.q[-1], motion.v[-1])
    assert "The rope 'R' would have left a pulley (an arc of" in str(found)


# --------------------------------------------------------------------------------------------------
# Derivatives, batches, compiled programs.
# --------------------------------------------------------------------------------------------------


@pytest.mark.thorough
def test_tension_has_derivatives_by_every_number():
    """T = 2 m1 m2 g / (m1 + m2) by the masses; by the radius and the points it does not change."""

    def force(numbers):
        masses, radius = numbers
        zero = 0.0 * radius
        ends = [jnp.stack([-radius, zero - 1]), jnp.stack([radius, zero - 2])]
        bodies = [
            planar.Body(n, mass=m, inertia=0.1, position=end)
            for n, m, end in zip("ab", masses, ends, strict=True)
        ]
        rope = planar.Rope(
            "R",
            ("a", "ground", "b"),
            points=jnp.stack([ends[0], jnp.stack([zero, zero]), ends[1]]),
            radii=jnp.stack([zero, radius, zero]),
            senses=[0, -1, 0],
        )
        system = jm.MultibodySystem(bodies, [rope], gravity=DOWN)
        return solution(system, system.reference_q, jnp.zeros(6)).multipliers

    numbers = (jnp.array([3.0, 2.0]), jnp.asarray(0.3))
    ones = (jnp.ones(2), jnp.ones(()))
    pushed, (by_masses, by_radius) = forward_and_reverse(force, numbers, ones, jnp.ones(1))
    expected = 2 * G * np.array([4.0, 9.0]) / 25
    np.testing.assert_allclose(by_masses, expected, rtol=1e-10)
    np.testing.assert_allclose(by_radius, 0.0, atol=1e-9)
    np.testing.assert_allclose(pushed, [expected.sum()], rtol=1e-10)


def test_slack_elastic_rope_has_finite_derivatives():
    """At the length without tension, at rest, and slack."""
    system = hung(damping=3.0, length=1.5)
    q = system.reference_q

    def acceleration(y, speed):
        at, v = q.at[1].set(y), jnp.zeros(3).at[1].set(speed)
        return solution(system, at, v).acceleration[1]

    slope = jax.jit(jax.vmap(jax.grad(acceleration, (0, 1))))
    # Taut at a way of 1.5 m and more: y below -(1.5 - 0.2 - 0.3 pi).
    edge = -(1.5 - 0.2 - 0.3 * np.pi)
    by_y, by_speed = slope(jnp.array([-1.0, edge, edge + 0.1]), jnp.zeros(3))
    np.testing.assert_allclose(by_y, [-200.0, by_y[1], 0.0], atol=1e-9)
    np.testing.assert_allclose(by_speed, [-1.5, by_speed[1], 0.0], atol=1e-9)
    assert np.all(np.isfinite(by_y))
    assert np.all(np.isfinite(by_speed))


# --------------------------------------------------------------------------------------------------
# Refusals.
# --------------------------------------------------------------------------------------------------


def _rope(**keys):
    given: dict[str, Any] = {
        "bodies": ("ground", "a", "b"),
        "points": [(-1.0, 0.0), (0.0, 1.0), (1.0, 0.0)],
        "radii": [0.0, 0.5, 0.0],
        "senses": [0, -1, 0],
    }
    return planar.Rope("R", **(given | keys))


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({"length": 3.0}, "length is 3 m and the way of the rope is 3.79"),
        ({"points": [(-0.2, 1.0), (0.0, 1.0), (1.0, 0.0)]}, "point 1 lies inside the circle of"),
        ({"points": [(0.0, 1.0), (0.0, 1.0), (1.0, 0.0)]}, "entries 1 and 2 of points coincide"),
        ({"radii": [0.5, 0.5, 0.0]}, "begins and ends at points"),
        ({"radii": [0.0, -0.5, 0.0]}, "radii must be at least 0"),
        ({"radii": [0.0, 0.5]}, "must hold one entry for each of the 3 bodies, got 3 of points"),
        ({"senses": None}, "senses is missing"),
        ({"senses": [0, 0, 0]}, "senses, entry 2 must be 1 or -1"),
        ({"senses": [0, 2, 0]}, "senses must be 1"),
        ({"bodies": ("a", "a", "a")}, "bodies names 'a' alone"),
        ({"bodies": ("a",)}, "a body for each point"),
        ({"points": np.eye(3)}, "axes is missing: give a direction for each pulley in space"),
    ],
)
def test_ropes_that_cannot_be(keys, words):
    with pytest.raises(ValueError, match=words):
        _rope(**keys)


def test_circles_that_overlap():
    bodies, points = ("ground", "a", "b", "c"), [(-1, 0), (0, 1), (0.7, 1), (3, 0)]
    with pytest.raises(ValueError, match="the circles of entries 2 and 3 overlap"):
        planar.Rope("R", bodies, points=points, radii=[0, 0.4, 0.4, 0], senses=[0, -1, -1, 0])


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({"radii": [0.2, 0.0]}, "radii must be above 0"),
        ({"radii": [2.0, 2.0]}, "the circles of entries 1 and 2 overlap"),
        ({"senses": [1, 0]}, "senses, entry 2 must be 1 or -1"),
        ({"carrier": "p"}, "carrier 'p' is a pulley itself"),
        ({"points": [(0, 0, 0), (2, 0, 0)]}, "a belt is planar"),
        ({"points": [(0, 0), (2, 0), (3, 3)]}, "must hold one entry for each of the 2 bodies"),
        ({"bodies": ("p",), "points": [(0, 0), (1, 1)]}, "at least two"),
    ],
)
def test_belts_that_cannot_be(keys, words):
    given: dict[str, Any] = {
        "bodies": ("p", "w"),
        "points": [(0.0, 0.0), (2.0, 0.0)],
        "radii": [0.2, 0.5],
    }
    with pytest.raises(ValueError, match=words):
        planar.Belt("B", **(given | keys))


@pytest.mark.parametrize("damping", [0.0, 3e3])
def test_no_step_passes_over_the_pull_of_a_rope(damping: float) -> None:
    """A weight falls for a metre into a stiff rope."""
    weight = planar.Body("weight", mass=1.0, inertia=1.0, position=(0.0, -1.0))
    guide = planar.Translational("guide", ("ground", "weight"), (0.0, -1.0), (0.0, 1.0))
    rope = forces.ElasticRope(
        "rope",
        ("ground", "weight"),
        points=((0.0, 0.0), (0.0, -1.0)),
        stiffness=1e7,
        damping=damping,
        length=2.0,
    )
    system = jm.MultibodySystem([weight], [guide], [], [rope], gravity=(0.0, -9.81))
    times = np.sqrt(2 / 9.81) * np.linspace(0.0, 2.0, 101)
    run = jm.simulate(system, system.reference_q, system.initial_v, float(times[-1]), times=times)
    height = np.asarray(run.q)[:, 1] + 2.0
    assert np.min(height) > -0.003
    highest = np.max(height[52:])
    if damping:
        assert 0.0 < highest < 0.9
    else:
        assert highest == pytest.approx(1.0, rel=1e-2)
