"""Entries and small blocks of arrays, along many lanes: gathered, summed, computed once."""

import functools
import operator
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.core import ShapedArray
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir
from jaxtyping import Array, Float, Int, Shaped

from .._custom_types import Indices


def pack_scalars(record: Sequence[Any], dtype: Any) -> Float[Array, " n"]:
    """The fields of a record of scalars as one array: in a small system each array that a loop
    carries costs as much as a solve."""
    return jnp.stack([x.astype(dtype) for x in record])


# --------------------------------------------------------------------------------------------------
# Numbers that are computed once, however many operations read them.
#
# XLA puts what is cheap into everything that reads it. For one state a barrier prevents that; where
# `vmap` has added states, the barrier is gone before kernels are made (jaxlib 0.10, CPU), and a
# solve over the levels of a factor computes the first of them again for each entry of the last.
# What XLA does not put into a reader that wants an entry more than once is a gather
# (above): so where there are many states, a gather of all of them stands between one
# step and the next.
# --------------------------------------------------------------------------------------------------


def kept(x: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
    """The same numbers."""
    return _kept.bind(x, states=False)


_kept = Primitive("kept")

# Whole states, the number of a state at a time.
_STATES = lax.GatherDimensionNumbers(
    offset_dims=(1,), collapsed_slice_dims=(0,), start_index_map=(0,)
)


@_kept.def_impl
def _keep(x: Any, *, states: bool) -> Any:
    if not states or not x.size:
        return lax.optimization_barrier(x)
    rows = jnp.reshape(x, (x.shape[0], -1))
    found = lax.gather(
        rows,
        np.arange(rows.shape[0], dtype=np.int32)[:, None],
        _STATES,
        slice_sizes=(1, rows.shape[1]),
        mode=lax.GatherScatterMode.PROMISE_IN_BOUNDS,
    )
    return found.reshape(x.shape)


@_kept.def_abstract_eval
def _kept_shape(x: Any, *, states: bool) -> Any:
    del states
    return ShapedArray(x.shape, x.dtype)


def _kept_transposed(cotangent: Any, x: Any, *, states: bool) -> list[Any]:
    if isinstance(cotangent, ad.Zero):
        return [ad.Zero(x.aval)]
    return [_kept.bind(cotangent, states=states)]


def _kept_batched(arguments: Any, axes: Any, *, states: bool) -> Any:
    del states
    (x,), (axis,) = arguments, axes
    return _kept.bind(jnp.moveaxis(x, axis, 0), states=True), 0


mlir.register_lowering(_kept, mlir.lower_fun(_keep, multiple_results=False))
ad.deflinear2(_kept, _kept_transposed)
batching.primitive_batchers[_kept] = _kept_batched


# --------------------------------------------------------------------------------------------------
# Sums of products of small blocks, along many lanes.
# --------------------------------------------------------------------------------------------------


# Sums of at most this many terms are written out, and looped over beyond.
_WRITTEN_OUT = 16


def sum_of_products(
    one: Float[Array, "..."], other: Float[Array, "..."], axis: int, *, apart: bool = True
) -> Float[Array, "..."]:
    """The sum of one * other, which are broadcast against each other, along an axis on which both
    have the same length, at least one.

    `apart`: what uses the result does not compute it anew. See `sum_along`.
    """
    count = one.shape[axis]
    if count <= _WRITTEN_OUT:
        return sum_along(one * other, axis, apart=apart)

    def term(k: int | Array) -> Float[Array, "..."]:
        return lax.dynamic_index_in_dim(one, k, axis, keepdims=False) * (
            lax.dynamic_index_in_dim(other, k, axis, keepdims=False)
        )

    return lax.fori_loop(1, count, lambda k, x: x + term(k), term(0))


def sum_along(terms: Float[Array, "..."], axis: int, *, apart: bool = True) -> Float[Array, "..."]:
    """The sum along a short axis, of at least one entry.

    Written out, since `jnp.sum` along a short axis in front of the lanes was measured to take up
    to 20 times as long (jaxlib 0.10, CPU). The terms are split at once: taken one by one they made
    half of the operations of a program.
    """
    count = terms.shape[axis]
    if count > _WRITTEN_OUT:
        first = lax.index_in_dim(terms, 0, axis, keepdims=False)
        return lax.fori_loop(
            1,
            count,
            lambda k, x: x + lax.dynamic_index_in_dim(terms, k, axis, keepdims=False),
            first,
        )
    parts = lax.split(terms, (1,) * count, axis)
    found = lax.squeeze(functools.reduce(operator.add, parts), (axis,))
    return kept(found) if apart else found


def sum_of_terms(terms: Sequence[Float[Array, "*shape"]]) -> Float[Array, "*shape"]:
    """The sum of at least one array, written out."""
    return functools.reduce(operator.add, terms)


# --------------------------------------------------------------------------------------------------
# Entries gathered from arrays, and scattered, at places known beforehand.
#
# The derivative of a gather is a scatter. XLA makes a loop of each scatter on a CPU, one turn for
# each entry, and makes no single function of a loop that holds one. So what is taken here has the
# derivative that its places allow: a gather of all that an entry went to.
# --------------------------------------------------------------------------------------------------


# All that belongs to an entry is gathered from a table of the k-th of each, unless the table is so
# many times larger than what it holds.
_EMPTY = 8

# A place to which so many times more belongs than to any other is summed apart.
_APART = 2

# Sums of at most this many gathered arrays are written out.


def gather(x: Float[Array, "*batch n"], places: Int[np.ndarray, "*shape"]) -> Float[Array, "..."]:
    """x[..., places]: (*batch, *shape).

    **Raises:** `IndexError` for a place that is not there; none is counted from the end.
    """
    if np.any((places < 0) | (places >= x.shape[-1])):
        raise IndexError(f"places 0 to {x.shape[-1] - 1} can be taken, not all of {places}.")
    return _static_gather.bind(x, places=Indices(places=places))


def scatter_add(
    parts: Sequence[Float[Array, "..."]], places: Sequence[Int[np.ndarray, "..."]], size: int
) -> Float[Array, " size"]:
    """An array of `size` entries: the sum of all of `parts` that belong to a place (the arrays of
    `places` have the shapes of `parts`), zero where there is none."""
    given = jnp.concatenate([jnp.ravel(part) for part in parts])
    return _put(given, np.concatenate([np.ravel(place) for place in places]), size)


def _put(
    given: Float[Array, "*batch m"], where: Int[np.ndarray, " m"], size: int
) -> Float[Array, "*batch size"]:
    """The transpose of taking along the last axis."""
    if np.array_equal(where, np.arange(size)):
        return given
    counts = np.bincount(where, minlength=size)
    if np.all(counts == 1):
        return gather(given, np.argsort(where))
    # One place may be that of everything that is missing elsewhere.
    first, second = np.argsort(-counts, kind="stable")[:2] if size > 1 else (0, 0)
    if counts[first] > _APART * counts[second]:
        rest = np.flatnonzero(where != first)
        sums = _sums_by_place(gather(given, rest), where[rest], size)
        own = jnp.sum(gather(given, np.flatnonzero(where == first)), axis=-1)
        return jnp.where(np.arange(size) == first, own[..., None], sums)
    return _sums_by_place(given, where, size)


def _sums_by_place(
    given: Float[Array, "*batch m"], where: Int[np.ndarray, " m"], size: int
) -> Float[Array, "*batch size"]:
    """The sum over the k-th of all that belong to each place."""
    counts = np.bincount(where, minlength=size)
    most = int(np.max(counts, initial=0))
    if not most or most * size > _EMPTY * (len(where) + size):
        return jnp.zeros((*given.shape[:-1], size), given.dtype).at[..., where].add(given)
    # A missing entry is a zero after the others.
    order = np.argsort(where, kind="stable")
    table = np.full((most, size), len(where))
    table[np.arange(len(where)) - (np.cumsum(counts) - counts)[where[order]], where[order]] = order
    padded = jnp.concatenate([given, jnp.zeros((*given.shape[:-1], 1), given.dtype)], axis=-1)
    if most > _WRITTEN_OUT:
        return jnp.sum(gather(padded, table), axis=-2)
    return functools.reduce(operator.add, [gather(padded, row) for row in table])


_static_gather = Primitive("static_gather")


@_static_gather.def_impl
def _take(x: Any, *, places: Indices) -> Any:
    where = places["places"]
    axes = axes_of_block(where)
    if axes is None:
        return jnp.asarray(x).at[..., where].get(mode="promise_in_bounds")
    # A gather is a kernel of its own; a block is read by whatever uses it.
    start, batch = int(where.flat[0]), x.ndim - 1
    block = lax.slice_in_dim(jnp.asarray(x), start, start + where.size, axis=-1)
    block = block.reshape(*x.shape[:-1], *(where.shape[k] for k in axes))
    order = (*range(batch), *(batch + k for k in np.argsort(axes)))
    return jnp.transpose(block, order)


def axes_of_block(places: Int[np.ndarray, "*shape"]) -> tuple[int, ...] | None:
    """If the places are those of neighbours, read off in some order of the axes: that order, the
    axis of the largest steps first. Else None."""
    if not places.size:
        return None
    start, shape = int(places.flat[0]), places.shape
    steps = [int(np.take(places, min(1, n - 1), k).flat[0]) - start for k, n in enumerate(shape)]
    axes = tuple(sorted(range(places.ndim), key=lambda k: -steps[k]))
    block = start + np.arange(places.size).reshape([shape[k] for k in axes])
    same = np.array_equal(np.transpose(block, np.argsort(axes)), places) if axes else True
    return axes if same else None


@_static_gather.def_abstract_eval
def _shape(x: Any, *, places: Indices) -> Any:
    return ShapedArray((*x.shape[:-1], *places["places"].shape), x.dtype)


def _transposed(cotangent: Any, x: Any, *, places: Indices) -> list[Any]:
    if isinstance(cotangent, ad.Zero):
        return [ad.Zero(x.aval)]
    shape, where = x.aval.shape, places["places"]
    given = jnp.asarray(cotangent).reshape(*shape[:-1], where.size)
    return [_put(given, where.ravel(), shape[-1])]


def _batched(arguments: Any, axes: Any, *, places: Indices) -> Any:
    (x,), (axis,) = arguments, axes
    return _static_gather.bind(jnp.moveaxis(x, axis, 0), places=places), 0


mlir.register_lowering(_static_gather, mlir.lower_fun(_take, multiple_results=False))
ad.deflinear2(_static_gather, _transposed)
batching.primitive_batchers[_static_gather] = _batched


# --------------------------------------------------------------------------------------------------
# Sums of entries of several concatenated arrays, at places counted from 1.
# --------------------------------------------------------------------------------------------------


def flat(parts: Sequence[Float[Array, "..."]], like: Array) -> Float[Array, " entries"]:
    """The entries of the concatenated arrays."""
    if len(parts) == 1:
        return parts[0].ravel()
    return jnp.concatenate([jnp.zeros((0,), like.dtype), *(part.ravel() for part in parts)])


def gather_or_zero(
    x: Float[Array, " n"], places: Int[np.ndarray, "*shape"]
) -> Float[Array, "*shape"]:
    """Entries at places that are counted from 1; zero for the place 0."""
    missing = places == 0
    if missing.all():
        return jnp.zeros(places.shape, x.dtype)
    # Something is taken where nothing is asked for, each time another, so that the derivative has
    # no entry to which much more belongs than to others.
    filler = np.arange(places.size).reshape(places.shape) % x.shape[0]
    found = gather(x, np.where(missing, filler, places - 1))
    return jnp.where(missing, 0.0, found) if missing.any() else found


def sum_of(values: Float[Array, "*given"], places: np.ndarray) -> Float[Array, "*shape"]:
    """Sums of the values at places (k, *shape), counted from 1."""
    if not len(places):
        return jnp.zeros(places.shape[1:], values.dtype)
    # Kept apart, as in `_multifrontal.gathered`.
    parts = kept(gather_or_zero(values.ravel(), places))
    return sum_along(parts, 0, apart=False)


# --------------------------------------------------------------------------------------------------
# Arrays with many states as their last axis.
#
# XLA on a CPU puts whatever is cheap into everything that reads it, and expands its own
# optimisation barriers before: a product that is read six times is computed six times, and a loop
# with a transposition in it runs along single numbers (jaxlib 0.10). What it does not put into a
# reader that wants an entry more than once is a gather. So that is what stands between one step and
# the next: a gather of whole rows, which costs as much as a copy. With them verdicts on a spatial
# mechanism of 36 rows took 9 in place of 20 us.
# --------------------------------------------------------------------------------------------------


# Sums over at most this many columns are written out.


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
