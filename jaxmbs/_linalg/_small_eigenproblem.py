"""Orthonormal bases of a few vectors, and eigenvalues of small symmetric matrices, inside compiled
loops.

They are written out in operations that XLA fuses. (A call of LAPACK in a loop could wait for ever
for another one of the same program.)
"""

from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float, Int

from .._custom_types import IntScalar


# Sweeps of Jacobi's rotations. Each squares what couples the vectors, which are nearly uncoupled
# as they come from the step before.
_SWEEPS = 3


def ascending(values: Float[Array, " k"]) -> Int[Array, " k"]:
    """The order of a few values, the smallest first, without a sort."""
    k = np.arange(len(values))
    before = values[:, None] < values[None]
    before = before | ((values[:, None] == values[None]) & (k[:, None] < k[None]))
    place = jnp.sum(before, axis=0)
    return jnp.sum((place[None] == k[:, None]) * k[None], axis=1)


def small_product(one: Float[Array, "a n"], other: Float[Array, "n b"]) -> Float[Array, "a b"]:
    """The product of matrices with a few rows or columns, without a library's function."""
    return jnp.sum(one[:, :, None] * other[None], axis=1)


def orthonormal(columns: Float[Array, "n k"]) -> Float[Array, "n k"]:
    """Gram and Schmidt, twice: one round leaves what was nearly parallel with few digits."""
    count = columns.shape[1]

    def one(n: IntScalar, rows: Float[Array, "k n"]) -> Float[Array, "k n"]:
        j = n // 2
        x = lax.dynamic_index_in_dim(rows, j, keepdims=False)
        parts = jnp.where(np.arange(count) < j, jnp.sum(rows * x[None], axis=1), 0.0)
        x = x - jnp.sum(parts[:, None] * rows, axis=0)
        return lax.dynamic_update_index_in_dim(rows, _unit(x[:, None])[:, 0], j, 0)

    return lax.fori_loop(0, 2 * count, one, _unit(columns).T).T


def _unit(columns: Float[Array, "n k"]) -> Float[Array, "n k"]:
    squares = jnp.sum(columns * columns, axis=0)
    return columns / jnp.sqrt(jnp.maximum(squares, jnp.finfo(columns.dtype).tiny))[None]


def eigenvectors(
    matrix: Float[Array, "k k"],
) -> tuple[Float[Array, " k"], Float[Array, "k k"]]:
    """Eigenvalues and vectors of a small symmetric matrix by Jacobi's rotations, pairs that have
    nothing in common at once."""
    k = matrix.shape[0]
    tournament = _tournament(k)
    signs = np.sign(np.sum(tournament * (np.arange(k)[None] - np.arange(k)[:, None]), axis=2))

    def rotate(n: IntScalar, carry: tuple[Any, Any]) -> tuple[Any, Any]:
        a, vectors = carry
        pairs, sign = jnp.asarray(tournament)[n % len(signs)], jnp.asarray(signs)[n % len(signs)]
        diagonal = jnp.diagonal(a)
        opposite = jnp.sum(pairs * a, axis=1)
        difference = sign * (jnp.sum(pairs * diagonal[None], axis=1) - diagonal)
        # Of equal entries one partner would have 0 and the other one -0, and another angle.
        difference = jnp.where(difference == 0, 0.0, difference)
        # Who has no partner in this round has sign 0 and is not turned.
        angle = jnp.where(sign == 0, 0.0, jnp.arctan2(2 * opposite, difference) / 2)
        turn = jnp.diag(jnp.cos(angle)) + pairs * (sign * jnp.sin(angle))[:, None]
        return turn.T @ a @ turn, vectors @ turn

    identity = jnp.eye(k, dtype=matrix.dtype)
    values, vectors = lax.fori_loop(0, _SWEEPS * len(signs), rotate, (matrix, identity))
    return jnp.diagonal(values), vectors


def _tournament(k: int) -> Float[np.ndarray, "rounds k k"]:
    """Rounds that contain each pair once (the circle method): 1 where two are paired."""
    players = list(range(k + k % 2))
    rounds = np.zeros((max(len(players) - 1, 1), k, k))
    for some in rounds:
        for i, j in zip(players, reversed(players), strict=True):
            if i != j and max(i, j) < k:
                some[i, j] = 1.0
        players = [players[0], players[-1], *players[1:-1]]
    return rounds
