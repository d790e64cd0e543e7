"""Arrays whose entries are put together from those of others, at places that are known.

They are gathered, not scattered: XLA makes one function of a loop on a CPU that holds no scatter.
"""

from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int


# An entry is gathered from all that belong to it, unless so many of the places stay empty.
_EMPTY = 8


def placed(
    parts: Sequence[Float[Array, "..."]], places: Sequence[Int[np.ndarray, "..."]], size: int
) -> Float[Array, " size"]:
    """An array of `size` entries: the sum of all of `parts` that belong to a place (the arrays of
    `places` have the shapes of `parts`), zero where there is none."""
    given = jnp.concatenate([jnp.ravel(part) for part in parts])
    where = np.concatenate([np.ravel(place) for place in places])
    if np.array_equal(where, np.arange(size)):
        return given
    order = np.argsort(where, kind="stable")
    counts = np.bincount(where, minlength=size)
    if np.all(counts == 1):
        return given[order]
    most = int(np.max(counts, initial=0))
    if most * size > _EMPTY * (len(where) + size):
        return jnp.zeros((size,), given.dtype).at[where].add(given)
    # The k-th of all that belong to each place; what is missing is a zero behind the others.
    table = np.full((most, size), len(where))
    table[np.arange(len(where)) - (np.cumsum(counts) - counts)[where[order]], where[order]] = order
    padded = jnp.concatenate([given, jnp.zeros((1,), given.dtype)])
    return jnp.sum(padded[table], axis=0)
