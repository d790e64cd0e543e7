"""The coefficient matrices of the descriptor form at one state, and how to solve with them.

    [ M  C^T ] [ dv/dt  ]   [ F     ]
    [ C   0  ] [ lambda ] = [ Gamma ]

A question needs products with M, M^-1, C and C^T and a factor of S = C M^-1 C^T, and never the
matrices themselves, so that a system may keep them in blocks.
"""

import abc
from collections.abc import Callable

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from .._custom_types import RealScalarLike
from ._cholesky import cholesky, cholesky_solve
from ._null_projector import NullProjector, Rows


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
