"""Contact between bodies: impacts against quadratures of the law, conservation, sticking and
sliding, rolling, energy, derivatives across an impact, and refusals.
"""

import functools
import math
import re
from typing import Any

import diffrax as dfx
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.integrate
from scipy.spatial.transform import Rotation

import jaxmbs as jm
from jaxmbs import forces, planar, shapes, spatial
from jaxmbs._forces import BristleContactLoad, ContactLoad
from jaxmbs._forces._contact_law import restitution_damping
from jaxmbs._geometry import PlanarFrame, PlanarTwist, SpatialFrame, SpatialTwist
from jaxmbs.runs import contact_forces


GRAVITY = 9.81
TIGHT: dict[str, Any] = {"rtol": 1e-11, "atol": 1e-13}
# No run is compiled for the sake of one number: every law has all of its parts.
LAW: dict[str, Any] = {
    "stiffness": 1e5,
    "exponent": 1.5,
    "restitution": 1.0,
    "impact_speed": 1.0,
    "friction": 0.0,
    "transition_speed": 1e-3,
    "rolling_resistance": 0.0,
    "rolling_speed": 0.1,
}
RADIUS, MASS = 0.1, 2.0


def floor(height: float = 0.0) -> shapes.ContactHalfSpace:
    return shapes.ContactHalfSpace([0.0, 1.0], at=[0.0, height])


def disc(
    height: float = 1.0,
    velocity: Any = (0.0, 0.0),
    spin: float = 0.0,
    gravity: float = GRAVITY,
    **law: Any,
) -> jm.MultibodySystem:
    """A disc of a sphere's inertia above a floor, in the plane."""
    body = planar.Body(
        "disc",
        mass=MASS,
        inertia=0.4 * MASS * RADIUS**2,
        position=(0.0, height),
        velocity=velocity,
        angular_velocity=spin,
    )
    keys: dict[str, Any] = LAW | law
    if "damping" in law:
        del keys["restitution"], keys["impact_speed"]
    contact = forces.Contact(
        "floor", ("disc", "ground"), first=shapes.ContactSphere(RADIUS), second=floor(), **keys
    )
    return jm.MultibodySystem([body], forces=[contact], gravity=[0.0, -gravity])


def run(system: jm.MultibodySystem, end: float, **keys: Any) -> jm.results.Trajectory:
    return jm.simulate(system, system.reference_q, system.initial_v, end=end, **(TIGHT | keys))


def static_depth(force: float, stiffness: float = 1e5, exponent: float = 1.5) -> float:
    return (force / stiffness) ** (1 / exponent)


# --------------------------------------------------------------------------------------------------
# Impacts
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("speed", [0.3, 2.0])
def test_duration_of_an_elastic_impact(speed: float):
    """Without gravity 2 int dd / sqrt(v^2 - 2 k d^(n+1) / (m (n+1))), by quadrature in the angle
    that removes the root's pole."""
    deepest = (2.5 * MASS * speed**2 / (2 * 1e5)) ** 0.4

    def integrand(angle: float) -> float:
        # d = deepest sin(angle)^(4/5), so that d^(5/2) = deepest^(5/2) sin(angle)^2.
        return 0.8 * deepest / speed * math.sin(angle) ** (-0.2)

    found = scipy.integrate.quad(integrand, 0, math.pi / 2, epsabs=1e-15, epsrel=1e-12)
    duration = 2 * found[0]
    before, after = 0.05, 0.07
    system = disc(height=RADIUS + before * speed, velocity=(0.0, -speed), gravity=0.0)
    end = run(system, before + duration + after)
    # (The quadrature of a pole of power -0.2 is of 1e-9 or so.)
    assert np.allclose(end.q[-1, 1], RADIUS + after * speed, rtol=0, atol=1e-8 * speed)
    assert np.allclose(end.v[-1, 1], speed, rtol=1e-8)


@pytest.mark.parametrize("restitution", [0.2, 0.9])
def test_restitution_is_that_of_the_impact_speed(restitution: float):
    system = disc(
        height=RADIUS + 0.01,
        velocity=(0.0, -3.0),
        gravity=0.0,
        restitution=restitution,
        impact_speed=3.0,
    )
    end = run(system, 0.5)
    assert np.allclose(end.v[-1, 1], 3.0 * restitution, rtol=1e-8)


def bounce_oracle(height: float, damping: float, end: float, stiffness: float = 1e5) -> np.ndarray:
    """Height and speed of the disc at the end, by SciPy from one contact's beginning or end to the
    next."""

    def rates(pressed: bool, t: float, y: np.ndarray) -> list[float]:
        del t
        depth = RADIUS - y[0]
        force = 0.0
        if pressed and depth > 0:
            force = stiffness * depth**1.5 * max(0.0, 1 - damping * y[1])
        return [y[1], force / MASS - GRAVITY]

    def surface(t: float, y: np.ndarray) -> float:
        del t
        return y[0] - RADIUS

    t, y, pressed = 0.0, np.array([height, 0.0]), height < RADIUS
    while True:
        crossing: Any = functools.partial(surface)
        crossing.terminal, crossing.direction = True, 1.0 if pressed else -1.0
        made = scipy.integrate.solve_ivp(
            functools.partial(rates, pressed),
            (t, end),
            y,
            method="DOP853",
            events=crossing,
            rtol=1e-13,
            atol=1e-14,
            max_step=1e-3 if pressed else np.inf,
        )
        t, y = made.t[-1], made.y[:, -1]
        if made.status != 1:
            return y
        pressed = not pressed


