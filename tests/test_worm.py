"""Friction of a worm and its wheel: efficiency and self-locking against the closed forms."""

import math
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from representatives import representatives

import jaxmbs as jm
from jaxmbs import forces, motions, MultibodySystem, planar, spatial


STARTS, TEETH, PRESSURE, DISTANCE = 2, 40, math.radians(20.0), 0.1


def worm_drive(mu, lead, load, rate=None, hand=1, worm_inertia=1e-3, **keys):
    """A worm about x and its wheel about y, a torque (N m) on the wheel; the worm runs at the rate
    (rad/s), or is free."""
    bodies = [
        spatial.Body("worm", mass=1.0, inertia=(worm_inertia,) * 3, position=(0, 0, 0)),
        spatial.Body("wheel", mass=5.0, inertia=(0.1, 0.1, 0.1), position=(0, 0, DISTANCE)),
    ]
    joints = [
        spatial.Revolute("axle 1", ("ground", "worm"), at=(0, 0, 0), axis=(1, 0, 0)),
        spatial.Revolute("axle 2", ("ground", "wheel"), at=(0, 0, DISTANCE), axis=(0, 1, 0)),
        spatial.WormPair(
            "mesh",
            ("worm", "wheel"),
            points=((0, 0, 0), (0, 0, DISTANCE)),
            axes=((1, 0, 0), (0, 1, 0)),
            teeth=(STARTS, TEETH),
            lead_angle=hand * lead,
        ),
    ]
    keys = keys or {"velocity": 1e-6}
    rub = forces.CoulombFriction("rub", "mesh", coefficient=mu, **keys)
    pull = forces.Applied("pull", "wheel", torque=(0.0, load, 0.0))
    drivers = []
    if rate is not None:
        drivers = [jm.Driver("drive", "axle 1", "rotation", motions.Linear(rate=rate))]
    return MultibodySystem(bodies, joints, drivers, forces=[rub, pull])


def driving(system, v):
    found = jm.runs.solve_with_friction(system, system.reference_q, v, 0.0)
    return found.multipliers[-1]


def forward(mu, lead):
    """Efficiency of a worm that drives its wheel."""
    c, t = math.cos(PRESSURE), math.tan(lead)
    return (c - mu * t) / (c + mu / t)


def backward(mu, lead):
    """Of a wheel that drives its worm: negative where that locks itself."""
    c, t = math.cos(PRESSURE), math.tan(lead)
    return (c - mu / t) / (c + mu * t)


@pytest.mark.parametrize("hand", representatives([1, -1], -1))
def test_efficiency(hand):
    """The torque at the worm for a load at the wheel, in both senses of both."""
    torque = eqx.filter_jit(driving)
    seen = []
    for mu in (0.0, 0.15):
        for lead in (0.05, 0.7):
            ideal = 3.0 * STARTS / TEETH
            found = set()
            for rate in (10.0, -10.0):
                for load in (3.0, -3.0):
                    system = worm_drive(mu, lead, load, rate, hand)
                    v = jm.consistent_state(system, system.reference_q, system.initial_v).v
                    size = float(torque(system, v))
                    # Power into the worm where the load takes power from the wheel, and reversed.
                    lifting = load * float(v[10]) < 0
                    expected = ideal / forward(mu, lead) if lifting else ideal * backward(mu, lead)
                    sign = 1.0 if mu == 0 else np.sign(expected)
                    assert abs(size) == pytest.approx(abs(expected), rel=1e-9)
                    found.add((lifting, bool(np.sign(size) * sign == np.sign(rate))))
            # The worm is driven with its sense where it lifts; lowering it is held, or, where it
            # locks itself, driven as well.
            seen.append((mu, lead, found))
    first = seen[0][2]
    assert len(first) == 2
    assert all(found == first for *_, found in seen)
    assert any(backward(mu, lead) < 0 for mu, lead, _ in seen)


