"""Motions of `simulate` against laws that are known in closed form."""

import numpy as np
import pytest
from exact_motions import (
    about_z,
    directions,
    G,
    Oscillator,
    Pendulum,
    RollingDisk,
    Skate,
    Sleigh,
)
from scipy.spatial.transform import Rotation

import jaxmbs as jm
from jaxmbs import planar, spatial


# One number of saved times, so that each mechanism is one program for all its cases.
SHARES = np.linspace(0.0, 1.0, 13)
# Steps have an error of at most 1e-11 (relative); some hundreds of them add up, and between steps
# motions are interpolated with one order less. Lengths over the size of the mechanism.
TOLERANCE = 2e-10
# Millimetres, metres and kilometres.
each_size = pytest.mark.parametrize("size", [1e-3, 1.0, 1e3])


def run(system, times, size=1.0):
    return jm.simulate(
        system,
        system.reference_q,
        system.initial_v,
        times[-1],
        times=times,
        rtol=1e-11,
        atol=1e-13 * size,
        monitor=False,
    )


def assert_close(actual, expected, size=1.0):
    np.testing.assert_allclose(actual, expected, rtol=0, atol=TOLERANCE * size)


# ---------------------------------------------------------------------------------------------
# Knife edges
# ---------------------------------------------------------------------------------------------


@each_size
@pytest.mark.parametrize(("ahead", "turn"), [(0.3, 0.8), (0.05, 2.5), (1.5, 0.2)])
def test_sleigh(ahead, turn, size):
    law, times = Sleigh(ahead, turn, size), 3.0 * SHARES
    found = run(law.system(), times, size)
    (v, w), angle = law.rates(times), law.angle(times)
    along, across = directions(angle)
    assert_close(found.q[:, :2], law.edge(times) + law.a * along, size)
    assert_close(found.q[:, 2], angle)
    assert_close(found.v[:, :2], v[:, None] * along + law.a * w[:, None] * across, 10 * size)
    assert_close(found.v[:, 2], w, 10)
    # The edge pushes mass and inertia sideways; what it exerts is minus the multiplier.
    side = law.MASS * v * w * law.inertia / law.J
    assert_close(-found.multipliers[:, 0], side, 100 * size)


@each_size
@pytest.mark.parametrize("spin", [1.3, -6.0])
def test_knife_edge_on_an_incline(spin, size):
    law, times = Skate(spin, 0.9, 0.4, G * np.sin(0.5), size), 3.0 * SHARES
    body, edge = law.parts()
    found = run(jm.MultibodySystem([body], [edge], gravity=(0.0, -law.g)), times, size)
    units = np.array([size, size, 1.0])
    assert_close(np.asarray(found.q) / units, law.place(times) / units)
    assert_close(np.asarray(found.v) / units, law.velocity(times) / units, 10)
    assert_close(-found.multipliers[:, 0], law.side(times), 100 * size)


# ---------------------------------------------------------------------------------------------
# In space
# ---------------------------------------------------------------------------------------------


def assert_turned(q, expected, size=1.0):
    found = Rotation.from_quat(np.asarray(q)[:, 3:7], scalar_first=True)
    assert_close((found.inv() * expected).magnitude(), 0.0, size)


@pytest.mark.parametrize(("tilt", "precession"), [(1.2, 0.7), (0.3, 9.0), (2.0, -3.0)])
@pytest.mark.thorough
def test_tilted_disk_rolls_in_a_circle(tilt, precession):
    law, times = RollingDisk(tilt, precession), 2.0 * SHARES
    found = run(law.system(), times)
    assert_close(found.q[:, :3], law.places(times), 10)
    assert_turned(found.q, law.turns(times), 10)
    assert_close(-found.multipliers, law.pushes(times), 100)


