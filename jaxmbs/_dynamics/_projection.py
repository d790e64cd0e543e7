"""Back onto the constraints, along the shortest way in the mass metric.

Position: q* = retract(q, d) with d = -M^-1 C_h^T S_h^+ Phi repeated, C_h the geometric rows.
Velocity: v* = v - M^-1 C^T S^+ (C v + b), all rows. S^+ has minimum norm, so redundant rows do not
disturb it.

Both take steps that have no derivative until the residual is small, and then one that has:
its derivative is (1 - M^-1 C^T S^+ C) along the state and -M^-1 C^T S^+ along the residual's
parameters, up to the size of the residual it removes. Nothing is unrolled.
"""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import lineax as lx
from jax import lax
from jaxtyping import Array, Float

from .._custom_types import BoolScalar, IntScalar, RealScalarLike, Scalar
from .._linalg import AbstractDescriptor, damped_solver, ProximalCholesky, SchurOperator
from .._system import AbstractSystem


# A step squares what is left: from here one more ends at rounding.
_SMALL = 1e-7

# Steps without a derivative at most; three are usual after a step of an integrator.
_MAX_STEPS = 20

# A projection that leaves more than this (scaled residual, for a state of size one) has failed.
# Usual is rounding; next to a singular configuration a velocity keeps more, as the way to the
# constraints is the longer the nearer it is.
MET = 1e-8


class Projected(eqx.Module):
    """A state on the constraints. `met`: did it get there?"""

    q: Float[Array, " nq"]
    v: Float[Array, " nv"]
    met: BoolScalar


def correction(
    descriptor: AbstractDescriptor,
    residual: Float[Array, " rows"],
    solver: ProximalCholesky,
) -> Float[Array, " nv"]:
    """M^-1 C^T S^+ residual: the shortest change of velocity, in the mass metric, that changes
    C v by the residual."""
    if descriptor.shape[0] == 0:
        return jnp.zeros((descriptor.shape[1],), residual.dtype)
    operator = SchurOperator(descriptor)
    solution = lx.linear_solve(operator, residual, solver, throw=False)
    return descriptor.inverse_mass(descriptor.transpose(solution.value))


def position_error(system: AbstractSystem, q: Float[Array, " nq"], t: RealScalarLike) -> Scalar:
    """The largest geometric residual, lengths relative to the characteristic length."""
    return jnp.max(jnp.abs(system.scaled_residual(q, t)), initial=0.0)


def velocity_error(
    system: AbstractSystem,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    t: RealScalarLike,
) -> Scalar:
    """The largest |C v + b|, lengths relative to the characteristic length (1/s)."""
    scale = jnp.where(system.structure.length_rows, system.characteristic_length(), 1.0)
    return jnp.max(jnp.abs(system.velocity_residual(q, v, t) / scale), initial=0.0)


def project_position(
    system: AbstractSystem,
    q: Float[Array, " nq"],
    t: RealScalarLike,
    solver: ProximalCholesky,
) -> tuple[Float[Array, " nq"], BoolScalar]:
    """The configuration on the geometric constraints next to q, and whether it was found."""
    if not system.structure.geometric.any():
        # What is left to do is to bring quaternions to unit length.
        return system.retract(q, jnp.zeros((system.structure.nv,), q.dtype)), jnp.asarray(True)
    given = (system, jnp.asarray(t, q.dtype), solver)
    projected = _approach(_position_step, _position_left, q, given)
    return projected, position_error(system, projected, t) <= MET


def project_velocity(
    system: AbstractSystem,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    t: RealScalarLike,
    solver: ProximalCholesky,
) -> tuple[Float[Array, " nv"], BoolScalar]:
    """The velocity that all constraints allow next to v, and whether it was found."""
    if not system.structure.rows:
        return v, jnp.asarray(True)
    given = (system, q, jnp.asarray(t, q.dtype), solver)
    # Geometric rows are linear in v: one step does.
    linear = system.structure.geometric.all()
    v = _velocity_step(v, given) if linear else _approach(_velocity_step, _velocity_left, v, given)
    speed = jnp.maximum(1.0, jnp.max(jnp.abs(v), initial=0.0))
    return v, velocity_error(system, q, v, t) <= MET * speed


def project(
    system: AbstractSystem,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    t: RealScalarLike,
    solver: ProximalCholesky | None = None,
) -> Projected:
    """The state on the constraints next to (q, v), in the mass metric: first the configuration,
    then the velocity. `solver`: default damped, for a state that is close already."""
    solver = damped_solver() if solver is None else solver
    q, closed = project_position(system, q, t, solver)
    v, allowed = project_velocity(system, q, v, t, solver)
    return Projected(q, v, closed & allowed)


def closer(
    system: AbstractSystem, q: Float[Array, " nq"], v: Float[Array, " nv"], t: RealScalarLike
) -> tuple[Float[Array, " nq"], Float[Array, " nv"]]:
    """Two Newton steps of q and one of v towards the constraints, from close by."""
    now, solver = jnp.asarray(t, q.dtype), damped_solver()
    if system.structure.geometric.any():
        q = lax.fori_loop(0, 2, lambda _, x: _position_step(x, (system, now, solver)), q)
    return q, _velocity_step(v, (system, q, now, solver))


def _position_step(q: Float[Array, " nq"], given: Any) -> Float[Array, " nq"]:
    system, t, solver = given
    at_rest = jnp.zeros((system.structure.nv,), q.dtype)
    descriptor = system.descriptor(q, at_rest, t)
    residual = system.position_residual(q, t)
    if not system.structure.geometric.all():
        descriptor = descriptor.keeping(system.structure.geometric)
        everywhere = jnp.zeros((descriptor.shape[0],), q.dtype)
        residual = everywhere.at[system.structure.geometric_rows].set(residual)
    return system.retract(q, -correction(descriptor, residual, solver))


def _position_left(q: Float[Array, " nq"], given: Any) -> Scalar:
    system, t, _ = given
    return position_error(system, q, t)


def _velocity_step(v: Float[Array, " nv"], given: Any) -> Float[Array, " nv"]:
    system, q, t, solver = given
    descriptor = system.descriptor(q, v, t)
    return v - correction(descriptor, system.velocity_residual(q, v, t), solver)


def _velocity_left(v: Float[Array, " nv"], given: Any) -> Scalar:
    system, q, t, _ = given
    return velocity_error(system, q, v, t)


def _approach(
    step: Callable[..., Float[Array, " n"]],
    error: Callable[..., Scalar],
    x: Float[Array, " n"],
    given: Any,
) -> Float[Array, " n"]:
    """Steps without derivative to where one more ends at rounding, and that one more."""
    arrays, rest = eqx.partition((x, given), eqx.is_array)
    start, fixed = eqx.combine(lax.stop_gradient(arrays), rest)

    def going(carry: tuple[Float[Array, " n"], IntScalar]) -> BoolScalar:
        here, count = carry
        return (error(here, fixed) > _SMALL) & (count < _MAX_STEPS)

    def move(carry: tuple[Float[Array, " n"], IntScalar]) -> tuple[Float[Array, " n"], IntScalar]:
        here, count = carry
        return step(here, fixed), count + 1

    near, _ = lax.while_loop(going, move, (start, jnp.asarray(0)))
    # The change is a constant: along x the derivative passes unchanged to the last step.
    return step(x + lax.stop_gradient(near - start), given)