def test_where_it_locks():
    assert backward(0.1, math.atan(0.1 / math.cos(PRESSURE))) == pytest.approx(0.0, abs=1e-15)


@pytest.mark.thorough
@pytest.mark.parametrize(("factor", "holds"), [(1.3, True), (0.7, False)])
def test_a_self_locking_worm_holds_its_load(factor, holds):
    """The worm is free: the load stays where mu / cos(pressure) > tan(lead), else it sinks."""
    lead = 0.1
    mu = factor * math.tan(lead) * math.cos(PRESSURE)
    keys: Any = {"presliding": 1e-5, "relaxation_time": 3e-3}
    system = worm_drive(mu, lead, 3.0, worm_inertia=1e-2, **keys)
    found = jm.simulate(
        system, system.reference_q, system.initial_v, end=2.0, times=[0.0, 1.0, 2.0]
    )
    spin = np.abs(np.asarray(found.v[:, 3]))
    if holds:
        assert spin[-1] < 1e-6
        # z / presliding is the part of friction that is needed: tan(lead) cos(pressure) / mu.
        assert abs(float(found.q[-1, -1])) == pytest.approx(1e-5 / factor, rel=1e-4)
        assert np.abs(np.asarray(found.q[-1, :-1] - found.q[1, :-1])).max() < 1e-6
    else:
        assert spin[-1] > 1.0


@pytest.mark.thorough
def test_derivatives():
    """Of the worm's torque by coefficient and lead angle, both ways: the closed form's."""

    def torque(x):
        system = worm_drive(x[0], x[1], 3.0, 10.0)
        # The wheel turns by -+ 1 / 20 of the worm.
        v = jnp.zeros(12).at[3].set(10.0).at[10].set(10.0 * sense)
        return driving(system, v)

    system = worm_drive(0.1, 0.2, 3.0, 10.0)
    v = jm.consistent_state(system, system.reference_q, system.initial_v).v
    sense = float(v[10]) / 10.0
    assert abs(sense) == pytest.approx(STARTS / TEETH)
    c, ideal = math.cos(PRESSURE), 3.0 * STARTS / TEETH

    def by_hand(x):
        t = jnp.tan(x[1])
        lifting = ideal * (c + x[0] / t) / (c - x[0] * t)
        return lifting if 3.0 * sense < 0 else ideal * (c - x[0] / t) / (c + x[0] * t)

    x = jnp.array([0.1, 0.2])
    expected = jax.grad(by_hand)(x)
    for take in (jax.jacfwd, jax.jacrev):
        found = jax.jit(take(torque))(x)
        assert np.allclose(np.abs(found), np.abs(expected), rtol=1e-8)


def test_refusals():
    mesh = ("one", "two")
    gears = {
        "gear_pair": spatial.GearPair(
            "mesh", mesh, points=((0, 0, 0), (0.1, 0, 0)), axis=(0, 0, 1), teeth=(20, 30)
        ),
        "bevel_pair": spatial.BevelPair(
            "mesh", mesh, apex=(0, 0, 0), axes=((1, 0, 0), (0, 1, 0)), teeth=(20, 30), radius=0.05
        ),
        "rack_and_pinion": planar.RackAndPinion("mesh", mesh, points=((0, 0), (0.1, 0))),
    }
    rub = forces.CoulombFriction("rub", "mesh", coefficient=0.1, velocity=1e-3)
    for kind, joint in gears.items():
        with pytest.raises(ValueError, match=rf"'mesh' \({kind}\) roll on each other"):
            rub.law_of(joint)
    worm = spatial.WormPair(
        "mesh",
        mesh,
        points=((0, 0, 0), (0, 0, 0.1)),
        axes=((1, 0, 0), (0, 1, 0)),
        teeth=(2, 40),
        lead_angle=0.2,
    )
    thick = forces.CoulombFriction("rub", "mesh", coefficient=0.1, velocity=1e-3, radius=0.1)
    with pytest.raises(ValueError, match="takes no `radius` and no `length`"):
        thick.law_of(worm)
