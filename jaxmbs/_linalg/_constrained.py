"""The motion that constraints allow next to a free one, at constant rank, and its derivative.

    M a + C^T lambda = F,    C a = Gamma in the sense of least squares,

lambda of least norm, all in rows of unit length: C and Gamma divided by the roots of the diagonal
of S = C M^-1 C^T. What is differentiated is that (Golub & Pereyra 1973), with e = Gamma - C a left
over where rows contradict each other:

    M da + C^T dlambda = dF - dM a - dC^T lambda,
    C da = dGamma - dC a + z,    C^T z = dC^T e,

two more solves with the same factor. The component of dlambda in the null space of C^T is left
out: multipliers that are unique have none there.
"""

from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from ._kkt import KKTSystem
from ._kkt_matrices import AbstractKKTMatrices
from ._proximal import ProximalCholesky
from ._unit_rows import unit_rows


@eqx.filter_custom_jvp
def constrained(
    descriptor: AbstractKKTMatrices,
    force: Float[Array, " nv"],
    offset: Float[Array, " rows"],
    solver: ProximalCholesky,
) -> tuple[Float[Array, " nv"], Float[Array, " rows"]]:
    """a and lambda for F = `force` and Gamma = `offset`.

    A `solver` that does not clean leaves rounding in the null space of C^T, which is nothing in a;
    the derivative is always that of the cleaned solution.
    """
    rows = unit_rows(descriptor)
    system = KKTSystem(rows, solver)
    multipliers = system.multipliers(system.unconstrained_residual(force, offset / rows.scale))
    return system.acceleration(force, multipliers), multipliers / rows.scale


@constrained.def_jvp
def _constrained_jvp(primals: Any, tangents: Any) -> Any:
    descriptor, force, offset, given = primals
    rows = unit_rows(descriptor)
    # In rows of unit length the pseudoinverse in the metric of the diagonal of S is the ordinary
    # one, whose derivative `pseudosolve` knows.
    system = KKTSystem(rows, ProximalCholesky(given.regularisation))
    multipliers = system.multipliers(system.unconstrained_residual(force, offset / rows.scale))
    motion = system.acceleration(force, multipliers)
    left = offset / rows.scale - rows.apply_C(motion)

    def conditions(descriptor: AbstractKKTMatrices, force: Any, offset: Any) -> Any:
        rows = unit_rows(descriptor)
        balance = force - rows.mass(motion) - rows.apply_CT(multipliers)
        rate = offset / rows.scale - rows.apply_C(motion)
        return balance, rate, rows.apply_CT(left), rows.scale

    met, changes = eqx.filter_jvp(conditions, (descriptor, force, offset), tangents[:3])
    # What does not change has no tangent.
    balance, rate, against, longer = (
        jnp.zeros_like(x) if change is None else change
        for x, change in zip(met, changes, strict=True)
    )
    # What the null space holds of the first one, the second removes.
    rough = system.with_solver(given)
    apart = rough.multipliers(system.unconstrained_residual(against, jnp.zeros_like(rate)))
    change = system.multipliers(system.unconstrained_residual(balance, rate + apart))
    lengthened = (change - multipliers / rows.scale * longer) / rows.scale
    return (motion, multipliers / rows.scale), (system.acceleration(balance, change), lengthened)
