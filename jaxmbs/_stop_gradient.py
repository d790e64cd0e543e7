"""Arrays that have no derivative."""

from typing import TypeVar

import equinox as eqx
from jax import lax


T = TypeVar("T")


def stop_gradient(tree: T) -> T:
    """The same, a constant for all derivatives; values that are not arrays are unchanged."""
    arrays, rest = eqx.partition(tree, eqx.is_array)
    return eqx.combine(lax.stop_gradient(arrays), rest)