def test_bouncing_with_damping():
    """Four impacts."""
    system = disc(damping=0.2)
    end = run(system, 2.0)
    height, speed = bounce_oracle(1.0, 0.2, 2.0)
    assert np.allclose(end.q[-1, 1], height, rtol=0, atol=1e-8)
    assert np.allclose(end.v[-1, 1], speed, rtol=0, atol=1e-7)


@pytest.mark.parametrize("stiffness", [1e4, 1e5, 1e7, 1e9])
def test_no_impact_is_passed_over(stiffness: float):
    """A parabola is integrated exactly by steps of any length, until one ends deep in the floor."""
    damping = 0.15
    for end in (0.7, 1.3):
        height, speed = bounce_oracle(1.0, damping, end, stiffness)
        system = disc(stiffness=stiffness, damping=damping)
        found = run(system, end, rtol=1e-9, atol=1e-11)
        assert np.allclose(found.q[-1, 1], height, rtol=0, atol=1e-6)
        assert np.allclose(found.v[-1, 1], speed, rtol=0, atol=1e-5)


def test_a_step_does_not_lead_through_the_floor():
    """From the second apex one step of the default tolerance led to the end, 8.6 m below: the
    force at early stages, which have no weight, threw the others out of the floor."""
    system = disc(stiffness=2e5, restitution=0.5, impact_speed=4.0)
    found = run(system, 2.0, rtol=1e-8, atol=1e-10)
    damping = float(restitution_damping(jnp.asarray(0.5))) / 4.0
    height, _ = bounce_oracle(1.0, damping, 2.0, 2e5)
    assert np.allclose(found.q[-1, 1], height, rtol=0, atol=1e-6)


def row(
    count: int, speed: float, stiffness: float = 1e5, gap: float = 0.05, length: float = 1.0
) -> jm.MultibodySystem:
    """Equal discs in a row, the first of which moves towards the others."""
    places = [(0.0, 0.0), *((length + k * (2 * RADIUS + gap), 0.0) for k in range(count - 1))]
    bodies = [
        planar.Body(
            f"ball {k}", mass=MASS, inertia=1.0, position=x, velocity=(speed * (k == 0), 0.0)
        )
        for k, x in enumerate(places)
    ]
    contacts = [
        forces.Contact(
            f"touch {k}",
            (f"ball {k}", f"ball {k + 1}"),
            first=shapes.ContactSphere(RADIUS),
            second=shapes.ContactSphere(RADIUS),
            **(LAW | {"stiffness": stiffness}),
        )
        for k in range(count - 1)
    ]
    return jm.MultibodySystem(bodies, forces=contacts, gravity=[0.0, 0.0])


@pytest.mark.parametrize(
    "count", [3, *(pytest.param(n, marks=pytest.mark.thorough) for n in (2, 4, 5))]
)
def test_newtons_cradle(count: int):
    """One impact after the other: each ball hands its velocity on. Momentum and energy stay."""
    system = row(count, 2.0)
    found = run(system, 1.5)
    speeds = np.asarray(found.v[-1]).reshape(count, 3)
    assert np.allclose(speeds[-1], [2.0, 0.0, 0.0], rtol=0, atol=1e-8)
    assert np.allclose(speeds[:-1], 0.0, rtol=0, atol=1e-8)
    assert np.allclose(MASS * speeds[:, 0].sum(), 2.0 * MASS, rtol=1e-12)
    kinetic, potential = system.energy(found.q[-1], found.v[-1], 1.5)
    assert np.allclose(kinetic + potential, MASS * 2.0, rtol=1e-8)


def test_fast_bodies_do_not_pass_through_each_other():
    """At 1 km/s, 100 m apart and 0.2 m large."""
    found = run(row(3, 1e3, stiffness=1e11, length=100.0), 0.15, rtol=1e-8, atol=1e-8)
    speeds = np.asarray(found.v[-1]).reshape(3, 3)[:, 0]
    assert np.allclose(speeds, [0.0, 0.0, 1e3], rtol=0, atol=1e-2)


# --------------------------------------------------------------------------------------------------
# Rolling
# --------------------------------------------------------------------------------------------------


def test_a_sliding_sphere_ends_up_rolling():
    """At 5/7 of its speed for a rigid floor; the friction acts half the depth above its surface,
    about which the angular momentum stays."""
    depth = static_depth(MASS * GRAVITY)
    system = disc(height=RADIUS - depth, velocity=(1.0, 0.0), friction=0.3)
    found = run(system, 0.5, every=0.05)
    arm, inertia = RADIUS - depth / 2, 0.4 * MASS * RADIUS**2
    rolling = MASS * arm**2 / (MASS * arm**2 + inertia)
    assert np.allclose(found.v[-1, 0], rolling, rtol=0, atol=1e-8)
    assert np.allclose(found.v[-1, 2], -rolling / arm, rtol=0, atol=1e-7)
    assert np.allclose(found.v[-1, 0], 5 / 7, rtol=0, atol=2 * depth / RADIUS)
    # Until then it slides with mu g.
    assert np.allclose(found.v[1, 0], 1 - 0.3 * GRAVITY * 0.05, rtol=0, atol=1e-8)
    assert found.q[-1, 1] == pytest.approx(RADIUS - depth, abs=1e-9)


