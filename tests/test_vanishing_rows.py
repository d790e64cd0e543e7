"""Velocity rows that are nonlinear in v and vanish at a state: nothing goes on there as if they
held something, and the row is named."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from representatives import representatives

import jaxmbs as jm
from jaxmbs import planar


def point(function: Callable, force: Callable | None = None) -> jm.MultibodySystem:
    """A particle of 2 kg in the plane, with one row on its velocity."""
    push = force or (lambda q, v, t: jnp.array([0.3, -0.2]))
    return jm.GeneralizedSystem(
        ("x", "y"),
        mass_matrix=lambda q: 2.0 * jnp.eye(2),
        force=push,
        constraints={"speed": jm.VelocityConstraint(function)},
        lengths=("x", "y"),
    )


# Rows that vanish at rest, and a velocity at which they hold (at t = 1 s those of a speed).
ROWS: dict[str, tuple[Callable, np.ndarray]] = {
    "speed": (lambda q, v, t: v @ v - t**2, np.array([0.6, 0.8])),
    "square": (lambda q, v, t: v[:1] ** 2 - (2 - t) ** 2, np.array([1.0, 0.3])),
    "product": (lambda q, v, t: v[0] * v[1], np.array([0.0, 0.7])),
    "cube": (lambda q, v, t: v[0] ** 3 - (t - 1) ** 3 - v[1] * (v @ v), np.array([0.5, 0.5])),
    "relative": (lambda q, v, t: (v[0] - 2 * v[1]) ** 2, np.array([0.0, 0.0])),
}


def told(text: str) -> None:
    assert "'speed'" in text
    assert "not at rest" in text


@pytest.mark.parametrize("name", representatives(ROWS, "product"))
def test_single_states(name: str):
    system = point(ROWS[name][0])
    q, rest = jnp.zeros(2), jnp.zeros(2)
    # At this time rest is allowed.
    t = {"speed": 0.0, "square": 2.0}.get(name, 1.0)
    for question in (
        lambda: jm.analyze(system, q, rest, t),
        lambda: jm.reactions(system, q, rest, t),
        lambda: jm.simulate(system, q, rest, t + 1, start=t),
        lambda: jm.simulate(system, q, rest, t + 1, start=t, consistent=True),
        lambda: jm.kinematics(system, q, np.array([t, t + 1])),
    ):
        with pytest.raises(ValueError, match="speed") as caught:
            question()
        told(str(caught.value))
    solved = jm.solve_with_friction(system, None, q, rest, t)
    assert bool(solved.result == jm.RESULTS.velocity_row_vanishes)
    traced = jax.jit(lambda q, v: jm.analyze(system, q, v, t).result)(q, rest)
    assert bool(traced == jm.RESULTS.velocity_row_vanishes)


def test_elsewhere_they_count():
    for name, (function, v) in ROWS.items():
        if np.any(v):
            report = jm.analyze(point(function), jnp.zeros(2), jnp.asarray(v), 1.0)
            assert int(report.rank) == 1, name
            assert bool(report.result == jm.RESULTS.successful)


def test_what_is_linear_is_not_meant():
    """A row without entries holds nothing at any velocity, and takes nothing away."""
    system = point(lambda q, v, t: q[0] * v[0] + 0 * v[1])
    report = jm.analyze(system, jnp.zeros(2), jnp.zeros(2), 0.0)
    assert int(report.rank) == 0


RUNS: dict[str, tuple[Callable, np.ndarray]] = {
    "a speed that ends": (lambda q, v, t: v @ v - (1 - t) ** 2, np.array([0.6, 0.8])),
    "one velocity that ends": (lambda q, v, t: v[0] ** 2 - (1 - t) ** 2, np.array([1.0, 0.2])),
    "a product": (lambda q, v, t: v[0] * v[1] - 0 * t, np.array([1.0, 0.0])),
}


@pytest.mark.parametrize("name", representatives(RUNS, "a speed that ends"))
def test_runs_end_where_a_row_vanishes(name: str):
    function, v = RUNS[name]
    # A product keeps v[1] = 0 while v[0] is braked to rest, at 1 s.
    brake = (lambda q, v, t: jnp.array([-2.0, 0.0])) if name == "a product" else None
    system = point(function, brake)
    with pytest.raises(jm.SimulationError, match="'speed'") as caught:
        jm.simulate(system, jnp.zeros(2), jnp.asarray(v), 2.0)
    told(str(caught.value))
    assert float(caught.value.trajectory.times[-1]) == pytest.approx(1.0, abs=1e-6)


def test_a_run_at_constant_speed_goes_on():
    """Round and round, v . v = 1 under a force across: steps in which the row turns are no end."""
    system = point(lambda q, v, t: v @ v - 1.0, lambda q, v, t: 8.0 * jnp.array([-v[1], v[0]]))
    motion = jm.simulate(system, jnp.zeros(2), jnp.array([1.0, 0.0]), 3.0)
    expected = [np.cos(12.0), np.sin(12.0)]
    np.testing.assert_allclose(motion.v[-1], expected, atol=1e-6)


def test_bodies():
    """A user's row on a rigid body."""
    body = planar.Body("sled", mass=1.0, inertia=0.1, position=(0.0, 0.0))
    row = planar.Velocity(
        "speed",
        lambda frames, twists, t: (twists[0].linear @ twists[0].linear)[None],
        [("sled", (0.0, 0.0))],
    )
    system = jm.MultibodySystem([body], [row])
    with pytest.raises(ValueError, match="velocity row 'speed' does not depend"):
        jm.analyze(system, system.reference_q)
