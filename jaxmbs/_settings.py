"""Settings: options of public functions and classes, each checked where it is given.

Values that are being traced (differentiated, batched) are not known yet and pass unchecked; their
shapes are always checked.
"""

import inspect
import operator
import os
import sys
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Float

from ._checks import (
    as_array,
    check_numbers,
    check_sizes,
    concrete,
    floats,
    name_list,
    number,
    shown,
)
from ._limits import ATOL, NumberRange, RTOL, short_number


_T = TypeVar("_T")

# Least relative tolerance that double precision can meet: a step of an integrator or of an
# iteration is a sum of a few dozen terms, each rounded to 1.1e-16 of its size, and an error below
# that rounding cannot be told. SciPy's `solve_ivp` draws the line at the same place; a chain of one
# window goes through 2 s at 1e-14, and steps become ever shorter at 2e-15.
LEAST_TOLERANCE = 100 * float(np.finfo(np.float64).eps)

# Counts are 32-bit integers where double precision is not switched on.
_LARGEST_COUNT = 2**31 - 1


def between(
    value: Any, what: str, bounds: NumberRange | None = None, **limits: Any
) -> Float[Array, ""]:
    """One finite number in a `NumberRange`, or in that of these limits.

    **Raises:** `TypeError` for a value that is not a number, `ValueError` for one out of the range,
    both naming `what`.
    """
    check_range(value, what, bounds, **limits)
    return as_array(value)


def check_range(value: Any, what: str, bounds: NumberRange | None = None, **limits: Any) -> None:
    """`between`, for its refusals alone."""
    bounds = NumberRange(**limits) if bounds is None else bounds
    check_numbers(value, (), what, bounds.fix)
    known = concrete(value)
    if known is None:
        return
    number = known.item()
    said = bounds.refusal(number, what)
    if said is None and abs(number) > sys.float_info.max:
        said = f"{what} must be a finite number, got {short_number(number)}{bounds.fix}."
    if said is not None:
        raise ValueError(said)


def known_number(value: Any, what: str, bounds: NumberRange | None = None, **limits: Any) -> float:
    """`between` for a number that a program is built with: it must not be traced.

    **Raises:** as `between`, and `TypeError` for a traced value.
    """
    if isinstance(value, Tracer):
        raise TypeError(f"{what} must be known while tracing; give a number, not a traced value.")
    check_range(value, what, bounds, **limits)
    return float(np.asarray(value))


def whole_number(
    value: Any, what: str, *, least: int, most: int | None = _LARGEST_COUNT, why: str = ""
) -> int:
    """A count: no boolean, no floating-point number, not traced. `why`: of the least, in brackets.

    **Raises:** `TypeError` for a value that is not a whole number, `ValueError` for one out of the
    range.
    """
    bound = f"at least {least}" + (f" ({why})" if why else "")
    if isinstance(value, Tracer):
        raise TypeError(
            f"{what} must be known while tracing; give a whole number, not a traced value."
        )
    if isinstance(value, bool | np.bool_):
        raise TypeError(f"{what} must be a whole number of {bound}, got {value}.")
    try:
        number = operator.index(value)
    except TypeError:
        fix = "; write it without a decimal point" if isinstance(value, float) else ""
        raise TypeError(
            f"{what} must be a whole number of {bound}, got {shown(value)}{fix}."
        ) from None
    if number < least:
        raise ValueError(f"{what} must be {bound}, got {number}.")
    if most is not None and number > most:
        raise ValueError(f"{what} must be {bound} and at most {most}, got {shown(number)}.")
    return number


def seed(value: Any, what: str = "seed", *, most: int | None = None) -> int:
    """A seed of random numbers. JAX's hold 32 bits (`most`), NumPy's any number of them."""
    return whole_number(value, what, least=0, most=most)


def random_key(value: Any, what: str) -> Any:
    """One random key of JAX, of the new kind or of the old one (two or four 32-bit numbers).

    **Raises:** `TypeError` for anything else, such as a seed.
    """
    if isinstance(value, jax.Array):
        new = jnp.issubdtype(value.dtype, jax.dtypes.prng_key) and value.shape == ()
        if new or (value.dtype == np.uint32 and value.shape in ((2,), (4,))):
            return value
    raise TypeError(f"{what} must be one random key such as jax.random.key(0), got {shown(value)}.")


def flag(value: Any, what: str) -> bool:
    """True or False.

    **Raises:** `TypeError` for anything else, also for values that Python treats as true.
    """
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"{what} must be True or False, got {shown(value)}.")
    return bool(value)


def instance(value: Any, kind: type[_T], what: str, such_as: str) -> _T:
    """An object of a class. `such_as`: what may be written.

    **Raises:** `TypeError` that states what to write, also for the class in its place.
    """
    if isinstance(value, kind):
        return value
    fix = ""
    if isinstance(value, type) and issubclass(value, kind):
        fix = f"; put brackets behind it: {value.__name__}(...)"
    raise TypeError(f"{what} must be {such_as}, got {shown(value)}{fix}.")


