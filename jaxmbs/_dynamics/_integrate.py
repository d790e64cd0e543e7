"""Diffrax's integration in programs without callbacks to Python, and the tape of its steps."""

import functools
from typing import Any, NamedTuple

import diffrax as dfx
import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, PyTree, UInt8

from .._custom_types import BoolScalar, IntScalar
from .._linalg._many_states import any_state, unless_alone
from ._runge_kutta import StepRecord


# --------------------------------------------------------------------------------------------------
# Tape of a run of an explicit Runge-Kutta method, for its reverse mode
# (`_backwards.py`): the states in which slopes were taken, and these slopes, of the last steps; of
# all steps where they end; and the states with which segments begin, from which steps that were not
# kept are made again.
# --------------------------------------------------------------------------------------------------


# Steps that are written down at most. A run that is longer ends there if it is differentiated, and
# says so. (A million of them, as many as a run may have, would be nine megabytes that are filled
# with zeros: half a millisecond.)
MOST_STEPS = 2**16

# All that is needed of a step is kept of as many as fit into so many bytes. (What a cache does not
# hold is slower than to make the steps again.)
_BYTES = 2**20
_LEAST_STEPS = 16


class Sizes(NamedTuple):
    """`steps`, written down; `room`: of them of which all is kept; `segments` of so many steps."""

    steps: int
    room: int
    segments: int


