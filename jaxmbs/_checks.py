"""Checks of user input that can be made while a model is built.

Values that are being traced (differentiated, batched) are not known yet and pass unchecked;
their shapes are always checked.
"""

from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Float

from ._custom_types import Numbers


def concrete(value: Numbers) -> np.ndarray | None:
    """The numbers of `value`, or None while they are being traced."""
    if isinstance(value, Tracer):
        return None
    return np.asarray(value)


def shape_of(value: Any) -> tuple[int, ...]:
    """Shape of a number, array or nested lists of numbers; () for what is no array, which
    `real` then refuses with a sentence."""
    try:
        return jnp.asarray(value, dtype=float).shape
    except (TypeError, ValueError):
        return ()


def real(value: Numbers, shape: tuple[int, ...], what: str) -> Float[Array, "..."]:
    """`value` as a floating-point array of exactly `shape`, finite where it is known.

    **Raises:** `ValueError` that names `what`, what was received and what was expected.
    """
    expected = "a number" if shape == () else f"an array of shape {list(shape)}"
    if shape and len(shape) == 1:
        expected = f"a vector of {shape[0]} numbers"
    try:
        array = jnp.asarray(value, dtype=float)
    except (TypeError, ValueError):
        raise ValueError(f"{what} must be {expected}, got {value!r}.") from None
    known = concrete(array)
    if array.shape != shape:
        got = f"shape {list(array.shape)}" if known is None else f"{known.tolist()}"
        raise ValueError(f"{what} must be {expected}, got {got}.")
    if known is not None and not np.all(np.isfinite(known)):
        raise ValueError(f"{what} must be finite, got {known.tolist()}.")
    return array


def rows_of_function(result: Any, count: int, what: str) -> Float[Array, " rows"]:
    """What a user's constraint function returned, as a vector of `count` rows."""
    rows = jnp.atleast_1d(jnp.asarray(result))
    if rows.shape != (count,):
        raise ValueError(
            f"{what} returned shape {list(rows.shape)} where {count} row(s) were declared; "
            f"say rows={rows.shape[0]}, or return a vector of {count}."
        )
    return rows


def positive(value: Numbers, what: str) -> Float[Array, ""]:
    """A number greater than zero."""
    array = real(value, (), what)
    known = concrete(array)
    if known is not None and known <= 0:
        raise ValueError(f"{what} must be greater than zero, got {known.item():g}.")
    return array


def direction(value: Numbers, dimension: int, what: str) -> Float[Array, " dim"]:
    """A vector that has a direction; its length is kept and means nothing."""
    array = real(value, (dimension,), what)
    known = concrete(array)
    if known is not None and np.linalg.norm(known) == 0:
        raise ValueError(f"{what} has zero length; give a vector along the direction meant.")
    return array


def name(value: str, what: str) -> str:
    """A name that can stand in reports, options and column headings."""
    if not isinstance(value, str) or not value.strip():
        raise ValueError(f"{what} needs a name, got {value!r}.")
    bad = sorted(set(value) & set(",.'\"`"))
    if bad:
        raise ValueError(
            f"the name {value!r} holds {' '.join(bad)}; commas, full stops and quotes are "
            "kept for lists and row names. Use a space, a hyphen or an underscore."
        )
    if value != value.strip():
        raise ValueError(f"the name {value!r} begins or ends with a space; leave it out.")
    return value


def body_names(value: str | Sequence[str], count: int | None) -> tuple[str, ...]:
    """The names of the bodies that a joint acts on, `count` different ones (None: any)."""
    names = (value,) if isinstance(value, str) else tuple(value)
    wrong = len(names) == 0 if count is None else len(names) != count
    if wrong or not all(isinstance(n, str) for n in names):
        noun = {None: "at least one body", 1: "one body"}.get(count, f"{count} bodies")
        raise ValueError(f"bodies must name {noun}, got {list(names)!r}.")
    if len(set(names)) != len(names):
        twice = next(n for n in names if names.count(n) > 1)
        raise ValueError(
            f"bodies joins {twice!r} with itself; name different bodies "
            '("ground" is the fixed frame).'
        )
    return names
