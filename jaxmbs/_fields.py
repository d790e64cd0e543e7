"""Declaration of a part's field: its key in a model file, its unit, its admissible values, its
meaning, and the names of its single numbers.

The declaration is the field's converter: `eqx.field(converter=positive("mass", "kg", "of the
body"))`. So readers, writers, sweeps and the reference of model files (`io/REFERENCE.md`) use the
same object that makes the array and refuses invalid values. A part without declarations works too;
its numbers then have no unit, and it cannot be written to a file.

A number of an array is named by one word for each axis: its index, counted from 0, or a letter. In
an array with a row for each of two bodies, which a model file writes [[..], [..]], the rows are
`first` and `second`.
"""

import dataclasses
import difflib
import enum
import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast, NamedTuple, TypeVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from . import _checks, _settings
from ._custom_types import NumberList, Numbers, Scalar
from ._limits import LARGEST_PRECISION, NumberRange


_Given = TypeVar("_Given")
_Made = TypeVar("_Made")


class Naming(NamedTuple):
    """Naming of an array's entries: letters of the entries along its last axis, used where there
    are as many entries; is it a symmetric matrix?"""

    letters: tuple[str, ...] = ()
    symmetric: bool = False


class Moves(enum.Enum):
    """Transformation of a number of a part where the part is moved as a whole, by a rotation and
    a translation of its axes: not at all, as a point, as a vector, as an orientation (quaternion,
    rotation matrix or planar angle), as a symmetric matrix over motions (linear, then angular), as
    coefficients of velocities (linear in world axes, then angular in body axes). `along_marker`:
    along axes that follow from the world's, so that a rotated part cannot keep it. `over_plane`: as
    a vector, of what happens on the world's plane z = 0, so that z keeps its direction."""

    nothing = enum.auto()
    point = enum.auto()
    vector = enum.auto()
    orientation = enum.auto()
    rotation = enum.auto()
    angle = enum.auto()
    over_motions = enum.auto()
    coefficients = enum.auto()
    along_marker = enum.auto()
    over_plane = enum.auto()


class Field(NamedTuple):
    """A declaration. Called with what a user gives, it makes what the field holds.

    - `key`: its key in a model file, and the argument's name in messages. `form`: the type of that
      key. `unit`: empty for texts and where entries have several; `{driven}` denotes that of the
      coordinate that a motion prescribes.
    - `admits`: what it may be, in words. `check(value, what)` makes the array, or raises a
      `ValueError` that names `what`. `within(dimension)`: the same declaration for a model of that
      dimension, of arrays that have its length.
    - `left_out`: the default if None is given, in words; None is refused where there are
      none. `number_left_out(part)`: that number, where it follows from the part's others.
    - `refers`: is it the name of another part, or names of bodies?
    - `moves`: what becomes of it in a sub-assembly that has a place.
    - `shape`: that of its array where it is known, of texts as well; `bounds` of its
      number, by the words of JSON Schema (`minimum`, `exclusiveMinimum`).
    - `holds`: the kind of the table that a model file writes under the key ("motion"); empty for
      values.
    - `others`: further keys for the same field; `exclusive`: one, in place of `key`.
      `split(value)`: what is written under each key.
    """

    key: str
    unit: str
    meaning: str
    form: Any
    admits: str
    check: Callable[[Any, str], Any]
    within: "Callable[[int], Callable[[Any], Any]] | None" = None
    naming: Naming = Naming()
    left_out: str | None = None
    number_left_out: Callable[[Any], Array] | None = None
    others: "tuple[Field, ...]" = ()
    exclusive: bool = False
    split: Callable[[Any], Mapping[str, Any]] | None = None
    moves: Moves = Moves.nothing
    refers: bool = False
    shape: tuple[int, ...] = ()
    bounds: tuple[tuple[str, float], ...] = ()
    holds: str = ""

    def __call__(self, value: Any) -> Any:
        if value is None and self.left_out is not None:
            return None
        return self.check(value, self.key)

    @property
    def keys(self) -> "tuple[Field, ...]":
        """Itself and the others: one for each key of a model file."""
        return (self, *self.others)

    def written(self, value: Any) -> Mapping[str, Any]:
        """The field's content in a model file, by key."""
        return {self.key: value} if self.split is None else self.split(value)


