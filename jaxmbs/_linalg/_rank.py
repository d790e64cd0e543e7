"""Decompositions that reveal the rank, with the rank as data, of one matrix or of many."""

import abc

import equinox as eqx
import jax.numpy as jnp
import jax.scipy.linalg as jsl
from jax import lax
from jaxtyping import Array, Bool, Float, Int

from .._custom_types import IntScalar, Scalar
from ._arrays import states_last


# --------------------------------------------------------------------------------------------------
# Pivoted QR of many matrices at once, in plain array operations.
#
# Accelerators have no batched decomposition with pivoting: a library call there takes one matrix
# after the other, or goes back to the host. Here every operation runs over all matrices, which are
# the last axis, so that nothing loops over them; and there is one way through for every size.
#
# What is finished is dropped: after each panel of columns the rows above and the columns before it
# take no part any more (a third of the work of whole matrices is left). The rows of Q^T are its
# result, so that they are finished as those of R are.
# --------------------------------------------------------------------------------------------------


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


# --------------------------------------------------------------------------------------------------
# Decompositions that reveal the rank, with the rank as data.
#
# Shapes never depend on the rank: the left null space is returned as all m columns of an orthogonal
# matrix, with those that belong to the range set to zero. So everything works under `jit` and
# `vmap`. None of it is meant to be differentiated: a rank has no derivative, and the derivative of
# a decomposition of a rank-deficient matrix does not exist.
# --------------------------------------------------------------------------------------------------


class RankDecomposition(eqx.Module):
    """Rank, pivots and left null space of a matrix (m, n).

    - `rank`: number of pivots above `threshold`.
    - `pivots`: min(m, n) magnitudes, not increasing: |R_kk| of pivoted QR or singular values.
    - `threshold`: tolerance times the first pivot.
    - `null_space` (m, m): orthonormal columns that span the left null space, after `rank` columns
      of zeros.
    """

    rank: IntScalar
    pivots: Float[Array, " k"]
    threshold: Scalar
    null_space: Float[Array, "m m"]

    def gap(self) -> Scalar:
        """Last kept over first dropped pivot; infinite when none is dropped.

        The divisor is floored at machine epsilon times the first pivot. A matrix of rank 0 has
        kept none: its gap is infinite as well.
        """
        if self.pivots.shape[0] == 0:
            return jnp.asarray(jnp.inf, self.pivots.dtype)
        padded = jnp.append(self.pivots, 0.0)
        kept = padded[jnp.maximum(self.rank - 1, 0)]
        floor = jnp.finfo(padded.dtype).eps * padded[0]
        dropped = jnp.maximum(padded[self.rank], floor)
        decided = (self.rank > 0) & (self.rank < self.pivots.shape[0])
        return jnp.where(decided, kept / jnp.where(decided, dropped, 1.0), jnp.inf)

    def dropped(self) -> Scalar:
        """First dropped over first pivot; 0 where none is dropped."""
        padded = jnp.append(self.pivots, 0.0)
        first = jnp.where(padded[0] > 0, padded[0], 1.0)
        return padded[self.rank] / first

    def margin(self) -> Scalar:
        """Last kept over first pivot; 1 for rank 0."""
        padded = jnp.append(self.pivots, 0.0)
        kept = padded[jnp.maximum(self.rank - 1, 0)]
        decided = self.rank > 0
        return jnp.where(decided, kept / jnp.where(decided, padded[0], 1.0), 1.0)


class AbstractQRMethod(eqx.Module):
    """A way to compute C E = Q R with column pivoting (Businger & Golub 1965), batched by
    `vmap`. All give the same verdicts."""

    @abc.abstractmethod
    def __call__(
        self, matrix: Float[Array, "m n"]
    ) -> tuple[Float[Array, " k"], Float[Array, "m m"]]:
        """|R_kk|, k = min(m, n), and Q. The matrix is not empty."""


class LapackQR(AbstractQRMethod):
    """LAPACK's geqp3, one matrix after the other. On accelerators slow, or not there."""

    def __call__(
        self, matrix: Float[Array, "m n"]
    ) -> tuple[Float[Array, " k"], Float[Array, "m m"]]:
        q, r, _ = jsl.qr(matrix, mode="full", pivoting=True)
        return jnp.abs(jnp.diagonal(r)), q


class BatchedQR(AbstractQRMethod):
    """Householder's reflections of all matrices of a batch at once, in array operations that stay
    on the device."""

    def __call__(
        self, matrix: Float[Array, "m n"]
    ) -> tuple[Float[Array, " k"], Float[Array, "m m"]]:
        return states_last(reflect_states)(matrix)


class PlatformQR(AbstractQRMethod):
    """`LapackQR` on a CPU, `BatchedQR` elsewhere, chosen where the program is compiled for."""

    def __call__(
        self, matrix: Float[Array, "m n"]
    ) -> tuple[Float[Array, " k"], Float[Array, "m m"]]:
        return lax.platform_dependent(matrix, cpu=LapackQR(), default=BatchedQR())


def pivoted_qr(
    matrix: Float[Array, "m n"], tolerance: Scalar, method: AbstractQRMethod
) -> RankDecomposition:
    """C E = Q R; the last columns of Q span the left null space (Wojtyra & Fraczek 2013,
    eq. 21)."""
    matrix = lax.stop_gradient(matrix)
    if 0 in matrix.shape:
        return _empty(matrix)
    pivots, basis = method(matrix)
    return _decide(pivots, basis, tolerance)


def singular_values(matrix: Float[Array, "m n"], tolerance: Scalar) -> RankDecomposition:
    """C = U S V^T; the last columns of U span the left null space."""
    matrix = lax.stop_gradient(matrix)
    if 0 in matrix.shape:
        return _empty(matrix)
    u, s, _ = jnp.linalg.svd(matrix, full_matrices=True)
    return _decide(s, u, tolerance)


def rank_above(matrix: Float[Array, "m n"], threshold: Scalar) -> IntScalar:
    """Number of singular values above an absolute threshold."""
    if 0 in matrix.shape:
        return jnp.asarray(0)
    values = jnp.linalg.svd(lax.stop_gradient(matrix), compute_uv=False)
    return jnp.sum(values > threshold)


def _decide(
    pivots: Float[Array, " k"], basis: Float[Array, "m m"], tolerance: Scalar
) -> RankDecomposition:
    threshold = tolerance * pivots[0]
    rank = jnp.sum(pivots > threshold)
    outside = jnp.arange(basis.shape[1]) >= rank
    return RankDecomposition(rank, pivots, threshold, jnp.where(outside, basis, 0.0))


def _empty(matrix: Float[Array, "m n"]) -> RankDecomposition:
    rows = matrix.shape[0]
    return RankDecomposition(
        jnp.asarray(0),
        jnp.zeros((0,), matrix.dtype),
        jnp.zeros((), matrix.dtype),
        jnp.eye(rows, dtype=matrix.dtype),
    )


def leading(
    matrix: Float[Array, "m n"], rank: int
) -> tuple[Float[Array, "m rank"], Float[Array, " rank"], Float[Array, "rank n"]]:
    """The largest singular values (rank,), with their vectors as columns and as rows: U, s and
    V^T of the nearest matrix of that rank. Not differentiated."""
    if not rank:
        return matrix[:, :0], jnp.zeros((0,), matrix.dtype), matrix[:0]
    u, s, vt = jnp.linalg.svd(lax.stop_gradient(matrix), full_matrices=False)
    return u[:, :rank], s[:rank], vt[:rank]
