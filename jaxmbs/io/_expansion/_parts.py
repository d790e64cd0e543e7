"""Tables of parts, with names and numbers as a model without sub-assemblies has them."""

from collections.abc import Mapping
from typing import Any

from ..._checks import listed, shown
from ..._constraints import Driver
from ..._errors import ModelError
from ..._fields import Field, fields_of, Key, keys_of
from ..._parameters import (
    AbstractFormula,
    MassOf,
    MomentsOf,
    Number,
    QuaternionOf,
)
from .._registry import (
    BODIES,
    COMPLIANCES,
    ELEMENTS,
    FORCES,
    JOINTS,
    MOTIONS,
    SYNONYMS,
    TYPED_BODIES,
)
from ._collection import Collection, Pending, Place
from ._scope import Scope
from ._tables import SHAPES


# From the table of a file to the group of a model.
GROUPS: Mapping[str, str] = {
    "body": "bodies",
    "joint": "joints",
    "driver": "drivers",
    "force": "forces",
    "compliance": "compliances",
    "element": "elements",
}


def add_part(kind: str, entry: Any, index: int, scope: Scope, found: Collection) -> None:
    """One table of a part. A value that is not a table, or of unknown type, is left to the reader,
    which refuses it."""
    cls = _class_of(kind, entry, scope.dimension)
    if cls is None:
        found.tables[kind].append(entry)
        return
    made = dict(entry)
    if "name" in entry:
        made["name"] = scope.called(entry["name"])
    name = made.get("name")
    where = f"{kind} {shown(name, 60) if isinstance(name, str) else f'number {index + 1}'}"
    owner = f"{GROUPS[kind]}.{name}"
    if kind == "body":
        _add_pose(made, scope)
        if "shape" in made:
            if cls is not BODIES[scope.dimension]:
                raise ModelError(
                    f"{where}: a body of type {shown(entry['type'], 60)} has no mass and no "
                    "inertia, so no `shape`; leave out the one or the other."
                )
            _add_shape(made, where, owner, scope, found)
        found.bodies.setdefault(str(name), made)
    _set_keys(cls, made, where, owner, scope, found)
    motion = made.get("motion")
    if kind == "driver" and isinstance(motion, dict):
        made["motion"] = motion = dict(motion)
        held = _typed(MOTIONS, motion)
        if held is not None:
            _set_keys(held, motion, f"{where}, motion", f"{owner}.motion", scope, found)
    found.tables[kind].append(made)


def _class_of(kind: str, entry: Any, dimension: int) -> type[Any] | None:
    if not isinstance(entry, dict):
        return None
    if kind == "body":
        # A body without a type has mass; one of an unknown type is left to the reader.
        own = TYPED_BODIES[dimension] if "type" in entry else {}
        return _typed(own, entry) if own else BODIES[dimension]
    if kind == "driver":
        return Driver
    known = {
        "joint": JOINTS[dimension],
        "force": FORCES,
        "compliance": COMPLIANCES,
        "element": ELEMENTS[dimension],
    }
    return _typed(known[kind], entry)


def _typed(classes: Mapping[str, type[Any]], entry: Mapping[str, Any]) -> type[Any] | None:
    word = entry.get("type")
    return classes.get(SYNONYMS.get(word, word)) if isinstance(word, str) else None


def _set_keys(
    cls: type[Any],
    made: dict[str, Any],
    where: str,
    owner: str,
    scope: Scope,
    found: Collection,
) -> None:
    """References by full names, and formulas for what is not given as it is."""
    for key, own in keys_of(cls).items():
        if key not in made or key == "name":
            continue
        if own.said.refers:
            made[key] = scope.referred(made[key])
        if not is_numeric(own.said):
            continue
        place = Place(where, key, entry_text(made[key]))
        formula = scope.formula(made[key], own.said, place)
        if formula is None:
            continue
        set_key(cls, key, formula, place, made, owner, found)