def test_rolling_resistance_stops_a_wheel():
    """A moment e N on a rolling wheel: m v' = F, I w' = -(F r + e N) with w = v / r in size, so
    that v' = -e N r / (I + m r^2)."""
    depth = static_depth(MASS * GRAVITY)
    arm, inertia, e = RADIUS - depth / 2, 0.4 * MASS * RADIUS**2, 0.002
    system = disc(
        height=RADIUS - depth,
        velocity=(1.0, 0.0),
        spin=-1.0 / arm,
        friction=0.5,
        rolling_resistance=e,
    )
    found = run(system, 1.0)
    slowing = e * MASS * GRAVITY * arm / (inertia + MASS * arm**2)
    # (A slip of some 1e-6 m/s lets tanh make the friction; tanh of the spin is 1 to 1e-16.)
    assert np.allclose(found.v[-1, 0], 1.0 - slowing, rtol=0, atol=1e-4)


# --------------------------------------------------------------------------------------------------
# Sticking and sliding
# --------------------------------------------------------------------------------------------------


MU, STIFF = 0.5, 1e6
STICK: dict[str, Any] = {
    "stiffness": STIFF,
    "damping": 5.0,
    "friction": MU,
    "tangential_stiffness": 1e5,
    "tangential_damping": 500.0,
}


def block(slope: float, speed: float = 0.0, **law: Any) -> jm.MultibodySystem:
    """A block on an incline, that presses it as at rest; it may begin to slide down."""
    normal = np.array([-math.sin(slope), math.cos(slope)])
    down = -np.array([math.cos(slope), math.sin(slope)])
    depth = static_depth(MASS * GRAVITY * math.cos(slope) / 2, STIFF)
    body = planar.Body(
        "block",
        mass=MASS,
        inertia=MASS * (0.4**2 + 0.02**2) / 12,
        position=normal * (0.01 - depth),
        angle=slope,
        velocity=speed * down,
    )
    contact = forces.Contact(
        "slope",
        ("block", "ground"),
        first=shapes.ContactBox([0.4, 0.02]),
        second=shapes.ContactHalfSpace(normal),
        **(STICK | law),
    )
    return jm.MultibodySystem([body], forces=[contact], gravity=[0.0, -GRAVITY])


def test_a_block_below_the_angle_of_friction_sticks():
    """tan(0.4) = 0.42 < 0.5. It bends the bristles by its weight and does not creep."""
    system = block(0.4)
    found = run(system, 4.0, times=[0.0, 2.0, 4.0], rtol=1e-9, atol=1e-12)
    down = -np.array([math.cos(0.4), math.sin(0.4)])
    way = (np.asarray(found.q[:, :2]) - np.asarray(found.q[0, :2])) @ down
    # Two corners, each with its spring.
    bent = MASS * GRAVITY * math.sin(0.4) / (2 * 1e5)
    assert way[2] == pytest.approx(bent, rel=0.2)
    assert abs(way[2] - way[1]) < 1e-10
    assert np.max(np.abs(found.v[-1])) < 1e-9
    held = contact_forces(found).states.friction[-1, 0]
    assert held == pytest.approx(MASS * GRAVITY * math.sin(0.4), rel=1e-8)


def test_a_block_above_the_angle_of_friction_slides():
    """With g (sin - mu cos)."""
    system = block(0.6, speed=1.0)
    found = run(system, 1.5, times=[0.0, 1.0, 1.5], rtol=1e-9, atol=1e-12)
    down = -np.array([math.cos(0.6), math.sin(0.6)])
    speeds = np.asarray(found.v[:, :2]) @ down
    acceleration = GRAVITY * (math.sin(0.6) - MU * math.cos(0.6))
    assert (speeds[2] - speeds[1]) / 0.5 == pytest.approx(acceleration, rel=1e-7)


def test_a_block_comes_to_rest_and_stays():
    """From 1 m/s on the level after v^2 / (2 mu g), where smooth friction would creep on."""
    system = block(0.0, speed=1.0)
    found = run(system, 1.5, times=[0.0, 1.0, 1.5], rtol=1e-9, atol=1e-12)
    assert -found.q[-1, 0] == pytest.approx(1 / (2 * MU * GRAVITY), abs=2e-4)
    assert abs(found.q[2, 0] - found.q[1, 0]) < 1e-10


def test_smooth_friction_creeps_as_it_says():
    """tanh(u / transition_speed) = tan(slope) / mu."""
    system = block(0.4, tangential_stiffness=None, tangential_damping=None, transition_speed=0.01)
    found = run(system, 1.0, rtol=1e-9, atol=1e-12)
    speed = -np.asarray(found.v[-1, :2]) @ [math.cos(0.4), math.sin(0.4)]
    assert speed == pytest.approx(0.01 * math.atanh(math.tan(0.4) / MU), rel=1e-4)


# --------------------------------------------------------------------------------------------------
# The law at single states
# --------------------------------------------------------------------------------------------------


_CORNERS = {
    2: np.array([[-1.0, -1.0], [1.0, -0.5], [0.3, 1.0]]),
    3: np.array([[-1.0, -1.0, 0.0], [1.0, -0.5, 0.1], [0.0, 1.0, -0.2], [0.1, 0.2, 1.0]]),
}


def random_shapes(pair: str, dimension: int, rng: np.random.Generator) -> list[Any]:
    def radius() -> float:
        return rng.uniform(0.5, 1.0)

    made = {
        "sphere": lambda: shapes.ContactSphere(radius(), at=rng.normal(size=dimension)),
        "capsule": lambda: shapes.ContactCapsule(radius(), points=rng.normal(size=(2, dimension))),
        "box": lambda: shapes.ContactBox(rng.uniform(0.5, 2.0, size=dimension)),
        "polytope": lambda: shapes.ContactPolytope(rng.uniform(1, 2) * _CORNERS[dimension]),
        "half_space": lambda: shapes.ContactHalfSpace(rng.normal(size=dimension)),
    }
    return [made[kind]() for kind in pair.split()]


