"""Kinds of coordinates: the relation of a body's coordinates q to its velocities v, and the
quantities that their numbers measure.
"""

import abc
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.scipy.linalg import block_diag
from jaxtyping import Array, Float

from .. import _settings
from .._custom_types import Scalar
from ._quaternion import (
    cross_matrix,
    quaternion_exponential,
    quaternion_logarithm,
    quaternion_product,
    rotation_from_quaternion,
)


# --------------------------------------------------------------------------------------------------
# Quantities measured by single numbers: coordinates, velocities, rows of constraints.
# --------------------------------------------------------------------------------------------------


class Quantity(NamedTuple):
    """Quantity measured by a coordinate or by a constraint's residual; velocities are its rates.

    `name`: a word; `unit`: in SI; `scale`: how much of it, in that unit, counts as one where unlike
    numbers are compared (ranks, residuals, the size of a motion). None: the characteristic length
    of the system, as for lengths.
    """

    name: str
    unit: str
    scale: float | None = 1.0

    @property
    def force_unit(self) -> str:
        """The unit of what does work on it: a force, a torque, or what makes joules of its unit."""
        return {"m": "N", "rad": "N m", "": "J"}.get(self.unit, f"J/{self.unit}")


def is_quantity(given: Any) -> bool:
    """Is it a `Quantity` with a unit and a scale above 0?"""
    if not isinstance(given, Quantity) or not isinstance(given.unit, str):
        return False
    return given.scale is None or 0 < given.scale < float("inf")


def quantities_of(given: Any, names: Sequence[str]) -> dict[str, Quantity]:
    """The quantities given for some of the names.

    **Raises:** `ValueError` for another name, and for a value that is not a quantity.
    """
    known = _settings.mapping(
        {} if given is None else given, "quantities", '{"x": Quantity("length", "m")}'
    )
    for name, quantity in known.items():
        if name not in names:
            raise ValueError(f"quantities names {name!r:.50}; there are {', '.join(names)}.")
        if not is_quantity(quantity):
            raise ValueError(
                f"quantities must hold a Quantity with a unit and a scale above 0 for {name!r}, "
                f"got {quantity!r:.80}."
            )
    return known


LENGTH = Quantity("length", "m", None)
ANGLE = Quantity("angle", "rad")
NUMBER = Quantity("number", "")


# --------------------------------------------------------------------------------------------------
# Kinds of coordinates: the relation of a body's coordinates q to its velocities v.
#
# `qdot = N(q) v` is `rate`, and a finite step along v is `retract`. Nothing assumes that q and v
# are equally long. A kind of coordinates has no numbers of its own: it is static, equal ones share
# compiled programs, and those of a body may be composed of several (`ProductCoordinates`).
# --------------------------------------------------------------------------------------------------


# The rate of change of (x, y, phi) by a turn about z.
_IN_PLANE = np.array([[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 0.0]])


