"""Sums of products of small blocks, along many lanes."""

import functools
import operator
from collections.abc import Sequence

from jax import lax
from jaxtyping import Array, Float

from ._kept import kept


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
