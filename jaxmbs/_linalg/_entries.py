"""Sums of entries of several concatenated arrays, at places counted from 1."""

from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from ._gathering import gather
from ._kept import kept
from ._sums import sum_along


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
