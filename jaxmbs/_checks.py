"""Checks of user input that can be made while a model is built.

Values that are being traced (differentiated, batched) are not known yet and pass unchecked;
their shapes are always checked.
"""

import functools
import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Float

from ._custom_types import Numbers
from ._limits import LARGEST as LARGEST, SMALLEST as SMALLEST
from ._quoting import listed as listed, PATH as PATH, shortened as shortened, shown as shown


_Tree = TypeVar("_Tree")

# No array that is asked for has as many axes.
_DEEPEST = 8


def concrete(value: Numbers) -> np.ndarray | None:
    """The numbers of `value`, or None while they are being traced."""
    if isinstance(value, Tracer):
        return None
    return np.asarray(value)


def as_array(value: Any) -> Float[Array, "..."]:
    """The numbers as an array of the current precision.

    **Raises:** `TypeError`, `ValueError` or `OverflowError` if they are not numbers.
    """
    if any(isinstance(x, jax.Array) for x in jax.tree.leaves(value)):
        return jnp.asarray(value, dtype=float)
    return known_array(np.asarray(value, dtype=float))


def known_array(values: np.ndarray) -> Array:
    """The same numbers as an array of JAX, which compiles nothing for it."""
    # Numbers beyond single precision are refused later, by name.
    with np.errstate(over="ignore"), jax.ensure_compile_time_eval():
        return jax.device_put(values.astype(jax.dtypes.canonicalize_dtype(values.dtype)))


def namespace(array: Any) -> Any:
    """NumPy for its own arrays, and `jax.numpy` for all others."""
    return np if isinstance(array, np.ndarray | np.generic) else jnp


def as_numpy(tree: _Tree) -> _Tree:
    """The same with NumPy arrays, for all that is only arranged, compared and printed: operation by
    operation arrays of JAX would be a small program each."""
    return jax.tree.map(np.asarray, tree)


def by_numpy(method: Callable[..., Any]) -> Callable[..., Any]:
    """A method of a Module, without other arrays as arguments, that NumPy evaluates where the
    numbers are known, so that nothing is compiled."""

    @functools.wraps(method)
    def call(self: Any, *args: Any, **named: Any) -> Any:
        leaves = jax.tree.leaves(self)
        is_plain = all(isinstance(x, np.ndarray | np.generic) for x in leaves)
        if is_plain or any(isinstance(x, Tracer) for x in leaves):
            return method(self, *args, **named)
        found = method(as_numpy(self), *args, **named)
        return jax.tree.map(lambda x: known_array(np.asarray(x)), found)

    return call


def of_known(function: Callable[..., Any], *arrays: Any) -> Any:
    """`function` of the arrays, by NumPy if all of them are known, so that nothing is compiled."""
    if any(isinstance(x, Tracer) for x in arrays):
        return function(*arrays)
    return known_array(np.asarray(function(*map(np.asarray, arrays))))


def number(value: Any, dtype: Any) -> Array:
    """Convert a number to an array of JAX; compiles nothing if it is known."""
    known = concrete(value)
    return jnp.asarray(value, dtype) if known is None else known_array(known.astype(dtype))


def picked(array: Any, index: Any) -> Any:
    """`array[index]`, which compiles nothing if the numbers are known."""
    known = concrete(array)
    if known is None:
        return array[index]
    found = np.asarray(known[index])
    return found if isinstance(array, np.ndarray) else known_array(found)


def shape_of(value: Any) -> tuple[int, ...]:
    """Shape of a number, array or nested lists of numbers; () for a value that is not an array,
    which `real` then refuses with a message."""
    try:
        return as_array(value).shape
    except (TypeError, ValueError, OverflowError):
        return ()


