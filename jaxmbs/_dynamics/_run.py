"""A run on Diffrax: how it begins, the steps that it makes, and the states that it saves. It is
one program, or one for each chunk of it (`_chunks.py`).
"""

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import diffrax as dfx
import equinox as eqx
import equinox.internal as eqxi
import jax
import jax.numpy as jnp
import optimistix as optx
from jax import lax
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float, Int

from .._custom_types import BoolScalar, IntScalar, RealScalarLike, Scalar
from .._formulations import AbstractFormulation
from .._linalg._many_states import many_states
from .._programs import program
from .._solution import RESULTS
from .._stop_gradient import stop_gradient
from .._system import AbstractSystem, is_state
from ._backwards import ByRows, run_vjp, TapedRun
from ._choices import AbstractEvent, Integration, Start, StateChecks
from ._chunks import first_failure, in_batches, lanes_of
from ._elastic_theory import largest_deflection
from ._impacts import Falling, LimitEvent, LimitSteps
from ._integrate import begin, in_order, integrate, one_step, Sizes, sizes_of, Tape, TapedSteps
from ._monitor import (
    PackedCrossings,
    rank_increases_off_manifold,
    SingularValueMonitor,
    with_vanishing_rows,
)
from ._passages import Passages
from ._projection import (
    attach_projection_jvp,
    nearly_projected,
    project_unchecked,
    saved_state,
    SavedState,
)
from ._runge_kutta import Inside, inside_stages, slope_at, tableau_of
from ._solver import Kept, projected_solver
from ._state_evaluation import (
    AbstractStabilisation,
    Arguments,
    Packed,
    SETTLED,
    SETTLED_PART,
    split,
)
from ._step_size import (
    clear_places,
    ended_by_guard,
    guarded,
    OnsetSteps,
    PassageSteps,
    PredictiveSteps,
    starting,
    under_way,
)
from ._trajectory import Statistics, Trajectory


# --------------------------------------------------------------------------------------------------
# Preparation of a run for the adjoint that differentiates it.
#
# Most differentiate the steps that were made. The continuous adjoint does not use them: it solves
# the equations of the motion again, backwards, together with those of the derivative. It needs no
# projection: the exact motion stays on the constraints, and the residual of a step is as small as
# its error. What moves with the parameters is the start, so that this is projected where it can be
# differentiated.
# --------------------------------------------------------------------------------------------------


@functools.singledispatch
def check_adjoint(adjoint: dfx.AbstractAdjoint, events: tuple[Any, ...]) -> None:
    """**Raises:** `ValueError` for an adjoint that does not go with such a run."""
    del adjoint, events


@check_adjoint.register
def _(adjoint: dfx.BacksolveAdjoint, events: tuple[Any, ...]) -> None:
    if events:
        raise ValueError(
            "BacksolveAdjoint knows no events; use RecursiveCheckpointAdjoint() (reverse mode) or "
            "ForwardMode() in its place."
        )


@check_adjoint.register
def _(adjoint: dfx.ImplicitAdjoint, events: tuple[Any, ...]) -> None:
    raise ValueError(
        "ImplicitAdjoint differentiates states of rest, no motion; use RecursiveCheckpointAdjoint()"
        " (reverse mode) or ForwardMode() in its place, or `equilibrium` for a state of rest."
    )


@functools.singledispatch
def differentiates_alone(adjoint: dfx.AbstractAdjoint) -> bool:
    """Are the values of a run known to be the same as with any other adjoint?"""
    del adjoint
    return False


@differentiates_alone.register(dfx.RecursiveCheckpointAdjoint)
@differentiates_alone.register(dfx.ForwardMode)
@differentiates_alone.register(dfx.DirectAdjoint)
@differentiates_alone.register(dfx.BacksolveAdjoint)
def _(adjoint: dfx.AbstractAdjoint) -> bool:
    del adjoint
    return True


