"""Forward dynamics on Diffrax."""

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any

import diffrax as dfx
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optimistix as optx
from jax import lax
from jax.core import Tracer
from jaxtyping import Array, Float

from .. import _settings
from .._custom_types import BoolScalar, IntScalar, Numbers, RealScalarLike, Scalar, Setting
from .._formulations import AbstractFormulation, chosen_formulation
from .._formulations._elastic_resolution import check_compliances
from .._programs import program
from .._solution import RESULTS
from .._solvability import redundancy_at_precision, refuse_at_precision
from .._stop_gradient import stop_gradient
from .._system import AbstractSystem, is_state, refuse_vanishing_rows, takes_state
from ._adjoints import prepared, started
from ._arguments import Arguments, Packed, split
from ._choices import (
    chosen_adjoint,
    chosen_controller,
    chosen_events,
    chosen_progress,
    chosen_solver,
    chosen_stabilisation,
)
from ._contradictions import refuse_contradiction
from ._elastic_theory import largest_deflection, limits_left
from ._elimination_guard import ended_by_guard, guarded, numbered
from ._events import AbstractEvent
from ._failures import explain, SimulationError
from ._fixed_steps import check_formulation, chosen_steps, Steps
from ._initial import check_state, projected_state
from ._integrate import in_order, integrate, starting
from ._interpolation import Inside
from ._loosening import rank_increases_off_manifold
from ._monitor import SingularValueMonitor, STATES
from ._passages import confirmed, Passage, unconfirmed_remark
from ._projection import project_unchecked
from ._runge_kutta import slope_at
from ._saved_states import nearly_projected, saved_state, SavedState
from ._saved_times import saved_times
from ._solver import projected_solver
from ._stabilisation import AbstractStabilisation
from ._trajectory import Statistics, Trajectory
from ._undetermined import undetermined_accelerations
from ._vanished_rows import with_vanishing_rows
from ._watched import kept_rows, motion_only


# The least step, relative to the duration: below it a solution is taken to end. (With a hundredth
# of it a slider-crank crept for thousands of accepted steps to its dead point, in steps that the
# rounding of projections decided.)
_LEAST_STEP = 1e-11

# The first step that is tried, relative to the time in which what moves at the start, or what would
# if no constraint held it, gets on by a characteristic length or a radian, times the root of the
# tolerance of the method's order. (Steps of 1e-6 of the duration grew to the right length within
# six: two thirds of the time of a run of 0.1 s. Diffrax's own rule asks for two more evaluations,
# both compiled, one of them off the constraints.) At least, and where nothing moves, the second of
# these, relative to the duration.
_FIRST_STEP = 0.3
_LEAST_FIRST_STEP = 1e-6

# At most this, relative to the duration: a force may act for a moment on what begins slowly.
_MOST_FIRST_STEP = 0.01

_MAX_STEPS = 1_000_000

# Saved states are evaluated as many at a time as have about this many rows: a small mechanism
# costs the starts of its operations, a large one the memory of its batch.
_LANES = 256


class Integration(eqx.Module):
    """Method of computing a motion; the arguments of `simulate`. `tolerances`: rtol and atol of the
    controller where none was given."""

    formulation: AbstractFormulation
    solver: dfx.AbstractSolver
    stabilisation: AbstractStabilisation
    controller: dfx.AbstractStepSizeController | None
    tolerances: tuple[Scalar, Scalar]
    adjoint: dfx.AbstractAdjoint
    events: tuple[AbstractEvent, ...]
    progress: dfx.AbstractProgressMeter
    first_step: Scalar | None
    max_steps: int = eqx.field(static=True)
    monitored: bool = eqx.field(static=True)


