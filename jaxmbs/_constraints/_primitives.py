"""Primitive conditions between two marker frames, of which joints are composed."""

from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from .. import _checks
from .._custom_types import Matrix3, RealScalarLike, Scalar, Vector3
from .._geometry import (
    ANGLE,
    composed,
    LENGTH,
    Quantity,
    relative_rotation_vector,
    rotated,
    SpatialFrame,
)
from .._stop_gradient import stop_gradient
from ._motions import AbstractMotion
from .base import (
    AbstractCoordinate,
    AbstractGeometricPrimitive,
    AbstractVelocityPrimitive,
    Frames,
    PositionFunction,
    Row,
    Twists,
    VelocityFunction,
)


# --------------------------------------------------------------------------------------------------
# The line between two points is perpendicular to directions that the second body carries.
# --------------------------------------------------------------------------------------------------


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


class Coincide(AbstractGeometricPrimitive):
    """Two points coincide: P_1 - P_2 = 0 along the world axes (Nikravesh 1988, eq. 4.7)."""

    dimension: int = eqx.field(static=True)

    @property
    def rows(self) -> tuple[Row, ...]:
        return tuple(Row(s, LENGTH) for s in ("x", "y", "z")[: self.dimension])

    def position(self, frames: Frames, t: RealScalarLike) -> Float[Array, " geometric"]:
        del t
        first, second = frames
        return first.origin - second.origin


# --------------------------------------------------------------------------------------------------
# Relative coordinates of joints, the drivers' rows that prescribe them, and the screw.
# --------------------------------------------------------------------------------------------------


class PlanarTranslation(AbstractCoordinate):
    """(P_2 - P_1) . x_2 - zero (m)."""

    quantity: ClassVar[Quantity] = LENGTH
    zero: Scalar

    def excess(self, frames: Frames, value: Scalar) -> Scalar:
        first, second = frames
        along = second.rotation[:, 0] @ (second.origin - first.origin)
        return along - self.zero - value


class SpatialTranslation(AbstractCoordinate):
    """(P_2 - P_1) . z_2 - zero (m)."""

    quantity: ClassVar[Quantity] = LENGTH
    zero: Scalar

    def excess(self, frames: Frames, value: Scalar) -> Scalar:
        first, second = frames
        along = second.rotation[:, 2] @ (second.origin - first.origin)
        return along - self.zero - value


class PlanarRotation(AbstractCoordinate):
    """phi_2 - phi_1 (rad), continuous: full turns count."""

    quantity: ClassVar[Quantity] = ANGLE

    def excess(self, frames: Frames, value: Scalar) -> Scalar:
        first, second = frames
        return second.angle - first.angle - value


class SpatialRotation(AbstractCoordinate):
    """Angle of the second marker's x axis against the first's, about z_2 (rad).

    Frames do not count turns, so the excess over a prescribed value is taken between -pi and
    pi: a driver may turn a joint round any number of times.
    """

    quantity: ClassVar[Quantity] = ANGLE

    def excess(self, frames: Frames, value: Scalar) -> Scalar:
        first, second = frames
        excess = angle_about_axis(first, second) - value
        return excess - 2 * jnp.pi * jnp.round(excess / (2 * jnp.pi))


class OwnCoordinate(AbstractCoordinate):
    """One of a body's own coordinates, as it counts."""

    index: int = eqx.field(static=True)
    quantity: Quantity = eqx.field(static=True)

    def excess(self, frames: Frames, value: Scalar) -> Scalar:
        (own,) = frames
        return own.values[self.index] - value


class Driven(AbstractGeometricPrimitive):
    """A relative coordinate follows a motion (rheonomic): coordinate - motion(t)."""

    coordinate: AbstractCoordinate
    motion: AbstractMotion

    @property
    def rows(self) -> tuple[Row, ...]:
        return (Row("d", self.coordinate.quantity),)

    def position(self, frames: Frames, t: RealScalarLike) -> Float[Array, " geometric"]:
        return self.coordinate.excess(frames, self.motion(t))[None]

    def unambiguous(self) -> Float[Array, " rows"]:
        # Half a turn for an angle in space, as frames do not count turns there.
        wraps = isinstance(self.coordinate, SpatialRotation)
        return jnp.full((1,), jnp.pi if wraps else jnp.inf)

    def reading(self, frames: Frames, t: RealScalarLike) -> Float[Array, "3"]:
        """The residual, the coordinate, between -pi and pi where frames do not count turns, and
        its prescribed value, which does."""
        value = self.motion(t)
        now = self.coordinate.excess(frames, jnp.zeros_like(value))
        return jnp.stack([self.coordinate.excess(frames, value), now, value])