def fields_of(part: Any) -> dict[str, Field]:
    """The declarations of a part, or of a class of parts, by the names of its fields."""
    if not dataclasses.is_dataclass(part):
        return {}
    converters = {f.name: f.metadata.get("converter") for f in dataclasses.fields(part)}
    return {name: said for name, said in converters.items() if isinstance(said, Field)}


def unit_of(part: Any, word: str, driven: str = "") -> str:
    """The unit of one field of a part; empty where none is declared. `driven`: that of the
    coordinate that the part drives, if it is a motion."""
    said = fields_of(part).get(word)
    return "" if said is None else said.unit.format(driven=driven)


def naming_of(part: Any, word: str) -> Naming:
    """The naming of one field of a part."""
    said = fields_of(part).get(word)
    return Naming() if said is None else said.naming


def given_or_left_out(part: Any, word: str) -> Array | None:
    """The number of one field of a part; None if it is omitted and has no default."""
    given, said = getattr(part, word), fields_of(part).get(word)
    if given is not None or said is None or said.number_left_out is None:
        return given
    return said.number_left_out(part)


class AbstractDeclared(eqx.Module):
    """A part whose fields have declarations: an unknown argument is refused with a suggestion."""

    def __new__(cls, *given: Any, **named: Any) -> "AbstractDeclared":
        _refuse_unknown(cls, named)
        return eqx.Module.__new__(cls, *given, **named)


def _refuse_unknown(cls: type, named: Mapping[str, Any]) -> None:
    """
    **Raises:** `TypeError` that names the argument meant, where there is one.
    """
    arguments = inspect.signature(cls).parameters
    if any(p.kind is inspect.Parameter.VAR_KEYWORD for p in arguments.values()):
        return
    for word in named:
        if word in arguments:
            continue
        key = keys_of(cls).get(word)
        near = difflib.get_close_matches(word, arguments, n=1)
        if key is not None:
            advice = f"what model files call {word!r} is its argument {key.argument!r}"
            if key.said.form == list[list[float]] and key.argument == "at":
                advice += ": one world point, or two, one on each body"
        elif near:
            advice = f"perhaps {near[0]!r} is meant"
        else:
            advice = f"it takes {_checks.listed(arguments)}"
        raise TypeError(f"{cls.__name__} has no argument {word!r}; {advice}.")


class Key(NamedTuple):
    """A key of a part's table in a model file: the argument of the part that it gives, its
    declaration, the key that may replace it, and the default."""

    argument: str
    said: Field
    instead: str | None
    default: Any

    @property
    def needed(self) -> bool:
        """Must it, or another in its place, be given?"""
        return self.default is inspect.Parameter.empty


def keys_of(cls: type) -> dict[str, Key]:
    """The keys of a class of parts, in the order of its fields."""
    arguments = inspect.signature(cls).parameters
    found: dict[str, Key] = {}
    for field, declared in fields_of(cls).items():
        for said in declared.keys:
            argument = said.key if said.key in arguments else field
            others = [other.key for other in declared.keys if other is not said]
            instead = others[0] if declared.exclusive else None
            found[said.key] = Key(argument, said, instead, arguments[argument].default)
    return found


# ---------------------------------------------------------------------------------------------
# Texts
# ---------------------------------------------------------------------------------------------


def part_name(noun: str) -> Callable[[str], str]:
    """The name of a part, which `noun` is ("a joint")."""
    return Field("name", "", "its own", str, "a text", lambda value, _: _checks.name(value, noun))


