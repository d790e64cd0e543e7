"""Simulate many cases; a finished run is replaced by the next case."""

import dataclasses
from typing import Any, TYPE_CHECKING

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .. import _checks, _settings
from .._checks import known_array, of_known, picked, shown
from .._custom_types import Numbers, RealScalarLike, Scalar, Setting
from .._dynamics import simulate, SimulationError, Trajectory
from .._dynamics._choices import (
    chosen_solver,
    chosen_stabilisation,
    Integration,
    integration_of,
    MAX_STEPS,
)
from .._dynamics._chunks import is_traced
from .._dynamics._failures import explain
from .._dynamics._initial import check_states, projected_state
from .._dynamics._passages import Passages
from .._dynamics._simulate import admitted_start
from .._dynamics._state_evaluation import AbstractStabilisation
from .._dynamics._trajectory import first_of, MOST_STATES, saved_times
from .._formulations import AbstractFormulation, chosen_formulation, given_formulation
from .._loading import late
from .._solution import code_of, RESULTS
from .._system import AbstractSystem, takes_state
from ._cases import Cases
from ._questions import AbstractIteration, AbstractQuestion, Case, nearest_closed
from ._sweep import default_width, sweep


if TYPE_CHECKING:
    import diffrax as dfx

    from .._dynamics import _run as runs, _run as turns
else:
    turns = late("jaxmbs._dynamics._run")
    runs = late("jaxmbs._dynamics._run")


class Simulation(AbstractQuestion):
    """Simulate each case from its assembled configuration, with the settings of `simulate`.

    It starts at the nearest state that the constraints allow: with the given velocities as far as
    they do. Cases make their steps side by side, and a finished one is replaced by the next. The
    answers are a `Trajectory` without `system`, with the cases as the first axis of all arrays,
    whose `run(k, system)` is one of them. Passages are not confirmed (see `Trajectory`), and unused
    entries of `passages` are infinite.

    **Arguments:** `end`: s; every case starts at its own time, by default 0. `count`: states saved
    from start to end at equal times, at least 2. The others: as of `simulate`.
    """

    end: Scalar
    rtol: Scalar
    atol: Scalar
    formulation: AbstractFormulation | None
    solver: Any
    stabilisation: AbstractStabilisation
    count: int = eqx.field(static=True)
    max_steps: int = eqx.field(static=True)
    monitor: bool = eqx.field(static=True)

    def __init__(
        self,
        end: Setting[RealScalarLike],
        *,
        count: Setting[int] = 2,
        formulation: Setting[AbstractFormulation | None] = None,
        solver: Setting["dfx.AbstractSolver | None"] = None,
        stabilisation: Setting[AbstractStabilisation | None] = None,
        rtol: Setting[RealScalarLike] = 1e-8,
        atol: Setting[RealScalarLike] = 1e-10,
        max_steps: Setting[int] = MAX_STEPS,
        monitor: Setting[bool] = True,
    ):
        self.end = _settings.between(end, "end")
        self.rtol, self.atol = _settings.step_tolerances(rtol, atol)
        self.formulation = given_formulation(formulation)
        self.solver = chosen_solver(solver)
        self.stabilisation = chosen_stabilisation(stabilisation)
        self.count = _settings.whole_number(count, "count", least=2, why="the start and the end")
        self.max_steps = _settings.whole_number(max_steps, "max_steps", least=1)
        self.monitor = _settings.flag(monitor, "monitor")

    @property
    def second(self) -> None:
        return None

    @property
    def nearest(self) -> bool:
        return True

    @property
    def iteration(self) -> "_Steps":
        return _Steps(self)

    def assembled(self, start: Case) -> tuple[Float[Array, " nq"], RESULTS]:
        return nearest_closed(start)

    def __call__(self, case: Case) -> Trajectory:
        case = _started(case)
        integration = self.integration(case.system, case.q.dtype)
        run = runs.run_in_one(case.system, integration, case.q, case.v, self.times(case))[0]
        return self.answer(case, run)

    def answer(self, case: Case, run: Trajectory) -> Trajectory:
        """The run without its system, which would be an answer of each case, and without NaN where
        nothing has failed."""
        passes = run.passes.unconfirmed
        times = jnp.where(jnp.isnan(passes.times), jnp.inf, passes.times)
        late = ~(case.t < self.end)
        result = RESULTS.where(late, RESULTS.end_before_start, run.result)
        return eqx.tree_at(
            lambda x: (x.system, x.passes, x.result),
            run,
            (None, Passages(times, passes.count), result),
            is_leaf=lambda x: x is None or isinstance(x, RESULTS),
        )

    def integration(self, system: AbstractSystem, dtype: np.dtype) -> Integration:
        """Integration settings for this system."""
        return integration_of(
            system,
            chosen_formulation(self.formulation, system.structure),
            dtype,
            solver=self.solver,
            stabilisation=self.stabilisation,
            tolerances=(self.rtol, self.atol),
            max_steps=self.max_steps,
            monitor=self.monitor,
        )

    def times(self, case: Case) -> Float[Array, " count"]:
        """Times (s) of the saved states. A case that does not start before the end has such as go
        back, so that it has no run."""
        end = jnp.where(case.t < self.end, self.end, case.t - 1.0)
        return jnp.linspace(case.t, end, self.count, dtype=case.q.dtype)