def real(value: Numbers, shape: tuple[int, ...], what: str) -> Float[Array, "..."]:
    """`value` as a floating-point array of exactly `shape`, finite and of a size that double
    precision carries through products where it is known.

    **Raises:** `ValueError` that names `what`, what was received and what was expected.
    """
    expected = "a number" if shape == () else f"an array of shape {list(shape)}"
    if shape and len(shape) == 1:
        expected = f"a vector of {shape[0]} numbers"
    try:
        # A text, a boolean and None could be converted too, and mean something else.
        if not _are_real_numbers(value):
            raise TypeError
        array = as_array(value)
    except OverflowError:
        raise ValueError(_too_large(what, "a whole number beyond them")) from None
    except (TypeError, ValueError):
        wrong = (own for own in _entries(value, what) if not _are_real_numbers(own[1]))
        place, entry = next(wrong, (what, value))
        wanted = expected if place == what else "a number"
        advice = _axis_in_numbers(value, shape)
        raise ValueError(f"{place} must be {wanted}, got {shown(entry)}{advice}.") from None
    known = concrete(array)
    if array.shape != shape:
        got = f"shape {list(array.shape)}" if known is None else shown(known.tolist())
        raise ValueError(f"{what} must be {expected}, got {got}.")
    if known is not None:
        _check_sizes(known, what)
    return array


def _axis_in_numbers(value: Any, shape: tuple[int, ...]) -> str:
    """Advice to write numbers in place of the name of a world axis ("z", "-x")."""
    if not isinstance(value, str) or shape not in ((2,), (3,)):
        return ""
    sign, letter = -1.0 if value.startswith("-") else 1.0, value.lstrip("+-").lower()
    letters = "xyz"[: shape[0]]
    if len(letter) != 1 or letter not in letters:
        return ""
    return f"; write {[sign if own == letter else 0.0 for own in letters]}"


def _are_real_numbers(value: Any, depth: int = 0) -> bool:
    """Is it a real number, an array of them, or lists of these?"""
    if isinstance(value, list | tuple):
        return depth < _DEEPEST and all(_are_real_numbers(x, depth + 1) for x in value)
    # Whole numbers of any length, which arrays of whole numbers do not hold.
    if type(value) is int:
        return True
    dtype = value.dtype if isinstance(value, jax.Array) else np.asarray(value).dtype
    return jnp.issubdtype(dtype, jnp.floating) or jnp.issubdtype(dtype, jnp.integer)


def _entries(value: Any, what: str, depth: int = 0) -> Iterator[tuple[str, Any]]:
    """The entries of nested lists, each with its place in words."""
    if not isinstance(value, list | tuple) or depth == _DEEPEST:
        yield what, value
        return
    for k, entry in enumerate(value):
        yield from _entries(entry, f"{what}, entry {k + 1}", depth + 1)


def _check_sizes(known: np.ndarray, what: str) -> None:
    # (NaN is not at most anything.)
    if np.all(np.abs(known) <= LARGEST):
        return
    place, entry = next(own for own in _entries(known.tolist(), what) if not abs(own[1]) <= LARGEST)
    if not np.isfinite(entry):
        raise ValueError(f"{place} must be a finite number, got {entry:g}.")
    raise ValueError(_too_large(place, f"{entry:g}"))


def _too_large(what: str, got: str) -> str:
    return (
        f"{what} must be at most {LARGEST:g} in size, or products of the model's numbers leave "
        f"double precision; got {got}: choose units in which it is smaller."
    )


def _too_small(what: str, got: str) -> str:
    return (
        f"{what} must be at least {SMALLEST:g}, or products of the model's numbers leave double "
        f"precision; got {got}: choose units in which it is larger."
    )


def rows_of_function(result: Any, count: int, what: str) -> Float[Array, " rows"]:
    """The result of a user's constraint function, as a vector of `count` rows."""
    rows = jnp.atleast_1d(jnp.asarray(result))
    if rows.shape != (count,):
        raise ValueError(
            f"{what} returned shape {list(rows.shape)} where {count} row(s) were declared; "
            f"say rows={rows.shape[0]}, or return a vector of {count}."
        )
    return rows


def returned(value: Any, shape: tuple[int, ...], what: str) -> Float[Array, "..."]:
    """The result of a user's function, as an array of this shape.

    **Raises:** `ValueError`.
    """
    try:
        array = jnp.asarray(value, float)
    except (TypeError, ValueError):
        raise ValueError(
            f"{what} must return one array of shape {list(shape)}, got {type(value).__name__}."
        ) from None
    if array.shape != shape:
        raise ValueError(
            f"{what} must return an array of shape {list(shape)}, got {list(array.shape)}."
        )
    return array


