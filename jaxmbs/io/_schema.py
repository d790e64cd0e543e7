"""The tables of a model file (`REFERENCE.md`), validated by pydantic.

Only the shape of the file is checked here: keys, types, finite numbers. What the numbers must
satisfy (a mass above zero, an axis with a direction) is checked where the parts are made.
"""

import functools
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, create_model, ValidationError

from .._checks import shown
from .._errors import ModelError
from .._fields import keys_of
from ._registry import FOLLOWS


class AbstractTable(BaseModel):
    """A table with a fixed set of keys and finite numbers."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)


@functools.cache
def table(cls: type[Any], typed: bool) -> type[AbstractTable]:
    """The table of a class of parts: the keys that its fields declare, and those that select its
    class. `typed`: there are several classes of such parts."""
    own: dict[str, Any] = {
        name: (key.said.form, ... if key.needed and not key.instead else None)
        for name, key in keys_of(cls).items()
    }
    name = {key: own[key] for key in own if key == "name"}
    kind: dict[str, Any] = {"type": (str, ...)} if typed else {}
    if cls in FOLLOWS.values():
        own["follows"] = (Literal[tuple(FOLLOWS)], None)
    return create_model(f"{cls.__name__}Table", __base__=AbstractTable, **(name | kind | own))


def validate(known: type[AbstractTable], content: Any, where: str) -> dict[str, Any]:
    """The keys that are given, with their values checked.

    **Raises:** `ModelError` with one sentence about the first thing that is wrong.
    """
    if not isinstance(content, dict):
        raise ModelError(f"{where} must be a table of keys and values, got {shown(content)}.")
    try:
        model = known.model_validate(content)
    except ValidationError as error:
        raise ModelError(f"{where}: {_sentence(known, error)}") from None
    return {key: getattr(model, key) for key in model.model_fields_set}


def _sentence(table: type[AbstractTable], error: ValidationError) -> str:
    # Unknown and missing keys first: they explain the other errors. Where several forms are
    # admitted, the one that was followed deepest is the one that was meant.
    order = {"extra_forbidden": 0, "missing": 1}
    first = min(error.errors(), key=lambda e: (order.get(e["type"], 2), -len(e["loc"])))
    key, kind, value = str(first["loc"][0]), first["type"], first["input"]
    known = ", ".join(table.model_fields)
    if kind == "extra_forbidden":
        return f"unknown key {shown(key)}; the keys are {known}."
    if kind == "missing":
        return f"the key {key!r} is missing; the keys are {known}."
    place = key if key in table.model_fields else shown(key)
    for step in first["loc"][1:]:
        if isinstance(step, int):
            place += f", entry {step + 1}"
    if kind == "finite_number":
        return f"{place} must be a finite number, got {shown(value)}."
    return f"{place} {_expected(first)}, got {shown(value)}."


def _expected(error: Any) -> str:
    wanted = {
        "float_type": "must be a number",
        "int_type": "must be a whole number",
        "string_type": "must be a text",
        "list_type": "must be an array",
        "dict_type": "must be a table",
    }
    if error["type"] == "literal_error":
        return f"must be {error['ctx']['expected']}"
    return str(wanted.get(error["type"], error["msg"].lower()))