class PreparedAdjoint(NamedTuple):
    """An adjoint and a choice of steps as a run gives them to Diffrax."""

    adjoint: dfx.AbstractAdjoint
    controller: dfx.AbstractStepSizeController


@functools.singledispatch
def prepared(
    adjoint: dfx.AbstractAdjoint,
    solver: dfx.AbstractSolver,
    controller: dfx.AbstractStepSizeController,
) -> PreparedAdjoint:
    """The adjoint for a run by this method and this choice of steps."""
    del solver
    return PreparedAdjoint(adjoint, controller)


@prepared.register
def _(
    adjoint: dfx.BacksolveAdjoint,
    solver: dfx.AbstractSolver,
    controller: dfx.AbstractStepSizeController,
) -> PreparedAdjoint:
    # The exact motion does not depend on where steps end.
    controller = stop_gradient(controller)
    # A backward integration that ends early would give a wrong derivative without any result code.
    own = {"solver": solver, "stepsize_controller": controller, "throw": True}
    return PreparedAdjoint(dfx.BacksolveAdjoint(**(own | adjoint.kwargs)), controller)


@functools.singledispatch
def started(
    adjoint: dfx.AbstractAdjoint,
    system: AbstractSystem,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    t: RealScalarLike,
) -> tuple[Float[Array, " nq"], Float[Array, " nv"]]:
    """The same state, with the derivative that a run needs of it: the first step projects."""
    del adjoint, system, t
    return q, v


@started.register
def _(
    adjoint: dfx.BacksolveAdjoint,
    system: AbstractSystem,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    t: RealScalarLike,
) -> tuple[Float[Array, " nq"], Float[Array, " nv"]]:
    return attach_projection_jvp(system, q, v, t, (q, v))


# The least step, relative to the duration: below it a solution is taken to end. (With a hundredth
# of it a slider-crank crept for thousands of accepted steps to its dead point, in steps that the
# rounding of projections decided.)
_LEAST_STEP = 1e-11

# The first step that is tried, relative to the time in which what moves at the start, or what would
# if no constraint held it, gets on by a characteristic length or a radian, times the root of the
# tolerance of the method's order: what methods of order 3 to 8 accept. (Over the catalogue, runs of
# 0.1 and of 1 s make a fifth to a twentieth fewer steps than with a first one of 0.3, and longer
# ones are rejected as often as they save a step. Diffrax's own rule asks for two more evaluations,
# both compiled, one of them off the constraints.) At most the duration; at least, and where nothing
# moves, the second of these, relative to the duration.
_FIRST_STEP = 4.0
_LEAST_FIRST_STEP = 1e-6


def with_defaults(integration: Integration) -> Integration:
    """The method with Diffrax's defaults in place of None."""
    usual = {
        "solver": dfx.Dopri8(),
        "adjoint": dfx.RecursiveCheckpointAdjoint(),
        "progress": dfx.NoProgressMeter(),
    }
    missing = {name: own for name, own in usual.items() if getattr(integration, name) is None}
    return dataclasses.replace(integration, **missing)


def onto_knots(
    controller: dfx.AbstractAdaptiveStepSizeController[Any, Any], system: AbstractSystem
) -> dfx.AbstractStepSizeController:
    """Step exactly onto the times at which motions are not smooth. A long step would pass over a
    motion that begins and ends within it."""
    knots = system.knots()
    return dfx.ClipStepSizeController(controller, step_ts=knots) if knots.size else controller


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


def start_of(
    system: AbstractSystem,
    integration: Integration,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    span: Float[Array, " times"],
    adjoint: dfx.AbstractAdjoint,
) -> Start:
    """The beginning of a run between these times."""
    projecting = integration.stabilisation.projecting
    if projecting:
        q, v = started(adjoint, system, q, v, span[0])
    onto = rank_increases_off_manifold(system, q, span[0]) if projecting else None
    return Start(jnp.concatenate([q, v, jnp.zeros((1,), q.dtype)]), span, onto)


