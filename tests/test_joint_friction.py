"""Friction of joints: constant, viscous and Stribeck friction, couples in bearings, patterns, and
the number of accelerations that there are."""

import itertools
import json
import math
from typing import Any

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from helpers import forward_and_reverse
from oracle_mujoco import mujoco
from representatives import representatives
from scipy.optimize import fsolve
from scipy.spatial.transform import Rotation
from typer.testing import CliRunner

import jaxmbs as jm
from jaxmbs import certify, forces, MultibodySystem, planar, reactions, simulate, spatial
from jaxmbs._dynamics import SimulationError
from jaxmbs._dynamics._friction import _Contacts, _solve_contacts, count_solutions
from jaxmbs._errors import AnalysisError
from jaxmbs.cli._app import app
from jaxmbs.io import import_model, model_from_tables, write_model
from jaxmbs.results import RESULTS
from jaxmbs.runs import solve_with_friction


solve = eqx.filter_jit(solve_with_friction)
certified = eqx.filter_jit(certify)
G = 9.81


def assert_close(actual, expected, atol=1e-12):
    np.testing.assert_allclose(actual, expected, rtol=0, atol=atol)


# ---------------------------------------------------------------------------------------------
# Friction on a coordinate, whatever presses the joint together
# ---------------------------------------------------------------------------------------------

NUMBERS: dict[str, Any] = {"sliding": 0.3, "viscous": 0.05, "breakaway": 0.5, "stribeck_speed": 0.8}


def wheel(speed, **changes):
    body = planar.Body("wheel", mass=2.0, inertia=0.4, position=(0.0, 0.0), angular_velocity=speed)
    hinge = planar.Revolute("hinge", ("ground", "wheel"), (0.0, 0.0))
    numbers: Any = {"velocity": 0.02} | NUMBERS | changes
    return MultibodySystem([body], [hinge], forces=[forces.JointFriction("f", "hinge", **numbers)])


def slowed(u, sliding, viscous, breakaway, stribeck_speed, velocity):
    dry = sliding + (breakaway - sliding) * np.exp(-((u / stribeck_speed) ** 2))
    return -(dry * np.tanh(u / velocity) + viscous * u)


@eqx.filter_jit
def torque(system, speed):
    v = jnp.stack([jnp.zeros_like(speed), jnp.zeros_like(speed), speed])
    return system.force(system.reference_q, v, 0.0)[2]


@pytest.mark.parametrize("speed", [0.0, 0.01, -0.4, 3.0])
def test_the_torque_of_a_wheel_and_its_derivatives(speed):
    system, numbers = wheel(speed), {"velocity": 0.02} | NUMBERS
    assert_close(torque(system, jnp.asarray(speed)), slowed(speed, **numbers))

    def of(system, speed):
        return torque(system, speed)

    direction = jax.tree.map(jnp.ones_like, eqx.filter(system, eqx.is_inexact_array))
    pushed, slope = forward_and_reverse(
        lambda s: of(s, jnp.asarray(speed)), system, direction, jnp.asarray(1.0)
    )
    law = slope.force_groups[0].load.law
    for key, value in numbers.items():
        h = 1e-5 * value
        ends = [slowed(speed, **numbers | {key: value + sign * h}) for sign in (-1, 1)]
        own = law.sign if key == "velocity" else law
        assert_close(getattr(own, key)[0], (ends[1] - ends[0]) / (2 * h), 1e-8)
    assert_close(pushed, sum(jnp.sum(x) for x in jax.tree.leaves(slope)), 1e-12)
    h = 1e-7
    expected = (slowed(speed + h, **numbers) - slowed(speed - h, **numbers)) / (2 * h)
    found = jax.grad(lambda u: of(system, u))(jnp.asarray(speed))
    assert_close(found, expected, 1e-6 * (1 + abs(expected)))
    assert_close(jax.jvp(lambda u: of(system, u), (jnp.asarray(speed),), (1.0,))[1], found)


def test_a_wheel_runs_down():
    """J du/dt = -c - b u: u = (u_0 + c/b) exp(-b t / J) - c/b until it stands."""
    system = wheel(4.0, breakaway=None, stribeck_speed=None, velocity=1e-4)
    run = jm.simulate(system, system.reference_q, system.initial_v, 2.0, every=0.5, monitor=False)
    c, b, inertia = 0.3, 0.05, 0.4
    expected = (4.0 + c / b) * np.exp(-b * np.array(run.times) / inertia) - c / b
    assert_close(run.v[:, 2], expected, 1e-6)
    # What is lost is the integral of the power.
    t = np.linspace(0.0, 2.0, 4001)
    u = (4.0 + c / b) * np.exp(-b * t / inertia) - c / b
    lost = np.trapezoid((c + b * u) * u, t)
    energy = [float(sum(system.energy(q, v, 0.0))) for q, v in zip(run.q, run.v, strict=True)]
    assert_close(energy[0] - energy[-1], lost, 1e-6)


@pytest.mark.thorough
@pytest.mark.parametrize("adjoint", [None, diffrax.ForwardMode()], ids=["reverse", "forward"])
def test_the_derivative_of_a_run(adjoint):
    """du/dc = (exp(-b T / J) - 1) / b."""
    system = wheel(4.0, breakaway=None, stribeck_speed=None, velocity=1e-3)
    options = {} if adjoint is None else {"adjoint": adjoint}

    def end(c):
        own = eqx.tree_at(
            lambda s: (s.force_groups[0].load.law.sliding, s.force_groups[0].load.law.breakaway),
            system,
            (c[None], c[None]),
        )
        q, v = own.reference_q, own.initial_v
        return jm.simulate(own, q, v, 1.0, every=1.0, monitor=False, rtol=1e-9, **options).v[-1, 2]

    transform = jax.grad if adjoint is None else jax.jacfwd
    expected = (np.exp(-0.05 / 0.4) - 1) / 0.05
    assert_close(jax.jit(transform(end))(jnp.asarray(0.3)), expected, 1e-6)


