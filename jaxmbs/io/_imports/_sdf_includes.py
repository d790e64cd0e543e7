"""Files that an SDF file includes: their models replace the `<include>` elements."""

from pathlib import Path
from typing import NamedTuple
from xml.etree.ElementTree import Element, SubElement

from ..._checks import PATH, shown
from ..._errors import ModelError
from ._description import Omission
from ._xml import checked_path, read_xml


# Of a model from another file: the version of that.
VERSION = "version of its file"

# Elements that an <include> may override.
_SAID = ("static", "pose")


def root_of(path: Path) -> tuple[Element, tuple[int, ...], list[Omission]]:
    """The root of an SDF file, the version of the format, and the omissions of the file.

    **Raises:** `ModelError` for another file.
    """
    root, loose = read_xml(path)
    if root.tag != "sdf":
        raise ModelError(f"{shown(str(path), PATH)} is no SDF file: its root element is not <sdf>.")
    given = root.get("version", "1.0")
    why = f"is no well-formed XML ({loose}); it was read as Gazebo's parser reads it"
    told = [Omission("file", path.name, why)] if loose else []
    try:
        return root, version_of(given, ()), told
    except ValueError:
        raise ModelError(f"{shown(str(path), PATH)}: version {shown(given)} is none.") from None


def version_of(text: str | None, default: tuple[int, ...]) -> tuple[int, ...]:
    """Its numbers."""
    return default if text is None else tuple(int(word) for word in text.split("."))


def with_includes(holder: Element, path: Path, outside: bool) -> list[Omission]:
    """Replace each `<include>` below a world or a model by the models of its file; returns their
    omissions.

    **Raises:** `ModelError` for a file that may not be read or is none.
    """
    told: list[Omission] = []
    _include(holder, path, _Reading(path.parent, outside, told), (path.resolve(),))
    return told


class _Reading(NamedTuple):
    """The folder of the first file, whether files outside of it may be read, and the omissions."""

    folder: Path
    outside: bool
    told: list[Omission]


# Models of Gazebo's library that worlds include by address, and that hold nothing that moves.
_STILL = ("sun", "ground_plane", "ground plane")


def _include(holder: Element, path: Path, reading: _Reading, above: tuple[Path, ...]) -> None:
    for model in holder.findall("model"):
        _include(model, path, reading, above)
    for include in holder.findall("include"):
        holder.remove(include)
        holder.extend(_models(include, path, reading, above))


def _models(
    include: Element, path: Path, reading: _Reading, above: tuple[Path, ...]
) -> list[Element]:
    """The models of another file, with the pose and name given here."""
    named = (include.findtext("uri") or "").strip()
    said = f"<include> in {shown(str(path), PATH)}"
    if (include.get("merge") or "").strip().lower() in ("true", "1"):
        raise ModelError(
            f"{said} merges {shown(named, PATH)} (merge='true'), which is not read; write its "
            "links and joints into the model, or leave the attribute out."
        )
    file = named.removeprefix("model://")
    beside = path.parent / file
    is_folder = "://" not in file and beside.is_dir()
    if (named != file and not is_folder) or "://" in file:
        if file.rstrip("/").rpartition("/")[2].lower() in _STILL:
            why = (
                "is not fetched; by its name it is a part of a scene, and holds nothing that moves"
            )
            reading.told.append(Omission("include", named, why))
            return []
        file = named
    file = f"{file}/model.sdf" if is_folder else file
    part = checked_path(file, path.parent, reading.folder, reading.outside, said)
    if part in above:
        raise ModelError(f"{shown(str(part), PATH)} includes itself.")
    root, _, told = root_of(part)
    reading.told.extend(told)
    models = root.findall("model")
    if not models:
        kinds = ", ".join(f"<{child.tag}>" for child in root) or "nothing"
        why = f"holds no <model> but {kinds}, and nothing that moves"
        reading.told.append(Omission("include", named, why))
    for model in models:
        _include(model, part, reading, (*above, part))
        model.set(VERSION, root.get("version", "1.0"))
        if include.find("name") is not None:
            model.set("name", (include.findtext("name") or "").strip())
        if include.find("placement_frame") is not None:
            model.set("placement_frame", (include.findtext("placement_frame") or "").strip())
        for tag in _SAID:
            given = include.find(tag)
            if given is not None:
                for old in model.findall(tag):
                    model.remove(old)
                model.append(given)
        # One without a pose of its own stays at the origin.
        if include.find("placement_frame") is not None and include.find("pose") is None:
            for old in model.findall("pose"):
                model.remove(old)
            SubElement(model, "pose")
    return models
