"""A kind of body that the package does not have: point masses that move in a floating frame."""

from collections.abc import Callable
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from jaxmbs._bodies import (
    AbstractBodyInertia,
    AbstractFramedBody,
    AbstractMarker,
    differentiated,
    lagrangian_inertia_force,
    MarkerKinematics,
)
from jaxmbs._custom_types import Scalar
from jaxmbs._geometry import (
    FlatCoordinates,
    ProductCoordinates,
    Quantity,
    rotation_from_quaternion,
    SpatialFrame,
    SpatialPose,
)


# The amplitude of a mode, a length like those of the body's place, but with a scale of its own.
AMPLITUDE = Quantity("length", "m", 1.0)


def shapes(point: Float[Array, "3"], count: int) -> Float[Array, "3 n"]:
    """Displacements of a point by modes: waves along x, none at x = 0."""
    waves = jnp.sin(3.5 * (1 + np.arange(count) // 3) * point[0])
    return jnp.asarray(np.eye(3))[:, np.arange(count) % 3] * waves[None]


def coordinates_of(count: int) -> ProductCoordinates:
    names = tuple(f"mode.{k + 1}" for k in range(count))
    return ProductCoordinates((SpatialPose(), FlatCoordinates(names, (AMPLITUDE,) * count)))


def place(q: Float[Array, " nq"], point: Float[Array, "3"]) -> Float[Array, "3"]:
    """Where a point of the body is in the world."""
    moved = point + shapes(point, q.shape[0] - 7) @ q[7:]
    return q[:3] + rotation_from_quaternion(q[3:7]) @ moved


class JellyMarker(AbstractMarker):
    """A frame at a point that moves with the modes; its axes turn with the floating frame."""

    offset: SpatialFrame
    coordinates: ProductCoordinates = eqx.field(static=True)

    def frame(self, q: Float[Array, " nq"]) -> SpatialFrame:
        rotation = rotation_from_quaternion(q[3:7]) @ self.offset.rotation
        return SpatialFrame(place(q, self.offset.origin), rotation)

    def body_frame(self, q: Float[Array, " nq"]) -> SpatialFrame:
        return SpatialFrame(q[:3], rotation_from_quaternion(q[3:7]))

    def kinematics(self, q: Float[Array, " nq"], v: Float[Array, " nv"]) -> MarkerKinematics:
        return differentiated(self, q, v)

    def turned(self, turn: Float[Array, " ..."]) -> "JellyMarker":
        return JellyMarker(offset=self.offset.turned(turn), coordinates=self.coordinates)

    def lever_arm(self) -> Float[Array, ""]:
        return jnp.linalg.norm(self.offset.origin)


class JellyInertia(AbstractBodyInertia):
    """Point masses at `points` of the floating frame; modes of stiffness k and damping d."""

    rheonomic: ClassVar[bool] = False
    massless: ClassVar[bool] = False
    weighed: ClassVar[bool] = True
    masses: Float[Array, " points"]
    points: Float[Array, "points 3"]
    stiffness: Scalar
    damping: Scalar
    coordinates: ProductCoordinates = eqx.field(static=True)

    def _along(self, q: Float[Array, " nq"]) -> Callable[[Float[Array, "3"]], Float[Array, "3 nv"]]:
        """How each velocity moves a point."""

        def directions(point: Float[Array, "3"]) -> Float[Array, "3 nv"]:
            def push(v: Float[Array, " nv"]) -> Float[Array, "3"]:
                rate = self.coordinates.rate(q, v)
                return jax.jvp(lambda x: place(x, point), (q,), (rate,))[1]

            return jax.vmap(push, out_axes=1)(jnp.eye(self.coordinates.nv))

        return directions

    def mass_matrix(self, q: Float[Array, " nq"], t: Scalar) -> Float[Array, "nv nv"]:
        del t
        moves = jax.vmap(self._along(q))(self.points)
        return jnp.einsum("p,pij,pik->jk", self.masses, moves, moves)

    def inverse_mass_matrix(self, q: Float[Array, " nq"], t: Scalar) -> Float[Array, "nv nv"]:
        return jnp.linalg.inv(self.mass_matrix(q, t))

    def inertia_force(
        self, q: Float[Array, " nq"], v: Float[Array, " nv"], t: Scalar
    ) -> Float[Array, " nv"]:
        return lagrangian_inertia_force(self, q, v, t)

    def internal_force(
        self, q: Float[Array, " nq"], v: Float[Array, " nv"], t: Scalar
    ) -> Float[Array, " nv"]:
        del t
        modal = -self.stiffness * q[7:] - self.damping * v[6:]
        return jnp.concatenate([jnp.zeros_like(v[:6]), modal])

    def stored_energy(self, q: Float[Array, " nq"]) -> Scalar:
        return 0.5 * self.stiffness * jnp.sum(q[7:] ** 2)

    def weight(self, q: Float[Array, " nq"], gravity: Float[Array, " dim"]) -> Float[Array, " nv"]:
        moves = jax.vmap(self._along(q))(self.points)
        return jnp.einsum("p,pij,i->j", self.masses, moves, gravity)

    def potential(self, q: Float[Array, " nq"], gravity: Float[Array, " dim"]) -> Scalar:
        places = jax.vmap(lambda point: place(q, point))(self.points)
        return -self.masses @ (places @ gravity)


class Jelly(AbstractFramedBody):
    """The body as a user writes it."""

    name: str = eqx.field(static=True)
    inertia: JellyInertia
    position: Float[Array, "3"]
    velocity: Float[Array, " nv"]

    def __init__(
        self, name, masses, points, *, modes, position, stiffness=1.0, damping=0.0, velocity=None
    ):
        kind = coordinates_of(modes)
        self.name = name
        self.inertia = JellyInertia(
            masses=jnp.asarray(masses),
            points=jnp.asarray(points),
            stiffness=jnp.asarray(stiffness),
            damping=jnp.asarray(damping),
            coordinates=kind,
        )
        self.position = jnp.asarray(position)
        self.velocity = jnp.zeros(kind.nv) if velocity is None else jnp.asarray(velocity)

    def inertia_properties(self) -> JellyInertia:
        return self.inertia

    def coordinates(self) -> Float[Array, " nq"]:
        rest = jnp.zeros(self.inertia.coordinates.nq - 7)
        return jnp.concatenate([self.position, jnp.array([1.0, 0.0, 0.0, 0.0]), rest])

    def reference(self) -> SpatialFrame:
        return SpatialFrame(self.position, jnp.eye(3))

    def velocities(self) -> Float[Array, " nv"]:
        return self.velocity

    def marker(self, placement: SpatialFrame) -> JellyMarker:
        offset = placement.relative(self.reference())
        return JellyMarker(offset=offset, coordinates=self.inertia.coordinates)