@pytest.mark.thorough
def test_an_implicit_method_takes_it():
    system = wheel(4.0, breakaway=None, stribeck_speed=None, velocity=1e-2)
    run = jm.simulate(
        system,
        system.reference_q,
        system.initial_v,
        1.0,
        every=1.0,
        monitor=False,
        solver=jm.runs.GeneralizedAlpha(step=1e-3),
    )
    expected = (4.0 + 0.3 / 0.05) * np.exp(-0.05 / 0.4) - 0.3 / 0.05
    assert_close(run.v[-1, 2], expected, 1e-5)


def test_mujoco_has_the_same_frictionloss(tmp_path):
    """At speeds beyond its regularisation; MuJoCo holds the law by a constraint of its own."""
    text = """<mujoco><option gravity="0 0 -9.81"/><worldbody><body>
    <joint name="pin" axis="0 1 0" frictionloss="0.3" damping="0.1"/>
    <inertial pos="0.3 0 0" mass="2" diaginertia="0.02 0.03 0.03"/>
    <body pos="0.6 0 0"><joint name="slide" type="slide" axis="1 0 0" frictionloss="2"/>
    <inertial pos="0.1 0 0" mass="1" diaginertia="0.01 0.01 0.01"/></body>
    </body></worldbody></mujoco>"""
    path = tmp_path / "m.xml"
    path.write_text(text)
    peer = mujoco.MjModel.from_xml_path(str(path))
    data = mujoco.MjData(peer)
    system = import_model(path).system()
    for speed, rate in ((1.5, -0.7), (-2.0, 0.4)):
        data.qvel[:] = speed, rate
        mujoco.mj_forward(peer, data)
        assert_close(np.abs(data.qfrc_constraint), [0.3, 2.0], 1e-9)
        # Both bodies turn about y; the second slides along x as well.
        spin, places = np.array([0.0, speed, 0.0]), [(0.3, 0, 0), (0.7, 0, 0)]
        v = [
            np.concatenate([np.cross(spin, p) + np.array([k * rate, 0, 0]), spin])
            for k, p in enumerate(places)
        ]
        found = solve(system, system.reference_q, jnp.asarray(np.concatenate(v)), 0.0)
        assert_close(found.acceleration[4], data.qacc[0], 1e-9)
        # Along the turning axis: second derivative of the slide, by the centre of the second body.
        along = float(found.acceleration[6]) + 0.7 * speed**2
        assert_close(along, data.qacc[1], 1e-8)


# ---------------------------------------------------------------------------------------------
# Couples, planes and crosses: the law against statics in NumPy
# ---------------------------------------------------------------------------------------------

AT2, AXIS2 = np.array([0.4, -0.2]), np.array([0.6, 0.8])
AT3, AXIS3 = np.array([0.4, -0.2, 0.3]), np.array([2.0, -1.0, 2.0]) / 3.0
CROSS = np.array([[2.0, -1.0, 2.0], [2.0, 2.0, -1.0]]) / 3.0
MU, U0, L, R = 0.3, 0.05, 0.25, 0.07
BODIES = ("a", "b")
# Each joint with the arguments of its friction.
JOINTS = {
    "slide 2": (planar.Translational("J", BODIES, AT2, AXIS2), {"length": L}),
    "slide 2, first": (
        planar.Translational("J", BODIES, AT2, AXIS2),
        {"length": L, "bearing": "first"},
    ),
    "line 2": (planar.PointOnLine("J", BODIES, AT2, AXIS2), {}),
    "hinge 3": (spatial.Revolute("J", BODIES, AT3, AXIS3), {"length": L, "radius": R}),
    "slide 3": (spatial.Translational("J", BODIES, AT3, AXIS3), {"length": L, "radius": R}),
    "tube 3": (spatial.Cylindrical("J", BODIES, AT3, AXIS3), {"length": L, "radius": R}),
    "tube 3, first": (
        spatial.Cylindrical("J", BODIES, AT3, AXIS3),
        {"length": L, "radius": R, "bearing": "first"},
    ),
    "line 3": (spatial.PointOnLine("J", BODIES, AT3, AXIS3), {}),
    "plane 3": (spatial.PointOnPlane("J", BODIES, AT3, AXIS3), {}),
    "pad 3": (spatial.Planar("J", BODIES, AT3, AXIS3), {"radius": R}),
    "cross 3": (spatial.Universal("J", BODIES, AT3, CROSS), {"radius": R}),
    "cross 3, bearings": (
        spatial.Universal("J", BODIES, AT3, CROSS),
        {"radius": R, "length": L},
    ),
}


class Pose:
    """A body in space, of the plane as well: its place, its axes and its motion."""

    def __init__(self, place, turn, linear, angular):
        self.place, self.turn, self.linear, self.angular = place, turn, linear, angular

    def velocity(self, point):
        return self.linear + np.cross(self.angular, point - self.place)


