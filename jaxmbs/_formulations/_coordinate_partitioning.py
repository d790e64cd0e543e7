from typing import ClassVar

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float

from .._linalg import cholesky, cholesky_solve
from .._linalg._concrete_rank import RANK_TOLERANCE
from .._linalg._pivoted_qr import Pseudoinverse, reflect
from .._solution import RESULTS
from .._system import Equations
from ._mass_weighted import mass_weighted
from .base import AbstractFormulation, Accelerations, outcome


class CoordinatePartitioning(AbstractFormulation):
    """Dependent coordinates by independent ones (Wehage & Haug 1982, J. Mech. Des. 104:247).

    Pivoting on the columns of C finds dependent coordinates d whose columns C_d are independent
    and span all others. Then C_d a_d = Gamma - C_i a_i, so that

        dv/dt = a_p + B a_i,     (B^T M B) a_i = B^T (F - M a_p),

    a_p = C_d^+ Gamma in d and 0 in i, B = -C_d^+ C_i in d and 1 in i. Columns are measured by the
    roots of the diagonal of M. The multipliers are those of minimum norm that satisfy the
    dependent coordinates' equations C_d^T lambda = (F - M dv/dt)_d; the others follow.
    """

    word: ClassVar[str] = "coordinate-partitioning"

    def solve(self, equations: Equations) -> Accelerations:
        scaled = mass_weighted(equations)
        mass = equations.descriptor.mass_matrix()
        # All in coordinates that make the diagonal of M one.
        size = jnp.sqrt(jnp.diagonal(mass))
        mass = mass / size[:, None] / size[None, :]
        force = equations.force / size
        constraints = equations.descriptor.constraint_matrix()
        constraints = constraints / scaled.row_scale[:, None] / size[None, :]
        dependent = _dependent(constraints)
        chosen = jnp.where(dependent[None, :], constraints, 0.0)
        inverse = Pseudoinverse(chosen)
        units = jnp.diag(jnp.where(dependent, 0.0, 1.0))
        right = jnp.column_stack([scaled.offset, -constraints @ units])
        solved = inverse.apply_columns(right)
        particular, basis = solved[:, 0], solved[:, 1:] + units
        # The columns of dependent coordinates are empty, and their unknowns zero.
        reduced = basis.T @ mass @ basis + jnp.diag(dependent.astype(mass.dtype))
        left = basis.T @ (force - mass @ particular)
        independent = cholesky_solve(cholesky((reduced + reduced.T) / 2), left)
        acceleration = particular + basis @ independent
        # Zero columns of C_d leave the independent coordinates' equations out.
        rest = force - mass @ acceleration
        return outcome(
            acceleration / size,
            scaled.multipliers(inverse.apply_transposed(rest)),
            (~scaled.definite, RESULTS.mass_matrix_not_definite),
        )


def _dependent(constraints: Float[Array, "rows nv"]) -> Bool[Array, " nv"]:
    """The columns that pivoting takes before the rank is exhausted."""
    pivoted = reflect(lax.stop_gradient(constraints), pivoting=True)
    taken = jnp.arange(constraints.shape[1]) < pivoted.rank(RANK_TOLERANCE)
    return jnp.zeros_like(taken).at[pivoted.order].set(taken)
