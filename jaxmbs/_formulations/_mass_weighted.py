"""The equations in coordinates in which mass is 1 and rows have length 1.

With M = L L^T, w = L^T dv/dt, D the diagonal of S = C M^-1 C^T and mu = D^1/2 lambda,

    w + J^T mu = w0      J w = g      J = D^-1/2 C L^-T,  w0 = L^-1 F,  g = D^-1/2 Gamma.

L^-T replaces M^-1/2: the two differ by a rotation of w, which changes no
pseudoinverse (C M^-1/2)^+ but for that rotation. J has no units.
"""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from .._custom_types import BoolScalar
from .._linalg import cholesky
from .._linalg._pivoted_qr import substitute_lower, substitute_upper
from .._system import Equations


# A pivot of M this small against the diagonal of M is rounding.
_DEFINITE = 1e-12


class MassWeighted(eqx.Module):
    """`lower` L (nv, nv), `matrix` J (rows, nv), `row_scale` D^1/2 (rows,), `force` w0 (nv,),
    `offset` g (rows,), `definite`: is M positive definite."""

    lower: Float[Array, "nv nv"]
    matrix: Float[Array, "rows nv"]
    row_scale: Float[Array, " rows"]
    force: Float[Array, " nv"]
    offset: Float[Array, " rows"]
    definite: BoolScalar

    def __init__(
        self,
        mass: Float[Array, "nv nv"],
        constraints: Float[Array, "rows nv"],
        force: Float[Array, " nv"],
        offset: Float[Array, " rows"],
    ):
        self.lower = cholesky(mass)
        both = substitute_lower(self.lower, jnp.column_stack([constraints.T, force]))
        half, self.force = both[:, :-1].T, both[:, -1]
        # A row of zeros keeps the length 1.
        squares = jnp.sum(half**2, axis=1)
        self.row_scale = jnp.sqrt(jnp.where(squares > 0, squares, 1.0))
        self.matrix = half / self.row_scale[:, None]
        self.offset = offset / self.row_scale
        pivots = jnp.diagonal(self.lower) ** 2
        least = max(_DEFINITE, float(jnp.finfo(mass.dtype).eps))
        self.definite = jnp.all(pivots > least * jnp.diagonal(mass))

    def acceleration(self, w: Float[Array, " nv *k"]) -> Float[Array, " nv *k"]:
        """dv/dt = L^-T w, for one vector or the columns of a matrix."""
        return substitute_upper(self.lower, w)

    def weigh(self, force: Float[Array, " nv *k"]) -> Float[Array, " nv *k"]:
        """L^-1 f of a generalized force f, or of the columns of a matrix."""
        return substitute_lower(self.lower, force)

    def multipliers(self, mu: Float[Array, " rows"]) -> Float[Array, " rows"]:
        """lambda = D^-1/2 mu."""
        return mu / self.row_scale


def mass_weighted(equations: Equations) -> MassWeighted:
    """The equations as they are."""
    descriptor = equations.descriptor
    return MassWeighted(
        descriptor.mass_matrix(),
        descriptor.constraint_matrix(),
        equations.force,
        equations.offset,
    )
