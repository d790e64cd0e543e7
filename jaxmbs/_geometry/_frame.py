"""Frames (origin and rotation of axes attached to a body) and their velocities.

A joint depends on frames alone. A frame's velocity, its twist, is derived from the rate of
change of the frame's own numbers, so that no body ever writes down how its markers move.
"""

from typing import Any, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._custom_types import Matrix3, Scalar, Vector2, Vector3
from .._linalg._arrays import kept
from .._programs import Compiling, program
from ._coordinates import AbstractCoordinates
from ._quaternion import components, composed, cross_matrix, rotated, vector_of_skew


_Framed = TypeVar("_Framed", "PlanarFrame", "SpatialFrame")

_QUARTER_TURN = np.array([[0.0, -1.0], [1.0, 0.0]])


@jax.custom_jvp
def _direction(angle: Scalar) -> Vector2:
    """(cos, sin) of an angle, computed once: XLA would put them into everything that reads them,
    where they were half of the time of an evaluation."""
    return kept(jnp.stack([jnp.cos(angle), jnp.sin(angle)]))


@_direction.defjvp
def _direction_jvp(primals: tuple[Scalar], tangents: tuple[Scalar]) -> tuple[Vector2, Vector2]:
    found = _direction(*primals)
    c, s = components(found)
    return found, jnp.stack([-s, c]) * tangents[0]


class PlanarTwist(eqx.Module):
    """Velocity of a planar frame: of its origin (m/s, world axes) and its angle (rad/s)."""

    linear: Vector2
    angular: Scalar


class SpatialTwist(eqx.Module):
    """Velocity of a spatial frame: of its origin (m/s) and angular (rad/s), world axes."""

    linear: Vector3
    angular: Vector3


class CoordinateTwist(eqx.Module):
    """Velocities of a body that belong to its own coordinates; as a covector, the generalized
    forces."""

    rates: Float[Array, " n"]


class CoordinateFrame(eqx.Module):
    """Values of a body's own coordinates, in place of a frame, for conditions on them. `kind`: of
    coordinates whose rates are not the velocities."""

    values: Float[Array, " n"]
    kind: AbstractCoordinates | None = eqx.field(default=None, static=True)

    @property
    def dimension(self) -> None:
        """None: coordinates have no position in space."""
        return None

    @property
    def dtype(self) -> Any:
        """The dtype of the frame's numbers."""
        return self.values.dtype

    def twist(self, rate: "CoordinateFrame") -> CoordinateTwist:
        """The velocities, when they change at `rate`."""
        if self.kind is None:
            return CoordinateTwist(rate.values)
        return CoordinateTwist(self.kind.velocity(self.values, rate.values))


class PlanarFrame(eqx.Module):
    """Origin (m, world) and continuous, never wrapped, angle (rad) of planar axes."""

    origin: Vector2
    angle: Scalar

    @property
    def dimension(self) -> int:
        """Dimension of the space."""
        return 2

    @property
    def dtype(self) -> Any:
        """The dtype of the frame's numbers."""
        return self.origin.dtype

    @property
    def rotation(self) -> Float[Array, "2 2"]:
        """Columns are the frame's axes in the world."""
        c, s = components(_direction(self.angle))
        return c * np.eye(2, dtype=c.dtype) + s * _QUARTER_TURN.astype(c.dtype)

    def displacements(self) -> "PlanarFrame":
        """Changes of its numbers by a unit translation along each of the world's axes, and by a
        unit rotation about its origin; along a leading axis."""
        one = np.eye(3, dtype=self.dtype)
        return jax.vmap(PlanarFrame)(jnp.asarray(one[:, :2]), jnp.asarray(one[:, 2]))

    def turned(self, turn: Scalar) -> "PlanarFrame":
        """The frame with its axes rotated by an angle (rad)."""
        return PlanarFrame(self.origin, self.angle + turn)

    def twist(self, rate: "PlanarFrame") -> PlanarTwist:
        """The twist of this frame when its numbers change at `rate`."""
        return PlanarTwist(rate.origin, rate.angle)

    def rate(self, twist: PlanarTwist) -> "PlanarFrame":
        """The rate of change of this frame's numbers when it moves with a twist."""
        return PlanarFrame(twist.linear, twist.angular)

    def components(self, twist: PlanarTwist) -> Vector3:
        """(linear in the world, angular) of a twist."""
        return jnp.append(twist.linear, twist.angular)

    def wrench(self, force: Vector2, torque: Scalar) -> PlanarTwist:
        """A force and torque (world axes) as the covector of a twist: its power is the sum of
        products with the twist's numbers."""
        return PlanarTwist(force, torque)

    def compose(self, inner: "PlanarFrame") -> "PlanarFrame":
        """The world frame of `inner`, which is given in the axes of this frame."""
        turned = inner.origin[::-1] * np.array([-1.0, 1.0], inner.origin.dtype)
        c, s = components(_direction(self.angle))
        offset = c * inner.origin + s * turned
        return PlanarFrame(self.origin + offset, self.angle + inner.angle)

    def relative(self, outer: "PlanarFrame") -> "PlanarFrame":
        """This world frame as seen from the axes of `outer`."""
        return PlanarFrame(
            outer.rotation.T @ (self.origin - outer.origin), self.angle - outer.angle
        )