def displaced(joint, load):
    """Two bodies that the joint holds, away from the reference configuration along its freedom:
    the system, its q, and the displacement of b as a turn about AT and a shift."""
    flat = joint.at.shape[1] == 2
    if flat:
        a = planar.Body("a", mass=2.0, inertia=0.3, position=(0.1, 0.2), angle=0.7)
        b = planar.Body("b", mass=3.0, inertia=0.9, position=(-0.5, 0.4), angle=-2.0)
    else:
        keys = {"inertia": (0.4, 0.5, 0.6)}
        a = spatial.Body("a", mass=2.0, position=(0.1, 0.2, 0.3), orientation=(1, 2, -1, 0), **keys)
        b = spatial.Body("b", mass=3.0, position=(-0.5, 0.4, 0.2), orientation=(2, 0, 1, 1), **keys)
    system = MultibodySystem([a, b], [joint], forces=[load])
    turn, shift = Rotation.identity(), np.zeros(3)
    along = np.pad(AXIS2, (0, 1)) if flat else AXIS3
    kind = joint.kind
    if kind in ("translational", "cylindrical", "point_on_line"):
        shift = 0.4 * along
    if kind in ("planar", "point_on_plane"):
        shift = 0.4 * np.cross(along, [1.0, 0.0, 0.0])
    if kind in ("revolute", "cylindrical", "planar"):
        turn = Rotation.from_rotvec(0.6 * along)
    if kind == "universal":
        turn = Rotation.from_rotvec(0.5 * CROSS[0])
    q = np.array(system.reference_q)
    if flat:
        q[3:5] += shift[:2]
        return system, jnp.asarray(q), turn, shift
    q[7:10] = AT3 + shift + turn.apply(q[7:10] - AT3)
    old = Rotation.from_quat(q[10:14], scalar_first=True)
    q[10:14] = (turn * old).as_quat(scalar_first=True)
    return system, jnp.asarray(q), turn, shift


def poses(system, q, v):
    q, v = np.array(q), np.array(v)
    found = []
    for k in range(2):
        if system.structure.nv == 6:
            place, turn = np.pad(q[3 * k : 3 * k + 2], (0, 1)), Rotation.identity()
            linear, angular = np.pad(v[3 * k : 3 * k + 2], (0, 1)), np.array([0, 0, v[3 * k + 2]])
        else:
            place, own = q[7 * k : 7 * k + 3], v[6 * k : 6 * k + 6]
            turn = Rotation.from_quat(q[7 * k + 3 : 7 * k + 7], scalar_first=True)
            linear, angular = own[:3], turn.apply(own[3:])
        found.append(Pose(place, turn, linear, angular))
    return found


def bearing_forces(axis, force, couple, flat):
    """The forces across the axis at -+ L/2, from the balance of force and moment."""
    across = np.linalg.svd(axis[None])[2][1:]
    if flat:
        across = np.cross([0.0, 0.0, 1.0], axis)[None]
    columns = []
    for end in (-L / 2, L / 2):
        for direction in across:
            columns.append([*direction, *np.cross(end * axis, direction)])
    part = couple if flat else couple - (couple @ axis) * axis
    right = np.concatenate([force - (force @ axis) * axis, part])
    found = np.linalg.lstsq(np.array(columns).T, right, rcond=None)[0]
    assert_close(np.array(columns).T @ found, right, 1e-10)
    return found.reshape(2, -1)


def by_hand(name, system, q, v, multipliers, turn, shift):
    """The wrenches of friction on b, as pairs of a force at a point and a torque, in space."""
    flat = system.structure.nv == 6
    a, b = poses(system, q, v)
    reaction = np.array(-np.array(system.constraint_matrix(q, v, 0.0)).T @ multipliers)
    if flat:
        force, moment = np.pad(reaction[3:5], (0, 1)), np.array([0, 0, reaction[5]])
        axis, first = np.pad(AXIS2, (0, 1)), np.pad(AT2, (0, 1))
    else:
        force, moment = reaction[6:9], b.turn.apply(reaction[9:12])
        axis, first = AXIS3, AT3
    second = first + shift
    middle = first if "first" in name else second
    couple = moment + np.cross(b.place - middle, force)
    spin = b.angular - a.angular
    slide = b.velocity(first) - a.velocity(first)
    kind = name.split()[0]

    def size(speed, normal):
        return -MU * normal * np.tanh(np.linalg.norm(speed) / U0) / np.linalg.norm(speed)

    if kind == "cross":
        total = np.zeros(3)
        for own in (CROSS[0], turn.apply(CROSS[1])):
            speed = R * (own @ spin)
            normal = np.linalg.norm(force - (force @ own) * own)
            if "bearings" in name:
                parts = bearing_forces(own, force, couple, flat)
                normal = np.linalg.norm(parts, axis=1).sum()
            total += size(np.array([speed]), normal) * speed * R * own
        return first, np.zeros(3), total
    if kind in ("plane", "pad"):
        normal = abs(force @ axis)
        slide = slide - (slide @ axis) * axis
        turning = R * (spin @ axis) * axis if kind == "pad" else np.zeros(3)
    else:
        normal = np.linalg.norm(force - (force @ axis) * axis)
        if kind != "line":
            parts = bearing_forces(axis, force, couple, flat)
            normal = np.linalg.norm(parts, axis=1).sum()
        if name == "slide 3":
            normal += abs(couple @ axis) / R
        slide = (slide @ axis) * axis if kind != "hinge" else np.zeros(3)
        turning = R * (spin @ axis) * axis if kind in ("hinge", "tube") else np.zeros(3)
    own = size(np.concatenate([slide, turning]), normal)
    return first, own * slide, own * R * turning


