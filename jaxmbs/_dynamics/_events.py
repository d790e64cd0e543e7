import abc
from collections.abc import Callable
from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from .. import _settings
from .._custom_types import BoolScalar, RealScalarLike, Scalar, Setting
from .._system import AbstractSystem
from ._trajectory import Trajectory


EventFunction = Callable[
    [AbstractSystem, Float[Array, " nq"], Float[Array, " nv"], RealScalarLike], Scalar
]


class AbstractEvent(eqx.Module):
    """A reason to end a run early. `needs_monitor`: it depends on the passages. `within`: it ends
    the run within a step, not with it."""

    needs_monitor: ClassVar[bool]
    within: ClassVar[bool]

    @abc.abstractmethod
    def reason(self, trajectory: Trajectory) -> str:
        """Explanation of the event at the end of this trajectory, and what to try: sentences that
        follow "The run was stopped at ... s: "."""

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
    within: ClassVar[bool] = True
    function: EventFunction

    def __init__(self, function: Setting[EventFunction]):
        self.function = _settings.function(
            function,
            "function",
            "a function (system, q, v, t) to a number that crosses zero",
            "system, q, v, t",
        )

    def reason(self, trajectory: Trajectory) -> str:
        del trajectory
        name = getattr(self.function, "__name__", type(self.function).__name__)
        return (
            f"{name!r} crossed zero. For the motion behind it leave this event out, or start "
            "another run from the last state."
        )

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
    drops and the mobility changes.

    The run ends with the step that crossed it, not in it: there constraints do not determine the
    motion, and the accuracy of states decreases towards it. `passages[0]` is the time of the
    configuration itself, interpolated within that step. A motion that comes very near one may be
    stopped too; then it has no `passages`, and `message` states that.
    """

    needs_monitor: ClassVar[bool] = True
    within: ClassVar[bool] = False

    def reason(self, trajectory: Trajectory) -> str:
        if not int(trajectory.passage_count):
            return (
                "the motion came near a singular configuration within the last step. A closer "
                "look tells that it does not pass it; for the motion behind it leave "
                "StopAtSingular out, or start another run from the last state."
            )
        near = "" if trajectory.passed else " (or came near one, which could not be told)"
        when = f"{float(trajectory.passages[0]):.6g} s"
        return (
            f"the motion passed a singular configuration{near} at {when}, within the last step. "
            "There the mobility changes (`singularity` tells how); for the "
            "motion behind it leave StopAtSingular out."
        )

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
