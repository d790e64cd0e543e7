"""The tables of a file as it was read, with the numbers that its model has now."""

import copy
import json
from collections.abc import Callable, Mapping
from typing import Any

import equinox as eqx
import numpy as np
import tomlkit
from tomlkit.items import AoT, Item, Table

from .._fields import fields_of, keys_of
from .._parameters import Parameters
from .._system import Model
from ._expansion import GROUPS, TURNS
from ._read import model_from_tables


# In this order they are written.
_TABLES = (*GROUPS, "cylinder", "assembly", "use")
_HEAD = ("schema", "name", "dimension", "gravity", "precision", "parameters")

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
    try:
        if _set_free_numbers(content, model.parameters, read.parameters):
            read = model_from_tables(content)
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
    groups = (*GROUPS.values(), "gravity")
    return _follows(read.parameters, model.parameters) and all(
        bool(eqx.tree_equal(getattr(read, group), getattr(model, group))) for group in groups
    )


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
        if key in content and key != "parameters":
            document.add(key, _item(content[key]))
    if content.get("parameters"):
        document.add("parameters", _table(content["parameters"]))
    for key in _TABLES:
        if content.get(key):
            document.add(key, _tables(content[key]))
    return tomlkit.dumps(document)


def tables_text(kind: str, entries: list[Mapping[str, Any]]) -> str:
    """Tables of one kind, as in a file."""
    document = tomlkit.document()
    document.add(kind, _tables(entries))
    return tomlkit.dumps(document)


def _tables(entries: list[Mapping[str, Any]]) -> AoT:
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
        table.add(key, _tables(entry[key]))
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
