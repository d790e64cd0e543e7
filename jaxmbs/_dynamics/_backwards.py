"""Reverse mode of a run of an explicit Runge-Kutta method, by what is written down of its steps.

Diffrax differentiates a run by checkpoints: between them it makes the steps again. Such a program
contains the step three times: in the run, again between checkpoints, and where it is linearised.
But of a step its derivative needs little: the states in which its slopes were taken, and these
slopes (`_step_tape.py`). Backwards each of them is linearised in its place, and no step is made
again, except those of a long run that were too many to be kept; their ends are known, so that
neither errors nor singular values are looked at.

A state that is saved is one more state of that kind: projected, with a derivative of its
acceleration and multipliers. So all derivatives of a run come out of one loop, whose turn is the
derivative of one evaluation.

Lengths of steps have no derivative, as in Diffrax: they are chosen. But where a step ends at the
end of the run or at a knot of a motion, its end moves with that.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

from .._custom_types import BoolScalar, IntScalar, Scalar
from .._linalg._many_states import any_state, unless_alone
from .._system import Evaluation
from ._arguments import Packed, split
from ._evaluation_vjp import (
    ByInputs,
    ByState,
    Evaluated,
    evaluation_vjp,
    Place,
    Recomputation,
    TapedRun,
)
from ._look import Look
from ._runge_kutta import (
    beginning_of,
    look_of,
    marks_of,
    Start,
    state_of,
    step_constants,
    StepConstants,
    StepRecord,
    StepTurn,
    turned,
    TurnState,
)
from ._step_tape import with_row


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


def _stopped(turn: StepTurn) -> StepTurn:
    return turn._replace(status=jnp.zeros_like(turn.status))


def _constants(run: TapedRun, making: _Recomputed) -> StepConstants:
    """Constants of the step that is recomputed."""
    k = jnp.minimum(making.step, run.sizes.steps - 1)
    near, inside, known = marks_of(run.tape.marks[k])
    wanted = None if run.solver.inside is None else inside
    start = Start(
        run.end_before(k), run.tape.ends[k], making.y, making.slope, known, near, wanted, None
    )
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
        looked = evaluation_vjp(run, place, None)
        after = _with_state(run, record, turn, place, looked.inputs)
        return _Machine(_if(left, after, turn), None, records)

    def prepared() -> tuple[Scalar, Float[Array, " state"], StepTurn]:
        step = _constants(run, making)
        begins = making.turn.status[0] <= 0
        now = _if(begins, beginning_of(step), making.turn)
        q, v, t, _ = state_of(step, now)
        return t, jnp.concatenate([q, v]), now

    again = making.step < turn.step
    t, state, now = lax.cond(again, prepared, lambda: (place.t, place.state, making.turn))

    def look(found: Evaluated) -> tuple[StepConstants, Look]:
        step, (q, v) = _constants(run, making), split(run.given.system, state)
        there = TurnState(q, v, t, jnp.asarray(True))
        return step, look_of(step, now, there, Evaluation(found.equations, found.gap, found.rate))

    looked = evaluation_vjp(run, place._replace(t=t, state=state), Recomputation(again, look))

    def one_more() -> tuple[_BackwardState, _Recomputed]:
        step, there = look(looked.found)
        after = turned(step, now, there, looked.solved)
        done = after.status[0] <= 0
        ends = jnp.stack([after.rows[-1, 1], after.rows[-1, 0]])
        y, slope = jnp.where(done, ends, jnp.stack([making.y, making.slope]))
        return turn, _Recomputed(making.step + done, y, slope, after)

    def one_back() -> tuple[_BackwardState, _Recomputed]:
        after = _with_state(run, record, turn, place, looked.inputs)
        # Before the first of a segment stand those of the one before, which are made again.
        ends = (after.step < turn.step) & (after.step % room == 0) & (after.step > 0)
        begin = jnp.maximum(after.step - room, 0)
        y, slope = jnp.where(
            ends, run.tape.starts[begin // room], jnp.stack([making.y, making.slope])
        )
        return after, _Recomputed(jnp.where(ends, begin, making.step), y, slope, _stopped(now))

    after, more = lax.cond(again, one_more, one_back)
    made = StepRecord(
        making.y, more.turn.rows[:, 0], more.turn.rows[:, 1], run.tape.marks[making.step]
    )
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
        given.stabilisation.projecting & (saving | last | given.moves(marks_of(record.marks).near)),
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
