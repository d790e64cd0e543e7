"""Arrays with many states as their last axis.

XLA on a CPU puts whatever is cheap into everything that reads it, and expands its own optimisation
barriers before: a product that is read six times is computed six times, and a loop with a
transposition in it runs along single numbers (jaxlib 0.10). What it does not put into a reader that
wants an entry more than once is a gather. So that is what stands between one step and the next: a
gather of whole rows, which costs as much as a copy. With them verdicts on a spatial mechanism of 36
rows took 9 in place of 20 us.
"""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float, Int, Shaped

from ._sums import sum_of_products, sum_of_terms


# Sums over at most this many columns are written out.
_WRITTEN_OUT = 16

# Whole rows, the number of a row at a time.
_ROWS = lax.GatherDimensionNumbers(
    offset_dims=(1,), collapsed_slice_dims=(0,), start_index_map=(0,)
)


def states_last(
    function: Callable[..., Any],
) -> Callable[..., Any]:
    """A function of one state's arrays, from one whose arrays have many states as the last axis.

    `jax.vmap` adds the states in front, where the arithmetic on small blocks does not run along
    them; here they become the last axis. Measured for the sparse factor of a spatial mechanism of
    36 rows, 64 states at a time: 5 instead of 90 us each (one core). Whatever `function` closes
    over must not be batched; it has no reverse-mode derivative.
    """

    @jax.custom_batching.custom_vmap
    def at_states(*arrays: Array) -> Any:
        return function(*arrays)

    @at_states.def_vmap
    def batched(size: int, in_batched: list[bool], *arrays: Array) -> Any:
        inner = arrays[0].shape[-1]

        def merged(x: Array, has_states: bool) -> Array:
            x = x if has_states else jnp.broadcast_to(x, (size, *x.shape))
            return jnp.moveaxis(x, 0, -2).reshape(*x.shape[1:-1], size * inner)

        result = at_states(*map(merged, arrays, in_batched))

        def apart(y):
            return jnp.moveaxis(y.reshape(*y.shape[:-1], size, inner), -2, 0)

        return jax.tree.map(apart, result), jax.tree.map(lambda _: True, result)

    def at_one_state(*arrays: Array) -> Any:
        return jax.tree.map(lambda y: y[..., 0], at_states(*(x[..., None] for x in arrays)))

    return at_one_state


def rows_at(
    x: Shaped[Array, "entries states"], places: Int[np.ndarray, "*shape"]
) -> Shaped[Array, "*shape states"]:
    """x[places]. Gathered along one axis: an axis of length one among the places would bring a
    transposition into the loop."""
    found = lax.gather(
        x,
        np.asarray(places, np.int32).reshape(-1, 1),
        _ROWS,
        slice_sizes=(1, x.shape[1]),
        mode=lax.GatherScatterMode.PROMISE_IN_BOUNDS,
    )
    return found.reshape(*places.shape, x.shape[1])


def apart(x: Shaped[Array, "*shape states"]) -> Shaped[Array, "*shape states"]:
    """The same numbers, computed once however often they are read."""
    if not x.size:
        return x
    flat = x.reshape(-1, x.shape[-1])
    if flat.shape[0] == 1:
        # The gather of a single row is none to XLA.
        return rows_at(jnp.concatenate([flat, flat]), np.arange(2))[:1].reshape(x.shape)
    axis = next(k for k, size in enumerate(x.shape) if size > 1)
    inner = x.shape[axis:]
    numbers = lax.GatherDimensionNumbers(
        offset_dims=tuple(range(1, len(inner))), collapsed_slice_dims=(0,), start_index_map=(0,)
    )
    return lax.gather(
        x.reshape(inner),
        np.arange(inner[0], dtype=np.int32).reshape(-1, 1),
        numbers,
        slice_sizes=(1, *inner[1:]),
        mode=lax.GatherScatterMode.PROMISE_IN_BOUNDS,
    ).reshape(x.shape)


def flat_states(parts: Sequence[Float[Array, "... states"]]) -> Float[Array, "entries states"]:
    """The entries of the concatenated arrays; at least one array."""
    flat = [part.reshape(-1, part.shape[-1]) for part in parts]
    return flat[0] if len(flat) == 1 else jnp.concatenate(flat)


def at_slots(
    blocks: Float[Array, "r c slots states"], slots: Int[np.ndarray, " n"]
) -> Float[Array, "r c n states"]:
    """The blocks of these slots."""
    r, c, count, states = blocks.shape
    places = np.arange(r * c).reshape(r, c, 1) * count + slots
    return apart(rows_at(blocks.reshape(-1, states), places))


def along_columns(
    first: Float[Array, "r c n states"], second: Float[Array, "r c n states"]
) -> Float[Array, "r r n states"]:
    """Products of blocks, first second^T."""
    if first.shape[1] > _WRITTEN_OUT:
        return apart(sum_of_products(first[:, None], second[None], 2))
    terms = [first[:, None, j] * second[None, :, j] for j in range(first.shape[1])]
    return apart(sum_of_terms(terms))


def sum_at_states(
    values: Float[Array, "*shape states"], indices: Int[np.ndarray, "k *sums"]
) -> Float[Array, "*sums states"]:
    """Sums of the values at positions counted from 1; 0 is nothing."""
    flat = values.reshape(-1, values.shape[-1])
    if not flat.size:
        return jnp.zeros((*indices.shape[1:], flat.shape[1]), values.dtype)
    parts = [rows_at(flat, np.maximum(some - 1, 0)) for some in indices]
    kept = [
        part if np.all(some > 0) else jnp.where((some > 0)[..., None], part, 0.0)
        for part, some in zip(parts, indices, strict=True)
    ]
    return sum_of_terms(kept)
