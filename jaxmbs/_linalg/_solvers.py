"""Solvers of lineax for systems of doubtful rank, and x = A^+ b with its derivatives at constant
rank.
"""

import functools
from typing import Any

import equinox as eqx
import equinox.internal as eqxi
import jax
import jax.numpy as jnp
import lineax as lx
from jax import lax
from jax.core import ShapedArray
from jaxtyping import Array, Float, Int

from .._custom_types import BoolScalar, IntScalar, RealScalarLike, Scalar
from .._limits import EXACT
from .._stop_gradient import stop_gradient
from ._kkt_matrices import AbstractFactor, dense_factor, SchurOperator


# --------------------------------------------------------------------------------------------------
# x = A^+ b by a solver of lineax, with its derivative at constant rank, also of second order.
#
# With r = b - A x and y = A'^T A^+T x (Golub & Pereyra 1973, eq. 4.12, times b),
#
#     x' = A^+ (b' - A' x + A^+T A'^T r - A y) + y.
#
# The term with r vanishes where the rows of A are independent, those with y where its columns are.
# `lineax.linear_solve` has this derivative too, but checks each solve in it by a callback into
# Python, which lives in one process: programs of derivatives could not be kept for the next one.
# --------------------------------------------------------------------------------------------------


def pseudosolve(
    operator: lx.AbstractLinearOperator,
    right: Float[Array, " m"],
    solver: lx.AbstractLinearSolver[Any],
    state: Any,
) -> Float[Array, " n"]:
    """x = A^+ b for b = `right`; `state` is what `solver.init` made of the operator. No derivative
    is taken of the state or of what the solver holds. A failed solve is NaN, and the caller
    reports it."""
    return _solved(operator, right, *stop_gradient((solver, state)))


def _solved(operator: Any, right: Any, solver: Any, state: Any) -> Array:
    size = operator.in_size()
    return eqxi.filter_primitive_bind(_pseudosolve_p, operator, right, solver, state, size)[0]


def _evaluate(operator: Any, right: Any, solver: Any, state: Any, size: int) -> tuple[Array]:
    del operator, size
    return (solver.compute(state, right, {})[0],)


def _shape(operator: Any, right: Any, solver: Any, state: Any, size: int) -> tuple[Any]:
    del operator, solver, state
    return (ShapedArray((size,), right.dtype),)


def _derivative(primals: Any, tangents: Any) -> tuple[tuple[Array], tuple[Array]]:
    operator, right, solver, state, _ = primals
    operator_change, right_change, *_ = tangents
    x = _solved(operator, right, solver, state)
    sides = [] if right_change is None else [right_change]
    outside = jnp.zeros_like(x)
    if jax.tree.leaves(operator_change):
        full = solver.assume_full_rank()
        rows, columns = operator.out_size(), operator.in_size()
        transposed, turned = operator.transpose(), solver.transpose(state, {})[0]
        left, weight = None, None
        if not full or rows > columns:
            left = right - operator.mv(x)
        if not full or columns > rows:
            weight = _solved(transposed, x, solver, turned)

        def products(operator: Any) -> list[Array | None]:
            turned = operator.transpose()
            above = [None if vector is None else turned.mv(vector) for vector in (left, weight)]
            return [operator.mv(x), *above]

        _, changes = eqx.filter_jvp(products, (operator,), (operator_change,))
        moved, of_left, of_weight = changes
        if moved is not None:
            sides.append(-moved)
        if of_left is not None:
            sides.append(_solved(transposed, of_left, solver, turned))
        if of_weight is not None:
            sides.append(-operator.mv(of_weight))
            outside = of_weight
    if not sides:
        return (x,), (outside,)
    inside = _solved(operator, sum(sides[1:], sides[0]), solver, state)
    return (x,), (inside + outside,)


def _transposed(inputs: Any, change: Any) -> Any:
    """A^+T of what comes from behind; nothing but the right-hand side is linear."""
    operator, _, solver, state, _ = inputs
    back = _solved(operator.transpose(), change[0], solver, solver.transpose(state, {})[0])
    nothing = jax.tree.map(lambda _: None, (operator, solver, state))
    return nothing[0], back, *nothing[1:], None


