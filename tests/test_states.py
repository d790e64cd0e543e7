"""What is no state is refused by every public function, or told by its result: never an answer.

The table is generated: every public function and every method of a system that takes `q`, with
every kind of bad argument. Concrete values are refused before anything is computed, so that
nothing is compiled here but the traced cases at the end.
"""

import functools
import inspect
import re
from collections.abc import Callable, Mapping
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from helpers import everything_public

import jaxmbs as jm
from jaxmbs._system import AbstractSystem, is_state
from jaxmbs._verdict import Verdict
from jaxmbs.results import RESULTS


@functools.cache
def door() -> jm.MultibodySystem:
    return jm.mechanisms.door().system()


@functools.cache
def crank() -> jm.MultibodySystem:
    return jm.mechanisms.slider_crank().system()


@functools.cache
def pendulum() -> jm.MultibodySystem:
    return jm.GeneralizedSystem(
        ["x", "y"],
        mass_matrix=lambda q: jnp.eye(2),
        force=lambda q, v, t: jnp.array([0.0, -9.81]),
        constraints={"rod": jm.generalized.PositionConstraint(lambda q, t: q @ q - 1.0)},
        lengths=["x", "y"],
    )


def state_of(system: Any) -> tuple[Any, Any]:
    if system is pendulum():
        return jnp.array([0.0, -1.0]), jnp.zeros(2)
    return system.reference_q, system.initial_v


# ---------------------------------------------------------------------------------------------
# Everything that takes a state
# ---------------------------------------------------------------------------------------------


FUNCTIONS: Mapping[str, Callable[[Any, Any, Any, Any], Any]] = {
    "analyze": jm.analyze,
    "assemble": lambda s, q, v, t: jm.assemble(s, q, t),
    "certify": jm.certify,
    "compare": jm.compare,
    "consistent_state": jm.consistent_state,
    "equilibrium": lambda s, q, v, t: jm.equilibrium(s, q, t),
    "floquet": lambda s, q, v, t: jm.floquet(s, q, v, 1.0, t),
    "holonomy": lambda s, q, v, t: jm.holonomy(s, q, t, key=jax.random.key(0)),
    "inverse_dynamics": lambda s, q, v, t: jm.inverse_dynamics(s, q, jnp.array([0.0, 1.0])),
    "kinematics": lambda s, q, v, t: jm.kinematics(s, q, jnp.array([0.0, 1.0])),
    "linearise": jm.linearise,
    "mobility": lambda s, q, v, t: jm.mobility(s, q, t),
    "ranges": jm.ranges,
    "reactions": lambda s, q, v, t: jm.reactions(s, q, v, t, zero_rows(s)),
    "releases": lambda s, q, v, t: jm.releases(s, q, v, t, report=report()),
    "screen": jm.screen,
    "simulate": lambda s, q, v, t: jm.simulate(s, q, v, 1.0, start=t),
    "singularity": lambda s, q, v, t: jm.singularity(s, q, v, t, key=jax.random.key(0)),
    "solve_with_friction": lambda s, q, v, t: jm.runs.solve_with_friction(
        s, q, v, t, formulation=jm.formulations.MinimumNorm()
    ),
    "sweep": lambda s, q, v, t: jm.sweep(jm.screen, s, cases(), q=q, v=v, t=t),
    "undetermined_accelerations": jm.formulations.undetermined_accelerations,
    "verdicts": jm.verdicts,
    "workspace": jm.sweeps.workspace,
}

# The classes that are made at a state, and a function of the state's system and not of it.
CLASSES = {"Misfit": lambda s, q, v, t: jm.sweeps.Misfit(s, q, t)}

