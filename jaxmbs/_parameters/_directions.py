"""The rotation that a direction gives."""

import dataclasses
from typing import Any

import numpy as np

from ._formula import AbstractFormula, FormulaError, Lookup, namespace


@dataclasses.dataclass(frozen=True)
class TurnedTo(AbstractFormula):
    """The shortest rotation that turns the z axis (in the plane the x axis) to a direction, as a
    quaternion (an angle). To the opposite of z it is half a turn about x."""

    direction: AbstractFormula

    @property
    def needs(self) -> tuple[str, ...]:
        return self.direction.needs

    def value(self, numbers: Lookup) -> Any:
        direction = self.direction.value(numbers)
        xp = namespace(direction)
        if np.shape(direction) not in ((2,), (3,)):
            raise FormulaError("a direction must be a vector of 2 or 3 numbers")
        if xp is np and not np.any(direction):
            raise FormulaError("a direction of zero length")
        if np.shape(direction) == (2,):
            return xp.arctan2(direction[1], direction[0])
        x, y, z = direction / xp.sqrt((direction * direction).sum())
        # (1 + z, axis z cross d), and where both vanish half a turn about x.
        opposite = 1.0 + z < 1e-14
        zero = 0.0 * z
        quaternion = xp.stack(
            [
                xp.where(opposite, 0.0, 1.0 + z),
                xp.where(opposite, 1.0, -y),
                xp.where(opposite, 0.0, x),
                zero,
            ]
        )
        return quaternion / xp.sqrt((quaternion * quaternion).sum())
