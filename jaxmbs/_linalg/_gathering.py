"""Entries gathered from arrays, and scattered, at places known beforehand.

The derivative of a gather is a scatter. XLA makes a loop of each scatter on a CPU, one turn for
each entry, and makes no single function of a loop that holds one. So what is taken here has the
derivative that its places allow: a gather of all that an entry went to.
"""

import functools
import operator
from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.core import ShapedArray
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir
from jaxtyping import Array, Float, Int

from .._indices import Indices


# All that belongs to an entry is gathered from a table of the k-th of each, unless the table is so
# many times larger than what it holds.
_EMPTY = 8

# A place to which so many times more belongs than to any other is summed apart.
_APART = 2

# Sums of at most this many gathered arrays are written out.
_WRITTEN_OUT = 16


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
