from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .. import _checks
from .._custom_types import Matrix3, Scalar
from .._fields import part_name
from .._geometry import (
    AbstractCoordinates,
    PlanarFrame,
    PlanarPoint,
    SpatialFrame,
    SpatialPoint,
)
from ._fields import MASS, PLANAR_POSITION, PLANAR_VELOCITY, SPATIAL_POSITION, SPATIAL_VELOCITY
from .base import (
    AbstractFramedBody,
    AbstractMarker,
    AbstractRigidInertia,
    differentiated,
    MarkerKinematics,
)


class PlanarPointMarker(AbstractMarker):
    """The frame of a planar particle: at the particle, with axes that never turn."""

    coordinates: ClassVar[AbstractCoordinates] = PlanarPoint()
    angle: Scalar

    def frame(self, q: Float[Array, " nq"]) -> PlanarFrame:
        return PlanarFrame(q, self.angle)

    def body_frame(self, q: Float[Array, " nq"]) -> PlanarFrame:
        return PlanarFrame(q, jnp.zeros_like(self.angle))

    def kinematics(self, q: Float[Array, " nq"], v: Float[Array, " nv"]) -> MarkerKinematics:
        return differentiated(self, q, v)

    def turned(self, turn: Float[Array, " ..."]) -> "PlanarPointMarker":
        return PlanarPointMarker(self.angle + turn)

    def lever_arm(self) -> Float[Array, ""]:
        return jnp.zeros_like(self.angle)


class SpatialPointMarker(AbstractMarker):
    """The frame of a spatial particle: at the particle, with axes that never turn."""

    coordinates: ClassVar[AbstractCoordinates] = SpatialPoint()
    rotation: Matrix3

    def frame(self, q: Float[Array, " nq"]) -> SpatialFrame:
        return SpatialFrame(q, self.rotation)

    def body_frame(self, q: Float[Array, " nq"]) -> SpatialFrame:
        return SpatialFrame(q, jnp.eye(3, dtype=q.dtype))

    def kinematics(self, q: Float[Array, " nq"], v: Float[Array, " nv"]) -> MarkerKinematics:
        return differentiated(self, q, v)

    def turned(self, turn: Float[Array, " ..."]) -> "SpatialPointMarker":
        return SpatialPointMarker(self.rotation @ turn)

    def lever_arm(self) -> Float[Array, ""]:
        return jnp.zeros_like(self.rotation[0, 0])


class AbstractPointInertia(AbstractRigidInertia):
    """A mass without extent, in the plane or in space."""

    mass: eqx.AbstractVar[Scalar]

    def mass_matrix(self, q: Float[Array, " nq"], t: Scalar) -> Float[Array, "nv nv"]:
        del t
        return self.mass * jnp.eye(q.shape[0], dtype=q.dtype)

    def inverse_mass_matrix(self, q: Float[Array, " nq"], t: Scalar) -> Float[Array, "nv nv"]:
        del t
        return jnp.eye(q.shape[0], dtype=q.dtype) / self.mass

    def inertia_force(
        self, q: Float[Array, " nq"], v: Float[Array, " nv"], t: Scalar
    ) -> Float[Array, " nv"]:
        del q, t
        return jnp.zeros_like(v)

    def weight(self, q: Float[Array, " nq"], gravity: Float[Array, " dim"]) -> Float[Array, " nv"]:
        del q
        return self.mass * gravity

    def potential(self, q: Float[Array, " nq"], gravity: Float[Array, " dim"]) -> Scalar:
        return -self.mass * (gravity @ q)


class PlanarPointInertia(AbstractPointInertia):
    """Mass (kg) of a planar particle."""

    coordinates: ClassVar[AbstractCoordinates] = PlanarPoint()
    mass: Scalar


class SpatialPointInertia(AbstractPointInertia):
    """Mass (kg) of a spatial particle."""

    coordinates: ClassVar[AbstractCoordinates] = SpatialPoint()
    mass: Scalar


class PlanarParticle(AbstractFramedBody):
    """A point mass in the plane: `mass` (kg), `position` (m), `velocity` (m/s), world axes.

    Joints hold a particle at its own position; it has no axes that turn.
    """

    name: str = eqx.field(static=True, converter=part_name("a particle"))
    mass: Scalar = eqx.field(kw_only=True, converter=MASS)
    position: Float[Array, "2"] = eqx.field(kw_only=True, converter=PLANAR_POSITION)
    velocity: Float[Array, "2"] = eqx.field(
        default=(0.0, 0.0), kw_only=True, converter=PLANAR_VELOCITY
    )

    def inertia_properties(self) -> PlanarPointInertia:
        return PlanarPointInertia(self.mass)

    def coordinates(self) -> Float[Array, " nq"]:
        return self.position

    def reference(self) -> PlanarFrame:
        return PlanarFrame(self.position, _checks.known_array(np.zeros(())))

    def velocities(self) -> Float[Array, " nv"]:
        return self.velocity

    def marker(self, placement: PlanarFrame) -> PlanarPointMarker:
        return PlanarPointMarker(placement.angle)


class SpatialParticle(AbstractFramedBody):
    """A point mass in space: `mass` (kg), `position` (m), `velocity` (m/s), world axes.

    Joints hold a particle at its own position; it has no axes that turn.
    """

    name: str = eqx.field(static=True, converter=part_name("a particle"))
    mass: Scalar = eqx.field(kw_only=True, converter=MASS)
    position: Float[Array, "3"] = eqx.field(kw_only=True, converter=SPATIAL_POSITION)
    velocity: Float[Array, "3"] = eqx.field(
        default=(0.0, 0.0, 0.0), kw_only=True, converter=SPATIAL_VELOCITY
    )

    def inertia_properties(self) -> SpatialPointInertia:
        return SpatialPointInertia(self.mass)

    def coordinates(self) -> Float[Array, " nq"]:
        return self.position

    def reference(self) -> SpatialFrame:
        return SpatialFrame(self.position, _checks.known_array(np.eye(3)))

    def velocities(self) -> Float[Array, " nv"]:
        return self.velocity

    def marker(self, placement: SpatialFrame) -> SpatialPointMarker:
        return SpatialPointMarker(placement.rotation)