def arguments_of(
    system: AbstractSystem, integration: Integration, start: Start, knots: Float[Array, " knots"]
) -> Arguments:
    """Arguments of slopes and steps, by the formulation of the saved states."""
    first = lax.stop_gradient(start.y)
    return Arguments(
        system,
        integration.formulation,
        integration.stabilisation,
        first,
        start.span[-1],
        knots,
        start.onto,
        _settled(integration),
    )


def _settled(integration: Integration) -> Scalar:
    """`Arguments.settled` by the tolerances of a run."""
    rtol = jnp.asarray(integration.tolerances[0])
    known = integration.controller is None
    return jnp.maximum(SETTLED, SETTLED_PART * rtol) if known else jnp.full_like(rtol, SETTLED)


def problem(
    system: AbstractSystem,
    integration: Integration,
    start: Start,
    controller: dfx.AbstractStepSizeController,
    inside: Inside | None,
    *,
    kept: Kept,
) -> dict[str, Any]:
    """A run as Diffrax's arguments. `inside`: output between the ends of steps, if any;
    `kept`: of a step in the state."""
    formulation, stabilisation = integration.formulation, integration.stabilisation
    monitor = SingularValueMonitor() if integration.monitored else None
    stops = _conditions(integration.events)
    args = arguments_of(system, integration, start, system.knots())
    args = dataclasses.replace(args, formulation=formulation.motion_only(system))
    solver = projected_solver(
        integration.solver,
        monitor,
        stabilisation.projecting,
        inside,
        kept,
        places_passages(integration),
    )
    return {
        "terms": dfx.ODETerm(_slope),
        "solver": solver,
        "args": Packed(args),
        "stepsize_controller": guarded(formulation, controller) if monitor else controller,
        "event": _event(integration.events, stops) if stops else None,
        "max_steps": integration.max_steps,
    }


def event_of(mask: Any) -> IntScalar:
    """The event that ended a run; the first if none did."""
    return jnp.argmax(jnp.stack(mask)) if mask else jnp.asarray(0)


def passages_of(watched: PackedCrossings | None, dtype: Any) -> Passages:
    """The passages that a run noticed."""
    if watched is None:
        return Passages.none(dtype)
    record, count = watched.record, watched.first("count").astype(int)
    return Passages(record.times, count, record.states)


def ends_within(integration: Integration) -> bool:
    """Can an event end the run within a step?"""
    return any(event.within for event in integration.events)


def controller_of(
    integration: Integration, system: AbstractSystem, span: Float[Array, " times"]
) -> dfx.AbstractStepSizeController:
    """The step size controller of a run, without its first step."""
    if integration.controller is not None:
        return integration.controller
    rtol, atol = integration.tolerances
    least = _LEAST_STEP * jnp.abs(span[-1] - span[0])
    steps: Any = dfx.PIDController(rtol=rtol, atol=atol, dtmin=least, force_dtmin=False)
    if places_passages(integration):
        steps = PassageSteps(steps, clear_places(tableau_of(integration.solver).nodes))
    if isinstance(integration.solver, dfx.AbstractERK):
        steps = PredictiveSteps(steps, places_passages(integration))
    if system.one_sided:
        steps = OnsetSteps(steps)
    for event in integration.events:
        if isinstance(event, LimitEvent):
            steps = LimitSteps(steps, event)
    return onto_knots(steps, system)


def places_passages(integration: Integration) -> bool:
    """Are steps across singular configurations placed by where their stages lie?"""
    own = integration.controller is None and integration.monitored
    return own and isinstance(integration.solver, dfx.AbstractERK)


