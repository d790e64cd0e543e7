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

from ._descriptor import AbstractDescriptor
from ._proximal import ProximalCholesky
from ._pseudosolve import pseudosolve
from ._schur import SchurOperator
from ._unit_rows import unit_rows


@eqx.filter_custom_jvp
def constrained(
    descriptor: AbstractDescriptor,
    force: Float[Array, " nv"],
    offset: Float[Array, " rows"],
    solver: ProximalCholesky,
) -> tuple[Float[Array, " nv"], Float[Array, " rows"]]:
    """a and lambda for F = `force` and Gamma = `offset`.

    A `solver` that does not clean leaves rounding in the null space of C^T, which is nothing in a;
    the derivative is always that of the cleaned solution.
    """
    equations = _UnitEquations(descriptor, solver)
    multipliers = equations.multipliers(force, offset / equations.rows.scale, solver)
    return equations.motion(force, multipliers), multipliers / equations.rows.scale


@constrained.def_jvp
def _constrained_jvp(primals: Any, tangents: Any) -> Any:
    descriptor, force, offset, given = primals
    cleaning = ProximalCholesky(given.regularisation)
    equations = _UnitEquations(descriptor, cleaning)
    scale = equations.rows.scale
    multipliers = equations.multipliers(force, offset / scale, cleaning)
    motion = equations.motion(force, multipliers)
    left = offset / scale - equations.rows.apply_C(motion)

    def conditions(descriptor: AbstractDescriptor, force: Any, offset: Any) -> Any:
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
    apart = equations.multipliers(against, jnp.zeros_like(rate), given)
    change = equations.multipliers(balance, rate + apart, cleaning)
    lengthened = (change - multipliers / scale * longer) / scale
    return (motion, multipliers / scale), (equations.motion(balance, change), lengthened)


class _UnitEquations:
    """In rows of unit length, where the pseudoinverse in the metric of the diagonal of S is the
    ordinary one, whose derivative `pseudosolve` knows."""

    def __init__(self, descriptor: AbstractDescriptor, solver: ProximalCholesky):
        self.rows = unit_rows(descriptor)
        self._operator = SchurOperator(self.rows)
        self._factor = solver.init(self._operator, {})

    def multipliers(
        self,
        force: Float[Array, " nv"],
        offset: Float[Array, " rows"],
        solver: ProximalCholesky,
    ) -> Float[Array, " rows"]:
        """By any solver of the regularisation that the factor has."""
        right = self.rows.apply_C(self.rows.inverse_mass(force)) - offset
        return pseudosolve(self._operator, right, solver, self._factor)

    def motion(
        self, force: Float[Array, " nv"], multipliers: Float[Array, " rows"]
    ) -> Float[Array, " nv"]:
        return self.rows.inverse_mass(force - self.rows.apply_CT(multipliers))
