"""One step of an explicit Runge-Kutta method between states on the constraints, its
coefficients, and states within it.
"""

import functools
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

import diffrax as dfx
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float, UInt8

from .._custom_types import BoolScalar, IntScalar, RealScalarLike, Scalar
from .._formulations import Accelerations
from .._limits import EXACT
from .._linalg import gather, KKTSystem, scatter_add
from .._linalg._arrays import pack_scalars, sum_of_products
from .._linalg._many_states import many_states
from .._programs import program
from .._solution import RESULTS
from .._stop_gradient import stop_gradient
from .._system import Evaluation
from ._friction import accelerated
from ._monitor import PackedCrossings, Sample, update
from ._projection import attach_projection_jvp, closed_enough, MOST_STEPS
from ._state_evaluation import (
    Arguments,
    Packed,
    Phase,
    SETTLED,
    solve_state,
    Solved,
    split,
    StateResiduals,
)


# --------------------------------------------------------------------------------------------------
# Stages and polynomials by which a step of Dormand and Prince's method of eighth order (1981, J.
# Comp. Appl. Math. 7) is interpolated with sixth order.
#
# Printed by `tests/oracle_order_conditions.py`, which derives them. The nodes were searched for: of
# three stages, those of the least error of seventh order. It is 1.4e-7 h^7 at most in the norm in
# which Diffrax's interpolant has 7e-6 h^6 and the method itself 4.5e-6 h^9; so at tolerances in use
# states within steps are about as exact as their ends, which collect the errors of all steps.
# --------------------------------------------------------------------------------------------------


# Parts of the step.
DOPRI8_NODES = np.array([0.26, 0.45, 0.67])

# Stages whose slopes are used; the last four are those at the nodes and the end.
DOPRI8_USED = np.array([0, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16])

# Of the used stages before the last two, towards the state at each node.
_WEIGHTS = np.array(
    [
        [
            0.045668474981854314,
            -0.024859100890562726,
            0.20945038872203992,
            0.0379695236446661,
            0.00851669012892652,
            -0.019855356309295375,
            0.005863529419078584,
            -0.015698010837478484,
            0.012943861140771177,
            0.0,
            0.0,
        ],
        [
            0.049854035567428824,
            0.03590172524175799,
            0.17486022084072492,
            0.05644480963026265,
            0.044602340270234644,
            -0.036765276225714384,
            0.005248685353732998,
            -0.03796396819373454,
            0.035850607618365615,
            0.12196681989694126,
            0.0,
        ],
        [
            0.04129959217488608,
            0.23513283712041522,
            0.24864467013995914,
            -0.0966297324384559,
            0.06954033741428522,
            0.08078977529706297,
            -0.0024149951792346723,
            0.03763397019111711,
            -0.036795300560276946,
            -0.065123815716834,
            0.15792266155707585,
        ],
    ]
)
DOPRI8_WEIGHTS = np.zeros((3, 16))
DOPRI8_WEIGHTS[:, DOPRI8_USED[:-2]] = _WEIGHTS

