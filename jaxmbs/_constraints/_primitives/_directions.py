"""Directions carried by two bodies stay perpendicular, parallel, or do not turn at all."""

from jaxtyping import Array, Float

from ..._custom_types import Matrix3, RealScalarLike, Scalar
from ..._geometry import ANGLE, composed, relative_rotation_vector, rotated
from ..base import AbstractGeometricPrimitive, Frames, Row


class AxesPerpendicular(AbstractGeometricPrimitive):
    """z_1 . z_2 = 0."""

    @property
    def rows(self) -> tuple[Row, ...]:
        return (Row("a", ANGLE),)

    def position(self, frames: Frames, t: RealScalarLike) -> Float[Array, " geometric"]:
        del t
        first, second = frames
        return rotated(second.rotation[:, 2:].T, first.rotation[:, 2])


class AxesParallel(AbstractGeometricPrimitive):
    """z_1 has no component along n1 = x_2 and n2 = y_2 (Haug 1989, section 9.4)."""

    @property
    def rows(self) -> tuple[Row, ...]:
        return (Row("a1", ANGLE), Row("a2", ANGLE))

    def position(self, frames: Frames, t: RealScalarLike) -> Float[Array, " geometric"]:
        del t
        first, second = frames
        return rotated(second.rotation[:, :2].T, first.rotation[:, 2])


class SameAngle(AbstractGeometricPrimitive):
    """phi_1 - phi_2 = 0 between the markers' angles (Haug 1989, section 3.3)."""

    @property
    def rows(self) -> tuple[Row, ...]:
        return (Row("r", ANGLE),)

    def position(self, frames: Frames, t: RealScalarLike) -> Float[Array, " geometric"]:
        del t
        first, second = frames
        return (first.angle - second.angle)[None]


class SameRotation(AbstractGeometricPrimitive):
    """No relative rotation, in components along `reference` (columns of the world's axes of
    the reference configuration, seen from the markers' axes then: world <- marker)."""

    reference: Matrix3

    @property
    def rows(self) -> tuple[Row, ...]:
        return tuple(Row(s, ANGLE) for s in ("rx", "ry", "rz"))

    def position(self, frames: Frames, t: RealScalarLike) -> Float[Array, " geometric"]:
        del t
        first, second = frames
        relative = composed(second.rotation.T, first.rotation)
        return rotated(self.reference, relative_rotation_vector(relative))


class AnglesInRatio(AbstractGeometricPrimitive):
    """(phi_1 - phi_c) - ratio (phi_2 - phi_c) = 0: two gears on the carrier c."""

    ratio: Scalar

    @property
    def rows(self) -> tuple[Row, ...]:
        return (Row("g", ANGLE),)

    def position(self, frames: Frames, t: RealScalarLike) -> Float[Array, " geometric"]:
        del t
        first, second, carrier = frames
        on_first = first.angle - carrier.angle
        on_second = second.angle - carrier.angle
        return (on_first - self.ratio * on_second)[None]
