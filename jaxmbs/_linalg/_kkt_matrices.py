"""The coefficient matrices of the descriptor form at one state, their rows in units of their
length, and S.
"""

import abc
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import lineax as lx
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float

from .._custom_types import RealScalarLike
from ._null_projector import NullProjector, Rows


# --------------------------------------------------------------------------------------------------
# Cholesky factors of small symmetric positive definite matrices without LAPACK.
#
# LAPACK calls that do not depend on each other may wait for each other for ever in one compiled
# function (jaxlib 0.10 on two cores), and one call per small matrix costs more than its
# arithmetic. These are loops over columns in plain array operations: they batch, differentiate and
# run on any device.
# --------------------------------------------------------------------------------------------------


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


# --------------------------------------------------------------------------------------------------
# The coefficient matrices of the descriptor form at one state, and how to solve with them.
#
#     [ M  C^T ] [ dv/dt  ]   [ F     ]
#     [ C   0  ] [ lambda ] = [ Gamma ]
#
# A question needs products with M, M^-1, C and C^T and a factor of S = C M^-1 C^T, and never the
# matrices themselves, so that a system may keep them in blocks.
# --------------------------------------------------------------------------------------------------


# Which rows are meant; known beforehand or not.
RowMask = Bool[np.ndarray, " rows"] | Bool[Array, " rows"]


class AbstractFactor(eqx.Module):
    """A factor of D^-1/2 S D^-1/2 + mu I, with D the diagonal of S (1 where that is zero)."""

    scale: eqx.AbstractVar[Float[Array, " rows"]]

    @abc.abstractmethod
    def solve(self, right: Float[Array, " rows"]) -> Float[Array, " rows"]:
        """(D^-1/2 S D^-1/2 + mu I)^-1 right, all in the scaled rows."""


# Multipliers and the motion that follows from them, for rates of the rows.
DampedInverse = Callable[[Float[Array, " rows"]], tuple[Float[Array, " rows"], Float[Array, " nv"]]]


class AbstractKKTMatrices(eqx.Module):
    """M and C at one state."""

    @property
    @abc.abstractmethod
    def shape(self) -> tuple[int, int]:
        """(rows, nv)."""

    @property
    @abc.abstractmethod
    def semidefinite(self) -> bool:
        """Need M only be positive semidefinite? Then `inverse_mass`, and with it S, are those of a
        positive definite matrix in its place: good as a metric, which any such matrix is, and for
        nothing else."""

    @abc.abstractmethod
    def metric(self) -> "AbstractKKTMatrices":
        """The same with the positive definite matrix for M whose inverse is `inverse_mass`."""

    @abc.abstractmethod
    def mass(self, v: Float[Array, " nv"]) -> Float[Array, " nv"]:
        """M v."""

    @abc.abstractmethod
    def inverse_mass(self, force: Float[Array, " nv"]) -> Float[Array, " nv"]:
        """M^-1 f; that of the metric where M is `semidefinite`."""

    @abc.abstractmethod
    def apply_C(self, v: Float[Array, " nv"]) -> Float[Array, " rows"]:
        """C v."""

    @abc.abstractmethod
    def apply_CT(self, multipliers: Float[Array, " rows"]) -> Float[Array, " nv"]:
        """C^T lambda."""

    @abc.abstractmethod
    def mask_rows(self, rows: RowMask) -> "AbstractKKTMatrices":
        """The same with all other rows of C set to zero."""

    @abc.abstractmethod
    def scale_columns(self, columns: Float[Array, " nv"]) -> "AbstractKKTMatrices":
        """The same with the columns of C multiplied by these numbers."""

    @abc.abstractmethod
    def schur_diagonal(self) -> Float[Array, " rows"]:
        """The diagonal of S."""

    def row_scale(self) -> Float[Array, " rows"]:
        """The roots of the diagonal of S, the lengths of the rows of C M^-1/2; 1 where that is
        zero."""
        diagonal = self.schur_diagonal()
        return jnp.sqrt(jnp.where(diagonal > 0, diagonal, 1.0))

    @abc.abstractmethod
    def factor(self, regularisation: RealScalarLike) -> AbstractFactor:
        """The factor for mu = `regularisation`."""

    @abc.abstractmethod
    def damped_inverse(self, regularisation: RealScalarLike) -> DampedInverse:
        """The function of `right` (rows,) that solves with S + mu D: y = (S + mu D)^-1 right with D
        the diagonal of S, 1 where that is zero, and M^-1 C^T y. Fast under `vmap`; without a
        derivative."""

    @abc.abstractmethod
    def null_projector(
        self, columns: Float[Array, " nv"], sets: Rows, regularisation: RealScalarLike
    ) -> NullProjector:
        """Blocks, on sets of rows, of the projector on the left null space of C with its columns
        multiplied by `columns` and its rows made of unit length; M has no part in it. Fast under
        `vmap`."""

    @abc.abstractmethod
    def mass_matrix(self) -> Float[Array, "nv nv"]:
        """M, dense."""

    @abc.abstractmethod
    def constraint_matrix(self) -> Float[Array, "rows nv"]:
        """C, dense."""


