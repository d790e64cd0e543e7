"""Precision of the numbers of a file, from their digits.

1.5708 for pi / 2 is off by 4e-6, and by its text it may be off by half of its last digit, 5e-5. A
short number need not be rounded: 0.5 is one half. So what is taken as rounded is

- a length, a component of a vector, or an angle of five digits or more. Fractions of a power of
  two, such as 0.15625, are exact.

Shorter numbers may nevertheless be rounded: a number whose last digit is neither 5 nor 0;
the components of a vector whose length is 1 to within their last digits, but not to rounding,
(0.707, 0.707, 0) and not (0.6, 0.8, 0); an angle that is a multiple of pi / 12 to within its last
digit. No verdict follows that, as three digits are coarser than what keeps the loops of many
mechanisms apart, but a rank that would be another within their last digits is doubtful
(`Digits.possible`).

Fifteen digits are all that double precision holds. The coarsest of these numbers counts: a rank is
as exact as the worst number on which it rests. Only numbers that locate joints count:
masses, and the places of centres of mass, change no rank.
"""

import functools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from .._limits import LARGEST_PRECISION
from .._system import Model


# From so many digits on a number is exact, and counts as rounded.
_EXACT, _LONG = 15, 5

# From so many on one may be rounded, and one of a single digit that tells less than so much.
_POSSIBLE, _SMALL = 2, 1e-3

# Lengths relative to the characteristic length, or rad: numbers of three digits. What is coarser is
# a number that was chosen.
_COARSEST = 1e-3

# Nor is a pivot doubtful for numbers that are coarser than this.
_COARSEST_POSSIBLE = 2.5e-3

# A precision below this changes no verdict: the rank tolerance is larger.
_FINEST = 2.5e-11

# Fractions of this power of two are exact, whatever number of digits they have.
_DYADIC = 1024.0

# Angles whose multiples are recognised from few digits.
_ANGLE = np.pi / 12

_NUMBER = re.compile(r"(?<![\w.])[+-]?(?:\d+\.\d*|\.\d+|\d+)(?:[eE][+-]?\d+)?(?![\w.])")
_WORD = re.compile(r"[A-Za-z_]\w*")


class Written(NamedTuple):
    """A number as written in a file: the count of its digits, half of the last one, and does it end
    in 5 or 0?"""

    value: float
    digits: int
    half: float
    even: bool

    def is_exact(self) -> bool:
        """Is it more than double precision holds, or a fraction of a power of two?"""
        return self.digits >= _EXACT or float(self.value * _DYADIC).is_integer()


class Digits(NamedTuple):
    """Uncertainty of numbers by their digits: lengths (m), and directions or angles (rad); and that
    of numbers that are only possibly rounded."""

    length: float = 0.0
    angle: float = 0.0
    possible_length: float = 0.0
    possible_angle: float = 0.0

    def relative(self, size: float) -> float | None:
        """The digits with lengths relative to `size`; None for exact numbers."""
        worst = max(self.length / size, self.angle)
        return None if worst < _FINEST else min(worst, _COARSEST, LARGEST_PRECISION)

    def possible(self, size: float) -> float | None:
        """The same of numbers that may be rounded; None where there are none."""
        worst = max(self.possible_length / size, self.possible_angle)
        return None if worst < _FINEST else min(worst, _COARSEST_POSSIBLE)


def written(text: str) -> Written:
    """Value and precision of the text of one number. An integer is exact."""
    value = float(text)
    mantissa, _, exponent = text.lower().replace("_", "").partition("e")
    whole, point, decimals = mantissa.lstrip("+-").partition(".")
    if not point:
        return Written(value, 0, 0.0, even=True)
    digits = (whole + decimals).lstrip("0")
    half = 0.5 * 10.0 ** (int(exponent or 0) - len(decimals))
    return Written(value, len(digits), half, digits[-1:] in ("0", "5"))


def of_lengths(numbers: Iterable[Written]) -> float:
    """The coarsest of the rounded ones (m)."""
    given = [own for own in numbers if not own.is_exact()]
    return max((own.half for own in given if own.digits >= _LONG), default=0.0)


def possible(numbers: Iterable[Written]) -> float:
    """The coarsest of those that may be rounded."""
    given = [own for own in numbers if not own.is_exact() and not own.even]
    halves = [own.half for own in given if own.digits >= _POSSIBLE or own.half < _SMALL]
    return max(halves, default=0.0)


def of_direction(numbers: Sequence[Written], least: int = _LONG) -> float:
    """Uncertainty of the direction of one vector (rad), if one of its components has at least
    `least` digits."""
    values = np.array([own.value for own in numbers])
    size = float(np.linalg.norm(values))
    if not numbers or not np.isfinite(size) or size == 0:
        return 0.0
    known = [own for own in numbers if 0 < own.digits < _EXACT]
    if not known or np.count_nonzero(values) == 1:
        # A vector along an axis is that, however long.
        return 0.0
    # Who writes more decimals in one component has written all that there are in the others.
    half = min(own.half for own in known if own.value)
    off = abs(size - 1)
    if off < 1e-15 * len(numbers):
        return 0.0
    if off <= np.sqrt(len(numbers)) * half:
        return half if any(own.digits >= least for own in known) else 0.0
    return (of_lengths(numbers) if least == _LONG else possible(numbers)) / size


