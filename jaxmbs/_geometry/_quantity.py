"""Quantities measured by single numbers: coordinates, velocities, rows of constraints."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from .. import _checks


class Quantity(NamedTuple):
    """Quantity measured by a coordinate or by a constraint's residual; velocities are its rates.

    `name`: a word; `unit`: in SI; `scale`: how much of it, in that unit, counts as one where unlike
    numbers are compared (ranks, residuals, the size of a motion). None: the characteristic length
    of the system, as for lengths.
    """

    name: str
    unit: str
    scale: float | None = 1.0

    @property
    def force_unit(self) -> str:
        """The unit of what does work on it: a force, a torque, or what makes joules of its unit."""
        return {"m": "N", "rad": "N m", "": "J"}.get(self.unit, f"J/{self.unit}")


def is_quantity(given: Any) -> bool:
    """Is it a `Quantity` with a unit and a scale above 0?"""
    if not isinstance(given, Quantity) or not isinstance(given.unit, str):
        return False
    return given.scale is None or 0 < given.scale < float("inf")


def quantities_of(given: Any, names: Sequence[str]) -> dict[str, Quantity]:
    """The quantities given for some of the names.

    **Raises:** `ValueError` for another name, and for a value that is not a quantity.
    """
    known = _checks.table({} if given is None else given, "quantities", "Quantity")
    for name, quantity in known.items():
        if name not in names:
            raise ValueError(f"quantities names {name!r:.50}; there are {', '.join(names)}.")
        if not is_quantity(quantity):
            raise ValueError(
                f"quantities must hold a Quantity with a unit and a scale above 0 for {name!r}, "
                f"got {quantity!r:.80}."
            )
    return known


LENGTH = Quantity("length", "m", None)
ANGLE = Quantity("angle", "rad")
NUMBER = Quantity("number", "")
