"""Friction of ropes on circles: Euler's and Eytelwein's ratio, brakes, capstans that hold."""

import itertools
import math
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from representatives import representatives

import jaxmbs as jm
from jaxmbs import forces, MultibodySystem, planar, spatial
from jaxmbs.runs import solve_with_friction


G, RADIUS = 9.81, 0.1
solve = eqx.filter_jit(solve_with_friction)


def hoist(mu, weights, speed=0.0, post="ground", spin=0.0, **law):
    """Weights at both ends of a rope over a post: b sinks with the speed (m/s)."""
    places = {"a": (-RADIUS, -1.0), "b": (RADIUS, -1.0)}
    bodies = [
        planar.Body(n, mass=m, inertia=0.1, position=p, velocity=(0.0, way * speed))
        for (n, p), m, way in zip(places.items(), weights, (1, -1), strict=True)
    ]
    joints: list[Any] = [
        planar.Translational(f"guide {n}", ("ground", n), p, (0.0, 1.0)) for n, p in places.items()
    ]
    if post == "drum":
        bodies.append(
            planar.Body("drum", mass=1.0, inertia=0.02, position=(0.0, 0.0), angular_velocity=spin)
        )
        joints.append(planar.Revolute("axle", ("ground", "drum"), (0.0, 0.0)))
    rope = planar.Rope(
        "rope",
        ("a", post, "b"),
        points=(places["a"], (0.0, 0.0), places["b"]),
        radii=(0.0, RADIUS, 0.0),
        senses=(0, -1, 0),
    )
    rub = forces.CoulombFriction("rub", "rope", coefficient=mu, **law or {"velocity": 1e-6})
    return MultibodySystem(bodies, [*joints, rope], forces=[rub], gravity=(0.0, -G))


@pytest.mark.parametrize("speed", [0.5, -0.5])
@pytest.mark.parametrize("mu", [0.0, 0.2, 0.6])
def test_the_ratio_of_tensions(mu, speed):
    """m_a (a + g) = T_a, m_b (g - a) = T_b, T_b = T_a exp(mu pi) where the rope moves to b."""
    one, two = 3.0, 7.0
    system = hoist(mu, (one, two), speed)
    found = solve(system, system.reference_q, system.initial_v, 0.0)
    acceleration = float(found.acceleration[1])
    tensions = one * (acceleration + G), two * (G - acceleration)
    ratio = math.exp(math.copysign(mu * math.pi, speed))
    assert tensions[1] / tensions[0] == pytest.approx(ratio, rel=1e-10)
    assert acceleration == pytest.approx(G * (two - one * ratio) / (two + one * ratio), rel=1e-10)
    # The multiplier is the tension of the last span.
    assert float(found.multipliers[-1]) == pytest.approx(tensions[1], rel=1e-10)
    assert found.solutions is not None
    assert int(found.solutions) == 1
    # What is lost is the friction force times the speed.
    lost = float(
        system.initial_v
        @ system.friction(system.reference_q, system.initial_v, 0.0, found.multipliers)
    )
    assert lost == pytest.approx(-abs(tensions[1] - tensions[0]) * 0.5, rel=1e-10, abs=1e-12)


def test_a_smooth_ratio():
    """T_b = T_a exp(mu pi tanh(u / velocity))."""
    mu, speed, velocity = 0.4, 0.03, 0.05
    system = hoist(mu, (3.0, 5.0), speed, velocity=velocity)
    found = solve(system, system.reference_q, system.initial_v, 0.0)
    acceleration = float(found.acceleration[1])
    ratio = 5.0 * (G - acceleration) / (3.0 * (acceleration + G))
    assert ratio == pytest.approx(math.exp(mu * math.pi * math.tanh(speed / velocity)), rel=1e-10)


@pytest.mark.parametrize("spin", [20.0, -20.0])
def test_a_band_brake(spin):
    """A drum turns under a rope at rest: its torque is r (T_tight - T_slack), and so is the power
    that is lost."""
    mu = 0.3
    # Equal weights that the guides hold by a driver stand still; the drum pulls at the rope.
    system = hoist(mu, (4.0, 4.0), 0.0, "drum", spin)
    found = solve(system, system.reference_q, system.initial_v, 0.0)
    acceleration = float(found.acceleration[1])
    tensions = 4.0 * (acceleration + G), 4.0 * (G - acceleration)
    # A drum that turns clockwise pulls the rope to b.
    ratio = math.exp(math.copysign(mu * math.pi, spin))
    assert tensions[1] / tensions[0] == pytest.approx(ratio, rel=1e-10)
    torque = 0.02 * float(found.acceleration[8])
    assert torque == pytest.approx(RADIUS * (tensions[0] - tensions[1]), rel=1e-10)
    assert torque * spin < 0