def set_key(
    cls: type[Any],
    key: str,
    formula: AbstractFormula,
    place: Place,
    made: dict[str, Any],
    owner: str,
    found: Collection,
) -> None:
    """A formula for a key of a part's table."""
    field = next(f for f, said in fields_of(cls).items() if key in [k.key for k in said.keys])
    written = key
    if field == "orientation" and key == "rotation":
        # A part holds the quaternion, whichever of the two is given.
        del made[key]
        formula, written = QuaternionOf(formula), field
    # Set when formulas are evaluated; the key is there, so that nothing misses it.
    made[written] = None
    found.set_later(f"{owner}.{field}", Pending(place, made, written, formula))


def is_numeric(said: Field) -> bool:
    """Does the key hold numbers?"""
    return "float" in str(said.form)


def entry_text(value: Any) -> Any:
    """The value quoted in a message; None for values that the expansion itself inserted."""
    return None if isinstance(value, AbstractFormula) else value


def _add_pose(made: dict[str, Any], scope: Scope) -> None:
    """The orientation of a body that has none, in axes that have one."""
    if scope.pose is None or {"angle", "orientation", "rotation"} & set(made):
        return
    if scope.dimension == 2:
        made["angle"] = 0.0
    else:
        made["orientation"] = [1.0, 0.0, 0.0, 0.0]


def _add_shape(
    made: dict[str, Any], where: str, owner: str, scope: Scope, found: Collection
) -> None:
    """Mass and inertia from the shape of a body."""
    if "inertia" in made:
        raise ModelError(f"{where}: give `inertia` or `shape`, one of the two.")
    shape, pairs = shape_numbers(
        made.pop("shape"), f"{where}, shape", f"{owner}.shape", scope, found
    )
    given = {"mass", "density"} & {word for word, _ in pairs}
    if ("mass" in made) == bool(given):
        raise ModelError(f"{where}: give `mass`, or `density` or `mass` in its shape, one of them.")
    cls = BODIES[scope.dimension]
    if given:
        place = Place(where, "mass", None)
        set_key(cls, "mass", MassOf(shape, pairs), place, made, owner, found)
    else:
        pairs = (*pairs, ("mass", Number(f"{owner}.mass")))
    place = Place(where, "inertia", None)
    formula = MomentsOf(shape, pairs, scope.dimension)
    set_key(cls, "inertia", formula, place, made, owner, found)


def shape_numbers(
    table: Any, where: str, owner: str, scope: Scope, found: Collection
) -> tuple[type[Any], tuple[tuple[str, AbstractFormula], ...]]:
    """The class of a shape's table, and its numbers by key."""
    if not isinstance(table, dict) or table.get("type") not in tuple(SHAPES):
        got = table.get("type") if isinstance(table, dict) else table
        raise ModelError(
            f"{where} must be a table with a `type`, one of {', '.join(SHAPES)}; got {shown(got)}."
        )
    cls = SHAPES[table["type"]]
    keys = keys_of(cls)
    check_keys({"type": None, **keys}, table, where)
    pairs = []
    for key in (key for key in keys if key in table):
        place = Place(where, key, entry_text(table[key]))
        formula = scope.plain(table[key], place)
        if isinstance(table[key], AbstractFormula):
            pairs.append((key, formula))
            continue
        found.define(f"{owner}.{key}", formula, place, keys[key].said)
        pairs.append((key, Number(f"{owner}.{key}")))
    return cls, tuple(pairs)


def check_keys(keys: Mapping[str, Key | None], table: Mapping[str, Any], where: str) -> None:
    """**Raises:** `ModelError` for a key that is unknown or missing."""
    for key in table:
        if key not in keys:
            raise ModelError(f"{where}: unknown key {shown(key)}; the keys are {listed(keys)}.")
    for key, own in keys.items():
        if own is not None and own.needed and key not in table:
            raise ModelError(f"{where}: the key {key!r} is missing; the keys are {listed(keys)}.")
