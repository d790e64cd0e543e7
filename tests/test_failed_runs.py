"""Runs that cannot go on say what happened, where, and keep everything computed until then."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbs as jm
from jaxmbs import motions, planar


class Push(eqx.Module):
    """blow v^2 on a mass of 1 kg, which is no number any more after the time `until` (s)."""

    blow: jax.Array
    until: jax.Array

    def __call__(self, q, v, t):
        return jnp.where(t < self.until, self.blow * v**2, jnp.nan)


def one_kilogram(q):
    return jnp.ones((1, 1))


def pushed(blow, until):
    """With the same functions always: one program serves all numbers."""
    return jm.GeneralizedSystem(
        ["x"],
        mass_matrix=one_kilogram,
        force=Push(jnp.asarray(blow), jnp.asarray(until)),
        constraints={},
        lengths=["x"],
        bodies={"bead": (["x"], [])},
    )


def failure(*arguments, **more):
    with pytest.raises(jm.SimulationError) as caught:
        jm.simulate(*arguments, **more)
    trajectory = caught.value.trajectory
    assert str(caught.value) == trajectory.message
    for array in (trajectory.times, trajectory.q, trajectory.v):
        assert bool(jnp.all(jnp.isfinite(array)))
        assert len(array) == len(trajectory.times)
    return trajectory


def test_a_force_that_is_not_finite():
    end = failure(pushed(0.0, 0.5), jnp.zeros(1), jnp.ones(1), 2.0, every=0.1)
    assert "not finite" in end.message
    assert "bead" in end.message
    assert float(end.times[-1]) == pytest.approx(0.5, abs=1e-6)
    np.testing.assert_allclose(end.q[:, 0], end.times, atol=1e-12)


def test_a_motion_that_ends_in_finite_time():
    """dv/dt = v^2 with v = 1 at first is infinite at 1 s: v = 1 / (1 - t)."""
    end = failure(pushed(1.0, 9.0), jnp.zeros(1), jnp.ones(1), 2.0, every=0.1)
    assert "step" in end.message
    assert "bead" in end.message
    assert float(end.times[-1]) == pytest.approx(1.0, abs=1e-6)
    early = np.asarray(end.times) < 0.95
    times, v = np.asarray(end.times)[early], np.asarray(end.v)[early, 0]
    np.testing.assert_allclose(v, 1 / (1 - times), rtol=1e-6)


def test_too_many_steps():
    end = failure(pushed(0.1, 9.0), jnp.zeros(1), jnp.ones(1), 2.0, max_steps=4, first_step=1e-3)
    assert "steps" in end.message
    assert 0.0 < float(end.times[-1]) < 2.0


def test_constraints_that_contradict_each_other_later():
    """Two drivers of one joint ask for the same until 0.5 s."""
    crank = planar.Body("crank", mass=2.0, inertia=0.1, position=(0.5, 0.0))
    pin = planar.Revolute("pin", ("ground", "crank"), (0.0, 0.0))
    steps = (
        motions.Step(times=[0.0, 0.5, 1.0], values=[0.0, 0.2, 0.4]),
        motions.Step(times=[0.0, 0.5, 1.0], values=[0.0, 0.2, 0.2]),
    )
    drivers = [
        jm.Driver(name, "pin", "rotation", motion)
        for name, motion in zip(("motor", "brake"), steps, strict=True)
    ]
    system = jm.MultibodySystem([crank], [pin], drivers)
    end = failure(system, system.reference_q, system.initial_v, 1.0, every=0.1)
    assert "'motor'" in end.message
    assert "'brake'" in end.message
    assert "contradict" in end.message
    assert float(end.times[-1]) == pytest.approx(0.5, abs=0.01)
    assert float(end.q[-1, 2]) == pytest.approx(0.2, abs=1e-6)
