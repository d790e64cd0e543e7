import abc
from collections.abc import Callable
from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from .._custom_types import BoolScalar, RealScalarLike, Scalar
from .._system import AbstractSystem


EventFunction = Callable[
    [AbstractSystem, Float[Array, " nq"], Float[Array, " nv"], RealScalarLike], Scalar
]


class AbstractEvent(eqx.Module):
    """A reason to end a run early. `needs_monitor`: it depends on the passages."""

    needs_monitor: ClassVar[bool]

    @abc.abstractmethod
    def condition(
        self,
        system: AbstractSystem,
        q: Float[Array, " nq"],
        v: Float[Array, " nv"],
        passages: Scalar,
        t: RealScalarLike,
    ) -> Scalar | BoolScalar:
        """A real number whose change of sign ends the run there, or a boolean that ends it
        after the step."""


class StopWhen(AbstractEvent):
    """Stop where `function(system, q, v, t)` crosses zero (either way)."""

    needs_monitor: ClassVar[bool] = False
    function: EventFunction

    def condition(
        self,
        system: AbstractSystem,
        q: Float[Array, " nq"],
        v: Float[Array, " nv"],
        passages: Scalar,
        t: RealScalarLike,
    ) -> Scalar | BoolScalar:
        del passages
        return jnp.asarray(self.function(system, q, v, t), q.dtype)


class StopAtSingular(AbstractEvent):
    """Stop at the first singular configuration that the motion passes, where the rank of C
    drops and the mobility changes."""

    needs_monitor: ClassVar[bool] = True

    def condition(
        self,
        system: AbstractSystem,
        q: Float[Array, " nq"],
        v: Float[Array, " nv"],
        passages: Scalar,
        t: RealScalarLike,
    ) -> Scalar | BoolScalar:
        del system, q, v, t
        return passages > 0.5
