"""Pseudoinverses with the rank as data, by a complete orthogonal decomposition.

    A E = Q R,  R cut off below its rank,  R^T = Z T,   so that   A = Q T^T (E Z)^T,

Q and E Z with orthonormal columns and T^T lower triangular (Golub & Van Loan 2013, section
5.5.7): the solution of minimum norm of a least-squares problem is E Z T^-T Q^T b. Columns beyond
the rank are zero and the diagonal of T is 1 there, so that no shape depends on the rank.

The reflections are plain array operations and not LAPACK's: a derivative solves several times
with one decomposition, two questions make two of them, and LAPACK calls that do not depend on
each other may deadlock in one compiled function (see `_cholesky`).
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import lineax as lx
from jax import lax
from jaxtyping import Array, Float, Int

from .._custom_types import IntScalar
from ._concrete_rank import RANK_TOLERANCE
from ._pseudosolve import pseudosolve


# Columns whose squared lengths differ by less than this, relatively, are equally long: the first
# of them is taken, so that rounding decides nothing where all rows have unit length.
_TIE = 1e-6


class Reflected(eqx.Module):
    """A E = Q R: `q` (m, m) orthogonal, `r` (m, n) upper trapezoidal with its diagonal not
    increasing in magnitude, `order` (n,) the columns of A in the order of those of R."""

    q: Float[Array, "m m"]
    r: Float[Array, "m n"]
    order: Int[Array, " n"]

    def rank(self, rcond: float) -> IntScalar:
        """Number of pivots above rcond (at least rounding) times the first."""
        pivots = jnp.abs(jnp.diagonal(self.r))
        rounding = max(self.r.shape) * float(jnp.finfo(self.r.dtype).eps)
        first = jnp.max(pivots, initial=0.0)
        # What is not a number counts as kept, and so shows in the solution.
        return jnp.sum(~(pivots <= max(rcond, rounding) * first))


def reflect(matrix: Float[Array, "m n"], pivoting: bool) -> Reflected:
    """Householder's reflections, with the column of largest remaining length next if `pivoting`
    (Businger & Golub 1965). Not differentiated."""
    m, n = matrix.shape
    rows, columns = jnp.arange(m), jnp.arange(n)

    def step(k, carry):
        # Columns stay in place and `place` is the step at which each was chosen: moving them costs
        # more than all else. Behind them the identity becomes Q^T.
        both, place = carry
        below = jnp.where(rows >= k, 1.0, 0.0)
        taken = k
        if pivoting:
            left = jnp.where(place < 0, below @ both[:, :n] ** 2, -1.0)
            taken = jnp.argmax(left >= (1 - _TIE) * jnp.max(left))
        x = below * both[:, taken]
        length = jnp.linalg.norm(x)
        # Away from the entry itself, so that nothing cancels.
        normal = x.at[k].add(jnp.where(x[k] < 0, -length, length))
        square = normal @ normal
        factor = jnp.where(square > 0, 2 / jnp.where(square > 0, square, 1.0), 0.0)
        both = both - normal[:, None] * (factor * (normal @ both))[None, :]
        return both, place.at[taken].set(k)

    identity = jnp.eye(m, dtype=matrix.dtype)
    start = jnp.concatenate([lax.stop_gradient(matrix), identity], axis=1), -jnp.ones_like(columns)
    both, place = lax.fori_loop(0, min(m, n), step, start) if min(m, n) else start
    # Columns never taken come last.
    order = jnp.argsort(jnp.where(place < 0, n, place))
    return Reflected(both[:, n:].T, jnp.triu(both[:, :n][:, order]), order)


class CompleteOrthogonal(eqx.Module):
    """A = left T^T right^T or, `transposed`, A = left T right^T, with T^T = `lower`."""

    left: Float[Array, "m k"]
    lower: Float[Array, "k k"]
    right: Float[Array, "n k"]
    rank: IntScalar
    transposed: bool = eqx.field(static=True)


class PivotedQR(lx.AbstractLinearSolver[CompleteOrthogonal]):
    """Lineax solver of real systems of any shape and rank; the solution of minimum norm of the
    least-squares problem, with its derivative at constant rank (Golub & Pereyra 1973).

    **Arguments:** `rcond`: pivots below this times the first are zero. The rows of a matrix of
    mixed units should be made of unit length first.
    """

    rcond: float = RANK_TOLERANCE

    def init(
        self, operator: lx.AbstractLinearOperator, options: dict[str, Any]
    ) -> CompleteOrthogonal:
        del options
        return complete_orthogonal(operator.as_matrix(), self.rcond)[0]

    def compute(
        self, state: CompleteOrthogonal, vector: Float[Array, " m"], options: dict[str, Any]
    ) -> tuple[Float[Array, " n"], lx.RESULTS, dict[str, Any]]:
        del options
        inside = state.left.T @ vector
        substitute = substitute_upper if state.transposed else substitute_lower
        return state.right @ substitute(state.lower, inside), lx.RESULTS.successful, {}

    def transpose(
        self, state: CompleteOrthogonal, options: dict[str, Any]
    ) -> tuple[CompleteOrthogonal, dict[str, Any]]:
        swapped = CompleteOrthogonal(
            state.right, state.lower, state.left, state.rank, not state.transposed
        )
        return swapped, options

    def conj(
        self, state: CompleteOrthogonal, options: dict[str, Any]
    ) -> tuple[CompleteOrthogonal, dict[str, Any]]:
        return state, options

    def assume_full_rank(self) -> bool:
        return False


def complete_orthogonal(
    matrix: Float[Array, "m n"], rcond: float
) -> tuple[CompleteOrthogonal, Float[Array, "n n"]]:
    """The decomposition of the module's head, and an orthonormal basis of the null space after
    `rank` columns of zeros."""
    m, n = matrix.shape
    k = min(m, n)
    first = reflect(matrix, pivoting=True)
    rank = first.rank(rcond)
    kept = jnp.arange(k) < rank
    second = reflect(jnp.where(kept[:, None], first.r[:k], 0.0).T, pivoting=False)
    right = second.q[jnp.argsort(first.order)]
    state = CompleteOrthogonal(
        left=jnp.where(kept[None, :], first.q[:, :k], 0.0),
        lower=second.r[:k].T + jnp.diag(jnp.where(kept, 0.0, 1.0)),
        right=jnp.where(kept[None, :], right[:, :k], 0.0),
        rank=rank,
        transposed=False,
    )
    return state, jnp.where(jnp.arange(n)[None, :] < rank, 0.0, right)


class Pseudoinverse(eqx.Module):
    """A^+ as a linear map: one decomposition for any number of right-hand sides, differentiable
    at constant rank, forward and reverse.

    `null_space` (n, n): an orthonormal basis of it after `rank` columns of zeros; a constant.
    """

    operator: lx.MatrixLinearOperator
    state: CompleteOrthogonal
    null_space: Float[Array, "n n"]
    solver: PivotedQR = eqx.field(static=True)

    def __init__(self, matrix: Float[Array, "m n"], rcond: float = RANK_TOLERANCE):
        self.operator = lx.MatrixLinearOperator(matrix)
        self.solver = PivotedQR(rcond)
        self.state, self.null_space = complete_orthogonal(matrix, rcond)

    @property
    def rank(self) -> IntScalar:
        """The rank of A."""
        return self.state.rank

    def apply(self, right: Float[Array, " m"]) -> Float[Array, " n"]:
        """A^+ b."""
        return pseudosolve(self.operator, right, self.solver, self.state)

    def apply_transposed(self, right: Float[Array, " n"]) -> Float[Array, " m"]:
        """(A^T)^+ b."""
        state, _ = self.solver.transpose(self.state, {})
        return pseudosolve(self.operator.T, right, self.solver, state)

    def apply_columns(self, right: Float[Array, "m k"]) -> Float[Array, "n k"]:
        """A^+ B."""
        return jax.vmap(self.apply, in_axes=1, out_axes=1)(right)


def substitute_lower(
    lower: Float[Array, "n n"], right: Float[Array, " n *k"]
) -> Float[Array, " n *k"]:
    """L^-1 right for lower triangular L, for one vector or the columns of a matrix."""
    index = jnp.arange(lower.shape[0])

    def step(k, x):
        known = jnp.where(index < k, lower[k], 0.0)
        return x.at[k].set((x[k] - known @ x) / lower[k, k])

    return lax.fori_loop(0, lower.shape[0], step, right) if lower.shape[0] else right


def substitute_upper(
    lower: Float[Array, "n n"], right: Float[Array, " n *k"]
) -> Float[Array, " n *k"]:
    """L^-T right for lower triangular L, for one vector or the columns of a matrix."""
    count = lower.shape[0]
    index = jnp.arange(count)

    def step(i, x):
        k = count - 1 - i
        known = jnp.where(index > k, lower[:, k], 0.0)
        return x.at[k].set((x[k] - known @ x) / lower[k, k])

    return lax.fori_loop(0, count, step, right) if count else right
