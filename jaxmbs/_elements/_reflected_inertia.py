"""Inertia of parts that rotate or slide with a joint and have no body of their own: a motor's rotor
behind a gear, the screw of a slide. MuJoCo calls it armature.
"""

import abc
from collections.abc import Sequence
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from .. import _checks
from .._bodies import (
    AbstractBody,
    AbstractElement,
    AbstractInertia,
    MarkerKinematics,
    SpatialMarker,
)
from .._constraints import AbstractCoordinate
from .._constraints._fields import (
    along,
    SPATIAL_AXIS,
    spatial_frames,
    SPATIAL_PAIR,
    triad,
    TWO_BODIES,
    world_axes,
)
from .._constraints._primitives import SpatialRotation, SpatialTranslation
from .._custom_types import Numbers, Scalar, Vector3
from .._fields import part_name, positive
from .._geometry import AbstractCoordinates, ProductCoordinates, rotated, SpatialFrame, SpatialPose


# --------------------------------------------------------------------------------------------------
# Relative velocities of two spatial marker frames, in which reflected inertias are quadratic.
# --------------------------------------------------------------------------------------------------


class AbstractJointRate(eqx.Module):
    """Relative velocity of two frames, linear in their rates of change."""

    @abc.abstractmethod
    def __call__(
        self, frames: tuple[SpatialFrame, ...], rates: tuple[SpatialFrame, ...]
    ) -> Float[Array, " n"]:
        """The relative velocity (m/s or rad/s) of the second frame against the first, when their
        numbers change at `rates`."""


class CoordinateRate(AbstractJointRate):
    """The rate of a joint's coordinate."""

    coordinate: AbstractCoordinate

    def __call__(
        self, frames: tuple[SpatialFrame, ...], rates: tuple[SpatialFrame, ...]
    ) -> Float[Array, " n"]:
        zero = jnp.zeros((), frames[0].dtype)
        return jax.jvp(lambda f: self.coordinate.excess(f, zero)[None], (frames,), (rates,))[1]


class RelativeSpin(AbstractJointRate):
    """The angular velocity of the second frame against the first, along the second one's axes."""

    def __call__(
        self, frames: tuple[SpatialFrame, ...], rates: tuple[SpatialFrame, ...]
    ) -> Float[Array, " n"]:
        first, second = (f.twist(rate).angular for f, rate in zip(frames, rates, strict=True))
        return rotated(frames[1].rotation.T, second - first)


_NAME = part_name("an element")
_ABOUT = positive("inertia", "kg m2", "about the joint's axis")
_EVERY = positive("inertia", "kg m2", "about every axis")
_ALONG = positive("mass", "kg", "along the joint's axis")
_GROUND = "ground"


class RelativeInertia(AbstractInertia):
    """Kinetic energy 1/2 amount |s|^2 of a relative velocity s = J(q) v between two markers, one of
    which may be on the ground.

    M = amount J^T J, and -amount J^T Jdot v is the further term of Lagrange's equations: s is the
    rate of a coordinate, or an angular velocity along the axes of a body, whose energy does not
    depend on their orientation.
    """

    massless: ClassVar[bool] = False
    rheonomic: ClassVar[bool] = False
    weighed: ClassVar[bool] = True
    amount: Scalar
    rate: AbstractJointRate
    markers: tuple[SpatialMarker, SpatialMarker]
    moving: tuple[bool, bool] = eqx.field(static=True)

    @property
    def coordinates(self) -> AbstractCoordinates:
        """Coordinates of the moving ones of the two bodies, concatenated."""
        return ProductCoordinates((SpatialPose(),) * sum(self.moving))

    def mass_matrix(self, q: Float[Array, " nq"], t: Scalar) -> Float[Array, "nv nv"]:
        del t
        matrix = self._matrix(self._kinematics(q, None))
        return self.amount * matrix.T @ matrix

    def inertia_force(
        self, q: Float[Array, " nq"], v: Float[Array, " nv"], t: Scalar
    ) -> Float[Array, " nv"]:
        del t
        motions = self._kinematics(q, v)
        frames, rates, accelerations = (tuple(motion[k] for motion in motions) for k in range(3))
        _, change = jax.jvp(self.rate, (frames, rates), (rates, accelerations))
        return -self.amount * self._matrix(motions).T @ change

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

    def _kinematics(
        self, q: Float[Array, " nq"], v: Float[Array, " nv"] | None
    ) -> tuple[MarkerKinematics, ...]:
        """The kinematics of both markers."""
        kind = SpatialPose()
        poses = list(q.reshape(-1, kind.nq))
        speeds = [jnp.zeros(kind.nv, q.dtype)] * 2 if v is None else list(v.reshape(-1, kind.nv))
        still = (jnp.asarray(kind.origin, q.dtype), jnp.zeros(kind.nv, q.dtype))
        states = [(poses.pop(0), speeds.pop(0)) if moves else still for moves in self.moving]
        return tuple(
            marker.kinematics(*state) for marker, state in zip(self.markers, states, strict=True)
        )

    def _matrix(self, motions: tuple[MarkerKinematics, ...]) -> Float[Array, "n nv"]:
        """J."""
        frames = tuple(motion.frame for motion in motions)
        still = jax.tree.map(jnp.zeros_like, frames)

        def column(k: int, direction: SpatialFrame) -> Float[Array, " n"]:
            return self.rate(frames, (*still[:k], direction, *still[k + 1 :]))

        blocks = [
            jax.vmap(lambda direction, k=k: column(k, direction), out_axes=1)(motion.directions)
            for k, motion in enumerate(motions)
            if self.moving[k]
        ]
        return jnp.concatenate(blocks, axis=1)


