"""Reverse mode of a run of an explicit Runge-Kutta method, by what is written down of its steps.

Diffrax differentiates a run by checkpoints: between them it makes the steps again. Such a
program contains the step three times: in the run, again between checkpoints, and where it is
linearised. But of a step its derivative needs little: the states in which its slopes were taken,
and these slopes (`_integrate.py`). Backwards each of them is linearised in its place, and no
step is made again, except those of a long run that were too many to be kept; their ends are
known, so that neither errors nor singular values are looked at.

A state that is saved is one more state of that kind: projected, with a derivative of its
acceleration and multipliers. So all derivatives of a run come out of one loop, whose turn is the
derivative of one evaluation.

Lengths of steps have no derivative, as in Diffrax: they are chosen. But where a step ends at the
end of the run or at a knot of a motion, its end moves with that.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

from .._custom_types import BoolScalar, IntScalar, Scalar
from .._formulations import AbstractFormulation, MinimumNorm, UdwadiaKalaba
from .._linalg import KKTSystem, motion_solver, ProximalCholesky, unit_rows
from .._linalg._many_states import any_state, unless_alone
from .._system import AbstractSystem, Equations, Evaluation, MOST
from ._friction import accelerated
from ._integrate import Sizes, Tape, with_row
from ._projection import projection_factors, SavedState
from ._runge_kutta import (
    beginning_of,
    marks_of,
    residuals_of,
    Start,
    state_of,
    StateToEvaluate,
    step_constants,
    StepConstants,
    StepLoop,
    StepRecord,
    transition,
)
from ._state_evaluation import Arguments, Packed, PASSES, Solved, split, StateResiduals


# --------------------------------------------------------------------------------------------------
# The derivative of one evaluation of a run, backwards: of a stage or of a saved state, with that
# of its way onto the constraints. All of it comes from one evaluation, one factor and one loop of
# solves.
#
# With (a, lambda) solved, its derivative needs none of a factor: it is that of the residuals M a +
# C^T lambda - F and C a - Gamma at constant (a, lambda), times the solution of one more system with
# the same matrices.
# --------------------------------------------------------------------------------------------------


class TapedRun(NamedTuple):
    """A run that was made. `arguments`: of it, of the `numbers` that it is differentiated by;
    `start` (passages included); `times` (s), at which the first `count` of the `saved` states were
    saved, followed by that in which the run ended, if there is room."""

    arguments: Callable[[Float[Array, " n"]], Arguments]
    numbers: Float[Array, " n"]
    start: Float[Array, " passages"]
    times: Float[Array, " times"]
    saved: SavedState
    count: IntScalar
    steps: IntScalar
    tape: Tape
    sizes: Sizes
    solver: Any

    @property
    def given(self) -> Arguments:
        """The arguments as they were."""
        return self.arguments(self.numbers)

    def end_before(self, step: IntScalar) -> Scalar:
        """The time at which this step begins (s)."""
        return jnp.where(step > 0, self.tape.ends[jnp.maximum(step - 1, 0)], self.times[0])


class ByState(NamedTuple):
    """Derivatives by what is computed at one state: its `place` (state,), dq/dt, accelerations and
    multipliers."""

    place: Float[Array, " state"]
    flow: Float[Array, " nq"]
    acceleration: Float[Array, " nv"]
    multipliers: Float[Array, " reactions"]


class Place(NamedTuple):
    """A state of which a derivative is taken: a saved one (`saving`) or a stage; its time and place
    (state,); was it moved onto the constraints?"""

    saving: BoolScalar
    t: Scalar
    state: Float[Array, " state"]
    moving: BoolScalar
    by: ByState


class ByInputs(NamedTuple):
    """Derivatives by the numbers of the run, a time, and a state."""

    numbers: Float[Array, " n"]
    t: Scalar
    state: Float[Array, " state"]


class Evaluated(NamedTuple):
    """Evaluation of a state: equations of motion, residuals that the projection removes, dq/dt."""

    equations: Equations
    gap: Float[Array, " rows"]
    rate: Float[Array, " rows"]
    flow: Float[Array, " nq"]


class Recomputation(NamedTuple):
    """Recomputation of a step: is it `wanted` now? `residuals`: of an evaluation, in
    that step."""

    wanted: BoolScalar
    residuals: Callable[[Evaluated], tuple[StepConstants, StateResiduals]]


class EvaluationVJP(NamedTuple):
    """Results at a state: the evaluation (`found`), derivatives by its `inputs`, and, for a step
    that is recomputed, the solution (`solved`)."""

    found: Evaluated
    inputs: ByInputs
    solved: Solved


class _Projections(NamedTuple):
    """Projections that a step that is made `again` asks for: is there one, and is that of the
    configuration still `opening`?"""

    again: BoolScalar
    moving: BoolScalar
    opening: BoolScalar


def evaluation_vjp(run: TapedRun, place: Place, again: Recomputation | None) -> EvaluationVJP:
    """An evaluation and its derivative, by the state that was moved to its place, by its time, and
    by the numbers of the run; or that of a step that is made `again`. The evaluation is transposed
    once, and where the state was moved, once more for velocities and once more for the
    configuration, which were moved in the other order."""
    t, state = place.t, place.state

    def evaluated(
        numbers: Float[Array, " n"], t: Scalar, state: Float[Array, " state"]
    ) -> Evaluated:
        given = run.arguments(numbers)
        q, v = split(given.system, state)
        found = given.system.evaluation(q, v, t)
        equations, stabilised = found.equations, given.equations(found)
        if stabilised is not equations:
            # Saved accelerations are those of the equations as they are.
            offset = jnp.where(place.saving, equations.offset, stabilised.offset)
            equations = eqx.tree_at(lambda e: e.offset, equations, offset)
        return Evaluated(equations, found.gap, found.rate, given.system.flow(q, v, t))

    found, pull = eqx.filter_vjp(evaluated, run.numbers, t, state)
    system, (q, v) = run.given.system, split(run.given.system, state)
    asked = _requested_projections(again, found)
    back = _solution_back(run, found, place, asked)
    none = ByInputs(jnp.zeros_like(run.numbers), jnp.zeros_like(t), place.by.place)
    begun = none if back.direct is None else jax.tree.map(jnp.add, none, back.direct)
    nothing = jax.tree.map(jnp.zeros_like, back.equations)
    _, of_retraction = jax.vjp(system.retract, q, jnp.zeros_like(v))

    def transposed(k: IntScalar, carry: tuple[Any, ByInputs]) -> tuple[Any, ByInputs]:
        of_rows, so_far = carry
        first = k == 0
        equations = jax.tree.map(
            lambda own, zero: jnp.where(first, own, zero), back.equations, nothing
        )
        gap, rate = (jnp.where(k == n, of_rows, 0.0) for n in (2, 1))
        more = pull(Evaluated(equations, gap, rate, jnp.where(first, place.by.flow, 0.0)))
        so_far = jax.tree.map(jnp.add, so_far, ByInputs(*more))
        by_q, by_v = so_far.state[: len(q)], so_far.state[len(q) :]
        before, by_move = of_retraction(by_q)
        if back.factors is not None:
            of_rows = -_rows_of(back.factors, first, by_v, by_move)
        by_q = jnp.where(k == 1, before, by_q)
        return of_rows, so_far._replace(state=jnp.concatenate([by_q, by_v]))

    count = jnp.where(asked.again, 0, jnp.where(place.moving, 3, 1))
    _, inputs = lax.fori_loop(0, count, transposed, (jnp.zeros_like(found.gap), begun))
    return EvaluationVJP(found, inputs, back.solved)


def _requested_projections(again: Recomputation | None, found: Evaluated) -> _Projections:
    no = jnp.asarray(False)
    nothing = _Projections(no, no, no)
    if again is None:
        return nothing
    wanted, residuals = again

    def projections() -> _Projections:
        _, state = residuals(found)
        return _Projections(wanted, state.moving, state.opening)

    return lax.cond(wanted, projections, lambda: nothing)


class _Solution(NamedTuple):
    """Derivatives through accelerations and multipliers: by the `equations`, and `direct` ones by
    what else they depend on, if there is anything. `factors`: by which velocities and
    configurations go back onto the constraints, with a leading axis; one, where they are the same.
    `solved`: of a step that is made again."""

    equations: Any
    direct: ByInputs | None
    factors: Any
    solved: Solved


def _factor_of(factors: KKTSystem, k: int | IntScalar) -> KKTSystem:
    """One of two factors back."""
    if factors.factor.scale.ndim == 1:
        return factors
    arrays, rest = eqx.partition(factors, eqx.is_array)
    return eqx.combine(jax.tree.map(lambda x: x[k], arrays), rest)


def _rows_of(
    factors: KKTSystem, first: BoolScalar, by_v: Float[Array, " nv"], by_move: Float[Array, " nv"]
) -> Float[Array, " rows"]:
    """Derivatives by what is left in the rows, which a projection takes away, from those by the
    velocity, at `first`, or else by the displacement."""
    kkt = _factor_of(factors, 1 - first)
    motion = kkt.descriptor.inverse_mass(jnp.where(first, by_v, by_move))
    return kkt.approximate_multipliers(kkt.descriptor.apply_C(motion), PASSES)


def _solution_back(
    run: TapedRun,
    found: Evaluated,
    place: Place,
    asked: _Projections,
) -> _Solution:
    t, state = place.t, place.state
    whole, system, equations = run.given.formulation, run.given.system, found.equations
    solver = motion_solver()
    factors = projection_factors(system, equations.descriptor, solver)
    if factors is not None and _is_plain(whole, system):
        by_equations, solved = _minimum_norm_back(run, factors, found, place, asked)
        by_equations, acceleration = _unless_light(
            equations, place.by, by_equations, solved.acceleration
        )
        return _Solution(by_equations, None, factors, solved._replace(acceleration=acceleration))

    def back(formulation_of: Callable[[Arguments], AbstractFormulation]) -> Any:
        def solved(
            equations: Equations, numbers: Float[Array, " n"], t: Scalar, state: Any
        ) -> tuple[Array, Array]:
            given = run.arguments(numbers)
            q, v = split(given.system, state)
            found = accelerated(given.system, formulation_of(given), equations, q, v, t)
            return found.acceleration, found.multipliers

        found, pull = eqx.filter_vjp(solved, equations, run.numbers, t, state)
        return found[0], pull((place.by.acceleration, place.by.multipliers))

    def of_saved() -> Any:
        return back(lambda given: given.formulation)

    def of_stage() -> Any:
        return back(lambda given: given.formulation.motion_only(given.system))

    same = whole.motion_only(system) is whole
    acceleration, (by_equations, *direct) = (
        of_saved() if same else lax.cond(place.saving & ~asked.again, of_saved, of_stage)
    )
    none = jnp.zeros_like(acceleration)
    move, change = none, none
    if factors is not None:
        sides = _sides(system, found, asked)
        kkt = _factor_of(factors, asked.opening.astype(int))

        def solve(k: IntScalar, motions: Float[Array, "2 nv"]) -> Float[Array, "2 nv"]:
            return motions.at[k].set(kkt.response(kkt.approximate_multipliers(sides[k], PASSES)))

        count = jnp.where(asked.moving, 2, 0)
        move, change = lax.fori_loop(0, count, solve, jnp.zeros((2, len(none)), none.dtype))
    return _Solution(by_equations, ByInputs(*direct), factors, _solved(move, change, acceleration))


def _sides(system: AbstractSystem, found: Evaluated, asked: _Projections) -> Float[Array, "2 rows"]:
    """Residuals that the projections of configuration and velocity remove."""
    geometric = system.structure.geometric
    return jnp.stack([found.gap, jnp.where(asked.opening & ~geometric, 0.0, found.rate)])


def _solved(
    move: Float[Array, " nv"], change: Float[Array, " nv"], acceleration: Float[Array, " nv"]
) -> Solved:
    """Solution for a step that is recomputed; error estimates are not needed."""
    across = jnp.zeros((2, len(move)), move.dtype)
    failed = ~jnp.all(jnp.isfinite(acceleration))
    return Solved(move, change, acceleration, across, None, failed)


def _is_plain(formulation: AbstractFormulation, system: AbstractSystem) -> bool:
    """Is it the minimum norm in the metric of the rows, with the matrix by which velocities go back
    onto the constraints?"""
    structure = system.structure
    if not isinstance(formulation, MinimumNorm) or formulation.weights is not None:
        return False
    alone = not (structure.light or structure.semidefinite or system.frictional_joints)
    return alone and bool(structure.rows) and bool(structure.velocity_level.all())


def _unless_light(
    equations: Equations, by: ByState, found: Equations, acceleration: Float[Array, " nv"]
) -> tuple[Equations, Float[Array, " nv"]]:
    """Derivatives that were found, and accelerations; those of what is computed instead where only
    the numbers tell that parts are light, and they are."""
    light = equations.light
    if light is None or equations.structure.nv > MOST:
        return found, acceleration

    def dense() -> tuple[Equations, Float[Array, " nv"]]:
        def solved(equations: Equations) -> tuple[Array, Array]:
            found = UdwadiaKalaba().solve_refined(equations)
            return found.acceleration, found.multipliers

        own, pull = eqx.filter_vjp(solved, equations)
        (by_equations,) = pull((by.acceleration, by.multipliers))
        return jax.tree.map(
            lambda x, y: jnp.where(light, x, y), (by_equations, own[0]), (found, acceleration)
        )

    return lax.cond(any_state(light), dense, lambda: (found, acceleration))


def _minimum_norm_back(
    run: TapedRun,
    factors: KKTSystem,
    found: Evaluated,
    place: Place,
    asked: _Projections,
) -> tuple[Equations, Solved]:
    """Derivatives of the minimum-norm solution, by one factor (Golub & Pereyra 1973, eq. 4.12, as
    in `pseudosolve`, transposed). In rows of unit length, with r = C M^-1 F - Gamma,

        lambda = S^+ r,    lambda' = S^+ (r' - S' lambda + S^+ S' e) + P S' S^+ lambda,

    e = r - S lambda what is left where rows contradict each other, P the projector on the null
    space of S. Of a stage multipliers are not asked for, so that the last term vanishes. Where
    states are projected, that with e is as small as the error of the step: of stages it is left
    out, and the null space is not cleaned.
    """
    equations, by, saving = found.equations, place.by, place.saving & ~asked.again
    own = _factor_of(factors, asked.opening.astype(int))
    rows = unit_rows(own.descriptor)
    unit = eqx.tree_at(lambda f: f.scale, own.factor, jnp.ones_like(rows.scale))
    # Where states are not projected, rows may contradict each other by more than rounding.
    exact = not run.given.stabilisation.projecting
    clean = saving | jnp.asarray(exact)
    kkt = KKTSystem(rows, ProximalCholesky(own.solver.regularisation, clean=clean), unit)
    force, offset = equations.force, equations.offset / rows.scale
    right = kkt.unconstrained_residual(force, offset)
    wanted = by.multipliers / rows.scale - rows.apply_C(rows.inverse_mass(by.acceleration))
    most = jnp.asarray(ProximalCholesky().max_steps)
    sides = _sides(run.given.system, found, asked) / rows.scale[None]

    def solve(k: IntScalar, found: Float[Array, "4 rows"]) -> Float[Array, "4 rows"]:
        rights = jnp.stack([right, wanted, found[1], found[0]])
        projecting = asked.again & (k > 0)
        rights = jnp.where(projecting, jnp.stack([right, *sides, right]), rights)
        steps = jnp.where(projecting, PASSES, most)
        return found.at[k].set(kkt.approximate_multipliers(rights[k], steps))

    count = jnp.where(asked.again, jnp.where(asked.moving, 3, 1), jnp.where(saving, 4, 2 + exact))
    solutions = lax.fori_loop(0, count, solve, jnp.zeros((4, len(right)), right.dtype))
    multipliers, moved, twice, least = solutions
    motion = kkt.acceleration(force, multipliers)
    left = rows.apply_C(motion) - offset
    null = wanted - rows.apply_C(kkt.response(moved))
    across, along = kkt.response(twice), kkt.response(least)
    virtual = rows.inverse_mass(by.acceleration + rows.apply_CT(moved))

    def power(equations: Equations) -> Scalar:
        """Its derivative is that of the objective, with all vectors constant."""
        rows = unit_rows(equations.descriptor)
        balance = equations.force - rows.mass(motion) - rows.apply_CT(multipliers)
        rate = rows.apply_C(motion) - equations.offset / rows.scale
        return (
            virtual @ balance
            + moved @ rate
            + across @ rows.apply_CT(left)
            + null @ rows.apply_C(along)
            + by.multipliers @ (multipliers / rows.scale)
        )

    # Of a step that is made again these are the projections.
    solved = _solved(kkt.response(moved), along, motion)
    return eqx.filter_grad(power)(equations), solved


class ByRows(NamedTuple):
    """Derivatives of an objective by what was saved: a row for each of the times."""

    times: Float[Array, " rows"]
    q: Float[Array, "rows nq"]
    v: Float[Array, "rows nv"]
    acceleration: Float[Array, "rows nv"]
    multipliers: Float[Array, "rows reactions"]


class ByRun(NamedTuple):
    """Derivatives by the numbers of a run, its start, and the times at which states are saved, the
    first and the last of which are those of the run. `knots`: by those of motions."""

    numbers: Float[Array, " n"]
    start: Float[Array, " passages"]
    times: Float[Array, " times"]
    knots: Float[Array, " knots"]


class _BackwardState(NamedTuple):
    """`step`, `saved`: how many are left, the step being that before; `stage`: of it, to be taken
    next. Derivatives: by the `numbers` of the run, by the `times` of rows, the end of the run and
    the knots; of the step by its start `y`, its end `y1`, its `slopes` (stages, state), the times
    of both ends, and its length `h`."""

    step: IntScalar
    saved: IntScalar
    stage: IntScalar
    numbers: Float[Array, " n"]
    times: Float[Array, " rows"]
    end: Scalar
    knots: Float[Array, " knots"]
    y: Float[Array, " state"]
    y1: Float[Array, " state"]
    slopes: Float[Array, "stages state"]
    t0: Scalar
    t1: Scalar
    h: Scalar


class _Recomputed(NamedTuple):
    """Steps that are made again, as far as that before `step`, with its start `y` and `slope`, and
    the loop of it; its first status is zero where it has not begun."""

    step: IntScalar
    y: Float[Array, " state"]
    slope: Float[Array, " state"]
    turn: Any


class _Machine(NamedTuple):
    """`records`: of a segment. `making`: what is made again of it, in a run of several segments."""

    turn: _BackwardState
    making: _Recomputed | None
    records: StepRecord


def run_vjp(run: TapedRun, by: ByRows) -> ByRun:
    """Derivatives by what a run depends on."""
    given, sizes = run.given, run.sizes
    run = _with_a_step(run)
    last = run.solver.step_tableau.nodes.size - 1
    none, state = jnp.zeros_like(run.times[0]), jnp.zeros_like(run.start[:-1])
    turn = _BackwardState(
        run.steps,
        jnp.minimum(run.count + 1, len(run.times)),
        jnp.asarray(last),
        jnp.zeros_like(run.numbers),
        by.times,
        none,
        jnp.zeros_like(given.knots),
        state,
        state,
        jnp.zeros_like(run.tape.last.slopes[0]),
        none,
        none,
        none,
    )

    making = None if sizes.segments == 1 else _first_making(run)
    machine = _Machine(turn, making, run.tape.last)
    # In a batch one loop for all: the records would be selected at each turn.
    turn = lax.while_loop(
        lambda x: any_state(x.turn.step > 0), lambda x: _backward_iteration(run, by, x), machine
    ).turn
    times = turn.times.at[0].add(turn.t1).at[-1].add(turn.end)
    return ByRun(turn.numbers, jnp.pad(turn.y1, (0, 1)), times, turn.knots)


def _with_a_step(run: TapedRun) -> TapedRun:
    """The run, with a step of no length if it has none: a run may have no length."""
    none, tape = run.steps == 0, run.tape
    record = _row(tape.last, jnp.asarray(0))
    still = StepRecord(
        run.start[:-1],
        jnp.zeros_like(record.slopes),
        jnp.broadcast_to(run.start[:-1], record.places.shape),
        record.marks,
    )
    record = _if(none, still, record)
    last = jax.tree.map(lambda rows, row: with_row(rows, jnp.asarray(0), row), tape.last, record)
    first = jnp.where(none, run.times[0], tape.ends[0])
    tape = tape._replace(last=last, ends=tape.ends.at[0].set(first))
    return run._replace(tape=tape, steps=jnp.maximum(run.steps, 1))


def _row(tree: Any, k: IntScalar) -> Any:
    return jax.tree.map(lambda x: lax.dynamic_index_in_dim(x, k, keepdims=False), tree)


def _first_making(run: TapedRun) -> _Recomputed:
    """Nothing is left to be made again of the last segment."""
    y, slope = run.tape.starts[0]
    making = _Recomputed(run.steps, y, slope, None)
    return making._replace(turn=_stopped(beginning_of(_constants(run, making))))


def _stopped(loop: StepLoop) -> StepLoop:
    return loop._replace(packed=jnp.zeros_like(loop.packed))


def _constants(run: TapedRun, making: _Recomputed) -> StepConstants:
    """Constants of the step that is recomputed."""
    k = jnp.minimum(making.step, run.sizes.steps - 1)
    onto, inside, known = marks_of(run.tape.marks[k])
    wanted = None if run.solver.inside is None else inside
    t0, t1, near = run.end_before(k), run.tape.ends[k], jnp.asarray(False)
    start = Start(t0, t1, making.y, making.slope, known, near, onto, wanted, None)
    return step_constants(run.solver.solver, Packed(run.given), start)


def _backward_iteration(run: TapedRun, by: ByRows, machine: _Machine) -> _Machine:
    """One evaluation. Backwards it is that of a saved state of this step, while there is one, and
    then of its stages, the last one first; its derivative is added. Or it is one more of a step
    that is made again."""
    turn, making, records = machine
    left, room = unless_alone(turn.step > 0), run.sizes.room
    record = _row(records, jnp.maximum(turn.step - 1, 0) % room)
    place = _place(run, by, record, turn)
    if making is None:
        pulled = evaluation_vjp(run, place, None)
        after = _with_state(run, record, turn, place, pulled.inputs)
        return _Machine(_if(left, after, turn), None, records)

    def prepared() -> tuple[Scalar, Float[Array, " state"], StepLoop]:
        step = _constants(run, making)
        begins = ~making.turn.going
        now = _if(begins, beginning_of(step), making.turn)
        q, v, t, _ = state_of(step, now)
        return t, jnp.concatenate([q, v]), now

    again = making.step < turn.step
    t, state, now = lax.cond(again, prepared, lambda: (place.t, place.state, making.turn))

    def residuals(found: Evaluated) -> tuple[StepConstants, StateResiduals]:
        step, (q, v) = _constants(run, making), split(run.given.system, state)
        there = StateToEvaluate(q, v, t, jnp.asarray(True))
        evaluation = Evaluation(found.equations, found.gap, found.rate)
        return step, residuals_of(step, now, there, evaluation)

    pulled = evaluation_vjp(run, place._replace(t=t, state=state), Recomputation(again, residuals))

    def one_more() -> tuple[_BackwardState, _Recomputed]:
        step, there = residuals(pulled.found)
        after = transition(step, now, there, pulled.solved)
        done = ~after.going
        ends = jnp.stack([after.end, after.slopes[-1]])
        y, slope = jnp.where(done, ends, jnp.stack([making.y, making.slope]))
        return turn, _Recomputed(making.step + done, y, slope, after)

    def one_back() -> tuple[_BackwardState, _Recomputed]:
        after = _with_state(run, record, turn, place, pulled.inputs)
        # Before the first of a segment stand those of the one before, which are made again.
        ends = (after.step < turn.step) & (after.step % room == 0) & (after.step > 0)
        begin = jnp.maximum(after.step - room, 0)
        y, slope = jnp.where(
            ends, run.tape.starts[begin // room], jnp.stack([making.y, making.slope])
        )
        return after, _Recomputed(jnp.where(ends, begin, making.step), y, slope, _stopped(now))

    after, more = lax.cond(again, one_more, one_back)
    made = StepRecord(making.y, more.turn.slopes, more.turn.places, run.tape.marks[making.step])
    own = jnp.where(again, making.step % room, room)
    records = jax.tree.map(lambda rows, row: with_row(rows, own, row), records, made)
    return _Machine(_if(left, after, turn), _if(left, more, making), records)


def _if(wanted: BoolScalar, new: Any, old: Any) -> Any:
    return jax.tree.map(lambda x, y: jnp.where(wanted, x, y), new, old)


def _place(run: TapedRun, by: ByRows, record: StepRecord, turn: _BackwardState) -> Place:
    """The state whose derivative is taken next, a saved one or a stage."""
    k, given = turn.step - 1, run.given
    t0, t1 = run.end_before(k), run.tape.ends[k]
    nodes = jnp.asarray(run.solver.step_tableau.nodes, t0.dtype)
    row, stage = jnp.maximum(turn.saved - 1, 0), turn.stage
    time = jnp.where(row == run.count, t1, run.times[row])
    saving = (turn.saved > 0) & ((time > t0) | (k == 0))
    last = stage == nodes.size - 1
    by_slope, nq = turn.slopes[stage], given.system.structure.nq
    there = jnp.concatenate([run.saved.q[row], run.saved.v[row]])
    by_there = jnp.concatenate([by.q[row], by.v[row]])
    return Place(
        saving,
        jnp.where(saving, time, t0 + nodes[stage] * (t1 - t0)),
        jnp.where(saving, there, record.places[stage]),
        given.stabilisation.projecting & (saving | last | marks_of(record.marks).onto),
        ByState(
            jnp.where(saving, by_there, jnp.where(last, turn.y1, 0.0)),
            jnp.where(saving, 0.0, by_slope[:nq]),
            jnp.where(saving, by.acceleration[row], by_slope[nq:]),
            jnp.where(saving, by.multipliers[row], 0.0),
        ),
    )


def _with_state(
    run: TapedRun, record: StepRecord, turn: _BackwardState, place: Place, inputs: ByInputs
) -> _BackwardState:
    """The derivatives with those of one state."""
    k, tableau = turn.step - 1, run.solver.step_tableau
    t0, t1 = run.end_before(k), run.tape.ends[k]
    h, last = t1 - t0, tableau.nodes.size - 1
    weights, nodes = (jnp.asarray(x, h.dtype) for x in tableau[:2])
    _, inside, known = marks_of(record.marks)
    row, stage = jnp.maximum(turn.saved - 1, 0), turn.stage
    by_numbers, by_t, by_state = inputs
    turn = turn._replace(numbers=turn.numbers + by_numbers)

    def of_saved() -> _BackwardState:
        _, pull = jax.vjp(
            lambda *x: _interpolated(run, *x),
            place.t,
            t0,
            t1,
            record.y,
            record.places[last],
            record.slopes,
        )
        by_time, by_t0, by_t1, by_y, by_y1, by_slopes = pull(by_state)
        own, ending = turn.times[row] + by_t + by_time, row == run.count
        return turn._replace(
            saved=turn.saved - 1,
            times=turn.times.at[row].set(jnp.where(ending, 0.0, own)),
            y=turn.y + by_y,
            y1=turn.y1 + by_y1,
            slopes=turn.slopes + by_slopes,
            t0=turn.t0 + by_t0,
            t1=turn.t1 + by_t1 + jnp.where(ending, own, 0.0),
        )

    def of_stage() -> _BackwardState:
        own, left_out = weights[stage], (stage == last) & ~inside
        return turn._replace(
            stage=stage - 1 - jnp.where(left_out, tableau.inside, 0),
            y=turn.y + by_state,
            slopes=turn.slopes + h * own[:, None] * by_state[None],
            t0=turn.t0 + by_t,
            h=turn.h + nodes[stage] * by_t + jnp.sum((own @ record.slopes) * by_state),
        )

    turn = lax.cond(place.saving, of_saved, of_stage)
    return _previous_step(run, turn, t1, known, turn.stage < jnp.where(known, 1, 0))


def _interpolated(
    run: TapedRun,
    t: Scalar,
    t0: Scalar,
    t1: Scalar,
    y: Float[Array, " state"],
    y1: Float[Array, " state"],
    slopes: Float[Array, "stages state"],
) -> Float[Array, " state"]:
    """The state within a step. Nothing is differentiated by the number of passages."""
    solver = run.solver
    dense = solver.dense(t1 - t0, *(jnp.pad(x, (0, 1)) for x in (y, y1)), slopes)
    return solver.interpolation_cls(t0=t0, t1=t1, **dense).evaluate(t)[:-1]


def _previous_step(
    run: TapedRun, turn: _BackwardState, t1: Scalar, known: BoolScalar, done: BoolScalar
) -> _BackwardState:
    """The beginning of the step before, if this one is `done`."""
    given = run.given
    by_t0, by_t1 = turn.t0 - turn.h, turn.t1 + turn.h
    # Where it does not end at one of these, the end of a step moves with its start.
    ends, knot = t1 == given.end, t1 == given.knots
    knot = knot & ~ends & (jnp.cumsum(knot) == 1)
    bound = ends | jnp.any(knot)
    none = jnp.zeros_like(t1)
    slope = jnp.where(known, turn.slopes[0], 0.0)
    following = turn._replace(
        step=turn.step - 1,
        stage=jnp.full_like(turn.stage, len(turn.slopes) - 1),
        end=turn.end + jnp.where(ends, by_t1, 0.0),
        knots=turn.knots + jnp.where(knot, by_t1, 0.0),
        y=jnp.zeros_like(turn.y),
        y1=turn.y,
        slopes=jnp.zeros_like(turn.slopes).at[-1].set(slope),
        t0=none,
        t1=by_t0 + jnp.where(bound, 0.0, by_t1),
        h=none,
    )
    return _if(done, following, turn)
