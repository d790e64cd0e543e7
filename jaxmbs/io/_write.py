"""From a `Model` to a model file, and the tables of a file as it was read, with the numbers that
its model has now.
"""

import copy
import functools
import json
import tomllib
from collections.abc import Callable, Mapping
from typing import Any

import equinox as eqx
import numpy as np
import tomlkit
from tomlkit.items import AoT, Item, Table

from .._bodies import AbstractBody, AbstractVisual, GeneralizedBody, PlanarParticle, SpatialParticle
from .._compliances import BodyCompliance
from .._constraints import AbstractMotion
from .._fields import fields_of, keys_of
from .._forces import AbstractActuator, AbstractContactShape, AbstractController
from .._parameters import Parameters
from .._system import Model
from ._digits import digits_of_tables, with_digits, written
from ._expansion import GROUPS, TURNS
from ._read import model_from_tables
from ._registry import (
    ACTUATORS,
    BODIES,
    CONTACT_SHAPES,
    CONTROLLERS,
    ELEMENTS,
    followed,
    MOTIONS,
    TYPED_BODIES,
    TYPES,
    word_of,
)


# --------------------------------------------------------------------------------------------------
# The tables of a file as it was read, with the numbers that its model has now.
# --------------------------------------------------------------------------------------------------


# In this order they are written.
_TABLES = (*GROUPS, "cylinder", "assembly", "use")
_HEAD = ("schema", "name", "dimension", "gravity", "precision")

# From the first word of a number's name to the table that contains it.
_KINDS = {"uses": "use", "cylinders": "cylinder", "bodies": "body"}

Entry = Callable[[Any, str], Mapping[str, Any]]


def source_tables(model: Model, entry: Entry) -> dict[str, Any] | None:
    """The tables from which a model was read, with its numbers; None where they do not make the
    same parts any more, or there are none. `entry`: the table of a part in numbers, of one kind."""
    if model.parameters is None or not model.parameters.source:
        return None
    content = json.loads(model.parameters.source)
    content["name"] = model.name
    read = model_from_tables(content)
    seen = (read.visuals,)
    try:
        if _set_free_numbers(content, model.parameters, read.parameters):
            read = model_from_tables(content)
        if not _shows(model, (*seen, read.visuals)):
            return None
        if _same(read, model):
            return content
        _set_parts(content, model, read, entry)
        read = model_from_tables(content)
    except ValueError:
        # A part in numbers may not go together with what follows from it.
        return None
    return content if _same(read, model) else None


def _same(read: Model, model: Model) -> bool:
    """Has what is read from the file the same parts, number for number, and does it follow from
    the same numbers?"""
    groups = (*(group for group in GROUPS.values() if group != "visuals"), "gravity")
    return _follows(read.parameters, model.parameters) and all(
        bool(eqx.tree_equal(getattr(read, group), getattr(model, group))) for group in groups
    )


def _shows(model: Model, seen: tuple[tuple[AbstractVisual, ...], ...]) -> bool:
    """Does the model look as what is read from the file, before or after its numbers are set? Looks
    do not follow numbers that are changed in Python."""
    return any(bool(eqx.tree_equal(model.visuals, own)) for own in seen)


def _follows(read: Parameters | None, now: Parameters | None) -> bool:
    """Are the numbers of no part those of now, and has the file no formula that the model has
    not?"""
    if read is None or now is None:
        return read is now
    values, formulas = now.values, now.definitions.formulas
    return all(
        name in values and np.array_equal(values[name], value)
        for name, value in read.values.items()
    ) and all(formulas.get(name) == own for name, own in read.definitions.formulas.items())


def _set_free_numbers(content: dict[str, Any], now: Parameters, before: Parameters | None) -> bool:
    """Numbers of no part, at their place in the file, also in place of an expression. Was there
    any to set?"""
    known, changed = {} if before is None else before.values, False
    for name, value in now.values.items():
        if name in known and np.array_equal(known[name], value):
            continue
        group, *way = name.split(".")
        table = content if group == "parameters" else _table_of(content, _KINDS[group], way)
        way = ["parameters", *way] if group == "parameters" else way[1:]
        for step in way[:-1]:
            table = {} if table is None else table.setdefault(step, {})
        if table is None:
            continue
        if group == "uses" and way[-1] in TURNS:
            for key in set(TURNS) & set(table):
                del table[key]
        table[way[-1]], changed = np.asarray(value).tolist(), True
    return changed


def _table_of(content: Mapping[str, Any], kind: str, way: list[str]) -> dict[str, Any] | None:
    """The table of that name; None where a sub-assembly declares it."""
    return next((own for own in content.get(kind, []) if own.get("name") == way[0]), None)