# Of the used stages, coefficients of their polynomials in x - 1/2, highest power first.
DOPRI8_QUARTICS = np.array(
    [
        [
            -1.5277948870419318,
            14.559070952326598,
            -6.538748529402998,
            2.7577999945206004,
            -1.6103901922704524,
        ],
        [
            -124.06716662226506,
            -49.34329542011281,
            24.978910108319035,
            1.0338045692338156,
            0.7767601741731436,
        ],
        [
            8.619400863534107,
            -93.85845277609533,
            25.787850576029754,
            -3.6783420969189744,
            1.431725212379233,
        ],
        [
            284.2257132882182,
            -59.5611897745454,
            -48.08266722913397,
            -14.56055070996676,
            -1.8934632018266258,
        ],
        [
            -280.6485883915186,
            53.04293171634884,
            69.92403337760844,
            17.190611050179417,
            3.3882562800301814,
        ],
        [
            123.07444761557656,
            -93.7540047715642,
            -50.182530780993936,
            -15.865707611938191,
            -3.1375652348874734,
        ],
        [
            -12.94534386214319,
            -31.274762799905012,
            -15.361348222708079,
            -4.502174707955998,
            -1.2711566520984445,
        ],
        [
            43.415382914852024,
            54.35967131848726,
            22.686211282535282,
            7.008505679248555,
            2.0580962975784343,
        ],
        [
            -39.54299628123901,
            -53.6977824288619,
            -25.385347166592613,
            -7.38726430695514,
            -2.2173146751228225,
        ],
        [
            5.167207072483155,
            160.87574987200566,
            -25.860098754992027,
            -4.596537749061119,
            0.9324205633853031,
        ],
        [
            -7.867023262814232,
            -28.90183778617916,
            -14.331715974340424,
            15.122976235379957,
            0.5400747343332637,
        ],
        [
            0.5554493933441319,
            112.41654136032994,
            30.244955016411847,
            3.083436083684065,
            -1.0608667541898285,
        ],
        [
            1.541312159013912,
            15.137360537765574,
            12.120496297259695,
            4.393443570549769,
            2.0634234485160885,
        ],
    ]
)


# --------------------------------------------------------------------------------------------------
# States within a step, as exact as its end.
#
# Where states are saved, and where an event is, a step is interpolated. Slopes of its stages alone
# determine that to an order that is much lower than a method of eighth order deserves: by all that
# Dormand and Prince's has, the order is five, and at a tolerance of 1e-10 states within steps were
# a thousand times less exact than their ends. So such a step gets a few stages more, whose slopes
# are used for nothing else (bootstrapping; Enright, Jackson, Norsett & Thomsen 1986, ACM Trans.
# Math. Softw. 12; Hairer, Norsett & Wanner 1993, section II.6). With x the part of the step, the
# state is
#
#     y(x) = (cubic Hermite polynomial of both ends) + x^2 (1 - x)^2 h sum_i q_i(x) k_i,
#
# so that it is that of the ends there, with their slopes, and after a projection too. The q_i, of
# degree four, fulfil the order conditions up to the order of the interpolant for all x, and of what
# is free then those make the error of the next orders least. `tests/oracle_order_conditions.py`
# derives them.
# --------------------------------------------------------------------------------------------------


class InsideStages(NamedTuple):
    """Stages for an interpolant, before the end of a step: `nodes` (count,), parts of the step;
    `weights` (count, stages), which lead to their states, of all stages before the end. `used`:
    the stages whose slopes the interpolant takes, the first and the last of all among them."""

    nodes: np.ndarray
    weights: np.ndarray
    used: np.ndarray


@functools.singledispatch
def inside_stages(solver: dfx.AbstractSolver) -> InsideStages | None:
    """Stages that a method needs for `StepInterpolation`; None where Diffrax's own interpolant is
    sufficiently accurate."""
    del solver


@inside_stages.register
def _(solver: dfx.Dopri8) -> InsideStages | None:
    del solver
    return InsideStages(DOPRI8_NODES, DOPRI8_WEIGHTS, DOPRI8_USED)


class Inside(eqx.Module):
    """Output of a run between the ends of its steps: states at `times` (s), and the location of
    `events`."""

    times: Float[Array, " times"]
    events: bool = eqx.field(static=True)

    def wanted(self, t0: Scalar, t1: Scalar) -> BoolScalar:
        """Is output requested within this step?"""
        return self.events | jnp.any((t0 < self.times) & (self.times < t1))


