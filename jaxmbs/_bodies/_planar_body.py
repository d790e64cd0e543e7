from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

from .._custom_types import Scalar, Vector2
from .._fields import Moves, number, part_name, positive
from .._geometry import AbstractCoordinates, PlanarFrame, PlanarPose, relative
from .._programs import Compiling, program
from ._fields import MASS, PLANAR_POSITION, PLANAR_VELOCITY
from .base import (
    AbstractFramedBody,
    AbstractMarker,
    AbstractRigidInertia,
    differentiated,
    MarkerKinematics,
)


class PlanarMarker(AbstractMarker):
    """A frame at a constant offset from a rigid planar body's centre of mass."""

    coordinates: ClassVar[AbstractCoordinates] = PlanarPose()
    offset: PlanarFrame

    def frame(self, q: Float[Array, " nq"]) -> PlanarFrame:
        return self.body_frame(q).compose(self.offset)

    def body_frame(self, q: Float[Array, " nq"]) -> PlanarFrame:
        place, angle = lax.split(q, (2, 1))
        return PlanarFrame(place, angle[0])

    def kinematics(self, q: Float[Array, " nq"], v: Float[Array, " nv"]) -> MarkerKinematics:
        return differentiated(self, q, v)

    def turned(self, turn: Float[Array, " ..."]) -> "PlanarMarker":
        return PlanarMarker(self.offset.turned(turn))

    def lever_arm(self) -> Float[Array, ""]:
        return jnp.linalg.norm(self.offset.origin)


class PlanarInertia(AbstractRigidInertia):
    """Mass (kg) and moment of inertia about the centre of mass (kg m^2)."""

    coordinates: ClassVar[AbstractCoordinates] = PlanarPose()
    mass: Scalar
    inertia: Scalar

    def mass_matrix(self, q: Float[Array, " nq"], t: Scalar) -> Float[Array, "nv nv"]:
        del q, t
        return jnp.diag(self._diagonal())

    def inverse_mass_matrix(self, q: Float[Array, " nq"], t: Scalar) -> Float[Array, "nv nv"]:
        del q, t
        return jnp.diag(1 / self._diagonal())

    def _diagonal(self) -> Float[Array, " nv"]:
        return jnp.stack([self.mass, self.mass, self.inertia])

    def inertia_force(
        self, q: Float[Array, " nq"], v: Float[Array, " nv"], t: Scalar
    ) -> Float[Array, " nv"]:
        del q, t
        return jnp.zeros_like(v)

    def weight(self, q: Float[Array, " nq"], gravity: Float[Array, " dim"]) -> Float[Array, " nv"]:
        del q
        return jnp.concatenate([self.mass * gravity, jnp.zeros_like(gravity[:1])])

    def potential(self, q: Float[Array, " nq"], gravity: Float[Array, " dim"]) -> Scalar:
        return -self.mass * (gravity @ q[:2])


@program(compiling=Compiling.ONCE, of_arrays=True)
def _with_angle(vector: Vector2, angle: Scalar) -> Float[Array, "3"]:
    return jnp.append(vector, angle)


class PlanarBody(AbstractFramedBody):
    """A rigid body in the plane.

    **Arguments:**

    - `name`: unique among the bodies; "ground" is the fixed frame.
    - `mass`: kg, > 0. `inertia`: about the centre of mass, kg m^2, > 0.
    - `position`: centre of mass in the world (m) and `angle` (rad), reference configuration.
    - `velocity` (m/s, world) and `angular_velocity` (rad/s): initial.

    **Raises:** `ValueError` for a mass or inertia that is not positive, a wrong shape, or a
    number that is not finite.
    """

    name: str = eqx.field(static=True, converter=part_name("a body"))
    mass: Scalar = eqx.field(kw_only=True, converter=MASS)
    inertia: Scalar = eqx.field(
        kw_only=True, converter=positive("inertia", "kg m2", "about the centre of mass")
    )
    position: Vector2 = eqx.field(kw_only=True, converter=PLANAR_POSITION)
    angle: Scalar = eqx.field(
        default=0.0,
        kw_only=True,
        converter=number("angle", "rad", "in the reference configuration", Moves.angle),
    )
    velocity: Vector2 = eqx.field(default=(0.0, 0.0), kw_only=True, converter=PLANAR_VELOCITY)
    angular_velocity: Scalar = eqx.field(
        default=0.0, kw_only=True, converter=number("angular_velocity", "rad/s", "initial")
    )

    def inertia_properties(self) -> PlanarInertia:
        return PlanarInertia(self.mass, self.inertia)

    def coordinates(self) -> Float[Array, " nq"]:
        return _with_angle(self.position, self.angle)

    def reference(self) -> PlanarFrame:
        return PlanarFrame(self.position, self.angle)

    def velocities(self) -> Float[Array, " nv"]:
        return _with_angle(self.velocity, self.angular_velocity)

    def marker(self, placement: PlanarFrame) -> PlanarMarker:
        return PlanarMarker(relative(placement, self.reference()))