_pseudosolve_p = eqxi.create_vprim(
    "pseudosolve",
    eqxi.filter_primitive_def(_evaluate),
    eqxi.filter_primitive_def(_shape),
    eqxi.filter_primitive_jvp(_derivative),
    eqxi.filter_primitive_transpose(_transposed, materialise_zeros=True),
)


# --------------------------------------------------------------------------------------------------
# Symmetric positive semidefinite systems S x = b, b in the range of S, by one Cholesky factor.
#
# S + mu I is positive definite whatever the rank of S. The proximal iteration
#
#     x <- x + (S + mu I)^-1 (b - S x)  =  (S + mu I)^-1 (b + mu x),    x = 0 at first,
#
# converges to the solution of minimum norm: an eigenvector of S with eigenvalue s keeps the error
# (mu / (s + mu))^k, and the null space is never entered. S is scaled to unit diagonal D first, so
# that the norm is lambda^T D lambda and independent of units.
#
# A right-hand side leaves the range by rounding, and the null-space part of x grows by eps / mu a
# step. So does everything in a derivative. Where x itself is wanted (and not C^T x alone) K = mu (S
# + mu I)^-1, which tends to the projector on the null space when it is repeated, cleans both.
# --------------------------------------------------------------------------------------------------


# mu where multipliers are wanted, or a state is brought back onto the constraints.
REGULARISATION = 1e-8

# Solves that remove the null space from a vector.
_CLEANING = 3


class ProximalCholesky(lx.AbstractLinearSolver[AbstractFactor]):
    """Lineax solver of symmetric positive semidefinite systems; the pseudoinverse in the metric
    of the diagonal, with its derivative at constant rank.

    **Arguments:**

    - `regularisation`: mu, relative to the unit diagonal.
    - `rtol`: iterations end when the right-hand side is met to this, relative to its size.
    - `max_steps`: iterations at most.
    - `clean`: remove the null space from right-hand side and solution. Without, x may hold a part
      of about 1e-9 |x| in the null space and its derivative there is left out: enough where only
      C^T x is used.
    """

    regularisation: RealScalarLike = 1e-7
    rtol: float = 1e-14
    max_steps: int | IntScalar = 20
    clean: bool | BoolScalar = True

    def init(self, operator: lx.AbstractLinearOperator, options: dict[str, Any]) -> AbstractFactor:
        del options
        return factorise(operator, self.regularisation)

    def compute(
        self, state: AbstractFactor, vector: Float[Array, " rows"], options: dict[str, Any]
    ) -> tuple[Float[Array, " rows"], lx.RESULTS, dict[str, Any]]:
        del options
        right = vector / state.scale
        # Known beforehand, it spares the loop what cleaning needs, a quarter of its operations.
        approach = self._cleaned if self.clean is not False else self._approached
        x, steps = approach(state, right)
        return x / state.scale, lx.RESULTS.successful, {"num_steps": steps.astype(int)}

    def _approached(
        self, factor: AbstractFactor, right: Float[Array, " rows"]
    ) -> tuple[Float[Array, " rows"], Scalar]:
        """x in the scaled rows by the iteration alone, and the number of its steps."""
        mu = self.regularisation
        size = jnp.max(jnp.abs(right), initial=0.0)

        def step(carry: Any) -> Any:
            x, (_, previous, count) = carry
            solved = factor.solve(right + mu * x)
            # mu (new - x) is what is still missing of the right-hand side.
            left = mu * jnp.max(jnp.abs(solved - x), initial=0.0)
            # Not so where it is no number.
            further = (left > self.rtol * size) & (left <= 0.5 * previous)
            further = further & (count + 1 < self.max_steps)
            return solved, jnp.stack([further.astype(x.dtype), left, count + 1])

        start = jnp.asarray([1.0, jnp.inf, 0.0], right.dtype)
        x, status = lax.while_loop(
            lambda carry: carry[1][0] > 0, step, (jnp.zeros_like(right), start)
        )
        return x, status[2]

    def _cleaned(
        self, factor: AbstractFactor, right: Float[Array, " rows"]
    ) -> tuple[Float[Array, " rows"], Scalar]:
        """The same, with right-hand side and x cleaned as far as `clean` says it."""
        mu = self.regularisation
        rough = 1 - self.clean
        first = _CLEANING * rough
        # One loop holds the one copy of the solve, for all that it is needed for: programs stay
        # small. Whether to go on, what was missing, the count and the stage stand in one array: in
        # a small system each operation of its own costs as much as a solve's.

        def step(carry: Any) -> Any:
            x, right, part, status = carry
            _, previous, count, stage = status
            solving = stage == _CLEANING
            solved = factor.solve(jnp.where(solving, right + mu * x, part))
            # mu (new - x) is what is still missing of the right-hand side.
            left = mu * jnp.max(jnp.abs(solved - x), initial=0.0)
            size = jnp.max(jnp.abs(right), initial=0.0)
            count = count + solving
            met = (left <= self.rtol * size) | (left > 0.5 * previous) | ~jnp.isfinite(left)
            done = solving & (met | (count >= self.max_steps))
            part = mu * solved
            cleaned = stage == _CLEANING - 1
            right = jnp.where(cleaned, right - part, right)
            x = jnp.where(solving, solved, x)
            last = stage == 2 * _CLEANING
            x = jnp.where(last, x - part, x)
            part = jnp.where(solving, x, part)
            end = last | (done & (rough > 0))
            stage = jnp.where(solving & ~done, stage, stage + 1)
            left = jnp.where(solving, left, jnp.inf)
            status = jnp.stack([(~end).astype(x.dtype), left, count, stage])
            return x, right, part, status

        start = jnp.asarray([1.0, jnp.inf, 0.0, first], right.dtype)
        x, _, _, status = lax.while_loop(
            lambda carry: carry[3][0] > 0, step, (jnp.zeros_like(right), right, right, start)
        )
        return x, status[2]

    def transpose(
        self, state: AbstractFactor, options: dict[str, Any]
    ) -> tuple[AbstractFactor, dict[str, Any]]:
        return state, options

    def conj(
        self, state: AbstractFactor, options: dict[str, Any]
    ) -> tuple[AbstractFactor, dict[str, Any]]:
        return state, options

    def assume_full_rank(self) -> bool:
        return not self.clean