class StepInterpolation(dfx.AbstractLocalInterpolation):
    """Interpolation of a `Dopri8` step, from the states at both ends and h times the slopes `k` of
    its used stages."""

    t0: RealScalarLike
    t1: RealScalarLike
    y0: Float[Array, " state"]
    y1: Float[Array, " state"]
    k: Float[Array, "used state"]

    QUARTICS: ClassVar[np.ndarray] = DOPRI8_QUARTICS.T

    def evaluate(
        self, t0: RealScalarLike, t1: RealScalarLike | None = None, left: bool = True
    ) -> Float[Array, " state"]:
        del left
        if t1 is not None:
            return self.evaluate(t1) - self.evaluate(t0)
        # A run may have no length.
        none = self.t0 == self.t1
        start, end = jnp.asarray(self.t0), jnp.asarray(self.t1)
        x = jnp.where(none, 0.0, t0 - start) / jnp.where(none, 1.0, end - start)
        middle = x - 0.5
        quartics = functools.reduce(
            lambda found, row: found * middle + row, jnp.asarray(self.QUARTICS, self.k.dtype)
        )
        of_ends = self.y0 + x**2 * (3 - 2 * x) * (self.y1 - self.y0)
        slopes = (1 - x) * self.k[0] - x * self.k[-1]
        within = sum_of_products(quartics[:, None], self.k, 0, apart=False)
        return of_ends + x * (1 - x) * (slopes + x * (1 - x) * within)


# --------------------------------------------------------------------------------------------------
# Coefficients of explicit Runge-Kutta methods, with the end of a step as their last stage.
# --------------------------------------------------------------------------------------------------


class Tableau(NamedTuple):
    """The tableau of a method whose last stage is its end. `weights` (stages, stages) lead to each
    stage's state, `nodes` (stages,) to its time, `error` (stages,) to the error; `own`: stages of
    the method itself, without an end added to it; `inside`: the number of stages before the end
    that only its interpolant uses."""

    weights: np.ndarray
    nodes: np.ndarray
    error: np.ndarray
    own: int
    inside: int


def tableau_of(solver: Any, inside: InsideStages | None = None) -> Tableau:
    """The tableau of a Diffrax method, with stages of its interpolant."""
    given = solver.tableau
    own = given.num_stages
    stages = own if given.ssal else own + 1
    weights, nodes, error = np.zeros((stages, stages)), np.zeros(stages), np.zeros(stages)
    for stage, row in enumerate(given.a_lower, start=1):
        weights[stage, : len(row)] = row
    weights[-1, :own] = given.b_sol
    nodes[1:own] = given.c
    nodes[-1] = 1.0
    error[:own] = given.b_error
    tableau = Tableau(weights, nodes, error, own, 0)
    return tableau if inside is None else _with_inside_stages(tableau, inside)


def _with_inside_stages(tableau: Tableau, inside: InsideStages) -> Tableau:
    """Before the end: they do not need its slope, and so the end stays the last."""
    count, last = len(inside.nodes), len(tableau.nodes) - 1
    weights, nodes, error = (
        np.insert(x, [last] * count, 0.0, axis=0)
        for x in (tableau.weights, tableau.nodes, tableau.error)
    )
    weights = np.insert(weights, [last] * count, 0.0, axis=1)
    weights[last : last + count, : last + count] = inside.weights
    nodes[last : last + count] = inside.nodes
    return Tableau(weights, nodes, error, tableau.own, count)


# --------------------------------------------------------------------------------------------------
# One step of an explicit Runge-Kutta method between states on the constraints.
#
# A step evaluates a few states: those of its stages, and its end, which is projected onto the
# constraints. All of that is one loop with one copy of the system's equations and of the factor of
# S + mu I. The phase of an evaluation decides which right-hand sides are solved for:
#
# - at a stage: dv/dt;
# - where the end is still open: the projection, M^-1 C^T S^+ Phi, after which it is evaluated
#   again;
# - where it is closed: what is left of Phi, the change of velocity M^-1 C^T S^+ (C v + b), dv/dt,
#   and the part of the step's error that the constraints take away;
# - within a step that is too long to see whether it passed a singular configuration, or that did:
#   the singular values there.
#
# So the end's dv/dt is known before the next step, whose first stage it is (Hairer, Norsett &
# Wanner 1993, section II.4: first same as last), also of methods which are not made for that. The
# change of the velocity is not included in that dv/dt; so the end is evaluated again where it is
# not small relative to the tolerance of the run.
#
# A step within which states are requested has some more stages before its end;
# others of the same run leave them out, which is a number in the loop.
#
# The loop has no derivative. That is taken stage by stage: of the states in which slopes were
# taken, of the slopes there, and of the way onto the constraints
# (`_projection.attach_projection_jvp`).
# --------------------------------------------------------------------------------------------------