METHODS: Mapping[str, Callable[[Any, Any, Any, Any], Any]] = {
    "acceleration_offset": lambda s, q, v, t: s.acceleration_offset(q, v, t),
    "servo_error": lambda s, q, v, t: s.servo_error(q, v, t),
    "constraint_matrix": lambda s, q, v, t: s.constraint_matrix(q, v, t),
    "deformation_matrix": lambda s, q, v, t: s.deformation_matrix(q, v, t),
    "descriptor": lambda s, q, v, t: s.descriptor(q, v, t),
    "difference": lambda s, q, v, t: s.difference(q, q),
    "driver_readings": lambda s, q, v, t: s.driver_readings(q, t),
    "elasticity": lambda s, q, v, t: s.elasticity(q, v, t),
    "equations": lambda s, q, v, t: s.equations(q, v, t),
    "evaluation": lambda s, q, v, t: s.evaluation(q, v, t),
    "flow": lambda s, q, v, t: s.flow(q, v, t),
    "force": lambda s, q, v, t: s.force(q, v, t),
    "free_acceleration": lambda s, q, v, t: s.free_acceleration(q, v, t),
    "friction": lambda s, q, v, t: s.friction(q, v, t, zero_rows(s)),
    "friction_maps": lambda s, q, v, t: s.friction_maps(q, v, t),
    "limit_gaps": lambda s, q, v, t: s.limit_gaps(q, t),
    "kinetic_energy": lambda s, q, v, t: s.kinetic_energy(q, v),
    "mass_matrix": lambda s, q, v, t: s.mass_matrix(q),
    "clearances": lambda s, q, v, t: s.clearances(q, v),
    "contact_clearances": lambda s, q, v, t: s.contact_clearances(q, v),
    "contact_states": lambda s, q, v, t: s.contact_states(q, v, t),
    "motor_states": lambda s, q, v, t: s.motor_states(q, v, t),
    "stop_depths": lambda s, q, v, t: s.stop_depths(q),
    "stop_states": lambda s, q, v, t: s.stop_states(q, v, t),
    "wound": lambda s, q, v, t: s.wound(q, t),
    "places": lambda s, q, v, t: s.places(q, v, t),
    "position_residual": lambda s, q, v, t: s.position_residual(q, t),
    "rate": lambda s, q, v, t: s.rate(q, v),
    "release_options": lambda s, q, v, t: s.release_options(q, v, t),
    "retract": lambda s, q, v, t: s.retract(q, v),
    "scaled_residual": lambda s, q, v, t: s.scaled_residual(q, t),
    "steady": lambda s, q, v, t: s.steady(q, v, jnp.zeros(3), t),
    "velocity_offset": lambda s, q, v, t: s.velocity_offset(q, v, t),
    "velocity_residual": lambda s, q, v, t: s.velocity_residual(q, v, t),
    "world_axes": lambda s, q, v, t: s.world_axes(q),
}

EVERYTHING = {**FUNCTIONS, **CLASSES, **METHODS}


def report() -> Any:
    """Nothing that a function would get to before it has looked at the state."""
    return None


def zero_rows(system: Any) -> Any:
    structure = getattr(system, "structure", door().structure)
    return jnp.zeros(len(structure.rows))


@functools.cache
def cases() -> jm.Cases:
    return jm.Cases({"gravity": np.zeros((1, 3))})


def takes(function: Any, name: str) -> bool:
    return name in inspect.signature(function).parameters


def test_the_table_is_complete():
    public = {
        name
        for name, value in everything_public().items()
        if not name.startswith("_") and inspect.isfunction(value) and takes(value, "q")
    }
    # Which takes many states, and says so of bad ones (`test_many_motions.py`).
    assert public - {"simulate_many"} == set(FUNCTIONS)
    methods = {
        name
        for name, value in vars(AbstractSystem).items()
        if not name.startswith("_") and inspect.isfunction(value) and takes(value, "q")
    }
    assert methods == set(METHODS)


# ---------------------------------------------------------------------------------------------
# What is no state
# ---------------------------------------------------------------------------------------------


def with_entry(q: np.ndarray, value: float) -> np.ndarray:
    return np.where(np.arange(q.size) == 1, value, q)