class _Steps(AbstractIteration):
    """One integrator step per turn."""

    simulation: Simulation

    def begin(self, case: Case) -> Any:
        system, q, v, _ = _started(case)
        integration = self.simulation.integration(system, q.dtype)
        return turns.begin_run(system, integration, q, v, self.simulation.times(case))

    def turn(self, case: Case, lane: Any) -> Any:
        integration = self.simulation.integration(case.system, case.q.dtype)
        return turns.turn_run(case.system, integration, lane)

    def answer(self, case: Case, lane: Any) -> Trajectory:
        integration = self.simulation.integration(case.system, case.q.dtype)
        run = turns.trajectory_of_lane(case.system, integration, lane)
        return self.simulation.answer(case, run)


def _started(case: Case) -> Case:
    """The case at the nearest state that the constraints allow; NaN where there is none nearby."""
    found = projected_state(*case)
    q, v = (jnp.where(found.met, x, jnp.nan) for x in (found.q, found.v))
    return case._replace(q=q, v=v)


def simulate_many(
    system: Setting[AbstractSystem],
    q: Setting[Numbers],
    v: Setting[Numbers],
    end: Setting[RealScalarLike],
    *,
    start: Setting[RealScalarLike] = 0.0,
    count: Setting[int] = 2,
    formulation: Setting[AbstractFormulation | None] = None,
    solver: Setting["dfx.AbstractSolver | None"] = None,
    stabilisation: Setting[AbstractStabilisation | None] = None,
    rtol: Setting[RealScalarLike] = 1e-8,
    atol: Setting[RealScalarLike] = 1e-10,
    max_steps: Setting[int] = MAX_STEPS,
    consistent: Setting[bool] = False,
    monitor: Setting[bool] = True,
    width: Setting[int | None] = None,
    throw: Setting[bool] = True,
) -> Trajectory:
    """Simulate one system from many initial states, `width` of them side by side.

    A finished run is replaced by the next one, so that none waits for the longest. To vary numbers
    of the system, sweep with `Simulation`. Inside a transformation this is `jax.vmap` of
    `simulate`, with its derivatives.

    **Arguments:**

    - `q` (runs, nq), `v` (runs, nv): initial states; either may be one vector, shared by all runs.
      `consistent`: move them to the nearest states that the constraints allow; without, a state
      that they do not allow is refused.
    - `end`, `start`: s. `count`: states saved from start to end at equal times, at least 2.
    - `width`: as in `sweep`, by default no more than there are runs. The others: as in `simulate`.

    **Returns:** a `Trajectory` with the runs as the first axis of all arrays, whose `run(k)` is one
    of them. Passages are not confirmed. A failed run holds its states up to the failure; its last
    one fills the other rows, where `reached` is False.

    **Raises:** as `simulate`, with the number of the run; `ValueError` for more saved states than
    memory holds.
    """
    consistent, throw = _settings.flag(consistent, "consistent"), _settings.flag(throw, "throw")
    width = None if width is None else _settings.whole_number(width, "width", least=1)
    _settings.check_range(start, "start")
    question = Simulation(
        end,
        count=count,
        formulation=formulation,
        solver=solver,
        stabilisation=stabilisation,
        rtol=rtol,
        atol=atol,
        max_steps=max_steps,
        monitor=monitor,
    )
    such_as = "a system of equations, such as what Model.system() returns"
    _settings.instance(system, AbstractSystem, "system", such_as)
    q, v = _rows(system, q, v)
    if is_traced((system, q, v, start, question)):
        return _mapped(system, question, q, v, start, consistent)
    begin = first_of(saved_times(start, end, None, None, q.dtype))
    if len(q) * question.count > MOST_STATES:
        raise ValueError(
            f"{len(q):,} runs of {question.count:,} states are more than {MOST_STATES:,}; save "
            "fewer, or sweep with Simulation into a store."
        )
    states = np.asarray(q), np.asarray(v)
    check_states(system, *states, begin, consistent)
    system = _admitted(system, picked(q, 0), picked(v, 0), begin, formulation, consistent)
    swept = sweep(
        question,
        system,
        Cases(dict(zip(("q", "v"), states, strict=True))),
        q=picked(q, 0),
        v=picked(v, 0),
        t=start,
        assemble=False,
        width=width or min(default_width(), 1 << (len(q) - 1).bit_length()),
    )
    found = jax.tree.map(lambda x: known_array(np.asarray(x)), swept.answers())
    times = np.asarray(found.passes.times)
    runs = eqx.tree_at(
        lambda x: (x.system, x.passes.times),
        found,
        (system, known_array(np.where(np.isinf(times), np.nan, times))),
        is_leaf=lambda x: x is None,
    )
    failed = np.flatnonzero(np.asarray(code_of(runs.result)) != code_of(RESULTS.successful))
    if throw and failed.size:
        raise SimulationError(_first_failed(runs, formulation, failed.tolist()))
    return runs


