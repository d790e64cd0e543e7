"""Checks of user input that can be made while a model is built.

Values that are being traced (differentiated, batched) are not known yet and pass unchecked;
their shapes are always checked.
"""

import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Float

from ._custom_types import Numbers
from ._limits import LARGEST as LARGEST, NumberRange, SMALLEST as SMALLEST
from ._quoting import listed as listed, PATH as PATH, shortened as shortened, shown as shown


_Tree = TypeVar("_Tree")

# No array that is asked for has as many axes.
_DEEPEST = 8


def concrete(value: Any) -> np.ndarray | None:
    """The numbers of `value`, or None while one of them is being traced (or there are none). A
    check of what a user gave: its JAX array is traced inside of a transformation."""
    if isinstance(value, Tracer):
        return None
    try:
        return np.asarray(value)
    except (TypeError, ValueError):
        return None


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
    known = concrete(value)
    try:
        return (jnp.asarray(value) if known is None else known).shape
    except (TypeError, ValueError, OverflowError):
        return ()


def check_numbers(value: Any, shape: tuple[int | None, ...], what: str, fix: str = "") -> None:
    """Refuse what is not made of real numbers, or has another shape (None: any size). `fix`: end of
    the sentence.

    **Raises:** `TypeError` for a value that is not a number, `ValueError` for another shape.
    """
    size = f"{shape[0]} " if shape and shape[0] is not None else ""
    wanted = ("a number", f"a vector of {size}numbers", f"an array of shape {list(shape)}")
    expected = wanted[min(len(shape), 2)]
    # A text, a boolean and None could be converted too, and mean something else.
    if not holds_numbers(value):
        wrong = (own for own in _entries(value, what) if not holds_numbers(own[1]))
        place, entry = next(wrong, (what, value))
        expected = expected if place == what else "a number"
        fix = _axis_in_numbers(value, shape) + fix
        raise TypeError(f"{place} must be {expected}, got {shown(entry)}{fix}.")
    found = shape_of(value)
    ragged = not found and isinstance(value, list | tuple)
    same = len(found) == len(shape) and all(map(lambda n, k: k in (None, n), found, shape))
    if ragged or not same:
        got = f"shape {list(found)}" if found and concrete(value) is None else shown(_plain(value))
        raise ValueError(f"{what} must be {expected}, got {got}{fix}.")


def _plain(value: Any) -> Any:
    """Numbers as a message quotes them."""
    return value if isinstance(value, list | tuple) else np.asarray(value).tolist()


def floats(value: Any, what: str) -> Float[Array, "..."]:
    """`as_array` of numbers.

    **Raises:** `ValueError` for whole numbers that no floating-point number holds.
    """
    try:
        return as_array(value)
    except OverflowError:
        raise ValueError(_too_large(what, "a whole number beyond them")) from None


def real(value: Numbers, shape: tuple[int | None, ...], what: str) -> Float[Array, "..."]:
    """`value` as a floating-point array of exactly `shape`, finite and of a size that double
    precision carries through products where it is known.

    **Raises:** as `check_numbers`, and `ValueError` for the size.
    """
    check_numbers(value, shape, what)
    array = floats(value, what)
    known = concrete(array)
    if known is not None:
        check_sizes(known, what)
    return array


def _axis_in_numbers(value: Any, shape: tuple[int | None, ...]) -> str:
    """Advice to write numbers in place of the name of a world axis ("z", "-x")."""
    if not isinstance(value, str) or shape not in ((2,), (3,)):
        return ""
    sign, letter = -1.0 if value.startswith("-") else 1.0, value.lstrip("+-").lower()
    letters = "xyz"[: shape[0]]
    if len(letter) != 1 or letter not in letters:
        return ""
    return f"; write {[sign if own == letter else 0.0 for own in letters]}"


def holds_numbers(value: Any, depth: int = 0) -> bool:
    """Is this a real number, an array of them, or lists of these? Texts, None, booleans, complex
    numbers and objects are not."""
    # Whole numbers of any length, which arrays of whole numbers do not hold.
    if type(value) in (int, float):
        return True
    if isinstance(value, list | tuple):
        return depth < _DEEPEST and all(holds_numbers(x, depth + 1) for x in value)
    dtype = value.dtype if isinstance(value, jax.Array) else np.asarray(value).dtype
    return jnp.issubdtype(dtype, jnp.floating) or jnp.issubdtype(dtype, jnp.integer)