def reference(key: str, meaning: str) -> Callable[[str], str]:
    """The name of another part."""
    return Field(key, "", meaning, str, "a name", _settings.text, refers=True)


def word(key: str, meaning: str, admits: str) -> Callable[[str], str]:
    """A text that is one of few."""
    return Field(key, "", meaning, str, admits, _settings.text)


def switch(key: str, meaning: str) -> Callable[[bool], bool]:
    """True or False."""
    return Field(key, "", meaning, bool, "true or false", _settings.flag)


def body_names(count: int | None) -> Callable[[str | Sequence[str]], tuple[str, ...]]:
    """The names of `count` different bodies (None: any)."""
    return Field(
        "bodies",
        "",
        "on which it acts" if count == 1 else "on which it acts, in this order",
        list[str],
        {None: "names", 1: "one name"}.get(count, f"{count} names"),
        lambda value, _: _checks.body_names(value, count),
        refers=True,
        shape=() if count is None else (count,),
    )


# ---------------------------------------------------------------------------------------------
# Numbers
# ---------------------------------------------------------------------------------------------


def number(
    key: str, unit: str, meaning: str, moves: Moves = Moves.nothing
) -> Callable[[Numbers], Scalar]:
    """One finite number."""
    return Field(
        key,
        unit,
        meaning,
        float,
        "a number",
        lambda value, what: _checks.real(value, (), what),
        moves=moves,
    )


def positive(key: str, unit: str, meaning: str) -> Callable[[Numbers], Scalar]:
    """One number greater than zero."""
    bounds = (("exclusiveMinimum", 0.0),)
    return Field(key, unit, meaning, float, "a number > 0", _checks.positive, bounds=bounds)


def not_negative(key: str, unit: str, meaning: str) -> Callable[[Numbers], Scalar]:
    """One number of at least zero."""
    bounds = (("minimum", 0.0),)
    return Field(key, unit, meaning, float, "a number >= 0", _checks.not_negative, bounds=bounds)


def bounded(key: str, unit: str, meaning: str, bounds: NumberRange) -> Callable[[Numbers], Scalar]:
    """One number within bounds."""
    words = {
        "minimum": bounds.least,
        "exclusiveMinimum": bounds.above,
        "maximum": bounds.most,
        "exclusiveMaximum": bounds.below,
    }
    signs = zip((">=", ">", "<=", "<"), words.values(), strict=True)
    return Field(
        key,
        unit,
        meaning,
        float,
        f"a number {' and '.join(f'{sign} {x:g}' for sign, x in signs if x is not None)}",
        lambda value, what: _checks.in_range(value, what, bounds),
        bounds=tuple((word, float(x)) for word, x in words.items() if x is not None),
    )


def numbers(key: str, unit: str, meaning: str) -> Callable[[NumberList], Float[Array, " n"]]:
    """A vector of at least one number."""
    return Field(key, unit, meaning, list[float], "at least one number", _checks.numbers)


def vector(
    key: str,
    unit: str,
    meaning: str,
    dimension: int | None = None,
    moves: Moves = Moves.vector,
) -> Callable[[Numbers], Float[Array, " dim"]]:
    """Two numbers in the plane, three in space (`dimension` None: as many as come)."""

    def check(value: Any, what: str) -> Float[Array, " dim"]:
        return _checks.real(value, (dimension or dimension_of(value),), what)

    within = functools.partial(vector, key, unit, meaning, moves=moves)
    admits = f"{dimension} numbers" if dimension else "2 numbers, 3 in space"
    shape = () if dimension is None else (dimension,)
    return Field(key, unit, meaning, list[float], admits, check, within, moves=moves, shape=shape)


def point(
    key: str, meaning: str, dimension: int | None = None
) -> Callable[[Numbers], Float[Array, " dim"]]:
    """A point of the world."""
    return vector(key, "m", meaning, dimension, Moves.point)