@pytest.mark.parametrize(
    "name", representatives(JOINTS, "slide 2, first", "tube 3, first", "pad 3", "cross 3, bearings")
)
def test_friction_of_couples_planes_and_crosses(name, rng):
    joint, keys = JOINTS[name]
    load = forces.CoulombFriction("rub", "J", coefficient=MU, velocity=U0, **keys)
    system, q, turn, shift = displaced(joint, load)
    flat = system.structure.nv == 6
    assert_close(system.position_residual(q, 0.0), 0.0)
    v = jnp.asarray(rng.normal(size=system.structure.nv) * 0.1)
    multipliers = jnp.asarray(rng.normal(size=len(system.structure.rows)) * 50)
    found = np.array(system.friction(q, v, 0.0, multipliers))
    point, force, torque = by_hand(name, system, q, v, multipliers, turn, shift)
    expected = []
    for pose, sign in zip(poses(system, q, v), (-1, 1), strict=True):
        moment = torque + np.cross(point - pose.place, force)
        if flat:
            expected += [*(sign * force[:2]), sign * moment[2]]
        else:
            expected += [*(sign * force), *(sign * pose.turn.inv().apply(moment))]
    assert np.max(np.abs(expected)) > 0.1
    assert_close(found, expected, 1e-11)


def test_nothing_moves_and_nothing_presses():
    """Values and derivatives of a tube with bearings at zero velocity, zero reaction, and both."""
    joint, keys = JOINTS["tube 3"]
    load = forces.CoulombFriction("rub", "J", coefficient=MU, velocity=U0, **keys)
    system, q, _, _ = displaced(joint, load)

    @jax.jit
    def friction(v, multipliers):
        both = (0, 1)

        def of(v, multipliers):
            return system.friction(q, v, 0.0, multipliers)

        return (
            of(v, multipliers),
            jax.jacfwd(of, both)(v, multipliers),
            jax.jacrev(of, both)(v, multipliers),
        )

    moving, pressed = jnp.linspace(-1.0, 1.0, 12), jnp.linspace(1.0, 2.0, 4)
    for v, multipliers in ((0, 1), (1, 0), (0, 0)):
        value, forward, reverse = friction(v * moving, multipliers * pressed)
        assert_close(value, 0.0, 1e-10)
        for one, other in zip(forward, reverse, strict=True):
            assert np.all(np.isfinite(one))
            assert_close(one, other, 1e-11)


# ---------------------------------------------------------------------------------------------
# A drawer jams, a block slips
# ---------------------------------------------------------------------------------------------


def drawer(mu, push=10.0, arm=0.3, length=0.2, speed=1.0, mass=2.0, velocity=1e-3):
    """A drawer of that length on a guide, pushed at a distance from its middle."""
    body = planar.Body("drawer", mass=mass, inertia=0.1, position=(0.0, 0.0), velocity=(speed, 0.0))
    guide = planar.Translational("guide", ("ground", "drawer"), (0.0, 0.0), (1.0, 0.0))
    rub = forces.CoulombFriction("rub", "guide", coefficient=mu, velocity=velocity, length=length)
    pushing = forces.Applied("push", "drawer", at=(0.0, arm), force=(push, 0.0))
    return MultibodySystem([body], [guide], forces=[rub, pushing])


@pytest.mark.parametrize("mu", [0.2, 0.5])
def test_a_drawer_jams(mu):
    """N = 2 P d / L, so that P (1 - 2 mu d / L) is left of the push P: with 2 mu d / L = 0.6
    it runs, with 1.5 no push moves it, but for the creep of the regularisation."""
    ratio = 2 * mu * 0.3 / 0.2
    for push in (10.0, 1e4):
        system = drawer(mu, push)
        found = solve(system, system.reference_q, system.initial_v, 0.0)
        assert_close(found.acceleration[0], push / 2.0 * (1 - ratio), 1e-9 * push)
        if ratio > 1:
            creep = 1e-3 * math.atanh(1 / ratio)
            v = jnp.array([creep, 0.0, 0.0])
            found = solve(system, system.reference_q, v, 0.0)
            assert_close(found.acceleration, 0.0, 1e-9 * push)
        # Friction in the guide does not press it: it jams, and there is one acceleration.
        certificate = certified(system, system.reference_q, system.initial_v)
        assert bool(certificate.certified)
        assert int(certificate.solutions) == 1
        assert certificate.critical_coefficients() == {"guide": np.inf}


def test_the_larger_of_force_and_couple_presses():
    """N = max(|F|, 2 |C| / L) in the plane, by a force across the guide."""
    for across, arm in ((30.0, 0.0), (30.0, 0.05), (5.0, 0.3), (-30.0, 0.1)):
        body = planar.Body(
            "drawer", mass=2.0, inertia=0.1, position=(0.0, 0.0), velocity=(1.0, 0.0)
        )
        guide = planar.Translational("guide", ("ground", "drawer"), (0.0, 0.0), (1.0, 0.0))
        rub = forces.CoulombFriction("rub", "guide", coefficient=0.3, velocity=1e-3, length=0.2)
        pressing = forces.Applied("press", "drawer", at=(arm, 0.0), force=(0.0, across))
        system = MultibodySystem([body], [guide], forces=[rub, pressing])
        found = solve(system, system.reference_q, system.initial_v, 0.0)
        normal = max(abs(across), 2 * abs(across * arm) / 0.2)
        assert_close(found.acceleration[0], -0.3 * normal / 2.0, 1e-9)


