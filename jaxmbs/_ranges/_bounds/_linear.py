"""Bounds of linear expressions: on one side, or on both."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from ... import _settings
from ..._custom_types import Numbers, Setting
from .._variables import Variables
from .base import AbstractBound, Inequalities


_SUCH_AS = "'W1', 'B.force.x' or 'W1 + W2'"


class AtLeast(AbstractBound):
    """`expression` >= `value`.

    **Arguments:** `expression`: linear in row names (multipliers) and components of wrenches, such
    as `"W1 + W2"` or `"B.force.y"`; `value`: N or N m, as the expression is.
    """

    expression: str = eqx.field(static=True)
    value: Float[Array, ""]

    def __init__(self, expression: Setting[str], value: Setting[Numbers]):
        self.expression = _settings.text(expression, "expression", _SUCH_AS)
        self.value = _settings.between(value, "value")

    def inequalities(self, variables: Variables) -> Inequalities:
        constant, coefficients = variables.linear(self.expression)
        return Inequalities(-jnp.asarray(coefficients)[None], (constant - self.value)[None])

    def words(self) -> str:
        return f"{self.expression} >= {_shown(self.value)}"


class AtMost(AbstractBound):
    """`expression` <= `value`; arguments as of `AtLeast`."""

    expression: str = eqx.field(static=True)
    value: Float[Array, ""]

    def __init__(self, expression: Setting[str], value: Setting[Numbers]):
        self.expression = _settings.text(expression, "expression", _SUCH_AS)
        self.value = _settings.between(value, "value")

    def inequalities(self, variables: Variables) -> Inequalities:
        constant, coefficients = variables.linear(self.expression)
        return Inequalities(jnp.asarray(coefficients)[None], (self.value - constant)[None])

    def words(self) -> str:
        return f"{self.expression} <= {_shown(self.value)}"


class Between(AbstractBound):
    """`low` <= `expression` <= `high`; arguments as of `AtLeast`."""

    expression: str = eqx.field(static=True)
    low: Float[Array, ""]
    high: Float[Array, ""]

    def __init__(self, expression: Setting[str], low: Setting[Numbers], high: Setting[Numbers]):
        self.expression = _settings.text(expression, "expression", _SUCH_AS)
        self.low = _settings.between(low, "low")
        self.high = _settings.between(high, "high")
        ends = [_settings.known_numbers(x) for x in (low, high)]
        if ends[0] is not None and ends[1] is not None and ends[0] > ends[1]:
            raise ValueError(f"low must not be greater than high, got {low} and {high}.")

    def inequalities(self, variables: Variables) -> Inequalities:
        constant, coefficients = variables.linear(self.expression)
        row = jnp.asarray(coefficients)
        limits = jnp.stack([self.high - constant, constant - self.low])
        return Inequalities(jnp.stack([row, -row]), limits)

    def words(self) -> str:
        return f"{_shown(self.low)} <= {self.expression} <= {_shown(self.high)}"


def _shown(value: Float[Array, ""]) -> str:
    known = _settings.known_numbers(value)
    return "a traced number" if known is None else f"{float(known):.6g}"