def motion_solver() -> ProximalCholesky:
    """The solver where only C^T x is used: accelerations and projections.

    Next to a singular configuration x grows as 1 / sigma while C^T x stays finite, and singular
    values below sqrt(mu) are left out. What collects in the null space does not matter here,
    so mu is smaller: the motion is disturbed only within about 3e-5 of a passage.
    """
    return ProximalCholesky(regularisation=1e-9, clean=False)


def damped_solver() -> ProximalCholesky:
    """The solver that brings a state back which has left the constraints a little.

    Two steps reach singular values far above 1e-4. Along smaller ones nothing is moved: the
    residual there is as much smaller than the distance, and rounding divided by such a value
    would be the larger error.
    """
    return ProximalCholesky(regularisation=REGULARISATION, max_steps=2, clean=False)


@functools.singledispatch
def factorise(
    operator: lx.AbstractLinearOperator, regularisation: RealScalarLike
) -> AbstractFactor:
    """The factor of D^-1/2 S D^-1/2 + mu I of a positive semidefinite operator."""
    if not lx.is_positive_semidefinite(operator):
        raise ValueError(
            "ProximalCholesky solves positive semidefinite systems only; tag the operator with "
            "lineax.positive_semidefinite_tag, or use PivotedQR."
        )
    return dense_factor(operator.as_matrix(), regularisation)


@factorise.register
def _(operator: SchurOperator, regularisation: RealScalarLike) -> AbstractFactor:
    return operator.descriptor.factor(regularisation)


# --------------------------------------------------------------------------------------------------
# Pseudoinverses with the rank as data, by a complete orthogonal decomposition.
#
#     A E = Q R,  R cut off below its rank,  R^T = Z T,   so that   A = Q T^T (E Z)^T,
#
# Q and E Z with orthonormal columns and T^T lower triangular (Golub & Van Loan 2013, section
# 5.5.7): the solution of minimum norm of a least-squares problem is E Z T^-T Q^T b. Columns beyond
# the rank are zero and the diagonal of T is 1 there, so that no shape depends on the rank.
#
# The reflections are plain array operations and not LAPACK's: a derivative solves several times
# with one decomposition, two questions make two of them, and LAPACK calls that do not depend on
# each other may deadlock in one compiled function (see `_cholesky`).
# --------------------------------------------------------------------------------------------------


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

    rcond: float = EXACT.rank

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

    def __init__(self, matrix: Float[Array, "m n"], rcond: float = EXACT.rank):
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