def test_a_block_on_a_plane_slips_beyond_the_angle_of_friction():
    """m a = m g (sin - mu cos) down the plane; below tan = mu it creeps at v_0 artanh(tan / mu)."""
    mu = 0.5
    for slope in (0.3, 0.7):
        normal = np.array([-np.sin(slope), 0.0, np.cos(slope)])
        down = np.array([-np.cos(slope), 0.0, -np.sin(slope)])
        block = spatial.Body("block", mass=2.0, inertia=(0.1, 0.1, 0.1), position=(0.0, 0.0, 0.0))
        pad = spatial.Planar("pad", ("block", "ground"), (0.0, 0.0, 0.0), normal)
        rub = forces.CoulombFriction("rub", "pad", coefficient=mu, velocity=1e-3, radius=0.1)
        system = MultibodySystem([block], [pad], forces=[rub], gravity=(0.0, 0.0, -G))
        sliding = solve(system, system.reference_q, jnp.asarray([*down, 0, 0, 0]), 0.0)
        expected = G * (np.sin(slope) - mu * np.cos(slope))
        assert_close(sliding.acceleration, [*(expected * down), 0, 0, 0], 1e-9)
        if np.tan(slope) < mu:
            creep = 1e-3 * np.arctanh(np.tan(slope) / mu)
            v = jnp.asarray([*(creep * down), 0, 0, 0])
            held = solve(system, system.reference_q, v, 0.0)
            assert_close(held.acceleration, 0.0, 1e-9)


@pytest.mark.thorough
def test_energy_that_is_lost_is_the_integral_of_the_power():
    """A rod that swings on a hinge with two bearings, about an axis that is not level."""
    axis = np.array([0.6, 0.0, 0.8])
    body = spatial.Body("rod", mass=2.0, inertia=(0.1, 0.2, 0.2), position=(0.0, 0.7, 0.1))
    hinge = spatial.Revolute("hinge", ("ground", "rod"), (0.0, 0.0, 0.0), axis)
    rub = forces.CoulombFriction(
        "rub", "hinge", coefficient=0.2, velocity=0.02, radius=0.03, length=0.1
    )
    system = MultibodySystem([body], [hinge], forces=[rub], gravity=(0.0, 0.0, -G))
    start = system.reference_q, system.initial_v
    run = jm.simulate(system, *start, 2.0, every=1e-3, monitor=False, rtol=1e-9, atol=1e-11)

    @jax.jit
    @jax.vmap
    def of(q, v, t):
        found = solve_with_friction(system, q, v, t)
        power = v @ system.friction(q, v, t, found.multipliers)
        return power, jnp.sum(jnp.stack(system.energy(q, v, t)))

    power, energy = (np.array(x) for x in of(run.q, run.v, run.times))
    lost = np.trapezoid(power, run.times)
    assert lost < -0.5
    assert_close(energy[-1] - energy[0], lost, 1e-5)


# ---------------------------------------------------------------------------------------------
# The number of accelerations
# ---------------------------------------------------------------------------------------------


def painleve_klein(mu_1, mu_2, angle, push=1.0, speed=1.0, weights=(0.0, 0.0)):
    """Two sliders of unit mass on parallel guides, joined by a rod at this angle to them; a push on
    the second along, and weights across."""
    points = np.array([[0.0, 0.0], [math.cos(angle), math.sin(angle)]])
    bodies = [
        planar.Body(name, mass=1.0, inertia=1.0, position=point, velocity=(speed, 0.0))
        for name, point in zip("ab", points, strict=True)
    ]
    guides = [
        planar.Translational(name.upper(), ("ground", name), point, (1.0, 0.0))
        for name, point in zip("ab", points, strict=True)
    ]
    loads = [
        forces.CoulombFriction(f"rub {name}", name, coefficient=mu, velocity=1e-3)
        for name, mu in zip("AB", (mu_1, mu_2), strict=True)
    ]
    pushes = [
        forces.Applied(name, name, force=force)
        for name, force in zip("ab", ((0.0, weights[0]), (push, weights[1])), strict=True)
    ]
    rod = planar.Distance("rod", ("a", "b"), points=tuple(points))
    return MultibodySystem(bodies, [*guides, rod], forces=[*loads, *pushes])


def accelerations_by_hand(mu_1, mu_2, angle, push, speed, weights):
    """The rod pulls b back and a forward with S: a = S cos - f_1 = push - S cos - f_2, with f_i =
    s mu_i |N_i|, N_1 = S sin + w_1, N_2 = -S sin + w_2. The zeros in S of a function that is linear
    between the zeros of N_1 and N_2, and beyond."""
    c, s, way = math.cos(angle), math.sin(angle), math.copysign(1.0, speed)

    def gap(rod):
        first = rod * c - way * mu_1 * abs(rod * s + weights[0])
        second = push - rod * c - way * mu_2 * abs(-rod * s + weights[1])
        return first - second

    kinks = sorted([-weights[0] / s, weights[1] / s])
    ends = [kinks[0] - 1e6, *kinks, kinks[1] + 1e6]
    values = [gap(x) for x in ends]
    return sum(x * y < 0 for x, y in itertools.pairwise(values))


