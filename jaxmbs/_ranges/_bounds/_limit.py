import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from ... import _settings
from ..._custom_types import Numbers, Setting
from .._variables import Variables
from ._linear import _shown, _SUCH_AS
from .base import AbstractBound, Inequalities


class Limit(AbstractBound):
    """|`expression`| <= `value`: what a part can carry, in both directions.

    **Arguments:** `expression`: as of `AtLeast`, or the name of a joint of several rows: then each
    component of its force along the world's axes (the magnitude: `ResultantLimit`); `value`: N or
    N m.
    """

    expression: str = eqx.field(static=True)
    value: Float[Array, ""]

    def __init__(self, expression: Setting[str], value: Setting[Numbers]):
        self.expression = _settings.text(expression, "expression", _SUCH_AS)
        self.value = _settings.between(value, "value", least=0)

    def inequalities(self, variables: Variables) -> Inequalities:
        if self.expression in variables.names or not variables.has_wrench(self.expression):
            constant, coefficients = variables.linear(self.expression)
            rows = jnp.asarray(coefficients)[None]
        else:
            constant = 0.0
            rows = jnp.asarray(variables.unit_vectors(variables.force(self.expression)))
        high = jnp.broadcast_to(self.value, rows.shape[:1])
        matrix = jnp.concatenate([rows, -rows])
        return Inequalities(matrix, jnp.concatenate([high - constant, high + constant]))

    def words(self) -> str:
        return f"|{self.expression}| <= {_shown(self.value)}"