# Next to a singular configuration solutions that lie apart by so many times the rounding of the
# projection are the same.
ROUNDINGS = 10.0


class Step(eqx.Module):
    """`end` (state,): q and v at the end; `error` (state,) of it; `slopes` (stages, state) of each
    stage. `usable`: is the end on the constraints, and did every slope exist?

    `places` (stages, state): the states in which slopes were taken, which derivatives require.
    `watched`: what a monitor carries on, if there is one; `passed`: was a singular configuration
    passed?
    """

    end: Float[Array, " state"]
    error: Float[Array, " state"]
    slopes: Float[Array, "stages state"]
    usable: BoolScalar
    places: Float[Array, "stages state"]
    watched: PackedCrossings | None
    passed: BoolScalar


# Marks of a step, see `Marks`.
_ONTO, _INSIDE, _KNOWN = 1, 2, 4


class StepRecord(NamedTuple):
    """Data for the derivative of a step: its start `y` (state,), `slopes` and `places` (stages,
    state) as in `Step`, and its `marks`."""

    y: Float[Array, " state"]
    slopes: Float[Array, "stages state"]
    places: Float[Array, "stages state"]
    marks: UInt8[Array, ""]


class Start(eqx.Module):
    """Beginning of a step: `t0`, `t1` (s), `y` (state,), and the `slope` there, if it is `known`.
    `near`: is a singular configuration close? `onto`: are the slopes of stages taken on the
    constraints? `inside`: are states within the step requested? None: nowhere in this run.
    `watched`: what a monitor carries, if there is one."""

    t0: Scalar
    t1: Scalar
    y: Float[Array, " state"]
    slope: Float[Array, " state"]
    known: BoolScalar
    near: BoolScalar
    onto: BoolScalar
    inside: BoolScalar | None
    watched: PackedCrossings | None


def _tableau(solver: Any, start: Start) -> Tableau:
    return tableau_of(solver, None if start.inside is None else inside_stages(solver))


def record_of(start: Start, step: Step) -> StepRecord:
    """The record of a step."""
    inside = False if start.inside is None else start.inside
    marks = _ONTO * start.onto + _INSIDE * jnp.asarray(inside) + _KNOWN * start.known
    return StepRecord(start.y, step.slopes, step.places, marks.astype(jnp.uint8))


class Marks(NamedTuple):
    """Marks of a step: were the slopes of its stages taken on the constraints, were states within
    it requested, was the first slope known?"""

    onto: BoolScalar
    inside: BoolScalar
    known: BoolScalar


def marks_of(marks: UInt8[Array, ""]) -> Marks:
    """The marks of a record."""
    return Marks(*(marks & mark > 0 for mark in (_ONTO, _INSIDE, _KNOWN)))


@eqx.filter_custom_jvp
def advance(solver: dfx.AbstractERK, packed: Packed, start: Start) -> Step:
    """The step."""
    return _advance(solver, packed, start)


class Progress(NamedTuple):
    """Position within a step: the `phase` of the state that is evaluated next, its `stage`, the
    number of `evaluations` there until now, the `gap` at the last one. `usable`: can the end be
    used? `passed`: was a singular configuration passed? `samples`: the number of the monitor's next
    sample within the step, 0 without one."""

    phase: Scalar
    stage: Scalar
    evaluations: Scalar
    gap: Scalar
    usable: Scalar
    passed: Scalar
    samples: Scalar


