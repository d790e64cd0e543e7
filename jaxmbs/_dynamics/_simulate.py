"""Forward dynamics on Diffrax."""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, TYPE_CHECKING

import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Float

from .. import _settings
from .._checks import known_array
from .._custom_types import Numbers, RealScalarLike, Scalar, Setting
from .._formulations import AbstractFormulation, chosen_formulation
from .._loading import late
from .._solution import RESULTS
from .._solvability import redundancy_at_precision, refuse_at_precision
from .._system import AbstractSystem, refuse_vanishing_rows, takes_state
from ._choices import (
    AbstractEvent,
    chosen_progress,
    chosen_tell,
    Integration,
    integration_of,
    MAX_STEPS,
    Progress,
    values_ignore,
)
from ._chunks import begun, is_traced, Run, run_in_chunks, Unfinished
from ._elastic_theory import limits_left
from ._failures import (
    explain,
    refuse_contradiction,
    SimulationError,
    SimulationInterrupted,
    undetermined_accelerations,
)
from ._initial import check_state, projected_state
from ._passages import unconfirmed_remark
from ._state_evaluation import AbstractStabilisation
from ._trajectory import first_of, saved_times, Trajectory


if TYPE_CHECKING:
    import diffrax as dfx

    from . import _rigid_limits as rigid_limits, _run as runs, _stop_contacts as contacts
    from ._rigid_limits import RigidLimits
else:
    rigid_limits = late(f"{__package__}._rigid_limits")
    runs = late(f"{__package__}._run")
    contacts = late(f"{__package__}._stop_contacts")


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
    solver: Setting["dfx.AbstractSolver | None"] = None,
    stabilisation: Setting[AbstractStabilisation | None] = None,
    rtol: Setting[RealScalarLike] = 1e-8,
    atol: Setting[RealScalarLike] = 1e-10,
    controller: Setting["dfx.AbstractStepSizeController | None"] = None,
    first_step: Setting[RealScalarLike | None] = None,
    max_steps: Setting[int] = MAX_STEPS,
    adjoint: Setting["dfx.AbstractAdjoint | None"] = None,
    events: Setting[Sequence[AbstractEvent]] = (),
    progress: Setting["dfx.AbstractProgressMeter | Callable[[float], Any] | None"] = None,
    consistent: Setting[bool] = False,
    monitor: Setting[bool] = True,
    throw: Setting[bool] = True,
    limits: Setting["str | RigidLimits | None"] = None,
) -> Trajectory:
    """The motion of the system from an initial state.

    Redundant constraints do not disturb it. After each step the state is projected onto the
    constraints; passages through singular configurations are noticed and reported. Works under
    `jit`, `vmap` and differentiation, where failures are reported by the `result` alone.

    Duration and number of saved states are data: another `end`, `every` or `times` compiles nothing
    anew (inside `jit` the number of saved states is part of the program). Ctrl-C ends a run with
    what it has computed, and `resume` goes on with it.

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
      Steps are as long as the error allows, the first one too: a force of your own that acts for a
      moment is seen for certain with `diffrax.PIDController(rtol=..., atol=..., dtmax=...)`.
    - `stabilisation`: `Projection()` (default) or `Baumgarte(alpha, beta)`.
    - `adjoint`: default reverse mode, by what is written down of up to 65,536 steps (of implicit
      methods, with `StopWhen`, and of users' functions `RecursiveCheckpointAdjoint`); of Diffrax
      `RecursiveCheckpointAdjoint` (reverse mode, of any number of steps); `ForwardMode`;
      `DirectAdjoint` (both modes; of `max_steps` steps, however few are made);
      `BacksolveAdjoint` (reverse mode by the continuous adjoint: as exact as `rtol`, not by `end`
      or `times`, without events).
    - `events`: `StopWhen(function)`, `StopAtSingular()`, `StopAtLimit()` (a stop of a joint).
    - `progress`: a Diffrax progress meter, or a function that is called with the time (s) that the
      run has reached, a few times a second (not inside `jit`). `max_steps`: attempted at most.
    - `monitor`: watch for singular configurations (one factor and four solves a step), and for
      those in which an `Elimination` of named rows becomes singular (one decomposition a step):
      there the run fails. It also places steps across singular configurations; without it a run
      that passes some may need many times as many steps, or end there.

    - `limits`: "rigid", or `runs.RigidLimits(...)`: stops of joints hold exactly, with impacts, and
      ropes and cams act one way only: the motion goes on behind them. Default: stops are springs,
      and those rows act both ways.

    **Returns:** a `Trajectory`.

    **Raises:** `ValueError` for an initial state off the constraints, naming the joint, and for a
    setting out of its range; `TypeError` for one of another type. `SimulationError`, which holds
    the trajectory until then, if the run fails; with `throw=False` the trajectory's `result`
    reports it instead. `SimulationInterrupted`, which holds it too, after Ctrl-C.
    """
    consistent, monitor, throw = (
        _settings.flag(x, what)
        for x, what in ((consistent, "consistent"), (monitor, "monitor"), (throw, "throw"))
    )
    formulation = chosen_formulation(formulation, system.structure)
    shown = chosen_progress(progress)
    integration = integration_of(
        system,
        formulation,
        q.dtype,
        solver=solver,
        stabilisation=stabilisation,
        tolerances=(rtol, atol),
        controller=controller,
        first_step=first_step,
        max_steps=_settings.whole_number(max_steps, "max_steps", least=1),
        adjoint=adjoint,
        events=events,
        meter=shown.meter,
        monitor=monitor,
    )
    grid = saved_times(start, end, every, times, q.dtype)
    begin = first_of(grid)
    if limits is not None:
        rigid = rigid_limits.chosen_limits(limits)
        rigid_limits.refuse_unsupported(system, integration)
        system = rigid_limits.limited(system, rigid)
        q, v = admitted_start(system, formulation, q, v, begin, consistent)
        rigid_limits.refuse_violated(system, q, begin)
        return _with_limits(system, (q, v, grid), integration, formulation, rigid, shown, throw)
    q, v = admitted_start(system, formulation, q, v, begin, consistent)
    for event in integration.events:
        event.check_start(system, q)
    if system.stops:
        contacts.refuse_coarse_steps(system, integration, q, v, begin)
    run = _in_chunks(system, integration, formulation, (q, v, grid), shown)
    if run is None:
        run = Run(*runs.run_in_one(system, integration, q, v, grid), False)
    return _report_outcome(run, formulation, integration, throw)