# What is made of a good q, and what the sentence has to say of it.
BAD_Q: Mapping[str, tuple[Callable[[np.ndarray], Any], Any, str]] = {
    "too long": (lambda q: np.append(q, 0.5), ValueError, r"shape \[\d+\]"),
    "too short": (lambda q: q[:-1], ValueError, r"shape \[\d+\]"),
    "empty": (lambda q: q[:0], ValueError, r"shape \[0\]"),
    "batch": (lambda q: np.stack([q, q]), ValueError, r"jax\.vmap"),
    "number": (lambda q: np.asarray(0.5), ValueError, r"shape \[\]"),
    "another system's": (
        lambda q: np.zeros(7 if q.size != 7 else 9),
        ValueError,
        "another system",
    ),
    "nan": (lambda q: with_entry(q, np.nan), ValueError, r"q\[1\].*nan"),
    "all nan": (lambda q: q * np.nan, ValueError, r"q\[0\].*nan"),
    "inf": (lambda q: with_entry(q, np.inf), ValueError, r"q\[1\].*inf"),
    "too large": (lambda q: with_entry(q, -1e160), ValueError, r"q\[1\].*1e\+160"),
    "single precision": (lambda q: q.astype(np.float32), TypeError, "float32"),
    "integers": (lambda q: np.zeros(q.size, int), TypeError, "int64"),
    "complex": (lambda q: q.astype(complex), TypeError, "complex128"),
    "booleans": (lambda q: q > 0, TypeError, "bool"),
    "words": (lambda q: q.astype(str), TypeError, "<U32"),
    "list": (lambda q: q.tolist(), TypeError, "a list"),
    "string": (lambda q: "reference", TypeError, "a str"),
    "None": (lambda q: None, (TypeError, ValueError), "None|give q"),
    "model": (lambda q: jm.mechanisms.door(), TypeError, "a Model"),
}

BAD_ROTATION: Mapping[str, tuple[Callable[[np.ndarray], Any], Any, str]] = {
    "zero quaternion": (lambda q: np.r_[q[:3], 0.0, 0.0, 0.0, 0.0], ValueError, "length 0"),
    "not unit": (lambda q: np.r_[q[:3], 2 * q[3:]], ValueError, "length 2"),
    "nearly unit": (lambda q: np.r_[q[:3], 1.00001 * q[3:]], ValueError, r"length 1\.00001"),
}

BAD_V = {
    name: entry
    for name, entry in BAD_Q.items()
    if name not in ("another system's", "None", "complex", "words")
}

BAD_T: Mapping[str, tuple[Any, Any, str]] = {
    "nan": (np.nan, ValueError, "nan"),
    "inf": (-np.inf, ValueError, "-inf"),
    "whole": (10**400, ValueError, "one number .*got a larger one"),
    "too large": (1e200, ValueError, r"1e\+200"),
    "list": ([0.0], TypeError, "a list"),
    "string": ("0", TypeError, "a str"),
    "boolean": (True, TypeError, "a bool"),
    "array": (jnp.zeros(2), ValueError, r"shape \[2\]"),
    "complex": (np.asarray(1j), TypeError, "complex128"),
}

BAD_SYSTEMS: Mapping[str, Any] = {
    "model": jm.mechanisms.door(),
    "None": None,
    "string": "door",
    "list": [1.0, 2.0],
    "number": 3.0,
    "class": jm.MultibodySystem,
}


# Those that take no velocities, and no time (or several).
NO_V = {"assemble", "equilibrium", "inverse_dynamics", "kinematics", "Misfit", "difference"} | {
    "holonomy",
    "mobility",
    "mass_matrix",
    "driver_readings",
    "world_axes",
    "places",
    "position_residual",
    "limit_gaps",
    "scaled_residual",
    "stop_depths",
    "wound",
}
NO_T = {"inverse_dynamics", "kinematics", "difference", "kinetic_energy", "mass_matrix"} | {
    "places",
    "world_axes",
    "rate",
    "retract",
    "stop_depths",
    "clearances",
    "contact_clearances",
}

SYSTEMS = {"spatial": door, "planar": crank, "generalized": pendulum}


def check_refused(name: str, arguments: tuple[Any, ...], error: Any, words: str) -> None:
    """One sentence of the kind and with the words that are wanted."""
    with pytest.raises(error, match=words) as told:
        EVERYTHING[name](*arguments)
    text = str(told.value)
    assert "\n" not in text
    assert len(text) < 300


