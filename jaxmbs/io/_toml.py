"""TOML files: whatever a file holds, tables or one sentence."""

import re
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from .._errors import ModelError
from .._quoting import PATH, shortened, shown


# The largest models are some tens of megabytes. What is larger is another file, or none that ends.
_LARGEST = 128 * 2**20

# Windows editors begin a text with this mark, or write it in two bytes a letter.
_MARK = b"\xef\xbb\xbf"
_WIDE_MARKS = (b"\xff\xfe", b"\xfe\xff")


def read_toml(path: str | Path, parse_float: Callable[[str], Any] = float) -> dict[str, Any]:
    """The content of a TOML file; `parse_float` converts the text of a decimal number.

    **Raises:** `ModelError` if it cannot be read, or is none.
    """
    called = shown(str(path), PATH)
    text = _text(_bytes(path, called), called)
    try:
        return tomllib.loads(text, parse_float=parse_float)
    except RecursionError:
        raise ModelError(f"{called} nests arrays or tables too deeply for a TOML file.") from None
    except tomllib.TOMLDecodeError as error:
        said = shortened(str(error), 200)
        raise ModelError(f"{called} is not a TOML file: {said}{_line_of(error, text)}.") from None
    except ValueError:
        # Python reads no whole number of more than some thousand digits.
        raise ModelError(
            f"{called} holds a whole number of thousands of digits; write it as 1.0e30 or choose "
            "other units."
        ) from None


def _line_of(error: tomllib.TOMLDecodeError, text: str) -> str:
    """The line that an error is about, and the one above, which is often the one that is wrong."""
    place = re.search(r"at line (\d+), column \d+", str(error))
    if place is None:
        return ""
    number, lines = int(place[1]), text.split("\n")
    kept = [(k, lines[k - 1].strip()) for k in (number - 1, number) if 0 < k <= len(lines)]
    return "".join(f"; line {k} is {shown(line)}" for k, line in kept if line)


def _bytes(path: str | Path, called: str) -> bytes:
    try:
        with Path(path).open("rb") as file:
            content = file.read(_LARGEST + 1)
    except OSError as error:
        raise ModelError(f"cannot read {called}: {error.strerror or error}.") from None
    except ValueError:
        raise ModelError(f"cannot read {called}: no path holds the character '\\x00'.") from None
    if len(content) > _LARGEST:
        raise ModelError(
            f"{called} is larger than {_LARGEST // 2**20} MB and no model file or study file."
        )
    return content


def _text(content: bytes, called: str) -> str:
    if content.startswith(_WIDE_MARKS):
        raise ModelError(f"{called} is not a TOML file, but UTF-16 or UTF-32; save it as UTF-8.")
    try:
        return content.removeprefix(_MARK).decode("utf-8").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise ModelError(
            f"{called} is not a TOML file, which is a text in UTF-8: line {line} holds the byte "
            f"0x{content[error.start]:02x}."
        ) from None