def of_angle(number: Written, unit: float = 1.0, least: int = _LONG) -> float:
    """Uncertainty of one angle (rad) with at least `least` digits; `unit`: its unit in rad."""
    if number.is_exact() or number.digits < least:
        return 0.0
    half, value = number.half * unit, number.value * unit
    turns = round(value / _ANGLE)
    known = unit == 1.0 and turns != 0 and abs(value - turns * _ANGLE) <= half
    return half if known or number.digits >= _LONG or not number.even else 0.0


def of_numbers(
    lengths: Sequence[Written],
    directions: Sequence[Sequence[Written]],
    angles: Sequence[Written],
    unit: float = 1.0,
) -> Digits:
    """Digits of all numbers of a file; `unit` (rad): the unit of angles."""

    def worst(least: int) -> float:
        own = [of_direction(x, least) for x in directions]
        return max([*own, *(of_angle(x, unit, least) for x in angles)], default=0.0)

    return Digits(of_lengths(lengths), worst(_LONG), possible(lengths), worst(_POSSIBLE))


def numbers_in(text: str) -> list[Written]:
    """All numbers of a text."""
    return [written(found) for found in _NUMBER.findall(text)]


# ---------------------------------------------------------------------------------------------
# Model files
# ---------------------------------------------------------------------------------------------


# Keys of tables that locate joints.
_LENGTHS = ("at", "points", "position", "radius", "pitch")
_DIRECTIONS = ("axis", "axes", "direction", "orientation", "rotation")
_ANGLES = ("angle", "ratio")
_TABLES = ("joint", "use", "cylinder")


class _Found(NamedTuple):
    lengths: list[Written]
    directions: list[list[Written]]
    angles: list[Written]


def digits_of_tables(content: Mapping[str, Any]) -> Digits:
    """Digits of the tables of a model file whose numbers were parsed with `written`."""
    found = _Found([], [], [])
    _collect(content, content.get("parameters"), found)
    return of_numbers(found.lengths, found.directions, found.angles)


def with_digits(model: Model, digits: Digits) -> Model:
    """The model without a given precision, with that of its digits."""
    if model.precision is not None or not any(digits):
        return model
    size = float(model.system().characteristic_length())
    return eqx.tree_at(
        lambda own: (own.precision, own.possible_precision),
        model,
        (_number(digits.relative(size)), _number(digits.possible(size))),
        is_leaf=lambda x: x is None,
    )


def _number(value: float | None) -> Any:
    return None if value is None else jnp.asarray(value)


def _collect(content: Mapping[str, Any], parameters: Any, found: _Found) -> None:
    for kind in _TABLES:
        for entry in _tables(content.get(kind)):
            for key in _LENGTHS:
                found.lengths.extend(_flat(entry.get(key), parameters))
            for key in _DIRECTIONS:
                found.directions.extend(_vectors(entry.get(key), parameters))
            for key in _ANGLES:
                found.angles.extend(_flat(entry.get(key), parameters))
    for assembly in _tables(content.get("assembly")):
        own = assembly.get("parameters")
        both = {**_table(parameters), **_table(own)}
        _collect(assembly, both, found)


def _tables(value: Any) -> list[Mapping[str, Any]]:
    return [own for own in value if isinstance(own, dict)] if isinstance(value, list) else []


def _table(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _vectors(value: Any, parameters: Any) -> Iterator[list[Written]]:
    """The numbers of one vector, or of each vector of a list."""
    nested = isinstance(value, list) and value and isinstance(value[0], list)
    for own in value if nested else [value]:
        yield list(_flat(own, parameters))


@functools.singledispatch
def _flat(value: Any, parameters: Any, depth: int = 0) -> Iterator[Written]:
    """The numbers of a value, and those of parameters that an expression names."""
    del value, parameters, depth
    return iter(())


@_flat.register
def _(value: Written, parameters: Any, depth: int = 0) -> Iterator[Written]:
    del parameters, depth
    yield value


@_flat.register(int)
@_flat.register(float)
def _(value: float, parameters: Any, depth: int = 0) -> Iterator[Written]:
    del parameters, depth
    yield Written(float(value), 0, 0.0, even=True)


@_flat.register
def _(value: list, parameters: Any, depth: int = 0) -> Iterator[Written]:
    for own in value:
        yield from _flat(own, parameters, depth)


@_flat.register
def _(value: dict, parameters: Any, depth: int = 0) -> Iterator[Written]:
    """In the axes of a body, whose name is not a number."""
    for key, own in value.items():
        if key != "body":
            yield from _flat(own, parameters, depth)


@_flat.register
def _(value: str, parameters: Any, depth: int = 0) -> Iterator[Written]:
    if depth > _DEEPEST:
        return
    yield from numbers_in(value)
    for word in _WORD.findall(value):
        yield from _flat(_table(parameters).get(word), parameters, depth + 1)


# Parameters that name each other without end are refused by the reader.
_DEEPEST = 8