@takes_state(decides_rank=True, start="t", end="t")
def simulate(
    system: AbstractSystem,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    end: Setting[RealScalarLike],
    *,
    start: Setting[RealScalarLike] = 0.0,
    every: Setting[float | None] = None,
    times: Setting[Numbers | None] = None,
    formulation: Setting[AbstractFormulation | None] = None,
    solver: Setting[dfx.AbstractSolver | None] = None,
    stabilisation: Setting[AbstractStabilisation | None] = None,
    rtol: Setting[RealScalarLike] = 1e-8,
    atol: Setting[RealScalarLike] = 1e-10,
    controller: Setting[dfx.AbstractStepSizeController | None] = None,
    first_step: Setting[RealScalarLike | None] = None,
    max_steps: Setting[int] = _MAX_STEPS,
    adjoint: Setting[dfx.AbstractAdjoint | None] = None,
    events: Setting[Sequence[AbstractEvent]] = (),
    progress: Setting[dfx.AbstractProgressMeter | None] = None,
    consistent: Setting[bool] = False,
    monitor: Setting[bool] = True,
    throw: Setting[bool] = True,
) -> Trajectory:
    """The motion of the system from an initial state.

    Redundant constraints do not disturb it. After each step the state is projected onto the
    constraints; passages through singular configurations are noticed and reported. Works under
    `jit`, `vmap` and differentiation, where failures are reported by the `result` alone.

    **Arguments:**

    - `q` (nq,), `v` (nv,): initial state. `consistent`: move it to the nearest state that the
      constraints allow; without, a state that they do not allow is refused.
    - `end`, `start`: s, the time in driver motions. `every`: time (s) between saved states, or
      `times` (s), from `start` to `end`; default start and end. The `result` shows whether traced
      times are in order.
    - `formulation`: what handles redundancy, default `MinimumNorm()`; of a system with bodies
      whose mass need only be semidefinite `UdwadiaKalaba(semidefinite=True)`.
    - `solver`: any Diffrax solver, default `Dopri8`. (At an error of 1e-8 it is faster than
      `diffrax.Tsit5`, `benchmarks/work_precision.py`; a step within which states are saved, and
      each step of a run with `StopWhen`, takes three evaluations more for its interpolation.) For
      stiff forces and elastic bodies `GeneralizedAlpha(step=1e-3)`, or an implicit one of Diffrax
      with tolerances of its own for its root finder: `diffrax.Kvaerno5(root_finder=
      optimistix.Chord(rtol=1e-6, atol=1e-8, norm=optimistix.max_norm))`. (By default they are those
      of the steps, which the slopes of stiff forces do not satisfy: an elastic rod of 17e6 N/m took
      923 steps at 1e-8, half of them rejected, and so 264.)
    - `controller`: any Diffrax step size controller, default PID with `rtol` (0 to 1) and `atol`
      (m, rad, m/s, rad/s; above 0, as many coordinates are zero at times); one of them at least
      2.2e-14, below which is rounding. With `diffrax.ConstantStepSize` give `first_step` (s).
    - `stabilisation`: `Projection()` (default) or `Baumgarte(alpha, beta)`.
    - `adjoint`: of Diffrax, default `RecursiveCheckpointAdjoint` (reverse mode); `ForwardMode`;
      `DirectAdjoint` (both modes; of `max_steps` steps, however few are made);
      `BacksolveAdjoint` (reverse mode by the continuous adjoint: as exact as `rtol`, not by `end`
      or `times`, without events).
    - `events`: `StopWhen(function)`, `StopAtSingular()`.
    - `progress`: a Diffrax progress meter. `max_steps`: attempted at most.
    - `monitor`: watch for singular configurations (one factor and four solves a step), and for
      those in which an `Elimination` of named rows becomes singular (one decomposition a step):
      there the run fails.

    **Returns:** a `Trajectory`.

    **Raises:** `ValueError` for an initial state off the constraints, naming the joint, and for a
    setting out of its range; `TypeError` for one of another type. `SimulationError`, which holds
    the trajectory until then, if the run fails; with `throw=False` the trajectory's `result`
    reports it instead.
    """
    consistent, monitor, throw = (
        _settings.flag(x, what)
        for x, what in ((consistent, "consistent"), (monitor, "monitor"), (throw, "throw"))
    )
    formulation = chosen_formulation(formulation, system.structure)
    solver = chosen_solver(solver)
    check_compliances(formulation, system.structure)
    stabilisation = chosen_stabilisation(stabilisation)
    controller = chosen_controller(controller, first_step)
    events = chosen_events(events, monitor)
    adjoint = chosen_adjoint(adjoint, events)
    steps = Steps(controller, first_step)
    controller, first_step = chosen_steps(solver, system, steps, stabilisation, adjoint)
    check_formulation(solver, formulation)
    progress = chosen_progress(progress)
    max_steps = _settings.whole_number(max_steps, "max_steps", least=1)
    tolerances = _settings.step_tolerances(rtol, atol, q.dtype)
    grid = saved_times(start, end, every, times, q.dtype)
    relied_on = kept_rows(formulation, system.structure)
    inexact = redundancy_at_precision(system, q, v, grid[0], relied_on)
    refuse_at_precision(inexact, "a simulation")
    if consistent:
        moved = projected_state(system, q, v, grid[0])
        q, v = moved.q, moved.v
        refuse_vanishing_rows(system, q, v, grid[0])
    else:
        check_state(system, q, v, jnp.asarray(start, q.dtype))
    _refuse_unsolvable(system, formulation, q, v, grid[0])
    integration = Integration(
        numbered(formulation, system.structure),
        solver,
        stabilisation,
        controller,
        tolerances,
        adjoint,
        events,
        progress,
        None if first_step is None else jnp.asarray(first_step, q.dtype),
        max_steps,
        monitor and bool(system.structure.rows),
    )
    trajectory, which, states = _run(system, integration, q, v, grid)
    if states.size and not isinstance(states, Tracer):
        trajectory = _confirmed(trajectory, np.asarray(states))
    return _report_outcome(trajectory, formulation, integration.events, which, throw)


