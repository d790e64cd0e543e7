"""How a body's coordinates q and velocities v belong together.

`qdot = N(q) v` is `rate`, and a finite step along v is `retract`. Nothing assumes that q and v
are equally long. These are namespaces of pure functions; a kind of body names the one it uses.
"""

import abc
from typing import ClassVar

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._custom_types import Scalar
from ._quaternion import (
    cross_matrix,
    quaternion_exponential,
    quaternion_logarithm,
    quaternion_product,
    rotation_from_quaternion,
)


# The rate of change of (x, y, phi) by a turn about z.
_IN_PLANE = np.array([[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 0.0]])


class AbstractCoordinates(abc.ABC):
    """`nq` coordinates and `nv` velocities; `quantities` names the unit of each velocity,
    `lengths` the coordinates that are lengths, `quaternion` those that make up one of unit
    length, if there is one."""

    nq: ClassVar[int]
    nv: ClassVar[int]
    quantities: ClassVar[tuple[str, ...]]
    origin: ClassVar[tuple[float, ...]]
    lengths: ClassVar[tuple[int, ...]]
    quaternion: ClassVar[tuple[int, ...]]

    @staticmethod
    @abc.abstractmethod
    def rate(q: Float[Array, " nq"], v: Float[Array, " nv"]) -> Float[Array, " nq"]:
        """qdot = N(q) v."""

    @staticmethod
    @abc.abstractmethod
    def retract(q: Float[Array, " nq"], step: Float[Array, " nv"]) -> Float[Array, " nq"]:
        """The coordinates reached from q by the finite step; `step = 0` gives q."""

    @staticmethod
    @abc.abstractmethod
    def difference(q: Float[Array, " nq"], end: Float[Array, " nq"]) -> Float[Array, " nv"]:
        """The step that leads from q to `end`: retract(q, difference(q, end)) = end."""

    @staticmethod
    @abc.abstractmethod
    def world_axes(q: Float[Array, " nq"]) -> Float[Array, "nv nv"]:
        """Orthogonal: from velocities, or a displacement along them, to the same along axes that
        never turn."""

    @staticmethod
    @abc.abstractmethod
    def turning(rate: Float[Array, "3"]) -> Float[Array, "nv nv"]:
        """Skew: the rate at which velocities along axes that never turn change where they are
        fixed in axes that turn with the angular velocity `rate` (rad/s, world)."""

    @staticmethod
    @abc.abstractmethod
    def steady(
        q: Float[Array, " nq"], v: Float[Array, " nv"], rate: Float[Array, "3"], t: Scalar
    ) -> Float[Array, " nq"]:
        """q after the time t (s), if the velocities keep to axes that turn with the angular
        velocity `rate` (rad/s, world)."""


class AbstractFlatCoordinates(AbstractCoordinates):
    """Coordinates that simply add up: v = qdot."""

    quaternion: ClassVar[tuple[int, ...]] = ()

    @staticmethod
    def rate(q: Float[Array, " nq"], v: Float[Array, " nv"]) -> Float[Array, " nq"]:
        del q
        return v

    @staticmethod
    def retract(q: Float[Array, " nq"], step: Float[Array, " nv"]) -> Float[Array, " nq"]:
        return q + step

    @staticmethod
    def difference(q: Float[Array, " nq"], end: Float[Array, " nq"]) -> Float[Array, " nv"]:
        return end - q

    @staticmethod
    def world_axes(q: Float[Array, " nq"]) -> Float[Array, "nv nv"]:
        return jnp.eye(q.shape[0], dtype=q.dtype)


class PlanarPose(AbstractFlatCoordinates):
    """q = (x, y, phi) of the centre of mass in the world."""

    nq: ClassVar[int] = 3
    nv: ClassVar[int] = 3
    quantities: ClassVar[tuple[str, ...]] = ("length", "length", "angle")
    origin: ClassVar[tuple[float, ...]] = (0.0, 0.0, 0.0)
    lengths: ClassVar[tuple[int, ...]] = (0, 1)

    @staticmethod
    def turning(rate: Float[Array, "3"]) -> Float[Array, "nv nv"]:
        return rate[2] * jnp.asarray(_IN_PLANE, rate.dtype)

    @staticmethod
    def steady(
        q: Float[Array, " nq"], v: Float[Array, " nv"], rate: Float[Array, "3"], t: Scalar
    ) -> Float[Array, " nq"]:
        return q + displacement_after(PlanarPose.turning(rate), rate, v, t)


class PlanarPoint(AbstractFlatCoordinates):
    """q = (x, y) of a particle."""

    nq: ClassVar[int] = 2
    nv: ClassVar[int] = 2
    quantities: ClassVar[tuple[str, ...]] = ("length", "length")
    origin: ClassVar[tuple[float, ...]] = (0.0, 0.0)
    lengths: ClassVar[tuple[int, ...]] = (0, 1)

    @staticmethod
    def turning(rate: Float[Array, "3"]) -> Float[Array, "nv nv"]:
        return rate[2] * jnp.asarray(_IN_PLANE[:2, :2], rate.dtype)

    @staticmethod
    def steady(
        q: Float[Array, " nq"], v: Float[Array, " nv"], rate: Float[Array, "3"], t: Scalar
    ) -> Float[Array, " nq"]:
        return q + displacement_after(PlanarPoint.turning(rate), rate, v, t)