class StepLoop(NamedTuple):
    """State of the loop of a step. `packed`: its `Progress`.

    `state`: to be evaluated next; `predicted`: as the method made it; `embedded` (2, nv): the error
    without the last slope, in displacements and velocities; `end`, `error`, `slopes`, `places` as
    in `Step`. (What nobody reads in a run without derivative, the compiler drops: the places.)
    """

    packed: Float[Array, " 7"]
    state: Float[Array, " state"]
    predicted: Float[Array, " state"]
    embedded: Float[Array, "2 nv"]
    end: Float[Array, " state"]
    error: Float[Array, " state"]
    slopes: Float[Array, "stages state"]
    places: Float[Array, "stages state"]
    watched: PackedCrossings | None

    @property
    def progress(self) -> Progress:
        return Progress(*(self.packed[k] for k in range(len(Progress._fields))))

    @property
    def going(self) -> BoolScalar:
        return self.packed[0] != Phase.DONE


class StepConstants(NamedTuple):
    """Constants of all iterations of a step. `weights`, `nodes`, `of_error`: of the tableau; `h`:
    length of the step (s); `scale`: of the rows of gaps, `unit`: of velocities; `fresh`: is the
    monitor without a sample? `measures`: is the rounding of the end requested?"""

    given: Arguments
    start: Start
    tableau: Tableau
    weights: Float[Array, "stages stages"]
    nodes: Float[Array, " stages"]
    of_error: Float[Array, " stages"]
    h: Scalar
    scale: Float[Array, " rows"]
    unit: Float[Array, " nv"]
    fresh: BoolScalar
    measures: BoolScalar

    @property
    def last(self) -> int:
        """The stage that is the end."""
        return len(self.tableau.nodes) - 1

    @property
    def last_slope(self) -> Scalar:
        """The weight of the last slope in the error (s)."""
        return self.h * self.of_error[self.last]

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
    fresh = jnp.asarray(False) if start.watched is None else start.watched.fresh
    measures = start.near & jnp.asarray(given.stabilisation.projecting)
    return StepConstants(
        given, start, tableau, weights, nodes, of_error, h, scale, unit, fresh, measures
    )


@program
@many_states
def _advance(solver: dfx.AbstractERK, packed: Packed, start: Start) -> Step:
    step = step_constants(solver, packed, start)

    def body(now: StepLoop) -> StepLoop:
        there = state_of(step, now)
        evaluation = step.given.system.evaluation(there.q, there.v, there.t)
        state = residuals_of(step, now, there, evaluation)
        found = solve_state(step.given, state, now.embedded, step.last_slope)
        return transition(step, now, state, found)

    return _made(step, lax.while_loop(lambda now: now.going, body, beginning_of(step)))


def beginning_of(step: StepConstants) -> StepLoop:
    """The loop of a step before its first evaluation."""
    start, nq, dtype = step.start, step.given.system.structure.nq, step.start.y.dtype
    none = jnp.zeros((step.last + 1, len(start.y)), dtype)
    slope = jnp.where(start.known, start.slope, 0.0)
    slopes = none.at[0].set(slope)
    first = jnp.where(start.known, 1, 0)
    state = start.y + step.h * _combined(step.weights[first], slopes)
    begun = Progress(jnp.asarray(Phase.STAGE), first, *jnp.array([0, jnp.inf, 0, 0, 0], dtype))
    return StepLoop(
        pack_scalars(begun, dtype),
        state,
        state,
        jnp.where(start.known, step.h * step.of_error[0], 0.0)
        * jnp.stack([start.y[nq:], slope[nq:]]),
        start.y,
        jnp.full_like(start.y, jnp.inf),
        slopes,
        none.at[0].set(start.y),
        start.watched,
    )


def _made(step: StepConstants, end: StepLoop) -> Step:
    """The step, from the end of its loop."""
    # A failed step must not be returned as a motion.
    failed = ~jnp.all(jnp.isfinite(end.error))
    return Step(
        jnp.where(failed, jnp.nan, end.end),
        end.error,
        end.slopes,
        (end.progress.usable > 0) & ~failed,
        end.places,
        end.watched,
        end.progress.passed > 0,
    )


