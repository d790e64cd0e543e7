"""Contacts and cables: rows that carry force in one direction alone."""

import equinox as eqx
import jax.numpy as jnp

from ... import _settings
from ..._custom_types import Setting
from .._variables import Variables
from .base import AbstractBound, Inequalities


class PushesOnly(AbstractBound):
    """A stop, a leg or a wheel that can push and not pull: its force acts so as to increase what
    its row keeps at zero.

    A point on a plane pushes its first body along the plane's normal, a distance pushes its points
    apart, a knife edge pushes its body along the direction of its row, a rolling disk's row `.z`
    pushes it off the ground: a row is the gap that the force would open, lambda <= 0.

    **Arguments:** `name`: of a row, or of a joint that has one.
    """

    name: str = eqx.field(static=True)

    def __init__(self, name: Setting[str]):
        self.name = _settings.text(name, "name", "'leg1' or 'disk.z'")

    def inequalities(self, variables: Variables) -> Inequalities:
        return _signed(variables, self.name, 1.0)

    def words(self) -> str:
        return f"{self.name} pushes only"


class PullsOnly(AbstractBound):
    """A cable or a hook: the opposite of `PushesOnly`, lambda >= 0.

    **Arguments:** as of `PushesOnly`.
    """

    name: str = eqx.field(static=True)

    def __init__(self, name: Setting[str]):
        self.name = _settings.text(name, "name", "'cable' or 'disk.z'")

    def inequalities(self, variables: Variables) -> Inequalities:
        return _signed(variables, self.name, -1.0)

    def words(self) -> str:
        return f"{self.name} pulls only"


def _signed(variables: Variables, name: str, sign: float) -> Inequalities:
    row = variables.unit_vectors((variables.row(name),))
    return Inequalities(jnp.asarray(sign * row), jnp.zeros(1))
