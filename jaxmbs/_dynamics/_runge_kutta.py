"""One step of an explicit Runge-Kutta method between states on the constraints.

A step evaluates a few states: those of its stages, and its end, which is projected onto the
constraints. All of that is one loop with one copy of the system's equations and of the factor of
S + mu I. The purpose of an evaluation decides which right-hand sides are solved for:

- at a stage: dv/dt;
- where the end is still open: the projection, M^-1 C^T S^+ Phi, after which it is evaluated again;
- where it is closed: what is left of Phi, the change of velocity M^-1 C^T S^+ (C v + b), dv/dt, and
  the part of the step's error that the constraints take away;
- within a step that is too long to see whether it passed a singular configuration, or that did: the
  singular values there.

So the end's dv/dt is known before the next step, whose first stage it is (Hairer, Norsett & Wanner
1993, section II.4: first same as last), also of methods which are not made for that. The change of
the velocity is not included in that dv/dt; so the end is evaluated again where it is well above
rounding.

A step within which states are requested has some more stages before its end (`_interpolation.py`);
others of the same run leave them out, which is a number in the loop.

The loop has no derivative. That is taken stage by stage: of the states in which slopes were taken,
of the slopes there, and of the way onto the constraints (`_projection.attach_projection_jvp`).
"""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import diffrax as dfx
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float, UInt8

from .._custom_types import BoolScalar, IntScalar, RealScalarLike, Scalar
from .._formulations import Accelerations
from .._linalg import gather, KKTSystem, scatter_add
from .._linalg._arrays import sum_of_products
from .._linalg._many_states import many_states
from .._programs import program
from .._solution import RESULTS
from .._stop_gradient import stop_gradient
from .._system import Evaluation
from ._arguments import Arguments, Packed, split
from ._friction import accelerated
from ._interpolation import inside_stages
from ._look import Look, Purpose, solve_look, Solved
from ._monitor import PackedCrossings, Sample, update
from ._projection import attach_projection_jvp, closed_enough, MET, MOST_STEPS, SMALL
from ._tableau import Tableau, tableau_of


# A change of velocity of more than this, relative to velocities and 1, needs another evaluation.
_SETTLED = 1e-11

# Next to a singular configuration solutions that lie apart by so many times the rounding of the
# projection are the same.
ROUNDINGS = 10.0


class Step(eqx.Module):
    """`end` (state,): q and v at the end; `error` (state,) of it; `slopes` (stages, state) of each
    stage. `usable`: is the end on the constraints, and did every slope exist?

    `before`, `places` (stages, state): the states of the stages as the method made them, and those
    in which slopes were taken. `watched`: what a monitor carries on, if there is one; `passed`: was
    a singular configuration passed?
    """

    end: Float[Array, " state"]
    error: Float[Array, " state"]
    slopes: Float[Array, "stages state"]
    usable: BoolScalar
    before: Float[Array, "stages state"]
    places: Float[Array, "stages state"]
    watched: PackedCrossings | None
    passed: BoolScalar


# Marks of a step, see `Marks`.
_NEAR, _INSIDE, _KNOWN = 1, 2, 4


class StepRecord(NamedTuple):
    """Data for the derivative of a step: its start `y` (state,), `slopes` and `places` (stages,
    state) as in `Step`, and its `marks`."""

    y: Float[Array, " state"]
    slopes: Float[Array, "stages state"]
    places: Float[Array, "stages state"]
    marks: UInt8[Array, ""]


class Start(eqx.Module):
    """Beginning of a step: `t0`, `t1` (s), `y` (state,), and the `slope` there, if it is `known`.
    `near`: is a singular configuration close? `inside`: are states within the step requested? None:
    nowhere in this run. `watched`: what a monitor carries, if there is one."""

    t0: Scalar
    t1: Scalar
    y: Float[Array, " state"]
    slope: Float[Array, " state"]
    known: BoolScalar
    near: BoolScalar
    inside: BoolScalar | None
    watched: PackedCrossings | None


def _tableau(solver: Any, start: Start) -> Tableau:
    return tableau_of(solver, None if start.inside is None else inside_stages(solver))


