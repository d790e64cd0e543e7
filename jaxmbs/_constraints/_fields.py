"""Declarations that joints share, and what joints that are functions are made of."""

from collections.abc import Callable, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .. import _checks, _settings
from .._checks import known_array
from .._custom_types import Numbers, Scalar
from .._fields import body_names, direction, Field, Moves, part_name, point_or_points
from .._geometry import across_line, axis_triad, is_quantity, PlanarFrame, Quantity, SpatialFrame
from .._programs import Compiling, program
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
    bodies = tuple(_settings.text(body, "the body of a marker") for body, _ in value)
    dimension = 2 if _checks.shape_of(value[0][1]) == (2,) else 3
    points = [_checks.real(point, (dimension,), "the point of a marker") for _, point in value]
    return bodies, jnp.stack(points)


def function_of(arguments: str) -> Callable[[Any], Any]:
    """A user's function of these arguments."""
    return lambda value: _settings.function(value, "function", arguments=arguments)


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


# --------------------------------------------------------------------------------------------------
# Placement of a joint's markers in the reference configuration.
# --------------------------------------------------------------------------------------------------


@program(compiling=Compiling.ONCE, of_arrays=True)
def planar_frames(points: Float[Array, "count 2"], angle: Scalar) -> tuple[PlanarFrame, ...]:
    """Frames at the points, all turned by `angle` (rad)."""
    return tuple(PlanarFrame(point, angle) for point in points)


@program(compiling=Compiling.ONCE, of_arrays=True)
def spatial_frames(
    points: Float[Array, "count 3"], rotation: Float[Array, "3 3"]
) -> tuple[SpatialFrame, ...]:
    """Frames at the points, all with the axes `rotation`."""
    return tuple(SpatialFrame(point, rotation) for point in points)


def unturned_frames(
    points: Float[Array, "count dim"],
) -> tuple[PlanarFrame, ...] | tuple[SpatialFrame, ...]:
    """Frames at the points with the world's axes, in the plane or in space."""
    if points.shape[-1] == 2:
        return planar_frames(points, unturned())
    return spatial_frames(points, world_axes())


def unturned_frame(
    point: Float[Array, " dim"],
) -> tuple[PlanarFrame] | tuple[SpatialFrame]:
    """A frame at the point with the world's axes, in the plane or in space."""
    if point.shape == (2,):
        return (PlanarFrame(point, unturned()),)
    return (SpatialFrame(point, world_axes()),)


def unturned() -> Scalar:
    """The angle of the world's axes (rad)."""
    return known_array(np.zeros(()))


def world_axes() -> Float[Array, "3 3"]:
    """Axes of a marker whose joint has no direction of its own."""
    return known_array(np.eye(3))


@program(compiling=Compiling.ONCE, of_arrays=True)
def triad(axis: Float[Array, "3"]) -> Float[Array, "3 3"]:
    """Columns (n1, n2, axis) of `io/REFERENCE.md`, names of rows."""
    return axis_triad(axis)


@program(compiling=Compiling.ONCE, of_arrays=True)
def line_angle(axis: Float[Array, "2"]) -> Scalar:
    """Angle (rad) of a planar axis against the world's x axis."""
    return jnp.arctan2(axis[1], axis[0])


@program(compiling=Compiling.ONCE, of_arrays=True)
def line_side(axis: Float[Array, "2"]) -> Scalar:
    """+1 where the row's direction n is the axis turned by +90 deg, -1 where by -90 deg."""
    normal = across_line(axis)
    return jnp.sign(axis[0] * normal[1] - axis[1] * normal[0])


@program(compiling=Compiling.ONCE, of_arrays=True)
def along(axis: Float[Array, " dim"], points: Float[Array, "2 dim"]) -> Scalar:
    """Component along the axis of the second point against the first (m)."""
    return axis @ (points[1] - points[0]) / jnp.linalg.norm(axis)
