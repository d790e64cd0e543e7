"""Bodies: inertias, and the markers to which joints and forces attach."""

import abc
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple, TypeAlias

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .. import _checks
from .._custom_types import Matrix3, Numbers, Quaternion, Scalar
from .._fields import AbstractDeclared, Field, Moves, Naming, point, positive, vector
from .._geometry import (
    AbstractCoordinates,
    CoordinateFrame,
    PlanarFrame,
    quaternion_from_rotation,
    SpatialFrame,
)


Frame: TypeAlias = PlanarFrame | SpatialFrame | CoordinateFrame


class MarkerKinematics(NamedTuple):
    """A marker's `frame` and its changes, which are frames too, of what its numbers change by:
    along v (`rate`, 1/s), of that with v held constant (`acceleration`, 1/s^2), and along each
    velocity of the body (`directions`, with a leading axis of nv)."""

    frame: Any
    rate: Any
    acceleration: Any
    directions: Any


class AbstractMarker(eqx.Module):
    """A frame attached to a body, as a function of the body's coordinates. `located`: it is
    somewhere, and not the coordinates themselves."""

    located: ClassVar[bool] = True

    coordinates: eqx.AbstractVar[AbstractCoordinates]

    @abc.abstractmethod
    def frame(self, q: Float[Array, " nq"]) -> Frame:
        """The marker's frame in the world, when the body's coordinates are q."""

    @abc.abstractmethod
    def body_frame(self, q: Float[Array, " nq"]) -> Frame:
        """The frame of the body itself: the point that its linear velocity is of (the centre of
        mass of a rigid one), and its axes."""

    @abc.abstractmethod
    def kinematics(self, q: Float[Array, " nq"], v: Float[Array, " nv"]) -> MarkerKinematics:
        """The frame and how the body's motion changes it: the result of `differentiated`, in closed
        form where there is a short one, as each program contains several copies of it."""

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
    """The mechanical properties of one body, or of what lies between several, without name and
    place, so that they stack. Coordinates and velocities of several bodies are concatenated."""

    coordinates: eqx.AbstractVar[AbstractCoordinates]

    @property
    @abc.abstractmethod
    def rheonomic(self) -> bool:
        """Does its mass depend on time?"""

    @property
    @abc.abstractmethod
    def massless(self) -> bool:
        """Is its part of M zero? That of a body is positive definite if not, unless it is
        `semidefinite`."""

    @property
    @abc.abstractmethod
    def weighed(self) -> bool:
        """Does it define how gravity acts on it?"""

    @abc.abstractmethod
    def mass_matrix(self, q: Float[Array, " nq"], t: Scalar) -> Float[Array, "nv nv"]:
        """Its part of M(q, t), symmetric."""

    @abc.abstractmethod
    def inertia_force(
        self, q: Float[Array, " nq"], v: Float[Array, " nv"], t: Scalar
    ) -> Float[Array, " nv"]:
        """Velocity-dependent inertia terms, on the side of F: the result of
        `lagrangian_inertia_force`, in closed form where there is a short one."""

    @abc.abstractmethod
    def internal_force(
        self, q: Float[Array, " nq"], v: Float[Array, " nv"], t: Scalar
    ) -> Float[Array, " nv"]:
        """Generalized force of the body on itself, on the side of F: elasticity and damping of its
        own. Of a rigid body none."""

    @abc.abstractmethod
    def stored_energy(self, q: Float[Array, " nq"]) -> Scalar:
        """Elastic energy (J) of the body."""

    @abc.abstractmethod
    def weight(self, q: Float[Array, " nq"], gravity: Float[Array, " dim"]) -> Float[Array, " nv"]:
        """Generalized force of the uniform field `gravity` (m/s^2, world)."""

    @abc.abstractmethod
    def potential(self, q: Float[Array, " nq"], gravity: Float[Array, " dim"]) -> Scalar:
        """Potential energy (J) in that field, zero for a centre of mass at the world's origin."""


class ModalElasticity(eqx.Module):
    """Data that show how far an elastic body is from the limits of its theory.

    - `mass_matrix` (nv, nv), of the undeformed body along its own axes: frame, then modes;
      `stiffness` (modes, modes). `centre` (3,) of mass (m), `second_moment` (3, 3) about it: the
      integral of p p^T dm (kg m^2), both along the body's axes.
    - `deflections` (modes, modes): eta^T deflections eta is the square of the bending deflection,
      relative to the body's length: the deflection of the end of a bar that is bent to an arc.
    - `stiffened`: do forces along the body act on its bending?
    """

    mass_matrix: Float[Array, "*n nv nv"]
    stiffness: Float[Array, "*n modes modes"]
    centre: Float[Array, "*n 3"]
    second_moment: Float[Array, "*n 3 3"]
    deflections: Float[Array, "*n modes modes"]
    stiffened: bool = eqx.field(static=True)


