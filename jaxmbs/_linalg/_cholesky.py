"""Cholesky factors of small symmetric positive definite matrices without LAPACK.

LAPACK calls that do not depend on each other may wait for each other for ever in one compiled
function (jaxlib 0.10 on two cores), and one call per small matrix costs more than its
arithmetic. These are loops over columns in plain array operations: they batch, differentiate and
run on any device.
"""

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float


def cholesky(matrix: Float[Array, "n n"]) -> Float[Array, "n n"]:
    """Lower L with L L^T = matrix (Golub & Van Loan 2013, algorithm 4.2.1, by columns)."""
    n = matrix.shape[0]
    if not n:
        return matrix
    index = jnp.arange(n)

    def column(k, lower):
        # Everything left of column k is final; subtract its part from column k.
        known = jnp.where(index < k, lower[k], 0.0)
        entries = matrix[:, k] - lower @ known
        entries = jnp.where(index >= k, entries, 0.0) / jnp.sqrt(entries[k])
        return lower.at[:, k].set(entries)

    return lax.fori_loop(0, n, column, jnp.zeros_like(matrix))


def cholesky_solve(
    lower: Float[Array, "n n"], right: Float[Array, " n *k"]
) -> Float[Array, " n *k"]:
    """(L L^T)^-1 right, for one vector or the columns of a matrix."""
    n = lower.shape[0]
    if not n:
        return right

    def forward(k, x):
        return x.at[k].set((x[k] - jnp.where(jnp.arange(n) < k, lower[k], 0.0) @ x) / lower[k, k])

    def backward(i, x):
        k = n - 1 - i
        rest = jnp.where(jnp.arange(n) > k, lower[:, k], 0.0)
        return x.at[k].set((x[k] - rest @ x) / lower[k, k])

    return lax.fori_loop(0, n, backward, lax.fori_loop(0, n, forward, right))