class AbstractCoordinates(eqx.Module):
    """`nq` coordinates and `nv` velocities. Static: they contain no array."""

    @property
    @abc.abstractmethod
    def frame(self) -> tuple[int, int]:
        """Number of leading velocities that are those of the body's own frame: of its origin along
        the world's axes, and angular ones along its own axes."""

    @property
    @abc.abstractmethod
    def names(self) -> tuple[str, ...]:
        """Names of the coordinates."""

    @property
    @abc.abstractmethod
    def measures(self) -> tuple[Quantity, ...]:
        """The quantity of each coordinate."""

    @property
    @abc.abstractmethod
    def velocity_names(self) -> tuple[str, ...]:
        """Names of the velocities."""

    @property
    @abc.abstractmethod
    def quantities(self) -> tuple[Quantity, ...]:
        """The quantity whose rate each velocity is."""

    @property
    @abc.abstractmethod
    def origin(self) -> tuple[float, ...]:
        """Coordinates of a body at the world's origin, along the world's axes."""

    @property
    @abc.abstractmethod
    def quaternions(self) -> tuple[tuple[int, ...], ...]:
        """Places of the coordinates that make up a quaternion of unit length, scalar first."""

    @property
    def posed(self) -> bool:
        """Do the velocities determine the motion of a frame of the body?"""
        return sum(self.frame) > 0

    @property
    def nq(self) -> int:
        """Number of coordinates."""
        return len(self.names)

    @property
    def nv(self) -> int:
        """Number of velocities."""
        return len(self.velocity_names)

    @abc.abstractmethod
    def rate(self, q: Float[Array, " nq"], v: Float[Array, " nv"]) -> Float[Array, " nq"]:
        """qdot = N(q) v."""

    @abc.abstractmethod
    def velocity(self, q: Float[Array, " nq"], rate: Float[Array, " nq"]) -> Float[Array, " nv"]:
        """v from qdot = `rate`: the inverse of `rate`."""

    @abc.abstractmethod
    def retract(self, q: Float[Array, " nq"], step: Float[Array, " nv"]) -> Float[Array, " nq"]:
        """The coordinates reached from q by the finite step; `step = 0` gives q."""

    @abc.abstractmethod
    def difference(self, q: Float[Array, " nq"], end: Float[Array, " nq"]) -> Float[Array, " nv"]:
        """The step that leads from q to `end`: retract(q, difference(q, end)) = end."""

    @abc.abstractmethod
    def world_axes(self, q: Float[Array, " nq"]) -> Float[Array, "nv nv"]:
        """Orthogonal: from velocities, or a displacement along them, to the same along axes that
        never turn."""

    @abc.abstractmethod
    def turning(self, rate: Float[Array, "3"]) -> Float[Array, "nv nv"]:
        """Skew: the rate at which velocities along axes that never turn change where they are
        fixed in axes that turn with the angular velocity `rate` (rad/s, world)."""

    @abc.abstractmethod
    def steady(
        self, q: Float[Array, " nq"], v: Float[Array, " nv"], rate: Float[Array, "3"], t: Scalar
    ) -> Float[Array, " nq"]:
        """q after the time t (s), if the velocities keep to axes that turn with the angular
        velocity `rate` (rad/s, world)."""


class AbstractFlatCoordinates(AbstractCoordinates):
    """Coordinates that simply add up: v = qdot."""

    @property
    def origin(self) -> tuple[float, ...]:
        return (0.0,) * self.nq

    @property
    def quaternions(self) -> tuple[tuple[int, ...], ...]:
        return ()

    @property
    def quantities(self) -> tuple[Quantity, ...]:
        return self.measures

    def rate(self, q: Float[Array, " nq"], v: Float[Array, " nv"]) -> Float[Array, " nq"]:
        del q
        return v

    def velocity(self, q: Float[Array, " nq"], rate: Float[Array, " nq"]) -> Float[Array, " nv"]:
        del q
        return rate

    def retract(self, q: Float[Array, " nq"], step: Float[Array, " nv"]) -> Float[Array, " nq"]:
        return q + step

    def difference(self, q: Float[Array, " nq"], end: Float[Array, " nq"]) -> Float[Array, " nv"]:
        return end - q

    def world_axes(self, q: Float[Array, " nq"]) -> Float[Array, "nv nv"]:
        return jnp.eye(q.shape[0], dtype=q.dtype)

    def steady(
        self, q: Float[Array, " nq"], v: Float[Array, " nv"], rate: Float[Array, "3"], t: Scalar
    ) -> Float[Array, " nq"]:
        return q + displacement_after(self.turning(rate), rate, v, t)


class PlanarPose(AbstractFlatCoordinates):
    """q = (x, y, phi) of the centre of mass in the world."""

    frame: ClassVar[tuple[int, int]] = (2, 1)
    names: ClassVar[tuple[str, ...]] = ("position.x", "position.y", "angle")
    measures: ClassVar[tuple[Quantity, ...]] = (LENGTH, LENGTH, ANGLE)
    velocity_names: ClassVar[tuple[str, ...]] = ("velocity.x", "velocity.y", "angular_velocity")

    def turning(self, rate: Float[Array, "3"]) -> Float[Array, "nv nv"]:
        return rate[2] * jnp.asarray(_IN_PLANE, rate.dtype)


class PlanarPoint(AbstractFlatCoordinates):
    """q = (x, y) of a particle."""

    frame: ClassVar[tuple[int, int]] = (2, 0)
    names: ClassVar[tuple[str, ...]] = ("position.x", "position.y")
    measures: ClassVar[tuple[Quantity, ...]] = (LENGTH,) * 2
    velocity_names: ClassVar[tuple[str, ...]] = ("velocity.x", "velocity.y")

    def turning(self, rate: Float[Array, "3"]) -> Float[Array, "nv nv"]:
        return rate[2] * jnp.asarray(_IN_PLANE[:2, :2], rate.dtype)