def _entries(value: Any, what: str, depth: int = 0) -> Iterator[tuple[str, Any]]:
    """The entries of nested lists, each with its place in words."""
    if not isinstance(value, list | tuple) or depth == _DEEPEST:
        yield what, value
        return
    for k, entry in enumerate(value):
        yield from _entries(entry, f"{what}, entry {k + 1}", depth + 1)


def check_sizes(known: np.ndarray, what: str, largest: float = LARGEST) -> None:
    """**Raises:** `ValueError` that names the first number that is not finite, or too large."""
    if np.all(np.abs(known) <= largest):
        return
    # (NaN is not at most anything.)
    place, entry = next(own for own in _entries(known.tolist(), what) if not abs(own[1]) <= largest)
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
    if len(shape) > 1 or (shape and count is not None and shape != (count,)):
        many = "" if count is None else f"{count} of them, "
        raise ValueError(
            f"{what} must be one number, or {many}one for each {each}, got {shown(value)}."
        )
    found = real(value, shape, what)
    known = concrete(found)
    for place, entry in () if known is None else _entries(known.tolist(), what):
        positive(entry, place)
    return found


def positive(value: Numbers, what: str) -> Float[Array, ""]:
    """A number greater than zero."""
    return in_range(value, what, NumberRange(above=0))


def not_negative(value: Numbers, what: str) -> Float[Array, ""]:
    """A number of at least zero."""
    return in_range(value, what, NumberRange(least=0))


def in_range(value: Numbers, what: str, bounds: NumberRange) -> Float[Array, ""]:
    """A number within these bounds; one that must be greater than zero is at least `SMALLEST`."""
    array = real(value, (), what)
    known = concrete(array)
    if known is None:
        return array
    said = bounds.refusal(float(known), what)
    if said is not None:
        raise ValueError(said)
    if bounds.above == 0 and known < SMALLEST:
        raise ValueError(_too_small(what, f"{known.item():g}"))
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
        wrong = ValueError if isinstance(value, str) else TypeError
        raise wrong(f"{what} needs a name, got {shown(value)}.")
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
    names = name_list(value, "bodies")
    if (len(names) == 0 if count is None else len(names) != count) or not all(names):
        noun = {None: "at least one body", 1: "one body"}.get(count, f"{count} bodies")
        raise ValueError(f"bodies must name {noun}, got {shown(list(names))}.")
    if len(set(names)) != len(names):
        twice = next(n for n in names if names.count(n) > 1)
        raise ValueError(
            f"bodies joins {shown(twice)} with itself; name different bodies "
            '("ground" is the fixed frame).'
        )
    return names


def name_list(value: Any, what: str) -> tuple[str, ...]:
    """Names; a text is one name, not its letters.

    **Raises:** `TypeError` for anything else.
    """
    names = (value,) if isinstance(value, str) else value
    if not isinstance(names, Iterable):
        raise TypeError(f"{what} must be a list of names, got {shown(value)}.")
    names = tuple(names)
    for k, own in enumerate(names):
        if not isinstance(own, str):
            raise TypeError(f"{what}, entry {k + 1} must be a name, got {shown(own)}.")
    return names


def check_table(
    arguments: Float[Array, " rows"], values: Float[Array, " rows"], names: tuple[str, str]
) -> None:
    """Refuse a table whose arguments do not increase, or do not have one value each."""
    if arguments.shape != values.shape or arguments.shape[0] < 2:
        raise ValueError(
            f"{names[0]} and {names[1]} must be equally long and hold at least two entries, got "
            f"{arguments.shape[0]} and {values.shape[0]}."
        )
    known = concrete(arguments)
    # The slopes of what lies closer together than that have no number.
    if known is not None and np.any(np.diff(known) < SMALLEST):
        late = int(np.argmax(np.diff(known) < SMALLEST)) + 1
        raise ValueError(
            f"{names[0]} must increase; entry {late + 1} ({known[late]:g}) does not exceed the one "
            f"before it ({known[late - 1]:g})."
        )


def numbers(value: Any, what: str) -> Float[Array, " n"]:
    """A vector of at least one number."""
    array = real(value, (None,), what)
    if not array.size:
        raise ValueError(f"{what} must be a list of at least one number, got [].")
    return array
