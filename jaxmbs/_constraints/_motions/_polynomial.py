import jax.numpy as jnp
from jaxtyping import Array, Float

from ... import _checks
from ..._custom_types import NumberList, Numbers, RealScalarLike, Scalar
from .base import AbstractMotion


class Linear(AbstractMotion):
    """offset + rate t."""

    offset: Scalar
    rate: Scalar

    def __init__(self, *, offset: Numbers = 0.0, rate: Numbers):
        self.offset = _checks.real(offset, (), "offset")
        self.rate = _checks.real(rate, (), "rate")

    def knots(self) -> Float[Array, " knots"]:
        return jnp.zeros((0,))

    def __call__(self, t: RealScalarLike) -> Scalar:
        return self.offset + self.rate * t


class Polynomial(AbstractMotion):
    """c_0 + c_1 t + c_2 t^2 + ..."""

    coefficients: Float[Array, " terms"]

    def __init__(self, *, coefficients: NumberList):
        self.coefficients = _checks.numbers(coefficients, "coefficients")

    def knots(self) -> Float[Array, " knots"]:
        return jnp.zeros((0,))

    def __call__(self, t: RealScalarLike) -> Scalar:
        return jnp.polyval(self.coefficients[::-1], jnp.asarray(t))