@pytest.mark.parametrize("kind", SYSTEMS)
@pytest.mark.parametrize("name", EVERYTHING)
def test_no_function_takes_a_bad_q(name, kind):
    system = SYSTEMS[kind]()
    q, v = (np.asarray(x) for x in state_of(system))
    rotations = BAD_ROTATION if kind == "spatial" else {}
    for make, error, words in (*BAD_Q.values(), *rotations.values()):
        check_refused(name, (system, make(q), jnp.asarray(v), 0.0), error, words)


@pytest.mark.parametrize("name", [name for name in EVERYTHING if name not in NO_V])
def test_no_function_takes_a_bad_v(name):
    q, v = (np.asarray(x) for x in state_of(door()))
    for word, (make, error, words) in BAD_Q.items():
        if word not in ("None", "another system's"):
            said = re.sub(r"^q\\\[", r"(v|step)\\[", words)
            check_refused(name, (door(), jnp.asarray(q), make(v), 0.0), error, said)


@pytest.mark.parametrize("name", [name for name in EVERYTHING if name not in NO_T])
def test_no_function_takes_a_bad_time(name):
    q, v = state_of(door())
    for t, error, words in BAD_T.values():
        check_refused(name, (door(), q, v, t), error, words)


@pytest.mark.parametrize("name", [*FUNCTIONS, *CLASSES])
def test_no_function_takes_what_is_no_system(name):
    q, v = state_of(door())
    for word, system in BAD_SYSTEMS.items():
        # A sweep takes models.
        if not (word == "model" and name in ("sweep", "Misfit")):
            check_refused(
                name, (system, q, v, 0.0), TypeError, "system must be a system of equations"
            )


def test_without_double_precision_infinity_is_no_state_either():
    """Nor is it where the limit is infinite itself."""
    with jax.enable_x64(False):
        system = jm.mechanisms.slider_crank().system()
        q = system.reference_q
        for place in range(2):
            broken = q.at[place].set(jnp.inf)
            with pytest.raises(ValueError, match=rf"q\[{place}\].*inf"):
                system.position_residual(broken, 0.0)
            assert not bool(is_state(system.structure, broken, jnp.zeros(9), 0.0))
        assert bool(is_state(system.structure, q, jnp.zeros(9), 0.0))
        np.testing.assert_allclose(system.position_residual(q, 0.0), np.zeros(8), atol=1e-6)


def test_multipliers_are_checked():
    q, v = state_of(door())
    for bad, words in ((jnp.zeros(3), r"shape \[10\]"), (jnp.zeros(10) * jnp.nan, "lower.x")):
        with pytest.raises(ValueError, match=words):
            jm.reactions(door(), q, v, 0.0, bad)


def test_arrays_of_numpy_are_taken():
    q, v = state_of(door())
    ask: Any = jm.analyze
    known = ask(door(), np.asarray(q), np.asarray(v), np.float64(0.0))
    assert [bool(known.unique(name)) for name in ("lower", "upper")] == [False, False]


# ---------------------------------------------------------------------------------------------
# Traced states
# ---------------------------------------------------------------------------------------------


def bad_and_good(q: Any) -> Any:
    """Lanes: good, NaN, infinite, a quaternion of length 0, one of length 2, too large."""
    q = np.asarray(q)
    return jnp.asarray(
        np.stack(
            [
                q,
                with_entry(q, np.nan),
                with_entry(q, np.inf),
                np.r_[q[:3], 0.0, 0.0, 0.0, 0.0],
                np.r_[q[:3], 2 * q[3:]],
                with_entry(q, 1e160),
            ]
        )
    )


@functools.cache
def lanes(question: Callable[..., Any]) -> Any:
    """The question at those lanes of the door, in one program. (One after the other: a batch takes
    several times as long to compile.)"""
    q, v = state_of(door())
    ask = eqx.filter_jit(lambda lanes: jax.lax.map(lambda x: question(door(), x, v, 0.0), lanes))
    return ask(bad_and_good(q))