@pytest.mark.parametrize("far", [0.0, 1e4])
@pytest.mark.parametrize("moments", [(0.3, 0.3, 0.5), (0.3, 0.3, 0.02)])
def test_free_symmetric_top(moments, far):
    """The angular momentum H is constant. With A and C the moments across and along the axis and n
    the spin along it, the axis precesses about H at the rate |H| / A, while the body turns about
    the axis at the rate n (1 - C / A)."""
    first = Rotation.from_rotvec([0.3, -1.1, 0.7])
    spin, velocity = np.array([1.5, -0.8, 7.0]), np.array([0.5, -2.0, 1.0])
    body = spatial.Body(
        "top",
        mass=2.0,
        inertia=moments,
        position=far * np.ones(3),
        rotation=first.as_matrix(),
        velocity=velocity,
        angular_velocity=first.apply(spin),
    )
    times = 4.0 * SHARES
    found = run(jm.MultibodySystem([body]), times)
    A, _, C = moments
    momentum = first.apply(np.array(moments) * spin)
    precession = Rotation.from_rotvec(times[:, None] * momentum / A)
    turned = precession * first * about_z(spin[2] * (1 - C / A) * times)
    assert_turned(found.q, turned)
    assert_close(
        turned.apply(np.array(moments) * np.asarray(found.v[:, 3:])), np.tile(momentum, (13, 1)), 10
    )
    # Far away numbers have fewer digits.
    np.testing.assert_allclose(
        found.q[:, :3], far + times[:, None] * velocity, rtol=0, atol=1e-13 * (10 + far)
    )


# ---------------------------------------------------------------------------------------------
# Oscillators
# ---------------------------------------------------------------------------------------------


# (A pendulum against its law is in `test_simulate.py`.)
@pytest.mark.thorough
@each_size
@pytest.mark.parametrize(("k", "damping"), [(np.sin(1.55), 4.0), (1.0001, 120.0), (3.0, 0.0)])
def test_pendulum_and_oscillator(k, damping, size):
    """Swinging to 2.4 degrees from the top, turning over slowly, turning fast; damped less and more
    than critically, and not at all."""
    rod, spring = Pendulum(k, size), Oscillator(damping, size)
    block, slide, load = spring.parts()
    pin = planar.Revolute("pin", ("ground", "rod"), (0.0, 0.0))
    system = jm.MultibodySystem(
        [rod.body(), block], [pin, slide], forces=[load], gravity=(0.0, -G * size)
    )
    times = 3.0 * SHARES
    found = run(system, times, size)
    x, rate = spring.swing(times)
    assert_close(found.q[:, 3:5], x[:, None] * spring.along, size)
    assert_close(found.v[:, 3:5], rate[:, None] * spring.along, 10 * size)
    # On the way to the top and back errors grow by some hundreds.
    angle, rate = rod.swing(times)
    assert_close(found.q[:, 2], angle, 100)
    assert_close(found.v[:, 2], rate, 100)


@pytest.mark.parametrize(
    "stabilisation",
    [jm.runs.Projection(), jm.runs.Baumgarte(5.0, 5.0)],
    ids=["projection", "baumgarte"],
)
def test_a_body_that_spins_freely(stabilisation):
    """Its velocities never change, so that they tell nothing of the error of its orientation."""
    body = jm.spatial.Body("b", mass=1.0, inertia=np.eye(3), position=(0.0, 0.0, 0.0))
    system = jm.MultibodySystem([body])
    for rate in (1.0, 10.0):
        v = system.initial_v.at[5].set(rate)
        run = jm.simulate(
            *(system, system.reference_q, v, 10.0),
            **{"every": 2.0, "rtol": 1e-8, "atol": 1e-10, "stabilisation": stabilisation},
        )
        half = rate * np.asarray(run.times) / 2
        np.testing.assert_allclose(run.q[:, 3], np.cos(half), rtol=0, atol=1e-8 * (1 + rate))
        np.testing.assert_allclose(run.q[:, 6], np.sin(half), rtol=0, atol=1e-8 * (1 + rate))