def positive_numbers(
    value: Any, count: int | None, each: str, what: str
) -> Float[Array, ""] | Float[Array, " n"]:
    """One number greater than zero, or as many as there are of what `each` names; how many, if that
    is known.

    **Raises:** `ValueError`.
    """
    shape = shape_of(value)
    wrong = len(shape) > 1 or (shape and count is not None and shape != (count,))
    if wrong or not _are_real_numbers(value):
        many = "" if count is None else f"{count} of them, "
        raise ValueError(
            f"{what} must be one number, or {many}one for each {each}, got {shown(value)}."
        )
    found = real(value, shape, what)
    known = concrete(found)
    if known is not None and np.any(known <= 0):
        raise ValueError(f"{what} must be greater than zero, got {known.tolist()}.")
    return found


def positive(value: Numbers, what: str) -> Float[Array, ""]:
    """A number greater than zero."""
    array = real(value, (), what)
    known = concrete(array)
    if known is not None and known <= 0:
        raise ValueError(f"{what} must be greater than zero, got {known.item():g}.")
    if known is not None and known < SMALLEST:
        raise ValueError(_too_small(what, f"{known.item():g}"))
    return array


def not_negative(value: Numbers, what: str) -> Float[Array, ""]:
    """A number of at least zero."""
    array = real(value, (), what)
    known = concrete(array)
    if known is not None and known < 0:
        raise ValueError(f"{what} must not be negative, got {known.item():g}.")
    return array


def direction(value: Numbers, dimension: int, what: str) -> Float[Array, " dim"]:
    """A vector that has a direction; its length is kept and means nothing."""
    array = real(value, (dimension,), what)
    known = concrete(array)
    if known is not None:
        nonzero(known, what, "give a vector along the direction meant")
    return array


def two_points(value: Numbers, dimension: int, what: str) -> Float[Array, "2 dim"]:
    """One world point for each of two bodies."""
    if shape_of(value) != (2, dimension):
        raise ValueError(
            f"{what} must hold one world point of {dimension} numbers for each of the two bodies, "
            f"got {shown(value)}."
        )
    return real(value, (2, dimension), what)


def nonzero(known: np.ndarray, what: str, fix: str) -> None:
    """Refuse a vector that is zero or too short to define a direction."""
    if not np.any(known):
        raise ValueError(f"{what} has zero length; {fix}.")
    if np.max(np.abs(known)) < SMALLEST:
        raise ValueError(_too_small(f"the length of {what}", shown(known.tolist())))


def name(value: str, what: str) -> str:
    """A name that is valid in reports, options and column headings."""
    title(value, what)
    bad = sorted(set(value) & set(",.'\"`"))
    if bad:
        raise ValueError(
            f"the name {shown(value)} holds {' '.join(bad)}; commas, full stops and quotes are "
            "kept for lists and row names. Use a space, a hyphen or an underscore."
        )
    if value != value.strip():
        raise ValueError(f"the name {shown(value)} begins or ends with a space; leave it out.")
    return value


def title(value: str, what: str) -> str:
    """A name that nothing refers to, so that it may hold whatever is printed."""
    if not isinstance(value, str) or not value.strip():
        raise ValueError(f"{what} needs a name, got {shown(value)}.")
    printed(value, "the name")
    return value


def printed(value: str, what: str) -> None:
    """Refuse a text with characters that are not seen in a report, or that move what follows."""
    if not value.isprintable():
        first = next(c for c in value if not c.isprintable())
        raise ValueError(
            f"{what} {shown(value)} holds the character {first!r}, which is not printed; leave it "
            "out."
        )


def reference(value: str, what: str) -> str:
    """The name of another part."""
    if not isinstance(value, str) or not value:
        raise ValueError(f"{what} must be a name, got {shown(value)}.")
    return value


