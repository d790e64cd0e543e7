import functools
import inspect
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from .. import _checks
from .._custom_types import RealScalarLike, Scalar
from .._geometry import AbstractCoordinates
from .._linalg import cholesky, cholesky_solve
from .base import AbstractBodyInertia, lagrangian_inertia_force


# Of the coordinates q, or of q, v and t; a mass of q, or of q and t; a kinetic energy or a
# Lagrangian of q and v, or of q, v and t.
EnergyFunction = Callable[[Any], RealScalarLike]
StateEnergy = (
    Callable[[Any, Any], RealScalarLike] | Callable[[Any, Any, RealScalarLike], RealScalarLike]
)
MomentFunction = Callable[[Any], Float[Array, " dim"]]
MassFunction = (
    Callable[[Any], Float[Array, "nv nv"]] | Callable[[Any, RealScalarLike], Float[Array, "nv nv"]]
)
ForceFunction = Callable[[Any, Any, RealScalarLike], Float[Array, " nv"]]


class ConstantMass(eqx.Module):
    """A mass matrix that does not change."""

    value: Float[Array, "nv nv"]

    def __call__(self, q: Float[Array, " nq"]) -> Float[Array, "nv nv"]:
        del q
        return self.value


class ConstantForce(eqx.Module):
    """A force that does not change."""

    value: Float[Array, " nv"]

    def __call__(
        self, q: Float[Array, " nq"], v: Float[Array, " nv"], t: RealScalarLike
    ) -> Float[Array, " nv"]:
        del q, v, t
        return self.value


def mass_function(given: MassFunction | Float[Array, "nv nv"] | None) -> MassFunction | None:
    """An array as what always returns it."""
    return given if given is None or callable(given) else ConstantMass(given)


def force_function(given: ForceFunction | Float[Array, " nv"] | None) -> ForceFunction | None:
    """The force as a function, likewise."""
    return given if given is None or callable(given) else ConstantForce(given)


class FunctionInertia(AbstractBodyInertia):
    """M(q) or, `timed`, M(q, t), force(q, v, t), the stored energy and the first moment of the mass
    as functions of the user's."""

    mass_function: MassFunction | None
    force_function: ForceFunction | None
    energy_function: EnergyFunction | None
    moment_function: MomentFunction | None
    coordinates: AbstractCoordinates = eqx.field(static=True)
    complete: bool = eqx.field(static=True)
    timed: bool = eqx.field(static=True)
    definite: bool = eqx.field(static=True, default=True)

    @property
    def rheonomic(self) -> bool:
        return self.timed

    @property
    def semidefinite(self) -> bool:
        return not self.definite

    @property
    def massless(self) -> bool:
        return self.mass_function is None

    @property
    def weighed(self) -> bool:
        return self.massless or self.moment_function is not None

    def mass_matrix(self, q: Float[Array, " nq"], t: Scalar) -> Float[Array, "nv nv"]:
        shape = (self.coordinates.nv,) * 2
        if self.mass_function is None:
            return jnp.zeros(shape, q.dtype)
        arguments = (q, t) if self.timed else (q,)
        return _checks.returned(self.mass_function(*arguments), shape, "mass_matrix")

    def inverse_mass_matrix(self, q: Float[Array, " nq"], t: Scalar) -> Float[Array, "nv nv"]:
        lower = cholesky(self.mass_matrix(q, t))
        return cholesky_solve(lower, jnp.eye(self.coordinates.nv, dtype=q.dtype))

    def inertia_force(
        self, q: Float[Array, " nq"], v: Float[Array, " nv"], t: Scalar
    ) -> Float[Array, " nv"]:
        if self.complete or self.massless:
            return jnp.zeros_like(v)
        return lagrangian_inertia_force(self, q, v, t)

    def internal_force(
        self, q: Float[Array, " nq"], v: Float[Array, " nv"], t: Scalar
    ) -> Float[Array, " nv"]:
        total = jnp.zeros_like(v)
        if self.force_function is not None:
            total = total + _checks.returned(self.force_function(q, v, t), v.shape, "force")
        if self.energy_function is not None:
            total = total - self._gradient(self.stored_energy, q)
        return total

    def stored_energy(self, q: Float[Array, " nq"]) -> Scalar:
        # What part of the user's force has a potential is not known.
        if self.energy_function is None:
            return jnp.zeros((), q.dtype)
        return _checks.returned(self.energy_function(q), (), "energy")

    def weight(self, q: Float[Array, " nq"], gravity: Float[Array, " dim"]) -> Float[Array, " nv"]:
        return -self._gradient(lambda x: self.potential(x, gravity), q)

    def potential(self, q: Float[Array, " nq"], gravity: Float[Array, " dim"]) -> Scalar:
        if self.moment_function is None:
            return jnp.zeros((), q.dtype)
        return -(gravity @ _checks.returned(self.moment_function(q), gravity.shape, "first_moment"))

    def _gradient(
        self, function: Callable[[Float[Array, " nq"]], Scalar], q: Float[Array, " nq"]
    ) -> Float[Array, " nv"]:
        """Along the velocities."""
        kind = self.coordinates
        still = jnp.zeros((kind.nv,), q.dtype)
        return jax.grad(lambda step: function(kind.retract(q, step)))(still)


def takes_time(
    function: Callable[..., Any] | None, what: str = "mass_matrix", state: tuple[str, ...] = ("q",)
) -> bool:
    """Is it a function of the state and t, and not of the state alone? By its signature: a further
    argument is the time if it has no default, or is called t. Of what has no signature it is
    expected.

    **Raises:** `ValueError` for what can be called in neither way.
    """
    if function is None:
        return False
    given: Any = function
    if isinstance(given, eqx.Partial):
        given = functools.partial(given.func, *given.args, **given.keywords)
    try:
        signature = inspect.signature(given)
    except (TypeError, ValueError):
        return True
    parameters = signature.parameters.values()
    ordered = [p for p in parameters if p.kind not in (p.KEYWORD_ONLY, p.VAR_KEYWORD)]
    # What takes any number of arguments has a second one too.
    ordered += [p for p in ordered if p.kind is p.VAR_POSITIONAL]
    count = len(state)
    timed = len(ordered) > count and (
        ordered[count].default is inspect.Parameter.empty or ordered[count].name == "t"
    )
    try:
        signature.bind(*(None,) * (count + timed))
    except TypeError:
        shortly = " and ".join(state)
        raise ValueError(
            f"{what} must be a function of {shortly}, or of {', '.join(state)} and t, in this "
            f"order; it is called with these alone, and its arguments are {signature}."
        ) from None
    return timed