def _with_limits(
    system: AbstractSystem,
    start_and_times: tuple[Any, Any, Any],
    integration: Integration,
    formulation: AbstractFormulation,
    limits: "RigidLimits",
    progress: Progress,
    throw: bool,
) -> Trajectory:
    """The run with rigid limits, its failures reported."""
    if is_traced((system, integration, start_and_times, limits)):
        return rigid_limits.run_in_pieces(system, *start_and_times, integration, limits)
    found, interrupted = rigid_limits.run_with_limits(
        system, *start_and_times, integration, formulation, limits, progress.tell
    )
    if interrupted:
        last = float(np.asarray(found.times)[-1])
        message = f"The run was stopped at {last:.9g} s; start another one from its last state."
        raise SimulationInterrupted(dataclasses.replace(found, message=message))
    if RESULTS[found.result] and throw:
        raise SimulationError(found)
    return found


def resume(
    trajectory: Setting[Trajectory],
    *,
    progress: Setting[Callable[[float], Any] | None] = None,
    throw: Setting[bool] = True,
) -> Trajectory:
    """The whole motion of a run that was stopped by Ctrl-C: what it had computed, and the rest. It
    equals that of a run that was not stopped, to the last bit.

        try:
            run = jm.simulate(system, q, v, 1e4, every=0.1)
        except jm.runs.SimulationInterrupted as stopped:
            part = stopped.trajectory
        run = jm.resume(part)

    **Arguments:**

    - `trajectory`: that of `SimulationInterrupted`.
    - `progress`: a function that is called with the time (s) that the run has reached; a meter that
      the run had goes on in any case. `throw`: as in `simulate`.

    **Returns:** a `Trajectory`.

    **Raises:** `ValueError` for a trajectory whose run is complete; and as `simulate`.
    """
    given = _settings.instance(trajectory, Trajectory, "trajectory", "that of a stopped run")
    throw = _settings.flag(throw, "throw")
    tell = chosen_tell(progress)
    rest: Any = given.unfinished
    if rest is None:
        raise ValueError(
            "trajectory must be that of a run that Ctrl-C has stopped (the `trajectory` of "
            "SimulationInterrupted), got one of a run that came to its end, or some of its states."
        )
    run = run_in_chunks(given.system, rest, given, tell)
    return _report_outcome(run, rest.formulation, rest.integration, throw)