def controlled(
    integration: Integration,
    system: AbstractSystem,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    span: Float[Array, " times"],
) -> dfx.AbstractStepSizeController:
    """The step size controller of a run from this state."""
    first_step = integration.first_step
    if integration.controller is None and first_step is None:
        first_step = _first_step(integration, system, q, v, span)
    return starting(controller_of(integration, system, span), first_step)


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
    least = _LEAST_FIRST_STEP * duration
    return jnp.where(moving, jnp.clip(step, least, duration), least)


def _event(events: Sequence[AbstractEvent], conditions: list[Any]) -> dfx.Event:
    """Their conditions as Diffrax's event."""
    if any(event.falling for event in events):
        return dfx.Event(conditions, Falling(), [False if e.falling else None for e in events])
    return dfx.Event(conditions, optx.Newton(1e-12, 1e-12))


def _conditions(events: Sequence[AbstractEvent]) -> list[Any]:
    def condition(event: AbstractEvent) -> Any:
        def function(t: RealScalarLike, y: Float[Array, " state"], args: Packed, **_: Any):
            system = args.opened().system
            return event.condition(system, *split(system, y), y[-1], t)

        return function

    return [condition(event) for event in events]


def saving(
    packed: Packed, integration: Integration
) -> Callable[[tuple[Scalar, Float[Array, " state"]]], SavedState]:
    """The saved state, on the constraints, of a time and of what Diffrax saves at it, which is
    interpolated."""
    args = packed.opened()
    whole = Packed(dataclasses.replace(args, formulation=integration.formulation))

    def saved_at(given: tuple[Scalar, Float[Array, " state"]]) -> SavedState:
        t, y = given
        return saved_state(whole, t, nearly_projected(integration.solver, args.system, t, y))

    return saved_at


class Ended(NamedTuple):
    """The way in which Diffrax ended a run: its result, the state of the controller, and how many
    steps were accepted."""

    result: Any
    controller_state: Any
    accepted: IntScalar


class End(NamedTuple):
    """The last state of a run, its acceleration and its time."""

    q: Float[Array, " nq"]
    v: Float[Array, " nv"]
    acceleration: Float[Array, " nv"]
    time: Scalar


def outcome(
    system: AbstractSystem,
    ended: Ended,
    found: StateChecks,
    end: End,
    span: Float[Array, " times"],
) -> RESULTS:
    """The first failure: that of the integrator, then that of the saved states."""
    result = RESULTS.where(found.finite, found.saved, RESULTS.state_not_finite)
    ends = (
        (dfx.RESULTS.max_steps_reached, RESULTS.too_many_steps),
        (dfx.RESULTS.dt_min_reached, RESULTS.step_too_small),
        (dfx.RESULTS.nonlinear_divergence, RESULTS.step_not_solved),
    )
    known = jnp.asarray(False)
    for theirs, ours in ends:
        happened = ended.result == theirs
        result = RESULTS.where(happened, ours, result)
        known = known | happened
    well = (ended.result == dfx.RESULTS.successful) | (ended.result == dfx.RESULTS.event_occurred)
    result = RESULTS.where(well | known, result, RESULTS.integrator_failed)
    lost = ended_by_guard(ended.controller_state)
    result = RESULTS.where(lost, RESULTS.elimination_singular, result)
    if found.bent is not None:
        far = (found.bent > 1) & (result == RESULTS.successful)
        result = RESULTS.where(far, RESULTS.elastic_body_too_bent, result)
    if system.structure.nonlinear.any():
        result = with_vanishing_rows(result, system, (*end[:3], end.time), span, ended.accepted)
    return result


# --------------------------------------------------------------------------------------------------
# A run as one program with its derivatives, and runs that are made step by step from outside.
# --------------------------------------------------------------------------------------------------


# --------------------------------------------------------------------------------------------------
# A run as one program, with its derivatives: those of an adjoint of Diffrax, or a reverse mode of
# its own, by what is written down of its steps (`_integrate.py`, `_backwards.py`).
# --------------------------------------------------------------------------------------------------


