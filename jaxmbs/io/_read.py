"""From a model file to a `Model`."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .. import _settings
from .._checks import shown
from .._constraints import Driver
from .._custom_types import Setting
from .._errors import ModelError
from .._fields import keys_of
from .._system import Model
from ._digits import digits_of_tables, with_digits, written
from ._expansion import expand, GROUPS, KEYS as EXPANDED
from ._registry import (
    BODIES,
    called,
    check_head,
    check_values,
    class_of,
    FOLLOWS,
    NAME,
    placed,
    SYNONYMS,
    TYPES,
)
from ._toml import read_toml


_KEYS = ("schema", "name", "dimension", "gravity", "precision", *GROUPS, *EXPANDED)


def read_model(path: Setting[str | Path]) -> Model:
    """The model in a TOML file (`REFERENCE.md` next to this module).

    **Raises:** `ModelError` (a `ValueError`) with one sentence that names the table, the entry and
    the value, and the usual fix. Whether the reference configuration is closed is not checked here,
    as it may be assembled. Without a key `precision` it follows from the digits of the numbers.
    """
    _settings.path(path, "path")
    # Whatever a file system admits in a name, reports print.
    stem = "".join(c if c.isprintable() else "?" for c in Path(path).stem)
    content = read_toml(path)
    _locate_meshes(content, Path(path).absolute().parent)
    model = model_from_tables(content, default_name=stem)
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
    dimension = _head(content)
    name = content.get("name", default_name)
    if not isinstance(name, str):
        raise ModelError(f"name must be a text, got {shown(name)}.")
    expanded = expand(content, dimension)
    if not expanded.tables["body"]:
        raise ModelError("the file declares no body; add a [[body]] table.")
    parts: dict[str, Any] = {
        group: [
            _part(kind, entry, called(kind, entry.get("name"), i), dimension)
            for i, entry in enumerate(expanded.tables[kind])
        ]
        for kind, group in GROUPS.items()
    }
    head = {"gravity": expanded.tables.get("gravity"), "precision": content.get("precision")}
    head = {key: value for key, value in head.items() if value is not None}
    check_values(Model, head, "the file", typed=False)
    with placed("the file"):
        model = Model(name, dimension, **(parts | head), parameters=expanded.parameters)
    # Names, and whether the parts belong together, are the system's business.
    try:
        model.system()
    except ValueError as error:
        raise ModelError(str(error)) from None
    return model


def _locate_meshes(content: Mapping[str, Any], folder: Path) -> None:
    """Make paths of meshes absolute, which are relative to the model file."""
    for entry in _entries(content, "visual"):
        named = entry.get("file")
        # Another value is refused where the shape is made.
        if isinstance(named, str) and named:
            entry["file"] = str(folder / named)
    for assembly in _entries(content, "assembly"):
        _locate_meshes(assembly, folder)


def _entries(content: Mapping[str, Any], kind: str) -> list[dict[str, Any]]:
    """The tables of one kind, without what is none."""
    tables = content.get(kind)
    return [own for own in tables if isinstance(own, dict)] if isinstance(tables, list) else []


def _head(content: Mapping[str, Any]) -> int:
    check_head(content, _KEYS)
    if "dimension" not in content:
        raise ModelError(
            "the key 'dimension' is missing at the head of the file; set it to 2 (planar) or 3 "
            "(spatial)."
        )
    dimension = content["dimension"]
    if type(dimension) is not int or dimension not in (2, 3):
        raise ModelError(f"dimension must be 2 (planar) or 3 (spatial), got {shown(dimension)}.")
    return dimension


def _part(kind: str, entry: Mapping[str, Any], where: str, dimension: int) -> Any:
    """The part of a table; errors in it name the table."""
    cls = class_of(kind, entry, dimension)
    if cls is None:
        raise _unknown_type(kind, entry, where, dimension)
    check_values(cls, entry, where, typed=cls not in (BODIES[dimension], Driver))
    values = {key: value for key, value in entry.items() if key not in ("type", "follows")}
    for key, own in keys_of(cls).items():
        if own.said.holds and key in values:
            values[key] = _part(own.said.holds, values[key], f"{where}, {key}", dimension)
    with placed(where):
        cls = FOLLOWS.get(entry.get("follows", ""), cls)
        return cls(**_arguments(cls, values, dimension))


def _unknown_type(kind: str, entry: Mapping[str, Any], where: str, dimension: int) -> ModelError:
    types, elsewhere = TYPES[kind][dimension], TYPES[kind][5 - dimension]
    if not types:
        return ModelError(f"{where}: model files of dimension {dimension} hold no {kind}s.")
    word = entry.get("type")
    if not isinstance(word, str):
        return ModelError(f"{where}: the key 'type' is missing or no text.")
    known = ", ".join([*types, *(word for word, own in SYNONYMS.items() if own in types)])
    why = f"exists in dimension {5 - dimension} only" if word in elsewhere else "is unknown"
    return ModelError(f"{where}: type {shown(word, NAME)} {why}; the types are {known}.")


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
