"""Functions and iterations of many cases, in batches of one width within one program."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from .._linalg._many_states import many_states


def in_batches(function: Any, given: Any, width: int, count: Any) -> Any:
    """A function of one case, for whole batches of cases; the first `count` batches of them."""
    batch = jax.vmap(function)

    def turn(k: Any, filled: Any) -> Any:
        own = jax.tree.map(lambda x: lax.dynamic_slice_in_dim(x, k * width, width), given)
        return jax.tree.map(
            lambda old, new: lax.dynamic_update_slice_in_dim(old, new, k * width, 0),
            filled,
            batch(own),
        )

    size = jax.tree.leaves(given)[0].shape[0]
    shapes = jax.eval_shape(batch, jax.tree.map(lambda x: x[:width], given))
    empty = jax.tree.map(lambda x: jnp.zeros((size, *x.shape[1:]), x.dtype), shapes)
    return lax.fori_loop(0, count, turn, empty)


class Turns(NamedTuple):
    """Iterations of many cases side by side: `begin(values, given)` is a case at its start, which
    `turn(values, given, lane)` takes one turn further until it has `ended`; what turns make of it
    then is not read. `result(lane)`: what is kept of it."""

    begin: Any
    turn: Any
    result: Any

    def of_all(
        self, values: tuple[Any, ...], given: Any, wanted: Any, found: Any, batches: tuple[int, Any]
    ) -> Any:
        """The results of the `wanted` cases, entered into `found`. Each place of a batch goes
        through the cases of its own, the next one as soon as one has ended: none waits for the
        others, and a case is computed at the same place whatever the others are. `batches`: their
        width, and how many of them are cases."""
        width, count = batches
        size, places = wanted.shape[0], np.arange(width)
        # For each place, the next case from each turn on that is wanted.
        waiting = jnp.where(wanted.reshape(-1, width), jnp.arange(size // width)[:, None], count)
        waiting = lax.cummin(waiting, axis=0, reverse=True)
        waiting = jnp.concatenate([waiting, jnp.full((1, width), count)])

        def next_from(numbers: Any) -> Any:
            return jnp.minimum(waiting[jnp.minimum(numbers, size // width), places], count)

        def of(numbers: Any) -> Any:
            index = jnp.minimum(numbers, count - 1) * width + places
            return jax.tree.map(lambda x: x[index], (values, given))

        # Lanes are kept with the cases as the last axis, as a turn takes them.
        begin = jax.vmap(self.begin, out_axes=-1)
        turn = jax.vmap(many_states(self.turn), in_axes=(0, 0, -1), out_axes=-1)

        def ended(numbers: Any, lanes: Any) -> Any:
            return lanes.ended & (numbers < count)

        def until_one_ends(state: Any) -> Any:
            """Advance all lanes until a case ends, store it and load the next one."""
            numbers, lanes, found = state
            own = of(numbers)
            lanes = lax.while_loop(
                lambda x: ~jnp.any(ended(numbers, x)), lambda x: turn(*own, x), lanes
            )
            there = ended(numbers, lanes)
            # Nothing is written for those that are under way or have no case left.
            where = jnp.where(there, numbers * width + places, size)
            results = jax.vmap(self.result, in_axes=-1)(lanes)
            found = jax.tree.map(lambda x, y: x.at[where].set(y, mode="drop"), found, results)
            numbers = jnp.where(there, next_from(numbers + 1), numbers)
            # A lane without a case left keeps the one that has ended.
            fresh, renewed = begin(*of(numbers)), there & (numbers < count)
            lanes = jax.tree.map(lambda new, old: jnp.where(renewed, new, old), fresh, lanes)
            return numbers, lanes, found

        first = next_from(jnp.zeros((width,), int))
        state = first, begin(*of(first)), found
        return lax.while_loop(lambda x: jnp.any(x[0] < count), until_one_ends, state)[2]
