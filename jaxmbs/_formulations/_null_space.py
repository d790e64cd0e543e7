from typing import ClassVar

import jax.numpy as jnp

from .._linalg import cholesky, cholesky_solve
from .._linalg._pivoted_qr import Pseudoinverse
from .._solution import RESULTS
from .._system import Equations
from ._mass_weighted import mass_weighted
from .base import AbstractFormulation, Accelerations, outcome


class NullSpace(AbstractFormulation):
    """The equations projected on the velocities that the constraints allow.

    With Z a basis of the null space of C and a_p a particular solution of C a_p = Gamma,

        dv/dt = a_p + Z u,     (Z^T M Z) u = Z^T (F - M a_p)

    (Wojtyra & Fraczek 2013, eq. 13; Garcia de Jalon & Bayo 1994), and the multipliers follow from
    C^T lambda = F - M dv/dt by least squares: those of minimum norm. Z has nv columns, those
    beyond the mobility are zero.
    """

    word: ClassVar[str] = "null-space"

    def solve(self, equations: Equations) -> Accelerations:
        scaled = mass_weighted(equations)
        mass, force = equations.descriptor.mass_matrix(), equations.force
        inverse = Pseudoinverse(scaled.matrix)
        # A basis Z0 of the null space of J at this state; Z0 - J^+ J Z0, with Z0 held, is one at
        # neighbouring states: that has a derivative, a decomposition has none.
        start = inverse.null_space
        right = jnp.column_stack([scaled.offset, -scaled.matrix @ start])
        solved = inverse.apply_columns(right) + jnp.pad(start, ((0, 0), (1, 0)))
        solved = scaled.acceleration(solved)
        particular, basis = solved[:, 0], solved[:, 1:]
        # The first columns are empty, and their unknowns zero.
        empty = jnp.where(jnp.arange(mass.shape[0]) < inverse.rank, 1.0, 0.0)
        reduced = basis.T @ mass @ basis + jnp.diag(empty)
        left = basis.T @ (force - mass @ particular)
        along = cholesky_solve(cholesky((reduced + reduced.T) / 2), left)
        acceleration = particular + basis @ along
        rest = scaled.weigh(force - mass @ acceleration)
        return outcome(
            acceleration,
            scaled.multipliers(inverse.apply_transposed(rest)),
            (~scaled.definite, RESULTS.mass_matrix_not_definite),
        )
