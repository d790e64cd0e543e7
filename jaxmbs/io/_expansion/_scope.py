"""Scopes of names and numbers: the file itself, or a sub-assembly; the tables that are expanded,
and what is collected of them.
"""

import graphlib
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, cast, NamedTuple

import equinox as eqx
import numpy as np

from ... import _checks, shapes
from ..._bodies import AbstractShape
from ..._bodies.base import ORIENTATION
from ..._checks import listed, shown
from ..._errors import ModelError
from ..._fields import (
    body_names,
    direction,
    Field,
    Moves,
    not_negative,
    number,
    optional,
    part_name,
    point,
    reference,
    two_points,
)
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
from .._registry import placed


# --------------------------------------------------------------------------------------------------
# Collected entries in the expansion of a file, and the numbers that follow from them.
# --------------------------------------------------------------------------------------------------


class Place(NamedTuple):
    """Location of a formula: the table's name in messages, the key, and the text there."""

    where: str
    key: str
    written: Any

    def refuse(self, said: object) -> ModelError:
        """The error that states the fault there."""
        written = "" if self.written is None else f" = {shown(self.written)}"
        return ModelError(f"{self.where}: {self.key}{written}: {str(said).rstrip('.')}.")


class Pending(NamedTuple):
    """A number of a part that a formula gives: its location, the part's table, the key to be set,
    and the formula."""

    place: Place
    entry: dict[str, Any]
    key: str
    formula: AbstractFormula


class Collection:
    """Tables of parts, and numbers by name. Written by the expansion alone, from top to bottom of a
    file; `evaluate` then sets every number."""

    def __init__(self, kinds: tuple[str, ...]):
        self.tables: dict[str, list[Any]] = {kind: [] for kind in kinds}
        self.bodies: dict[str, dict[str, Any]] = {}
        self.looks: list[dict[str, Any]] = []
        self.values: dict[str, np.ndarray] = {}
        self.formulas: dict[str, AbstractFormula] = {}
        self.units: dict[str, str] = {}
        self._places: dict[str, Place] = {}
        self._checks: dict[str, Field] = {}
        self._pending: dict[str, Pending] = {}

    def define(
        self, name: str, formula: AbstractFormula, place: Place, said: Field | None = None
    ) -> str:
        """A number that no part holds: one that is given, or one that follows from others. Returns
        its name."""
        if name in self._places:
            raise ModelError(f"{place.where}: the name is used twice; choose another one.")
        self._places[name] = place
        if formula.needs:
            self.formulas[name] = formula
        else:
            self.values[name] = np.asarray(_evaluated(formula, {}.__getitem__, place), float)
        if said is not None:
            self._checks[name] = said
            if said.unit:
                self.units[name] = said.unit
        return name

    def set_later(self, name: str, pending: Pending) -> None:
        """A number of a part, by the name that sweeps have for it."""
        if name in self._pending:
            raise ModelError(f"{pending.place.where}: the name is used twice; choose another one.")
        self._pending[name] = pending

    def evaluate(self) -> dict[str, AbstractFormula]:
        """Set the numbers of all parts.

        **Returns:** what follows from other numbers, by name, each after those that it needs.

        **Raises:** `ModelError` for what depends on itself, has no value, or cannot be.
        """
        formulas = {name: self.formulas[name] for name in self.formulas}
        formulas |= {name: own.formula for name, own in self._pending.items()}
        found: dict[str, Any] = dict(self.values)
        for name, value in self.values.items():
            self._check(name, value)

        def lookup(name: str) -> Any:
            if name not in found:
                found[name] = self._constant(name)
            return found[name]

        order = self._order(formulas)
        for name in order:
            place = self._pending[name].place if name in self._pending else self._places[name]
            found[name] = value = _evaluated(formulas[name], lookup, place)
            if name in self._pending:
                own = self._pending[name]
                own.entry[own.key] = np.asarray(value).tolist()
            else:
                self._check(name, value)
        return {name: formulas[name] for name in order if formulas[name].needs}

    def _order(self, formulas: Mapping[str, AbstractFormula]) -> list[str]:
        graph = {
            name: [need for need in formula.needs if need in formulas]
            for name, formula in formulas.items()
        }
        try:
            return list(graphlib.TopologicalSorter(graph).static_order())
        except graphlib.CycleError as error:
            circle = error.args[1]
            place = self._places.get(circle[0]) or self._pending[circle[0]].place
            way = shown(" needs ".join(reversed(circle)), 200)
            raise place.refuse(
                f"it depends on itself ({way[1:-1]}); give one of them as a number"
            ) from None

    def _check(self, name: str, value: Any) -> None:
        """Check a number by the declaration of its key."""
        if name in self._checks:
            with placed(self._places[name].where):
                self._checks[name](value)

    def _constant(self, name: str) -> np.ndarray:
        """A number of a body that is given as such."""
        body, _, key = name.partition(".")[2].rpartition(".")
        if body not in self.bodies:
            raise FormulaError(f"there is no body {shown(body)}")
        entry = self.bodies[body]
        defaults = {"angle": 0.0, "orientation": [1.0, 0.0, 0.0, 0.0]}
        try:
            return np.asarray(entry[key] if key in entry else defaults[key], dtype=float)
        except (KeyError, TypeError, ValueError, OverflowError):
            raise FormulaError(f"{key} of the body {shown(body)} is missing or no number") from None


def _evaluated(formula: AbstractFormula, lookup: Any, place: Place) -> Any:
    try:
        return formula.value(lookup)
    except FormulaError as error:
        raise place.refuse(error) from None
    except (ValueError, IndexError, TypeError):
        # NumPy's own words about shapes name neither the table nor the key.
        raise place.refuse("sizes of arrays in it do not go together") from None