def direction(key: str, meaning: str, dimension: int) -> Callable[[Numbers], Float[Array, " dim"]]:
    """A vector that has a direction; its length is kept and means nothing."""
    return Field(
        key,
        "1",
        meaning,
        list[float],
        f"{dimension} numbers, not all zero",
        lambda value, what: _checks.direction(value, dimension, what),
        moves=Moves.vector,
        shape=(dimension,),
    )


def two_points(
    key: str, meaning: str, dimension: int | None = None
) -> Callable[[Numbers], Float[Array, "2 dim"]]:
    """One world point for each of two bodies."""
    return Field(
        key,
        "m",
        meaning,
        list[list[float]],
        "one world point for each body",
        lambda value, what: _checks.two_points(value, dimension or dimension_of(value), what),
        functools.partial(two_points, key, meaning),
        moves=Moves.point,
        shape=(2,) if dimension is None else (2, dimension),
    )


def point_or_points(
    dimension: int | None = None,
) -> Callable[[Numbers], Float[Array, "2 dim"]]:
    """`at`, one world point for both bodies, or `points`, one for each."""
    at = cast(Field, point("at", "in the reference configuration", dimension))
    each = cast(Field, two_points("points", "in the reference configuration", dimension))

    def check(value: Any, what: str) -> Float[Array, "2 dim"]:
        del what
        pair = each(value) if len(_checks.shape_of(value)) == 2 else at(value)
        known = _checks.concrete(pair)
        if known is None:
            return jnp.broadcast_to(pair, (2, pair.shape[-1]))
        return _checks.known_array(np.broadcast_to(known, (2, known.shape[-1])))

    def split(pair: Any) -> Mapping[str, Any]:
        return {"at": pair[0]} if np.array_equal(pair[0], pair[1]) else {"points": pair}

    return at._replace(
        admits="one world point used for both bodies",
        check=check,
        others=(each,),
        exclusive=True,
        split=split,
    )


def curve_points(
    key: str, meaning: str, dimension: int | None = None
) -> Callable[[Numbers], Float[Array, "n dim"]]:
    """World points in order along a curve."""

    def check(value: Any, what: str) -> Float[Array, "n dim"]:
        return _checks.real(value, (None, dimension or dimension_of(value)), what)

    return Field(
        key,
        "m",
        meaning,
        list[list[float]],
        "world points in order",
        check,
        functools.partial(curve_points, key, meaning),
        moves=Moves.point,
    )


def optional(
    convert: Callable[[_Given], _Made],
    left_out: str,
    number_left_out: Callable[[Any], Array] | None = None,
) -> Callable[[_Given | None], _Made | None]:
    """The declaration of an optional field: its default in words, and as a function of the part
    where it follows from its other numbers."""
    return cast(Field, convert)._replace(left_out=left_out, number_left_out=number_left_out)


def dimension_of(value: Any) -> int:
    """Dimension of a point, or of several: 2 or else 3."""
    return 2 if _checks.shape_of(value)[-1:] == (2,) else 3


# Of models and systems, not of one part.
GRAVITY = vector("gravity", "m/s2", "of the field, world axes", moves=Moves.nothing)


def _precision(value: Any, what: str) -> Scalar | None:
    """Numbers that are exact have none."""
    number = _checks.not_negative(value, what)
    known = _checks.concrete(number)
    if known is None:
        return number
    if known > LARGEST_PRECISION:
        raise ValueError(
            f"{what} must be at most {LARGEST_PRECISION:g} (lengths relative to the characteristic "
            f"length, angles in rad), got {_checks.shown(value)}; numbers of two digits have 0.005."
        )
    return number if known > 0 else None


PRECISION = Field(
    "precision",
    "",
    "how exact positions and directions are: lengths relative to the characteristic length, angles "
    "in rad; 0: to rounding",
    float,
    f"a number from 0 to {LARGEST_PRECISION:g}",
    _precision,
    left_out="from the digits",
    bounds=(("minimum", 0.0), ("maximum", LARGEST_PRECISION)),
)