@takes_state(decides_rank=True)
def _admitted(
    system: AbstractSystem,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    t: RealScalarLike,
    formulation: AbstractFormulation | None,
    consistent: bool,
) -> AbstractSystem:
    """The system, if it can be simulated from its first state.

    **Raises:** `ValueError` if not.
    """
    chosen = chosen_formulation(formulation, system.structure)
    admitted_start(system, chosen, q, v, jnp.asarray(t, q.dtype), consistent)
    return system


def _rows(system: AbstractSystem, q: Any, v: Any) -> tuple[Array, Array]:
    """The states as arrays of equal length.

    **Raises:** `TypeError` or `ValueError` if they are not arrays of that size.
    """
    rows = []
    for what, given, size in (("q", q, system.structure.nq), ("v", v, system.structure.nv)):
        expected = f"{what} must be an array of {size} numbers for each run"
        if not _checks.holds_numbers(given):
            raise TypeError(f"{expected}, got {shown(given)}.")
        known = _checks.concrete(given)
        array = jnp.asarray(given if known is None else known, system.reference_q.dtype)
        if array.ndim not in (1, 2) or array.shape[-1] != size or not array.shape[0]:
            raise ValueError(f"{expected}, got shape {list(array.shape)}.")
        rows.append(array)
    counts = {len(x) for x in rows if x.ndim == 2} or {1}
    if len(counts) != 1:
        shapes = " and ".join(f"{list(x.shape)}" for x in rows)
        raise ValueError(f"q and v must hold a row for each run, got shapes {shapes}.")
    (count,) = counts
    q, v = (of_known(lambda x, n=count: _repeated(x, n), x) for x in rows)
    return q, v


def _repeated(row: Any, count: int) -> Any:
    return row if row.ndim == 2 else row[None].repeat(count, axis=0)


def _mapped(
    system: AbstractSystem,
    question: Simulation,
    q: Array,
    v: Array,
    start: Any,
    consistent: bool,
) -> Trajectory:
    """`simulate` of each state under `jax.vmap`."""
    times = jnp.linspace(start, question.end, question.count)

    def one(q: Float[Array, " nq"], v: Float[Array, " nv"]) -> Trajectory:
        found = simulate(
            system,
            q,
            v,
            question.end,
            start=start,
            times=times,
            formulation=question.formulation,
            solver=question.solver,
            stabilisation=question.stabilisation,
            rtol=question.rtol,
            atol=question.atol,
            max_steps=question.max_steps,
            consistent=consistent,
            monitor=question.monitor,
            throw=False,
        )
        return eqx.tree_at(lambda x: x.system, found, None)

    runs = jax.vmap(one)(q, v)
    return eqx.tree_at(lambda x: x.system, runs, system, is_leaf=lambda x: x is None)


def _first_failed(runs: Trajectory, formulation: Any, failed: list[int]) -> Trajectory:
    """The first of the runs that failed, with its message."""
    first, count = runs.run(failed[0]), runs.times.shape[0]
    chosen = chosen_formulation(formulation, runs.system.structure)
    text = f"run {failed[0]} ({len(failed)} of {count} failed): "
    text += explain(runs.system, chosen, first)
    text += " throw=False returns all runs, each with its result."
    return dataclasses.replace(first, message=text)