class _Saved(NamedTuple):
    """Saved times and states of a run of so many `steps`; or derivatives by these."""

    times: Any
    states: Any
    count: Any
    steps: Any


_ONCE = (
    "The reverse mode of a motion cannot be differentiated again. For second derivatives pass "
    "adjoint=diffrax.ForwardMode() and take forward mode twice."
)


class _Model(NamedTuple):
    """Inputs of a run that are differentiated, besides its start and its times."""

    system: AbstractSystem
    formulation: AbstractFormulation
    stabilisation: AbstractStabilisation


class _Inputs(NamedTuple):
    """All that a run may be differentiated by: the model, the start, and the times at which states
    are saved."""

    model: _Model
    y: Float[Array, " passages"]
    times: Float[Array, " times"]


class _Constants(NamedTuple):
    """Inputs of a run that are constants of its derivative."""

    integration: Integration
    controller: dfx.AbstractStepSizeController
    inside: Inside | None
    onto: BoolScalar | None
    sizes: Sizes


class RunEnd(NamedTuple):
    """The way in which Diffrax ended a run: its result, the state of the controller, the steps, and
    which events there were."""

    result: Any
    controller_state: Any
    statistics: Statistics
    event_mask: Any


class RunResult(NamedTuple):
    """A run. `times`, `saved`: of its states, that in which it ended in the places of all after the
    first `count`; `finite`: are all of them? `watched`: what the monitor carried, if there was
    one."""

    times: Float[Array, " times"]
    saved: SavedState
    count: IntScalar
    finite: BoolScalar
    watched: PackedCrossings | None
    end: RunEnd


class Beginning(NamedTuple):
    """Beginning of a run. `valid`: the state is valid and the times are `ordered`; otherwise the
    run has zero length and a NaN state, from which all steps would be rejected."""

    start: Start
    valid: BoolScalar
    ordered: BoolScalar


def beginning_of(
    system: AbstractSystem,
    integration: Integration,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    grid: Float[Array, " times"],
    adjoint: dfx.AbstractAdjoint,
) -> Beginning:
    """The beginning of a run that saves states at these times."""
    ordered = in_order(grid)
    valid = ordered & is_state(system.structure, q, v, grid[0])
    q, v = (jnp.where(valid, x, jnp.nan) for x in (q, v))
    grid = jnp.where(valid, grid, grid[0])
    return Beginning(start_of(system, integration, q, v, grid, adjoint), valid, ordered)


# In line: of a program within another one JAX traces the values before it differentiates them, a
# quarter of what it takes to trace the gradient of a run.
@program(inline=True)
def run_in_one(
    system: AbstractSystem,
    integration: Integration,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    grid: Float[Array, " times"],
) -> tuple[Trajectory, IntScalar]:
    """The trajectory, and which of the events ended it (the first, if none did)."""
    adjoint, integration = integration.adjoint, with_defaults(integration)
    inside = inside_of(integration, grid)
    sizes = tape_sizes(integration, system, inside) if adjoint is None else None
    controller = controlled(integration, system, q, v, grid)
    adjoint, controller = prepared(integration.adjoint, integration.solver, controller)
    begun = beginning_of(system, integration, q, v, grid, adjoint)
    start = begun.start
    if sizes is None:
        made, _ = _computed(system, integration, start, controller, inside, adjoint)
    else:
        model = _Model(system, integration.formulation, integration.stabilisation)
        constants = _Constants(integration, controller, inside, start.onto, sizes)
        made = _taped(_Inputs(model, start.y, start.span), stop_gradient(constants))
    trajectory = trajectory_of(system, integration, begun, made)
    return trajectory, event_of(made.end.event_mask)


