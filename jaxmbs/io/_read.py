"""From a model file to a `Model`."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from .. import _settings, planar, spatial
from .._bodies import AbstractBody
from .._checks import shown
from .._constraints import AbstractJoint, AbstractMotion, Driver
from .._custom_types import Setting
from .._errors import ModelError
from .._forces import AbstractForce
from .._system import Model
from . import _schema
from ._registry import Entry, FOLLOWS, FORCES, JOINTS, MOTIONS, SYNONYMS
from ._toml import read_toml


_TABLES = ("body", "joint", "driver", "force")
# So long may the name of an entry be where a message says of which one it is.
_NAME = 60
_KEYS = ("schema", "name", "dimension", "gravity", *_TABLES)


def read_model(path: Setting[str | Path]) -> Model:
    """The model in a TOML file (MODEL.md section 1).

    **Raises:** `ModelError` (a `ValueError`) with one sentence that names the table, the entry
    and the value, and the usual fix. Whether the reference configuration is closed is not
    checked here, as it may be assembled.
    """
    _settings.path(path, "path")
    # Whatever a file system admits in a name, reports print.
    stem = "".join(c if c.isprintable() else "?" for c in Path(path).stem)
    return model_from_tables(read_toml(path), default_name=stem)


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
    tables = {key: _entries(content, key) for key in _TABLES}
    bodies = [_body(entry, i, dimension) for i, entry in enumerate(tables["body"])]
    if not bodies:
        raise ModelError("the file declares no body; add a [[body]] table.")
    joints = [_joint(entry, i, dimension) for i, entry in enumerate(tables["joint"])]
    drivers = [_driver(entry, i) for i, entry in enumerate(tables["driver"])]
    forces = [_force(entry, i, dimension) for i, entry in enumerate(tables["force"])]
    gravity = content.get("gravity")
    if gravity is not None:
        gravity = _schema.validate(_gravity_table(), {"gravity": gravity}, "the file")["gravity"]
    try:
        model = Model(
            name,
            dimension,
            bodies=bodies,
            joints=joints,
            drivers=drivers,
            forces=forces,
            gravity=gravity,
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


def _gravity_table() -> type[_schema.AbstractTable]:
    class GravityTable(_schema.AbstractTable):
        gravity: _schema.Vector

    return GravityTable


def _entries(content: Mapping[str, Any], key: str) -> list[Any]:
    entries = content.get(key, [])
    if not isinstance(entries, list):
        raise ModelError(f"[{key}] must be written [[{key}]], as there may be several.")
    return entries


def _where(what: str, entry: Any, index: int) -> str:
    """How an entry is called in a message: by its name, or by its place if it has none."""
    name = entry.get("name") if isinstance(entry, dict) else None
    return f"{what} {shown(name, _NAME)}" if isinstance(name, str) else f"{what} number {index + 1}"


def _made(where: str, make: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """A part, with what is wrong about it said of its table."""
    try:
        return make(*args, **kwargs)
    except ValueError as error:
        raise ModelError(f"{where}: {error}") from None


def _body(entry: Any, index: int, dimension: int) -> AbstractBody:
    where = _where("body", entry, index)
    table = _schema.PlanarBodyTable if dimension == 2 else _schema.SpatialBodyTable
    values = _schema.validate(table, entry, where)
    make = planar.Body if dimension == 2 else spatial.Body
    return _made(where, make, values.pop("name"), **values)


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
    chosen = known[SYNONYMS.get(word, word)]
    values = _schema.validate(_schema.joint_table(chosen), entry, where)
    values.pop("type")
    if chosen.paired:
        _place(chosen, values, dimension, where)
    return _made(where, chosen.cls, values.pop("name"), values.pop("bodies"), **values)


def _place(chosen: Entry, values: dict[str, Any], dimension: int, where: str) -> None:
    """Check the lengths of points and forces; `points` becomes the two rows of `at` where the
    part takes `at` for both bodies."""
    if chosen.paired and ("at" in values) == ("points" in values):
        raise ModelError(
            f"{where}: give `at` (one world point used for both bodies) or `points` (one "
            "world point for each body), one of the two."
        )
    for key in ("at", "force"):
        if key in values and len(values[key]) != dimension:
            raise ModelError(
                f"{where}: {key} must be a vector of {dimension} numbers, got {shown(values[key])}."
            )
    if "points" not in values:
        return
    points = values["points"]
    if len(points) != 2 or any(len(point) != dimension for point in points):
        raise ModelError(
            f"{where}: points must hold one world point of {dimension} numbers for each of the "
            f"two bodies, got {shown(points)}."
        )
    if chosen.paired:
        values["at"] = values.pop("points")


def _word(entry: Any, where: str) -> str:
    if not isinstance(entry, dict):
        raise ModelError(f"{where} must be a table of keys and values, got {shown(entry)}.")
    if not isinstance(entry.get("type"), str):
        raise ModelError(f"{where}: the key 'type' is missing or no text.")
    return entry["type"]


def _driver(entry: Any, index: int) -> Driver:
    where = _where("driver", entry, index)
    values = _schema.validate(_schema.DriverTable, entry, where)
    motion = _motion(values["motion"], f"{where}, motion")
    return _made(where, Driver, values["name"], values["joint"], values["coordinate"], motion)


def _motion(entry: dict[str, Any], where: str) -> AbstractMotion:
    word = _word(entry, where)
    if word not in MOTIONS:
        raise ModelError(
            f"{where}: type {shown(word, _NAME)} is unknown; the types are {', '.join(MOTIONS)}."
        )
    values = _schema.validate(_schema.motion_table(MOTIONS[word]), entry, where)
    values.pop("type")
    return _made(where, MOTIONS[word].cls, **values)


def _force(entry: Any, index: int, dimension: int) -> AbstractForce:
    where = _where("force", entry, index)
    word = _word(entry, where)
    if word not in FORCES:
        raise ModelError(
            f"{where}: type {shown(word, _NAME)} is unknown; the types are {', '.join(FORCES)}."
        )
    chosen = FORCES[word]
    values = _schema.validate(_schema.force_table(chosen), entry, where)
    values.pop("type")
    _place(chosen, values, dimension, where)
    make = chosen.cls
    if "follows" in chosen.optional:
        make = FOLLOWS[values.pop("follows", "world")]
    bodies = [values.pop(key) for key in ("body", "bodies", "joint") if key in values]
    return _made(where, make, values.pop("name"), *bodies, **values)
