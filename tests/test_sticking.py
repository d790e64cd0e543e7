"""Friction of joints that sticks: closed forms, an ideal stick-slip motion and an integration of
SciPy's, derivatives, and what refuses it."""

import math
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from representatives import representatives
from scipy.integrate import solve_ivp

import jaxmbs as jm
from jaxmbs import forces, motions, MultibodySystem, planar, simulate, spatial
from jaxmbs.io import model_from_tables, read_model, write_model


G = 9.81


def close(value, expected, tolerance):
    assert np.max(np.abs(np.asarray(value) - np.asarray(expected))) < tolerance


def run(system, end, **options):
    return simulate(system, system.reference_q, system.initial_v, end=end, **options)


# ---------------------------------------------------------------------------------------------
# The law
# ---------------------------------------------------------------------------------------------


def held(vector):
    size = np.linalg.norm(vector)
    return vector if size <= 1 else vector / size


@pytest.mark.parametrize("bent", [0.3, 0.9, 4.0])
def test_the_law_in_space(bent, rng):
    """A cylindrical joint: friction mu N (z + T u) / s, at most mu N, along the axis and about it,
    and the rate of z, from the reaction by hand."""
    mu, radius, presliding, time = 0.3, 0.05, 2e-3, 4e-3
    body = spatial.Body("b", mass=1.0, inertia=(0.1, 0.2, 0.3), position=(0, 0, 0))
    rub = forces.CoulombFriction(
        "rub", "J", coefficient=mu, radius=radius, presliding=presliding, relaxation_time=time
    )
    joint = spatial.Cylindrical("J", ("ground", "b"), at=(0, 0, 0), axis=(0, 0, 1))
    system = MultibodySystem([body], [joint], forces=[rub])
    assert [x.name for x in system.structure.coordinates[7:]] == ["rub.z1", "rub.z2"]
    z = bent * presliding * rng.uniform(-0.7, 0.7, 2)
    q = system.reference_q.at[7:].set(z)
    v = jnp.zeros(6).at[2].set(0.1).at[5].set(-3.0)
    slip = np.array([0.1, -3.0 * radius])
    multipliers = jnp.asarray(rng.normal(size=len(system.structure.rows)))
    push = -np.asarray(system.constraint_matrix(q, v, 0.0)).T @ np.asarray(multipliers)
    size = mu * np.linalg.norm(push[:2])
    along = -size * held((z + time * slip) / presliding)
    found = system.friction(q, v, 0.0, multipliers)
    close(found, [0, 0, along[0], 0, 0, radius * along[1]], 1e-12)
    beyond = z - presliding * held(z / presliding)
    close(system.flow(q, v, 0.0)[7:], slip - beyond / time, 1e-12)
    maps = system.friction_maps(q, v, 0.0)
    close(maps.direction[0, :2], held((z + time * slip) / presliding), 1e-12)


NASTY = [(0.0, 0.0), (1.0, 0.0), (-1.0, 0.0), (1.0, 1.0), (0.0, 1e-2)]


@pytest.mark.parametrize("kind", ["coulomb", "rate"])
def test_finite_derivatives_where_the_law_has_corners(kind):
    """At rest, exactly at the limit, and without pressure."""
    system = block(0.3, 0.0, kind=kind)
    rows = len(system.structure.rows)

    @jax.jit
    def both(z, u, pressed):
        def load(z, u, pressed):
            q = system.reference_q.at[3].set(z * 1e-4)
            v = system.initial_v.at[0].set(u)
            own = system.friction(q, v, 0.0, jnp.full(rows, pressed)) + system.force(q, v, 0.0)
            return jnp.concatenate([own, system.flow(q, v, 0.0)])

        return tuple(take(load, (0, 1, 2))(z, u, pressed) for take in (jax.jacfwd, jax.jacrev))

    for z, u in NASTY:
        for pressed in (0.0, 1.0):
            forward, reverse = both(z, u, pressed)
            assert all(np.all(np.isfinite(x)) for x in forward)
            for one, other in zip(forward, reverse, strict=True):
                close(one, other, 1e-9)