class SpatialPoint(AbstractFlatCoordinates):
    """q = (x, y, z) of a particle."""

    frame: ClassVar[tuple[int, int]] = (3, 0)
    names: ClassVar[tuple[str, ...]] = ("position.x", "position.y", "position.z")
    measures: ClassVar[tuple[Quantity, ...]] = (LENGTH,) * 3
    velocity_names: ClassVar[tuple[str, ...]] = ("velocity.x", "velocity.y", "velocity.z")

    def turning(self, rate: Float[Array, "3"]) -> Float[Array, "nv nv"]:
        return cross_matrix(rate)


class FlatCoordinates(AbstractFlatCoordinates):
    """Named coordinates that do not define axes: angles of joints, amplitudes of modes."""

    frame: ClassVar[tuple[int, int]] = (0, 0)
    own_names: tuple[str, ...] = eqx.field(static=True)
    own_measures: tuple[Quantity, ...] = eqx.field(static=True)

    @property
    def names(self) -> tuple[str, ...]:
        return self.own_names

    @property
    def measures(self) -> tuple[Quantity, ...]:
        return self.own_measures

    @property
    def velocity_names(self) -> tuple[str, ...]:
        return tuple(f"{name}.rate" for name in self.names)

    def turning(self, rate: Float[Array, "3"]) -> Float[Array, "nv nv"]:
        return jnp.zeros((self.nv,) * 2, rate.dtype)


class SpatialPose(AbstractCoordinates):
    """q = (position in the world, unit quaternion); v = (linear in the world, angular in the
    body frame). qdot of the quaternion is e (0, w) / 2 (Shabana 2020, eq. 2.105)."""

    frame: ClassVar[tuple[int, int]] = (3, 3)
    names: ClassVar[tuple[str, ...]] = (
        *(f"position.{axis}" for axis in "xyz"),
        *(f"orientation.{part}" for part in "wxyz"),
    )
    measures: ClassVar[tuple[Quantity, ...]] = (LENGTH,) * 3 + (NUMBER,) * 4
    velocity_names: ClassVar[tuple[str, ...]] = (
        *(f"velocity.{axis}" for axis in "xyz"),
        *(f"angular_velocity.{axis}" for axis in "xyz"),
    )
    quantities: ClassVar[tuple[Quantity, ...]] = (LENGTH,) * 3 + (ANGLE,) * 3
    origin: ClassVar[tuple[float, ...]] = (0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0)
    quaternions: ClassVar[tuple[tuple[int, ...], ...]] = ((3, 4, 5, 6),)

    def rate(self, q: Float[Array, " nq"], v: Float[Array, " nv"]) -> Float[Array, " nq"]:
        (_, turn), (velocity, w) = lax.split(q, (3, 4)), lax.split(v, (3, 3))
        angular = jnp.pad(w, (1, 0))
        return jnp.concatenate([velocity, 0.5 * quaternion_product(turn, angular)])

    def velocity(self, q: Float[Array, " nq"], rate: Float[Array, " nq"]) -> Float[Array, " nv"]:
        conjugate = q[3:] * np.array([1.0, -1.0, -1.0, -1.0])
        return jnp.concatenate([rate[:3], 2 * quaternion_product(conjugate, rate[3:])[1:]])

    def retract(self, q: Float[Array, " nq"], step: Float[Array, " nv"]) -> Float[Array, " nq"]:
        quaternion = quaternion_product(q[3:], quaternion_exponential(step[3:]))
        quaternion = quaternion / jnp.linalg.norm(quaternion)
        return jnp.concatenate([q[:3] + step[:3], quaternion])

    def difference(self, q: Float[Array, " nq"], end: Float[Array, " nq"]) -> Float[Array, " nv"]:
        relative = quaternion_product(q[3:] * np.array([1.0, -1.0, -1.0, -1.0]), end[3:])
        return jnp.concatenate([end[:3] - q[:3], quaternion_logarithm(relative)])

    def world_axes(self, q: Float[Array, " nq"]) -> Float[Array, "nv nv"]:
        return _beside(jnp.eye(3, dtype=q.dtype), rotation_from_quaternion(q[3:]))

    def turning(self, rate: Float[Array, "3"]) -> Float[Array, "nv nv"]:
        return _beside(cross_matrix(rate), cross_matrix(rate))

    def steady(
        self, q: Float[Array, " nq"], v: Float[Array, " nv"], rate: Float[Array, "3"], t: Scalar
    ) -> Float[Array, " nq"]:
        # In axes that turn the body goes on turning about one of its own axes.
        own = rotation_from_quaternion(q[3:]).T @ rate
        turned = quaternion_product(quaternion_exponential(t * rate), q[3:])
        spun = quaternion_product(turned, quaternion_exponential(t * (v[3:] - own)))
        return jnp.concatenate(
            [q[:3] + displacement_after(cross_matrix(rate), rate, v[:3], t), spun]
        )


