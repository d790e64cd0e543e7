"""Runs in chunks: the same to the last bit however they are cut, stopped and gone on with, and one
program for any duration and any number of states."""

import dataclasses
import logging
import signal
from collections.abc import Iterator
from typing import Any, NamedTuple

import diffrax as dfx
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from representatives import representatives

import jaxmbs as jm
from jaxmbs import motions, planar
from jaxmbs._dynamics import _chunks
from jaxmbs._dynamics._failures import explain
from jaxmbs._dynamics._passages import Passages


STATES = (
    "times",
    "q",
    "v",
    "acceleration",
    "multipliers",
    "position_error",
    "velocity_error",
    "reached",
    "passages",
    "passage_count",
    "stopped",
    "statistics",
    "result",
)

# Each chunk is as long as the first.
ONE_PIECE = (1024, 10**6)


@pytest.fixture
def pace(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Cuts runs into chunks of at most so many states and steps."""

    def cut(states: int, steps: int) -> None:
        for name, value in (("_FIRST_STATES", states), ("_FIRST_STEPS", steps)):
            monkeypatch.setattr(_chunks, name, value)

    monkeypatch.setattr(_chunks, "_SHORT", 0.0)
    monkeypatch.setattr(_chunks, "_LONG", np.inf)
    return cut


class Run(NamedTuple):
    """Arguments of `simulate`."""

    system: Any
    q: Any
    v: Any
    end: float
    settings: dict[str, Any]

    def __call__(self, **more: Any) -> jm.results.Trajectory:
        settings: dict[str, Any] = {"throw": False, **self.settings, **more}
        return jm.simulate(self.system, self.q, self.v, self.end, **settings)


def assert_same(one: jm.results.Trajectory, other: jm.results.Trajectory) -> None:
    for name in STATES:
        parts = jax.tree.leaves(getattr(one, name)), jax.tree.leaves(getattr(other, name))
        for a, b in zip(*parts, strict=True):
            np.testing.assert_array_equal(a, b, err_msg=name)
    assert one.message == other.message
    assert one.passed == other.passed


def pendulum(*drivers: jm.Driver) -> jm.MultibodySystem:
    body = planar.Body("rod", mass=2.0, inertia=0.1, position=(0.5, 0.0))
    pin = planar.Revolute("pin", ("ground", "rod"), (0.0, 0.0))
    return jm.MultibodySystem([body], [pin], drivers, gravity=(0.0, -9.81))


def swinging(end: float = 2.0, **settings: Any) -> Run:
    system = pendulum()
    return Run(system, system.reference_q, system.initial_v, end, {"every": 0.03} | settings)


def driven() -> Run:
    """By a table with a kink, at the end of which the run ends."""
    table = motions.Table(times=[0.0, 0.3, 0.5, 1.0], values=[0.0, 0.1, 0.1, 0.3])
    system = pendulum(jm.Driver("motor", "pin", "rotation", table))
    start = jm.consistent_state(system, system.reference_q, system.initial_v)
    return Run(system, start.q, start.v, 1.0, {"every": 0.03})


def level(system: Any, q: Any, v: Any, t: Any) -> Any:
    return q[2] + 0.5


def chain(**settings: Any) -> Run:
    """Redundant, and through singular configurations."""
    system = jm.mechanisms.get("four-bar-chain:1").system()
    return Run(system, system.reference_q, system.initial_v, 3.0, {"every": 0.03} | settings)


def pulled_too_far() -> Run:
    system = pulled()
    v = jm.consistent_state(system, system.reference_q, jnp.zeros(9)).v
    return Run(system, system.reference_q, v, 0.6, {"every": 0.01})


RUNS = {
    "free": swinging,
    "knots": driven,
    "StopWhen": lambda: swinging(3.0, events=[jm.runs.StopWhen(level)]),
    "StopAtSingular": lambda: chain(events=[jm.runs.StopAtSingular()]),
    "through singular configurations": chain,
    "GeneralizedAlpha": lambda: swinging(1.0, solver=jm.runs.GeneralizedAlpha(step=0.02)),
    "steps of one length": lambda: swinging(
        1.0, every=0.013, controller=dfx.ConstantStepSize(), first_step=0.02
    ),
    "fails": pulled_too_far,
    "too many steps": lambda: swinging(max_steps=7),
}


# One that an event ends and one that comes to its end; with passages, and a method that keeps its
# acceleration.
USUAL = "StopWhen", "through singular configurations", "GeneralizedAlpha"


@pytest.mark.parametrize("name", representatives(RUNS, *USUAL))
def test_states_and_steps_do_not_depend_on_the_chunks(name: str, pace: Any):
    run = RUNS[name]()
    pace(*ONE_PIECE)
    whole = run()
    assert len(whole.times) > 5
    for states, steps in ((5, 2), (1, 1), (256, 3), (len(whole.times), 10**6)):
        pace(states, steps)
        assert_same(run(), whole)


def test_a_run_without_monitor_that_creeps_is_told_what_it_lacks():
    """Nothing else of the run says that the monitor was off."""
    run = swinging(max_steps=7)()
    assert "largest number of steps" in run.message
    assert "monitor" not in run.message
    unwatched = dataclasses.replace(run, passes=Passages.none(run.q.dtype))
    text = explain(run.system, jm.formulations.MinimumNorm(), unwatched)
    assert "leave out monitor=False" in text


def stopped(run: Run, after: int) -> jm.results.Trajectory:
    """The trajectory of a run that Ctrl-C stops at the end of a chunk."""
    reached: list[float] = []

    def tell(time: float) -> None:
        reached.append(time)
        if len(reached) == after:
            raise KeyboardInterrupt

    with pytest.raises(jm.runs.SimulationInterrupted) as caught:
        run(progress=tell)
    part = caught.value.trajectory
    assert f"stopped at {float(part.times[-1]):.9g} s" in str(caught.value)
    assert float(part.times[-1]) >= reached[-1]
    assert np.all(np.diff(part.times) > 0)
    return part


def test_a_stopped_run_goes_on_as_if_it_had_not_been(pace: Any):
    run = swinging()
    pace(*ONE_PIECE)
    whole = run()
    pace(1, 1)
    for after in (1, 4, 30):
        part = stopped(run, after)
        # The step in progress is shown to its end, which is where the run was stopped.
        saved = int(np.sum(part.reached))
        assert saved == len(part.times) - 1
        np.testing.assert_array_equal(part.q[:saved], whole.q[:saved])
        assert_same(jm.resume(part), whole)
        # Stopped and gone on with more than once.
        reached: list[float] = []

        def tell(time: float, reached: list[float] = reached) -> None:
            reached.append(time)
            if len(reached) == 3:
                raise KeyboardInterrupt

        with pytest.raises(jm.runs.SimulationInterrupted) as caught:
            jm.resume(part, progress=tell)
        assert_same(jm.resume(caught.value.trajectory), whole)


def test_a_run_that_is_stopped_at_its_end_is_whole(pace: Any):
    pace(*ONE_PIECE)
    run = swinging()
    with pytest.raises(jm.runs.SimulationInterrupted) as caught:
        run(progress=lambda time: signal.raise_signal(signal.SIGINT))
    assert_same(jm.resume(caught.value.trajectory), run())
    with pytest.raises(ValueError, match="came to its end"):
        jm.resume(caught.value.trajectory.at(slice(0, 3)))


def test_states_within_one_step_are_more_than_a_chunk_holds(
    pace: Any, monkeypatch: pytest.MonkeyPatch
):
    run = swinging(0.2, every=1e-5)
    pace(*ONE_PIECE)
    whole = run()
    assert len(whole.times) > 10 * _chunks.STATES
    assert int(whole.statistics.accepted) < 10
    part = stopped(run, 3)
    assert_same(jm.resume(part), whole)


def test_a_run_that_came_to_its_end_cannot_be_resumed():
    with pytest.raises(ValueError, match="came to its end"):
        jm.resume(swinging(0.1)())


def test_a_chunk_that_was_stopped_within_is_lost_and_computed_again(
    pace: Any, monkeypatch: pytest.MonkeyPatch
):
    run = swinging()
    pace(*ONE_PIECE)
    whole = run()
    pace(5, 2)
    own, calls = _chunks.chunk, []

    def interrupted(*arguments: Any) -> Any:
        calls.append(0)
        if len(calls) in (1, 4):
            raise KeyboardInterrupt
        return own(*arguments)

    monkeypatch.setattr(_chunks, "chunk", interrupted)
    # Before there is anything to show nothing is.
    with pytest.raises(KeyboardInterrupt) as plain:
        run()
    assert plain.type is KeyboardInterrupt
    with pytest.raises(jm.runs.SimulationInterrupted) as caught:
        run()
    assert_same(jm.resume(caught.value.trajectory), whole)


@pytest.fixture
def compiled() -> Iterator[list[str]]:
    """Names of the programs that are compiled."""
    names: list[str] = []

    class Listening(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            message = record.getMessage()
            if message.startswith("Compiling"):
                names.append(message)

    log, handler = logging.getLogger("jax"), Listening(logging.DEBUG)
    before, log.propagate = log.propagate, False
    log.addHandler(handler)
    with jax.log_compiles():
        yield names
    log.removeHandler(handler)
    log.propagate = before


def test_another_duration_and_other_times_compile_nothing(compiled: list[str]):
    # Of a method of which no other test here has the program.
    run = swinging(solver=dfx.Tsit5())
    run()
    assert any("chunk" in name for name in compiled)
    compiled.clear()
    for end, settings in (
        (3.0, {}),
        (2.0, {"every": 0.01}),
        (7.0, {"every": None}),
        (2.0, {"every": None, "times": [0.0, 0.1, 0.7, 2.0]}),
        (9.0, {"start": 4.0, "every": 0.001}),
    ):
        found = run._replace(end=end)(**settings)
        # An index into an array is a program of its own.
        assert np.asarray(found.times)[-1] == end
    assert compiled == []


def test_inside_of_jit_it_is_one_program_with_the_same_states():
    run = swinging()
    chunks = run()

    @eqx.filter_jit
    def one(system: Any, q: Any, v: Any) -> jm.results.Trajectory:
        return run._replace(system=system, q=q, v=v)()

    # What the tests' compiler makes of the two programs differs by rounding, which a pendulum adds
    # up over 34 steps. (With the compiler's own settings they are the same to the last bit.)
    found = one(run.system, run.q, run.v)
    for name in ("times", "q", "v", "acceleration", "multipliers"):
        np.testing.assert_allclose(
            getattr(found, name), getattr(chunks, name), rtol=1e-11, atol=1e-11
        )
    assert int(found.statistics.steps) == int(chunks.statistics.steps)


@pytest.mark.thorough
def test_a_function_that_is_transformed_makes_the_run_one_program():
    """Nothing that `simulate` is given is traced; what a function has of its surroundings is."""
    run = swinging(3.0, every=None)

    def time_of_level(angle: Any) -> Any:
        event = jm.runs.StopWhen(lambda system, q, v, t: q[2] + angle)
        return run(events=[event], adjoint=dfx.ForwardMode()).times[-1]

    slope = jax.jacfwd(time_of_level)(0.5)
    assert np.isfinite(slope)
    event = run(events=[jm.runs.StopWhen(level)])
    np.testing.assert_allclose(slope, -1 / event.v[-1, 2], rtol=1e-5)


def test_progress_tells_the_times_that_are_reached(pace: Any):
    pace(256, 3)
    reached: list[float] = []
    run = swinging()(progress=reached.append)
    assert len(reached) > 5
    assert np.all(np.diff(reached) > 0)
    assert reached[-1] == float(run.times[-1])


@pytest.mark.thorough
def test_adjoints_of_others_are_left_to_themselves(monkeypatch: pytest.MonkeyPatch):
    class Own(dfx.AbstractAdjoint):
        def loop(self, **given: Any) -> Any:
            return dfx.ForwardMode().loop(**given)

    def chunk(*_: Any) -> Any:
        raise AssertionError("in chunks")

    monkeypatch.setattr(_chunks, "chunk", chunk)
    run = swinging(0.3)(adjoint=Own())
    assert run.times[-1] == 0.3


# ---------------------------------------------------------------------------------------------
# Motions that drivers determine
# ---------------------------------------------------------------------------------------------


def pulled() -> jm.MultibodySystem:
    model = jm.mechanisms.get("slider-crank")
    driver = jm.Driver("pull", "D", "translation", motions.Linear(rate=0.2))
    return jm.MultibodySystem(model.bodies, model.joints, [driver])


@pytest.mark.thorough
def test_how_many_times_a_driven_motion_has_is_data(
    compiled: list[str], monkeypatch: pytest.MonkeyPatch
):
    system = pulled()
    q = system.reference_q
    times = np.linspace(0.0, 0.3, 2500)
    whole = jm.inverse_dynamics(system, q, times)
    assert len(whole.times) > 2 * _chunks.STATES
    assert any("chunk" in name for name in compiled)
    compiled.clear()
    names = ("q", "v", "acceleration", "multipliers", "position_error", "velocity_error")
    for count in (1, 7, 1023, 1024, 1025):
        part = jm.inverse_dynamics(system, q, times[:count])
        for name in names:
            np.testing.assert_array_equal(
                getattr(part, name), np.asarray(getattr(whole, name))[:count]
            )
    assert compiled == []
    # Other chunks are another program, of which the compiler may round otherwise.
    monkeypatch.setattr(_chunks, "STATES", 7)
    short = times[::50]
    cut = jm.kinematics(system, q, short)
    monkeypatch.undo()
    one = jm.kinematics(system, q, short)
    for name in names[:3]:
        a, b = (np.asarray(getattr(x, name)) for x in (cut, one))
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-10 * np.max(np.abs(b)))


@pytest.mark.thorough
def test_a_driven_motion_that_ends_in_a_later_chunk():
    system = pulled()
    times = np.linspace(0.0, 0.4, 3000)
    with pytest.raises(jm.results.KinematicsError, match="stays open") as caught:
        jm.kinematics(system, system.reference_q, times)
    reached = caught.value.kinematics
    assert _chunks.STATES < len(reached.times) < 3000
    whole = jm.kinematics(system, system.reference_q, times[: len(reached.times)])
    np.testing.assert_array_equal(reached.q, whole.q)
    assert np.asarray(reached.times)[-1] < (np.sqrt(0.02) + np.sqrt(0.05) - 0.3) / 0.2
