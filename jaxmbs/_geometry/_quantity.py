"""What single numbers measure: coordinates, velocities, rows of constraints."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple


class Quantity(NamedTuple):
    """What a coordinate or a constraint's residual measures; velocities are its rates.

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


def quantities_of(given: Any, names: Sequence[str]) -> dict[str, Quantity]:
    """What is given for some of the names.

    **Raises:** `ValueError` for another name, and for what is no quantity.
    """
    if given is not None and not isinstance(given, Mapping):
        raise ValueError(f"quantities must be a table of names and Quantity, got {given!r:.50}.")
    known = dict(given or {})
    for name, quantity in known.items():
        if name not in names:
            raise ValueError(f"quantities names {name!r:.50}; there are {', '.join(names)}.")
        sound = isinstance(quantity, Quantity) and isinstance(quantity.unit, str)
        if not sound or not (quantity.scale is None or 0 < quantity.scale < float("inf")):
            raise ValueError(
                f"quantities must hold a Quantity with a unit and a scale above 0 for {name!r}, "
                f"got {quantity!r:.80}."
            )
    return known


LENGTH = Quantity("length", "m", None)
ANGLE = Quantity("angle", "rad")
NUMBER = Quantity("number", "")
