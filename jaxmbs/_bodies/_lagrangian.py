"""Mass matrix and forces of a system that is given by its Lagrangian L(q, v, t), or by its kinetic
energy alone. With p = dL/dv Lagrange's equations dp/dt = dL/dq are

    M dv/dt = F,    M = d2L/dv2,    F = dL/dq - (dp/dq) v - dp/dt,

the last two by one derivative along the motion with v held constant."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .. import _checks
from .._custom_types import RealScalarLike, Scalar
from ._function_inertia import ForceFunction, StateEnergy, takes_time


# What M may differ by, relative to its size, where L is quadratic in v.
_ROUNDING = 1e-8


class LagrangianMass(eqx.Module):
    """M(q) = d2L/dv2, of a Lagrangian that is quadratic in v; M(q, t) of one that depends on t."""

    energy: StateEnergy

    def __call__(self, q: Float[Array, " n"]) -> Float[Array, "n n"]:
        return _mass(self.energy, q, jnp.zeros_like(q))


class RheonomicMass(eqx.Module):
    """M(q, t) = d2L/dv2, of a Lagrangian that depends on t."""

    energy: StateEnergy

    def __call__(self, q: Float[Array, " n"], t: RealScalarLike) -> Float[Array, "n n"]:
        return _mass(self.energy, q, jnp.zeros_like(q), t)


class LagrangianForce(eqx.Module):
    """F(q, v, t) of a Lagrangian, plus the forces `beside` it (without a potential)."""

    energy: StateEnergy
    beside: ForceFunction | None
    timed: bool = eqx.field(static=True)

    def __call__(
        self, q: Float[Array, " n"], v: Float[Array, " n"], t: RealScalarLike
    ) -> Float[Array, " n"]:
        time = (jnp.asarray(t, q.dtype),) if self.timed else ()

        def momentum(q: Float[Array, " n"], *time: Scalar) -> Float[Array, " n"]:
            return jax.grad(_number, argnums=2)(self.energy, q, v, *time)

        _, change = jax.jvp(momentum, (q, *time), (v, *map(jnp.ones_like, time)))
        own = jax.grad(_number, argnums=1)(self.energy, q, v, *time) - change
        return own if self.beside is None else own + self.beside(q, v, t)


def mass_of(energy: StateEnergy, what: str) -> LagrangianMass | RheonomicMass:
    """The mass matrix, as a function of q, or of q and t where the energy depends on it.

    **Raises:** `ValueError` for a value that is not a function of q and v, or of q, v and t.
    """
    return (RheonomicMass if takes_time(energy, what, ("q", "v")) else LagrangianMass)(energy)


def force_of(energy: StateEnergy, what: str, beside: ForceFunction | None) -> LagrangianForce:
    """All terms of Lagrange's equations except M dv/dt, plus the further forces.

    **Raises:** as `mass_of`.
    """
    return LagrangianForce(energy, beside, takes_time(energy, what, ("q", "v")))


def refuse_not_quadratic(energy: StateEnergy, q: Float[Array, " n"], what: str) -> None:
    """Refuse a Lagrangian whose second derivative by v depends on v next to q: its mass matrix
    would. Traced numbers are not checked.

    **Raises:** `ValueError`.
    """
    rng = np.random.default_rng(0)
    time = (jnp.asarray(0.3),) if takes_time(energy, what, ("q", "v")) else ()
    for size in (1.0, 10.0):
        near, v = (size * jnp.asarray(rng.normal(size=q.shape)) for _ in range(2))
        moving = _checks.concrete(_mass(energy, q + near, v, *time))
        still = _checks.concrete(_mass(energy, q + near, jnp.zeros_like(v), *time))
        if moving is None or still is None:
            return
        if np.all(np.isfinite(moving)) and np.all(np.isfinite(still)):
            scale = np.max(np.abs(still))
            if np.max(np.abs(moving - still)) > _ROUNDING * scale:
                raise ValueError(
                    f"{what} must be quadratic in the velocities, so that the mass matrix does not "
                    "depend on them; put what is not into force(q, v, t)."
                )


def _mass(
    energy: StateEnergy, q: Float[Array, " n"], v: Float[Array, " n"], *time: RealScalarLike
) -> Float[Array, "n n"]:
    found = jax.hessian(_number, argnums=2)(energy, q, v, *time)
    return (found + found.T) / 2


def _number(energy: Callable[..., Any], *state: Any) -> Scalar:
    """The value of the user's function, as a scalar."""
    value = jnp.asarray(energy(*state), float)
    if value.shape != ():
        raise ValueError(
            "a Lagrangian or a kinetic energy must return one number (J), got an array of shape "
            f"{list(value.shape)}."
        )
    return value
