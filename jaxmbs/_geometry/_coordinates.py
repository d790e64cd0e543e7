"""How a body's coordinates q and velocities v belong together.

`qdot = N(q) v` is `rate`, and a finite step along v is `retract`. Nothing assumes that q and v
are equally long. These are namespaces of pure functions; a kind of body names the one it uses.
"""

import abc
from typing import ClassVar

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ._quaternion import quaternion_exponential, quaternion_logarithm, quaternion_product


class AbstractCoordinates(abc.ABC):
    """`nq` coordinates and `nv` velocities; `quantities` names the unit of each velocity."""

    nq: ClassVar[int]
    nv: ClassVar[int]
    quantities: ClassVar[tuple[str, ...]]
    origin: ClassVar[tuple[float, ...]]

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


class AbstractFlatCoordinates(AbstractCoordinates):
    """Coordinates that simply add up: v = qdot."""

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


class PlanarPose(AbstractFlatCoordinates):
    """q = (x, y, phi) of the centre of mass in the world."""

    nq: ClassVar[int] = 3
    nv: ClassVar[int] = 3
    quantities: ClassVar[tuple[str, ...]] = ("length", "length", "angle")
    origin: ClassVar[tuple[float, ...]] = (0.0, 0.0, 0.0)


class PlanarPoint(AbstractFlatCoordinates):
    """q = (x, y) of a particle."""

    nq: ClassVar[int] = 2
    nv: ClassVar[int] = 2
    quantities: ClassVar[tuple[str, ...]] = ("length", "length")
    origin: ClassVar[tuple[float, ...]] = (0.0, 0.0)


class SpatialPoint(AbstractFlatCoordinates):
    """q = (x, y, z) of a particle."""

    nq: ClassVar[int] = 3
    nv: ClassVar[int] = 3
    quantities: ClassVar[tuple[str, ...]] = ("length",) * 3
    origin: ClassVar[tuple[float, ...]] = (0.0, 0.0, 0.0)


class SpatialPose(AbstractCoordinates):
    """q = (position in the world, unit quaternion); v = (linear in the world, angular in the
    body frame). qdot of the quaternion is e (0, w) / 2 (Shabana 2020, eq. 2.105)."""

    nq: ClassVar[int] = 7
    nv: ClassVar[int] = 6
    quantities: ClassVar[tuple[str, ...]] = ("length",) * 3 + ("angle",) * 3
    origin: ClassVar[tuple[float, ...]] = (0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0)

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
