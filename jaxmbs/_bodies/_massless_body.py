from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from .._custom_types import Numbers, Quaternion, Scalar, Vector3
from .._fields import part_name
from .._geometry import AbstractCoordinates, rotation_from_quaternion, SpatialFrame, SpatialPose
from ._fields import (
    ANGULAR_VELOCITY,
    FRAME_POSITION,
    FRAME_VELOCITY,
    ORIENTATION,
    orientation_of,
)
from ._spatial_body import SpatialMarker
from .base import AbstractBodyInertia, AbstractFramedBody


class NoInertia(AbstractBodyInertia):
    """Of a rigid body without mass."""

    coordinates: ClassVar[AbstractCoordinates] = SpatialPose()
    rheonomic: ClassVar[bool] = False
    massless: ClassVar[bool] = True
    semidefinite: ClassVar[bool] = True
    weighed: ClassVar[bool] = True

    def mass_matrix(self, q: Float[Array, " nq"], t: Scalar) -> Float[Array, "nv nv"]:
        del t
        return jnp.zeros((self.coordinates.nv,) * 2, q.dtype)

    def inverse_mass_matrix(self, q: Float[Array, " nq"], t: Scalar) -> Float[Array, "nv nv"]:
        raise NotImplementedError("a body without mass has no inverse of it.")

    def inertia_force(
        self, q: Float[Array, " nq"], v: Float[Array, " nv"], t: Scalar
    ) -> Float[Array, " nv"]:
        del q, t
        return jnp.zeros_like(v)

    def internal_force(
        self, q: Float[Array, " nq"], v: Float[Array, " nv"], t: Scalar
    ) -> Float[Array, " nv"]:
        del q, t
        return jnp.zeros_like(v)

    def stored_energy(self, q: Float[Array, " nq"]) -> Scalar:
        return jnp.zeros((), q.dtype)

    def weight(self, q: Float[Array, " nq"], gravity: Float[Array, " dim"]) -> Float[Array, " nv"]:
        del gravity
        return jnp.zeros((self.coordinates.nv,), q.dtype)

    def potential(self, q: Float[Array, " nq"], gravity: Float[Array, " dim"]) -> Scalar:
        del gravity
        return jnp.zeros((), q.dtype)


class MasslessBody(AbstractFramedBody):
    """A rigid body in space without mass: the piece between two joints whose own inertia is left
    out, such as the cross of a universal joint.

    Joints must hold it so that it cannot move by itself, or no acceleration follows from forces.
    Formulations that invert the mass matrix refuse a system that holds one.

    **Arguments:** `name`; `position`: of its frame's origin in the world (m), reference
    configuration; `orientation` or `rotation`, as of a `Body`; `velocity` (m/s) of the origin and
    `angular_velocity` (rad/s), both initial and in world axes.
    """

    name: str = eqx.field(static=True, converter=part_name("a body"))
    position: Vector3 = eqx.field(converter=FRAME_POSITION)
    orientation: Quaternion = eqx.field(converter=ORIENTATION)
    velocity: Vector3 = eqx.field(converter=FRAME_VELOCITY)
    angular_velocity: Vector3 = eqx.field(converter=ANGULAR_VELOCITY)

    def __init__(
        self,
        name: str,
        *,
        position: Numbers,
        orientation: Numbers | None = None,
        rotation: Numbers | None = None,
        velocity: Numbers = (0.0, 0.0, 0.0),
        angular_velocity: Numbers = (0.0, 0.0, 0.0),
    ):
        self.name = name
        self.position = FRAME_POSITION(position)
        self.orientation = orientation_of(orientation, rotation)
        self.velocity = FRAME_VELOCITY(velocity)
        self.angular_velocity = ANGULAR_VELOCITY(angular_velocity)

    def inertia_properties(self) -> NoInertia:
        return NoInertia()

    def coordinates(self) -> Float[Array, " nq"]:
        unit = self.orientation / jnp.linalg.norm(self.orientation)
        return jnp.concatenate([self.position, unit])

    def reference(self) -> SpatialFrame:
        return SpatialFrame(self.position, rotation_from_quaternion(self.orientation))

    def velocities(self) -> Float[Array, " nv"]:
        rotation = rotation_from_quaternion(self.orientation)
        return jnp.concatenate([self.velocity, rotation.T @ self.angular_velocity])

    def marker(self, placement: SpatialFrame) -> SpatialMarker:
        return SpatialMarker(placement.relative(self.reference()))
