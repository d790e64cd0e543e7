from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from ... import _checks
from ..._custom_types import RealScalarLike, Scalar
from ..base import (
    AbstractGeometricPrimitive,
    AbstractVelocityPrimitive,
    Frames,
    PositionFunction,
    Row,
    Twists,
    VelocityFunction,
)


class PositionCondition(AbstractGeometricPrimitive):
    """A user's function of marker frames and time; a Module's arrays are its parameters."""

    function: PositionFunction
    labels: tuple[Row, ...] = eqx.field(static=True)

    @property
    def rows(self) -> tuple[Row, ...]:
        return self.labels

    def position(self, frames: Frames, t: RealScalarLike) -> Float[Array, " geometric"]:
        result = self.function(frames, t)
        return _checks.rows_of_function(result, len(self.labels), "a constraint function")


class VelocityCondition(AbstractVelocityPrimitive):
    """A user's function of marker frames, twists and time."""

    linear_in_rates: ClassVar[bool] = False
    function: VelocityFunction
    labels: tuple[Row, ...] = eqx.field(static=True)

    @property
    def rows(self) -> tuple[Row, ...]:
        return self.labels

    def velocity(
        self, frames: Frames, twists: Twists, t: RealScalarLike
    ) -> Float[Array, " velocity"]:
        result = self.function(frames, twists, t)
        return _checks.rows_of_function(result, len(self.labels), "a constraint function")

    def lever_arm(self) -> Scalar:
        return jnp.asarray(0.0)