class AbstractBodyInertia(AbstractInertia):
    """The inertia of one body."""

    @property
    def deforms(self) -> bool:
        """Does it deform by modes? Then it has an `elasticity`."""
        return False

    def elasticity(self) -> ModalElasticity | None:
        """The elasticity of a body that deforms by modes; None for other bodies."""
        return None

    @property
    def semidefinite(self) -> bool:
        """Need its block of M only be positive semidefinite?"""
        return False

    @abc.abstractmethod
    def inverse_mass_matrix(self, q: Float[Array, " nq"], t: Scalar) -> Float[Array, "nv nv"]:
        """The inverse of its block of M; not used where an element adds mass to it, nor where it is
        only semidefinite."""


class AbstractRigidInertia(AbstractBodyInertia):
    """The inertia of a rigid body of constant mass."""

    massless: ClassVar[bool] = False
    rheonomic: ClassVar[bool] = False
    weighed: ClassVar[bool] = True

    def internal_force(
        self, q: Float[Array, " nq"], v: Float[Array, " nv"], t: Scalar
    ) -> Float[Array, " nv"]:
        del q, t
        return jnp.zeros_like(v)

    def stored_energy(self, q: Float[Array, " nq"]) -> Scalar:
        return jnp.zeros((), q.dtype)


def lagrangian_inertia_force(
    inertia: AbstractInertia, q: Float[Array, " nq"], v: Float[Array, " nv"], t: Scalar
) -> Float[Array, " nv"]:
    """The velocity-dependent inertia terms of any inertia, from its kinetic energy T = 1/2 v^T M v.

    In the coordinates d of `retract(q, d)` Lagrange's equations hold as they are. At d = 0 the rate
    of d is v, and stays so on the way that is left with v constant (`retract`), so that what
    remains of d(dT/dv)/dt - dT/dd is M dv/dt and the terms asked for. A mass that changes with t is
    taken to join, and to leave, at rest: their sum is d(M v)/dt.
    """
    kind = inertia.coordinates

    def energy(d: Float[Array, " nv"], rate: Float[Array, " nv"], s: Scalar) -> Scalar:
        there = kind.retract(q, d)
        _, speed = jax.jvp(lambda x: kind.difference(there, kind.retract(q, x)), (d,), (rate,))
        return 0.5 * speed @ inertia.mass_matrix(there, s) @ speed

    still = jnp.zeros_like(v)
    _, change = jax.jvp(
        lambda d, s: jax.grad(energy, argnums=1)(d, v, s), (still, t), (v, jnp.ones_like(t))
    )
    return jax.grad(energy)(still, v, t) - change


class Site(NamedTuple):
    """A frame of a body in the reference configuration, and what makes the marker on it that lies
    at a given frame then, both in the world."""

    reference: Frame
    marker: Callable[[Any], AbstractMarker]


class Part(NamedTuple):
    """A part of a body that has verdicts of its own: the indices of its resultant force and of its
    resultant torque among the body's velocities."""

    name: str
    force: tuple[int, ...]
    torque: tuple[int, ...]


class AbstractBody(AbstractDeclared):
    """A named body in its reference configuration, as the user writes it."""

    name: eqx.AbstractVar[str]

    @abc.abstractmethod
    def inertia_properties(self) -> AbstractBodyInertia:
        """The inertia that the system groups and evaluates."""

    @abc.abstractmethod
    def coordinates(self) -> Float[Array, " nq"]:
        """q of the reference configuration."""

    @abc.abstractmethod
    def velocities(self) -> Float[Array, " nv"]:
        """v at the start."""

    @abc.abstractmethod
    def sites(self) -> Mapping[str, Site]:
        """Points where joints and forces may act on it, by the names that they use."""

    def parts(self) -> tuple[Part, ...] | None:
        """The parts that replace the body in answers, where its coordinates are those of several
        parts: the names of the parts; coordinates then go by their own names alone. None: the body
        is one part."""
        return None


