import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..._custom_types import NumberList, RealScalarLike, Scalar
from ._fields import TIMES, VALUES
from ._table import table_of
from .base import AbstractMotion


class Step(AbstractMotion):
    """Quintic steps (C2) between neighbouring values, constant before and after."""

    times: Float[Array, " knots"] = eqx.field(converter=TIMES)
    values: Float[Array, " knots"] = eqx.field(converter=VALUES)

    def __init__(
        self,
        *,
        times: NumberList,
        values: NumberList,
    ):
        self.times, self.values = table_of(times, values)

    def knots(self) -> Float[Array, " knots"]:
        return self.times

    def __call__(self, t: RealScalarLike) -> Scalar:
        s = jnp.clip((t - self.times[:-1]) / jnp.diff(self.times), 0.0, 1.0)
        # 10 s^3 - 15 s^4 + 6 s^5 rises from 0 to 1 with two vanishing derivatives at the ends.
        rise = s**3 * (10 - 15 * s + 6 * s**2)
        return self.values[0] + jnp.diff(self.values) @ rise