# ---------------------------------------------------------------------------------------------
# What is loaded stands still, and slides beyond
# ---------------------------------------------------------------------------------------------


def block(mu, slope, kind="coulomb", presliding=1e-4, **keys):
    """A block of 2 kg on a slope (rad); "rate": with friction of the same size that the reaction
    has no part in."""
    along = np.array([math.cos(slope), -math.sin(slope)])
    body = planar.Body("block", mass=2.0, inertia=0.1, position=(0.0, 0.0), velocity=(0.0, 0.0))
    guide = planar.Translational("J", ("ground", "block"), (0.0, 0.0), along)
    if kind == "coulomb":
        rub: Any = forces.CoulombFriction("rub", "J", coefficient=mu, presliding=presliding, **keys)
    else:
        size = mu * 2.0 * G * math.cos(slope)
        rub = forces.JointFriction(
            "rub", "J", "translation", sliding=size, presliding=presliding, **keys
        )
    return MultibodySystem([body], [guide], forces=[rub], gravity=(0.0, -G))


@pytest.mark.parametrize("kind", representatives(["coulomb", "rate"], "coulomb"))
def test_a_block_stands_still_or_slides(kind):
    """Below the angle of friction it stands, with z = presliding tan(slope) / mu, for as long as
    one looks (put there suddenly, it overshoots and slips a little first); beyond, it slides with
    g (sin - mu cos)."""
    slope, mu = 0.3, 0.5
    found = run(block(mu, slope, kind), 60.0, times=[0.0, 1.0, 2.0, 60.0])
    moved = np.hypot(*np.asarray(found.q[:, :2]).T)
    close(found.q[1:, 3], 1e-4 * math.tan(slope) / mu, 1e-9)
    assert moved[1] < 2e-4
    close(moved[2:], moved[1], 1e-9)
    close(found.v[2:], 0.0, 1e-8)
    mu = 0.2
    found = run(block(mu, slope, kind), 1.0, times=[0.0, 0.5, 1.0], rtol=1e-9, atol=1e-11)
    speed = np.hypot(*np.asarray(found.v[1:, :2]).T)
    expected = G * (math.sin(slope) - mu * math.cos(slope))
    close((speed[1] - speed[0]) / 0.5, expected, 1e-7)


@pytest.mark.thorough
def test_a_drawer_that_jams_stands():
    """N = 2 P d / L: with 2 mu d / L > 1 the push P is held at z = s L / (2 mu d)."""
    mu, arm, length, presliding, push = 0.5, 0.3, 0.2, 1e-4, 10.0
    body = planar.Body("drawer", mass=2.0, inertia=0.1, position=(0.0, 0.0))
    guide = planar.Translational("guide", ("ground", "drawer"), (0.0, 0.0), (1.0, 0.0))
    rub = forces.CoulombFriction(
        "rub", "guide", coefficient=mu, length=length, presliding=presliding
    )
    pushing = forces.Applied("push", "drawer", at=(0.0, arm), force=(push, 0.0))
    system = MultibodySystem([body], [guide], forces=[rub, pushing])
    found = run(system, 5.0, times=[0.0, 1.0, 5.0])
    close(found.q[1:, 3], presliding * length / (2 * mu * arm), 1e-9)
    close(found.q[2, 0], found.q[1, 0], 1e-9)
    assert float(found.q[2, 0]) < 2 * presliding