def sizes_of(stages: int, state: int, max_steps: int) -> Sizes:
    """Sizes for so many steps at most, of methods with `stages` and states of so many numbers."""
    steps = min(max_steps, MOST_STEPS)
    room = min(max(_BYTES // (8 * state * (2 * stages + 1)), _LEAST_STEPS), steps)
    return Sizes(steps, room, -(-steps // room))


class Tape(NamedTuple):
    """Record of the accepted steps: their ends (s), with the `marks` of `StepRecord`, of all;
    `starts` (segments, 2, state): the state and the slope with which each segment begins; `last`:
    the records of the last segment. A row more stands behind all of them."""

    ends: Float[Array, " steps"]
    marks: UInt8[Array, " steps"]
    starts: Float[Array, "segments 2 state"]
    last: StepRecord


class TapedSteps(dfx.AbstractAdjoint):
    """No derivative, but a tape, in the place of what the method carries at the end. The solver
    keeps the record of its last step."""

    sizes: Sizes = eqx.field(static=True)

    def loop(
        self,
        *,
        throw: bool,
        passed_solver_state: bool,
        passed_controller_state: bool,
        **rest: Any,
    ) -> Any:
        del throw, passed_solver_state, passed_controller_state
        return self._loop(
            inner_while_loop=lambda going, step, state, **_: lax.while_loop(going, step, state),
            outer_while_loop=self._steps,
            **rest,
        )

    def _steps(self, going: Any, step: Any, state: Any, *, max_steps: int, buffers: Any) -> Any:
        del buffers
        start, sizes = as_arrays(state), self.sizes
        record = start.solver_state[0].record
        nothing_yet = Tape(
            jnp.zeros((sizes.steps + 1,), start.tprev.dtype),
            jnp.zeros((sizes.steps + 1,), jnp.uint8),
            jnp.zeros((sizes.segments + 1, 2, len(record.y)), record.y.dtype),
            jax.tree.map(lambda x: jnp.zeros((sizes.room + 1, *x.shape), x.dtype), record),
        )

        def goes_on(state: Any) -> BoolScalar:
            few = (state.num_steps < max_steps) & (state.num_accepted_steps < sizes.steps)
            return going(state) & few

        def write(carry: tuple[Any, Tape]) -> tuple[Any, Tape]:
            before, tape = carry
            more, after = unless_alone(goes_on(before)), as_arrays(step(before))
            after = jax.tree.map(lambda new, old: jnp.where(more, new, old), after, before)
            # What is not a step of the run goes into a row of its own.
            k, record = before.num_accepted_steps, after.solver_state[0].record
            made = after.num_accepted_steps > k

            def at(place: IntScalar, size: int) -> IntScalar:
                return jnp.where(made, place, size)

            segment = at(k // sizes.room, sizes.segments)
            starting = jnp.stack([before.y[:-1], before.solver_state[0].slope])
            starting = jnp.where(k % sizes.room == 0, starting, tape.starts[segment])
            own = at(k % sizes.room, sizes.room)
            tape = Tape(
                with_row(tape.ends, at(k, sizes.steps), before.tnext),
                with_row(tape.marks, at(k, sizes.steps), record.marks),
                with_row(tape.starts, segment, starting),
                jax.tree.map(lambda rows, row: with_row(rows, own, row), tape.last, record),
            )
            return after, tape

        # In a batch one loop for all: what is large would be selected at each turn.
        end, tape = lax.while_loop(
            lambda carry: any_state(goes_on(carry[0])), write, (start, nothing_yet)
        )
        return eqx.tree_at(lambda s: s.solver_state, end, (tape, end.solver_state[1]))


def as_arrays(tree: Any) -> Any:
    """The same with arrays, of no weak type, in place of Python's numbers: a state that went
    through a program has such ones alone."""
    return jax.tree.map(lambda x: jnp.asarray(x, jnp.result_type(x)), tree)


def with_row(rows: Array, k: IntScalar, row: Array) -> Array:
    """The rows with this one in the place of the k-th."""
    return lax.dynamic_update_index_in_dim(rows, row, k, 0)


# --------------------------------------------------------------------------------------------------
# Diffrax's integration in programs without callbacks to Python.
#
# `diffeqsolve` checks the sign of the first step, and that the times of saved states are in order
# and within the run. In a compiled program each of these checks is a callback into Python, and for
# the sake of one such callback JAX neither keeps the program in its compilation cache nor exports
# it for another platform. The conditions that they check are known here: a first step has a length
# and no sign, the run goes from the first to the last of the times, and `in_order` checks these
# once, with an answer that the `result` of a run can report. So both are passed to Diffrax where it
# does not check them: the first step by the step size controller, which proposes it, and the times
# by the adjoint, which makes the loop that saves states.
#
# A run may also be made in parts, one after the other (`begin`, `go_on`). Diffrax's state is
# carried from one to the next as it is, the next step, which was chosen already, among it: so the
# steps do not depend on the parts. Times of saved states may lie within the last step when a part
# has no more room for them. So the solver's state ends with that step (`LastStep`), from which they
# are interpolated.
# --------------------------------------------------------------------------------------------------


def integrate(
    terms: PyTree,
    solver: dfx.AbstractSolver,
    times: Float[Array, " times"],
    y0: PyTree,
    args: Any,
    *,
    saveat: dfx.SaveAt,
    adjoint: dfx.AbstractAdjoint,
    **options: Any,
) -> Any:
    """`diffrax.diffeqsolve` from the first of the times to the last, with the states at these times
    before the output of `saveat`, which contains no times itself.

    The times must be in order (`in_order`); this is not checked here. The first step is that of the
    controller (`starting`). `options`: others of `diffeqsolve`.
    """
    return dfx.diffeqsolve(
        terms,
        solver,
        times[0],
        times[-1],
        None,
        y0,
        args,
        saveat=saveat,
        adjoint=_SavingAt(adjoint, times),
        **options,
    )


class Part(NamedTuple):
    """A part of a run. It ends when `count` of the `times` are saved, after so many `steps`, or
    with the run. Behind these stands the next time, as the step to the last of them may go on to
    it, and then padding: one of both at least."""

    times: Float[Array, " times"]
    count: IntScalar
    steps: IntScalar


class Saved(NamedTuple):
    """A part's saved states, `count` of them, with the state that its steps have come to behind
    them. `state`: with which the next part goes on; `finished`: is nothing left to integrate?"""

    times: Float[Array, " times"]
    states: Float[Array, "times state"]
    count: IntScalar
    state: Any
    finished: BoolScalar


def begin(
    terms: PyTree,
    solver: Any,
    span: Float[Array, " times"],
    y0: PyTree,
    args: Any,
    *,
    progress_meter: dfx.AbstractProgressMeter,
    **options: Any,
) -> Any:
    """The state of a run in parts before its first step. The solver keeps its last step."""
    return dfx.diffeqsolve(
        terms,
        solver,
        span[0],
        span[-1],
        None,
        y0,
        args,
        saveat=dfx.SaveAt(t1=True),
        adjoint=_Beginning(progress_meter),
        throw=False,
        **options,
    ).ys


def go_on(
    terms: PyTree,
    solver: Any,
    span: Float[Array, " times"],
    y0: PyTree,
    args: Any,
    *,
    state: Any,
    part: Part,
    progress_meter: dfx.AbstractProgressMeter,
    **options: Any,
) -> Saved:
    """One part of the run of `begin` with the same arguments, from the state of the part before.
    The controller is one `under_way`."""
    adjoint = _GoingOn(state, part, progress_meter)
    return _resumed(adjoint, terms, solver, span, y0, args, **options)


def one_step(
    terms: PyTree,
    solver: Any,
    span: Float[Array, " times"],
    y0: PyTree,
    args: Any,
    *,
    state: Any,
    progress_meter: dfx.AbstractProgressMeter,
    **options: Any,
) -> tuple[Any, BoolScalar]:
    """The next step of the run of `begin` with the same arguments, attempted, and whether the run
    has ended. `state`: after the step before. The controller is one `under_way`."""
    adjoint = _OneStep(state, progress_meter)
    return _resumed(adjoint, terms, solver, span, y0, args, **options)


def _resumed(
    adjoint: Any,
    terms: PyTree,
    solver: Any,
    span: Float[Array, " times"],
    y0: PyTree,
    args: Any,
    **options: Any,
) -> Any:
    """The result of an adjoint that goes on from a state."""
    found: Any = dfx.diffeqsolve(
        terms,
        solver,
        span[0],
        span[-1],
        None,
        y0,
        args,
        saveat=dfx.SaveAt(t1=True),
        adjoint=adjoint,
        solver_state=adjoint.state.solver_state,
        controller_state=adjoint.state.controller_state,
        throw=False,
        **options,
    )
    return found.ys


def in_order(times: Float[Array, " times"]) -> BoolScalar:
    """Do these times never go back? (Diffrax would run backwards with the sign of time reversed,
    which projections and monitors do not support.)"""
    return jnp.all(jnp.diff(times) >= 0)


class _SavingAt(dfx.AbstractAdjoint):
    """An adjoint whose loop saves the states at these times too."""

    adjoint: dfx.AbstractAdjoint
    times: Float[Array, " times"]

    def loop(self, *, saveat: Any, init_state: Any, **rest: Any) -> Any:
        # Diffrax turns the sign of time in a run that does not go forwards: one without length.
        direction = jnp.where(self.times[0] < self.times[-1], 1, -1)
        saveat = eqx.tree_at(
            lambda s: s.subs.ts, saveat, direction * self.times, is_leaf=lambda x: x is None
        )
        # Room for that many states, which is filled with "not reached" where there is any.
        count = len(self.times)
        room = jax.tree.map(
            lambda x: jnp.broadcast_to(x[:1], (count + len(x), *x.shape[1:])),
            (init_state.save_state.ts, init_state.save_state.ys),
        )
        init_state = eqx.tree_at(lambda s: (s.save_state.ts, s.save_state.ys), init_state, room)
        return self.adjoint.loop(saveat=saveat, init_state=init_state, **rest)


class _Beginning(dfx.AbstractAdjoint):
    """An adjoint whose loop makes no step, and saves the state before the first."""

    progress_meter: dfx.AbstractProgressMeter

    def loop(self, *, init_state: Any, **_: Any) -> Any:
        state = eqx.tree_at(
            lambda s: (s.save_state, s.progress_meter_state),
            init_state,
            (None, self.progress_meter.init()),
            is_leaf=lambda x: x is None,
        )
        return eqx.tree_at(lambda s: s.save_state.ys, init_state, as_arrays(state)), {}


class _GoingOn(dfx.AbstractAdjoint):
    """An adjoint whose loop goes on from a state of a run, and saves what `Saved` contains. It has
    no derivative."""

    state: Any
    part: Part
    progress_meter: dfx.AbstractProgressMeter

    def loop(
        self,
        *,
        init_state: Any,
        solver: Any,
        max_steps: int,
        progress_meter: Any,
        throw: bool,
        passed_solver_state: bool,
        passed_controller_state: bool,
        **rest: Any,
    ) -> Any:
        del progress_meter, throw, passed_solver_state, passed_controller_state
        empty = init_state.save_state
        room = jax.tree.map(
            lambda x: jnp.broadcast_to(x[:1], (len(self.part.times), *x.shape[1:])),
            (empty.ts, empty.ys),
        )
        empty = eqx.tree_at(lambda s: (s.ts, s.ys), empty, room)
        state = eqx.tree_at(
            lambda s: s.save_state, self.state, as_arrays(empty), is_leaf=lambda x: x is None
        )
        final, more = self._loop(
            init_state=state,
            solver=solver,
            max_steps=max_steps,
            inner_while_loop=None,
            outer_while_loop=functools.partial(self._steps, solver),
            progress_meter=self.progress_meter,
            **rest,
        )
        saved = final.save_state
        carried, ended = _carried(final, max_steps)
        found = Saved(saved.ts, saved.ys, saved.save_index - 1, carried, ended)
        return eqx.tree_at(lambda s: s.save_state.ys, final, found), more

    def _steps(
        self, solver: Any, going: Any, step: Any, state: Any, *, max_steps: int, buffers: Any
    ) -> Any:
        """The states of the part, and steps as far as they are needed for them."""
        del buffers
        times, count, steps = self.part
        most = jnp.minimum(state.num_steps + steps, max_steps)

        def pending(state: Any) -> BoolScalar:
            return times[state.save_state.save_index] <= state.solver_state[-1].t1

        def more(state: Any) -> BoolScalar:
            return state.save_state.save_index < count

        def steps_on(state: Any) -> BoolScalar:
            return going(state) & (state.num_steps < most)

        def save(state: Any) -> Any:
            last, saved = state.solver_state[-1], state.save_state
            curve = solver.interpolation_cls(t0=last.t0, t1=last.t1, **last.dense)
            t = times[saved.save_index]
            rows = (
                rows.at[saved.save_index].set(x)
                for rows, x in ((saved.ts, t), (saved.ys, curve.evaluate(t)))
            )
            saved = eqx.tree_at(
                lambda s: (s.ts, s.ys, s.save_index), saved, (*rows, saved.save_index + 1)
            )
            return eqx.tree_at(lambda s: s.save_state, state, saved)

        def step_and_save(state: Any) -> Any:
            state = lax.while_loop(
                lambda s: steps_on(s) & ~pending(s), lambda s: as_arrays(step(s)), state
            )
            return lax.while_loop(lambda s: more(s) & pending(s), save, state)

        return lax.while_loop(lambda s: more(s) & (steps_on(s) | pending(s)), step_and_save, state)


class _OneStep(dfx.AbstractAdjoint):
    """An adjoint whose loop attempts the next step of a run, unless it has ended, and saves nothing
    but the state after it. It has no derivative."""

    state: Any
    progress_meter: dfx.AbstractProgressMeter

    def loop(
        self,
        *,
        init_state: Any,
        max_steps: int,
        progress_meter: Any,
        throw: bool,
        passed_solver_state: bool,
        passed_controller_state: bool,
        **rest: Any,
    ) -> Any:
        del progress_meter, throw, passed_solver_state, passed_controller_state
        state = eqx.tree_at(
            lambda s: s.save_state, self.state, init_state.save_state, is_leaf=lambda x: x is None
        )
        final, more = self._loop(
            init_state=state,
            max_steps=max_steps,
            inner_while_loop=None,
            outer_while_loop=_at_most_once,
            progress_meter=self.progress_meter,
            **rest,
        )
        return eqx.tree_at(lambda s: s.save_state.ys, final, _carried(final, max_steps)), more


def _at_most_once(going: Any, step: Any, state: Any, *, max_steps: int, buffers: Any) -> Any:
    """One step, if the run is going on. (In a batch a condition would make it for all.)"""
    del buffers

    def once(carry: tuple[BoolScalar, Any]) -> tuple[BoolScalar, Any]:
        return jnp.asarray(False), as_arrays(step(carry[1]))

    wanted = going(state) & (state.num_steps < max_steps)
    return lax.while_loop(lambda carry: carry[0], once, (wanted, as_arrays(state)))[1]


def _carried(final: Any, max_steps: int) -> tuple[Any, BoolScalar]:
    """The state with which a run goes on after a part of it, and whether it has ended. Diffrax
    takes the end of a part for one by the number of steps."""
    most: Any = dfx.RESULTS.max_steps_reached
    going: Any = dfx.RESULTS.successful
    open_end = (final.result == most) & (final.num_steps < max_steps)
    result = dfx.RESULTS.where(open_end, going, final.result)
    carried = eqx.tree_at(lambda s: (s.save_state, s.result), final, (None, result))
    return as_arrays(carried), ~open_end
