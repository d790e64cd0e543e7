"""Single numbers of arrays, by their names."""

from typing import Any

import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array

from .._checks import concrete, known_array
from .._errors import ModelError
from .._fields import Naming


_LETTERS = ("x", "y", "z")
_ROWS = ("first", "second")

# So many numbered places are listed one by one; letters always are.
_LISTED = 3

Shape = tuple[int, ...]
Attachments = tuple[tuple[Any, ...], ...]


def with_entry(old: Any, entry: str, value: Any, name: str, naming: Naming | None = None) -> Any:
    """An array with a new value, or with a new entry (see `places_of`).

    **Raises:** `ModelError` if it has no such entry, or the value is of another shape.
    """
    known = concrete(value)
    value = jnp.asarray(value) if known is None else known_array(known)
    if not entry:
        if value.shape != old.shape:
            raise ModelError(
                f"{name!r} is of shape {list(old.shape)}, got values of shape {list(value.shape)}."
            )
        return value.astype(old.dtype)
    places = places_of(old.shape, entry, name, naming)
    if value.shape != ():
        raise ModelError(f"{name!r} is one number, got values of shape {list(value.shape)}.")
    there = np.zeros(old.shape, bool)
    for place in places:
        there[place] = True
    if known is not None and not isinstance(old, Tracer):
        return known_array(np.where(there, known, np.asarray(old)).astype(old.dtype))
    # A choice is fused with what follows, a scatter would be a loop for each parameter.
    return jnp.where(there, value.astype(old.dtype), old)


def entry_of(array: Any, entry: str, name: str, naming: Naming | None = None) -> Array:
    """An array, or its entry (see `places_of`).

    **Raises:** `ModelError` if it has no such entry, or rows differ and none is named.
    """
    if not entry:
        return jnp.asarray(array)
    given = np.asarray(array)
    places = places_of(given.shape, entry, name, naming)
    found = np.concatenate([given[place].ravel() for place in places])
    if not bool(np.all(found == found[0])):
        stem, _, last = name.rpartition(".")
        rows = _words(given.shape[0], _preferred_row(given.shape[0]))
        ways = ", ".join(f"{stem}.{row}.{last}" for row in rows)
        raise ModelError(
            f"{name!r} stands for several numbers, {found.tolist()}; name one of them: {ways}."
        )
    return known_array(found[0])


def places_of(shape: Shape, entry: str, name: str, naming: Naming | None = None) -> Attachments:
    """Indices of the entry of that name in an array.

    A word for each axis; in a matrix that is not symmetric the row may be omitted, which means
    every row. In a symmetric matrix an entry has two places, and letters of row and column
    may follow one another (`xy`).

    **Raises:** `ModelError` if there is none.
    """
    naming = Naming() if naming is None else naming
    words = tuple(entry.split("."))
    if naming.symmetric:
        found = _of_symmetric(shape[-1], naming.letters, words)
    else:
        found = _of_rows(shape, naming.letters, words)
    if found is None:
        told = offer(shape, naming)
        raise ModelError(f"{name!r}: there is no entry {entry!r}; the entries are {told}.")
    return found


def offer(shape: Shape, naming: Naming | None = None) -> str:
    """The names of an array's entries, in words."""
    naming = Naming() if naming is None else naming
    if not shape:
        return "none, as it is one number"
    last = _words(shape[-1], _letters(shape[-1], naming.letters))
    if naming.symmetric:
        dot = "." if any(len(word) > 1 for word in last) else ""
        pairs = [f"{a}{dot}{b}" for k, a in enumerate(last) for b in last[k:]]
        return ", ".join(pairs)
    if len(shape) == 1:
        return _listed(last)
    rows = _words(shape[0], _preferred_row(shape[0]))
    single = [_listed(tuple(f"{row}.{word}" for word in last)) for row in rows]
    return f"{', '.join(single)}, and of all rows at once {_listed(last)}"


def overlap(shape: Shape, first: Attachments, second: Attachments) -> bool:
    """Have two names a number in common?"""
    numbers = np.arange(int(np.prod(shape))).reshape(shape)
    one, other = ({int(k) for p in ps for k in numbers[p].flat} for ps in (first, second))
    return bool(one & other)


def _of_rows(shape: Shape, letters: tuple[str, ...], words: tuple[str, ...]) -> Attachments | None:
    """Indices for the last word along the last axis, and for a word before it along the first."""
    if not shape or len(words) > len(shape):
        return None
    column = _place(shape[-1], _letters(shape[-1], letters), words[-1])
    row = ... if len(words) == 1 else _place(shape[0], _preferred_row(shape[0]), words[0])
    if column is None or row is None:
        return None
    return ((..., column),) if row is ... else ((..., row, column),)


def _of_symmetric(
    size: int, letters: tuple[str, ...], words: tuple[str, ...]
) -> Attachments | None:
    own = _letters(size, letters)
    joined = {a + b: (a, b) for a in own for b in own}
    pair = joined.get(words[0], ()) if len(words) == 1 else words
    if len(pair) != 2:
        return None
    row, column = (_place(size, own, word) for word in pair)
    if row is None or column is None:
        return None
    return ((..., row, column), (..., column, row))


def _letters(size: int, given: tuple[str, ...]) -> tuple[str, ...]:
    """Letters of the places along an axis; none where they only have numbers."""
    if len(given) == size:
        return given
    return _LETTERS[:size] if size in (2, 3) else ()


def _preferred_row(count: int) -> tuple[str, ...]:
    return _ROWS if count == len(_ROWS) else ()


def _words(size: int, letters: tuple[str, ...]) -> tuple[str, ...]:
    return letters or tuple(map(str, range(size)))


def _place(size: int, letters: tuple[str, ...], word: str) -> int | None:
    for words in (letters, tuple(map(str, range(size)))):
        if word in words:
            return words.index(word)
    return None


def _listed(words: tuple[str, ...]) -> str:
    if len(words) > _LISTED and words[-1][-1].isdigit():
        return f"{words[0]} to {words[-1]}"
    return ", ".join(words)
