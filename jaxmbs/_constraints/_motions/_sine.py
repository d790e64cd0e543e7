import jax.numpy as jnp
from jaxtyping import Array, Float

from ... import _checks
from ..._custom_types import Numbers, RealScalarLike, Scalar
from .base import AbstractMotion


class Sine(AbstractMotion):
    """offset + amplitude sin(2 pi frequency t + phase); frequency in Hz, phase in rad."""

    offset: Scalar
    amplitude: Scalar
    frequency: Scalar
    phase: Scalar

    def __init__(
        self,
        *,
        offset: Numbers = 0.0,
        amplitude: Numbers,
        frequency: Numbers,
        phase: Numbers = 0.0,
    ):
        self.offset = _checks.real(offset, (), "offset")
        self.amplitude = _checks.real(amplitude, (), "amplitude")
        self.frequency = _checks.real(frequency, (), "frequency")
        self.phase = _checks.real(phase, (), "phase")

    def knots(self) -> Float[Array, " knots"]:
        return jnp.zeros((0,))

    def __call__(self, t: RealScalarLike) -> Scalar:
        angle = 2 * jnp.pi * self.frequency * t + self.phase
        return self.offset + self.amplitude * jnp.sin(angle)