def _refuse_unsolvable(
    system: AbstractSystem,
    formulation: AbstractFormulation,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    t: Scalar,
) -> None:
    """Refusal of an unsolvable start, where it can be recognised without the program of a run:
    undetermined accelerations, contradictory drivers.

    **Raises:** `ValueError` that names the coordinates or the drivers.
    """
    if any(isinstance(x, Tracer) for x in (q, v, t)):
        return
    if system.structure.semidefinite:
        found = undetermined_accelerations(system, q, v, t)
        if len(found) or found.indefinite:
            raise ValueError(f"the motion is not determined at {float(t):g} s: {found}")
    if kept_rows(formulation, system.structure).all():
        refuse_contradiction(system, q, v, t)


def onto_knots(
    controller: dfx.PIDController, system: AbstractSystem
) -> dfx.AbstractStepSizeController:
    """Step exactly onto the times at which motions are not smooth. A long step would pass over a
    motion that begins and ends within it."""
    knots = system.knots()
    return dfx.ClipStepSizeController(controller, step_ts=knots) if knots.size else controller


def _report_outcome(
    trajectory: Trajectory,
    formulation: AbstractFormulation,
    events: tuple[AbstractEvent, ...],
    which: IntScalar,
    throw: bool,
) -> Trajectory:
    """Report failures and early ends; inside a transformation they cannot be reported. `which` of
    the events ended the run, if one did."""
    if isinstance(trajectory.times, Tracer):
        return trajectory
    trajectory = _until_stop(trajectory)
    if RESULTS[trajectory.result]:
        text = explain(trajectory.system, formulation, trajectory)
        trajectory = dataclasses.replace(trajectory, message=text)
        if throw:
            raise SimulationError(trajectory)
        return trajectory
    notes = limits_left(trajectory)
    if bool(trajectory.stopped):
        reason = events[int(which)].reason(trajectory)
        notes = [f"The run was stopped at {float(trajectory.times[-1]):.9g} s: {reason}", *notes]
    return dataclasses.replace(trajectory, message="\n".join(notes)) if notes else trajectory


