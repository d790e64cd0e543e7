"""Can all constraints that are given at acceleration level be met?

Those of positions and velocities can at a state that satisfies them. Servo constraints, and rows of
accelerations alone, may contradict the others or each other: formulations then return the
accelerations with the least residual.
"""

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from .._custom_types import BoolScalar, Scalar
from .._formulations import Accelerations
from .._solution import RESULTS
from .._system import AbstractSystem, Equations


# What is left of C dv/dt = Gamma where the rows can be met: relative to the largest of these
# accelerations, and in 1/s^2, lengths relative to the characteristic length.
MET = 1e-6
ROUNDING = 1e-10


def acceleration_residual(
    system: AbstractSystem, equations: Equations, acceleration: Float[Array, " nv"]
) -> Float[Array, " rows"]:
    """C dv/dt - Gamma in units of what counts as one in each row; zero in rows of positions and
    velocities."""
    descriptor = equations.descriptor
    left = (descriptor.apply_C(acceleration) - equations.offset) / system.residual_scale()
    return jnp.where(system.structure.velocity_level, 0.0, left)


def check_acceleration_rows(
    system: AbstractSystem, equations: Equations, found: Accelerations
) -> Accelerations:
    """The result, with a failure where rows at acceleration level are not satisfied."""
    if system.structure.velocity_level.all():
        return found
    met = _are_met(system, equations, found.acceleration)
    failed = RESULTS.where(met, RESULTS.successful, RESULTS.accelerations_contradict)
    # Whatever else is made of an error that is not a number follows from it.
    held = system.structure.velocity_level
    unknown = jnp.any(jnp.where(held, False, jnp.isnan(equations.offset)))
    result = RESULTS.where(found.result == RESULTS.successful, failed, found.result)
    known = jnp.all(jnp.where(held, jnp.isfinite(equations.offset), True))
    unknown = unknown & known & jnp.all(jnp.isfinite(equations.force))
    result = RESULTS.where(unknown, RESULTS.servo_error_unknown, result)
    return Accelerations(found.acceleration, found.multipliers, result)


def _are_met(
    system: AbstractSystem, equations: Equations, acceleration: Float[Array, " nv"]
) -> BoolScalar:
    limit = MET * _largest(system, equations) + ROUNDING
    left = acceleration_residual(system, equations, acceleration)
    # What is not a number has a result of its own.
    return ~(jnp.max(jnp.abs(left), initial=0.0) > limit)


def _largest(system: AbstractSystem, equations: Equations) -> Scalar:
    """Accelerations that the rows prescribe, and those without the rows."""
    descriptor, scale = equations.descriptor, system.residual_scale()
    free = descriptor.apply_C(descriptor.metric().inverse_mass(equations.force))
    sizes = (jnp.abs(equations.offset) + jnp.abs(free)) / scale
    return jnp.max(sizes, initial=0.0)


def contradicting_rows(
    system: AbstractSystem,
    equations: Equations,
    acceleration: Float[Array, " nv"],
    met: float = MET,
) -> Bool[Array, " rows"]:
    """Rows, of all levels, that accelerations violate by more than a part `met` of the largest.

    Rows of positions and velocities too: what two drivers prescribe may agree in both and not in
    accelerations. NaN has a result of its own, and is not a contradiction.
    """
    left = equations.descriptor.apply_C(acceleration) - equations.offset
    limit = met * _largest(system, equations) + ROUNDING
    return jnp.abs(left / system.residual_scale()) > limit