def check_verdict(verdict: Verdict) -> None:
    """Decided in the first lane alone, and nowhere else to be read as anything."""
    decided = np.asarray(verdict.decided).reshape(6, -1)
    np.testing.assert_array_equal(decided.all(axis=1), [True] + 5 * [False])
    np.testing.assert_array_equal(decided.any(axis=1), [True] + 5 * [False])
    assert not np.any(verdict.unique[1:])
    assert not np.any(verdict.not_unique[1:])
    one = verdict[1].reshape(-1)[0]
    assert one.tolist() is None
    assert str(one) == "not decided"
    for reading in (bool, np.asarray, lambda x: x == 1, lambda x: x != 1):
        with pytest.raises(ValueError, match="not decided is neither"):
            reading(one)


def check_result(result: Any) -> None:
    np.testing.assert_array_equal(np.asarray(result != RESULTS.successful), [False] + 5 * [True])
    np.testing.assert_array_equal(
        np.asarray(result == RESULTS.state_not_valid), [False] + 5 * [True]
    )


class TestTraced:
    def test_analyze_decides_nothing(self):
        found = lanes(jm.analyze)
        check_result(found.result)
        for word in ("reaction", "multiplier", "body"):
            check_verdict(getattr(found, f"{word}_unique"))
            assert np.isnan(getattr(found, f"{word}_measure")[1:]).all()
        for word in ("rank", "redundancy", "mobility", "rank_geometric", "rank_velocity"):
            np.testing.assert_array_equal(getattr(found, word)[1:], -1)
        assert np.asarray(found.doubtful).tolist() == [False] + 5 * [True]
        one = jax.tree.map(lambda x: x[1], found)
        assert str(one).startswith("Nothing was decided.")
        for question in (
            jm.criteria.removable_rows,
            jm.criteria.complete_removal,
            jm.dependent_sets,
        ):
            with pytest.raises(ValueError, match="decided"):
                question(one)

    def test_screen_decides_nothing(self):
        found = lanes(jm.screen)
        check_result(found.result)
        check_verdict(found.reaction_unique)
        assert np.isnan(found.trace[1:]).all()
        np.testing.assert_array_equal(found.redundancy, [5] + 5 * [-1])
        assert str(jax.tree.map(lambda x: x[1], found)).startswith("Nothing was decided.")
        assert not np.any(found.certain[1:])

    def test_a_certificate_decides_nothing(self):
        found = lanes(jm.certify)
        assert str(jax.tree.map(lambda x: x[2], found)).startswith("Nothing was decided.")

    def test_no_motion_is_certified(self):
        """Nor that of a system without friction, whose reactions are not asked for."""
        found = lanes(jm.certify)
        check_verdict(found.certified)

    def test_reactions_decide_nothing(self):
        found = lanes(lambda s, q, v, t: jm.reactions(s, q, v, t, jnp.ones(10)))
        for verdict in (found.reaction_unique, found.force_unique, found.torque_unique):
            check_verdict(verdict)
        wrench = found.state(3).wrench("lower")
        assert str(wrench).endswith("NOT DECIDED (no state)")
        assert "NOT DECIDED" in str(found)

    @pytest.mark.thorough
    def test_neighbours_of_nothing_have_no_rank(self):
        found = lanes(lambda *state: jm.singularity(*state, key=jax.random.key(0), samples=2))
        check_result(found.result)
        np.testing.assert_array_equal(found.rank[1:], -1)
        np.testing.assert_array_equal(found.generic_rank[1:], -1)

    def test_a_map_shows_nothing(self):
        found = lanes(jm.sweeps.workspace)
        check_result(found.result)
        check_verdict(found.reaction_unique)

    def test_nothing_is_assembled(self):
        found = lanes(lambda s, q, v, t: jm.assemble(s, q, t, throw=False))
        check_result(found.result)

    def test_nothing_accelerates(self):
        found = lanes(
            lambda s, q, v, t: jm.runs.solve_with_friction(
                s, q, v, t, formulation=jm.formulations.MinimumNorm()
            )
        )
        check_result(found.result)

    @pytest.mark.thorough
    def test_nothing_is_at_rest(self):
        check_result(lanes(lambda s, q, v, t: jm.equilibrium(s, q, t, throw=False)).result)

    def test_nothing_moves(self):
        """In lanes of a pendulum, whose programs are small: good, NaN, infinite, too large."""
        q, v = state_of(pendulum())
        q = np.asarray(q)
        bad = np.stack([q, *(with_entry(q, x) for x in (np.nan, np.inf, 1e160))])

        def run(x: Any) -> Any:
            moved = jm.simulate(pendulum(), x, v, 0.1, monitor=False)
            near = jm.consistent_state(pendulum(), x, v)
            return moved.result, near

        result, near = eqx.filter_jit(lambda lanes: jax.lax.map(run, lanes))(jnp.asarray(bad))
        np.testing.assert_array_equal(
            np.asarray(result == RESULTS.state_not_valid), [False, True, True, True]
        )
        np.testing.assert_array_equal(np.isnan(near.q).all(axis=1), [False, True, True, True])

    def test_while_tracing_a_verdict_is_no_boolean(self):
        q, _ = state_of(door())
        with pytest.raises(TypeError, match=r"take its \.unique"):
            jax.eval_shape(lambda x: bool(jm.analyze(door(), x).reaction_unique[0]), q)