class Advance(AbstractGeometricPrimitive):
    """Screw: advance - pitch angle / 2 pi, both of the second marker against the first.

    `pitch` in m per turn. The angle is known up to full turns; the thread nearest to the
    present advance is meant.
    """

    pitch: Scalar
    zero: Scalar

    @property
    def rows(self) -> tuple[Row, ...]:
        return (Row("s", LENGTH),)

    def position(self, frames: Frames, t: RealScalarLike) -> Float[Array, " geometric"]:
        del t
        first, second = frames
        advance = SpatialTranslation(self.zero).excess(frames, jnp.zeros_like(self.pitch))
        turns = angle_about_axis(first, second) / (2 * jnp.pi)
        flat = self.pitch == 0
        wanted = jnp.where(flat, turns, advance / jnp.where(flat, 1.0, self.pitch))
        turns = turns + jnp.round(wanted - turns)
        return (advance - self.pitch * turns)[None]

    def unambiguous(self) -> Float[Array, " rows"]:
        # Half a thread, as threads are indistinguishable.
        flat = self.pitch == 0
        return jnp.where(flat, jnp.inf, jnp.abs(self.pitch) / 2)[None]


# The kind of joints that couple two coordinates.
COUPLING = "coupling"

# Ratios of whole numbers up to this one are known as such, and that close to one.
MOST_TEETH = 100
_WHOLE = 1e-12


class Coupled(AbstractGeometricPrimitive):
    """s_1 - (c_0 + c_1 s_2 + c_2 s_2^2 + ...) of the coordinates of two pairs of markers.

    Angles are known up to full turns, so that the residual is known up to multiples of `turn`: of
    these the least residual is meant.
    """

    first: AbstractCoordinate
    second: AbstractCoordinate
    coefficients: Float[Array, " n"]
    turn: Scalar | None

    def __init__(
        self,
        first: AbstractCoordinate,
        second: AbstractCoordinate,
        coefficients: Float[Array, " n"],
    ):
        self.first, self.second, self.coefficients = first, second, coefficients
        self.turn = stop_gradient(self._turn())

    @property
    def rows(self) -> tuple[Row, ...]:
        return (Row("s", self.first.quantity),)

    def position(self, frames: Frames, t: RealScalarLike) -> Float[Array, " geometric"]:
        del t
        zero = jnp.zeros((), frames[0].dtype)
        value = self.second.excess(frames[2:], zero)
        wanted = jnp.polyval(self.coefficients[::-1], value)
        excess = self.first.excess(frames[:2], zero) - wanted
        return self._without_turns(excess)[None]

    def _without_turns(self, excess: Scalar) -> Scalar:
        return excess if self.turn is None else excess - self.turn * jnp.round(excess / self.turn)

    def _turn(self) -> Scalar | None:
        """The period of the residual (rad), None without one. A turn of the first coordinate
        changes it by 2 pi, and a turn of the second, if the polynomial is linear, by 2 pi c_1.
        Together these give every multiple of their greatest common divisor, 2 pi / n if c_1 =
        m / n. For other ratios it is the shorter of both turns, that of the faster shaft."""
        own = jnp.asarray(2 * jnp.pi, self.coefficients.dtype)
        angle = self.first.quantity == ANGLE
        if self.second.quantity != ANGLE or self.coefficients.shape[0] != 2:
            return own if angle else None
        slope = jnp.abs(self.coefficients[1])
        other = own * jnp.where(slope > 0, slope, 1.0)
        if not angle:
            return other
        teeth = jnp.arange(1, MOST_TEETH + 1, dtype=slope.dtype)
        whole = jnp.abs(slope * teeth - jnp.round(slope * teeth)) <= _WHOLE * (1 + slope * teeth)
        common = own / teeth[jnp.argmax(whole)]
        return jnp.where(jnp.any(whole), common, jnp.minimum(own, other))


def angle_about_axis(first: SpatialFrame, second: SpatialFrame) -> Scalar:
    """Angle of the second frame against the first about their common z axis, (-pi, pi]."""
    relative = first.rotation.T @ second.rotation
    return jnp.arctan2(relative[1, 0] - relative[0, 1], relative[0, 0] + relative[1, 1])