def record_of(start: Start, step: Step) -> StepRecord:
    """The record of a step."""
    inside = False if start.inside is None else start.inside
    marks = _NEAR * start.near + _INSIDE * jnp.asarray(inside) + _KNOWN * start.known
    return StepRecord(start.y, step.slopes, step.places, marks.astype(jnp.uint8))


class Marks(NamedTuple):
    """Marks of a step: was a singular configuration near, were states within it requested,
    was the first slope known?"""

    near: BoolScalar
    inside: BoolScalar
    known: BoolScalar


def marks_of(marks: UInt8[Array, ""]) -> Marks:
    """The marks of a record."""
    return Marks(*(marks & mark > 0 for mark in (_NEAR, _INSIDE, _KNOWN)))


@eqx.filter_custom_jvp
def advance(solver: dfx.AbstractERK, packed: Packed, start: Start) -> Step:
    """The step."""
    return _advance(solver, packed, start)


class StepTurn(NamedTuple):
    """State of the loop. `status`: whether to go on, the stage, the count of its evaluations, the
    gap at the last one, whether the end is reached and only rounding is measured, whether the end
    can be used, whether a singular configuration was passed, the count of evaluations for that; in
    one array, as in a small system each operation of its own costs as much as a solve.

    `state`: to be evaluated next; `predicted`: as the method made it; `embedded` (2, nv): the error
    without the last slope, in displacements and velocities; `error`: of the end; `rows` (stages, 3,
    state): `slopes`, `places` and `before` of `Step`.
    """

    status: Float[Array, " 8"]
    state: Float[Array, " state"]
    predicted: Float[Array, " state"]
    embedded: Float[Array, "2 nv"]
    error: Float[Array, " state"]
    rows: Float[Array, "stages 3 state"]
    watched: PackedCrossings | None


class StepConstants(NamedTuple):
    """Constants of all iterations of a step. `weights`, `nodes`, `of_error`: of the tableau; `h`:
    length of the step (s); `scale`: of the rows of gaps, `unit`: of velocities; `onto`: are the
    slopes of stages taken on the constraints? `fresh`: is the monitor without a sample? `measures`:
    is the rounding of the end requested?"""

    given: Arguments
    start: Start
    tableau: Tableau
    weights: Float[Array, "stages stages"]
    nodes: Float[Array, " stages"]
    of_error: Float[Array, " stages"]
    h: Scalar
    scale: Float[Array, " rows"]
    unit: Float[Array, " nv"]
    onto: BoolScalar
    fresh: BoolScalar
    measures: BoolScalar

    @property
    def last(self) -> int:
        """The stage that is the end."""
        return len(self.tableau.nodes) - 1

    @property
    def projecting(self) -> bool:
        """Do ends of steps go back onto the constraints?"""
        return self.given.stabilisation.projecting

    def largest(self, rows: Float[Array, " rows"]) -> Scalar:
        """The largest of residuals, lengths relative to the characteristic length."""
        return jnp.max(jnp.abs(rows / self.scale), initial=0.0)


class _Moved(NamedTuple):
    """The state after an evaluation. `place`: q and v there; `slope`: of it; `there`: is that
    where it stays? `arrived`: and the end of the step? `bad`: can nothing come of it?"""

    q: Float[Array, " nq"]
    v: Float[Array, " nv"]
    speed: Scalar
    there: BoolScalar
    arrived: BoolScalar
    bad: BoolScalar
    place: Float[Array, " state"]
    slope: Float[Array, " state"]


def step_constants(solver: dfx.AbstractERK, packed: Packed, start: Start) -> StepConstants:
    given = packed.opened()
    tableau, dtype = _tableau(solver, start), start.y.dtype
    h = start.t1 - start.t0
    weights, nodes, of_error = (jnp.asarray(x, dtype) for x in tableau[:3])
    scale, unit = given.system.residual_scale(), given.system.column_scale()
    onto = given.moves(start.near)
    fresh = jnp.asarray(False) if start.watched is None else start.watched.fresh
    measures = start.near & jnp.asarray(given.stabilisation.projecting)
    return StepConstants(
        given, start, tableau, weights, nodes, of_error, h, scale, unit, onto, fresh, measures
    )


@program
@many_states
def _advance(solver: dfx.AbstractERK, packed: Packed, start: Start) -> Step:
    step = step_constants(solver, packed, start)
    turn = functools.partial(_turn, step)
    return _made(step, lax.while_loop(lambda now: now.status[0] > 0, turn, beginning_of(step)))