def _slope(t: RealScalarLike, y: Float[Array, " state"], packed: Packed) -> Float[Array, " state"]:
    args = packed.opened()
    # A stage after a failed one is evaluated somewhere, as not all methods accept NaN.
    finite = jnp.all(jnp.isfinite(y))
    q, v = split(args.system, jnp.where(finite, y, args.first))
    if args.onto is not None:
        # What a stage lies off the constraints is divided by the smallest singular value. (What
        # the derivative needs of that is computed again where it is taken: a condition hands on
        # all that either of its branches keeps, in each stage, and this one is rarely met.)
        move = eqx.filter_checkpoint(functools.partial(project_unchecked, args.system, t=t))
        q, v = lax.cond(args.onto, move, lambda q, v: (q, v), q, v)
    # A failure must not be returned as a motion: a step that contains it is rejected.
    slope = jnp.where(finite, slope_at(args, q, v, t), jnp.nan)
    return jnp.concatenate([slope, jnp.zeros((1,), y.dtype)])


@program
def _run(
    system: AbstractSystem,
    integration: Integration,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    grid: Float[Array, " times"],
) -> tuple[Trajectory, IntScalar, Float[Array, "states numbers"]]:
    """The trajectory, which of the events ended it (the first, if none did), and states next to
    singular configurations."""
    formulation = integration.formulation
    controller = _controlled(integration, system, q, v, grid)
    adjoint, controller = prepared(integration.adjoint, integration.solver, controller)
    monitor = SingularValueMonitor() if integration.monitored else None
    stops = _conditions(integration.events)
    projecting = integration.stabilisation.projecting
    # An invalid state ends the run at once: all steps from it would be rejected.
    ordered = in_order(grid)
    valid = ordered & is_state(system.structure, q, v, grid[0])
    q, v = (jnp.where(valid, x, jnp.nan) for x in (q, v))
    grid = jnp.where(valid, grid, grid[0])
    if projecting:
        q, v = started(adjoint, system, q, v, grid[0])
    y0 = jnp.concatenate([q, v, jnp.zeros((1,), q.dtype)])
    onto = rank_increases_off_manifold(system, q, grid[0]) if projecting else None
    slopes = motion_only(formulation, system)
    first = lax.stop_gradient(y0)
    stabilisation, knots = integration.stabilisation, system.knots()
    args = Arguments(system, slopes, stabilisation, first, grid[-1], knots, onto)
    solution = integrate(
        dfx.ODETerm(_slope),
        projected_solver(integration.solver, monitor, projecting, _inside(integration, grid)),
        grid,
        y0,
        Packed(args),
        saveat=dfx.SaveAt(t1=True, solver_state=True, controller_state=True),
        stepsize_controller=guarded(formulation, controller) if monitor else controller,
        adjoint=adjoint,
        event=dfx.Event(stops, optx.Newton(1e-12, 1e-12)) if stops else None,
        max_steps=integration.max_steps,
        progress_meter=integration.progress,
        throw=False,
    )
    which = jnp.argmax(jnp.stack(solution.event_mask)) if stops else jnp.asarray(0)
    trajectory = _assembled(args, integration, grid, solution)
    result = RESULTS.where(valid, trajectory.result, RESULTS.state_not_valid)
    result = RESULTS.where(ordered, result, RESULTS.times_not_in_order)
    _, watched = solution.solver_state
    states = jnp.zeros((0, 0)) if watched is None else watched.leaf("states").reshape(STATES, -1)
    return dataclasses.replace(trajectory, result=result), which, states