@pytest.mark.thorough
def test_a_door_with_a_friction_hinge():
    """On a hinge that leans by a little, gravity turns the door unless friction holds it: N is the
    force across the axis, from the weight and from the couple on two bearings."""
    lean, radius, length, mass, width = 0.05, 0.01, 1.2, 20.0, 0.4
    axis = (math.sin(lean), 0.0, math.cos(lean))
    body = spatial.Body("door", mass=mass, inertia=(1.0, 1.0, 1.0), position=(0.0, width, 0.0))
    hinge = spatial.Revolute("hinge", ("ground", "door"), at=(0, 0, 0), axis=axis)
    torque = mass * G * math.sin(lean) * width
    pressed = np.hypot(mass * G * math.sin(lean) / 2, mass * G * math.cos(lean) * width / length)
    for factor in (1.1, 0.9):
        # The torque turns it about its axis by m g sin(lean) width, N = |R1| + |R2|.
        mu = torque / (factor * radius * 2 * pressed)
        rub = forces.CoulombFriction(
            "rub",
            "hinge",
            coefficient=mu * factor**2,
            radius=radius,
            presliding=1e-5,
            relaxation_time=0.05,
            length=length,
        )
        system = MultibodySystem([body], [hinge], forces=[rub], gravity=(0.0, 0.0, -G))
        found = run(system, 2.0, times=[0.0, 1.0, 2.0])
        spin = np.asarray(found.v[:, 3:]) @ np.array(axis)
        if factor > 1:
            close(spin[-1], 0.0, 1e-6)
            # z / presliding = torque / (mu N radius).
            close(abs(found.q[-1, -1]), 1e-5 / factor, 1e-8)
        else:
            assert abs(spin[-1]) > 0.01


@pytest.mark.thorough
def test_a_pad_on_a_plane_sticks_in_every_direction():
    body = spatial.Body("pad", mass=2.0, inertia=(0.1, 0.1, 0.1), position=(0, 0, 0))
    plane = spatial.PointOnPlane("plane", ("pad", "ground"), at=(0, 0, 0), axis=(0, 0, 1))
    rub = forces.CoulombFriction("rub", "plane", coefficient=0.4, presliding=1e-4)
    push = np.array([3.0, -4.0, 0.0])
    pushing = forces.Applied("push", "pad", at=(0, 0, 0), force=push)
    system = MultibodySystem([body], [plane], forces=[rub, pushing], gravity=(0, 0, -G))
    found = run(system, 1.0, times=[0.0, 0.5, 1.0])
    # Slip is that of the second body, the ground.
    size = 1e-4 * 5.0 / (0.4 * 2.0 * G)
    close(np.linalg.norm(found.q[-1, -2:]), size, 1e-9)
    close(found.v[-1], 0.0, 1e-6)
    moved = np.asarray(found.q[-1, :3])
    assert np.linalg.norm(moved) < 2e-4
    close(moved, np.linalg.norm(moved) * push / 5.0, 1e-9)


@pytest.mark.thorough
def test_an_arm_at_rest_in_the_friction_of_its_joints():
    """Two links and one pattern: they hold what gravity asks for below the breakaway torque, each
    with a displacement of its own, and no creep."""
    bodies = [
        planar.Body(name, mass=1.0, inertia=0.05, position=(0.25 + 0.5 * k, 0.0))
        for k, name in enumerate("ab")
    ]
    joints = [
        planar.Revolute("joint 1", ("ground", "a"), (0.0, 0.0)),
        planar.Revolute("joint 2", ("a", "b"), (0.5, 0.0)),
    ]
    dry = forces.JointFriction("dry", "joint *", sliding=12.0, viscous=0.5, presliding=1e-3)
    system = MultibodySystem(bodies, joints, forces=[dry], gravity=(0.0, -G))
    names = [x.name for x in system.structure.coordinates[6:]]
    assert names == ["dry in joint 1.z", "dry in joint 2.z"]
    found = run(system, 20.0, times=[0.0, 2.0, 20.0])
    torques = np.array([0.25 * G + 0.75 * G, 0.25 * G])
    close(found.q[1:, 6:], -1e-3 * torques / 12.0, 2e-7)
    close(found.v[1:], 0.0, 1e-6)


# ---------------------------------------------------------------------------------------------
# Stick-slip
# ---------------------------------------------------------------------------------------------

MASS, STIFFNESS, SPEED, SLIDING, BREAKAWAY = 1.0, 100.0, 0.1, 3.0, 5.0