def beginning_of(step: StepConstants) -> StepTurn:
    """The loop of a step before its first evaluation."""
    start, nq, dtype = step.start, step.given.system.structure.nq, step.start.y.dtype
    rows = jnp.zeros((step.last + 1, 3, len(start.y)), dtype)
    slope = jnp.where(start.known, start.slope, 0.0)
    rows = rows.at[0].set(jnp.stack([slope, start.y, start.y]))
    first = jnp.where(start.known, 1, 0)
    state = start.y + step.h * _combined(step.weights[first], rows)
    return StepTurn(
        jnp.stack([jnp.ones((), dtype), first.astype(dtype), *jnp.array([0, jnp.inf, 0, 0, 0, 0])]),
        state,
        state,
        step.h * step.of_error[0] * jnp.stack([start.y[nq:], slope[nq:]]),
        jnp.full_like(start.y, jnp.inf),
        rows,
        start.watched,
    )


def _made(step: StepConstants, end: StepTurn) -> Step:
    """The step, from the end of its loop."""
    slopes, places, before = (end.rows[:, k] for k in range(3))
    # A failed step must not be returned as a motion.
    failed = ~jnp.all(jnp.isfinite(end.error))
    return Step(
        jnp.where(failed, jnp.nan, places[step.last]),
        end.error,
        slopes,
        (end.status[5] > 0) & ~failed,
        before,
        places,
        end.watched,
        end.status[6] > 0,
    )


def _turn(step: StepConstants, now: StepTurn) -> StepTurn:
    """One evaluation, and its consequences."""
    state = state_of(step, now)
    look = look_of(step, now, state, step.given.system.evaluation(state.q, state.v, state.t))
    last_slope = step.h * step.of_error[step.last]
    return turned(step, now, look, solve_look(step.given, look, now.embedded, last_slope))


def turned(step: StepConstants, now: StepTurn, look: Look, found: Solved) -> StepTurn:
    """The consequences of an evaluation."""
    usable, passed = now.status[5], now.status[6] > 0
    stage, purpose = look.stage, look.purpose
    last_slope = step.h * step.of_error[step.last]
    moved = _moved(step, look, found)
    old = lax.dynamic_index_in_dim(now.rows, stage, keepdims=False)
    row = jnp.where(moved.there, jnp.stack([moved.slope, moved.place, now.predicted]), old)
    rows = lax.dynamic_update_index_in_dim(now.rows, row, stage, 0)

    arrived, advancing = moved.arrived, moved.there & ~purpose.arriving
    met = _is_met(step, look, found, moved)
    usable = jnp.where(arrived, (met | (not step.projecting)) & ~moved.bad, usable > 0)
    error = _error(step, now, look, found, moved, last_slope)

    following = _following(step, stage)
    predicted, so_far = _next_stage(step, rows, following)
    predicted = jnp.where(advancing, predicted, now.predicted)
    following_state = jnp.where(advancing, predicted, moved.place)
    measuring = arrived & step.measures
    going = ~moved.bad & (~(arrived | purpose.behind) | measuring)
    watched, located = now.watched, now.status[7]
    if watched is not None and found.factored is not None:
        function = functools.partial(_watch, step, look, found.factored, purpose.starting, located)
        looking = arrived | purpose.starting | purpose.locating
        watched, passed, more = _once(looking, function, (watched, passed, located > 0))
        located = jnp.where(more, located + 1, 0.0)
        going = going | (more & ~moved.bad)
    gap = jnp.where(purpose.opening, look.closure, jnp.inf)
    count = jnp.where(advancing, 0, look.looks + 1)
    following = jnp.where(advancing, following, stage)
    status = going, following, count, gap, measuring, usable, passed, located
    return StepTurn(
        jnp.stack([x.astype(rows.dtype) for x in status]),
        following_state,
        predicted,
        jnp.where(advancing, so_far, now.embedded),
        error,
        rows,
        watched,
    )


