"""The derivative of the forces along the coordinates and velocities, where it is not zero.

Forces act between few bodies, so that most of the matrix is zero. Columns that have no row in
common are computed by one push forward: their sum is that of both, and each entry is read off
where it can only be that of one (Curtis, Powell & Reid 1974, J. Inst. Maths Applics 13).
"""

import functools
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float, Int


class Colouring(NamedTuple):
    """`seeds` (colours, n): which columns are computed together. `colours` (n,): of each column.
    `entries` (n, n): what may not be zero."""

    seeds: Float[np.ndarray, "colours n"]
    colours: Int[np.ndarray, " n"]
    entries: Bool[np.ndarray, "n n"]


@functools.lru_cache
def colouring(sets: tuple[tuple[int, ...], ...], size: int) -> Colouring:
    """The colouring of a matrix whose rows and columns depend on each other within these sets
    alone. Each column has the first colour that no column before it has with which it shares a
    row."""
    entries = np.zeros((size, size), dtype=bool)
    for own in sets:
        entries[np.ix_(own, own)] = True
    meets = entries.T.astype(int) @ entries.astype(int) > 0
    colours = np.zeros(size, dtype=int)
    for column in range(size):
        taken = set(colours[:column][meets[column, :column]].tolist())
        colours[column] = next(k for k in range(size) if k not in taken)
    seeds = np.arange(colours.max(initial=-1) + 1)[:, None] == colours[None, :]
    return Colouring(seeds.astype(float), colours, entries)


def coloured_jacobian(
    function: Callable[[Float[Array, " n"]], Float[Array, " n"]],
    x: Float[Array, " n"],
    found: Colouring,
) -> Float[Array, "n n"]:
    """The derivative of a function whose matrix has such entries."""

    def push(seed: Float[Array, " n"]) -> Float[Array, " n"]:
        return jax.jvp(function, (x,), (seed,))[1]

    # One after the other: batched they took twice as long.
    sums = lax.map(push, jnp.asarray(found.seeds, x.dtype))
    return jnp.where(found.entries, sums[found.colours].T, 0.0)