def one_of(value: Any, words: Iterable[str], what: str) -> str:
    """One of these words."""
    words = tuple(words)
    if not isinstance(value, str) or value not in words:
        *head, last = map(repr, words)
        admitted = f"{', '.join(head)} or {last}" if head else last
        kind = ValueError if isinstance(value, str) else TypeError
        raise kind(f"{what} must be {admitted}, got {shown(value)}.")
    return value


def body_names(value: str | Sequence[str], count: int | None) -> tuple[str, ...]:
    """The names of the bodies that a joint acts on, `count` different ones (None: any)."""
    names = (value,) if isinstance(value, str) else _items(value)
    wrong = len(names) == 0 if count is None else len(names) != count
    if not wrong:
        for k, own in enumerate(names):
            if not isinstance(own, str):
                raise TypeError(f"bodies, entry {k + 1}, must be a name, got {shown(own)}.")
    if wrong or not all(names):
        noun = {None: "at least one body", 1: "one body"}.get(count, f"{count} bodies")
        raise ValueError(f"bodies must name {noun}, got {shown(list(names) if names else value)}.")
    if len(set(names)) != len(names):
        twice = next(n for n in names if names.count(n) > 1)
        raise ValueError(
            f"bodies joins {shown(twice)} with itself; name different bodies "
            '("ground" is the fixed frame).'
        )
    return names


def _items(value: Any) -> tuple[Any, ...]:
    """The items of a list; none for a value that is not iterable."""
    return tuple(value) if isinstance(value, Iterable) else ()


def name_list(value: Any, what: str) -> tuple[str, ...]:
    """Names; a text is one name, not its letters.

    **Raises:** `ValueError` for anything else.
    """
    names = (value,) if isinstance(value, str) else _items(value)
    if not isinstance(value, Iterable) or not all(isinstance(x, str) for x in names):
        raise ValueError(f"{what} must be a list of texts, got {shown(value)}.")
    return names


def table(value: Any, what: str, entries: str) -> dict[Any, Any]:
    """A mapping from names.

    **Raises:** `ValueError` for anything else.
    """
    if not isinstance(value, Mapping):
        raise ValueError(f"{what} must be a table of names and {entries}, got {shown(value)}.")
    return dict(value)


def numbers(value: Any, what: str) -> Float[Array, " n"]:
    """A vector of at least one number."""
    shape = shape_of(value)
    if len(shape) != 1 or shape[0] == 0:
        raise ValueError(f"{what} must be a list of at least one number, got {shown(value)}.")
    return real(value, shape, what)


def parts(value: Any, kind: type, what: str) -> tuple[Any, ...]:
    """A list of parts, all of one kind.

    **Raises:** `TypeError` that names the one that is none.
    """
    noun = kind.__name__.removeprefix("Abstract").lower()
    word = f"an {noun}" if noun[0] in "aeiou" else f"a {noun}"
    if not isinstance(value, Iterable):
        raise TypeError(f"{what} must be a list, each of its entries {word}; got {shown(value)}.")
    items = tuple(value)
    for k, item in enumerate(items):
        if not isinstance(item, kind):
            raise TypeError(f"{what}, entry {k + 1}, must be {word}, got {shown(item)}.")
    return items


def function(value: Any, what: str, arguments: str = "") -> Any:
    """Something that can be called, with these arguments ("q, v, t"), where they are known.

    **Raises:** `TypeError`.
    """
    if not callable(value):
        raise TypeError(f"{what} must be a function, got {shown(value)}.")
    if arguments:
        takes_arguments(value, what, arguments)
    return value


def takes_arguments(value: Any, what: str, arguments: str) -> None:
    """Refuse a function that cannot be called with these arguments, before it is traced.

    **Raises:** `TypeError`.
    """
    try:
        signature = inspect.signature(value)
    except (TypeError, ValueError):
        # Functions that are not Python's have no signature.
        return
    try:
        signature.bind(*arguments.split(", "))
    except TypeError:
        raise TypeError(
            f"{what} must be a function of ({arguments}), got one of {signature}; give it these "
            "arguments, in this order."
        ) from None


def optional_function(value: Any, what: str, arguments: str = "") -> Any:
    """The same, or None.

    **Raises:** `TypeError`.
    """
    return None if value is None else function(value, what, arguments)