def damped_inverse(matrices: AbstractKKTMatrices, regularisation: RealScalarLike) -> DampedInverse:
    """`AbstractKKTMatrices.damped_inverse` by the factor of one state."""
    factor = matrices.factor(regularisation)

    def response(right: Float[Array, " rows"]) -> tuple[Array, Array]:
        multipliers = factor.solve(right / factor.scale) / factor.scale
        return multipliers, matrices.inverse_mass(matrices.apply_CT(multipliers))

    return response


class DenseFactor(AbstractFactor):
    """One Cholesky factor."""

    scale: Float[Array, " rows"]
    lower: Float[Array, "rows rows"]

    def solve(self, right: Float[Array, " rows"]) -> Float[Array, " rows"]:
        return cholesky_solve(self.lower, right)


def dense_factor(matrix: Float[Array, "rows rows"], regularisation: RealScalarLike) -> DenseFactor:
    """The factor of S as a matrix."""
    diagonal = jnp.diagonal(matrix)
    scale = jnp.sqrt(jnp.where(diagonal > 0, diagonal, 1.0))
    scaled = matrix / scale[:, None] / scale[None, :]
    shift = jnp.where(diagonal > 0, regularisation, 1.0)
    return DenseFactor(scale, cholesky(scaled + jnp.diag(shift)))


class SchurOperator(lx.AbstractLinearOperator):
    """S = C M^-1 C^T of a descriptor as a lineax operator, never formed for a product."""

    descriptor: AbstractKKTMatrices

    def mv(self, vector: Float[Array, " rows"]) -> Float[Array, " rows"]:
        descriptor = self.descriptor
        return descriptor.apply_C(descriptor.inverse_mass(descriptor.apply_CT(vector)))

    def as_matrix(self) -> Float[Array, "rows rows"]:
        rows = self.descriptor.shape[0]
        return jax.vmap(self.mv)(jnp.eye(rows))

    def transpose(self) -> "SchurOperator":
        return self

    def in_structure(self) -> jax.ShapeDtypeStruct:
        leaf = jax.tree.leaves(eqx.filter(self.descriptor, eqx.is_inexact_array))[0]
        return jax.ShapeDtypeStruct((self.descriptor.shape[0],), leaf.dtype)

    def out_structure(self) -> jax.ShapeDtypeStruct:
        return self.in_structure()


def _register() -> None:
    """Registration of the operator's properties with lineax."""
    answers: dict[Any, Any] = {
        lx.is_symmetric: True,
        lx.is_positive_semidefinite: True,
        lx.is_negative_semidefinite: False,
        lx.is_diagonal: False,
        lx.is_tridiagonal: False,
        lx.has_unit_diagonal: False,
        lx.is_lower_triangular: False,
        lx.is_upper_triangular: False,
    }
    for question, answer in answers.items():
        question.register(SchurOperator)(lambda operator, answer=answer: answer)
    for same in (lx.linearise, lx.conj):
        same.register(SchurOperator)(lambda operator: operator)
    lx.materialise.register(SchurOperator)(
        lambda operator: lx.MatrixLinearOperator(operator.as_matrix(), lx.positive_semidefinite_tag)
    )
    lx.diagonal.register(SchurOperator)(lambda operator: jnp.diagonal(operator.as_matrix()))


