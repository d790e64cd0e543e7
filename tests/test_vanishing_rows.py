"""Velocity rows that are nonlinear in v and vanish at a state: nothing goes on there as if they
held something, and the row is named."""

from collections.abc import Callable

import diffrax
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from representatives import representatives

import jaxmbs as jm
from jaxmbs import planar, spatial


def point(function: Callable, force: Callable | None = None) -> jm.MultibodySystem:
    """A particle of 2 kg in the plane, with one row on its velocity."""
    push = force or (lambda q, v, t: jnp.array([0.3, -0.2]))
    return jm.GeneralizedSystem(
        ("x", "y"),
        mass_matrix=lambda q: 2.0 * jnp.eye(2),
        force=push,
        constraints={"speed": jm.generalized.VelocityConstraint(function)},
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
    solved = jm.runs.solve_with_friction(system, q, rest, t)
    assert bool(solved.result == jm.results.RESULTS.velocity_row_vanishes)
    traced = jax.jit(lambda q, v: jm.analyze(system, q, v, t).result)(q, rest)
    assert bool(traced == jm.results.RESULTS.velocity_row_vanishes)


def test_elsewhere_they_count():
    for name, (function, v) in ROWS.items():
        if np.any(v):
            report = jm.analyze(point(function), jnp.zeros(2), jnp.asarray(v), 1.0)
            assert int(report.rank) == 1, name
            assert bool(report.result == jm.results.RESULTS.successful)


def test_what_is_linear_is_not_meant():
    """A row without entries holds nothing at any velocity, and takes nothing away."""
    system = point(lambda q, v, t: q[0] * v[0] + 0 * v[1])
    assert not system.structure.nonlinear.any()
    report = jm.analyze(system, jnp.zeros(2), jnp.zeros(2), 0.0)
    assert int(report.rank) == 0


LINEAR: dict[str, Callable] = {
    "constant": lambda q, v, t: v[0] - 2 * v[1] + 3,
    "of place and time": lambda q, v, t: jnp.where(q[1] > 0, jnp.sin(q[0]), t) * v[0] + t**2,
    "a cross product": lambda q, v, t: jnp.cross(q, v) + jnp.linalg.norm(q) * v[1],
    "a derivative": lambda q, v, t: jax.jvp(lambda q: jnp.sin(q[0]) * q[1], (q,), (v,))[1],
    "a compiled function": lambda q, v, t: jax.jit(lambda v: q @ v)(v),
    "a loop": lambda q, v, t: jax.lax.fori_loop(0, 3, lambda i, x: x + q[0] * v[0], 0.0 * v[1]),
    "a branch at a place": lambda q, v, t: jax.lax.cond(
        q[0] > 0, lambda v: v[0], lambda v: v[1], v
    ),
}
NONLINEAR: dict[str, Callable] = {
    **{name: function for name, (function, _) in ROWS.items()},
    "a side": lambda q, v, t: jnp.where(v[0] > 0, v[0], 2 * v[0]) + v[1],
    "a size": lambda q, v, t: jnp.abs(v[0]) + v[1],
    "only next to rest": lambda q, v, t: jnp.where(jnp.abs(v[0]) < 1e-3, v[0] ** 2, v[0]),
    "only elsewhere": lambda q, v, t: v[1] + q[0] * v[0] ** 2,
    "only later": lambda q, v, t: v[1] + jnp.maximum(t - 5, 0) * v[0] ** 2,
    "compiled": lambda q, v, t: jax.jit(lambda v: v @ v)(v),
    "a branch": lambda q, v, t: jax.lax.cond(v[0] > 0, lambda v: v[0], lambda v: v[1], v),
}


def test_linear_functions():
    for name, function in LINEAR.items():
        assert not point(function).structure.nonlinear.any(), name
    for name, function in NONLINEAR.items():
        assert point(function).structure.nonlinear.all(), name


def test_linear_rows_of_matrices():
    for matrix in ([1.0, -2.0], lambda q, t: jnp.array([jnp.sin(q[0]), t])):
        row = jm.generalized.PfaffianConstraint(matrix, lambda q, t: q[1] * t)
        system = jm.GeneralizedSystem(
            ("x", "y"), mass_matrix=jnp.eye(2), force=jnp.zeros(2), constraints={"row": row}
        )
        assert not system.structure.nonlinear.any()


def test_linear_rows_of_bodies():
    """Turned markers, which pass through products with quadratic ones, and two bodies."""
    ends = [("a", (0.3, 0.0, 0.1)), ("b", (0.0, 0.2, 0.0))]

    def slip(frames, twists, t):
        return frames[0].rotation[:, 0] @ (twists[0].linear - twists[1].linear) + t

    def turn(frames, twists, t):
        return twists[0].angular[0] * frames[1].origin[1] - 3 * twists[1].angular @ jnp.ones(3)

    rows = [
        spatial.Velocity("slip", lambda *x: slip(*x)[None], ends),
        spatial.Velocity("turn", lambda *x: turn(*x)[None], ends),
        spatial.Velocity("speed", lambda f, w, t: (w[0].angular @ w[1].linear)[None], ends),
    ]
    bodies = [
        spatial.Body(name, mass=1.0, inertia=(0.1, 0.1, 0.1), position=(0.0, 0.0, 0.0))
        for name in "ab"
    ]
    flags = jm.MultibodySystem(bodies, rows).structure.nonlinear
    assert flags.tolist() == [False, False, True]


def test_a_function_of_another_size():
    with pytest.raises(ValueError, match=r"'speed' \(velocity\): .*say rows=2"):
        point(lambda q, v, t: v)


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
    assert bool(caught.value.trajectory.result == jm.results.RESULTS.velocity_row_vanishes)
    assert float(caught.value.trajectory.times[-1]) == pytest.approx(1.0, abs=1e-6)


FINDER = diffrax.VeryChord(rtol=1e-8, atol=1e-8)
FIXED = {"controller": diffrax.ConstantStepSize(), "first_step": 0.013}
# How a run makes its steps, and how long before the zero it may end (s).
METHODS: dict[str, tuple[dict, float]] = {
    "generalized alpha": ({"solver": jm.runs.GeneralizedAlpha(step=0.013)}, 0.02),
    "explicit, steps of one length": (FIXED, 0.02),
    "implicit": ({"solver": diffrax.Kvaerno3()}, 1e-6),
    "implicit, steps of one length": (
        {"solver": diffrax.ImplicitEuler(root_finder=FINDER), **FIXED},
        0.1,
    ),
}


@pytest.mark.thorough
@pytest.mark.parametrize("name", METHODS)
def test_methods_that_cannot_see_it(name: str):
    """Steps of a length that leads across: no method goes on behind the zero."""
    options, early = METHODS[name]
    system = point(RUNS["a speed that ends"][0])
    v = jnp.asarray(RUNS["a speed that ends"][1])
    ended = jm.simulate(system, jnp.zeros(2), v, 2.0, throw=False, **options)
    assert bool(ended.result == jm.results.RESULTS.velocity_row_vanishes)
    told(ended.message)
    assert 1 - early < float(ended.times[-1]) <= 1.0


@pytest.mark.thorough
def test_a_row_that_touches_zero():
    """v = (1 - t)^2 is zero at 1 s and of one sign on both sides."""
    system = point(lambda q, v, t: v[0] ** 2 - (1 - t) ** 4)
    solver = jm.runs.GeneralizedAlpha(step=0.013)
    start = jnp.array([1.0, 0.2])
    ended = jm.simulate(system, jnp.zeros(2), start, 2.0, solver=solver, throw=False)
    assert bool(ended.result == jm.results.RESULTS.velocity_row_vanishes)
    assert float(ended.times[-1]) < 1.0


@pytest.mark.thorough
def test_a_row_that_touches_zero_by_adaptive_steps():
    system = point(lambda q, v, t: v[0] ** 2 - (1 - t) ** 4)
    start = jnp.array([1.0, 0.2])
    ended = jm.simulate(system, jnp.zeros(2), start, 2.0, throw=False)
    assert bool(ended.result == jm.results.RESULTS.velocity_row_vanishes)
    assert float(ended.times[-1]) == pytest.approx(1.0, abs=1e-3)


def test_a_linear_row_that_loses_rank_is_passed():
    """q[0] v[1] = 0 where q[0] goes through zero: no velocity matters to that."""
    system = point(lambda q, v, t: q[0] * v[1] + 0 * t, lambda q, v, t: jnp.array([0.5, 0.0]))
    start = jnp.array([-0.5, 0.0])
    motion = jm.simulate(system, start, jnp.array([1.0, 0.0]), 1.0)
    np.testing.assert_allclose(motion.q[-1], [0.625, 0.0], atol=1e-6)


@pytest.mark.thorough
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
