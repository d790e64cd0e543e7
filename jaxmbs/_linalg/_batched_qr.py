"""Pivoted QR of many matrices at once, in plain array operations.

Accelerators have no batched decomposition with pivoting: a library call there takes one matrix
after the other, or goes back to the host. Here every operation runs over all matrices, which are
the last axis, so that nothing loops over them; and there is one way through for every size.

What is finished is dropped: after each panel of columns the rows above and the columns before it
take no part any more (a third of the work of whole matrices is left). The rows of Q^T are its
result, so that they are finished as those of R are.
"""

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, Int


# Columns of a panel, but at most so many panels: each is compiled for itself.
_PANEL, _PANELS = 8, 8


def reflect_states(
    matrix: Float[Array, "m n states"],
) -> tuple[Float[Array, "k states"], Float[Array, "m m states"]]:
    """C E = Q R by Householder's reflections with column pivoting (Businger & Golub 1965).

    **Arguments:** `matrix` (m, n, states): C, not empty.

    **Returns:** |R_kk| (k, states), k = min(m, n), and Q (m, m, states).
    """
    m, n, states = matrix.shape
    steps = min(m, n)
    panel = max(_PANEL, -(-steps // _PANELS))
    rest = matrix
    turned = jnp.broadcast_to(jnp.eye(m, dtype=matrix.dtype)[:, :, None], (m, m, states))
    pivots, finished = [], []
    for start in range(0, steps, panel):
        width = min(panel, steps - start)
        rest, turned, own = _panel(rest, turned, width)
        pivots.append(own)
        finished.append(turned[:width])
        rest, turned = rest[width:, width:], turned[width:]
    return jnp.concatenate(pivots), jnp.swapaxes(jnp.concatenate([*finished, turned]), 0, 1)


def _panel(
    rest: Float[Array, "rows columns states"], turned: Float[Array, "rows m states"], width: int
) -> tuple[
    Float[Array, "rows columns states"],
    Float[Array, "rows m states"],
    Float[Array, "width states"],
]:
    """The first columns of what is left of C and of Q^T."""
    rows, columns = jnp.arange(rest.shape[0]), jnp.arange(rest.shape[1])

    def step(k, carry):
        rest, turned, pivots = carry
        below = jnp.where(rows >= k, 1.0, 0.0).astype(rest.dtype)[:, None]
        # Lengths are summed anew each time: what is left of them by subtraction is rounding
        # where the rank ends, just where the order of the columns decides it.
        squares = jnp.sum(below[:, :, None] * rest**2, axis=0)
        taken = jnp.argmax(jnp.where((columns >= k)[:, None], squares, -1.0), axis=0)
        x = below * jnp.take_along_axis(rest, taken[None, None, :], axis=1)[:, 0]
        length = jnp.sqrt(jnp.sum(x**2, axis=0))
        head = x[k]
        # Away from the entry itself, so that nothing cancels.
        shift = jnp.where(head < 0, -length, length)
        normal = jnp.where((rows == k)[:, None], x + shift[None, :], x)
        half = length * (length + jnp.abs(head))
        factor = jnp.where(half > 0, 1 / jnp.where(half > 0, half, 1.0), 0.0)
        # The column that stood here moves to where the taken one stood.
        here = lax.dynamic_index_in_dim(rest, k, axis=1)
        rest = jnp.where(_at(columns, taken)[None], here, rest)
        rest = _reflected(rest, normal, factor)
        return rest, _reflected(turned, normal, factor), pivots.at[k].set(length)

    pivots = jnp.zeros((width, rest.shape[2]), rest.dtype)
    return lax.fori_loop(0, width, step, (rest, turned, pivots))


def _at(
    columns: Int[Array, " columns"], taken: Int[Array, " states"]
) -> Bool[Array, "columns states"]:
    return columns[:, None] == taken[None, :]


def _reflected(
    matrix: Float[Array, "rows columns states"],
    normal: Float[Array, "rows states"],
    factor: Float[Array, " states"],
) -> Float[Array, "rows columns states"]:
    along = factor[None, :] * jnp.sum(normal[:, None] * matrix, axis=0)
    return matrix - normal[:, None] * along[None]
