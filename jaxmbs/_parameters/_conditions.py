"""Numbers that exist under a condition on others. It is checked where these are known."""

import dataclasses
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from ._formula import AbstractFormula, FormulaError, Lookup
from ._pose import rotation_of


# So far numbers may be off by round-off.
_ROUND_OFF = 1e-9


@dataclasses.dataclass(frozen=True)
class Upright(AbstractFormula):
    """A number of what happens on the world's plane z = 0, of a sub-assembly whose axes keep the
    direction of z. Where a traced turn takes it away there is none (NaN)."""

    turn: str
    inner: AbstractFormula

    @property
    def needs(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((self.turn, *self.inner.needs)))

    def value(self, numbers: Lookup) -> Any:
        value, up = self.inner.value(numbers), rotation_of(numbers(self.turn))[2, 2]
        if isinstance(up, Tracer):
            return jnp.where(up > 1.0 - _ROUND_OFF, value, jnp.nan)
        if up <= 1.0 - _ROUND_OFF:
            raise FormulaError(
                "it rolls on the world's plane z = 0, which does not turn with a sub-assembly; "
                "turn its use about z alone, or declare it outside of the assembly"
            )
        return value


@dataclasses.dataclass(frozen=True)
class InBarrel(AbstractFormula):
    """A number of the rod of a cylinder, which goes into the barrel and reaches it.

    The others are names: of two points, of both lengths, of the rod's radius and of that of what
    it goes into."""

    inner: AbstractFormula
    points: str
    barrel: str
    rod: str
    radius: str
    bore: str

    @property
    def needs(self) -> tuple[str, ...]:
        own = (self.points, self.barrel, self.rod, self.radius, self.bore)
        return tuple(dict.fromkeys((*own, *self.inner.needs)))

    def value(self, numbers: Lookup) -> Any:
        names = (self.points, self.barrel, self.rod, self.radius, self.bore)
        points, barrel, rod, radius, bore = given = [numbers(name) for name in names]
        # A value that is not a number, or of another size, is refused by its own declaration.
        if not any(isinstance(own, Tracer) for own in given) and np.ndim(points) == 2:
            if radius > bore * (1.0 + _ROUND_OFF):
                raise FormulaError(
                    f"the radius {radius:g} of the rod is larger than that of the barrel's "
                    f"inside, {bore:g}; the rod does not go in"
                )
            distance = np.linalg.norm(points[1] - points[0])
            if (barrel + rod) * (1.0 + _ROUND_OFF) < distance:
                raise FormulaError(
                    f"barrel ({barrel:g}) and rod ({rod:g}) together are shorter than the "
                    f"distance {distance:g} of the points; make one of them longer"
                )
        return self.inner.value(numbers)