def random_motion(dimension: int, rng: np.random.Generator) -> tuple[Any, Any]:
    """A frame and a twist."""
    origin, linear = (jnp.asarray(0.3 * rng.normal(size=dimension)) for _ in range(2))
    if dimension == 2:
        angles = (jnp.asarray(rng.normal()) for _ in range(2))
        return PlanarFrame(origin, next(angles)), PlanarTwist(linear, next(angles))
    rotation = jnp.asarray(Rotation.from_quat(rng.normal(size=4)).as_matrix())
    return SpatialFrame(origin, rotation), SpatialTwist(linear, jnp.asarray(rng.normal(size=3)))


SHAPE_PAIRS = (
    "sphere sphere",
    "sphere capsule",
    "capsule capsule",
    "capsule sphere",
    "sphere half_space",
    "half_space capsule",
    "box half_space",
    "box sphere",
    "capsule box",
    "sphere polytope",
    "polytope half_space",
)


@eqx.filter_jit
def balance(load: Any, frames: Any, twists: Any) -> Any:
    """Wrenches, the contact, and the rate of the stored energy."""
    rates = tuple(f.rate(w) for f, w in zip(frames, twists, strict=True))
    _, stored = jax.jvp(load.potential, (frames,), (rates,))
    return load.wrenches(frames, twists, 0.0), load.contact_state(frames, twists), stored


def moment(arm: Any, force: Any) -> Any:
    """Of a force about the origin, a number in the plane."""
    if len(arm) == 3:
        return np.cross(arm, force)
    return float(arm[0] * force[1] - arm[1] * force[0])


# One order and one dimension of each pair in the usual run, both of some.
USUAL = {"sphere sphere", "sphere capsule", "capsule capsule", "half_space capsule"}
USUAL |= {"box half_space", "box sphere", "capsule box", "sphere polytope", "polytope half_space"}
BOTH = {"box half_space", "capsule box"}


@pytest.mark.parametrize(
    ("pair", "dimension"),
    [
        pytest.param(
            pair,
            dimension,
            marks=[] if pair in (USUAL if dimension == 3 else BOTH) else pytest.mark.thorough,
        )
        for pair in SHAPE_PAIRS
        for dimension in (2, 3)
    ],
)
def test_wrenches_balance_and_their_power_is_accounted_for(pair: str, dimension: int):
    rng = np.random.default_rng(sum(map(ord, pair)) + dimension)
    touched = 0
    for _ in range(12):
        first, second = random_shapes(pair, dimension, rng)
        contact = forces.Contact(
            "c",
            ("a", "b"),
            first=first,
            second=second,
            **(LAW | {"friction": 0.6, "restitution": 0.5, "rolling_resistance": 0.1}),
        )
        frames, twists = zip(*(random_motion(dimension, rng) for _ in range(2)), strict=True)
        (one, two), state, stored = balance(contact.load(), frames, twists)
        if pair == "capsule capsule" and state.gap < -first.radius - second.radius + 1e-9:
            # Axes that cross have no normal, as they often do in the plane.
            continue
        touched += bool(state.touching)
        assert np.allclose(one.linear, -two.linear, rtol=0, atol=1e-9)
        arms = [np.asarray(f.origin) for f in frames]
        moments = [
            moment(arm, w.linear) + np.asarray(w.angular)
            for arm, w in zip(arms, (one, two), strict=True)
        ]
        assert np.allclose(moments[0], -moments[1], rtol=0, atol=1e-8)
        # The told wrench is that on the first body.
        assert np.allclose(state.force, one.linear)
        told = moment(state.point, state.force) + np.asarray(state.moment)
        assert np.allclose(told, moments[0], rtol=1e-9, atol=1e-9)
        power = sum(
            np.sum(np.asarray(w.linear) * u.linear) + np.sum(np.asarray(w.angular) * u.angular)
            for w, u in zip((one, two), twists, strict=True)
        )
        lost = state.damping_loss + state.friction_loss
        # (Powers are of 1e5 W, and points of two capsules exact to 1e-10 or so.)
        atol = 1e-3 if pair == "capsule capsule" else 1e-5
        assert np.allclose(power, -stored - lost, rtol=1e-9, atol=atol)
        assert min(float(state.damping_loss), float(state.friction_loss)) >= -1e-9
    assert touched >= 3


