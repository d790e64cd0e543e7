from typing import Any, ClassVar

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from .. import _settings
from .._custom_types import BoolScalar, Setting
from .._linalg._pivoted_qr import Pseudoinverse
from .._solution import RESULTS
from .._system import Equations
from ._mass_weighted import mass_weighted, MassWeighted
from .base import AbstractFormulation, Accelerations, outcome


# Entries of C that are this small against the largest of their row are rounding.
_ROUNDING = 1e-14


class UdwadiaKalaba(AbstractFormulation):
    """The explicit equation of motion

        dv/dt = a0 + M^-1/2 (C M^-1/2)^+ (Gamma - C a0),   a0 = M^-1 F

    (Udwadia & Kalaba 1992; Zhao et al. 2018, eq. 36), with multipliers of minimum norm.

    **Arguments:** `semidefinite`: M need only be positive semidefinite, and definite on the null
    space of C: the accelerations are unique exactly if M and C, one over the other, have full
    column rank (Udwadia & Phohomsiri 2006, Proc. R. Soc. A 462:2097). That is checked, and
    `undetermined_accelerations` names what is not determined. No further condition on F is needed:
    with full column rank there is no direction that neither M nor C^T can balance. M and F are
    replaced by M + C^T W C and F + C^T W Gamma with positive W: the solutions stay the same, since
    C dv/dt = Gamma, and the mass matrix becomes positive definite (Udwadia & Schutte 2010). The
    norm of the multipliers is measured with that matrix then.
    """

    word: ClassVar[str] = "udwadia-kalaba"
    semidefinite: bool = eqx.field(static=True)

    def __init__(self, semidefinite: Setting[bool] = False):
        self.semidefinite = _settings.flag(semidefinite, "semidefinite")

    def solve(self, equations: Equations) -> Accelerations:
        return self._solved(equations, refined=False)

    def solve_refined(self, equations: Equations) -> Accelerations:
        """`solve`, and once more what it leaves of the equations. In derivatives by the mass of a
        light part the factors of M change as 1 / m, which cancels: the second solve takes away
        what is left of that too."""
        return self._solved(equations, refined=True)

    def _solved(self, equations: Equations, refined: bool) -> Accelerations:
        if self.semidefinite:
            scaled, failure = _augmented(equations), RESULTS.acceleration_not_determined
            failed = ~(scaled.definite & _all_held(equations))
        else:
            scaled, failure = mass_weighted(equations), RESULTS.mass_matrix_not_definite
            failed = ~scaled.definite
        inverse = Pseudoinverse(scaled.matrix)

        def respond(force: Float[Array, " nv"], offset: Float[Array, " rows"]) -> tuple[Any, Any]:
            w = force + inverse.apply(offset - scaled.matrix @ force)
            multipliers = scaled.multipliers(inverse.apply_transposed(force - w))
            return scaled.acceleration(w), multipliers

        acceleration, multipliers = respond(scaled.force, scaled.offset)
        if refined:
            descriptor = equations.descriptor
            balance = equations.force - descriptor.mass(acceleration)
            balance = balance - descriptor.apply_CT(multipliers)
            rate = equations.offset - descriptor.apply_C(acceleration)
            more = respond(scaled.weigh(balance), rate / scaled.row_scale)
            acceleration, multipliers = acceleration + more[0], multipliers + more[1]
        return outcome(acceleration, multipliers, (failed, failure))


def _augmented(equations: Equations) -> MassWeighted:
    mass = equations.descriptor.mass_matrix()
    constraints = equations.descriptor.constraint_matrix()
    metric = jnp.diagonal(equations.descriptor.metric().mass_matrix())
    weighted = effective_mass(metric, constraints)[:, None] * constraints
    return MassWeighted(
        mass + constraints.T @ weighted,
        constraints,
        equations.force + weighted.T @ equations.offset,
        equations.offset,
    )


def _all_held(equations: Equations) -> BoolScalar:
    """Has each velocity mass, or an entry of C, that is more than rounding? Pivots are not
    decisive: they are relative to their columns, which have no units of their own."""
    descriptor = equations.descriptor
    mass = jnp.diagonal(descriptor.mass_matrix())
    # What the metric adds to M where that may be singular has the size of other masses.
    added = jnp.diagonal(descriptor.metric().mass_matrix()) - mass
    entries = jnp.abs(descriptor.constraint_matrix())
    largest = jnp.max(entries, axis=1, initial=0.0)[:, None]
    return jnp.all((mass > _ROUNDING * added) | jnp.any(entries > _ROUNDING * largest, axis=0))


def effective_mass(
    metric: Float[Array, " nv"], constraints: Float[Array, "rows nv"]
) -> Float[Array, " rows"]:
    """The effective mass of each row, by the diagonal of a metric in place of M. Any positive
    number will do, and this one has the right units and size. By the diagonal of M itself it would
    be nearly nothing where M has nearly none in one direction, as a link without mass whose joint
    has the inertia of a drive: rows that such a link shares would then seem to be one."""
    inverse = jnp.where(metric > 0, 1 / jnp.where(metric > 0, metric, 1.0), 0.0)
    felt = constraints**2 @ inverse
    bare = jnp.sum(constraints**2, axis=1)
    compliance = jnp.where(felt > 0, felt, jnp.where(bare > 0, bare, 1.0))
    return 1 / compliance
