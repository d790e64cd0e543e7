"""Conditions on velocities that no condition on positions replaces (nonholonomic)."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from ..._custom_types import RealScalarLike, Scalar, Vector3
from ..._geometry import LENGTH
from ..base import AbstractGeometricPrimitive, AbstractVelocityPrimitive, Frames, Row, Twists


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