@pytest.mark.parametrize(
    ("pair", "law"),
    [
        ("sphere half_space", "bristles"),
        *(
            pytest.param(pair, law, marks=pytest.mark.thorough)
            for pair in ("sphere half_space", "sphere sphere", "capsule capsule")
            for law in ("smooth", "bristles")
        ),
    ],
)
def test_derivatives_are_finite_where_nothing_moves_and_surfaces_just_touch(pair: str, law: str):
    kinds = {
        "sphere": lambda x: shapes.ContactSphere(0.5, at=[x, 0.0, 0.0]),
        "capsule": lambda x: shapes.ContactCapsule(0.5, points=[[x, 0.0, -1.0], [x, 0.0, 1.0]]),
        "half_space": lambda x: shapes.ContactHalfSpace([-1.0, 0.0, 0.0], at=[0.5, 0.0, 0.0]),
    }
    first, second = (kinds[kind](x) for kind, x in zip(pair.split(), (0.0, 1.0), strict=True))
    keys = {"smooth": {"transition_speed": 0.1}, "bristles": {"tangential_stiffness": 1e4}}[law]
    contact = forces.Contact(
        "c",
        ("a", "b"),
        first=first,
        second=second,
        friction=0.5,
        stiffness=1e5,
        rolling_resistance=0.1,
        rolling_speed=0.1,
        **keys,
    )
    body = SpatialFrame(jnp.zeros(3), jnp.eye(3))
    frames = contact.placements((body, body))
    twist = SpatialTwist(jnp.zeros(3), jnp.zeros(3))
    load = contact.load()

    def numbers(given: Any) -> Any:
        frames, twists, states = given
        if isinstance(load, BristleContactLoad):
            found: Any = load.wrenches_with(frames, twists, states, 0.0)
            found = (found, load.state_rates(frames, twists, states, 0.0))
        else:
            assert isinstance(load, ContactLoad)
            found = load.wrenches(frames, twists, 0.0)
        return jnp.concatenate([x.ravel() for x in jax.tree.leaves(found)])

    slopes = jax.jit(lambda given: (jax.jacfwd(numbers)(given), jax.jacrev(numbers)(given)))
    for shift in (0.0, 1e-3, 1.0):
        # The last one with coinciding centres.
        moved = eqx.tree_at(lambda f: f[0].origin, frames, frames[0].origin + shift * np.eye(3)[0])
        given = (moved, (twist, twist), jnp.zeros(3))
        for forward, reverse in zip(*map(jax.tree.leaves, slopes(given)), strict=True):
            assert np.all(np.isfinite(forward))
            # (The middle of parallel capsules moves by 1e10 times a tilt.)
            size = max(1.0, float(np.max(np.abs(forward))))
            assert np.allclose(forward, reverse, rtol=1e-9, atol=1e-9 * size + 1e-5)


def energies_of(system: jm.MultibodySystem, found: jm.results.Trajectory) -> np.ndarray:
    """Kinetic and potential energy at the saved times (J)."""
    kinetic, potential = jax.vmap(lambda q, v: system.energy(q, v, 0.0))(found.q, found.v)
    return np.asarray(kinetic + potential)


def test_the_energy_is_accounted_for():
    """Of a disc that falls, skids and rolls: what is lost is the integral of both powers."""
    system = disc(height=RADIUS + 0.005, velocity=(0.5, 0.0), friction=0.2, damping=0.5)
    found = run(system, 0.12, every=0.12 / 4000)
    energies = energies_of(system, found)
    states = contact_forces(found).states
    lost = scipy.integrate.simpson(
        np.asarray(states.damping_loss + states.friction_loss)[:, 0], x=np.asarray(found.times)
    )
    assert float(lost) > 0.02
    # (Powers have kinks where contacts begin, so that Simpson's rule is of 1e-7 here.)
    assert np.allclose(energies[0] - energies[-1], lost, rtol=1e-5)


def test_bristles_below_the_limit_store_energy():
    """A block that swings on undamped bristles loses nothing."""
    system = block(0.2, damping=0.0, tangential_damping=0.0)
    found = run(system, 0.2, every=0.01)
    energies = energies_of(system, found)
    assert np.ptp(np.asarray(found.q[:, 0])) > 1e-5
    assert np.allclose(energies, energies[0], rtol=0, atol=1e-8)


# --------------------------------------------------------------------------------------------------
# Derivatives across an impact
# --------------------------------------------------------------------------------------------------


@pytest.mark.thorough
def test_derivatives_across_an_impact():
    """Of the state after a bounce with friction, by height, stiffness and friction: forward,
    reverse, and by differences."""
    given = jnp.array([0.3, 1e5, 0.2])

    def end(numbers: Any, adjoint: Any = None) -> Any:
        height, stiffness, friction = numbers
        system = disc(
            height=height, velocity=(0.5, 0.0), stiffness=stiffness, friction=friction, damping=0.3
        )
        keys: dict[str, Any] = {} if adjoint is None else {"adjoint": adjoint}
        found = run(system, 0.4, **keys)
        return jnp.concatenate([found.q[-1], found.v[-1]])

    forward = jax.jacfwd(lambda x: end(x, dfx.ForwardMode()))(given)
    reverse = jax.jacrev(end)(given)
    assert np.all(np.isfinite(forward))
    assert np.allclose(forward, reverse, rtol=1e-7, atol=1e-9)
    for k, step in enumerate((1e-5, 1.0, 1e-4)):
        change = step * np.eye(3)[k]
        slope = (end(given + change) - end(given - change)) / (2 * step)
        assert np.allclose(forward[:, k], slope, rtol=2e-4, atol=1e-5 * np.max(np.abs(slope)))


# --------------------------------------------------------------------------------------------------
# Loads to other questions
# --------------------------------------------------------------------------------------------------


def lever(**law: Any) -> jm.Model:
    """A bar on a hinge, whose tip rests on a floor."""
    bar = planar.Body("bar", mass=MASS, inertia=0.1, position=(0.5, 0.0))
    hinge = planar.Revolute("A", ("ground", "bar"), at=(0.0, 0.0))
    tip = forces.Contact(
        "tip",
        ("bar", "ground"),
        first=shapes.ContactSphere(0.0, at=[1.0, 0.0]),
        second=floor(),
        **({"stiffness": 1e5} | law),
    )
    return jm.Model("lever", 2, bodies=[bar], joints=[hinge], forces=[tip], gravity=[0.0, -GRAVITY])