class AbstractFramedBody(AbstractBody):
    """A body with one frame of its own, at which it is held by its name."""

    @abc.abstractmethod
    def reference(self) -> PlanarFrame | SpatialFrame:
        """The body's own frame (centre of mass, body axes) in the reference configuration."""

    @abc.abstractmethod
    def marker(self, placement: Any) -> AbstractMarker:
        """The marker that lies at `placement` in the world in the reference configuration."""

    def sites(self) -> Mapping[str, Site]:
        return {self.name: Site(self.reference(), self.marker)}


class AbstractElement(AbstractDeclared):
    """A named element: mass and elasticity between several bodies."""

    name: eqx.AbstractVar[str]
    bodies: eqx.AbstractVar[tuple[str, ...]]

    @property
    @abc.abstractmethod
    def nodes(self) -> tuple[str, ...]:
        """Its moving bodies, whose coordinates it has."""

    @abc.abstractmethod
    def inertia_properties(self, nodes: Sequence[AbstractBody]) -> AbstractInertia:
        """The inertia that the system groups and evaluates, in the concatenated coordinates of the
        nodes (`ProductCoordinates`)."""


# --------------------------------------------------------------------------------------------------
# Declarations that bodies share.
# --------------------------------------------------------------------------------------------------


MASS = positive("mass", "kg", "of the body")
_IN_REFERENCE = "of the centre of mass in the world, reference configuration"
_AT_START = "of the centre of mass, initial, world axes"
PLANAR_POSITION = point("position", _IN_REFERENCE, 2)
SPATIAL_POSITION = point("position", _IN_REFERENCE, 3)
PLANAR_VELOCITY = vector("velocity", "m/s", _AT_START, 2)
SPATIAL_VELOCITY = vector("velocity", "m/s", _AT_START, 3)
# Of a body whose frame need not lie at its centre of mass.
FRAME_POSITION = vector(
    "position", "m", "of the frame's origin in the world, reference configuration", 3
)
FRAME_VELOCITY = vector("velocity", "m/s", "of the frame's origin, initial, world axes", 3)


def _quaternion(value: Numbers, what: str) -> Quaternion:
    quaternion = _checks.real(value, (4,), what)
    known = _checks.concrete(quaternion)
    if known is not None:
        _checks.nonzero(known, what, "give a quaternion [w, x, y, z], such as [1, 0, 0, 0]")
    return quaternion


def _rotation(value: Numbers, what: str) -> Matrix3:
    matrix = _checks.real(value, (3, 3), what)
    known = _checks.concrete(matrix)
    if known is not None:
        _check_rotation(known)
    return matrix


def _check_rotation(known: np.ndarray) -> None:
    defect = np.max(np.abs(known.T @ known - np.eye(3)))
    # In single precision rounding is the larger.
    if defect > max(1e-8, 10 * float(np.finfo(known.dtype).eps)):
        raise ValueError(
            "rotation is not orthogonal (its columns must be right-handed unit body axes in the "
            f"world; R^T R differs from 1 by {defect:.2g}, determinant "
            f"{np.linalg.det(known):.4g})."
        )
    if np.linalg.det(known) < 0:
        raise ValueError(
            "rotation is a reflection (its determinant is -1): its columns are left-handed; turn "
            "one of them round, or exchange two."
        )


_ROTATION = Field(
    "rotation",
    "1",
    "its columns are the body axes in the world, reference configuration",
    list[list[float]],
    "an orthogonal, right-handed 3 x 3 matrix",
    _rotation,
    moves=Moves.rotation,
    shape=(3, 3),
)
ORIENTATION = Field(
    "orientation",
    "1",
    "from body axes to the world's, reference configuration",
    list[float],
    "a quaternion [w, x, y, z], not zero",
    _quaternion,
    naming=Naming(("w", "x", "y", "z")),
    left_out="[1, 0, 0, 0]",
    moves=Moves.orientation,
    shape=(4,),
    others=(_ROTATION,),
    exclusive=True,
    split=lambda quaternion: {"orientation": quaternion},
)
ANGULAR_VELOCITY = vector("angular_velocity", "rad/s", "initial, world axes", 3)


def orientation_of(orientation: Numbers | None, rotation: Numbers | None) -> Quaternion:
    """The quaternion of what is given of the two."""
    if orientation is not None and rotation is not None:
        raise ValueError("give either orientation (a quaternion) or rotation (a matrix).")
    if rotation is not None:
        return quaternion_from_rotation(_ROTATION(rotation))
    return ORIENTATION([1.0, 0.0, 0.0, 0.0] if orientation is None else orientation)
