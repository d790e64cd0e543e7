"""From a `Model` to a model file."""

import functools
import tomllib
from collections.abc import Mapping
from typing import Any

import numpy as np
import tomlkit
from tomlkit.items import AoT, Item

from .._bodies import AbstractBody, GeneralizedBody, PlanarParticle, SpatialParticle
from .._compliances import BodyCompliance
from .._constraints import AbstractMotion
from .._fields import fields_of
from .._system import Model
from ._digits import digits_of_tables, with_digits, written
from ._registry import (
    BODIES,
    COMPLIANCES,
    ELEMENTS,
    followed,
    FORCES,
    JOINTS,
    MOTIONS,
    TYPED_BODIES,
    word_of,
)
from ._source import source_tables, source_text


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
    for key, entries in (
        ("body", model.bodies),
        ("joint", model.joints),
        ("driver", model.drivers),
        ("force", model.forces),
        ("compliance", model.compliances),
        ("element", model.elements),
    ):
        if entries:
            document.add(key, _tables([_entry(own, key, model.dimension) for own in entries]))
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
    word = word_of(value, MOTIONS)
    if word is None:
        raise ValueError(f"{type(value).__name__} is no motion of a model file.")
    motion = tomlkit.inline_table()
    for key, entry in ({"type": word} | _keys(value)).items():
        motion.append(key, entry)
    return motion


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
    known = {
        "joint": JOINTS[dimension],
        "force": FORCES,
        "compliance": COMPLIANCES,
        "element": ELEMENTS[dimension],
    }
    if kind == "body":
        return _body(part, dimension)
    return _typed(part, kind, known[kind]) if kind in known else _keys(part)


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
