"""Sums of products of small blocks, along many lanes."""

import functools
import operator
from collections.abc import Callable
from typing import Any

from jax import lax
from jaxtyping import Array, Float


# Sums of at most this many terms are written out, and looped over beyond.
_WRITTEN_OUT = 16


def sum_over(
    term: Callable[[Any], Float[Array, "*shape"]], count: int, *, apart: bool = True
) -> Float[Array, "*shape"]:
    """term(0) + ... + term(count - 1), at least one.

    Written out, since `jnp.sum` along a short axis in front of the lanes was measured to take up
    to 20 times as long (jaxlib 0.10, CPU). `apart`: what uses the result does not compute it anew.
    """
    if count > _WRITTEN_OUT:
        return lax.fori_loop(1, count, lambda k, x: x + term(k), term(0))
    found = functools.reduce(operator.add, (term(k) for k in range(count)))
    return lax.optimization_barrier(found) if apart else found