def _watch(
    step: StepConstants,
    look: Look,
    factored: KKTSystem,
    start: BoolScalar,
    looks: Scalar,
    before: tuple[PackedCrossings, BoolScalar, BoolScalar],
) -> tuple[PackedCrossings, BoolScalar, BoolScalar]:
    """The monitor after one state, and before it: its state, whether a singular configuration has
    been passed, whether another sample is needed."""
    watched, passed, _ = before
    sample = Sample(look.t, look.q, look.v, jnp.max(jnp.abs(look.v) / step.unit, initial=0.0))
    watched, more_passed, more = update(
        factored, sample, step.start.t1, step.h, watched, start, looks
    )
    return watched, passed | more_passed, more


class TurnState(NamedTuple):
    """The state that a turn evaluates; `finite`: is it that which the method made?"""

    q: Float[Array, " nq"]
    v: Float[Array, " nv"]
    t: Scalar
    finite: BoolScalar


def _is_locating(now: StepTurn) -> BoolScalar:
    return (now.status[7] > 0) & ~(now.status[4] > 0)


def state_of(step: StepConstants, now: StepTurn) -> TurnState:
    """The state to be evaluated."""
    given, start, stage = step.given, step.start, now.status[1].astype(int)
    t = jnp.where(stage == step.last, start.t1, start.t0 + step.nodes[stage] * step.h)
    state = now.state
    if now.watched is not None:
        target, locating = now.watched.first("target"), _is_locating(now)
        t = jnp.where(locating, target, t)
        state = jnp.where(locating, _within(step, now.rows, target), state)
    finite = jnp.all(jnp.isfinite(state))
    # A stage after a failed one is evaluated somewhere, as not all methods accept NaN.
    q, v = split(given.system, jnp.where(finite, state, given.first[: len(state)]))
    return TurnState(q, v, t, finite)


def look_of(step: StepConstants, now: StepTurn, state: TurnState, evaluation: Evaluation) -> Look:
    """The look at a state that is evaluated."""
    stage, looks, earlier, measuring = (now.status[k] for k in range(1, 5))
    stage, measuring = stage.astype(int), measuring > 0
    locating, arriving = _is_locating(now), stage == step.last
    closure, rest = step.largest(evaluation.gap), step.largest(evaluation.rate)
    moving = step.projecting & (arriving | step.onto)
    closed = closed_enough(closure, earlier)
    behind = measuring | locating
    purpose = Purpose(
        moving & ~closed & ~behind,
        moving & closed & ~behind,
        measuring,
        locating,
        (stage == 0) & step.fresh,
        arriving,
    )
    q, v, t, finite = state
    return Look(stage, looks, t, q, v, finite, evaluation, closure, rest, moving, purpose)


def _moved(step: StepConstants, look: Look, found: Solved) -> _Moved:
    system, purpose, q, v = step.given.system, look.purpose, look.q, look.v
    linear = system.structure.holonomic
    # What is left of a closed configuration's gap, next to rounding, goes with the velocity.
    onward = purpose.opening | purpose.closing
    q1 = jnp.where(look.moving, system.retract(q, jnp.where(onward, -found.move, 0.0)), q)
    # Nearly closed, velocities are mostly projected too: less is left to the last evaluation.
    nearly = purpose.opening & (look.closure <= SMALL)
    v1 = v - jnp.where(purpose.closing | nearly, found.change, 0.0)
    speed = jnp.maximum(1.0, jnp.max(jnp.abs(v1), initial=0.0))
    settled = jnp.max(jnp.abs(found.change), initial=0.0) <= _SETTLED * speed
    settled = settled & (linear | (look.rest <= SMALL * speed))
    more = look.looks < MOST_STEPS
    there = jnp.where(look.moving, purpose.closing & (settled | ~more), ~purpose.behind)
    infinite = ~jnp.isfinite(look.closure + look.rest)
    bad = ~look.finite | found.failed | infinite | (purpose.opening & ~more)
    arrived = purpose.arriving & there
    place = jnp.concatenate([q1, v1])
    slope = jnp.concatenate([system.flow(q1, v1, look.t), found.acceleration])
    return _Moved(q1, v1, speed, there, arrived, bad, place, slope)


def _is_met(step: StepConstants, look: Look, found: Solved, moved: _Moved) -> BoolScalar:
    """Are the constraints met, with the change of velocity?"""
    evaluation = look.evaluation
    left = evaluation.rate - evaluation.equations.descriptor.apply_C(found.change)
    held = step.given.system.structure.velocity_level
    if not held.all():
        left = jnp.where(held, left, 0.0)
    return (look.closure <= MET) & (step.largest(left) <= MET * moved.speed)


