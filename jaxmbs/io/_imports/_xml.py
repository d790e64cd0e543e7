"""XML of unknown origin: a tree of elements, or one sentence.

A document type is refused, and with it every entity that could grow or fetch a file; no parser
here opens anything but the file that it is given.
"""

import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import NoReturn
from xml.parsers import expat

from ..._checks import PATH, shortened, shown
from ..._errors import ModelError


_LARGEST = 128 * 2**20
_DEEPEST = 500


def read_xml(path: Path) -> ElementTree.Element:
    """The root element of a file.

    **Raises:** `ModelError` if it cannot be read, is no XML, or has a document type.
    """
    called = shown(str(path), PATH)
    try:
        with path.open("rb") as file:
            content = file.read(_LARGEST + 1)
    except OSError as error:
        raise ModelError(f"cannot read {called}: {error.strerror or error}.") from None
    except ValueError:
        raise ModelError(f"cannot read {called}: no path holds the character '\\x00'.") from None
    if len(content) > _LARGEST:
        raise ModelError(f"{called} is larger than {_LARGEST // 2**20} MB and no model of a robot.")
    return _parsed(content, called)


def _parsed(content: bytes, called: str) -> ElementTree.Element:
    builder = ElementTree.TreeBuilder()
    parser = expat.ParserCreate()
    depth = 0

    def start(tag: str, attributes: dict[str, str]) -> None:
        nonlocal depth
        depth += 1
        if depth > _DEEPEST:
            raise ModelError(f"{called} nests its elements more than {_DEEPEST} deep.")
        builder.start(tag, attributes)

    def end(tag: str) -> None:
        nonlocal depth
        depth -= 1
        builder.end(tag)

    def refuse(*_: object) -> NoReturn:
        raise ModelError(
            f"{called} declares a document type (<!DOCTYPE ...>), whose entities may grow without "
            "end or name other files; remove that line."
        )

    parser.StartElementHandler, parser.EndElementHandler = start, end
    parser.CharacterDataHandler = builder.data
    parser.StartDoctypeDeclHandler = parser.EntityDeclHandler = refuse
    try:
        parser.Parse(content, True)
    except ModelError:
        raise
    except expat.ExpatError as error:
        raise ModelError(f"{called} is not an XML file: {shortened(str(error), 200)}.") from None
    except (LookupError, ValueError) as error:
        raise ModelError(f"{called} is not an XML file: {shortened(str(error), 200)}.") from None
    return builder.close()


def checked_path(named: str, base: Path, folder: Path, outside: bool, said: str) -> Path:
    """The file that `said` names so, from the folder `base`.

    **Raises:** `ModelError` if it is not there, or, unless `outside` is allowed, not below
    `folder`.
    """
    if "://" in named:
        raise ModelError(
            f"{said} names {shown(named, PATH)}; nothing is fetched, so put the file into the "
            "model's folder and name it there."
        )
    try:
        found = (base / named).resolve()
        is_file = found.is_file()
    except (OSError, ValueError):
        raise ModelError(f"{said} names {shown(named, PATH)}, which is no path.") from None
    if not outside and not found.is_relative_to(folder.resolve()):
        raise ModelError(
            f"{said} names {shown(named, PATH)}, which lies outside of the model's folder "
            f"{shown(str(folder), PATH)}; allow that with outside=True (--outside), if you trust "
            "the file."
        )
    if not is_file:
        raise ModelError(f"{said} names {shown(named, PATH)}, which is not there.")
    return found
