"""Files that an SDF file includes: their models stand where they are named."""

from pathlib import Path
from xml.etree.ElementTree import Element, SubElement

from ..._checks import PATH, shown
from ..._errors import ModelError
from ._xml import checked_path, read_xml


# Of a model from another file: the version of that.
VERSION = "version of its file"

# What an <include> may say of a model.
_SAID = ("static", "pose")


def root_of(path: Path) -> tuple[Element, tuple[int, ...]]:
    """The root of an SDF file, and the version of the format.

    **Raises:** `ModelError` for another file.
    """
    root = read_xml(path)
    if root.tag != "sdf":
        raise ModelError(f"{shown(str(path), PATH)} is no SDF file: its root element is not <sdf>.")
    given = root.get("version", "1.0")
    try:
        return root, version_of(given, ())
    except ValueError:
        raise ModelError(f"{shown(str(path), PATH)}: version {shown(given)} is none.") from None


def version_of(text: str | None, default: tuple[int, ...]) -> tuple[int, ...]:
    """Its numbers."""
    return default if text is None else tuple(int(word) for word in text.split("."))


def with_includes(holder: Element, path: Path, outside: bool) -> None:
    """Put models of other files in the place of each `<include>` below a world or a model.

    **Raises:** `ModelError` for a file that may not be read or is none.
    """
    _include(holder, path, path.parent, outside, (path.resolve(),))


def _include(
    holder: Element, path: Path, folder: Path, outside: bool, above: tuple[Path, ...]
) -> None:
    for model in holder.findall("model"):
        _include(model, path, folder, outside, above)
    for include in holder.findall("include"):
        holder.remove(include)
        holder.extend(_models(include, path, folder, outside, above))


def _models(
    include: Element, path: Path, folder: Path, outside: bool, above: tuple[Path, ...]
) -> list[Element]:
    """Of another file, in the pose and by the name that are given here."""
    named = (include.findtext("uri") or "").strip()
    said = f"<include> in {shown(str(path), PATH)}"
    if (include.get("merge") or "").strip().lower() in ("true", "1"):
        raise ModelError(
            f"{said} merges {shown(named, PATH)} (merge='true'), which is not read; write its "
            "links and joints into the model, or leave the attribute out."
        )
    beside = path.parent / named
    is_folder = "://" not in named and beside.is_dir()
    file = f"{named}/model.sdf" if is_folder else named
    part = checked_path(file, path.parent, folder, outside, said)
    if part in above:
        raise ModelError(f"{shown(str(part), PATH)} includes itself.")
    root, _ = root_of(part)
    models = root.findall("model")
    if not models:
        raise ModelError(f"{shown(str(part), PATH)} holds no <model>.")
    for model in models:
        _include(model, part, folder, outside, (*above, part))
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
