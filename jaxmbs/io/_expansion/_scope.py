"""Scopes of names and numbers: the file itself, or a sub-assembly."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from ..._checks import listed, shown
from ..._fields import Field, Moves
from ..._parameters import (
    AbstractFormula,
    Constant,
    Entries,
    Expression,
    FormulaError,
    Moved,
    names_in,
    Pose,
    Upright,
)
from ._collection import Place


# The key next to `body` where a number is given in a body's axes.
RELATIVE: Mapping[Moves, str] = {
    Moves.point: "point",
    Moves.vector: "direction",
    Moves.over_plane: "direction",
    Moves.orientation: "orientation",
    Moves.rotation: "rotation",
    Moves.angle: "angle",
}
# Arrays of model files have two axes at most.
_DEEPEST = 4


class Scope(NamedTuple):
    """`words`: the values of parameters; `prefix` of the names of parts; `outer`: the bodies
    denoted by outer names; `pose`: of the axes in which numbers are given, None for the world's;
    `dimension`."""

    dimension: int
    words: Mapping[str, str]
    prefix: str = ""
    outer: Mapping[str, str] = {}
    pose: Pose | None = None

    def called(self, name: Any) -> Any:
        """The full name of a part that is declared here."""
        if not isinstance(name, str) or not self.prefix:
            return name
        return f"{self.prefix} {name}"

    def referred(self, name: Any) -> Any:
        """The full name of a part, or names of parts, that are referred to here."""
        if isinstance(name, list):
            return [self.referred(each) for each in name]
        if not isinstance(name, str) or name == "ground":
            return name
        return self.outer[name] if name in self.outer else self.called(name)

    def pose_of(self, body: str) -> Pose | None:
        """The pose of a body of this scope; None for the ground."""
        name = self.referred(body)
        if name == "ground":
            return None
        turn = "angle" if self.dimension == 2 else "orientation"
        return Pose(f"bodies.{name}.position", f"bodies.{name}.{turn}")

    def formula(self, value: Any, said: Field | None, place: Place) -> AbstractFormula | None:
        """The formula of the value of a key; None for what a part can be given as it is.

        **Raises:** `ModelError` for an expression that is none, and for axes that are unknown.
        """
        moves = Moves.nothing if said is None else said.moves
        moved = self.pose is not None and moves is not Moves.nothing
        # A table that cannot be axes is refused by the reader, with the form that is wanted.
        if not (moved or _has_formulas(value)) or (
            isinstance(value, dict) and moves not in RELATIVE
        ):
            return None
        if moved and moves is Moves.along_marker:
            raise place.refuse(
                "it is along axes of a marker, which do not turn with a sub-assembly that has a "
                "place; declare it outside of the assembly"
            )
        if moves is Moves.over_plane:
            inner = self.in_axes(value, Moves.vector, place)
            return inner if self.pose is None else Upright(self.pose.turn, inner)
        return self.in_axes(value, moves, place)

    def in_axes(self, value: Any, moves: Moves, place: Place) -> AbstractFormula:
        """The formula of a value as it is along the world's axes."""
        if isinstance(value, dict):
            return self._relative(value, moves, place)
        if isinstance(value, list) and any(_has_tables(entry) for entry in value):
            return Entries(tuple(self.in_axes(entry, moves, place) for entry in value))
        inner = self.plain(value, place)
        if self.pose is None or moves is Moves.nothing:
            return inner
        return Moved(self.pose, moves, inner)

    def plain(self, value: Any, place: Place, depth: int = 0) -> AbstractFormula:
        """The formula of numbers and expressions, whatever the axes."""
        if isinstance(value, AbstractFormula):
            return value
        if isinstance(value, str):
            return self._expression(value, place)
        if not isinstance(value, list) or not value or depth == _DEEPEST:
            return _number(value, place)
        return self._array(value, place, depth)

    def _array(self, value: list[Any], place: Place, depth: int) -> AbstractFormula:
        entries = tuple(
            self.plain(
                entry, place._replace(key=f"{place.key}, entry {k + 1}", written=entry), depth + 1
            )
            for k, entry in enumerate(value)
        )
        if any(entry.needs or not isinstance(entry, Constant) for entry in entries):
            return Entries(entries)
        numbers = tuple(entry.number for entry in entries if isinstance(entry, Constant))
        return _constant(numbers, place)

    def _relative(self, value: dict[str, Any], moves: Moves, place: Place) -> AbstractFormula:
        key = RELATIVE.get(moves)
        if key is None:
            raise place.refuse("it has no axes, so that it cannot be given in those of a body")
        if set(value) != {"body", key} or not isinstance(value["body"], str):
            raise place.refuse(
                f'what is given in the axes of a body is a table {{ body = "NAME", {key} = .. }}'
            )
        inner, pose = self.plain(value[key], place), self.pose_of(value["body"])
        return inner if pose is None else Moved(pose, moves, inner)

    def _expression(self, text: str, place: Place) -> AbstractFormula:
        if _is_number(text):
            raise place.refuse("it is a number in quotes; leave the quotes out")
        try:
            names = names_in(text)
        except FormulaError as error:
            raise place.refuse(error) from None
        for name in names:
            if name not in self.words:
                offer = f"they are {listed(self.words)}" if self.words else "there are none"
                raise place.refuse(
                    f"{shown(name)} is no parameter ({offer}); write a number, or declare it "
                    "under [parameters]"
                )
        return Expression(text, tuple((name, self.words[name]) for name in names))


def _number(value: Any, place: Place) -> Constant:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise place.refuse("it must be a number, an array, or an expression such as 'length / 2'")
    return _constant(value, place)


def _constant(number: Any, place: Place) -> Constant:
    try:
        finite = bool(np.all(np.isfinite(np.asarray(number, dtype=float))))
    except (TypeError, ValueError):
        raise place.refuse("the entries of an array are not of one size") from None
    except OverflowError:
        finite = False
    if not finite:
        raise place.refuse("it must be finite")
    return Constant(number)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _has_formulas(value: Any, depth: int = 0) -> bool:
    """Is it, or does it hold, anything but numbers?"""
    if isinstance(value, list) and depth < _DEEPEST:
        return any(_has_formulas(entry, depth + 1) for entry in value)
    return isinstance(value, str | dict | AbstractFormula)


def _has_tables(value: Any, depth: int = 0) -> bool:
    if isinstance(value, list) and depth < _DEEPEST:
        return any(_has_tables(entry, depth + 1) for entry in value)
    return isinstance(value, dict)