@pytest.mark.parametrize(
    ("factor", "holds"), representatives([(0.9, True), (1.1, False)], (0.9, True))
)
def test_a_capstan_holds(factor, holds):
    """One weight is held by another that is exp(mu pi) times lighter, nearly, or not."""
    mu, light = 0.5, 1.0
    heavy = light * math.exp(factor * mu * math.pi)
    system = hoist(mu, (light, heavy), presliding=1e-4, relaxation_time=1e-2)
    times = [0.0, 2.0, 3.0] if holds else [0.0, 0.5, 1.0]
    found = jm.simulate(system, system.reference_q, system.initial_v, end=times[-1], times=times)
    speed = np.abs(np.asarray(found.v[:, 1]))
    if holds:
        assert speed[-1] < 1e-6
        # ln(T_b / T_a) = mu pi z / presliding.
        assert float(found.q[-1, -1]) == pytest.approx(1e-4 * factor, rel=1e-4)
        assert abs(float(found.q[-1, 1] - found.q[1, 1])) < 1e-7
    else:
        ratio = math.exp(mu * math.pi)
        expected = G * (heavy - light * ratio) / (heavy + light * ratio)
        assert (speed[2] - speed[1]) / 0.5 == pytest.approx(expected, rel=1e-5)


@pytest.mark.thorough
def test_a_pulley_turns_with_its_rope():
    """With enough friction the drum in its bearing is driven: Atwood's machine with its inertia."""
    one, two = 3.0, 4.0
    system = hoist(0.5, (one, two), 0.0, "drum", presliding=1e-4, relaxation_time=1e-3)
    found = jm.simulate(
        system, system.reference_q, system.initial_v, end=0.5, times=[0.0, 0.25, 0.5]
    )
    expected = G * (two - one) / (one + two + 0.02 / RADIUS**2)
    speed = np.asarray(found.v[:, 1])
    assert (speed[2] - speed[1]) / 0.25 == pytest.approx(expected, rel=2e-4)
    assert -float(found.v[2, 8]) * RADIUS == pytest.approx(speed[2], abs=1e-3)


def test_two_posts_and_an_eyelet():
    """Factors multiply along the way, each with its own arc."""
    mu = 0.25
    points = ((-1.0, 0.0), (0.0, 1.0), (1.0, 0.5), (2.0, 1.0), (3.0, -1.0))
    bodies = [
        planar.Body("a", mass=2.0, inertia=0.1, position=points[0], velocity=(0.3, 0.0)),
        planar.Body("b", mass=9.0, inertia=0.1, position=points[-1]),
    ]
    guides = [
        planar.Translational("guide a", ("ground", "a"), points[0], (1.0, 1.0)),
        planar.Translational("guide b", ("ground", "b"), points[-1], (0.3, -1.0)),
    ]
    rope = planar.Rope(
        "rope",
        ("a", "ground", "ground", "ground", "b"),
        points=points,
        radii=(0.0, 0.2, 0.0, 0.1, 0.0),
        senses=(0, -1, 0, -1, 0),
    )
    rub = forces.CoulombFriction("rub", "rope", coefficient=mu, velocity=1e-6)
    system = MultibodySystem(bodies, [*guides, rope], forces=[rub], gravity=(0.0, -G))
    state = jm.consistent_state(system, system.reference_q, system.initial_v)
    found = solve(system, state.q, state.v, 0.0)
    # Spans by hand, from tangents of circles.
    directions, last = [], None
    for k in range(4):
        signed = (0.0, -0.2, 0.0, -0.1, 0.0)
        way = np.subtract(points[k + 1], points[k])
        offset = signed[k + 1] - signed[k]
        length = math.sqrt(way @ way - offset**2)
        directions.append(math.atan2(way[1], way[0]) - math.atan2(offset, length))
        last = directions[-1]
    assert last is not None
    around = sum(abs(y - x) for x, y in itertools.pairwise(directions))
    along_a = np.array([1.0, 1.0]) / math.sqrt(2)
    along_b = np.array([0.3, -1.0]) / math.hypot(0.3, 1.0)
    a, b = (np.asarray(found.acceleration[k : k + 2]) for k in (0, 3))
    first = np.array([math.cos(directions[0]), math.sin(directions[0])])
    final = np.array([math.cos(directions[-1]), math.sin(directions[-1])])
    down = np.array([0.0, -G])
    tight = 2.0 * (a - down) @ along_a / (first @ along_a)
    loose = 9.0 * (b - down) @ along_b / (-final @ along_b)
    sense = math.copysign(1.0, float(state.v[:2] @ along_a) * (first @ along_a))
    assert loose / tight == pytest.approx(math.exp(sense * mu * around), rel=1e-9)


