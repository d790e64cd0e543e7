"""What the fields of a joint accept, and how it is brought to arrays."""

from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Float

from .. import _checks
from .._custom_types import Numbers, Scalar
from .._geometry import is_quantity, Quantity
from .base import Row


def joint_name(value: str) -> str:
    """A joint's name."""
    return _checks.name(value, "a joint")


def one_body(value: str | Sequence[str]) -> tuple[str, ...]:
    """The name of the one body that a joint acts on."""
    return _checks.body_names(value, 1)


def two_bodies(value: Sequence[str]) -> tuple[str, ...]:
    """The names of two different bodies."""
    return _checks.body_names(value, 2)


def planar_pair(value: Numbers) -> Float[Array, "2 2"]:
    """One world point for both bodies, or one for each."""
    return _pair(value, 2)


def spatial_pair(value: Numbers) -> Float[Array, "2 3"]:
    """One world point for both bodies, or one for each."""
    return _pair(value, 3)


def planar_point(value: Numbers) -> Float[Array, "2"]:
    """A world point in the plane."""
    return _checks.real(value, (2,), "at")


def planar_direction(value: Numbers) -> Float[Array, "2"]:
    """The world direction of an edge."""
    return _checks.direction(value, 2, "direction")


def planar_axis(value: Numbers) -> Float[Array, "2"]:
    """A world direction in the plane."""
    return _checks.direction(value, 2, "axis")


def spatial_axis(value: Numbers) -> Float[Array, "3"]:
    """A world direction in space."""
    return _checks.direction(value, 3, "axis")


def two_axes(value: Numbers) -> Float[Array, "2 3"]:
    """One world direction on each body."""
    pair = _checks.real(value, (2, 3), "axes")
    for k in range(2):
        _checks.direction(pair[k], 3, f"axes, entry {k + 1},")
    return pair


def number(what: str):
    """A converter to one finite number."""

    def convert(value: Numbers) -> Scalar:
        return _checks.real(value, (), what)

    return convert


def positive(what: str):
    """A converter to one number greater than zero."""

    def convert(value: Numbers) -> Scalar:
        return _checks.positive(value, what)

    return convert


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


def _pair(value: Numbers, dimension: int) -> Float[Array, "2 dim"]:
    shape = _checks.shape_of(value)
    if shape == (2, dimension):
        return _checks.real(value, (2, dimension), "points")
    return jnp.broadcast_to(_checks.real(value, (dimension,), "at"), (2, dimension))


def some_bodies(value: str | Sequence[str]) -> tuple[str, ...]:
    """The names of different bodies, or the name of one."""
    return _checks.body_names(value, None)


def function(value: Any) -> Any:
    """A user's function."""
    return _checks.function(value, "function")


def quantity(value: Quantity) -> Quantity:
    """What a residual measures.

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
