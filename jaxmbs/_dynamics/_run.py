"""A run on Diffrax: how it begins, the steps that it makes, and the states that it saves. It is
one program (`_whole_run.py`), or one for each chunk of it (`_chunks.py`).
"""

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import diffrax as dfx
import equinox as eqx
import jax.numpy as jnp
import optimistix as optx
from jax import lax
from jaxtyping import Array, Float

from .._custom_types import IntScalar, RealScalarLike, Scalar
from .._solution import RESULTS
from .._stop_gradient import stop_gradient
from .._system import AbstractSystem
from ._arguments import Arguments, Packed, split
from ._choices import Integration, Passages, Start, StateChecks
from ._events import AbstractEvent
from ._guards import ended_by_guard, guarded, rank_increases_off_manifold, with_vanishing_rows
from ._integrate import starting
from ._monitor import PackedCrossings, SingularValueMonitor, STATES
from ._projection import attach_projection_jvp, project_unchecked
from ._runge_kutta import Inside, slope_at
from ._saved_states import nearly_projected, saved_state, SavedState
from ._solver import Kept, projected_solver


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
    controller: dfx.PIDController, system: AbstractSystem
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
    )


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
    solver = projected_solver(integration.solver, monitor, stabilisation.projecting, inside, kept)
    return {
        "terms": dfx.ODETerm(_slope),
        "solver": solver,
        "args": Packed(args),
        "stepsize_controller": guarded(formulation, controller) if monitor else controller,
        "event": dfx.Event(stops, optx.Newton(1e-12, 1e-12)) if stops else None,
        "max_steps": integration.max_steps,
    }


def event_of(mask: Any) -> IntScalar:
    """The event that ended a run; the first if none did."""
    return jnp.argmax(jnp.stack(mask)) if mask else jnp.asarray(0)


def passages_of(watched: PackedCrossings | None, dtype: Any) -> Passages:
    """The passages that a run noticed."""
    if watched is None:
        return Passages(jnp.zeros((0,), dtype), jnp.asarray(0), jnp.zeros((0, 0)))
    states = watched.leaf("states").reshape(STATES, -1)
    return Passages(watched.leaf("times"), watched.first("count").astype(int), states)


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
    pid = dfx.PIDController(rtol=rtol, atol=atol, dtmin=least, force_dtmin=False)
    return onto_knots(pid, system)


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
