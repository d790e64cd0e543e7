"""Placement of a joint's markers in the reference configuration."""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._checks import known_array
from .._custom_types import Scalar
from .._geometry import across_line, axis_triad, PlanarFrame, SpatialFrame
from .._programs import Compiling, program


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