@pytest.mark.thorough
def test_a_contact_carries_load_and_no_constraint():
    system = lever().system()
    found = jm.equilibrium(system, system.reference_q)
    depth = static_depth(MASS * GRAVITY / 2)
    assert np.allclose(-np.sin(found.q[2]), depth, rtol=1e-6)
    carried = jm.reactions(system, found.q, jnp.zeros(3))
    assert np.allclose(carried.wrench("A").force[1], MASS * GRAVITY / 2, rtol=1e-6)
    report = jm.analyze(system, found.q)
    assert (int(report.rank), int(report.mobility)) == (2, 1)


def test_an_equilibrium_of_what_sticks_is_refused():
    system = block(0.3)
    with pytest.raises(ValueError, match=r"friction that sticks .*contact 'slope'"):
        jm.equilibrium(system, system.reference_q)


def test_the_table_of_a_run():
    found = run(disc(height=0.3), 1.0, every=1e-3)
    told = contact_forces(found)
    text = str(told)
    # It falls for sqrt(2 h / g) = 0.202 s, and twice as long until the second impact.
    assert re.search(r"floor +disc and ground +2 +0\.202 ", text), text
    # The elastic energy there is m g times the whole fall.
    depth = 0.0
    for _ in range(20):
        depth = (2.5 * MASS * GRAVITY * (0.2 + depth) / 1e5) ** 0.4
    assert told.of("floor").least_gap[0] == pytest.approx(-depth, rel=1e-3)
    told_data = told.described().data()
    assert told_data["floor"]["shapes"] == ["sphere", "half-space"]
    assert len(told_data["floor"]["gap"]) == 1001
    with pytest.raises(ValueError, match="there is no contact 'roof'; there are floor"):
        told.of("roof")
    with pytest.raises(ValueError, match="many runs"):
        contact_forces(jax.tree.map(lambda x: x[None], found))
    alone = eqx.tree_at(lambda x: x.system.force_groups, found, ())
    with pytest.raises(ValueError, match="has no contact"):
        contact_forces(alone)


def test_a_sub_assembly_is_moved_with_its_contacts():
    """Gaps of all shapes are the same wherever it is put; a number within a shape has a name."""
    ball = {"name": "ball", "mass": 1.0, "inertia": [0.1] * 3, "position": [0.0, 0.0, 1.0]}
    brick = {"name": "brick", "mass": 1.0, "inertia": [0.1, 0.2, 0.3], "position": [0.0, 0.0, 5.0]}
    space = {"type": "half_space", "normal": [0.0, 0.0, 1.0], "at": [0.0, 0.0, 0.0]}
    sphere = {"type": "sphere", "radius": 0.2}
    box: dict[str, Any] = {"type": "box", "size": [0.1, 0.2, 0.3]}
    turned = box | {"at": [0.0, 0.0, 4.0], "orientation": [0.8, 0.0, 0.0, 0.6]}
    rod = {"type": "capsule", "radius": 0.1, "points": [[0.0, 0.0, 4.0], [0.0, 1.0, 4.0]]}
    pairs = [
        (["ball", "ground"], sphere, space),
        (["brick", "ground"], box, space),
        (["brick", "ball"], turned, sphere),
        (["brick", "ball"], rod, sphere),
    ]
    force = [
        {"name": f"c{k}", "type": "contact", "bodies": bodies, "first": a, "second": b}
        | {"stiffness": 1e5}
        for k, (bodies, a, b) in enumerate(pairs)
    ]
    gaps = []
    for place in ({}, {"position": [1.0, 2.0, 3.0], "orientation": [0.6, 0.64, 0.48, 0.0]}):
        content = {
            "schema": 1,
            "dimension": 3,
            "assembly": [{"name": "toy", "body": [ball, brick], "force": force}],
            "use": [{"name": "u", "assembly": "toy", **place}],
        }
        model = jm.io.model_from_tables(content)
        system = model.system()
        found = system.contact_states(system.reference_q, system.initial_v, 0.0)
        order = [info.name for info in system.contacts]
        gaps.append(dict(zip(order, found.gap.tolist(), strict=True)))
        wider = jm.vary(model, {"forces.u c3.first.radius": 0.3}).forces[3]
        assert isinstance(wider, forces.Contact)
        assert isinstance(wider.first, shapes.ContactCapsule)
        assert float(wider.first.radius) == 0.3
    expected = {"u c0": 0.8, "u c1": 4.85, "u c2": 2.65, "u c3": 2.7}
    for own in gaps:
        assert own == pytest.approx(expected, abs=1e-12)


def test_overlaps_at_the_start_are_told():
    system = disc(height=0.08)
    found = run(system, 0.001)
    assert any(
        "contact 'floor': the shapes of 'disc' and 'ground' overlap by 0.02 m" in line
        for line in found.remarks()
    )
    assert not any("overlap" in line for line in run(disc(), 0.001).remarks())


# --------------------------------------------------------------------------------------------------
# Refusals
# --------------------------------------------------------------------------------------------------