def tape_sizes(
    integration: Integration, system: AbstractSystem, inside: Inside | None
) -> Sizes | None:
    """The sizes of the tape of a run, where it has a reverse mode by one: the steps are those of an
    explicit Runge-Kutta method, they end where its controller or a knot lets them end, the run ends
    with one of them, and no function of a user is in sight, which may hold numbers that a rule does
    not see. (Where one is hidden in another object JAX refuses the derivative.)"""
    solver, controller = integration.solver, integration.controller
    simple = controller is None or isinstance(controller, dfx.PIDController | dfx.ConstantStepSize)
    known = not any(map(callable, jax.tree.leaves((system, integration.formulation))))
    if not (isinstance(solver, dfx.AbstractERK) and simple and known):
        return None
    if ends_within(integration):
        return None
    stages = tableau_of(solver, None if inside is None else inside_stages(solver)).nodes.size
    return sizes_of(stages, system.structure.nq + system.structure.nv, integration.max_steps)


def _computed(
    system: AbstractSystem,
    integration: Integration,
    start: Start,
    controller: dfx.AbstractStepSizeController,
    inside: Inside | None,
    adjoint: dfx.AbstractAdjoint,
) -> tuple[RunResult, Any]:
    """The run, with the derivative of the adjoint, and what the method carried at its end."""
    kept = Kept(last_step=False, record=isinstance(adjoint, TapedSteps))
    given = problem(system, integration, start, controller, inside, kept=kept)
    grid = start.span
    solution = integrate(
        times=grid,
        y0=start.y,
        saveat=dfx.SaveAt(t1=True, solver_state=True, controller_state=True),
        adjoint=adjoint,
        progress_meter=integration.progress,
        throw=False,
        **given,
    )
    # The state in which the run ended is saved after all that it reached, and stands in the place
    # of all that it did not reach.
    count = jnp.sum(jnp.isfinite(solution.ts)) - 1
    places = rows_reached(len(grid), count)
    ys, times = solution.ys[places], solution.ts[places]
    saved = in_batches(saving(given["args"], integration), (times, ys), lanes_of(system))
    finite = jnp.isfinite(ys).all()
    of_method, watched, *_ = solution.solver_state
    statistics = Statistics(
        *(solution.stats[f"num_{which}steps"] for which in ("", "accepted_", "rejected_"))
    )
    end = RunEnd(solution.result, solution.controller_state, statistics, solution.event_mask)
    return RunResult(times, saved, count, finite, watched, end), of_method


def rows_reached(size: int, count: IntScalar) -> Int[Array, " times"]:
    """The row that stands at each of the times: its own, or the first that was not reached."""
    return jnp.minimum(jnp.arange(size), count)


def _taped_run(
    inputs: _Inputs, constants: _Constants, adjoint: dfx.AbstractAdjoint
) -> tuple[RunResult, Any]:
    integration, model = constants.integration, inputs.model
    start = Start(inputs.y, inputs.times, constants.onto)
    return _computed(
        model.system, integration, start, constants.controller, constants.inside, adjoint
    )


@eqx.filter_custom_vjp
def _taped(inputs: _Inputs, constants: _Constants) -> RunResult:
    """The run, with a reverse mode by what is written down of its steps."""
    return _taped_run(inputs, constants, dfx.ForwardMode())[0]


@_taped.def_fwd
def _taped_forwards(perturbed: Any, inputs: _Inputs, constants: _Constants) -> Any:
    del perturbed
    # A derivative of this would take what is written down for constants.
    inputs = eqxi.nondifferentiable(inputs, msg=_ONCE)
    made, tape = _taped_run(inputs, constants, TapedSteps(constants.sizes))
    return made, (made, tape)


@_taped.def_bwd
def _taped_backwards(
    found: tuple[RunResult, Tape],
    change: Any,
    perturbed: Any,
    inputs: _Inputs,
    constants: _Constants,
) -> _Inputs:
    made, tape = found
    chosen, rest = eqx.partition(inputs.model, perturbed.model)
    count = made.end.statistics.accepted
    saved = _Saved(made.times, made.saved, made.count, count)
    by = _Saved(change.times, change.saved, None, None)
    model, start, times = _inputs_vjp(chosen, rest, inputs, constants, tape, saved, by)
    return _Inputs(model, start, times)