@pytest.mark.parametrize("angle", representatives([30.0, 60.0, 80.0, 120.0], 60.0))
def test_two_sliders_on_parallel_guides(angle):
    """With the second guide smooth there is one acceleration up to mu |tan(angle)| = 2; beyond
    it none, or two, by the way of the push and of the slip."""
    angle = math.radians(angle)
    critical = 2 / abs(math.tan(angle))
    for factor in (0.9, 1.1, 3.0):
        for push, speed in ((1.0, 1.0), (1.0, -1.0), (-1.0, 1.0)):
            system = painleve_klein(factor * critical, 0.0, angle, push, speed)
            found = certified(system, system.reference_q, system.initial_v)
            with_it = push * speed > 0
            expected = 1 if factor < 1 else (0 if with_it else 2)
            assert int(found.solutions) == expected
            assert bool(found.solvable) is (factor < 1)
            assert found.critical_coefficients()["A"] == pytest.approx(critical, rel=1e-6)
            solved = solve(system, system.reference_q, system.initial_v, 0.0)
            assert solved.solutions is not None
            assert int(solved.solutions) == expected
            if expected == 0:
                assert bool(solved.result == RESULTS.friction_without_acceleration)
                assert np.all(np.isnan(solved.acceleration)) & np.all(np.isnan(solved.multipliers))
                assert "A, B leaves no acceleration" in str(solved)
            else:
                assert bool(solved.result == RESULTS.successful)
                assert ("leaves 2 accelerations" in str(solved)) == (expected == 2)
                # One of the roots S of 2 S cos - s mu |S| sin = push.
                rod = float(solved.multipliers[-1])
                assert_rod(rod, factor * critical, angle, push, speed)


def assert_rod(rod, mu, angle, push, speed):
    missing = [
        2 * s * math.cos(angle) - speed * mu * abs(s) * math.sin(angle) - push for s in (rod, -rod)
    ]
    assert min(map(abs, missing)) < 1e-8


@pytest.mark.parametrize("near", representatives([1e-2, 1e-4, 1e-6], 1e-4))
def test_next_to_the_critical_coefficient(near):
    """There the fixed point takes some 30 / near steps. Both sides, with derivatives: S = push /
    (2 cos - s mu sin sign(S))."""
    angle = math.radians(60.0)
    critical, cos, sin = 2 / math.tan(angle), math.cos(angle), math.sin(angle)

    def system_of(mu):
        return painleve_klein(mu, 0.0, angle, 1.0, 1.0)

    system = system_of((1 - near) * critical)

    @jax.jit
    def rod(mu, way):
        own = eqx.tree_at(
            lambda s: s.friction_groups[0].law.coefficient, system, jnp.stack([mu, 0.0 * mu])
        )
        state = (own.reference_q, way * own.initial_v, 0.0)
        found = solve_with_friction(own, *state)
        assert found.solutions is not None
        return found.acceleration[0], found.solutions.astype(float)

    mu = (1 - near) * critical
    expected = 1 / (2 * cos - mu * sin)
    value, count = rod(mu, 1.0)
    for take in (jax.jacfwd, jax.jacrev):
        slope, _ = take(rod)(mu, 1.0)
        # m u' = S cos - mu |S| sin.
        assert int(count) == 1
        assert float(value) == pytest.approx(expected * (cos - mu * sin), rel=1e-8 / near**0.5)
        by_hand = -expected * sin + expected**2 * sin * (cos - mu * sin)
        assert float(slope) == pytest.approx(by_hand, rel=1e-8 / near)


def test_two_rough_guides_and_weights(rng):
    """Any numbers of both guides, counted by hand. Without weights only the difference of both
    coefficients counts, so that one acceleration is found where no proof for every load is."""
    told = []
    for _ in range(60):
        mus, weights = rng.uniform(0.0, 4.0, 2), rng.normal(size=2)
        angle, push = rng.uniform(0.4, 1.3), rng.normal()
        way = rng.choice([-1.0, 1.0])
        given = (mus[0], mus[1], angle, push, way, tuple(weights))
        system = painleve_klein(*given)
        found = certified(system, system.reference_q, system.initial_v)
        assert int(found.solutions) == accelerations_by_hand(*given)
        told.append(int(found.solutions))
        if bool(found.solvable):
            assert told[-1] == 1
        assert bool(found.solvable) == (sum(mus) * math.tan(angle) < 2)
    assert {0, 1, 2} <= set(told)
    alike = painleve_klein(3.0, 3.0, 1.0)
    found = certified(alike, alike.reference_q, alike.initial_v)
    assert not bool(found.solvable)
    assert int(found.solutions) == 1


def test_counts_of_random_problems(rng):
    """P = a + B |P| of two and three contacts, against the roots that Newton's method finds from
    many starts."""
    count = eqx.filter_jit(count_solutions)
    seen = set()
    for contacts in (2, 3):
        for _ in range(12):
            matrix, load = rng.normal(size=(contacts, contacts)), rng.normal(size=contacts)
            roots = []
            for start in rng.normal(size=(60, contacts)) * 10:
                x, _, flag, _ = fsolve(
                    lambda x, b=matrix, a=load: x - a - b @ np.abs(x), start, full_output=True
                )
                # (Away from kinks, where Newton's method finds what it starts next to.)
                residual = np.max(np.abs(x - load - matrix @ np.abs(x)))
                if (
                    flag == 1
                    and residual < 1e-9
                    and all(np.linalg.norm(x - r) > 1e-6 for r in roots)
                ):
                    roots.append(x)
            along = np.zeros((contacts, 3, contacts))
            along[:, 0] = matrix
            found = count(
                jnp.asarray(along),
                jnp.ones(contacts),
                jnp.asarray(np.pad(load[:, None], ((0, 0), (0, 2)))),
                ((1, 1),) * contacts,
                (False,) * contacts,
            )
            assert int(found) == len(roots)
            seen.add(len(roots))
    assert {0, 1, 2} <= seen


