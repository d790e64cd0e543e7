"""Tape of a run of an explicit Runge-Kutta method, for its reverse mode
(`_backwards.py`): the states in which slopes were taken, and these slopes, of the last steps; of
all steps where they end; and the states with which segments begin, from which steps that were not
kept are made again.
"""

from typing import Any, NamedTuple

import diffrax as dfx
import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, UInt8

from .._custom_types import BoolScalar, IntScalar
from .._linalg._many_states import any_state, unless_alone
from ._runge_kutta import StepRecord


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
