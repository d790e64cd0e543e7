"""From a `Model` to a model file."""

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np
import tomlkit
from tomlkit.items import AoT, Array, InlineTable

from .._bodies import AbstractBody, GeneralizedBody, PlanarParticle, SpatialParticle
from .._constraints import AbstractJoint, Driver
from .._forces import AbstractForce
from .._system import Model
from ._registry import follows, force_entry, joint_entry, motion_word, MOTIONS


def write_model(model: Model) -> str:
    """The text of a model file that reads back to the same system, number for number.

    **Raises:** `ValueError` for parts that model files do not know (particles, constraints,
    forces and motions that are Python functions).
    """
    for element in model.elements:
        raise ValueError(f"{element.name!r} is an element, which model files do not know.")
    document = tomlkit.document()
    if model.remark:
        for line in _wrapped(model.remark):
            document.add(tomlkit.comment(line))
    document.add("schema", tomlkit.item(1))
    document.add("name", tomlkit.item(model.name))
    document.add("dimension", tomlkit.item(model.dimension))
    if model.gravity is not None:
        document.add("gravity", _value(model.gravity))
    for key, entries in (
        ("body", [_body(body, model.dimension) for body in model.bodies]),
        ("joint", [_joint(joint, model.dimension) for joint in model.joints]),
        ("driver", [_driver(driver) for driver in model.drivers]),
        ("force", [_force(force) for force in model.forces]),
    ):
        if entries:
            document.add(key, _tables(entries))
    return tomlkit.dumps(document)


def _tables(entries: list[dict[str, Any]]) -> AoT:
    tables = tomlkit.aot()
    for entry in entries:
        table = tomlkit.table()
        for key, value in entry.items():
            table.add(key, value)
        tables.append(table)
    return tables


def _value(array: Any) -> Array | float:
    # tolist gives Python floats, whose text is the shortest that reads back to the same number.
    return tomlkit.item(np.asarray(array).tolist())


def _body(body: AbstractBody, dimension: int) -> dict[str, Any]:
    planar_keys = ("mass", "inertia", "position", "angle", "velocity", "angular_velocity")
    spatial_keys = tuple("orientation" if key == "angle" else key for key in planar_keys)
    keys = planar_keys if dimension == 2 else spatial_keys
    missing = [key for key in keys if key not in vars(body)]
    if missing:
        raise ValueError(f"{body.name!r} is {_unknown(body)}, which model files do not know.")
    return {"name": body.name} | {key: _value(getattr(body, key)) for key in keys}


@functools.singledispatch
def _unknown(body: AbstractBody) -> str:
    """What a body is that cannot be written."""
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


def _joint(joint: AbstractJoint, dimension: int) -> dict[str, Any]:
    entry = joint_entry(joint, dimension)
    table: dict[str, Any] = {"name": joint.name, "type": joint.kind}
    keys = [key for key in (*entry.required, *entry.optional) if key != "carrier"]
    table["bodies"] = list(joint.bodies)
    if "carrier" in entry.optional:
        *geared, table["carrier"] = joint.bodies
        table["bodies"] = geared
    return table | _values(joint, keys)


def _values(part: AbstractJoint | AbstractForce, keys: Sequence[str]) -> dict[str, Any]:
    """The part's fields of these names; those that were left out stay so."""
    table: dict[str, Any] = {}
    for key in keys:
        field = getattr(part, key)
        if field is None:
            continue
        if isinstance(field, str):
            table[key] = field
        elif key == "at" and field.ndim == 2:
            same = np.array_equal(field[0], field[1])
            table["at" if same else "points"] = _value(field[0] if same else field)
        else:
            table[key] = _value(field)
    return table


def _driver(driver: Driver) -> dict[str, Any]:
    word = motion_word(driver.motion)
    motion: InlineTable = tomlkit.inline_table()
    motion.append("type", word)
    for key in (*MOTIONS[word].required, *MOTIONS[word].optional):
        motion.append(key, _value(getattr(driver.motion, key)))
    return {
        "name": driver.name,
        "joint": driver.joint,
        "coordinate": driver.coordinate,
        "motion": motion,
    }


def _force(force: AbstractForce) -> dict[str, Any]:
    entry = force_entry(force)
    table: dict[str, Any] = {"name": force.name, "type": force.kind}
    keys = [*entry.required, *entry.optional]
    if "body" in keys:
        (table["body"],) = vars(force)["bodies"]
    if "bodies" in keys:
        table["bodies"] = list(vars(force)["bodies"])
    table |= _values(force, [k for k in keys if k not in ("body", "bodies", "follows")])
    if "follows" in keys:
        table["follows"] = follows(force)
    return table


def _wrapped(text: str, width: int = 96) -> list[str]:
    lines, line = [], ""
    for word in text.split():
        if len(line) + len(word) > width:
            lines.append(line.rstrip())
            line = ""
        line += word + " "
    return [*lines, line.rstrip()]