class SpatialFrame(eqx.Module):
    """Origin (m, world) and rotation (columns are the axes in the world)."""

    origin: Vector3
    rotation: Matrix3

    @property
    def dimension(self) -> int:
        """Dimension of the space."""
        return 3

    @property
    def dtype(self) -> Any:
        """The dtype of the frame's numbers."""
        return self.origin.dtype

    def displacements(self) -> "SpatialFrame":
        """Changes of its numbers by a unit translation along each of the world's axes, and by a
        unit rotation about each of them through its origin; along a leading axis."""
        one, none = np.eye(3, dtype=self.dtype), np.zeros((3, 3), self.dtype)
        turns = jnp.stack(
            [composed(cross_matrix(axis), self.rotation) for axis in jnp.asarray(one)]
        )
        still = np.zeros((3, 3, 3), self.dtype)
        return jax.vmap(SpatialFrame)(jnp.concatenate([one, none]), jnp.concatenate([still, turns]))

    def turned(self, turn: Matrix3) -> "SpatialFrame":
        """The frame with its axes rotated in themselves by a matrix."""
        return SpatialFrame(self.origin, self.rotation @ turn)

    def twist(self, rate: "SpatialFrame") -> SpatialTwist:
        """The twist of this frame when its numbers change at `rate` (Rdot = (w x) R)."""
        return SpatialTwist(rate.origin, vector_of_skew(rate.rotation @ self.rotation.T))

    def rate(self, twist: SpatialTwist) -> "SpatialFrame":
        """The rate of change of this frame's numbers when it moves with a twist: Rdot = (w x) R,
        for each axis."""
        turning = jnp.cross(twist.angular[:, None], self.rotation, axis=0)
        return SpatialFrame(twist.linear, turning)

    def components(self, twist: SpatialTwist) -> Float[Array, "6"]:
        """(linear in the world, angular along the axes of this frame) of a twist."""
        return jnp.concatenate([twist.linear, self.rotation.T @ twist.angular])

    def wrench(self, force: Vector3, torque: Vector3) -> SpatialTwist:
        """A force and torque (world axes) as the covector of a twist: its power is the sum of
        products with the twist's numbers."""
        return SpatialTwist(force, torque)

    def compose(self, inner: "SpatialFrame") -> "SpatialFrame":
        """The world frame of `inner`, which is given in the axes of this frame."""
        return SpatialFrame(
            self.origin + rotated(self.rotation, inner.origin),
            composed(self.rotation, inner.rotation),
        )

    def relative(self, outer: "SpatialFrame") -> "SpatialFrame":
        """This world frame as seen from the axes of `outer`."""
        return SpatialFrame(
            outer.rotation.T @ (self.origin - outer.origin), outer.rotation.T @ self.rotation
        )


@program(compiling=Compiling.ONCE, of_arrays=True)
def relative(inner: _Framed, outer: _Framed) -> _Framed:
    """The first world frame as seen from the axes of the second, both with numbers."""
    return inner.relative(outer)