BALL, BOX = shapes.ContactSphere(0.1), shapes.ContactBox([1.0, 1.0])
ROD = shapes.ContactCapsule(0.1, points=[[0.0, 0.0], [1.0, 0.0]])
REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "box and box": ({"first": BOX, "second": BOX}, "contact of a box with a box is not known"),
    "box and polytope": (
        {"first": BOX, "second": shapes.ContactPolytope([[0, 0], [1, 0], [0, 1]])},
        "box with a polytope is not known",
    ),
    "two half-spaces": ({"first": floor(), "second": floor()}, "half-space with a half-space"),
    "two dimensions": (
        {"first": BOX, "second": shapes.ContactHalfSpace([0.0, 0.0, 1.0])},
        "first is of dimension 2 and second of dimension 3",
    ),
    "both dampings": (
        {"damping": 0.1, "restitution": 0.5, "impact_speed": 1.0},
        "`damping` .*or `restitution`",
    ),
    "a restitution alone": ({"restitution": 0.5}, "restitution is given without `impact_speed`"),
    "a speed alone": ({"impact_speed": 0.5}, "impact_speed is given without `restitution`"),
    "friction alone": ({"friction": 0.5}, "friction needs `transition_speed`"),
    "two frictions": (
        {"friction": 0.5, "transition_speed": 1.0, "tangential_stiffness": 1.0},
        "one of the two",
    ),
    "no coefficient": ({"transition_speed": 0.5}, "given without `friction`"),
    "a damper alone": ({"tangential_damping": 0.5}, "given without `tangential_stiffness`"),
    "an arm alone": ({"rolling_resistance": 0.5}, "given without `rolling_speed`"),
    "no dimension": (
        {"second": BALL, "friction": 0.5, "tangential_stiffness": 1.0},
        "needs the dimension of the space",
    ),
    "itself": ({"bodies": ("disc", "disc")}, "bodies"),
    "exponent": ({"exponent": 0.5}, "exponent must be at least 1"),
    "restitution": ({"restitution": 1.5, "impact_speed": 1.0}, "restitution must be at most 1"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refusals(case: str):
    changes, said = REFUSED[case]
    keys: dict[str, Any] = {
        "bodies": ("disc", "ground"),
        "first": BALL,
        "second": floor(),
        "stiffness": 1e5,
    }
    with pytest.raises(ValueError, match=said) as caught:
        forces.Contact("c", **(keys | changes))
    assert len(str(caught.value).splitlines()) == 1


def test_shapes_of_another_dimension_than_the_bodies():
    body = spatial.Body("disc", mass=1.0, inertia=[1.0] * 3, position=(0.0, 0.0, 0.0))
    contact = forces.Contact("c", ("disc", "ground"), first=BALL, second=floor(), stiffness=1.0)
    with pytest.raises(ValueError, match=r"'c': second \(half-space\) is of dimension 2"):
        jm.MultibodySystem([body], forces=[contact])


def test_a_capsule_without_length():
    with pytest.raises(ValueError, match="two different points"):
        shapes.ContactCapsule(0.1, points=[[1.0, 2.0], [1.0, 2.0]])


def test_a_box_turned_in_the_other_dimension():
    with pytest.raises(ValueError, match="`angle` and no `orientation`"):
        shapes.ContactBox([1.0, 1.0], orientation=[1.0, 0.0, 0.0, 0.0])


# --------------------------------------------------------------------------------------------------
# In space
# --------------------------------------------------------------------------------------------------


@pytest.mark.thorough
@pytest.mark.parametrize("slope", [0.4, 0.6])
def test_a_box_on_an_incline_in_space(slope: float):
    """On four corners, on an incline that falls along an oblique direction of the world."""
    turn = Rotation.from_euler("ZY", [0.7, slope]).as_matrix()
    down, normal = turn[:, 0], turn[:, 2]
    depth = static_depth(MASS * GRAVITY * math.cos(slope) / 4, STIFF)
    size = np.array([0.4, 0.3, 0.02])
    moments = MASS * (np.sum(size**2) - size**2) / 12
    body = spatial.Body(
        "block",
        mass=MASS,
        inertia=moments,
        position=normal * (0.01 - depth),
        rotation=turn,
        velocity=down if slope > 0.5 else np.zeros(3),
    )
    contact = forces.Contact(
        "slope",
        ("block", "ground"),
        first=shapes.ContactBox(size),
        second=shapes.ContactHalfSpace(normal),
        **STICK,
    )
    system = jm.MultibodySystem([body], forces=[contact], gravity=[0.0, 0.0, -GRAVITY])
    found = run(system, 2.0, times=[0.0, 1.0, 2.0], rtol=1e-9, atol=1e-12)
    speeds = np.asarray(found.v[:, :3]) @ down
    if slope < 0.5:
        assert np.linalg.norm(found.q[2, :3] - found.q[1, :3]) < 1e-9
        assert abs(speeds[2]) < 1e-9
    else:
        acceleration = GRAVITY * (math.sin(slope) - MU * math.cos(slope))
        assert speeds[2] - speeds[1] == pytest.approx(acceleration, rel=1e-6)
    assert np.max(np.abs(found.q[2, 3:7] - found.q[0, 3:7])) < 1e-3


@pytest.mark.thorough
@pytest.mark.parametrize(
    "friction",
    [{"transition_speed": 1e-3}, {"tangential_stiffness": 1e5, "tangential_damping": 200.0}],
    ids=str,
)
def test_a_sliding_sphere_ends_up_rolling_in_space(friction: dict[str, Any]):
    """With a spin about an oblique axis: the angular momentum about the contact point stays, and
    so does the spin about the vertical."""
    depth = static_depth(MASS * GRAVITY)
    inertia = 0.4 * MASS * RADIUS**2
    spin = np.array([3.0, -4.0, 5.0])
    body = spatial.Body(
        "ball",
        mass=MASS,
        inertia=[inertia] * 3,
        position=(0.0, 0.0, RADIUS - depth),
        velocity=(1.0, 0.5, 0.0),
        angular_velocity=spin,
    )
    contact = forces.Contact(
        "floor",
        ("ball", "ground"),
        first=shapes.ContactSphere(RADIUS),
        second=shapes.ContactHalfSpace([0.0, 0.0, 1.0]),
        stiffness=1e5,
        damping=1.0,
        friction=0.3,
        **friction,
    )
    system = jm.MultibodySystem([body], forces=[contact], gravity=[0.0, 0.0, -GRAVITY])
    found = run(system, 1.0, rtol=1e-9, atol=1e-12)
    arm = RADIUS - depth / 2
    # v = w x (arm ez) at the end: m arm (ez x v) + I w stays.
    kept = MASS * arm * np.cross([0, 0, 1], [1.0, 0.5, 0.0]) + inertia * spin
    w = kept[:2] / (inertia + MASS * arm**2)
    expected = arm * np.array([w[1], -w[0]])
    assert np.allclose(found.v[-1, :2], expected, rtol=0, atol=1e-7)
    turned = Rotation.from_quat(np.roll(np.asarray(found.q[-1, 3:7]), -1)).as_matrix()
    assert (turned @ np.asarray(found.v[-1, 3:]))[2] == pytest.approx(5.0, abs=1e-8)


# --------------------------------------------------------------------------------------------------
# Patterns of bodies
# --------------------------------------------------------------------------------------------------


def three_balls(*contacts: Any) -> jm.MultibodySystem:
    """Two feet in the floor, and a head above one of them."""
    places = {"foot a": (0.0, 0.0, 0.09), "foot b": (0.15, 0.0, 0.08), "head": (0.0, 0.0, 0.25)}
    bodies = [
        spatial.Body(name, mass=1.0, inertia=(0.1, 0.1, 0.1), position=place)
        for name, place in places.items()
    ]
    return jm.MultibodySystem(bodies, forces=contacts)


def pattern(bodies: Any, **changed: Any) -> Any:
    ball, plane = shapes.ContactSphere(0.1), shapes.ContactHalfSpace([0.0, 0.0, 1.0])
    given: dict[str, Any] = {"first": ball, "second": plane, "stiffness": 1e4}
    return forces.Contact("c", bodies, **(given | changed))


def test_a_pattern_means_each_body_and_each_pair_once():
    ball = {"second": shapes.ContactSphere(0.1)}
    system = three_balls(pattern(("foot *", "ground")))
    assert [own.name for own in system.contacts] == [
        "c of foot a and ground",
        "c of foot b and ground",
    ]
    force = jax.jit(lambda q: system.force(q, jnp.zeros(18), 0.0))
    push = np.asarray(force(system.reference_q)).reshape(3, 6)
    wanted = [1e4 * 0.01**1.5, 1e4 * 0.02**1.5, 0.0]
    np.testing.assert_allclose(push[:, 2], wanted, rtol=1e-9)
    among = three_balls(pattern(("*", "*"), **ball))
    pairs = [own.bodies for own in among.contacts]
    assert pairs == [("foot a", "foot b"), ("foot a", "head"), ("foot b", "head")]
    # A name with such a sign in it is a name.
    odd = spatial.Body("foot [a]", mass=1.0, inertia=(0.1, 0.1, 0.1), position=(0.0, 0.0, 0.0))
    one = jm.MultibodySystem([odd], forces=[pattern(("foot [a]", "ground"))])
    assert one.contacts[0].name == "c"


@pytest.mark.parametrize(
    ("bodies", "changed", "words"),
    [
        (("hand *", "ground"), {}, "force 'c': pattern 'hand *' matches no body; there are foot a"),
        (("head*", "he?d"), {}, "mean one body alone"),
        (
            ("foot *", "ground"),
            {"first": shapes.ContactSphere(0.1, at=[0, 0, 0])},
            "first stands at",
        ),
        (
            ("ground", "foot *"),
            {
                "first": shapes.ContactHalfSpace([0, 0, 1]),
                "second": shapes.ContactCapsule(0.1, points=[[0, 0, 0], [0, 0, 1]]),
            },
            "second stands at a point of the world",
        ),
    ],
)
def test_patterns_that_cannot_be(bodies: Any, changed: Any, words: str):
    with pytest.raises(ValueError, match=re.escape(words)):
        three_balls(pattern(bodies, **changed))


@pytest.mark.thorough
def test_lint_knows_the_bodies_of_a_pattern():
    bodies = [
        spatial.Body(f"foot {k}", mass=1.0, inertia=(0.1, 0.1, 0.1), position=(k, 0.0, 0.09))
        for k in (1, 2)
    ]
    model = jm.Model("feet", 3, bodies=bodies, forces=[pattern(("foot *", "ground"))])
    assert "JM501" not in str(jm.lint(model))


@pytest.mark.parametrize(
    ("vertices", "words"),
    [
        ([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [1.0, 1.0, 0.0]], "in one plane"),
        ([[0.0, 0.0], [1.0, 1.0], [2.0, 2.0]], "on one line"),
        ([[0.0, 0.0], [1.0, 1.0]], "at least 3 world points"),
        ([0.0, 1.0, 2.0], "at least 3 world points"),
    ],
)
def test_polytopes_that_cannot_be(vertices: Any, words: str):
    with pytest.raises(ValueError, match=words):
        shapes.ContactPolytope(vertices)
