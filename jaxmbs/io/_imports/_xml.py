"""XML of unknown origin: a tree of elements, or one sentence.

A document type is refused, and with it every entity that could grow or fetch a file; no parser
here opens anything but the file that it is given. What a strict parser does not admit and TinyXML-2
does, which reads these formats in MuJoCo, in ROS and in Gazebo, is read as that reads it.
"""

import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import NamedTuple, NoReturn
from xml.parsers import expat

from ..._checks import PATH, shortened, shown
from ..._errors import ModelError


_LARGEST = 128 * 2**20
_DEEPEST = 500


class Document(NamedTuple):
    """The root element of a file; `loose`: what makes it no well-formed XML, empty where it is."""

    root: ElementTree.Element
    loose: str = ""


def read_xml(path: Path) -> Document:
    """The elements of a file.

    **Raises:** `ModelError` if it cannot be read, is not XML, or has a document type.
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


def _parsed(content: bytes, called: str) -> Document:
    builder = _Builder(called)
    parser = expat.ParserCreate()
    parser.StartElementHandler, parser.EndElementHandler = builder.start, builder.end
    parser.CharacterDataHandler = builder.data
    parser.StartDoctypeDeclHandler = parser.EntityDeclHandler = builder.refuse
    try:
        parser.Parse(content, True)
    except ModelError:
        raise
    except (expat.ExpatError, LookupError, ValueError) as error:
        why = shortened(str(error), 200)
    else:
        return Document(builder.close())
    try:
        return Document(_Loose(_text(content), called).root(), why)
    except _NotXmlError:
        raise ModelError(f"{called} is not an XML file: {why}.") from None


class _Builder:
    """Makes elements, no deeper than some, and refuses a document type."""

    def __init__(self, called: str):
        self._called, self._depth = called, 0
        self._tree = ElementTree.TreeBuilder()

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise ModelError(f"{self._called} nests its elements more than {_DEEPEST} deep.")
        self._tree.start(tag, attributes)

    def end(self, tag: str) -> None:
        self._depth -= 1
        self._tree.end(tag)

    def data(self, text: str) -> None:
        self._tree.data(text)

    def refuse(self, *_: object) -> NoReturn:
        raise ModelError(
            f"{self._called} declares a document type (<!DOCTYPE ...>), whose entities may grow "
            "without end or name other files; remove that line."
        )

    def close(self) -> ElementTree.Element:
        return self._tree.close()


class _NotXmlError(Exception):
    """Not even TinyXML-2 reads it."""


def _text(content: bytes) -> str:
    """UTF-8 whatever the file declares, or Latin-1 if it is not UTF-8; it ends at a zero."""
    content = content.removeprefix(b"\xef\xbb\xbf").partition(b"\0")[0]
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError:
        text = content.decode("latin-1")
    return text.replace("\r\n", "\n").replace("\r", "\n")


_NAME = r"[A-Za-z_:\u0080-\U0010ffff][A-Za-z0-9_:.\-\u0080-\U0010ffff]*"
_OPENS = re.compile(rf"<[ \n\t\v\f]*({_NAME})")
_ATTRIBUTE = re.compile(rf"\s*({_NAME})\s*=\s*(?:\"([^\"]*)\"|'([^']*)')")
_TAG_ENDS = re.compile(r"\s*(/>|>)")
_CLOSES = re.compile(rf"</[ \n\t\v\f]*({_NAME})\s*>")
# What is neither element nor text, and how it ends.
_OTHERS = (("<?", "?>"), ("<!--", "-->"), ("<![CDATA[", "]]>"), ("<!", ">"))
_ENTITY = re.compile(r"&(?:(lt|gt|amp|quot|apos)|#([0-9]{1,7})|#x([0-9A-Fa-f]{1,6}));")
_WORDS = {"lt": "<", "gt": ">", "amp": "&", "quot": '"', "apos": "'"}


class _Loose:
    """The grammar of TinyXML-2: hyphens in comments, unescaped & and < in values, unknown entities
    and encodings, attributes without a space between, a second root. It refuses a repeated
    attribute, as strict parsers do."""

    def __init__(self, text: str, called: str):
        self._text, self._at = text, 0
        self._builder = _Builder(called)
        self._open: list[str] = []

    def root(self) -> ElementTree.Element:
        """The first element."""
        # A document type is refused wherever it occurs, in a comment too: parsers differ on those.
        if re.search(r"<!\s*(DOCTYPE|ENTITY)", self._text, re.IGNORECASE):
            self._builder.refuse()
        begun = False
        while not begun or self._open:
            begun = self._next() or begun
        return self._builder.close()

    def _next(self) -> bool:
        """Read one piece; is it an element?"""
        text, at = self._text, self._at
        if at >= len(text):
            raise _NotXmlError
        for opens, ends in _OTHERS:
            if text.startswith(opens, at):
                stop = text.find(ends, at + len(opens))
                if stop < 0:
                    raise _NotXmlError
                if opens == "<![CDATA[" and self._open:
                    self._builder.data(text[at + len(opens) : stop])
                self._at = stop + len(ends)
                return False
        if closes := _CLOSES.match(text, at):
            if not self._open or self._open.pop() != closes[1]:
                raise _NotXmlError
            self._builder.end(closes[1])
            self._at = closes.end()
            return False
        if text.startswith("<", at):
            return self._element()
        stop = text.find("<", at)
        stop = len(text) if stop < 0 else stop
        if self._open:
            self._builder.data(_resolved(text[at:stop]))
        self._at = stop
        return False

    def _element(self) -> bool:
        opens = _OPENS.match(self._text, self._at)
        if opens is None:
            raise _NotXmlError
        at, attributes = opens.end(), {}
        while (ends := _TAG_ENDS.match(self._text, at)) is None:
            own = _ATTRIBUTE.match(self._text, at)
            if own is None:
                raise _NotXmlError
            if own[1] in attributes:
                raise _NotXmlError
            attributes[own[1]] = _resolved(own[2] if own[2] is not None else own[3])
            at = own.end()
        self._builder.start(opens[1], attributes)
        if ends[1] == "/>":
            self._builder.end(opens[1])
        else:
            self._open.append(opens[1])
        self._at = ends.end()
        return True


def _resolved(text: str) -> str:
    """The text with characters for XML's five entities and for numeric references; others stay."""

    def character(found: re.Match[str]) -> str:
        if found[1]:
            return _WORDS[found[1]]
        code = int(found[2]) if found[2] else int(found[3], 16)
        is_one = code < 0x110000 and not 0xD800 <= code < 0xE000
        return chr(code) if is_one else found[0]

    return _ENTITY.sub(character, text)


def written(root: ElementTree.Element) -> str:
    """An element as well-formed XML. Characters that none may hold are left out."""
    text = ElementTree.tostring(root, encoding="unicode")
    return re.sub(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]", "", text)


def lies_outside(path: Path, folder: Path) -> bool:
    """Is the path, with its links followed, not below the folder?"""
    return not path.resolve().is_relative_to(folder.resolve())


def checked_path(named: str, base: Path, folder: Path, outside: bool, said: str) -> Path:
    """The file that is so named in `said`, from the folder `base`.

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
    if not outside and lies_outside(found, folder):
        raise ModelError(
            f"{said} names {shown(named, PATH)}, which lies outside of the model's folder "
            f"{shown(str(folder), PATH)}; allow that with outside=True (--outside), if you trust "
            "the file."
        )
    if not is_file:
        raise ModelError(f"{said} names {shown(named, PATH)}, which is not there.")
    return found
