"""The mass of a model, compared with that stated in its file."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from ._description import GROUND, Link


class DerivedMass(NamedTuple):
    """A mass (kg) that the file does not give in numbers: its link, and its origin."""

    link: str
    mass: float
    why: str


class Masses(NamedTuple):
    """Masses in kg: of all that moves, of the links that are part of the ground, and those that the
    file gives in numbers (`stated`); and each derived mass."""

    moving: float
    ground: float
    stated: float
    derived: tuple[DerivedMass, ...]

    def lines(self) -> list[str]:
        """The sum compared with that of the file, and the origin of the difference."""
        ground = f", and {self.ground:.6g} kg are part of the ground" if self.ground else ""
        # The same digits for sums that differ by rounding.
        stated = self.moving if np.isclose(self.moving, self.stated, 1e-9, 0) else self.stated
        head = f"mass: {self.moving:.6g} kg move{ground}; the file gives {stated:.6g} kg in numbers"
        if not self.derived:
            return [head]
        grouped: dict[str, list[str]] = {}
        for own in self.derived:
            grouped.setdefault(own.why, []).append(f"{own.link} {own.mass:.6g} kg")
        total = sum(own.mass for own in self.derived)
        return [
            f"{head}, and {total:.6g} kg follow otherwise:",
            *(f"  {why}: {', '.join(each)}" for why, each in grouped.items()),
        ]


def masses_of(links: Sequence[Link], bodies: Iterable[Link], body_of: Mapping[str, str]) -> Masses:
    """The masses of the links of a file, and of the bodies that were made of them."""
    return Masses(
        moving=sum((body.mass or 0.0 for body in bodies), 0.0),
        ground=sum((link.mass or 0.0 for link in links if body_of[link.name] == GROUND), 0.0),
        stated=sum((link.stated or 0.0 for link in links), 0.0),
        derived=tuple(
            DerivedMass(link.name, link.mass, link.derived)
            for link in links
            if link.derived and link.mass is not None
        ),
    )