def test_what_is_not_decided():
    """Contacts that are pressed in several directions have a proof or none; the reaction of one of
    two rails is not unique."""
    for coefficient, count in ((0.3, 1), (30.0, -1)):
        body = spatial.Body("rod", mass=1.0, inertia=(0.1, 0.1, 0.1), position=(1.0, 0.0, 0.0))
        hinge = spatial.Revolute("O", ("ground", "rod"), (0, 0, 0), (0, 0, 1))
        rub = forces.CoulombFriction(
            "rub", "O", coefficient=coefficient, velocity=1e-3, radius=0.05
        )
        system = MultibodySystem([body], [hinge], forces=[rub])
        v = jnp.array([0.0, 3.0, 0.0, 0.0, 0.0, 3.0])
        found = certified(system, system.reference_q, v)
        assert int(found.solutions) == count
    assert str(found).endswith("in this state, with its slip and its loads, is not decided.")


def test_certificates_tell_the_number():
    system = painleve_klein(4.0, 0.0, 1.0)
    found = certified(system, system.reference_q, system.initial_v)
    assert str(found).startswith("not certified: with the friction in A (coefficient 4, certified")
    assert str(found).endswith(
        "In this state, with its slip and its loads, there is no acceleration."
    )
    assert found.described().data()["solutions"] == 0
    two = certified(system, system.reference_q, -system.initial_v)
    assert str(two).endswith("there are 2 accelerations.")
    # At rest nothing slips, and friction, which is regularised, is zero.
    rest = certified(system, system.reference_q)
    assert (bool(rest.certified), int(rest.solutions)) == (False, 1)


def test_many_states_at_once():
    system = painleve_klein(4.0, 0.0, 1.0)
    v = jnp.asarray([[1.0], [-1.0], [0.0]]) * system.initial_v[None]
    found = jax.jit(jax.vmap(lambda v: certify(system, system.reference_q, v).solutions))(v)
    assert found.tolist() == [0, 2, 1]


def test_the_coefficient_of_a_joint_is_that_of_all_its_contacts():
    """A slide with bearings: both edges have one coefficient, up to which the proof holds. By hand:
    the friction f of slider A changes the couple by h f, at the arm h of the rod, and so on."""
    system = painleve_klein(1.0, 0.0, 1.0)
    certificate = certified(system, system.reference_q, system.initial_v)
    assert certificate.contacts == ("A", "B")
    joint, keys = JOINTS["slide 3"]
    load = forces.CoulombFriction("rub", "J", coefficient=MU, velocity=U0, **keys)
    one, q, _, _ = displaced(joint, load)
    found = certified(one, q)
    assert found.contacts == ("J",) * 3
    assert found.laws == (0,) * 3
    assert found.sizes == ((1, 2), (1, 2), (1, 1))
    limit = found.critical_coefficients()["J"]
    keys = keys | {"length": L}
    for factor, sound in ((0.99, True), (1.01, False)):
        load = forces.CoulombFriction("rub", "J", coefficient=factor * limit, velocity=U0, **keys)
        other, q, _, _ = displaced(joint, load)
        assert bool(certified(other, q).solvable) is sound


# ---------------------------------------------------------------------------------------------
# Patterns, files and refusals
# ---------------------------------------------------------------------------------------------

TABLES = {
    "schema": 1,
    "name": "leg",
    "dimension": 2,
    "gravity": [0.0, -G],
    "body": [
        {"name": "thigh", "mass": 2.0, "inertia": 0.1, "position": [0.0, -0.2]},
        {"name": "shank", "mass": 1.0, "inertia": 0.1, "position": [0.0, -0.6]},
        {"name": "foot", "mass": 0.5, "inertia": 0.1, "position": [0.0, -0.9]},
    ],
    "joint": [
        {"name": "hip", "type": "revolute", "bodies": ["ground", "thigh"], "at": [0.0, 0.0]},
        {"name": "knee 1", "type": "revolute", "bodies": ["thigh", "shank"], "at": [0.0, -0.4]},
        {
            "name": "knee 2",
            "type": "translational",
            "bodies": ["shank", "foot"],
            "at": [0.0, -0.8],
            "axis": [0.0, 1.0],
        },
    ],
}
RUB = {"name": "rub", "type": "coulomb_friction", "coefficient": 0.2, "velocity": 0.01}
LOSS = {"name": "loss", "type": "joint_friction", "sliding": 0.2, "velocity": 0.01}


def leg(*loads):
    return model_from_tables(TABLES | {"force": list(loads)})


def test_friction_of_all_joints_of_a_pattern():
    every = leg(RUB | {"joint": "*", "radius": 0.1}).system()
    assert every.frictional_joints == ("hip", "knee 1", "knee 2")
    knees = leg(RUB | {"joint": "knee *", "radius": 0.1}).system()
    assert knees.frictional_joints == ("knee 1", "knee 2")
    hinges = RUB | {"joint": "*", "joint_kind": "revolute", "radius": 0.1}
    model = leg(hinges, LOSS | {"joint": "*", "joint_kind": "revolute"})
    assert model.system().frictional_joints == ("hip", "knee 1")
    # The file keeps the pattern, with one number for all.
    assert write_model(model).count('joint = "*"') == 2
    apart = leg(
        *(RUB | {"name": f"r {k}", "joint": k, "radius": 0.1} for k in ("hip", "knee 1")),
        *(LOSS | {"name": f"l {k}", "joint": k} for k in ("hip", "knee 1")),
    )
    v = jnp.linspace(-1.0, 1.0, 9)
    one, other = model.system(), apart.system()
    pressed = jnp.linspace(1.0, 3.0, len(one.structure.rows))
    for own in (one.reference_q, one.reference_q + 0.1):
        assert_close(one.force(own, v, 0.0), other.force(own, v, 0.0))
        assert_close(one.friction(own, v, 0.0, pressed), other.friction(own, v, 0.0, pressed))


