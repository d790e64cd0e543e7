"""Declarations that joints share, and what joints that are functions are made of."""

from collections.abc import Callable, Sequence
from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Float

from .. import _checks
from .._custom_types import Numbers
from .._fields import body_names, direction, Field, Moves, part_name, point_or_points
from .._geometry import is_quantity, Quantity
from .base import Row


JOINT_NAME = part_name("a joint")
SOME_BODIES = body_names(None)
ONE_BODY = body_names(1)
TWO_BODIES = body_names(2)
PLANAR_PAIR = point_or_points(2)
SPATIAL_PAIR = point_or_points(3)
_AXIS = "in the world, reference configuration"
PLANAR_AXIS = direction("axis", _AXIS, 2)
SPATIAL_AXIS = direction("axis", _AXIS, 3)


def _two_axes(value: Numbers, what: str) -> Float[Array, "2 3"]:
    pair = _checks.real(value, (2, 3), what)
    for k in range(2):
        _checks.direction(pair[k], 3, f"{what}, entry {k + 1},")
    return pair


TWO_AXES: Callable[[Numbers], Float[Array, "2 3"]] = Field(
    "axes",
    "1",
    _AXIS,
    list[list[float]],
    "one direction of 3 numbers on each body",
    _two_axes,
    moves=Moves.vector,
    shape=(2, 3),
)

# Of joints and forces that are functions, which no file holds.
MARKER_POINTS: Callable[[Numbers], Float[Array, "markers dim"]] = Field(
    "at",
    "m",
    "in the reference configuration",
    list[list[float]],
    "one world point for each marker",
    lambda value, what: _checks.real(value, _checks.shape_of(value), what),
)


def markers(
    value: Sequence[tuple[str, Numbers]],
) -> tuple[tuple[str, ...], Float[Array, "markers dim"]]:
    """The bodies and the world points of markers."""
    wrong = ValueError(
        "markers must be a list of pairs (body, world point), at least one, got "
        f"{_checks.shown(value)}."
    )
    if not isinstance(value, list | tuple) or not value:
        raise wrong
    if not all(isinstance(pair, list | tuple) and len(pair) == 2 for pair in value):
        raise wrong
    bodies = tuple(_checks.reference(body, "the body of a marker") for body, _ in value)
    dimension = 2 if _checks.shape_of(value[0][1]) == (2,) else 3
    points = [_checks.real(point, (dimension,), "the point of a marker") for _, point in value]
    return bodies, jnp.stack(points)


def function_of(arguments: str) -> Callable[[Any], Any]:
    """A user's function of these arguments."""
    return lambda value: _checks.function(value, "function", arguments)


def quantity(value: Quantity) -> Quantity:
    """The quantity that a residual measures, checked.

    **Raises:** `ValueError`.
    """
    if not is_quantity(value):
        raise ValueError(
            f"quantity must be a Quantity with a unit and a scale above 0, got "
            f"{_checks.shown(value)}."
        )
    return value


def suffixes_of(rows: int | Sequence[str]) -> tuple[str, ...]:
    """Suffixes of the rows of a user's function, from these or from their number.

    **Raises:** `ValueError`.
    """
    if isinstance(rows, int) and not isinstance(rows, bool):
        suffixes = tuple(str(i + 1) for i in range(rows))
    else:
        # A text is one suffix, not its letters.
        suffixes = _checks.name_list(rows, "rows")
    if not suffixes or len(set(suffixes)) != len(suffixes):
        raise ValueError(
            f"rows must be a number of rows, or different suffixes, got {_checks.shown(rows)}."
        )
    return suffixes


def labels_of(rows: int | Sequence[str], measured: Quantity) -> tuple[Row, ...]:
    """Rows of a user's function, from their number or their suffixes.

    **Raises:** `ValueError`.
    """
    return tuple(Row(suffix, quantity(measured)) for suffix in suffixes_of(rows))