class ProductCoordinates(AbstractCoordinates):
    """Concatenated coordinates of `parts`, in order: a pose and the modes of its body. All else
    follows from the parts."""

    parts: tuple[AbstractCoordinates, ...] = eqx.field(static=True)

    @property
    def frame(self) -> tuple[int, int]:
        return self.parts[0].frame

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(name for part in self.parts for name in part.names)

    @property
    def measures(self) -> tuple[Quantity, ...]:
        return tuple(measure for part in self.parts for measure in part.measures)

    @property
    def velocity_names(self) -> tuple[str, ...]:
        return tuple(name for part in self.parts for name in part.velocity_names)

    @property
    def quantities(self) -> tuple[Quantity, ...]:
        return tuple(quantity for part in self.parts for quantity in part.quantities)

    @property
    def origin(self) -> tuple[float, ...]:
        return tuple(number for part in self.parts for number in part.origin)

    @property
    def quaternions(self) -> tuple[tuple[int, ...], ...]:
        starts = np.cumsum([0, *(part.nq for part in self.parts)]).tolist()
        return tuple(
            tuple(start + place for place in places)
            for start, part in zip(starts, self.parts, strict=False)
            for places in part.quaternions
        )

    def rate(self, q: Float[Array, " nq"], v: Float[Array, " nv"]) -> Float[Array, " nq"]:
        return self._each(lambda part, x, u: part.rate(x, u), self._of_q(q), self._of_v(v))

    def velocity(self, q: Float[Array, " nq"], rate: Float[Array, " nq"]) -> Float[Array, " nv"]:
        return self._each(lambda part, x, u: part.velocity(x, u), self._of_q(q), self._of_q(rate))

    def retract(self, q: Float[Array, " nq"], step: Float[Array, " nv"]) -> Float[Array, " nq"]:
        return self._each(lambda part, x, d: part.retract(x, d), self._of_q(q), self._of_v(step))

    def difference(self, q: Float[Array, " nq"], end: Float[Array, " nq"]) -> Float[Array, " nv"]:
        return self._each(lambda part, x, y: part.difference(x, y), self._of_q(q), self._of_q(end))

    def world_axes(self, q: Float[Array, " nq"]) -> Float[Array, "nv nv"]:
        pairs = zip(self.parts, self._of_q(q), strict=True)
        return block_diag(*(part.world_axes(x) for part, x in pairs))

    def turning(self, rate: Float[Array, "3"]) -> Float[Array, "nv nv"]:
        return block_diag(*(part.turning(rate) for part in self.parts))

    def steady(
        self, q: Float[Array, " nq"], v: Float[Array, " nv"], rate: Float[Array, "3"], t: Scalar
    ) -> Float[Array, " nq"]:
        return self._each(
            lambda part, x, u: part.steady(x, u, rate, t), self._of_q(q), self._of_v(v)
        )

    def _of_q(self, q: Float[Array, " nq"]) -> list[Float[Array, " _"]]:
        return jnp.split(q, np.cumsum([part.nq for part in self.parts])[:-1])

    def _of_v(self, v: Float[Array, " nv"]) -> list[Float[Array, " _"]]:
        return jnp.split(v, np.cumsum([part.nv for part in self.parts])[:-1])

    def _each(
        self,
        function: Callable[..., Float[Array, " _"]],
        *arguments: list[Float[Array, " _"]],
    ) -> Float[Array, " _"]:
        """The results of the parts, concatenated."""
        return jnp.concatenate(
            [function(part, *own) for part, *own in zip(self.parts, *arguments, strict=True)]
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