def transition(
    step: StepConstants, now: StepLoop, state: StateResiduals, found: Solved
) -> StepLoop:
    """The step after one more state of it was evaluated and solved."""
    progress, stage = now.progress, state.stage
    moved = _moved(step, state, found)
    slopes = _with_row(now.slopes, stage, moved.there, moved.slope)
    places = _with_row(now.places, stage, moved.there, moved.place)

    arrived, advancing = moved.arrived, moved.there & ~state.arriving
    met = _is_met(step, state, found, moved)
    usable = jnp.where(arrived, (met | (not step.projecting)) & ~moved.bad, progress.usable > 0)
    error = _error(step, now, state, found, moved)

    following = _following(step, stage)
    predicted = step.start.y + step.h * _combined(step.weights[following], slopes)
    predicted = jnp.where(advancing, predicted, now.predicted)
    rates = jnp.stack([moved.v, found.acceleration])
    so_far = now.embedded + step.h * step.of_error[stage] * rates
    following_state = jnp.where(advancing, predicted, moved.place)
    watched, passed, samples = now.watched, progress.passed > 0, progress.samples
    if watched is not None and found.factored is not None:
        function = functools.partial(_watch, step, state, found.factored, samples)
        sampling = arrived | state.starting | (state.phase == Phase.LOCATE)
        watched, passed, more = _once(sampling, function, (watched, passed, samples > 0))
        samples = jnp.where(more, samples + 1, 0.0)

    # Before the end, the next stage or another evaluation of this one; behind it what is left.
    behind = jnp.where(samples > 0, Phase.LOCATE, Phase.DONE)
    behind = jnp.where(arrived & step.measures, Phase.MEASURE, behind)
    phase = jnp.where(arrived | state.behind, behind, Phase.STAGE)
    progress = Progress(
        jnp.where(moved.bad, Phase.DONE, phase),
        jnp.where(advancing, following, stage),
        jnp.where(advancing, 0, state.evaluations + 1),
        jnp.where(state.opening, state.closure, jnp.inf),
        usable,
        passed,
        samples,
    )
    return StepLoop(
        pack_scalars(progress, slopes.dtype),
        following_state,
        predicted,
        jnp.where(advancing, so_far, now.embedded),
        jnp.where(arrived, moved.place, now.end),
        error,
        slopes,
        places,
        watched,
    )


def _with_row(
    rows: Float[Array, "stages state"],
    stage: IntScalar,
    wanted: BoolScalar,
    row: Float[Array, " state"],
) -> Float[Array, "stages state"]:
    """The rows with another one at the stage, if that is `wanted`."""
    old = lax.dynamic_index_in_dim(rows, stage, keepdims=False)
    return lax.dynamic_update_index_in_dim(rows, jnp.where(wanted, row, old), stage, 0)


def _watch(
    step: StepConstants,
    state: StateResiduals,
    factored: KKTSystem,
    samples: Scalar,
    before: tuple[PackedCrossings, BoolScalar, BoolScalar],
) -> tuple[PackedCrossings, BoolScalar, BoolScalar]:
    """The monitor after one state, and before it: its state, whether a singular configuration has
    been passed, whether another sample is needed."""
    watched, passed, _ = before
    speed = jnp.max(jnp.abs(state.v) / step.unit, initial=0.0)
    sample = Sample(state.t, state.q, state.v, speed)
    watched, more_passed, more = update(
        factored, sample, step.start.t1, step.h, watched, state.starting, samples
    )
    return watched, passed | more_passed, more


class StateToEvaluate(NamedTuple):
    """The state that is evaluated; `finite`: is it that which the method made?"""

    q: Float[Array, " nq"]
    v: Float[Array, " nv"]
    t: Scalar
    finite: BoolScalar


def state_of(step: StepConstants, now: StepLoop) -> StateToEvaluate:
    """The state to be evaluated."""
    given, start, stage = step.given, step.start, now.progress.stage.astype(int)
    t = jnp.where(stage == step.last, start.t1, start.t0 + step.nodes[stage] * step.h)
    state = now.state
    if now.watched is not None:
        target, locating = now.watched.first("target"), now.progress.phase == Phase.LOCATE
        t = jnp.where(locating, target, t)
        state = jnp.where(locating, _within(step, now, target), state)
    finite = jnp.all(jnp.isfinite(state))
    # A stage after a failed one is evaluated somewhere, as not all methods accept NaN.
    q, v = split(given.system, jnp.where(finite, state, given.first[: len(state)]))
    return StateToEvaluate(q, v, t, finite)


