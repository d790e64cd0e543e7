"""Bodies: what carries mass, and the markers that joints and forces see of them."""

import abc
from typing import Any, ClassVar

import equinox as eqx
from jaxtyping import Array, Float

from .._custom_types import Scalar
from .._geometry import AbstractCoordinates, PlanarFrame, SpatialFrame


class AbstractMarker(eqx.Module):
    """A frame attached to a body, which knows how the body's coordinates move it."""

    coordinates: ClassVar[type[AbstractCoordinates]]

    @abc.abstractmethod
    def frame(self, q: Float[Array, " nq"]) -> PlanarFrame | SpatialFrame:
        """The marker's frame in the world, when the body's coordinates are q."""

    @abc.abstractmethod
    def turned(self, turn: Float[Array, " ..."]) -> "AbstractMarker":
        """The marker with its axes rotated by `turn` (an angle or a matrix) in themselves."""

    @abc.abstractmethod
    def lever_arm(self) -> Float[Array, ""]:
        """Distance (m) from the body's centre of mass in its reference shape."""


class AbstractInertia(eqx.Module):
    """The mechanical properties of one body, without name and place, so that they stack."""

    coordinates: ClassVar[type[AbstractCoordinates]]

    @abc.abstractmethod
    def mass_matrix(self, q: Float[Array, " nq"]) -> Float[Array, "nv nv"]:
        """Symmetric positive definite block of M(q)."""

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
