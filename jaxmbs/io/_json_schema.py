"""JSON Schema of model files, for editors, from what the fields of parts declare."""

import types
import typing
from collections.abc import Mapping
from typing import Any

from .._constraints import Driver
from .._fields import Field, GRAVITY, Key, keys_of, Moves, PRECISION
from ._expansion import Assembly, Cylinder, GROUPS, RELATIVE, SHAPES, USES
from ._registry import (
    ACTUATORS,
    BODIES,
    COMPLIANCES,
    CONTACT_SHAPES,
    CONTROLLERS,
    ELEMENTS,
    FOLLOWS,
    FORCES,
    JOINTS,
    MOTIONS,
    SYNONYMS,
    TYPED_BODIES,
    VISUALS,
)


Schema = dict[str, Any]

_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_EXPRESSION: Schema = {"$ref": "#/$defs/expression"}


def json_schema() -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of model files: keys, types, what is required, and meanings.

    Editors with a TOML language server (Taplo, Even Better TOML) complete keys and mark mistakes
    with it, by the line `#:schema model.schema.json` at the head of a file. Conditions on numbers,
    and undeclared names, are checked by the reader alone.

    **Returns:** what `json.dumps` writes; the file `model.schema.json` next to this module contains
    it.
    """
    definitions: Schema = {
        "expression": {
            "type": "string",
            "minLength": 1,
            "description": "an expression of parameters, such as 'length / 2'",
        },
        "number": {"anyOf": [{"type": "number"}, _EXPRESSION]},
        "parameter": {"anyOf": [{"$ref": "#/$defs/number"}, _array({"$ref": "#/$defs/parameter"})]},
        "parameters": {
            "type": "object",
            "description": "numbers and arrays by name, which expressions use",
            "propertyNames": {"pattern": r"^[^\W\d]\w*$"},
            "additionalProperties": {"$ref": "#/$defs/parameter"},
        },
        "shape": _of_types(SHAPES, None),
        "motion": _of_types(MOTIONS, None),
        "contact_shape": _of_types(CONTACT_SHAPES, None),
        "actuator": _of_types(ACTUATORS, None),
        "controller": _of_types(CONTROLLERS, None),
    }
    for dimension in (2, 3):
        definitions |= _of_dimension(dimension)
    tables = dict.fromkeys((*GROUPS, "cylinder", "use", "assembly"), True)
    return {
        "$schema": _DIALECT,
        "title": "Model file of jaxmbs",
        "type": "object",
        "required": ["schema", "dimension"],
        "properties": {
            "schema": {"const": 1, "description": "the version of the format"},
            "name": {"type": "string", "description": "of the model"},
            "dimension": {"enum": [2, 3], "description": "2 planar, 3 spatial"},
            # Its length is that of the dimension below.
            "gravity": _value(GRAVITY, None, None),  # pyright: ignore[reportArgumentType]
            "precision": _value(PRECISION, None, None),
            "parameters": {"$ref": "#/$defs/parameters"},
            "units": {
                "type": "object",
                "description": "units by the name of a parameter, shown with its number",
                "propertyNames": {"pattern": r"^[^\W\d]\w*$"},
                "additionalProperties": {"type": "string", "minLength": 1, "maxLength": 20},
            },
            **tables,
        },
        "additionalProperties": False,
        "if": {"properties": {"dimension": {"const": 2}}},
        "then": {"$ref": "#/$defs/planar"},
        "else": {"$ref": "#/$defs/spatial"},
        "$defs": definitions,
    }


def _of_dimension(dimension: int) -> Schema:
    """The tables of a file, and of an assembly, of one dimension."""
    word = {2: "planar", 3: "spatial"}[dimension]
    joints = dict(JOINTS[dimension])
    joints |= {other: joints[own] for other, own in SYNONYMS.items()}
    tables: Schema = {
        "body": _body(dimension),
        "joint": _of_types(joints, dimension),
        "driver": _table(keys_of(Driver), dimension),
        "force": _of_types(FORCES, dimension),
        "compliance": _of_types(COMPLIANCES, dimension),
        "element": _of_types(ELEMENTS[dimension], dimension),
        "visual": _of_types(VISUALS, dimension),
        "cylinder": _table(keys_of(Cylinder), dimension),
        "use": _table(keys_of(USES[dimension]), dimension),
    }
    names = {f"{word}_{kind}": table for kind, table in tables.items()}
    lists = {kind: _array({"$ref": f"#/$defs/{word}_{kind}"}) for kind in tables}
    assembly = _table(keys_of(Assembly), dimension)
    assembly["properties"] |= lists
    names[f"{word}_assembly"] = assembly
    whole = {**lists, "assembly": _array({"$ref": f"#/$defs/{word}_assembly"})}
    whole["gravity"] = _value(GRAVITY, None, dimension)  # pyright: ignore[reportArgumentType]
    return {**names, word: {"properties": whole}}


def _body(dimension: int) -> Schema:
    """Mass and inertia are given, or follow from a shape."""
    table = _table(keys_of(BODIES[dimension]), dimension)
    table["properties"]["shape"] = {"$ref": "#/$defs/shape"}
    table["required"] = [key for key in table["required"] if key not in ("mass", "inertia")]
    table["oneOf"] = [
        {"required": ["mass", "inertia"], "not": {"required": ["shape"]}},
        {"required": ["shape"], "not": {"required": ["inertia"]}},
    ]
    own = TYPED_BODIES[dimension]
    if not own:
        return table
    return {"type": "object", "oneOf": [table, *_of_types(own, dimension)["oneOf"]]}


def _of_types(classes: Mapping[str, type[Any]], dimension: int | None) -> Schema:
    """A table with several types; of both dimensions (None) or of one."""
    found = []
    for word, cls in classes.items():
        table = _table(keys_of(cls), dimension)
        table["properties"] = {"type": {"const": word}, **table["properties"]}
        table["required"] = ["type", *table["required"]]
        if cls in FOLLOWS.values():
            table["properties"]["follows"] = {"enum": list(FOLLOWS)}
        found.append(table)
    # Without any type there is no such table.
    return {"type": "object", "required": ["type"], "oneOf": found} if found else {"not": {}}


def _table(keys: Mapping[str, Key], dimension: int | None) -> Schema:
    required = [name for name, key in keys.items() if key.needed and not key.instead]
    table: Schema = {
        "type": "object",
        "properties": {name: _value(key.said, key, dimension) for name, key in keys.items()},
        "required": required,
        "additionalProperties": False,
    }
    either = [name for name, key in keys.items() if key.needed and key.instead]
    if either:
        table["oneOf"] = [{"required": [name]} for name in either]
    return table


def _value(said: Field, key: Key | None, dimension: int | None) -> Schema:
    """The schema of the value of one key."""
    named = {"motion": "motion", "barrel": "shape", "rod": "shape", "parameters": "parameters"}
    if said.holds or (said.form == dict[str, Any] and said.key in named):
        schema: Schema = {"$ref": f"#/$defs/{said.holds or named[said.key]}"}
    else:
        known: Any = said if said.within is None or dimension is None else said.within(dimension)
        schema = _of_form(said.form, said.moves, known.shape)
        if said.bounds:
            schema = {"anyOf": [{"type": "number", **dict(said.bounds)}, _EXPRESSION]}
    unit = f", {said.unit.format(driven='m or rad')}" if said.unit else ""
    schema = {**schema, "description": f"{said.meaning} ({said.admits}{unit})"}
    if key is not None and not key.needed and isinstance(key.default, int | float):
        schema["default"] = key.default
    return schema


def _of_form(form: Any, moves: Moves, shape: tuple[int, ...] = ()) -> Schema:
    """Schema of a Python type in a file, with expressions in place of numbers. `shape`
    of an array; unknown sizes are left open."""
    if form is str:
        return {"type": "string"}
    if form is bool:
        return {"type": "boolean"}
    if form in (int, float):
        return _either([{"$ref": "#/$defs/number"}], moves)
    if isinstance(form, types.UnionType):
        forms = [_of_form(each, Moves.nothing) for each in typing.get_args(form)]
        return _either(forms, moves)
    if typing.get_origin(form) is list:
        (entry,) = typing.get_args(form)
        of_entry = moves if entry is not float else Moves.nothing
        inner = _array(_of_form(entry, of_entry, shape[1:]))
        if shape:
            inner |= {"minItems": shape[0], "maxItems": shape[0]}
        return inner if entry is str else _either([inner, _EXPRESSION], moves)
    return {"type": "object"}


def _either(forms: list[Schema], moves: Moves) -> Schema:
    """One of these, or a number in the axes of a body where it has axes."""
    if moves in RELATIVE:
        key = RELATIVE[moves]
        body = {"type": "string", "description": "in whose axes it is given"}
        relative = {
            "type": "object",
            "properties": {"body": body, key: {"$ref": "#/$defs/parameter"}},
            "required": ["body", key],
            "additionalProperties": False,
        }
        forms = [*forms, relative]
    return forms[0] if len(forms) == 1 else {"anyOf": forms}


def _array(entry: Schema) -> Schema:
    return {"type": "array", "items": entry}
