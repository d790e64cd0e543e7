"""Rigid bodies of the plane and of space, and particles."""

import functools
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float

from .. import _checks
from .._custom_types import Matrix3, Numbers, Quaternion, Scalar, Vector2, Vector3
from .._fields import Field, Moves, Naming, number, part_name, positive
from .._geometry import (
    AbstractCoordinates,
    composed,
    cross_matrix,
    crossed_axes,
    PlanarFrame,
    PlanarPoint,
    PlanarPose,
    relative,
    rotated,
    rotation_from_quaternion,
    SpatialFrame,
    SpatialPoint,
    SpatialPose,
)
from .._programs import Compiling, program
from .base import (
    AbstractBodyInertia,
    AbstractFramedBody,
    AbstractMarker,
    AbstractRigidInertia,
    ANGULAR_VELOCITY,
    differentiated,
    FRAME_POSITION,
    FRAME_VELOCITY,
    MarkerKinematics,
    MASS,
    ORIENTATION,
    orientation_of,
    PLANAR_POSITION,
    PLANAR_VELOCITY,
    SPATIAL_POSITION,
    SPATIAL_VELOCITY,
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


class SpatialMarker(AbstractMarker):
    """A frame at a constant offset from a rigid spatial body's centre of mass."""

    coordinates: ClassVar[AbstractCoordinates] = SpatialPose()
    offset: SpatialFrame

    def frame(self, q: Float[Array, " nq"]) -> SpatialFrame:
        return self.body_frame(q).compose(self.offset)

    def body_frame(self, q: Float[Array, " nq"]) -> SpatialFrame:
        place, turn = lax.split(q, (3, 4))
        return SpatialFrame(place, rotation_from_quaternion(turn))

    def kinematics(self, q: Float[Array, " nq"], v: Float[Array, " nv"]) -> MarkerKinematics:
        # R' = R (w x), and with w constant in the body frame R'' = R (w x)(w x) (Shabana 2020,
        # section 2.5). What R turns stands side by side for one product: the offset's origin and
        # axes, their cross products with w, twice with w, and with each of the body's axes.
        offset = jnp.concatenate([self.offset.origin[:, None], self.offset.rotation], axis=1)
        (place, turn), (velocity, w) = lax.split(q, (3, 4)), lax.split(v, (3, 3))
        spin = cross_matrix(w)
        once = composed(spin, offset)
        fixed = jnp.concatenate([offset, once, composed(spin, once), *crossed_axes(offset)], axis=1)
        turned = composed(rotation_from_quaternion(turn), fixed)
        parts = lax.split(turned, (1, 3) * 6, axis=1)
        origins, rotations = [x[:, 0] for x in parts[::2]], parts[1::2]
        linear, still = np.eye(3, dtype=q.dtype), jnp.zeros((3, 3, 3), q.dtype)
        return MarkerKinematics(
            SpatialFrame(place + origins[0], rotations[0]),
            SpatialFrame(velocity + origins[1], rotations[1]),
            SpatialFrame(origins[2], rotations[2]),
            jax.vmap(SpatialFrame)(
                jnp.concatenate([linear, jnp.stack(origins[3:])]),
                jnp.concatenate([still, jnp.stack(rotations[3:])]),
            ),
        )

    def turned(self, turn: Float[Array, " ..."]) -> "SpatialMarker":
        return SpatialMarker(self.offset.turned(turn))

    def lever_arm(self) -> Float[Array, ""]:
        return jnp.linalg.norm(self.offset.origin)


class SpatialInertia(AbstractRigidInertia):
    """Mass (kg) and inertia matrix about the centre of mass in body axes (kg m^2). `definite`: no
    principal moment can be zero."""

    coordinates: ClassVar[AbstractCoordinates] = SpatialPose()
    mass: Scalar
    inertia: Matrix3
    definite: bool = eqx.field(static=True, default=True)

    @property
    def semidefinite(self) -> bool:
        return not self.definite

    def mass_matrix(self, q: Float[Array, " nq"], t: Scalar) -> Float[Array, "nv nv"]:
        del q, t
        return _linear_and_angular(self.mass, self.inertia)

    def inverse_mass_matrix(self, q: Float[Array, " nq"], t: Scalar) -> Float[Array, "nv nv"]:
        del q, t
        return _linear_and_angular(1 / self.mass, _symmetric_inverse(self.inertia))

    def inertia_force(
        self, q: Float[Array, " nq"], v: Float[Array, " nv"], t: Scalar
    ) -> Float[Array, " nv"]:
        del q, t
        _, w = lax.split(v, (3, 3))
        moment = rotated(cross_matrix(w), rotated(self.inertia, w))
        return jnp.concatenate([jnp.zeros_like(w), -moment])

    def weight(self, q: Float[Array, " nq"], gravity: Float[Array, " dim"]) -> Float[Array, " nv"]:
        del q
        return jnp.concatenate([self.mass * gravity, jnp.zeros_like(gravity)])

    def potential(self, q: Float[Array, " nq"], gravity: Float[Array, " dim"]) -> Scalar:
        return -self.mass * (gravity @ q[:3])


class NoInertia(AbstractBodyInertia):
    """The inertia of a rigid body without mass."""

    coordinates: ClassVar[AbstractCoordinates] = SpatialPose()
    rheonomic: ClassVar[bool] = False
    massless: ClassVar[bool] = True
    semidefinite: ClassVar[bool] = True
    weighed: ClassVar[bool] = True

    def mass_matrix(self, q: Float[Array, " nq"], t: Scalar) -> Float[Array, "nv nv"]:
        del t
        return jnp.zeros((self.coordinates.nv,) * 2, q.dtype)

    def inverse_mass_matrix(self, q: Float[Array, " nq"], t: Scalar) -> Float[Array, "nv nv"]:
        del t
        return jnp.full((self.coordinates.nv,) * 2, jnp.inf, q.dtype)

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


def _inertia(definite: bool, value: Numbers, what: str) -> Matrix3:
    shape = _checks.shape_of(value)
    if shape not in ((3,), (3, 3)):
        raise ValueError(
            f"{what} must be three principal moments or a 3 x 3 matrix about the centre of mass in "
            f"body axes, got {_checks.shown(value)}."
        )
    inertia = _checks.real(value, shape, what)
    known = _checks.concrete(inertia)
    if known is None:
        return jnp.diag(inertia) if shape == (3,) else inertia
    known = np.diag(known) if shape == (3,) else known
    matrix = _checks.known_array(known)
    size = np.max(np.abs(known))
    if np.max(np.abs(known - known.T)) > 1e-9 * size:
        raise ValueError(
            f"inertia must be a symmetric matrix, got {_checks.shown(known.tolist())}; check the "
            "products of inertia."
        )
    moments = np.linalg.eigvalsh(known)
    listed = ", ".join(f"{moment:.6g}" for moment in moments)
    # Rounding leaves the zero moment of a matrix askew to its axes slightly negative.
    if moments[0] <= 0 if definite else moments[0] < -1e-12 * size:
        wanted = "be positive definite" if definite else "have no negative moment"
        raise ValueError(f"inertia must {wanted}; its principal moments are {listed}.")
    if definite:
        # The smallest one is what the inverse of the mass matrix is made of.
        _checks.positive(moments[0], "the smallest principal moment of inertia")
    # A thin plate or rod has equality, which rounding must not turn into a refusal.
    if moments[2] - moments[1] - moments[0] > 1e-9 * size:
        raise ValueError(
            "inertia breaks the triangle inequality (the largest principal moment may not "
            f"exceed the sum of the two others); its principal moments are {listed}."
        )
    return matrix


def _inertia_field(definite: bool) -> Field:
    may, matrix = (
        ("", "positive definite 3 x 3 matrix,")
        if definite
        else ("; moments may be zero", "3 x 3 matrix without negative moments,")
    )
    return Field(
        "inertia",
        "kg m2",
        f"about the centre of mass, body axes{may}",
        list[float] | list[list[float]],
        f"3 principal moments, or a symmetric {matrix} within the triangle inequality",
        functools.partial(_inertia, definite),
        naming=Naming(symmetric=True),
    )


_INERTIA, _INERTIA_OR_ZERO = _inertia_field(True), _inertia_field(False)


@program(compiling=Compiling.ONCE, of_arrays=True)
def _coordinates(position: Vector3, orientation: Quaternion) -> Float[Array, "7"]:
    return jnp.concatenate([position, orientation / jnp.linalg.norm(orientation)])


@program(compiling=Compiling.ONCE, of_arrays=True)
def _velocities(
    velocity: Vector3, orientation: Quaternion, angular_velocity: Vector3
) -> Float[Array, "6"]:
    """With the angular velocity in the axes of the body."""
    rotation = rotation_from_quaternion(orientation)
    return jnp.concatenate([velocity, rotation.T @ angular_velocity])


class AbstractSpatialBody(AbstractFramedBody):
    """A rigid body in space, by the position and orientation of its own frame."""

    position: eqx.AbstractVar[Vector3]
    orientation: eqx.AbstractVar[Quaternion]
    velocity: eqx.AbstractVar[Vector3]
    angular_velocity: eqx.AbstractVar[Vector3]

    def coordinates(self) -> Float[Array, " nq"]:
        return _coordinates(self.position, self.orientation)

    def reference(self) -> SpatialFrame:
        return SpatialFrame(self.position, rotation_from_quaternion(self.orientation))

    def velocities(self) -> Float[Array, " nv"]:
        return _velocities(self.velocity, self.orientation, self.angular_velocity)

    def marker(self, placement: SpatialFrame) -> SpatialMarker:
        return SpatialMarker(relative(placement, self.reference()))


class SpatialBody(AbstractSpatialBody):
    """A rigid body in space.

    **Arguments:**

    - `name`: unique among the bodies; "ground" is the fixed frame.
    - `mass`: kg, > 0. `inertia`: three principal moments or a 3 x 3 matrix about the centre of
      mass in body axes, kg m^2; positive definite, within the triangle inequality.
    - `position`: centre of mass in the world (m), reference configuration.
    - `orientation`: quaternion `[w, x, y, z]`, body to world, of any non-zero length; or
      `rotation`: orthogonal matrix whose columns are the body axes in the world.
    - `velocity` (m/s) and `angular_velocity` (rad/s): initial, both in WORLD axes.

    **Raises:** `ValueError` for a mass or inertia that no body can have, a rotation that is
    none, a wrong shape, or a number that is not finite.
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

    def inertia_properties(self) -> SpatialInertia:
        return SpatialInertia(self.mass, self.inertia)


class SlenderBody(AbstractSpatialBody):
    """A rigid body in space whose principal moments of inertia may be zero: a rod without
    thickness, a point of mass with an orientation.

    Joints must hold it where it has no inertia, or no acceleration follows from forces
    (`undetermined_accelerations` names what is open). Formulations that invert the mass matrix
    refuse a system that holds one.

    **Arguments:** as of `Body`, but that `inertia` need only be positive semidefinite.

    **Raises:** `ValueError` as `Body`, and for an inertia with a negative moment.
    """

    name: str = eqx.field(static=True, converter=part_name("a body"))
    mass: Scalar = eqx.field(converter=MASS)
    inertia: Matrix3 = eqx.field(converter=_INERTIA_OR_ZERO)
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
        self.inertia = _INERTIA_OR_ZERO(inertia)
        self.position = SPATIAL_POSITION(position)
        self.orientation = orientation_of(orientation, rotation)
        self.velocity = SPATIAL_VELOCITY(velocity)
        self.angular_velocity = ANGULAR_VELOCITY(angular_velocity)

    def inertia_properties(self) -> SpatialInertia:
        return SpatialInertia(self.mass, self.inertia, definite=False)


class MasslessBody(AbstractSpatialBody):
    """A rigid body in space without mass: the piece between two joints whose own inertia is left
    out, such as the cross of a universal joint.

    Joints must constrain it so that it cannot move on its own, or forces determine no acceleration.
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


def _linear_and_angular(linear: Scalar, angular: Matrix3) -> Float[Array, "6 6"]:
    """The matrix of linear 1 and angular, in few operations."""
    identity = np.diag([1.0, 1.0, 1.0, 0.0, 0.0, 0.0]).astype(angular.dtype)
    return linear * identity + jnp.pad(angular, ((3, 0), (3, 0)))


def _symmetric_inverse(matrix: Matrix3) -> Matrix3:
    """The inverse by cofactors, taken from the matrix tiled twice in each direction."""
    tiled = jnp.tile(matrix, (2, 2))
    cofactors = tiled[1:4, 1:4] * tiled[2:5, 2:5] - tiled[1:4, 2:5] * tiled[2:5, 1:4]
    first, beside = matrix[0], cofactors[0]
    return cofactors / (first[0] * beside[0] + first[1] * beside[1] + first[2] * beside[2])


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
