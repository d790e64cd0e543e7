"""Relative coordinates of joints, the drivers' rows that prescribe them, and the screw."""

import functools
from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..._custom_types import RealScalarLike, Scalar
from ..._geometry import ANGLE, LENGTH, Quantity, SpatialFrame
from .._motions import AbstractMotion
from ..base import AbstractCoordinate, AbstractGeometricPrimitive, Frames, Row


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


class Coupled(AbstractGeometricPrimitive):
    """s_1 - (c_0 + c_1 s_2 + c_2 s_2^2 + ...) of the coordinates of two pairs of markers.

    Angles are known up to full turns. A turn of the first changes the residual by 2 pi, one of the
    second, of a polynomial of first degree, by 2 pi c_1: the turns that make it least are meant.
    """

    first: AbstractCoordinate
    second: AbstractCoordinate
    coefficients: Float[Array, " n"]

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
        turns: list[Scalar] = [jnp.asarray(2 * jnp.pi)] if self.first.quantity == ANGLE else []
        if self.second.quantity == ANGLE and self.coefficients.shape[0] == 2:
            slope = jnp.abs(self.coefficients[1])
            turns.append(2 * jnp.pi * jnp.where(slope > 0, slope, 1.0))
        if not turns:
            return excess
        # Of turns of both the shorter one: that of the shaft which turns faster.
        turn = functools.reduce(jnp.minimum, turns)
        return excess - turn * jnp.round(excess / turn)


def angle_about_axis(first: SpatialFrame, second: SpatialFrame) -> Scalar:
    """Angle of the second frame against the first about their common z axis, (-pi, pi]."""
    relative = first.rotation.T @ second.rotation
    return jnp.arctan2(relative[1, 0] - relative[0, 1], relative[0, 0] + relative[1, 1])