def _set_parts(content: dict[str, Any], model: Model, read: Model, entry: Entry) -> None:
    """Numbers of the file's own parts that are not what is read from it, or that follow from
    nothing any more."""
    free = _formulas(read) - _formulas(model)
    for kind, group in GROUPS.items():
        if kind == "visual":
            continue
        known = {part.name: part for part in getattr(read, group)}
        now = {part.name: part for part in getattr(model, group)}
        tables = content.get(kind, [])
        for index, own in enumerate(tables):
            part, before = now.get(own["name"]), known.get(own["name"])
            if part is None or before is None:
                continue
            fields = {way[2] for way in map(_words, free) if way[:2] == [group, part.name]}
            if fields or not eqx.tree_equal(part, before):
                tables[index] = _with_changes(own, part, before, kind, fields, entry)
    changed = "gravity" in free or not eqx.tree_equal(model.gravity, read.gravity)
    if model.gravity is not None and changed:
        content["gravity"] = np.asarray(model.gravity).tolist()


def _formulas(model: Model) -> set[str]:
    """The names of what follows from other numbers."""
    return set() if model.parameters is None else set(model.parameters.definitions.formulas)


def _words(name: str) -> list[str]:
    return name.split(".")


def _with_changes(
    own: Mapping[str, Any], part: Any, before: Any, kind: str, fields: set[str], entry: Entry
) -> dict[str, Any]:
    """The table of a part, with the keys in numbers that differ from those before, and those of
    some fields."""
    new, old = _plain(entry(part, kind)), _plain(entry(before, kind))
    keys = keys_of(type(part))
    given = {
        key.key for field, said in fields_of(part).items() if field in fields for key in said.keys
    }
    table = {key: value for key, value in own.items() if key in new or key not in old}
    for key in (key for key in new if new[key] != old.get(key) or key in given):
        instead = keys[key].instead if key in keys else None
        table = {own: value for own, value in table.items() if own != instead}
        table[key] = new[key]
    return table


def _plain(entry: Mapping[str, Any]) -> dict[str, Any]:
    """The value without the items of the TOML library."""
    return {
        key: copy.deepcopy(value.unwrap() if isinstance(value, Item) else value)
        for key, value in entry.items()
    }


# ---------------------------------------------------------------------------------------------
# Text
# ---------------------------------------------------------------------------------------------


def source_text(content: Mapping[str, Any], comments: list[str]) -> str:
    """The file with these tables."""
    document = tomlkit.document()
    for line in comments:
        document.add(tomlkit.comment(line))
    for key in _HEAD:
        if key in content:
            document.add(key, _item(content[key]))
    for key in ("parameters", "units"):
        if content.get(key):
            document.add(key, _table(content[key]))
    for key in _TABLES:
        if content.get(key):
            document.add(key, _source_tables(content[key]))
    return tomlkit.dumps(document)


def tables_text(kind: str, entries: list[Mapping[str, Any]]) -> str:
    """Tables of one kind, as in a file."""
    document = tomlkit.document()
    document.add(kind, _source_tables(entries))
    return tomlkit.dumps(document)


def _source_tables(entries: list[Mapping[str, Any]]) -> AoT:
    tables = tomlkit.aot()
    for entry in entries:
        tables.append(_table(entry))
    return tables


def _table(entry: Mapping[str, Any]) -> Table:
    """A table; in an assembly, the tables within it follow its keys."""
    table = tomlkit.table()
    # Only assemblies have lists of tables under these keys.
    inner = [key for key in _TABLES if _are_tables(entry.get(key))]
    for key, value in entry.items():
        if key not in inner and not (key in _TABLES and value == []):
            table.add(key, _item(value))
    for key in inner:
        table.add(key, _source_tables(entry[key]))
    return table


def _are_tables(value: Any) -> bool:
    return isinstance(value, list) and len(value) > 0 and isinstance(value[0], dict)


def _item(value: Any) -> Item:
    """A number, a text, an array or an inline table."""
    if isinstance(value, dict):
        table = tomlkit.inline_table()
        for key, inner in value.items():
            table.append(key, _item(inner))
        return table
    if isinstance(value, list):
        array = tomlkit.array()
        for inner in value:
            array.append(_item(inner))
        return array
    return tomlkit.item(value)


# --------------------------------------------------------------------------------------------------
# From a `Model` to a model file.
# --------------------------------------------------------------------------------------------------


_NUMBERS_ALONE = (
    "Parts were changed after this model was read, so that they do not follow from its parameters, "
    "shapes and sub-assemblies any more: these are left out."
)


def write_model(model: Model) -> str:
    """The text of a model file that reads back to the same system, number for number.

    A model that was read from a file with parameters, expressions, shapes or sub-assemblies is
    written with them and with their numbers as they are now. Where parts were changed so that they
    do not follow from these any more, all parts are written in numbers, and a comment states that.

    **Raises:** `ValueError` for parts that model files cannot contain (particles, constraints,
    forces and motions that are Python functions).
    """
    for element in model.elements:
        if word_of(element, ELEMENTS[model.dimension]) is None:
            raise ValueError(
                f"{element.name!r} is an element of functions, which model files do not know."
            )
    known = None if model.precision is None else float(model.precision)
    text = _text(model, known)
    # What is exact in the model is so in the file, however few digits its numbers have.
    told = with_digits(model, digits_of_tables(_digits(text)))
    exact = known is None and told.precision is not None
    return _text(model, 0.0) if exact else text


