import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..._custom_types import RealScalarLike, Scalar
from ..._fields import number
from ._fields import OFFSET
from .base import AbstractMotion


class Sine(AbstractMotion):
    """offset + amplitude sin(2 pi frequency t + phase); frequency in Hz, phase in rad."""

    amplitude: Scalar = eqx.field(
        kw_only=True, converter=number("amplitude", "{driven}", "of the sine")
    )
    frequency: Scalar = eqx.field(kw_only=True, converter=number("frequency", "Hz", "of the sine"))
    offset: Scalar = eqx.field(default=0.0, kw_only=True, converter=OFFSET)
    phase: Scalar = eqx.field(
        default=0.0, kw_only=True, converter=number("phase", "rad", "at time 0")
    )

    def knots(self) -> Float[Array, " knots"]:
        return jnp.zeros((0,))

    def __call__(self, t: RealScalarLike) -> Scalar:
        angle = 2 * jnp.pi * self.frequency * t + self.phase
        return self.offset + self.amplitude * jnp.sin(angle)