@many_states
def _inputs_vjp(
    chosen: _Model,
    rest: _Model,
    inputs: _Inputs,
    constants: _Constants,
    tape: Tape,
    made: _Saved,
    change: _Saved,
) -> tuple[Any, Array, Array]:
    """Derivatives by the part of the model that is `chosen`, the start and the times."""
    numbers, model_of = ravel_pytree(chosen)
    knots, of_knots = jax.vjp(lambda x: eqx.combine(model_of(x), rest).system.knots(), numbers)

    # Other controllers meet knots by accident.
    clipped = knots if constants.integration.controller is None else knots[:0]

    def arguments(numbers: Float[Array, " n"]) -> Arguments:
        model = eqx.combine(model_of(numbers), rest)
        integration = dataclasses.replace(
            constants.integration, formulation=model.formulation, stabilisation=model.stabilisation
        )
        start = Start(inputs.y, inputs.times, constants.onto)
        return arguments_of(model.system, integration, start, lax.stop_gradient(clipped))

    kept = Kept(last_step=False, record=True)
    given = constants.integration
    solver = projected_solver(
        given.solver, None, given.stabilisation.projecting, constants.inside, kept, predicts=False
    )
    run = TapedRun(
        arguments,
        numbers,
        inputs.y,
        inputs.times,
        made.states,
        made.count,
        made.steps,
        tape,
        constants.sizes,
        solver,
    )
    back = run_vjp(run, _by_rows(made, change))
    by_knots = back.knots if clipped is knots else jnp.zeros_like(knots)
    model = model_of(back.numbers + of_knots(by_knots)[0])
    return model, back.start, back.times


def _by_rows(made: _Saved, change: _Saved) -> ByRows:
    """Derivatives by what was saved, of which the last row may stand at several times."""
    rows = rows_reached(len(made.times), made.count)

    def by_row(change: Any, saved: Array) -> Array:
        none = jnp.zeros_like(saved)
        return none if change is None else none.at[rows].add(change)

    states = (
        by_row(getattr(change.states, name), getattr(made.states, name))
        for name in ByRows._fields[1:]
    )
    return ByRows(by_row(change.times, made.times), *states)


def trajectory_of(
    system: AbstractSystem, integration: Integration, begun: Beginning, made: RunResult
) -> Trajectory:
    """The trajectory of a run, with the first failure."""
    grid, times, saved = begun.start.span, made.times, made.saved
    reached = jnp.arange(len(grid)) < made.count
    bent = largest_deflection(system, saved.q)
    found = StateChecks(first_failure(saved.result), made.finite, bent)
    end = End(saved.q[-1], saved.v[-1], saved.acceleration[-1], times[-1])
    ended = Ended(made.end.result, made.end.controller_state, made.end.statistics.accepted)
    result = outcome(system, ended, found, end, grid)
    result = RESULTS.where(begun.valid, result, RESULTS.state_not_valid)
    return Trajectory(
        times,
        saved.q,
        saved.v,
        saved.acceleration,
        saved.multipliers,
        saved.position_error,
        saved.velocity_error,
        reached,
        passages_of(made.watched, times.dtype),
        made.end.result == dfx.RESULTS.event_occurred,
        made.end.statistics,
        RESULTS.where(begun.ordered, result, RESULTS.times_not_in_order),
        system,
        elastic=integration.formulation.elastic,
    )


def inside_of(integration: Integration, grid: Float[Array, " times"]) -> Inside | None:
    """Output between the ends of steps; the ends of the run are ends of steps."""
    within = ends_within(integration)
    return Inside(lax.stop_gradient(grid), within) if within or len(grid) > 2 else None


