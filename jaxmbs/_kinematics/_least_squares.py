"""Assembly of a mechanism whose redundant constraints contradict each other.

Where everything fits, C_h (the geometric rows of C) has rank r; parts that are a little off make
its dependent rows independent, by as little. Gauss-Newton with the whole of C_h would divide what
is off by what is off: it would go far, to where the contradiction happens to be least. So steps
are taken across the r directions in which the constraints hold the mechanism, with U_r S_r V_r^T
the nearest matrix of rank r,

    step = -V_r S_r^-1 U_r^T Phi,

and end where U_r^T Phi = 0. What is left of Phi there lies in the left null space of that matrix:
no motion makes it smaller, to first order, but along those in which the mechanism moves freely.
"""

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

from .._custom_types import BoolScalar, RealScalarLike
from .._linalg import leading
from .._solution import RESULTS
from .._system import AbstractSystem
from ._geometric_rows import scaled_geometric_matrix
from ._search import still


_MAX_STEPS = 50


def assemble_least_squares(
    system: AbstractSystem, q: Float[Array, " nq"], t: RealScalarLike, rank: int
) -> tuple[Float[Array, " nq"], RESULTS]:
    """The configuration near q in which the geometric constraints contradict each other least,
    across the `rank` directions in which they hold the mechanism where everything fits.

    Lengths count relative to the characteristic length, against angles in radians, both of what
    is left of the constraints and of the way from q, which is short where the mechanism moves
    freely. Works under `jit` and `vmap`; not differentiable.

    **Returns:** q (nq,), and `RESULTS.least_squares_not_found` where steps do not end.
    """
    unit = system.column_scale()

    def going(here: tuple[Array, Array, Array, Array]) -> BoolScalar:
        _, moved, before, count = here
        return ~still(moved, before) & (count < _MAX_STEPS)

    def step(here: tuple[Array, Array, Array, Array]) -> tuple[Array, Array, Array, Array]:
        q, moved, _, count = here
        u, s, vt = leading(scaled_geometric_matrix(system, q, t), rank)
        step = -vt.T @ ((u.T @ system.scaled_residual(q, t)) / s)
        return system.retract(q, unit * step), jnp.linalg.norm(step), moved, count + 1

    far = jnp.asarray(jnp.inf, q.dtype)
    end, moved, before, _ = lax.while_loop(going, step, (q, far, far, jnp.asarray(0)))
    found = RESULTS.where(still(moved, before), RESULTS.successful, RESULTS.least_squares_not_found)
    return end, found
