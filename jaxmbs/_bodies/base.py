"""Bodies: what carries mass, and the markers that joints and forces see of them."""

import abc
from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from .._custom_types import Scalar
from .._geometry import AbstractCoordinates, PlanarFrame, SpatialFrame


class MarkerKinematics(NamedTuple):
    """A marker's `frame` and its changes, which are frames too, of what its numbers change by:
    along v (`rate`, 1/s), of that with v held constant (`acceleration`, 1/s^2), and along each
    velocity of the body (`directions`, with a leading axis of nv)."""

    frame: Any
    rate: Any
    acceleration: Any
    directions: Any


class AbstractMarker(eqx.Module):
    """A frame attached to a body, which knows how the body's coordinates move it."""

    coordinates: ClassVar[type[AbstractCoordinates]]

    @abc.abstractmethod
    def frame(self, q: Float[Array, " nq"]) -> PlanarFrame | SpatialFrame:
        """The marker's frame in the world, when the body's coordinates are q."""

    @abc.abstractmethod
    def kinematics(self, q: Float[Array, " nq"], v: Float[Array, " nv"]) -> MarkerKinematics:
        """The frame and how the body's motion changes it: what `differentiated` says, in closed
        form where there is a short one, as each program holds several copies of it."""

    @abc.abstractmethod
    def turned(self, turn: Float[Array, " ..."]) -> "AbstractMarker":
        """The marker with its axes rotated by `turn` (an angle or a matrix) in themselves."""

    @abc.abstractmethod
    def lever_arm(self) -> Float[Array, ""]:
        """Distance (m) from the body's centre of mass in its reference shape."""


def differentiated(
    marker: AbstractMarker, q: Float[Array, " nq"], v: Float[Array, " nv"]
) -> MarkerKinematics:
    """The kinematics of any marker, by differentiating its frame along the motion."""
    coordinates = marker.coordinates

    def moving(q: Float[Array, " nq"]) -> tuple[Any, Any]:
        return jax.jvp(marker.frame, (q,), (coordinates.rate(q, v),))

    def along(direction: Float[Array, " nv"]) -> Any:
        return jax.jvp(marker.frame, (q,), (coordinates.rate(q, direction),))[1]

    (frame, rate), (_, acceleration) = jax.jvp(moving, (q,), (coordinates.rate(q, v),))
    directions = jax.vmap(along)(jnp.eye(coordinates.nv, dtype=q.dtype))
    return MarkerKinematics(frame, rate, acceleration, directions)


class AbstractInertia(eqx.Module):
    """The mechanical properties of one body, without name and place, so that they stack."""

    coordinates: ClassVar[type[AbstractCoordinates]]

    @abc.abstractmethod
    def mass_matrix(self, q: Float[Array, " nq"]) -> Float[Array, "nv nv"]:
        """Symmetric positive definite block of M(q)."""

    @abc.abstractmethod
    def inverse_mass_matrix(self, q: Float[Array, " nq"]) -> Float[Array, "nv nv"]:
        """The inverse of that block."""

    @abc.abstractmethod
    def inertia_force(self, q: Float[Array, " nq"], v: Float[Array, " nv"]) -> Float[Array, " nv"]:
        """Velocity-dependent inertia terms, on the side of F."""

    @abc.abstractmethod
    def weight(self, q: Float[Array, " nq"], gravity: Float[Array, " dim"]) -> Float[Array, " nv"]:
        """Generalized force of the uniform field `gravity` (m/s^2, world)."""

    @abc.abstractmethod
    def potential(self, q: Float[Array, " nq"], gravity: Float[Array, " dim"]) -> Scalar:
        """Potential energy (J) in that field, zero for a centre of mass at the world's origin."""


class AbstractBody(eqx.Module):
    """A named body in its reference configuration, as the user writes it."""

    name: eqx.AbstractVar[str]

    @abc.abstractmethod
    def inertia_properties(self) -> AbstractInertia:
        """What the system groups and evaluates."""

    @abc.abstractmethod
    def coordinates(self) -> Float[Array, " nq"]:
        """q of the reference configuration."""

    @abc.abstractmethod
    def reference(self) -> PlanarFrame | SpatialFrame:
        """The body's own frame (centre of mass, body axes) in the reference configuration."""

    @abc.abstractmethod
    def velocities(self) -> Float[Array, " nv"]:
        """v at the start."""

    @abc.abstractmethod
    def marker(self, placement: Any) -> AbstractMarker:
        """The marker that lies at `placement` in the world in the reference configuration."""