def belt_and_mass(presliding=1e-4, time=1e-3, stribeck_speed=0.02):
    """A mass on a belt that runs at a constant speed, held by a spring."""
    belt = planar.Body("belt", mass=10.0, inertia=1.0, position=(0.0, 0.0), velocity=(SPEED, 0.0))
    mass = planar.Body("mass", mass=MASS, inertia=1.0, position=(0.0, 0.0), velocity=(SPEED, 0.0))
    joints = [
        planar.Translational("bed", ("ground", "belt"), (0.0, 0.0), (1.0, 0.0)),
        planar.Translational("top", ("belt", "mass"), (0.0, 0.0), (1.0, 0.0)),
    ]
    drive = jm.Driver("drive", "bed", "translation", motions.Linear(rate=SPEED))
    spring = forces.SpringDamper(
        "spring",
        ("ground", "mass"),
        points=((-2.0, 0.0), (0.0, 0.0)),
        stiffness=STIFFNESS,
        length=2.0,
    )
    dry = forces.JointFriction(
        "dry",
        "top",
        "translation",
        sliding=SLIDING,
        breakaway=BREAKAWAY,
        stribeck_speed=stribeck_speed,
        presliding=presliding,
        relaxation_time=time,
    )
    return MultibodySystem([belt, mass], joints, [drive], forces=[spring, dry])


def integrated(times, presliding=1e-4, time=1e-3, stribeck_speed=0.02):
    """The same equations, x, v and z, by SciPy."""

    def rates(t, y):
        x, v, z = y
        u = v - SPEED
        dry = SLIDING + (BREAKAWAY - SLIDING) * math.exp(-((u / stribeck_speed) ** 2))
        bent = min(max(z, -presliding), presliding)
        sign = min(max((z + time * u) / presliding, -1.0), 1.0)
        return [v, (-STIFFNESS * x - dry * sign) / MASS, u - (z - bent) / time]

    keys: dict[str, Any] = {"rtol": 1e-10, "atol": 1e-13, "max_step": 1e-3}
    return solve_ivp(rates, (0, times[-1]), [0.0, SPEED, 0.0], t_eval=times, **keys).y


@pytest.mark.thorough
def test_stick_slip_against_scipy():
    times = np.linspace(0.0, 3.0, 31)
    found = run(belt_and_mass(), 3.0, times=times, rtol=1e-9, atol=1e-11)
    expected = integrated(times)
    close(found.q[:, 3], expected[0], 2e-6)
    close(found.v[:, 3], expected[1], 2e-5)
    # It sticks: the speed is the belt's in some states and far from it in others.
    slip = np.abs(np.asarray(found.v[:, 3]) - SPEED)
    assert np.min(slip[1:]) < 5e-4
    assert np.max(slip) > 0.1


def ideal_period(stribeck_speed):
    """Of a mass that sticks until the spring takes the breakaway force, slides with Stribeck's
    friction, and sticks again where its speed is the belt's. By phases, without bristles."""

    def sliding(t, y):
        x, u = y
        dry = SLIDING + (BREAKAWAY - SLIDING) * math.exp(-((u / stribeck_speed) ** 2))
        return [SPEED + u, (dry - STIFFNESS * x) / MASS]

    def caught(t, y):
        return y[1] + 1e-12

    caught.terminal, caught.direction = True, 1  # pyright: ignore[reportFunctionMemberAccess]
    start = [BREAKAWAY / STIFFNESS + 1e-9, -1e-9]
    found = solve_ivp(sliding, (0, 5), start, events=caught, rtol=1e-10, atol=1e-13, max_step=1e-3)
    return found.t[-1] + (start[0] - found.y[0, -1]) / SPEED