class SpatialPoint(AbstractFlatCoordinates):
    """q = (x, y, z) of a particle."""

    nq: ClassVar[int] = 3
    nv: ClassVar[int] = 3
    quantities: ClassVar[tuple[str, ...]] = ("length",) * 3
    origin: ClassVar[tuple[float, ...]] = (0.0, 0.0, 0.0)
    lengths: ClassVar[tuple[int, ...]] = (0, 1, 2)

    @staticmethod
    def turning(rate: Float[Array, "3"]) -> Float[Array, "nv nv"]:
        return cross_matrix(rate)

    @staticmethod
    def steady(
        q: Float[Array, " nq"], v: Float[Array, " nv"], rate: Float[Array, "3"], t: Scalar
    ) -> Float[Array, " nq"]:
        return q + displacement_after(SpatialPoint.turning(rate), rate, v, t)


class SpatialPose(AbstractCoordinates):
    """q = (position in the world, unit quaternion); v = (linear in the world, angular in the
    body frame). qdot of the quaternion is e (0, w) / 2 (Shabana 2020, eq. 2.105)."""

    nq: ClassVar[int] = 7
    nv: ClassVar[int] = 6
    quantities: ClassVar[tuple[str, ...]] = ("length",) * 3 + ("angle",) * 3
    origin: ClassVar[tuple[float, ...]] = (0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0)
    lengths: ClassVar[tuple[int, ...]] = (0, 1, 2)
    quaternion: ClassVar[tuple[int, ...]] = (3, 4, 5, 6)

    @staticmethod
    def rate(q: Float[Array, " nq"], v: Float[Array, " nv"]) -> Float[Array, " nq"]:
        angular = jnp.concatenate([jnp.zeros_like(v[:1]), v[3:]])
        return jnp.concatenate([v[:3], 0.5 * quaternion_product(q[3:], angular)])

    @staticmethod
    def retract(q: Float[Array, " nq"], step: Float[Array, " nv"]) -> Float[Array, " nq"]:
        quaternion = quaternion_product(q[3:], quaternion_exponential(step[3:]))
        quaternion = quaternion / jnp.linalg.norm(quaternion)
        return jnp.concatenate([q[:3] + step[:3], quaternion])

    @staticmethod
    def difference(q: Float[Array, " nq"], end: Float[Array, " nq"]) -> Float[Array, " nv"]:
        relative = quaternion_product(q[3:] * np.array([1.0, -1.0, -1.0, -1.0]), end[3:])
        return jnp.concatenate([end[:3] - q[:3], quaternion_logarithm(relative)])

    @staticmethod
    def world_axes(q: Float[Array, " nq"]) -> Float[Array, "nv nv"]:
        return _beside(jnp.eye(3, dtype=q.dtype), rotation_from_quaternion(q[3:]))

    @staticmethod
    def turning(rate: Float[Array, "3"]) -> Float[Array, "nv nv"]:
        return _beside(cross_matrix(rate), cross_matrix(rate))

    @staticmethod
    def steady(
        q: Float[Array, " nq"], v: Float[Array, " nv"], rate: Float[Array, "3"], t: Scalar
    ) -> Float[Array, " nq"]:
        # In axes that turn the body goes on turning about one of its own axes.
        own = rotation_from_quaternion(q[3:]).T @ rate
        turned = quaternion_product(quaternion_exponential(t * rate), q[3:])
        spun = quaternion_product(turned, quaternion_exponential(t * (v[3:] - own)))
        return jnp.concatenate(
            [q[:3] + displacement_after(cross_matrix(rate), rate, v[:3], t), spun]
        )


def displacement_after(
    turning: Float[Array, "n n"], rate: Float[Array, "3"], v: Float[Array, " n"], t: Scalar
) -> Float[Array, " n"]:
    """The way of a velocity that begins as v and is turned by exp(t X), X = `turning` of `rate`:
    with X^3 = -|rate|^2 X its integral (t + (1 - cos) X / |rate|^2 + ...) v."""
    size = jnp.linalg.norm(rate)
    angle, along = size * t, turning / jnp.where(size > 0, size, 1.0)
    across = angle * jnp.sinc(angle / (2 * np.pi)) ** 2 / 2
    return t * (v + across * (along @ v) + (1 - jnp.sinc(angle / np.pi)) * (along @ (along @ v)))


def turn_matrix(
    turning: Float[Array, "n n"], rate: Float[Array, "3"], t: Scalar
) -> Float[Array, "n n"]:
    """exp(t X), X = `turning` of `rate`."""
    size = jnp.linalg.norm(rate)
    angle, along = size * t, turning / jnp.where(size > 0, size, 1.0)
    quadratic = (1 - jnp.cos(angle)) * (along @ along)
    return jnp.eye(turning.shape[0], dtype=turning.dtype) + jnp.sin(angle) * along + quadratic


def _beside(first: Float[Array, "3 3"], second: Float[Array, "3 3"]) -> Float[Array, "6 6"]:
    zero = jnp.zeros_like(first)
    return jnp.block([[first, zero], [zero, second]])