_register()


class UnitRows(AbstractKKTMatrices):
    """A descriptor with its rows divided by `scale` (rows,), the roots of the diagonal of S, so
    that S has the diagonal 1."""

    inner: AbstractKKTMatrices
    scale: Float[Array, " rows"]

    @property
    def shape(self) -> tuple[int, int]:
        return self.inner.shape

    @property
    def semidefinite(self) -> bool:
        return self.inner.semidefinite

    def metric(self) -> "UnitRows":
        return UnitRows(self.inner.metric(), self.scale)

    def mass(self, v: Float[Array, " nv"]) -> Float[Array, " nv"]:
        return self.inner.mass(v)

    def inverse_mass(self, force: Float[Array, " nv"]) -> Float[Array, " nv"]:
        return self.inner.inverse_mass(force)

    def apply_C(self, v: Float[Array, " nv"]) -> Float[Array, " rows"]:
        return self.inner.apply_C(v) / self.scale

    def apply_CT(self, multipliers: Float[Array, " rows"]) -> Float[Array, " nv"]:
        return self.inner.apply_CT(multipliers / self.scale)

    def mask_rows(self, rows: RowMask) -> "UnitRows":
        return UnitRows(self.inner.mask_rows(rows), self.scale)

    def scale_columns(self, columns: Float[Array, " nv"]) -> "UnitRows":
        return UnitRows(self.inner.scale_columns(columns), self.scale)

    def schur_diagonal(self) -> Float[Array, " rows"]:
        return self.inner.schur_diagonal() / self.scale**2

    def factor(self, regularisation: RealScalarLike) -> AbstractFactor:
        factor = self.inner.factor(regularisation)
        return eqx.tree_at(lambda f: f.scale, factor, jnp.ones_like(factor.scale))

    def damped_inverse(self, regularisation: RealScalarLike) -> DampedInverse:
        inner = self.inner.damped_inverse(regularisation)

        def response(right: Float[Array, " rows"]) -> tuple[Array, Array]:
            multipliers, motion = inner(right * self.scale)
            return multipliers * self.scale, motion

        return response

    def null_projector(
        self, columns: Float[Array, " nv"], sets: Rows, regularisation: float
    ) -> NullProjector:
        return self.inner.null_projector(columns, sets, regularisation)

    def mass_matrix(self) -> Float[Array, "nv nv"]:
        return self.inner.mass_matrix()

    def constraint_matrix(self) -> Float[Array, "rows nv"]:
        return self.inner.constraint_matrix() / self.scale[:, None]


def unit_rows(descriptor: AbstractKKTMatrices) -> UnitRows:
    """The same in rows of unit length in the metric of M^-1."""
    return UnitRows(descriptor, descriptor.row_scale())


def normalise_rows(
    matrix: Float[Array, "rows columns"],
) -> tuple[Float[Array, "rows columns"], Float[Array, " rows"]]:
    """The matrix with rows of unit length, and the lengths; zero rows stay, with length 1.

    Rows are first divided by their largest entry, so that rows of millimetres and kilometres
    neither overflow nor vanish when squared.
    """
    largest = jnp.max(jnp.abs(matrix), axis=1, initial=0.0)
    largest = jnp.where(largest > 0, largest, 1.0)
    length = largest * jnp.linalg.norm(matrix / largest[:, None], axis=1)
    length = jnp.where(length > 0, length, 1.0)
    return matrix / length[:, None], length


def directional_derivative(function: Callable[[Any], Any], primal: Any, tangent: Any) -> Any:
    """Derivative of a function whose results are floating-point arrays, along a tangent in which
    None marks what does not change. Results that do not change have the derivative zero, not None:
    linear solvers cannot be transposed without it."""
    value, change = eqx.filter_jvp(function, (primal,), (tangent,))
    return jax.tree.map(
        lambda x, dx: jnp.zeros_like(x) if dx is None else dx,
        value,
        change,
        is_leaf=lambda x: x is None,
    )