# ---------------------------------------------------------------------------------------------
# States that are open
# ---------------------------------------------------------------------------------------------


def test_an_open_configuration_is_told():
    q, _ = state_of(door())
    moved = q.at[0].add(0.1)
    for report in (jm.analyze(door(), moved), jm.screen(door(), moved)):
        assert report.result == RESULTS.configuration_open
        np.testing.assert_allclose(np.max(np.abs(report.residual)), 0.1 / 0.7, rtol=1e-12)
        assert "Not closed: 'lower' by 0.1 m, 'upper' by 0.1 m open" in str(report)
    closed = jm.analyze(door(), q)
    assert closed.result == RESULTS.successful
    assert "closed" not in str(closed)


@pytest.mark.thorough
def test_a_configuration_is_open_where_its_driver_stands_elsewhere():
    """At another time."""
    model = jm.mechanisms.mobile_robot(jm.motions.Linear(rate=0.05))
    robot = model.system()
    late = jm.analyze(robot, robot.reference_q, t=0.5)
    assert late.openness().startswith("Not closed: 'steering' by 0.025 m open")
    assert late.result == RESULTS.configuration_open


def test_a_case_that_failed_has_no_verdict():
    model = jm.mechanisms.slider_crank()
    q = np.asarray(crank().reference_q)
    cases = jm.Cases({"q": np.stack([q, 1e90 * q])})
    found = jm.sweep(jm.sweeps.Certification(), model, cases, width=2).answers()
    good, bad = (jax.tree.map(lambda x, k=k: jnp.asarray(x[k]), found) for k in range(2))
    assert good.reaction_unique.tolist() == [True] * 4
    assert np.all(good.certain)
    assert bad.reaction_unique.tolist() == [None] * 4
    assert not np.any(bad.certain)
    assert str(bad).startswith("Nothing was decided.")


def test_a_verdict_is_of_three_values():
    """Kleene's logic, by its tables."""
    three = Verdict.where(jnp.array([True, True, False]), jnp.array([True, False, True]))
    assert three.tolist() == [True, False, None]
    words = {True: 1, False: 0, None: 0.5}
    for a in range(3):
        for b in range(3):
            x, y = three[a], three[b]
            assert words[(x & y).tolist()] == min(words[x.tolist()], words[y.tolist()])
            assert words[(x | y).tolist()] == max(words[x.tolist()], words[y.tolist()])
            both = Verdict(jnp.stack([x.numbers(), y.numbers()]))
            assert both.all().tolist() == (x & y).tolist()
            assert both.any().tolist() == (x | y).tolist()
    np.testing.assert_array_equal(np.asarray(three[:2]), [True, False])
    assert (three[:2] == np.array([True, False])).all()
    assert [bool(x) for x in three[:2]] == [True, False]