def _error(
    step: StepConstants,
    now: StepTurn,
    look: Look,
    found: Solved,
    moved: _Moved,
    last_slope: Scalar,
) -> Float[Array, " state"]:
    """The error of the end, where this evaluation is there."""
    system, measuring = step.given.system, look.purpose.measuring
    embedded = now.embedded + last_slope * jnp.stack([moved.v, found.acceleration]) - found.across
    apart = jnp.abs(jnp.concatenate([system.rate(moved.q, embedded[0]), embedded[1]]))
    states = system.structure.internal
    if states.size:
        slopes = gather(now.rows[: step.last, 0], states)
        own = step.h * sum_of_products(step.of_error[: step.last, None], slopes, 0, apart=False)
        own = own + last_slope * gather(moved.slope, states)
        apart = apart + jnp.abs(scatter_add([own], [states], len(apart)))
    if step.projecting:
        # What the projection had to move the configuration is an error too. The method may
        # not have seen it: a driver that acted between its stages only. (Next to a singular
        # configuration all moves far, and means nothing; velocities do so earlier.)
        of_q = np.arange(len(moved.place)) < system.structure.nq
        way = jnp.where(of_q, jnp.abs(moved.place - now.predicted), 0.0)
        apart = apart + jnp.where(step.start.near, 0.0, way)
    rounding = jnp.abs(jnp.concatenate([system.rate(look.q, found.move), found.change]))
    error = jnp.where(moved.arrived, apart, now.error)
    return jnp.where(measuring, jnp.maximum(error - ROUNDINGS * rounding, 0.0), error)


def _within(
    step: StepConstants, rows: Float[Array, "stages 3 state"], t: Scalar
) -> Float[Array, " state"]:
    """The state between the ends of the step, by them and their slopes."""
    start, (k0, k1) = step.start, step.h * rows[jnp.array([0, step.last]), 0]
    curve = dfx.ThirdOrderHermitePolynomialInterpolation(
        t0=start.t0, t1=start.t1, y0=start.y, y1=rows[step.last, 1], k0=k0, k1=k1
    )
    return curve.evaluate(t)


def _following(step: StepConstants, stage: IntScalar) -> IntScalar:
    """The stage after this one."""
    following = jnp.minimum(stage + 1, step.last)
    if step.start.inside is None:
        return following
    # What is left out are slopes of zero.
    leaves_out = ~step.start.inside & (stage == step.last - step.tableau.inside - 1)
    return jnp.where(leaves_out, step.last, following)


def _next_stage(
    step: StepConstants, rows: Float[Array, "stages 3 state"], following: IntScalar
) -> tuple[Float[Array, " state"], Float[Array, "2 nv"]]:
    """The state of the next stage, and the error by all slopes until now."""
    nq, last = step.given.system.structure.nq, step.last
    state = step.start.y + step.h * _combined(step.weights[following], rows)
    so_far = step.h * sum_of_products(
        step.of_error[:last, None, None], rows[:last, 1::-1, nq:], 0, apart=False
    )
    return state, so_far


def _once(wanted: BoolScalar, function: Callable[[Any], Any], otherwise: Any) -> Any:
    """The function of `otherwise` if `wanted`, else `otherwise`. In a batch, a condition would
    evaluate the function every time; a loop evaluates it only if an element of the batch wants it.

    The function takes its argument from the loop: XLA computes what does not depend on that before
    the loop, and with it everything that the loop is to spare (jaxlib 0.10; seen in batches alone,
    where the monitor took two thirds of the time of a run of the parallelogram).
    """
    return lax.while_loop(
        lambda carry: carry[0],
        lambda carry: (jnp.asarray(False), function(carry[1])),
        (wanted, otherwise),
    )[1]


def _combined(weights: Float[Array, " k"], rows: Float[Array, "k *shape"]) -> Float[Array, "..."]:
    """The weighted sum of the first of each of the rows, without the last one, that of the end,
    which has no weight. It is written out, as a library's product is a call of its own."""
    return sum_of_products(weights[:-1, None], rows[:-1, 0], 0, apart=False)