def residuals_of(
    step: StepConstants, now: StepLoop, state: StateToEvaluate, evaluation: Evaluation
) -> StateResiduals:
    """The residuals of a state that was evaluated, and with them its phase."""
    progress = now.progress
    stage, phase = progress.stage.astype(int), progress.phase
    arriving, starting = stage == step.last, (stage == 0) & step.fresh
    closure, rest = step.largest(evaluation.gap), step.largest(evaluation.rate)
    moving = step.projecting & (arriving | step.start.onto)
    way = jnp.where(closed_enough(closure, progress.gap), Phase.CLOSE, Phase.OPEN)
    phase = jnp.where(moving & (phase == Phase.STAGE), way, phase)
    q, v, t, finite = state
    return StateResiduals(
        phase,
        stage,
        progress.evaluations,
        arriving,
        starting,
        t,
        q,
        v,
        finite,
        evaluation,
        closure,
        rest,
        moving,
    )


def _moved(step: StepConstants, state: StateResiduals, found: Solved) -> _Moved:
    system, q, v = step.given.system, state.q, state.v
    opening, closing = state.opening, state.closing
    linear = system.structure.holonomic
    # What is left of a closed configuration's gap, next to rounding, goes with the velocity.
    move = jnp.where(opening | closing, -found.move, 0.0)
    q1 = jnp.where(state.moving, system.retract(q, move), q)
    # Nearly closed, velocities are mostly projected too: less is left to the last evaluation.
    nearly = opening & (state.closure <= EXACT.nearly_closed)
    v1 = v - jnp.where(closing | nearly, found.change, 0.0)
    speed = jnp.maximum(1.0, jnp.max(jnp.abs(v1), initial=0.0))
    enough = jnp.where(step.start.near, SETTLED, step.given.settled)
    settled = jnp.max(jnp.abs(found.change), initial=0.0) <= enough * speed
    settled = settled & (linear | (state.rest <= EXACT.nearly_closed * speed))
    more = state.evaluations < MOST_STEPS
    there = jnp.where(state.moving, closing & (settled | ~more), ~state.behind)
    infinite = ~jnp.isfinite(state.closure + state.rest)
    bad = ~state.finite | found.failed | infinite | (opening & ~more)
    arrived = state.arriving & there
    place = jnp.concatenate([q1, v1])
    slope = jnp.concatenate([system.flow(q1, v1, state.t), found.acceleration])
    return _Moved(q1, v1, speed, there, arrived, bad, place, slope)


def _is_met(step: StepConstants, state: StateResiduals, found: Solved, moved: _Moved) -> BoolScalar:
    """Are the constraints met, with the change of velocity?"""
    evaluation = state.evaluation
    left = evaluation.rate - evaluation.equations.descriptor.apply_C(found.change)
    held = step.given.system.structure.velocity_level
    if not held.all():
        left = jnp.where(held, left, 0.0)
    return (state.closure <= EXACT.closed) & (step.largest(left) <= EXACT.velocity * moved.speed)


