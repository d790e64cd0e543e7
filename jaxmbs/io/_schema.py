"""The tables of a model file (MODEL.md section 1), validated by pydantic.

Only the shape of the file is checked here: keys, types, finite numbers. What the numbers must
satisfy (a mass above zero, an axis with a direction) is checked where the parts are made.
"""

import functools
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, create_model, Field, ValidationError

from .._checks import shown
from .._errors import ModelError
from ._registry import Entry


Number = Annotated[float, Field(allow_inf_nan=False, strict=True)]
Vector = list[Number]
Names = list[str]


class AbstractTable(BaseModel):
    """A table that knows all its keys."""

    model_config = ConfigDict(extra="forbid", strict=True)


class PlanarBodyTable(AbstractTable):
    """`[[body]]` of dimension 2."""

    name: str
    mass: Number
    inertia: Number
    position: Vector
    angle: Number = 0.0
    velocity: Vector = [0.0, 0.0]
    angular_velocity: Number = 0.0


class SpatialBodyTable(AbstractTable):
    """`[[body]]` of dimension 3."""

    name: str
    mass: Number
    inertia: Vector | list[Vector]
    position: Vector
    orientation: Vector | None = None
    rotation: list[Vector] | None = None
    velocity: Vector = [0.0, 0.0, 0.0]
    angular_velocity: Vector = [0.0, 0.0, 0.0]


class DriverTable(AbstractTable):
    """`[[driver]]`."""

    name: str
    joint: str
    coordinate: str
    motion: dict[str, Any]


# Types of the keys of joints, motions and forces; their tables are made from the registry. Where
# several are admitted, which one is meant depends on the dimension or the type.
_KEYS: dict[str, Any] = {
    "at": Vector,
    "points": list[Vector],
    "axis": Vector,
    "axes": list[Vector],
    "direction": Vector,
    "pitch": Number,
    "length": Number,
    "radius": Number,
    "ratio": Number,
    "carrier": str,
    "coefficients": Vector | list[Vector],
    "offset": Number,
    "amplitude": Number,
    "frequency": Number,
    "phase": Number,
    "rate": Number,
    "times": Vector,
    "values": Vector,
    "bodies": Names,
    "body": str,
    "force": Vector,
    "torque": Number | Vector,
    "follows": Literal["world", "body"],
    "joint": str,
    "stiffness": Number | Vector | list[Vector],
    "damping": Number | Vector | list[Vector],
    "rest": Number,
    "coefficient": Number,
    "velocity": Number,
}


@functools.cache
def joint_table(entry: Entry) -> type[AbstractTable]:
    """The table of one type of joint. `at` and `points` exclude one another."""
    required, optional = _places(entry)
    return _made("JointTable", {"name": str, "type": str, "bodies": Names}, required, optional)


@functools.cache
def force_table(entry: Entry) -> type[AbstractTable]:
    """The table of one type of force. `at` and `points` exclude one another."""
    required, optional = _places(entry)
    return _made("ForceTable", {"name": str, "type": str}, required, optional)


@functools.cache
def motion_table(entry: Entry) -> type[AbstractTable]:
    """The table of one type of motion."""
    return _made("MotionTable", {"type": str}, entry.required, entry.optional)


def _places(entry: Entry) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The keys that must and may stand in a table, where `points` may stand for `at`."""
    if not entry.paired:
        return entry.required, entry.optional
    required = tuple(key for key in entry.required if key != "at")
    return required, ("at", "points", *entry.optional)


def _made(
    name: str, common: dict[str, Any], required: tuple[str, ...], optional: tuple[str, ...]
) -> type[AbstractTable]:
    fields: dict[str, Any] = {key: (kind, ...) for key, kind in common.items()}
    fields |= {key: (_KEYS[key], ...) for key in required}
    fields |= {key: (_KEYS[key] | None, None) for key in optional}
    return create_model(name, __base__=AbstractTable, **fields)


def validate(table: type[AbstractTable], content: Any, where: str) -> dict[str, Any]:
    """The keys that are given, with their values checked.

    **Raises:** `ModelError` with one sentence about the first thing that is wrong.
    """
    if not isinstance(content, dict):
        raise ModelError(f"{where} must be a table of keys and values, got {shown(content)}.")
    try:
        model = table.model_validate(content)
    except ValidationError as error:
        raise ModelError(f"{where}: {_sentence(table, error)}") from None
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