def _confirmed(trajectory: Trajectory, states: np.ndarray) -> Trajectory:
    """The trajectory with its passages confirmed. A run detects them from the states on either
    side, and cannot distinguish them from near passages."""
    count = int(trajectory.passage_count)
    if not count:
        return trajectory
    nq, times = trajectory.q.shape[1], np.array(trajectory.passages)
    # An event may end a run within a step.
    times[times > float(trajectory.times[-1])] = np.nan
    passed: list[Passage] = []
    reasons: list[str] = []
    for k, (t, *y) in enumerate(states[: min(count, len(states))].tolist()):
        if np.isnan(times[k]):
            continue
        found, unknown = confirmed(trajectory.system, t, np.array(y[:nq]), np.array(y[nq:]))
        reasons += [unknown] if unknown else []
        if found is not None:
            # When it is there the run knows better: around that state it was taken to move evenly.
            passed.append(found._replace(time=float(times[k])))
        elif not unknown:
            times[k] = np.nan
    kept = times[np.isfinite(times)]
    count -= min(count, len(times)) - len(kept)
    reasons = reasons or [f"the first {len(states)} are looked at"]
    unknown = count - len(passed)
    return dataclasses.replace(
        trajectory,
        passages=jnp.full(times.shape, jnp.nan).at[: len(kept)].set(kept),
        passage_count=jnp.asarray(count),
        passed=tuple(passed),
        passages_remark=unconfirmed_remark(unknown, reasons[0]) if unknown else "",
    )


def _inside(integration: Integration, grid: Float[Array, " times"]) -> Inside | None:
    """Output between the ends of steps; the ends of the run are ends of steps."""
    within = any(event.within for event in integration.events)
    return Inside(lax.stop_gradient(grid), within) if within or len(grid) > 2 else None


def _controlled(
    integration: Integration,
    system: AbstractSystem,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    grid: Float[Array, " times"],
) -> dfx.AbstractStepSizeController:
    """The step size controller of a run."""
    controller, first_step = integration.controller, integration.first_step
    if controller is None:
        rtol, atol = integration.tolerances
        least = _LEAST_STEP * jnp.abs(grid[-1] - grid[0])
        pid = dfx.PIDController(rtol=rtol, atol=atol, dtmin=least, force_dtmin=False)
        controller = onto_knots(pid, system)
        if first_step is None:
            first_step = _first_step(integration, system, q, v, grid)
    return starting(controller, first_step)


def _first_step(
    integration: Integration,
    system: AbstractSystem,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    grid: Float[Array, " times"],
) -> Scalar:
    """See `_FIRST_STEP`. Without derivative."""
    system, q, v, grid = stop_gradient((system, q, v, grid))
    unit, duration = system.column_scale(), jnp.abs(grid[-1] - grid[0])
    if system.structure.semidefinite:
        # Nothing is free there; what the metric makes of the forces is of the right size.
        free = system.descriptor(q, v, grid[0]).inverse_mass(system.force(q, v, grid[0]))
    else:
        free = system.free_acceleration(q, v, grid[0])
    speed = jnp.max(jnp.abs(v) / unit, initial=0.0)
    rate = jnp.maximum(speed, jnp.sqrt(jnp.max(jnp.abs(free) / unit, initial=0.0)))
    order = integration.solver.order(dfx.ODETerm(_slope)) or 1
    tolerance = lax.stop_gradient(jnp.maximum(*map(jnp.asarray, integration.tolerances)))
    moving = (rate > 0) & jnp.isfinite(rate)
    step = _FIRST_STEP * tolerance ** (1 / order) / jnp.where(moving, rate, 1.0)
    least, most = _LEAST_FIRST_STEP * duration, _MOST_FIRST_STEP * duration
    return jnp.where(moving, jnp.clip(step, least, most), least)


def _conditions(events: Sequence[AbstractEvent]) -> list[Any]:
    def condition(event: AbstractEvent) -> Any:
        def function(t: RealScalarLike, y: Float[Array, " state"], args: Packed, **_: Any):
            system = args.opened().system
            return event.condition(system, *split(system, y), y[-1], t)

        return function

    return [condition(event) for event in events]