def _error(
    step: StepConstants,
    now: StepLoop,
    state: StateResiduals,
    found: Solved,
    moved: _Moved,
) -> Float[Array, " state"]:
    """The error of the end, where this evaluation is there."""
    system, last_slope = step.given.system, step.last_slope
    embedded = now.embedded + last_slope * jnp.stack([moved.v, found.acceleration]) - found.across
    apart = jnp.abs(jnp.concatenate([system.rate(moved.q, embedded[0]), embedded[1]]))
    turning = system.structure.quaternions.ravel()
    if turning.size:
        # Velocities that do not change make an error of a quaternion all the same.
        rates = gather(now.slopes[: step.last], turning)
        own = step.h * sum_of_products(step.of_error[: step.last, None], rates, 0, apart=False)
        own = own + last_slope * gather(moved.slope, turning)
        known = now.embedded[0] + last_slope * moved.v
        left = own - gather(system.rate(moved.q, known), turning)
        apart = apart + jnp.abs(scatter_add([left], [turning], len(apart)))
    states = system.structure.internal
    if states.size:
        slopes = gather(now.slopes[: step.last], states)
        own = step.h * sum_of_products(step.of_error[: step.last, None], slopes, 0, apart=False)
        own = own + last_slope * gather(moved.slope, states)
        apart = apart + jnp.abs(scatter_add([own], [states], len(apart)))
    if system.one_sided:
        unseen = _unseen_change(step, now, moved) * step.unit
        apart = apart + jnp.concatenate([jnp.zeros_like(moved.q), unseen])
    if step.projecting:
        # What the projection had to move the configuration is an error too. The method may
        # not have seen it: a driver that acted between its stages only. (Next to a singular
        # configuration all moves far, and means nothing, unless it is farther than the step itself:
        # that leads to another branch. Velocities do so earlier.)
        of_q = np.arange(len(moved.place)) < system.structure.nq
        way = jnp.where(of_q, jnp.abs(moved.place - now.predicted), 0.0)
        own = jnp.where(of_q, jnp.abs(now.predicted - step.start.y), 0.0)
        leaps = jnp.max(way, initial=0.0) > jnp.max(own, initial=0.0)
        apart = apart + jnp.where(step.start.near & ~leaps, 0.0, way)
    rounding = jnp.abs(jnp.concatenate([system.rate(state.q, found.move), found.change]))
    error = jnp.where(moved.arrived, apart, now.error)
    less = jnp.maximum(error - ROUNDINGS * rounding, 0.0)
    return jnp.where(state.phase == Phase.MEASURE, less, error)


# A stage without weight may see so many times larger a change of acceleration than the others.
_UNSEEN = 100.0


def _unseen_change(step: StepConstants, now: StepLoop, moved: _Moved) -> Scalar:
    """A change of acceleration within the step that its error does not contain, times its length:
    velocities relative to their units; zero of smooth forces.

    A step that leads into a contact, or a stop, may be so long that the force at a stage throws the
    next ones out of it. If the stages within it are those without weight (four of Dopri8), the step
    and its error are those of a motion without contact. So is the error where the end alone is in
    contact.
    """
    tableau, nq = step.tableau, len(moved.q)
    own = np.append(np.arange(step.last - tableau.inside), step.last)
    weighted = (tableau.weights[-1] != 0) | (tableau.error != 0)
    slopes = now.slopes[: step.last - tableau.inside, nq:]
    slopes = jnp.concatenate([slopes, moved.slope[None, nq:]])
    changes = jnp.max(jnp.abs(slopes - slopes[:1]) / step.unit[None], axis=1, initial=0.0)
    seen = jnp.max(jnp.where(weighted[own], changes, 0.0))
    return step.h * jnp.maximum(jnp.max(changes) - _UNSEEN * seen, 0.0)


def _within(step: StepConstants, now: StepLoop, t: Scalar) -> Float[Array, " state"]:
    """The state between the ends of the step, by them and their slopes."""
    start, (k0, k1) = step.start, step.h * now.slopes[jnp.array([0, step.last])]
    curve = dfx.ThirdOrderHermitePolynomialInterpolation(
        t0=start.t0, t1=start.t1, y0=start.y, y1=now.end, k0=k0, k1=k1
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


def _combined(
    weights: Float[Array, " stages"], slopes: Float[Array, "stages state"]
) -> Float[Array, " state"]:
    """The weighted sum of the slopes, without the last one, that of the end, which has no weight.
    It is written out, as a library's product is a call of its own."""
    return sum_of_products(weights[:-1, None], slopes[:-1], 0, apart=False)


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
        moving = projecting & ((stage == stages - 1) | start.onto)
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
