import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from .._custom_types import RealScalarLike
from ._kkt_matrices import AbstractFactor, AbstractKKTMatrices, DampedInverse, RowMask
from ._null_projector import NullProjector, Rows


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
