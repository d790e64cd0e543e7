"""What is said of a part's fields beside their types: how the numbers of an array are called, and
what stands where a number was left out.

A number is called by a word for each axis of its array: by its place, counted from 0, or by a
letter. In an array with a row for each of two bodies, which a model file writes [[..], [..]], the
rows are `first` and `second`.
"""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from jaxtyping import Array


_NAMING, _LEFT_OUT = "naming", "left out"


class Naming(NamedTuple):
    """What an array does not say itself: letters of the entries along its last axis, which count
    where there are as many entries; is it a symmetric matrix?"""

    letters: tuple[str, ...] = ()
    symmetric: bool = False


def named(*letters: str, symmetric: bool = False) -> Mapping[str, Any]:
    """Metadata of a field whose array is named in this way (see `Naming`)."""
    return {_NAMING: Naming(letters, symmetric)}


def left_out(number: Callable[[Any], Array]) -> Mapping[str, Any]:
    """Metadata of a field that may be None: the number that stands there then, of the part."""
    return {_LEFT_OUT: number}


def naming_of(part: Any, word: str) -> Naming:
    """Of one field of a part."""
    return _metadata(part, word).get(_NAMING, Naming())


def given_or_left_out(part: Any, word: str) -> Array | None:
    """The number of one field of a part; None if it is left out and nothing stands for it."""
    given = getattr(part, word)
    number = _metadata(part, word).get(_LEFT_OUT)
    return number(part) if given is None and number is not None else given


def _metadata(part: Any, word: str) -> Mapping[str, Any]:
    return next(field.metadata for field in dataclasses.fields(part) if field.name == word)
