from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .. import _checks
from .._custom_types import Matrix3, Numbers, Quaternion, Scalar, Vector3
from .._fields import Field, Naming, part_name
from .._geometry import AbstractCoordinates, rotation_from_quaternion, SpatialFrame, SpatialPose
from ._fields import (
    ANGULAR_VELOCITY,
    MASS,
    ORIENTATION,
    orientation_of,
    SPATIAL_POSITION,
    SPATIAL_VELOCITY,
)
from ._spatial_body import SpatialInertia, SpatialMarker
from .base import AbstractFramedBody, AbstractRigidInertia


class SlenderInertia(AbstractRigidInertia):
    """Mass and inertia of a `SlenderBody`."""

    coordinates: ClassVar[AbstractCoordinates] = SpatialPose()
    semidefinite: ClassVar[bool] = True
    solid: SpatialInertia

    def mass_matrix(self, q: Float[Array, " nq"], t: Scalar) -> Float[Array, "nv nv"]:
        return self.solid.mass_matrix(q, t)

    def inverse_mass_matrix(self, q: Float[Array, " nq"], t: Scalar) -> Float[Array, "nv nv"]:
        raise NotImplementedError("a body whose moments may be zero has no inverse of its mass.")

    def inertia_force(
        self, q: Float[Array, " nq"], v: Float[Array, " nv"], t: Scalar
    ) -> Float[Array, " nv"]:
        return self.solid.inertia_force(q, v, t)

    def weight(self, q: Float[Array, " nq"], gravity: Float[Array, " dim"]) -> Float[Array, " nv"]:
        return self.solid.weight(q, gravity)

    def potential(self, q: Float[Array, " nq"], gravity: Float[Array, " dim"]) -> Scalar:
        return self.solid.potential(q, gravity)


def _inertia(value: Numbers, what: str) -> Matrix3:
    shape = _checks.shape_of(value)
    if shape not in ((3,), (3, 3)):
        raise ValueError(
            f"{what} must be three principal moments or a 3 x 3 matrix about the centre of mass in "
            f"body axes, got {_checks.shown(value)}."
        )
    inertia = _checks.real(value, shape, what)
    matrix = jnp.diag(inertia) if shape == (3,) else inertia
    known = _checks.concrete(matrix)
    if known is None:
        return matrix
    size = np.max(np.abs(known))
    moments = np.linalg.eigvalsh(known)
    said = ", ".join(f"{m:.6g}" for m in moments)
    if np.max(np.abs(known - known.T)) > 1e-9 * size:
        raise ValueError(
            f"inertia must be a symmetric matrix, got {_checks.shown(known.tolist())}; check the "
            "products of inertia."
        )
    if moments[0] < -1e-12 * size:
        raise ValueError(f"inertia must not be negative; its principal moments are {said}.")
    if moments[2] - moments[1] - moments[0] > 1e-9 * size:
        raise ValueError(
            "inertia breaks the triangle inequality (the largest principal moment may not "
            f"exceed the sum of the two others); its principal moments are {said}."
        )
    return matrix


_INERTIA = Field(
    "inertia",
    "kg m2",
    "about the centre of mass, body axes; moments may be zero",
    list[float] | list[list[float]],
    "3 principal moments, or a symmetric 3 x 3 matrix without negative moments, within the "
    "triangle inequality",
    _inertia,
    naming=Naming(symmetric=True),
)


class SlenderBody(AbstractFramedBody):
    """A rigid body in space of which principal moments of inertia may be zero: a rod without
    thickness, a point of mass with an orientation.

    Joints must hold it where it has no inertia, or no acceleration follows from forces
    (`undetermined_accelerations` names what is open). Formulations that invert the mass matrix
    refuse a system that holds one.

    **Arguments:** as of `Body`, but that `inertia` need only be positive semidefinite.

    **Raises:** `ValueError` as `Body`, and for an inertia with a negative moment.
    """

    name: str = eqx.field(static=True, converter=part_name("a body"))
    mass: Scalar = eqx.field(converter=MASS)
    inertia: Matrix3 = eqx.field(converter=_INERTIA)
    position: Vector3 = eqx.field(converter=SPATIAL_POSITION)
    orientation: Quaternion = eqx.field(converter=ORIENTATION)
    velocity: Vector3 = eqx.field(converter=SPATIAL_VELOCITY)
    angular_velocity: Vector3 = eqx.field(converter=ANGULAR_VELOCITY)

    def __init__(
        self,
        name: str,
        *,
        mass: Numbers,
        inertia: Numbers,
        position: Numbers,
        orientation: Numbers | None = None,
        rotation: Numbers | None = None,
        velocity: Numbers = (0.0, 0.0, 0.0),
        angular_velocity: Numbers = (0.0, 0.0, 0.0),
    ):
        self.name = name
        self.mass = MASS(mass)
        self.inertia = _INERTIA(inertia)
        self.position = SPATIAL_POSITION(position)
        self.orientation = orientation_of(orientation, rotation)
        self.velocity = SPATIAL_VELOCITY(velocity)
        self.angular_velocity = ANGULAR_VELOCITY(angular_velocity)

    def inertia_properties(self) -> SlenderInertia:
        return SlenderInertia(SpatialInertia(self.mass, self.inertia))

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