def instances(values: Any, kind: type[_T], what: str, such_as: str) -> tuple[_T, ...]:
    """Several objects of a class, in a list or tuple.

    **Raises:** as `instance`, by the number of the entry.
    """
    if isinstance(values, str | Mapping | kind) or not isinstance(values, Iterable):
        raise TypeError(
            f"{what} must be a list, each of its entries {such_as}; got {shown(values)}."
        )
    return tuple(instance(x, kind, f"{what}, entry {k + 1}", such_as) for k, x in enumerate(values))


def function(value: Any, what: str, such_as: str = "a function", arguments: str = "") -> Any:
    """Something to be called, with these arguments ("q, v, t"), where they are known; a class is
    not, as it would make an object of its argument.

    **Raises:** `TypeError`.
    """
    if isinstance(value, type) or not callable(value):
        raise TypeError(f"{what} must be {such_as}, got {shown(value)}.")
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
    return None if value is None else function(value, what, arguments=arguments)


def parts(values: Any, kind: type[_T], what: str) -> tuple[_T, ...]:
    """Several parts of one kind.

    **Raises:** as `instances`.
    """
    noun = kind.__name__.removeprefix("Abstract").lower()
    return instances(values, kind, what, f"{'an' if noun[0] in 'aeiou' else 'a'} {noun}")


def mapping(value: Any, what: str, such_as: str) -> Any:
    """A dictionary, or what is like one, with texts as keys.

    **Raises:** `TypeError`.
    """
    if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
        raise TypeError(f"{what} must be a dictionary such as {such_as}, got {shown(value)}.")
    return value


def names(values: Any, what: str, such_as: str) -> tuple[str, ...]:
    """Names in a list or tuple; a text alone would be taken letter by letter.

    **Raises:** `TypeError` for a value that is not a name, `ValueError` for an empty one.
    """
    if isinstance(values, str | Mapping):
        raise TypeError(f"{what} must be a list of names such as {such_as}, got {shown(values)}.")
    found = name_list(values, what)
    return tuple(text(x, f"{what}, entry {k + 1}", such_as) for k, x in enumerate(found))


def text(value: Any, what: str, such_as: str = "") -> str:
    """A text that is not empty.

    **Raises:** `TypeError` for a value that is not a string, `ValueError` for an empty one.
    """
    if not isinstance(value, str) or not value.strip():
        wrong = ValueError if isinstance(value, str) else TypeError
        example = f" such as {such_as}" if such_as else ""
        raise wrong(f"{what} must be a text{example}, got {shown(value)}.")
    return value


def path(value: Any, what: str) -> Any:
    """The path of a file.

    **Raises:** `TypeError` for a value that is not a path, `ValueError` for an empty one.
    """
    if isinstance(value, os.PathLike):
        return value
    return text(value, what, "'results/run.npz', or a pathlib.Path")


def vector(value: Any, what: str, *, size: int | None = None) -> Float[Array, " n"]:
    """A vector of finite numbers, of `size` of them if that is given.

    **Raises:** `TypeError` for values that are not numbers, `ValueError` for another shape and for
    NaN and inf.
    """
    check_numbers(value, (size,), what)
    array, known = floats(value, what), concrete(value)
    if known is not None:
        check_sizes(known, what, float(np.finfo(np.float64).max))
    return array


def increasing(value: Any, what: str, dtype: Any, *, least: int) -> Float[Array, " n"]:
    """The given times (s), at least `least` of them, each later than the one before.

    **Raises:** as `vector`, and `ValueError` for too few or such as do not increase.
    """
    array = jnp.asarray(vector(value, what), dtype)
    if array.shape[0] < least:
        raise ValueError(f"{what} must be at least {least} numbers, got {array.shape[0]}.")
    known = concrete(value)
    if known is not None and not np.all(np.diff(known) > 0):
        raise ValueError(f"{what} must be increasing, got {shown(known.tolist())}.")
    return array


def step_tolerances(
    rtol: Any, atol: Any, dtype: Any = float
) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """The relative and the absolute error of a step of an integrator.

    **Raises:** as `between`, and `ValueError` if no step can meet them.
    """
    check_range(rtol, "rtol", RTOL)
    check_range(atol, "atol", ATOL)
    known = [float(x) for x in (concrete(rtol), concrete(atol)) if x is not None]
    if len(known) == 2 and max(known) < LEAST_TOLERANCE:
        raise ValueError(
            f"rtol and atol must not both be less than {LEAST_TOLERANCE:.2g}, which is rounding, "
            f"got {known[0]:g} and {known[1]:g}; rtol=1e-8 and atol=1e-10 are usual."
        )
    return number(rtol, dtype), number(atol, dtype)