@pytest.mark.thorough
def test_the_limit_is_ideal_stick_slip():
    stribeck_speed = 1e-3
    # The limit of a sudden drop: 2 (F_s - F_c) / (k v) stuck, a mirrored swing of the spring.
    omega, drop = math.sqrt(STIFFNESS / MASS), (BREAKAWAY - SLIDING) / STIFFNESS
    sudden = 2 * drop / SPEED + (math.pi + 2 * math.atan2(SPEED / omega, drop)) / omega
    assert ideal_period(1e-7) == pytest.approx(sudden, rel=1e-3)
    found = run(belt_and_mass(1e-6, 1e-4, stribeck_speed), 5.0, every=2e-3, rtol=1e-8, atol=1e-10)
    x, t = np.asarray(found.q[:, 3]), np.asarray(found.times)
    peaks = [t[k] for k in range(1, len(x) - 1) if x[k - 1] < x[k] >= x[k + 1] and x[k] > 0.03]
    assert len(peaks) > 3
    assert np.mean(np.diff(peaks)) == pytest.approx(ideal_period(stribeck_speed), rel=2e-3)


# ---------------------------------------------------------------------------------------------
# Derivatives of a run, files, refusals
# ---------------------------------------------------------------------------------------------


@pytest.mark.thorough
def test_derivatives_of_a_run():
    """Through breakaway into sliding, by coefficient and presliding, both ways and by
    differences."""
    system = block(0.2, 0.3, presliding=1e-3)

    @jax.jit
    def end(x):
        own = eqx.tree_at(
            lambda s: (
                s.friction_groups[0].law.coefficient,
                s.friction_groups[0].law.sign.presliding,
            ),
            system,
            (x[:1], x[1:]),
        )
        found = simulate(
            own, own.reference_q, own.initial_v, end=0.3, rtol=1e-12, atol=1e-14, monitor=False
        )
        return found.q[-1, 0]

    x = jnp.array([0.2, 1e-3])
    slope = jax.grad(end)(x)
    for k, step in enumerate((1e-5, 1e-7)):
        change = np.zeros(2)
        change[k] = step
        by_difference = (end(x + change) - end(x - change)) / (2 * step)
        assert float(slope[k]) == pytest.approx(float(by_difference), rel=2e-5)


def test_the_model_file_and_its_states(tmp_path):
    tables = {
        "schema": 1,
        "dimension": 2,
        "body": [{"name": "block", "mass": 2.0, "inertia": 0.1, "position": [0.0, 0.0]}],
        "joint": [
            {
                "name": "J",
                "type": "translational",
                "bodies": ["ground", "block"],
                "at": [0, 0],
                "axis": [1.0, 0.0],
            }
        ],
        "force": [
            {
                "name": "rub",
                "type": "coulomb_friction",
                "joint": "J",
                "coefficient": 0.3,
                "presliding": 1e-4,
                "relaxation_time": 2e-3,
            }
        ],
    }
    model = model_from_tables(tables)
    assert model.system().structure.coordinates[-1].name == "rub.z"
    path = tmp_path / "block.toml"
    path.write_text(write_model(model))
    again = read_model(path)
    assert again.system().structure == model.system().structure
    sign: Any = again.system().friction_groups[0].law.sign
    assert (float(sign.presliding[0]), float(sign.time[0])) == (1e-4, 2e-3)


def test_what_refuses_it():
    tried: tuple[tuple[dict[str, Any], str], ...] = (
        ({}, "needs `velocity`"),
        ({"velocity": 1e-3, "presliding": 1e-4}, "one of the two"),
        ({"velocity": 1e-3, "relaxation_time": 1e-3}, "without `presliding`"),
        ({"presliding": 0.0}, "presliding"),
    )
    for keys, message in tried:
        with pytest.raises(ValueError, match=message):
            forces.CoulombFriction("rub", "J", coefficient=0.2, **keys)
        with pytest.raises(ValueError, match=message):
            forces.JointFriction("dry", "J", sliding=2.0, **keys)
    for kind in ("coulomb", "rate"):
        system = block(0.2, 0.3, kind)
        with pytest.raises(ValueError, match=r"sticks \(presliding\).*'rub'"):
            jm.equilibrium(system, system.reference_q)
        with pytest.raises(ValueError, match="GeneralizedAlpha knows no"):
            run(system, 1.0, solver=jm.runs.GeneralizedAlpha(1e-3))
