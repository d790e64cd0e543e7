"""Quotation of values in messages."""

import reprlib
from collections.abc import Iterable
from typing import Any


# What is longer is shortened where a message quotes it; paths are to be found again.
_QUOTED = 80
PATH = 200
_QUOTE = reprlib.Repr()
_QUOTE.maxlevel = 3
_QUOTE.maxlist = _QUOTE.maxtuple = _QUOTE.maxset = 8
_QUOTE.maxdict = 3
_QUOTE.maxstring = _QUOTE.maxother = 60
_NAMED = 12


def shown(value: Any, most: int = _QUOTED) -> str:
    """`value` as a message quotes it: on one line, shortened to about `most` characters."""
    if isinstance(value, str):
        return shortened(repr(value), most)
    try:
        return shortened(_QUOTE.repr(value), most)
    except ValueError:
        # Python writes no whole number of more than some thousand digits.
        return "a whole number of thousands of digits"


def shortened(text: str, most: int) -> str:
    """The text on one line, without its middle where it is longer than `most` characters."""
    line = " ".join(part.strip() for part in text.splitlines())
    return line if len(line) <= most else f"{line[: 2 * most // 3]} ... {line[-most // 4 :]}"


def listed(names: Iterable[Any]) -> str:
    """Names as a message lists them, the first of many; "none" where there are none."""
    words = [shortened(name, _QUOTED // 3) for name in map(str, names)]
    if len(words) > _NAMED:
        words = [*words[:_NAMED], f"... ({len(words)} in all)"]
    return ", ".join(words) or "none"