# --------------------------------------------------------------------------------------------------
# Directions carried by two bodies stay perpendicular, parallel, or do not turn at all.
# --------------------------------------------------------------------------------------------------


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


class PositionCondition(AbstractGeometricPrimitive):
    """A user's function of marker frames and time; a Module's arrays are its parameters."""

    function: PositionFunction
    labels: tuple[Row, ...] = eqx.field(static=True)

    @property
    def rows(self) -> tuple[Row, ...]:
        return self.labels

    def position(self, frames: Frames, t: RealScalarLike) -> Float[Array, " geometric"]:
        result = self.function(frames, t)
        return _checks.rows_of_function(result, len(self.labels), "a constraint function")


class VelocityCondition(AbstractVelocityPrimitive):
    """A user's function of marker frames, twists and time."""

    linear_in_rates: ClassVar[bool] = False
    function: VelocityFunction
    labels: tuple[Row, ...] = eqx.field(static=True)

    @property
    def rows(self) -> tuple[Row, ...]:
        return self.labels

    def velocity(
        self, frames: Frames, twists: Twists, t: RealScalarLike
    ) -> Float[Array, " velocity"]:
        result = self.function(frames, twists, t)
        return _checks.rows_of_function(result, len(self.labels), "a constraint function")

    def lever_arm(self) -> Scalar:
        return jnp.asarray(0.0)


# --------------------------------------------------------------------------------------------------
# Conditions on velocities that no condition on positions replaces (nonholonomic).
# --------------------------------------------------------------------------------------------------


class NoVelocityAcross(AbstractVelocityPrimitive):
    """Knife edge: no velocity of the marker's origin along its y axis
    (Wojtyra & Fraczek 2013, eq. 30)."""

    @property
    def rows(self) -> tuple[Row, ...]:
        return (Row("v", LENGTH),)

    def velocity(
        self, frames: Frames, twists: Twists, t: RealScalarLike
    ) -> Float[Array, " velocity"]:
        del t
        (frame,), (twist,) = frames, twists
        return (frame.rotation[:, 1] @ twist.linear)[None]

    def lever_arm(self) -> Scalar:
        return jnp.asarray(0.0)


class ConstantCoefficients(AbstractVelocityPrimitive):
    """Pfaffian rows: constant coefficients on (linear in the world, angular in body axes) of
    each marker in turn; the markers have their bodies' axes and centres."""

    coefficients: Float[Array, "rows velocities"]

    @property
    def rows(self) -> tuple[Row, ...]:
        count = self.coefficients.shape[-2]
        return tuple(Row(str(i + 1), LENGTH) for i in range(count))

    def velocity(
        self, frames: Frames, twists: Twists, t: RealScalarLike
    ) -> Float[Array, " velocity"]:
        del t
        parts = [f.components(w) for f, w in zip(frames, twists, strict=True)]
        return self.coefficients @ jnp.concatenate(parts)

    def lever_arm(self) -> Scalar:
        return jnp.asarray(0.0)


class NoSlip(AbstractVelocityPrimitive):
    """The lowest point of a disk (spin axis z of its marker) does not slide on z = 0."""

    radius: Scalar

    @property
    def rows(self) -> tuple[Row, ...]:
        return (Row("x", LENGTH), Row("y", LENGTH))

    def velocity(
        self, frames: Frames, twists: Twists, t: RealScalarLike
    ) -> Float[Array, " velocity"]:
        del t
        (frame,), (twist,) = frames, twists
        lever_arm = self.radius * _steepest_descent(frame.rotation[:, 2])
        return (twist.linear + jnp.cross(twist.angular, lever_arm))[:2]

    def lever_arm(self) -> Scalar:
        return self.radius


class Touches(AbstractGeometricPrimitive):
    """The lowest point of a disk (spin axis z of its marker) is on the plane z = 0."""

    radius: Scalar

    @property
    def rows(self) -> tuple[Row, ...]:
        return (Row("z", LENGTH),)

    def position(self, frames: Frames, t: RealScalarLike) -> Float[Array, " geometric"]:
        del t
        (frame,) = frames
        lever_arm = self.radius * _steepest_descent(frame.rotation[:, 2])
        return (frame.origin + lever_arm)[2:]


def _steepest_descent(axis: Vector3) -> Vector3:
    """The downward unit vector in the plane of a disk with this spin axis (not vertical)."""
    up = jnp.array([0.0, 0.0, 1.0], axis.dtype)
    slope = up - axis[2] * axis
    return -slope / jnp.linalg.norm(slope)