def _assembled(
    args: Arguments,
    integration: Integration,
    grid: Float[Array, " times"],
    solution: Any,
) -> Trajectory:
    """The trajectory, saved states projected: what Diffrax saves is interpolated."""
    # The state in which the run ended is saved after all that it reached, and stands in the place
    # of all that it did not reach.
    count = jnp.sum(jnp.isfinite(solution.ts)) - 1
    reached = jnp.arange(len(grid)) < count
    places = jnp.minimum(jnp.arange(len(grid)), count)
    system = args.system
    ys, times = solution.ys[places], solution.ts[places]

    whole = Packed(dataclasses.replace(args, formulation=integration.formulation))
    lanes = max(1, _LANES // max(1, len(system.structure.rows)))

    def saved_at(given: tuple[Scalar, Float[Array, " state"]]) -> SavedState:
        t, y = given
        return saved_state(whole, t, nearly_projected(integration.solver, system, t, y))

    saved = _in_batches(saved_at, (times, ys), lanes)
    _, watched = solution.solver_state
    result = _result(solution, saved.result, jnp.isfinite(ys).all())
    lost = ended_by_guard(solution.controller_state)
    result = RESULTS.where(lost, RESULTS.elimination_singular, result)
    bent = largest_deflection(system, saved.q)
    if bent is not None:
        far = (bent > 1) & (result == RESULTS.successful)
        result = RESULTS.where(far, RESULTS.elastic_body_too_bent, result)
    if system.structure.nonlinear.any():
        end = (saved.q[-1], saved.v[-1], saved.acceleration[-1], times[-1])
        steps = solution.stats["num_accepted_steps"]
        result = with_vanishing_rows(result, system, end, grid, steps)
    stopped = solution.result == dfx.RESULTS.event_occurred
    statistics = Statistics(
        solution.stats["num_steps"],
        solution.stats["num_accepted_steps"],
        solution.stats["num_rejected_steps"],
    )
    passages, passed = jnp.zeros((0,), times.dtype), jnp.asarray(0)
    if watched is not None:
        passages, passed = watched.leaf("times"), watched.first("count").astype(int)
    return Trajectory(
        times,
        saved.q,
        saved.v,
        saved.acceleration,
        saved.multipliers,
        saved.position_error,
        saved.velocity_error,
        reached,
        passages,
        passed,
        stopped,
        statistics,
        result,
        system,
        elastic=integration.formulation.elastic,
    )


def _in_batches(function: Callable[[Any], Any], arguments: Any, size: int) -> Any:
    """`function` of each of the arguments along their first axis, `size` at a time. The last one
    is repeated to fill the last batch: a smaller one would be compiled apart."""
    count = len(jax.tree.leaves(arguments)[0])
    if min(size, count) == 1:
        return lax.map(function, arguments)
    batches = -(-count // min(size, count))
    places = np.minimum(np.arange(batches * min(size, count)), count - 1).reshape(batches, -1)
    results = lax.map(jax.vmap(function), jax.tree.map(lambda x: x[places], arguments))
    return jax.tree.map(lambda x: x.reshape(places.size, *x.shape[2:])[:count], results)


def _result(
    solution: Any,
    saved: RESULTS,
    finite: BoolScalar,
) -> RESULTS:
    """The first failure: that of the integrator, then that of the saved states."""
    # The first saved state that failed.
    bad = saved != RESULTS.successful
    worst = jax.tree.map(lambda x: x[jnp.argmax(bad)], saved)
    result = RESULTS.where(jnp.any(bad), worst, RESULTS.successful)
    result = RESULTS.where(finite, result, RESULTS.state_not_finite)
    ends = (
        (dfx.RESULTS.max_steps_reached, RESULTS.too_many_steps),
        (dfx.RESULTS.dt_min_reached, RESULTS.step_too_small),
        (dfx.RESULTS.nonlinear_divergence, RESULTS.step_not_solved),
    )
    known = jnp.asarray(False)
    for theirs, ours in ends:
        happened = solution.result == theirs
        result = RESULTS.where(happened, ours, result)
        known = known | happened
    ended = (solution.result == dfx.RESULTS.successful) | (
        solution.result == dfx.RESULTS.event_occurred
    )
    result = RESULTS.where(ended | known, result, RESULTS.integrator_failed)
    return result


def _until_stop(trajectory: Trajectory) -> Trajectory:
    """The trajectory without the times after an early end, but with the end itself."""
    reached = np.asarray(trajectory.reached)
    if reached.all():
        return trajectory
    last = int(np.argmin(reached))
    return trajectory.at(slice(0, last + 1))
