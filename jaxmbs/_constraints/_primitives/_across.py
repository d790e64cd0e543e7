"""The line between two points is perpendicular to directions that the second body carries."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from ..._custom_types import RealScalarLike, Scalar
from ..._geometry import LENGTH
from ..base import AbstractGeometricPrimitive, Frames, Row


class OnPlanarLine(AbstractGeometricPrimitive):
    """A point of the first body stays on the second marker's x axis: side y_2 . (P_1 - P_2).

    `side` is +1 or -1: it turns y_2 into the row's direction n of `io/REFERENCE.md`, names of rows.
    """

    side: Scalar

    @property
    def rows(self) -> tuple[Row, ...]:
        return (Row("n", LENGTH),)

    def position(self, frames: Frames, t: RealScalarLike) -> Float[Array, " geometric"]:
        del t
        first, second = frames
        normal = self.side * second.rotation[:, 1]
        return (normal @ (first.origin - second.origin))[None]


class OnLine(AbstractGeometricPrimitive):
    """A point of the first body stays on the second marker's z axis (its n1, n2 are x, y)."""

    @property
    def rows(self) -> tuple[Row, ...]:
        return (Row("n1", LENGTH), Row("n2", LENGTH))

    def position(self, frames: Frames, t: RealScalarLike) -> Float[Array, " geometric"]:
        del t
        first, second = frames
        return second.rotation[:, :2].T @ (first.origin - second.origin)


class OnPlane(AbstractGeometricPrimitive):
    """A point of the first body stays in the plane normal to the second marker's z axis."""

    @property
    def rows(self) -> tuple[Row, ...]:
        return (Row("n", LENGTH),)

    def position(self, frames: Frames, t: RealScalarLike) -> Float[Array, " geometric"]:
        del t
        first, second = frames
        return (second.rotation[:, 2] @ (first.origin - second.origin))[None]


class Apart(AbstractGeometricPrimitive):
    """Two points keep the distance `length` (m): |P_1 - P_2| - length."""

    length: Scalar

    @property
    def rows(self) -> tuple[Row, ...]:
        return (Row("d", LENGTH),)

    def position(self, frames: Frames, t: RealScalarLike) -> Float[Array, " geometric"]:
        del t
        first, second = frames
        return (jnp.linalg.norm(first.origin - second.origin) - self.length)[None]