def test_finite_derivatives_at_rest_and_where_it_only_touches():
    """At rest, and of a post that the rope touches without an arc."""
    bodies = [planar.Body("b", mass=1.0, inertia=0.1, position=(2.0, 0.0))]
    guides = [planar.Translational("guide", ("ground", "b"), (2.0, 0.0), (1.0, 0.0))]
    rope = planar.Rope(
        "rope",
        ("ground", "ground", "b"),
        points=((0.0, 0.0), (1.0, -0.1), (2.0, 0.0)),
        radii=(0.0, 0.1, 0.0),
        senses=(0, -1, 0),
    )
    laws: tuple[Any, ...] = ({"velocity": 0.1}, {"presliding": 1e-3})
    for law in laws:
        rub = forces.CoulombFriction("rub", "rope", coefficient=0.3, **law)
        system = MultibodySystem(bodies, [*guides, rope], forces=[rub])
        rows = len(system.structure.rows)

        def load(q, v, pressed, system=system):
            return system.friction(q, v, 0.0, pressed)

        given = (system.reference_q, system.initial_v, jnp.ones(rows))
        for take in (jax.jacfwd, jax.jacrev):
            found = jax.jit(take(load, (0, 1, 2)))(*given)
            assert all(np.all(np.isfinite(x)) for x in found)


@pytest.mark.thorough
def test_derivatives():
    """Of the acceleration by the coefficient, both ways."""

    def by_hand(mu):
        ratio = jnp.exp(mu * jnp.pi)
        return G * (7.0 - 3.0 * ratio) / (7.0 + 3.0 * ratio)

    system = hoist(0.3, (3.0, 7.0), 0.5)

    @jax.jit
    def acceleration(mu):
        own = eqx.tree_at(lambda s: s.friction_groups[0].law.coefficient, system, mu[None])
        return solve_with_friction(own, own.reference_q, own.initial_v, 0.0).acceleration[1]

    expected = float(jax.grad(by_hand)(0.3))
    for take in (jax.jacfwd, jax.jacrev):
        assert float(take(acceleration)(jnp.asarray(0.3))) == pytest.approx(expected, rel=1e-10)


def test_refusals():
    rub = forces.CoulombFriction("rub", "rope", coefficient=0.1, velocity=1e-3)
    line = planar.Rope("rope", ("ground", "b"), points=((0, 0), (1, 0)))
    three = ((0, 0, 0), (1, 0, 0), (1, 1, 0))
    space = spatial.Rope("rope", ("ground", "ground", "b"), points=three)
    belt = planar.Belt("rope", ("a", "b"), points=((0, 0), (1, 0)), radii=(0.1, 0.2))
    over = planar.Rope(
        "rope",
        ("ground", "ground", "b"),
        points=((0, 0), (1, 1), (2, 0)),
        radii=(0, 0.1, 0),
        senses=(0, -1, 0),
    )
    thick = forces.CoulombFriction("rub", "rope", coefficient=0.1, velocity=1e-3, radius=0.1)
    for load, rope, message in (
        (rub, line, "no pulley and no eyelet"),
        (rub, space, "in space is not known"),
        (rub, belt, "a belt that does not slip"),
        (thick, over, "takes no `radius` and no `length`"),
    ):
        with pytest.raises(ValueError, match=message):
            load.law_of(rope)