def slope_at(
    given: Arguments, q: Float[Array, " nq"], v: Float[Array, " nv"], t: RealScalarLike
) -> Float[Array, " state"]:
    """d(q, v)/dt at one state; NaN where there is none."""
    system, t = given.system, jnp.asarray(t, q.dtype)
    found = accelerations_at(given, q, v, t)
    return jnp.concatenate([system.flow(q, v, t), found.acceleration])


def accelerations_at(
    given: Arguments, q: Float[Array, " nq"], v: Float[Array, " nv"], t: RealScalarLike
) -> Accelerations:
    """Accelerations of one state; dv/dt is NaN where there is none."""
    system, t = given.system, jnp.asarray(t, q.dtype)
    evaluation = system.evaluation(q, v, t)
    equations = given.equations(evaluation)
    found = accelerated(system, given.formulation, equations, q, v, t)
    acceleration = jnp.where(found.result == RESULTS.successful, found.acceleration, jnp.nan)
    return Accelerations(acceleration, found.multipliers, found.result)


def _at_stage(
    packed: Packed,
    t: Scalar,
    y: Float[Array, " state"],
    place: Float[Array, " state"],
    moving: BoolScalar,
) -> tuple[Float[Array, " state"], Float[Array, " state"]]:
    """The place where a slope was taken, as a function of the stage's own state, and the slope."""
    given = packed.opened()
    system = given.system
    end = split(system, place)
    q, v = lax.cond(
        moving,
        lambda q, v: attach_projection_jvp(system, q, v, t, end),
        lambda q, v: (q, v),
        *split(system, y),
    )
    return jnp.concatenate([q, v]), slope_at(given, q, v, t)


@advance.def_jvp
def _advance_jvp(primals: Any, tangents: Any) -> Any:
    solver, packed, start = primals
    _, packed_dot, start_dot = tangents
    step = advance(solver, packed, start)
    tableau, given = _tableau(solver, start), packed.opened()
    stages, dtype = len(tableau.nodes), start.y.dtype
    h = start.t1 - start.t0
    projecting = given.stabilisation.projecting
    onto = given.moves(start.near)
    t0_dot, t1_dot, y_dot, slope_dot = (
        jnp.zeros_like(x) if dot is None else dot
        for x, dot in (
            (start.t0, start_dot.t0),
            (start.t1, start_dot.t1),
            (start.y, start_dot.y),
            (start.slope, start_dot.slope),
        )
    )
    h_dot = t1_dot - t0_dot
    # A derivative of this one differentiates the slopes too, and with them the stages.
    slopes, places = step.slopes, stop_gradient(step.places)

    def change(slopes_dot: Any, of_stage: Any) -> Any:
        stage, weights, node, place = of_stage
        t, t_dot = start.t0 + node * h, t0_dot + node * h_dot
        y = start.y + h * (weights @ slopes)
        state_dot = y_dot + h_dot * (weights @ slopes) + h * (weights @ slopes_dot)
        moving = projecting & ((stage == stages - 1) | onto)
        left_out = jnp.asarray(False)
        if start.inside is not None:
            first = stages - 1 - tableau.inside
            left_out = ~start.inside & (first <= stage) & (stage < stages - 1)
            # A state, as what is not used must be finite.
            y, place = (jnp.where(left_out, start.y, x) for x in (y, place))
        _, (place_dot, own) = eqx.filter_jvp(
            functools.partial(_at_stage, place=place, moving=moving),
            (packed, t, y),
            (packed_dot, t_dot, state_dot),
        )
        known = (stage == 0) & start.known
        own = jnp.where(known, slope_dot, jnp.where(left_out, 0.0, own))
        row = jnp.arange(stages)[:, None] == stage
        return slopes_dot + jnp.where(row, own[None], 0.0), place_dot

    of_stages = (
        jnp.arange(stages),
        jnp.asarray(tableau.weights, dtype),
        jnp.asarray(tableau.nodes, dtype),
        places,
    )
    slopes_dot, places_dot = lax.scan(change, jnp.zeros_like(step.slopes), of_stages)
    tangent = jax.tree.map(lambda x: jnp.zeros_like(x) if eqx.is_inexact_array(x) else None, step)
    return step, eqx.tree_at(lambda s: (s.end, s.slopes), tangent, (places_dot[-1], slopes_dot))
