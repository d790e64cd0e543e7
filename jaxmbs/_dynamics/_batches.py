"""Many states, a few at a time: of a number that a program knows, or that is data."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.core import Tracer

from .._custom_types import IntScalar
from .._solution import RESULTS
from .._system import AbstractSystem


# Saved states are evaluated as many at a time as have about this many rows: a small mechanism
# costs the starts of its operations, a large one the memory of its batch.
_LANES = 256

# States that a chunk holds at most, and numbers: the shape of its program.
STATES = 1024
_NUMBERS = 1_000_000


def lanes_of(system: AbstractSystem) -> int:
    """States that are evaluated at once."""
    return max(1, _LANES // max(1, len(system.structure.rows)))


def room_of(system: AbstractSystem) -> int:
    """States that a chunk holds at most."""
    structure = system.structure
    numbers = structure.nq + 2 * structure.nv + len(structure.rows)
    return max(1, min(STATES, _NUMBERS // max(1, numbers)))


def is_traced(tree: Any) -> bool:
    """Is any of its numbers being traced?"""
    return any(isinstance(x, Tracer) for x in jax.tree.leaves(tree))


def in_batches(function: Callable[[Any], Any], arguments: Any, size: int) -> Any:
    """`function` of each of the arguments along their first axis, `size` at a time. The last one
    is repeated to fill the last batch: a smaller one would be compiled apart."""
    count = len(jax.tree.leaves(arguments)[0])
    if min(size, count) == 1:
        return lax.map(function, arguments)
    batches = -(-count // min(size, count))
    places = np.minimum(np.arange(batches * min(size, count)), count - 1).reshape(batches, -1)
    results = lax.map(jax.vmap(function), jax.tree.map(lambda x: x[places], arguments))
    return jax.tree.map(lambda x: x.reshape(places.size, *x.shape[2:])[:count], results)


def first_in_batches(
    function: Callable[[Any], Any], rows: Any, count: IntScalar, lanes: int
) -> Any:
    """`function` of the first `count` of the rows, so many at a time; others are zeros."""
    most = len(rows[0])
    lanes = min(lanes, most)
    batched = function if lanes == 1 else jax.vmap(function)

    def batch(k: IntScalar) -> Any:
        places = jnp.minimum(k * lanes + jnp.arange(lanes), jnp.maximum(count - 1, 0))
        chosen = jax.tree.map(lambda x: x[places], rows)
        if lanes > 1:
            return batched(chosen)
        return jax.tree.map(lambda x: x[None], batched(jax.tree.map(lambda x: x[0], chosen)))

    def one(k: IntScalar, all_rows: Any) -> Any:
        return jax.tree.map(
            lambda a, b: lax.dynamic_update_slice_in_dim(a, b, k * lanes, 0), all_rows, batch(k)
        )

    shapes = eqx.filter_eval_shape(batch, jnp.asarray(0))
    room = -(-most // lanes) * lanes
    empty = jax.tree.map(lambda x: jnp.zeros((room, *x.shape[1:]), x.dtype), shapes)
    return lax.fori_loop(0, -(-count // lanes), one, empty)


def first_failure(saved: RESULTS, among: Any = True) -> RESULTS:
    """The first of the results along their axis, among these, that is a failure; success if there
    is none."""
    bad = (saved != RESULTS.successful) & among
    worst = jax.tree.map(lambda x: x[jnp.argmax(bad)], saved)
    return RESULTS.where(jnp.any(bad), worst, RESULTS.successful)