def admitted_start(
    system: AbstractSystem,
    formulation: AbstractFormulation,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    t: Scalar,
    consistent: bool,
) -> tuple[Float[Array, " nq"], Float[Array, " nv"]]:
    """Check the initial state of a run, and make it `consistent` if that is requested.

    **Raises:** `ValueError` for a state from which a run cannot start; traced ones are not checked.
    """
    inexact = redundancy_at_precision(system, q, v, t, formulation.kept_rows(system.structure))
    refuse_at_precision(inexact, "a simulation")
    if consistent:
        moved = projected_state(system, q, v, t)
        q, v = moved.q, moved.v
        refuse_vanishing_rows(system, q, v, t)
    else:
        check_state(system, q, v, t)
    _refuse_unsolvable(system, formulation, q, v, t)
    return q, v


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
    if formulation.kept_rows(system.structure).all():
        refuse_contradiction(system, q, v, t)


def _in_chunks(
    system: AbstractSystem,
    integration: Integration,
    formulation: AbstractFormulation,
    start_and_times: tuple[Any, Any, Any],
    progress: Progress,
) -> Run | None:
    """The run in chunks. None if it is one program: inside of a transformation, and with an adjoint
    that may compute something else."""
    if is_traced((system, integration, start_and_times)):
        return None
    if not values_ignore(integration.adjoint):
        return None
    # Values do not depend on it, and so the program does not.
    integration = dataclasses.replace(integration, adjoint=None)
    q, v, times = start_and_times[0], start_and_times[1], np.asarray(start_and_times[2])
    underway = begun(system, integration, q, v, known_array(times[[0, -1]]))
    # A user's function may know of a transformation of which nothing else does.
    if is_traced(underway):
        return None
    rest = Unfinished(integration, formulation, underway, times, 0)
    return run_in_chunks(system, rest, None, progress.tell)


def _report_outcome(
    run: Run, formulation: AbstractFormulation, integration: Integration, throw: bool
) -> Trajectory:
    """Report failures and early ends; inside a transformation they cannot be reported."""
    trajectory = run.trajectory
    if isinstance(trajectory.times, Tracer):
        return dataclasses.replace(trajectory, passes=trajectory.passes.unconfirmed)
    if run.interrupted:
        raise SimulationInterrupted(_interrupted(trajectory))
    passes = trajectory.passes.until(float(np.asarray(trajectory.times)[-1]))
    trajectory = _until_stop(dataclasses.replace(trajectory, passes=passes))
    if RESULTS[trajectory.result]:
        text = explain(trajectory.system, formulation, trajectory)
        trajectory = dataclasses.replace(trajectory, message=text)
        if throw:
            raise SimulationError(trajectory)
        return trajectory
    notes = limits_left(trajectory)
    if bool(trajectory.stopped):
        reason = integration.events[int(run.event)].reason(trajectory)
        last = float(np.asarray(trajectory.times)[-1])
        notes = [f"The run was stopped at {last:.9g} s: {reason}", *notes]
    return dataclasses.replace(trajectory, message="\n".join(notes)) if notes else trajectory


def _interrupted(trajectory: Trajectory) -> Trajectory:
    """The trajectory of a run that was stopped by Ctrl-C, with its message."""
    rest: Any = trajectory.unfinished
    count, last = int(trajectory.passes.count), float(np.asarray(trajectory.times)[-1])
    remark = unconfirmed_remark(count, "the run was stopped") if count else ""
    return dataclasses.replace(
        trajectory,
        message=(
            f"The run was stopped at {last:.9g} s, before its end at "
            f"{rest.times[-1]:.9g} s; jaxmbs.resume(trajectory) goes on with it."
        ),
        passes=dataclasses.replace(trajectory.passes.unconfirmed, remark=remark),
    )


def _until_stop(trajectory: Trajectory) -> Trajectory:
    """The trajectory without the times after an early end, but with the end itself."""
    reached = np.asarray(trajectory.reached)
    if reached.all():
        return trajectory
    last = int(np.argmin(reached))
    if last == len(reached) - 1:
        return trajectory
    return trajectory.at(slice(0, last + 1))