def _digits(text: str) -> dict[str, Any]:
    return tomllib.loads(text, parse_float=written)


def _text(model: Model, precision: float | None) -> str:
    kept = source_tables(model, functools.partial(_entry, dimension=model.dimension))
    if kept is not None:
        kept.pop("precision", None)
        if precision is not None:
            kept["precision"] = precision
        return source_text(kept, _wrapped(model.remark) if model.remark else [])
    document = tomlkit.document()
    if model.remark:
        for line in _wrapped(model.remark):
            document.add(tomlkit.comment(line))
    if model.parameters is not None:
        for line in _wrapped(_NUMBERS_ALONE):
            document.add(tomlkit.comment(line))
    document.add("schema", tomlkit.item(1))
    document.add("name", tomlkit.item(model.name))
    document.add("dimension", tomlkit.item(model.dimension))
    if model.gravity is not None:
        document.add("gravity", _value(model.gravity))
    if precision is not None:
        document.add("precision", tomlkit.item(precision))
    for kind, group in GROUPS.items():
        entries = [_entry(part, kind, model.dimension) for part in getattr(model, group)]
        if entries:
            document.add(kind, _tables(entries))
    return tomlkit.dumps(document)


def _tables(entries: list[dict[str, Any]]) -> AoT:
    tables = tomlkit.aot()
    for entry in entries:
        table = tomlkit.table()
        for key, value in entry.items():
            table.add(key, value)
        tables.append(table)
    return tables


@functools.singledispatch
def _value(value: Any) -> Item:
    """The TOML item of a field's value: numbers, names or a motion."""
    # tolist gives Python floats, whose text is the shortest that reads back to the same number.
    return tomlkit.item(np.asarray(value).tolist())


@_value.register
def _(value: AbstractMotion) -> Item:
    return _inner_table(value, "motion", MOTIONS)


@_value.register
def _(value: AbstractActuator) -> Item:
    return _inner_table(value, "actuator", ACTUATORS)


@_value.register
def _(value: AbstractController) -> Item:
    return _inner_table(value, "controller", CONTROLLERS)


@_value.register
def _(value: AbstractContactShape) -> Item:
    return _inner_table(value, "shape of contact", CONTACT_SHAPES)


def _inner_table(value: Any, noun: str, classes: Mapping[str, type[Any]]) -> Item:
    """A part within another, with its type."""
    word = word_of(value, classes)
    if word is None:
        raise ValueError(f"{type(value).__name__} is no {noun} of a model file.")
    table = tomlkit.inline_table()
    for key, entry in ({"type": word} | _keys(value)).items():
        table.append(key, entry)
    return table


def _keys(part: Any) -> dict[str, Any]:
    """The values of the part's fields, by key, without those that were omitted."""
    held = {field: getattr(part, field) for field in fields_of(part)}
    return {
        key: _value(value)
        for field, said in fields_of(part).items()
        if held[field] is not None
        for key, value in said.written(held[field]).items()
    }


def _body(body: AbstractBody, dimension: int) -> dict[str, Any]:
    if word_of(body, TYPED_BODIES[dimension]) is not None:
        return _typed(body, "body", TYPED_BODIES[dimension])
    if type(body) is not BODIES[dimension]:
        raise ValueError(f"{body.name!r} is {_unknown(body)}, which model files do not know.")
    return _keys(body)


@functools.singledispatch
def _unknown(body: AbstractBody) -> str:
    """The type of a body that cannot be written."""
    return f"a {type(body).__name__}"


@_unknown.register(PlanarParticle)
@_unknown.register(SpatialParticle)
def _(body: AbstractBody) -> str:
    del body
    return "a particle"


@_unknown.register
def _(body: GeneralizedBody) -> str:
    del body
    return "given by functions"


def _entry(part: Any, kind: str, dimension: int) -> dict[str, Any]:
    """The table of a part of one kind, in plain numbers and texts."""
    if kind == "body":
        return _body(part, dimension)
    if kind == "visual":
        return {"type": part.kind} | _keys(part)
    return _typed(part, kind, TYPES[kind][dimension]) if kind in TYPES else _keys(part)


def _typed(part: Any, what: str, classes: Mapping[str, type[Any]]) -> dict[str, Any]:
    """The table of a part that has several classes."""
    word = word_of(part, classes)
    if isinstance(part, BodyCompliance):
        raise ValueError(
            f"{what} {part.name!r} holds a reduced body, which model files do not; write a rod, or "
            "build it in Python."
        )
    if word is None:
        raise ValueError(
            f"{what} {part.name!r} ({part.kind}) is made of a Python function and cannot be "
            "written to a model file."
        )
    return {"name": part.name, "type": word} | _keys(part) | followed(part)


def _wrapped(text: str, width: int = 96) -> list[str]:
    lines, line = [], ""
    for word in text.split():
        if len(line) + len(word) > width:
            lines.append(line.rstrip())
            line = ""
        line += word + " "
    return [*lines, line.rstrip()]
