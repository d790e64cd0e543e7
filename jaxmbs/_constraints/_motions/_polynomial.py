import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..._custom_types import RealScalarLike, Scalar
from ..._fields import number, numbers
from ._fields import OFFSET
from .base import AbstractMotion


class Linear(AbstractMotion):
    """offset + rate t."""

    rate: Scalar = eqx.field(kw_only=True, converter=number("rate", "{driven}/s", "of change"))
    offset: Scalar = eqx.field(default=0.0, kw_only=True, converter=OFFSET)

    def knots(self) -> Float[Array, " knots"]:
        return jnp.zeros((0,))

    def __call__(self, t: RealScalarLike) -> Scalar:
        return self.offset + self.rate * t


class Polynomial(AbstractMotion):
    """c_0 + c_1 t + c_2 t^2 + ..."""

    coefficients: Float[Array, " terms"] = eqx.field(
        kw_only=True,
        converter=numbers("coefficients", "", "c_k, of t^k: {driven} over s^k"),
    )

    def knots(self) -> Float[Array, " knots"]:
        return jnp.zeros((0,))

    def __call__(self, t: RealScalarLike) -> Scalar:
        return jnp.polyval(self.coefficients[::-1], jnp.asarray(t))