# --------------------------------------------------------------------------------------------------
# Runs that are made step by step from outside: many of them side by side, each of which is
# replaced by the next one when it has ended (`_sweep/_program.py`).
#
# The steps and the states are those of a run as one program. What is saved within
# a step is interpolated when that has been made, and evaluated when the run has ended. No
# derivative.
# --------------------------------------------------------------------------------------------------


class RunLane(NamedTuple):
    """A run between two steps. `begun`: at its start; `state`: Diffrax's; `saved` (times + 1,
    state): `count` of them so far; `ended`: the run is complete."""

    begun: Beginning
    state: Any
    saved: Float[Array, "rows state"]
    count: IntScalar
    ended: BoolScalar


def begin_run(
    system: AbstractSystem,
    integration: Integration,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    grid: Float[Array, " times"],
) -> RunLane:
    """The run with states at these times before its first step."""
    integration = with_defaults(integration)
    controller = controlled(integration, system, q, v, grid)
    begun = beginning_of(system, integration, q, v, grid, integration.adjoint)
    given = _diffrax_arguments(system, integration, begun, controller)
    span, y0 = begun.start.span, begun.start.y
    state = begin(span=span, y0=y0, progress_meter=integration.progress, **given)
    saved = jnp.zeros((len(grid) + 1, len(y0)), y0.dtype)
    return RunLane(begun, state, saved, jnp.asarray(0), span[0] >= span[-1])


def turn_run(system: AbstractSystem, integration: Integration, lane: RunLane) -> RunLane:
    """Attempt one more step, and interpolate the states to be saved within it."""
    integration, start = with_defaults(integration), lane.begun.start
    controller = under_way(controller_of(integration, system, start.span))
    given = _diffrax_arguments(system, integration, lane.begun, controller)
    state, ended = one_step(
        span=start.span,
        y0=start.y,
        state=lane.state,
        progress_meter=integration.progress,
        **given,
    )
    last = state.solver_state[-1]
    curve = given["solver"].interpolation_cls(t0=last.t0, t1=last.t1, **last.dense)
    times = jnp.append(start.span, jnp.inf)

    def save(carry: tuple[IntScalar, Array]) -> tuple[IntScalar, Array]:
        k, saved = carry
        row = curve.evaluate(times[k])
        return k + 1, lax.dynamic_update_index_in_dim(saved, row, k, 0)

    count, saved = lax.while_loop(
        lambda carry: times[carry[0]] <= last.t1, save, (lane.count, lane.saved)
    )
    return RunLane(lane.begun, state, saved, count, ended)


def trajectory_of_lane(
    system: AbstractSystem, integration: Integration, lane: RunLane
) -> Trajectory:
    """The trajectory of a run that has ended."""
    integration, start, state = with_defaults(integration), lane.begun.start, lane.state
    given = _diffrax_arguments(
        system, integration, lane.begun, under_way(controller_of(integration, system, start.span))
    )
    # The state in which the run ended stands in the place of all that it did not reach.
    rows = rows_reached(len(start.span), lane.count)
    ys = lane.saved.at[lane.count].set(state.y)[rows]
    times = jnp.append(start.span, state.tprev).at[lane.count].set(state.tprev)[rows]
    saved = in_batches(saving(given["args"], integration), (times, ys), lanes_of(system))
    steps = Statistics(state.num_steps, state.num_accepted_steps, state.num_rejected_steps)
    end = RunEnd(state.result, state.controller_state, steps, state.event_mask)
    finite = jnp.isfinite(ys).all()
    made = RunResult(times, saved, lane.count, finite, state.solver_state[1], end)
    return trajectory_of(system, integration, lane.begun, made)


def _diffrax_arguments(
    system: AbstractSystem, integration: Integration, begun: Beginning, controller: Any
) -> dict[str, Any]:
    """Arguments of Diffrax."""
    start = begun.start
    inside, kept = inside_of(integration, start.span), Kept(last_step=True, record=False)
    return problem(system, integration, start, controller, inside, kept=kept)