# --------------------------------------------------------------------------------------------------
# The tables that are expanded into those of parts: what their keys are.
#
# Declared as the fields of parts are, so that reader, reference and JSON Schema agree.
# --------------------------------------------------------------------------------------------------


SHAPES: Mapping[str, type[AbstractShape]] = MappingProxyType(
    {
        "box": shapes.Box,
        "cylinder": shapes.Cylinder,
        "tube": shapes.Tube,
        "sphere": shapes.Sphere,
    }
)


def _given(value: Any, what: str) -> Any:
    del what
    return value


def _table(key: str, meaning: str, admits: str) -> Any:
    return optional(Field(key, "", meaning, dict[str, Any], admits, _given), "none")


def _names(key: str, meaning: str) -> Any:
    said = Field(key, "", meaning, list[str], "names", _checks.name_list)
    return optional(said, "none")


_USE = part_name("a use")
_ASSEMBLY = reference("assembly", "which is used")
_PLACE = "of the assembly's origin, in the axes of the file or of the assembly that uses it"
_BODIES = _table("bodies", "what its `outer` names stand for", "names of bodies by `outer` name")
_PARAMETERS = _table("parameters", "in place of those of the assembly", "numbers by parameter")


class PlanarUse(eqx.Module):
    """One `[[use]]` of an assembly in the plane."""

    name: str = eqx.field(converter=_USE)
    assembly: str = eqx.field(converter=_ASSEMBLY)
    position: Any = eqx.field(
        default=None, converter=optional(point("position", _PLACE, 2), "zero")
    )
    angle: Any = eqx.field(
        default=None,
        converter=optional(number("angle", "rad", "of its axes", Moves.angle), "zero"),
    )
    direction: Any = eqx.field(
        default=None,
        converter=optional(direction("direction", "of its x axis", 2), "`angle`"),
    )
    bodies: Any = eqx.field(default=None, converter=_BODIES)
    parameters: Any = eqx.field(default=None, converter=_PARAMETERS)


class SpatialUse(eqx.Module):
    """One `[[use]]` of an assembly in space."""

    name: str = eqx.field(converter=_USE)
    assembly: str = eqx.field(converter=_ASSEMBLY)
    position: Any = eqx.field(
        default=None, converter=optional(point("position", _PLACE, 3), "zero")
    )
    orientation: Any = eqx.field(default=None, converter=ORIENTATION)
    direction: Any = eqx.field(
        default=None,
        converter=optional(
            direction("direction", "of its z axis, turned there by the shortest rotation", 3),
            "`orientation`",
        ),
    )
    bodies: Any = eqx.field(default=None, converter=_BODIES)
    parameters: Any = eqx.field(default=None, converter=_PARAMETERS)


USES: Mapping[int, type[Any]] = MappingProxyType({2: PlanarUse, 3: SpatialUse})


class Assembly(eqx.Module):
    """An `[[assembly]]`: parts that are used several times. Besides these keys it has the tables of
    parts, of cylinders and of uses: `[[assembly.body]]` and so on."""

    name: str = eqx.field(converter=part_name("an assembly"))
    outer: Any = eqx.field(
        default=None, converter=_names("outer", "bodies outside of it, named by each use")
    )
    required: Any = eqx.field(
        default=None, converter=_names("required", "parameters that each use gives")
    )
    parameters: Any = eqx.field(
        default=None, converter=_table("parameters", "that a use may give", "numbers by name")
    )


_LINE = "on the first body, then on the second, in the reference configuration"
_SHAPE = "a cylinder or a tube, without `axis`"


class Cylinder(eqx.Module):
    """A `[[cylinder]]`: barrel and rod between two bodies, and what moves them."""

    name: str = eqx.field(converter=part_name("a cylinder"))
    bodies: Any = eqx.field(converter=body_names(2))
    points: Any = eqx.field(converter=two_points("points", _LINE))
    barrel: Any = eqx.field(
        converter=Field("barrel", "", "behind the first point", dict[str, Any], _SHAPE, _given)
    )
    rod: Any = eqx.field(
        converter=Field("rod", "", "before the second point", dict[str, Any], _SHAPE, _given)
    )
    ends: Any = eqx.field(
        default=None,
        converter=cast(Field, _names("ends", "joints at the two points"))._replace(
            admits="two types of joints, each `revolute` (2: alone), `universal`, `spherical`, "
            "`fixed` or `none`",
            left_out='["revolute", "revolute"], 3: ["universal", "spherical"]',
        ),
    )
    axis: Any = eqx.field(
        default=None,
        converter=optional(direction("axis", "of revolute ends, in space", 3), "no revolute end"),
    )
    motion: Any = eqx.field(
        default=None, converter=_table("motion", "of the rod against the barrel", "a motion")
    )
    force: Any = eqx.field(
        default=None,
        converter=optional(number("force", "N", "with which it pushes its ends apart"), "none"),
    )
    stiffness: Any = eqx.field(
        default=None, converter=optional(number("stiffness", "N/m", "of a spring inside"), "none")
    )
    damping: Any = eqx.field(
        default=None, converter=optional(number("damping", "N s/m", "of a damper inside"), "none")
    )
    length: Any = eqx.field(
        default=None,
        converter=optional(
            not_negative("length", "m", "natural length of the spring"), "the distance of points"
        ),
    )


# --------------------------------------------------------------------------------------------------
# Scopes of names and numbers: the file itself, or a sub-assembly.
# --------------------------------------------------------------------------------------------------


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