@pytest.mark.thorough
def test_the_command_tells_of_the_start(tmp_path):
    path = tmp_path / "leg.toml"
    path.write_text(write_model(leg(RUB | {"joint": "*", "radius": 0.1})))
    found = CliRunner().invoke(app, ["simulate", str(path), "--end", "0.01", "--json"])
    assert found.exit_code == 0, found.output
    assert json.loads(found.stdout)["certificate"]["solutions"] == 1


@pytest.mark.parametrize(
    ("table", "sentence"),
    [
        (
            RUB | {"joint": "ankle *"},
            r"force 'rub': pattern 'ankle \*' matches no joint; there are hip \(revolute\), knee 1",
        ),
        (
            RUB | {"joint": "*", "joint_kind": "screw"},
            r"force 'rub': pattern '\*' matches no joint of type 'screw'; there are hip",
        ),
        (RUB | {"joint": "hip", "joint_kind": "revolute"}, r"'hip' is one name; leave it out"),
        (RUB | {"joint": "ankle"}, r"joint 'ankle' was never declared"),
        (
            RUB | {"joint": "hip", "radius": 0.1, "length": 0.1},
            r"joint 'hip' \(revolute\) has no two bearings that carry a couple",
        ),
        (RUB | {"joint": "hip", "bearing": "first"}, r"bearing is given without `length`"),
        (RUB | {"joint": "hip", "length": 0.1, "bearing": "b"}, r"bearing must be 'first' or 'sec"),
        (LOSS | {"joint": "knee 2"}, r"joint 'knee 2' \(translational\) has no rotation; it has '"),
        (LOSS | {"joint": "*"}, r"force 'loss in knee 2': joint 'knee 2' \(translational\) has no"),
        (LOSS | {"joint": "hip", "coordinate": "angle"}, r"coordinate must be 'rotation' or 'tran"),
        (LOSS | {"joint": "hip", "breakaway": 0.3}, r"breakaway is given without `stribeck_speed`"),
        (LOSS | {"joint": "hip", "stribeck_speed": 0.3}, r"stribeck_speed is given without `brea"),
        (
            LOSS | {"joint": "hip", "breakaway": 0.1, "stribeck_speed": 0.3},
            r"breakaway must be at least `sliding` = 0\.2, got 0\.1",
        ),
        (
            {key: x for key, x in LOSS.items() if key != "velocity"} | {"joint": "hip"},
            r"dry friction needs `velocity` .rad/s., within which its sign is regularised, or",
        ),
    ],
)
def test_refusals(table, sentence):
    with pytest.raises(ValueError, match=sentence):
        leg(table).system()


def test_refusals_in_space():
    cases: tuple[tuple[Any, dict[str, Any], str], ...] = (
        (spatial.Translational, {"length": 0.1}, "needs `radius`, the lever arm"),
        (
            spatial.Revolute,
            {"length": 0.1, "radius": 0.1, "bearing": "first"},
            "stay where they are on both bodies",
        ),
        (spatial.Planar, {"length": 0.1, "radius": 0.1}, "has no two bearings"),
        (spatial.Planar, {}, "turns, so its friction needs `radius`"),
    )
    for kind, keys, sentence in cases:
        joint = kind("J", BODIES, AT3, AXIS3)
        load = forces.CoulombFriction("rub", "J", coefficient=0.1, velocity=0.1, **keys)
        with pytest.raises(ValueError, match=sentence):
            displaced(joint, load)


@pytest.mark.thorough
def test_several_accelerations_are_told():
    """A run and reactions say that there are two; where there is none they name the joints."""
    angle = math.radians(60.0)
    two = painleve_klein(1.5 * 2 / math.tan(angle), 0.0, angle, 1.0, -1.0)
    run = simulate(two, two.reference_q, two.initial_v, end=0.02, every=0.01)
    assert np.asarray(run.friction_solutions()).tolist() == [2, 2, 2]
    assert "leaves several accelerations, of which the motion has one" in str(run)
    assert "in 3 of 3 states, from 0 to 0.02 s" in str(run)
    found = reactions(two, two.reference_q, two.initial_v)
    assert "Friction in A, B leaves 2 accelerations" in found.message
    none = painleve_klein(1.5 * 2 / math.tan(angle), 0.0, angle, 1.0, 1.0)
    with pytest.raises(AnalysisError, match=r"no acceleration in this state.*friction in A, B"):
        reactions(none, none.reference_q, none.initial_v)
    with pytest.raises(SimulationError, match=r"friction in A \(coefficient 1.732, certified up"):
        simulate(none, none.reference_q, none.initial_v, end=0.02)


def test_newton_in_contacts_finds_what_there_is(rng):
    """Random problems of several contacts with a solution, also far beyond every proof."""
    solved = eqx.filter_jit(_solve_contacts)
    found = 0
    for count in (2, 3, 5):
        for _ in range(15):
            matrix = rng.normal(size=(count, count))
            pressed = rng.normal(size=count)
            load = pressed - matrix @ np.abs(pressed)
            pad = ((0, 0), (0, 2))
            gain = np.zeros((count, 3, count))
            gain[:, 0] = matrix
            none = jnp.zeros((count, 0))
            contacts = _Contacts(
                none,
                jnp.asarray(np.pad(load[:, None], pad)),
                jnp.asarray(gain),
                jnp.ones(count),
                none,
                ((1, 1),) * count,
                (False,) * count,
            )
            normal = np.asarray(solved(contacts, jnp.zeros(count)))
            found += np.max(np.abs(normal - np.abs(load + matrix @ normal))) < 1e-9
    assert found == 45
