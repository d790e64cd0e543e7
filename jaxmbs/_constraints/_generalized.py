"""Conditions on the own coordinates of bodies that have such."""

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, TypeAlias

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from .. import _checks
from .._custom_types import RealScalarLike
from .._geometry import ANGLE, Quantity
from ._fields import JOINT_NAME, labels_of
from ._primitives import PositionCondition, VelocityCondition
from .base import AbstractJoint, AbstractPrimitive, Frames, Row, Twists


# Of one body q is an array (n,), of several a tuple of such; likewise v.
ConditionFunction: TypeAlias = Callable[[Any, RealScalarLike], Float[Array, " rows"]]
VelocityConditionFunction: TypeAlias = Callable[[Any, Any, RealScalarLike], Float[Array, " rows"]]


class OfCoordinates(eqx.Module):
    """A function of q and t as one of frames."""

    function: ConditionFunction

    def __call__(self, frames: Frames, t: RealScalarLike) -> Float[Array, " rows"]:
        return jnp.atleast_1d(self.function(one_or_all([f.values for f in frames]), t))


class OfVelocities(eqx.Module):
    """A function of q, v and t as one of frames and twists."""

    function: VelocityConditionFunction

    def __call__(self, frames: Frames, twists: Twists, t: RealScalarLike) -> Float[Array, " rows"]:
        q, v = one_or_all([f.values for f in frames]), one_or_all([w.rates for w in twists])
        return jnp.atleast_1d(self.function(q, v, t))


class Condition(AbstractJoint):
    """Rows on the coordinates of a generalized body, or of several.

    **Arguments:**

    - `bodies`: their names, or one. `function(q, t)`: residual (rows,), zero when satisfied; q is
      the body's array (n,), of several bodies a tuple of these. An `eqx.Module` with array fields
      makes them parameters of the system.
    - `rows`: how many, or their suffixes. `quantity`: what the residual measures.
    """

    kind: ClassVar[str] = "condition"
    located: ClassVar[bool] = False
    name: str = eqx.field(static=True)
    bodies: tuple[str, ...] = eqx.field(static=True)
    function: ConditionFunction
    labels: tuple[Row, ...] = eqx.field(static=True)

    def __init__(
        self,
        name: str,
        bodies: str | Sequence[str],
        function: ConditionFunction,
        *,
        rows: int | Sequence[str] = 1,
        quantity: Quantity = ANGLE,
    ):
        self.name, self.bodies, self.labels = _given(name, bodies, rows, quantity)
        self.function = _checks.function(function, "function")

    def placements(self, references: Frames) -> Frames:
        return own_coordinates(self.bodies, references)

    def primitives(self) -> tuple[AbstractPrimitive, ...]:
        return (PositionCondition(OfCoordinates(self.function), self.labels),)


class RateCondition(AbstractJoint):
    """Rows on the velocities of a generalized body, or of several.

    **Arguments:** as `Condition`, with `function(q, v, t)`, linear, affine or nonlinear in v.
    """

    kind: ClassVar[str] = "rate condition"
    located: ClassVar[bool] = False
    name: str = eqx.field(static=True)
    bodies: tuple[str, ...] = eqx.field(static=True)
    function: VelocityConditionFunction
    labels: tuple[Row, ...] = eqx.field(static=True)

    def __init__(
        self,
        name: str,
        bodies: str | Sequence[str],
        function: VelocityConditionFunction,
        *,
        rows: int | Sequence[str] = 1,
        quantity: Quantity = ANGLE,
    ):
        self.name, self.bodies, self.labels = _given(name, bodies, rows, quantity)
        self.function = _checks.function(function, "function")

    def placements(self, references: Frames) -> Frames:
        return own_coordinates(self.bodies, references)

    def primitives(self) -> tuple[AbstractPrimitive, ...]:
        return (VelocityCondition(OfVelocities(self.function), self.labels),)


def _given(
    name: str, bodies: str | Sequence[str], rows: int | Sequence[str], quantity: Quantity
) -> tuple[str, tuple[str, ...], tuple[Row, ...]]:
    """The name, the bodies and the rows of a condition, checked."""
    return JOINT_NAME(name), _checks.body_names(bodies, None), labels_of(rows, quantity)


def one_or_all(arrays: Sequence[Any]) -> Any:
    """The array of one body, those of several."""
    return arrays[0] if len(arrays) == 1 else tuple(arrays)


def own_coordinates(bodies: Sequence[str], references: Frames) -> Frames:
    """The references, which have to be coordinates.

    **Raises:** `ValueError` for a body that is held at frames alone.
    """
    for name, frame in zip(bodies, references, strict=True):
        if frame.dimension is not None:
            raise ValueError(
                f"{_checks.shown(name)} is a frame; name a generalized body, whose coordinates are "
                "meant."
            )
    return references
