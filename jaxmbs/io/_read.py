"""From a model file to a `Model`."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .. import _settings
from .._bodies import AbstractBody, AbstractElement
from .._checks import shown
from .._compliances import AbstractCompliance
from .._constraints import AbstractJoint, Driver
from .._custom_types import Setting
from .._errors import ModelError
from .._fields import keys_of
from .._forces import AbstractForce
from .._system import Model
from . import _registry
from ._digits import digits_of_tables, with_digits, written
from ._expansion import expand, KEYS as EXPANDED
from ._registry import (
    BODIES,
    COMPLIANCES,
    ELEMENTS,
    FOLLOWS,
    FORCES,
    JOINTS,
    MOTIONS,
    SYNONYMS,
    TYPED_BODIES,
)
from ._toml import read_toml


_TABLES = ("body", "joint", "driver", "force", "compliance", "element")
# Longest name of an entry in a message.
_NAME = 60
_KEYS = ("schema", "name", "dimension", "gravity", "precision", *_TABLES, *EXPANDED)


def read_model(path: Setting[str | Path]) -> Model:
    """The model in a TOML file (`REFERENCE.md` next to this module).

    **Raises:** `ModelError` (a `ValueError`) with one sentence that names the table, the entry and
    the value, and the usual fix. Whether the reference configuration is closed is not checked here,
    as it may be assembled. Without a key `precision` it follows from the digits of the numbers.
    """
    _settings.path(path, "path")
    # Whatever a file system admits in a name, reports print.
    stem = "".join(c if c.isprintable() else "?" for c in Path(path).stem)
    model = model_from_tables(content := read_toml(path), default_name=stem)
    if "precision" in content:
        return model
    return with_digits(model, digits_of_tables(read_toml(path, written)))


def model_from_tables(
    content: Setting[Mapping[str, Any]], default_name: Setting[str] = "model"
) -> Model:
    """The model in nested dictionaries, as `tomllib` makes them of a model file.

    **Raises:** `ModelError`, as `read_model`.
    """
    _settings.mapping(content, "content", "that of tomllib.load")
    _settings.text(default_name, "default_name", "'model'")
    for key in content:
        if key not in _KEYS:
            raise ModelError(
                f"unknown key {shown(key)} in the file; the keys are {', '.join(_KEYS)}."
            )
    dimension = _head(content)
    name = content.get("name", default_name)
    if not isinstance(name, str):
        raise ModelError(f"name must be a text, got {shown(name)}.")
    expanded = expand(content, dimension)
    tables = {key: _entries(expanded.tables, key) for key in _TABLES}
    bodies = [_body(entry, i, dimension) for i, entry in enumerate(tables["body"])]
    if not bodies:
        raise ModelError("the file declares no body; add a [[body]] table.")
    joints = [_joint(entry, i, dimension) for i, entry in enumerate(tables["joint"])]
    drivers = [_driver(entry, i, dimension) for i, entry in enumerate(tables["driver"])]
    forces = [_force(entry, i, dimension) for i, entry in enumerate(tables["force"])]
    compliances = [_compliance(entry, i, dimension) for i, entry in enumerate(tables["compliance"])]
    elements = [_element(entry, i, dimension) for i, entry in enumerate(tables["element"])]
    gravity = expanded.tables.get("gravity")
    if gravity is not None:
        gravity = _values(Model, {"gravity": gravity}, "the file", typed=False)["gravity"]
    precision = content.get("precision")
    if precision is not None:
        head = {"precision": precision}
        precision = _values(Model, head, "the file", typed=False)["precision"]
    try:
        model = Model(
            name,
            dimension,
            bodies=bodies,
            joints=joints,
            drivers=drivers,
            forces=forces,
            compliances=compliances,
            elements=elements,
            gravity=gravity,
            precision=precision,
            parameters=expanded.parameters,
        )
        # Names, and whether the parts belong together, are the system's business.
        model.system()
    except ValueError as error:
        raise ModelError(str(error)) from None
    return model


def _head(content: Mapping[str, Any]) -> int:
    for key in ("schema", "dimension"):
        if key not in content:
            value = "1" if key == "schema" else "2 (planar) or 3 (spatial)"
            raise ModelError(
                f"the key {key!r} is missing at the head of the file; set it to {value}."
            )
    schema, dimension = content["schema"], content["dimension"]
    if type(schema) is not int or schema != 1:
        raise ModelError(f"schema must be 1, got {shown(schema)}.")
    if type(dimension) is not int or dimension not in (2, 3):
        raise ModelError(f"dimension must be 2 (planar) or 3 (spatial), got {shown(dimension)}.")
    return dimension


def _entries(content: Mapping[str, Any], key: str) -> list[Any]:
    entries = content.get(key, [])
    if not isinstance(entries, list):
        raise ModelError(f"[{key}] must be written [[{key}]], as there may be several.")
    return entries


def _where(what: str, entry: Any, index: int) -> str:
    """Name of an entry in a message: its name, or its place if it has none."""
    name = entry.get("name") if isinstance(entry, dict) else None
    return f"{what} {shown(name, _NAME)}" if isinstance(name, str) else f"{what} number {index + 1}"


def _values(cls: type[Any], entry: Any, where: str, typed: bool) -> dict[str, Any]:
    """The values in the table of a class of parts, by key."""
    values = _registry.validate(_registry.table(cls, typed), entry, where)
    values.pop("type", None)
    return values


def _made(cls: type[Any], values: dict[str, Any], where: str, dimension: int) -> Any:
    """A part; an error in it names its table."""
    try:
        return cls(**_arguments(cls, values, dimension))
    except ValueError as error:
        raise ModelError(f"{where}: {error}") from None


def _arguments(cls: type[Any], values: Mapping[str, Any], dimension: int) -> dict[str, Any]:
    """Arguments of a part, from the keys of its table."""
    keys = keys_of(cls)
    for name, key in keys.items():
        if key.instead is None:
            continue
        given = (name in values) + (key.instead in values)
        if given == 2 or (key.needed and not given):
            other = keys[key.instead].said.admits
            raise ValueError(
                f"give `{name}` ({key.said.admits}) or `{key.instead}` ({other}), one of the two."
            )
    for name, value in values.items():
        if (within := keys[name].said.within) is not None:
            within(dimension)(value)
    return {keys[name].argument: value for name, value in values.items()}


def _body(entry: Any, index: int, dimension: int) -> AbstractBody:
    where, cls = _where("body", entry, index), BODIES[dimension]
    typed = isinstance(entry, dict) and "type" in entry and bool(TYPED_BODIES[dimension])
    if typed:
        cls = _known(TYPED_BODIES[dimension], entry, where)
    return _made(cls, _values(cls, entry, where, typed=typed), where, dimension)


def _joint(entry: Any, index: int, dimension: int) -> AbstractJoint:
    where = _where("joint", entry, index)
    word = _word(entry, where)
    known = JOINTS[dimension]
    if SYNONYMS.get(word, word) not in known:
        elsewhere = SYNONYMS.get(word, word) in JOINTS[5 - dimension]
        why = f" exists in dimension {5 - dimension} only" if elsewhere else " is unknown"
        raise ModelError(
            f"{where}: type {shown(word, _NAME)}{why}; the types of dimension {dimension} are "
            f"{', '.join([*known, *SYNONYMS])}."
        )
    cls = known[SYNONYMS.get(word, word)]
    return _made(cls, _values(cls, entry, where, typed=True), where, dimension)


def _driver(entry: Any, index: int, dimension: int) -> Driver:
    where = _where("driver", entry, index)
    values = _values(Driver, entry, where, typed=False)
    of_motion, motion = f"{where}, motion", values["motion"]
    cls = _known(MOTIONS, motion, of_motion)
    values["motion"] = _made(cls, _values(cls, motion, of_motion, typed=True), of_motion, dimension)
    return _made(Driver, values, where, dimension)


def _force(entry: Any, index: int, dimension: int) -> AbstractForce:
    where = _where("force", entry, index)
    cls = _known(FORCES, entry, where)
    values = _values(cls, entry, where, typed=True)
    return _made(FOLLOWS.get(values.pop("follows", ""), cls), values, where, dimension)


def _compliance(entry: Any, index: int, dimension: int) -> AbstractCompliance:
    where = _where("compliance", entry, index)
    cls = _known(COMPLIANCES, entry, where)
    return _made(cls, _values(cls, entry, where, typed=True), where, dimension)


def _element(entry: Any, index: int, dimension: int) -> AbstractElement:
    where = _where("element", entry, index)
    if not ELEMENTS[dimension]:
        raise ModelError(f"{where}: model files of dimension {dimension} hold no elements.")
    cls = _known(ELEMENTS[dimension], entry, where)
    return _made(cls, _values(cls, entry, where, typed=True), where, dimension)


def _known(classes: Mapping[str, type[Any]], entry: Any, where: str) -> type[Any]:
    """The class of a table's type."""
    word = _word(entry, where)
    if word not in classes:
        raise ModelError(
            f"{where}: type {shown(word, _NAME)} is unknown; the types are {', '.join(classes)}."
        )
    return classes[word]


def _word(entry: Any, where: str) -> str:
    if not isinstance(entry, dict):
        raise ModelError(f"{where} must be a table of keys and values, got {shown(entry)}.")
    if not isinstance(entry.get("type"), str):
        raise ModelError(f"{where}: the key 'type' is missing or no text.")
    return entry["type"]