class AbstractReflectedInertia(AbstractElement):
    """Inertia between two bodies, one of which may be the ground."""

    @property
    def nodes(self) -> tuple[str, ...]:
        return tuple(name for name in self.bodies if name != _GROUND)

    def relative_inertia(
        self,
        amount: Scalar,
        rate: AbstractJointRate,
        placements: tuple[SpatialFrame, ...],
        nodes: Sequence[AbstractBody],
    ) -> RelativeInertia:
        """The inertia with markers at these frames in the world, reference configuration.

        **Raises:** `ValueError` for a body that is not rigid.
        """
        sites = {node.name: node.sites().get(node.name) for node in nodes}
        found = []
        for name, placement in zip(self.bodies, placements, strict=True):
            site = sites.get(name)
            marker = SpatialMarker(placement) if site is None else site.marker(placement)
            if name != _GROUND and not isinstance(marker, SpatialMarker):
                raise ValueError(
                    f"element {_checks.shown(self.name)}: body {_checks.shown(name)} is no rigid "
                    "body in space, between which a reflected inertia acts."
                )
            found.append(marker)
        moving = (self.bodies[0] != _GROUND, self.bodies[1] != _GROUND)
        return RelativeInertia(  # pyright: ignore[reportCallIssue]
            amount=amount, rate=rate, markers=(found[0], found[1]), moving=moving
        )


class ReflectedInertia(AbstractReflectedInertia):
    """The inertia of a motor's rotor behind its gear (armature), in a joint that turns about one
    axis: kinetic energy 1/2 inertia rate^2, with the rate of the angle of the second body against
    the first.

    Rotor and gear turn much faster than the bodies, so that the inertia is that of the rotor times
    the square of the ratio, and its gyroscopic effect, which has the ratio once, is left out.

    **Arguments:** `bodies`: two names; `axis`: world direction, reference configuration, that of
    the revolute or cylindrical joint between them; `inertia`: kg m^2, > 0.
    """

    kind: ClassVar[str] = "reflected_inertia"
    name: str = eqx.field(static=True, converter=_NAME)
    bodies: tuple[str, ...] = eqx.field(static=True, converter=TWO_BODIES)
    axis: Vector3 = eqx.field(converter=SPATIAL_AXIS)
    inertia: Scalar = eqx.field(converter=_ABOUT)

    def __init__(self, name: str, bodies: Sequence[str], *, axis: Numbers, inertia: Numbers):
        self.name = name
        self.bodies = TWO_BODIES(bodies)
        self.axis = SPATIAL_AXIS(axis)
        self.inertia = _ABOUT(inertia)

    def inertia_properties(self, nodes: Sequence[AbstractBody]) -> RelativeInertia:
        frames = spatial_frames(jnp.zeros((2, 3)), triad(self.axis))
        return self.relative_inertia(self.inertia, CoordinateRate(SpatialRotation()), frames, nodes)


class ReflectedMass(AbstractReflectedInertia):
    """The mass that a drive adds to a joint that slides: kinetic energy 1/2 mass rate^2, with the
    rate of the translation of the second body against the first.

    **Arguments:** `bodies`: two names; `at`: world point (m), or two, one on each body; `axis`:
    world direction; both those of the translational joint, reference configuration; `mass`: kg,
    > 0.
    """

    kind: ClassVar[str] = "reflected_mass"
    name: str = eqx.field(static=True, converter=_NAME)
    bodies: tuple[str, ...] = eqx.field(static=True, converter=TWO_BODIES)
    at: Float[Array, "2 3"] = eqx.field(converter=SPATIAL_PAIR)
    axis: Vector3 = eqx.field(converter=SPATIAL_AXIS)
    mass: Scalar = eqx.field(converter=_ALONG)

    def __init__(
        self, name: str, bodies: Sequence[str], *, at: Numbers, axis: Numbers, mass: Numbers
    ):
        self.name = name
        self.bodies = TWO_BODIES(bodies)
        self.at = SPATIAL_PAIR(at)
        self.axis = SPATIAL_AXIS(axis)
        self.mass = _ALONG(mass)

    def inertia_properties(self, nodes: Sequence[AbstractBody]) -> RelativeInertia:
        frames = spatial_frames(self.at, triad(self.axis))
        rate = CoordinateRate(SpatialTranslation(along(self.axis, self.at)))
        return self.relative_inertia(self.mass, rate, frames, nodes)


class BallInertia(AbstractReflectedInertia):
    """The inertia that drives add to a spherical joint, the same about every axis: kinetic energy
    1/2 inertia |w|^2 with w the angular velocity of the second body against the first.

    **Arguments:** `bodies`: two names; `inertia`: kg m^2, > 0.
    """

    kind: ClassVar[str] = "ball_inertia"
    name: str = eqx.field(static=True, converter=_NAME)
    bodies: tuple[str, ...] = eqx.field(static=True, converter=TWO_BODIES)
    inertia: Scalar = eqx.field(converter=_EVERY)

    def __init__(self, name: str, bodies: Sequence[str], *, inertia: Numbers):
        self.name = name
        self.bodies = TWO_BODIES(bodies)
        self.inertia = _EVERY(inertia)

    def inertia_properties(self, nodes: Sequence[AbstractBody]) -> RelativeInertia:
        frames = spatial_frames(jnp.zeros((2, 3)), world_axes())
        return self.relative_inertia(self.inertia, RelativeSpin(), frames, nodes)
