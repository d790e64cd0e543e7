from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from .._custom_types import Matrix3, Scalar, Vector3
from .._geometry import (
    composed,
    cross_matrix,
    crossed_axes,
    ProductCoordinates,
    quaternion_exponential,
    rotation_from_quaternion,
    SpatialFrame,
)
from ._modal_inertia import modal_coordinates
from ._reduced_body import ReducedBody
from .base import AbstractMarker, MarkerKinematics


class ModalMarker(AbstractMarker):
    """A frame that is rigidly attached to a node of an elastic body.

    The node, at `point` of the undeformed body (m, body axes), is displaced by phi eta
    (`translation`), and turned by exp(psi eta) (`rotation`): the rotation whose vector is the small
    one of the modes. So its axes are orthogonal at any eta, and to first order they turn as the
    modes say. `offset`: of the frame from that of the node. `arm`: distance (m) of the
    frame from the centre of mass of the undeformed body.
    """

    point: Vector3
    translation: Float[Array, "3 modes"]
    rotation: Float[Array, "3 modes"]
    offset: SpatialFrame
    arm: Scalar
    coordinates: ProductCoordinates = eqx.field(static=True)

    def frame(self, q: Float[Array, " nq"]) -> SpatialFrame:
        node = node_frame(self.point, self.translation, self.rotation, q)
        return node.compose(self.offset)

    def body_frame(self, q: Float[Array, " nq"]) -> SpatialFrame:
        return SpatialFrame(q[:3], rotation_from_quaternion(q[3:7]))

    def kinematics(self, q: Float[Array, " nq"], v: Float[Array, " nv"]) -> MarkerKinematics:
        # As on a rigid body (`SpatialMarker`), but what the body's rotation turns moves within it.
        # The origin and the axes of the marker stand side by side, (3, 4).
        eta, w, rates = q[7:], v[3:6], v[6:]
        offset = jnp.concatenate([self.offset.origin[:, None], self.offset.rotation], axis=1)
        turn, turn_rate, turn_acceleration, turn_directions = _turning(
            self.rotation @ eta, self.rotation @ rates
        )

        def within(displacement: Vector3, turn: Matrix3) -> Float[Array, "3 4"]:
            moved = jnp.pad(displacement[:, None], ((0, 0), (0, 3)))
            return composed(turn, offset) + moved

        place = within(self.point + self.translation @ eta, turn)
        rate = within(self.translation @ rates, turn_rate)
        acceleration = composed(turn_acceleration, offset)
        by_modes = jnp.tensordot(self.rotation.T, turn_directions, 1)
        modal = jax.vmap(within)(self.translation.T, by_modes)
        spin = cross_matrix(w)
        first = composed(spin, place) + rate
        second = composed(spin, first + rate) + acceleration
        fixed = jnp.concatenate([jnp.stack([place, first, second]), crossed_axes(place), modal])
        turned = rotation_from_quaternion(q[3:7]) @ jnp.moveaxis(fixed, 0, 1).reshape(3, -1)
        frame, first, second, *changes = jnp.moveaxis(turned.reshape(3, -1, 4), 1, 0)
        along, still = jnp.stack(changes), np.zeros((3, 3, 3), q.dtype)
        origins = jnp.concatenate([np.eye(3, dtype=q.dtype), along[:, :, 0]])
        rotations = jnp.concatenate([still, along[:, :, 1:]])
        return MarkerKinematics(
            SpatialFrame(q[:3] + frame[:, 0], frame[:, 1:]),
            SpatialFrame(v[:3] + first[:, 0], first[:, 1:]),
            SpatialFrame(second[:, 0], second[:, 1:]),
            jax.vmap(SpatialFrame)(origins, rotations),
        )

    def turned(self, turn: Float[Array, " ..."]) -> "ModalMarker":
        return ModalMarker(
            point=self.point,
            translation=self.translation,
            rotation=self.rotation,
            offset=self.offset.turned(turn),
            arm=self.arm,
            coordinates=self.coordinates,
        )

    def lever_arm(self) -> Float[Array, ""]:
        return self.arm


class _Turning(NamedTuple):
    """exp(theta), its first and second change along a constant rate of theta, and along each
    component of theta, (3, 3, 3) with that first."""

    turn: Matrix3
    rate: Matrix3
    acceleration: Matrix3
    directions: Float[Array, "3 3 3"]


def _turn(theta: Vector3) -> Matrix3:
    return rotation_from_quaternion(quaternion_exponential(theta))


def _turning(theta: Vector3, rate: Vector3) -> _Turning:
    def moving(x: Vector3) -> tuple[Any, Any]:
        return jax.jvp(_turn, (x,), (rate,))

    (turn, first), (_, second) = jax.jvp(moving, (theta,), (rate,))
    directions = jax.vmap(lambda axis: jax.jvp(_turn, (theta,), (axis,))[1])(
        jnp.eye(3, dtype=theta.dtype)
    )
    return _Turning(turn, first, second, directions)


def node_frame(
    point: Vector3,
    translation: Float[Array, "3 modes"],
    rotation: Float[Array, "3 modes"],
    q: Float[Array, " nq"],
) -> SpatialFrame:
    """The frame of a node in the world: the body's axes, displaced and turned by the modes."""
    eta = q[7:]
    own = SpatialFrame(point + translation @ eta, _turn(rotation @ eta))
    return SpatialFrame(q[:3], rotation_from_quaternion(q[3:7])).compose(own)


class Nodes(NamedTuple):
    """The nodes of a `normalised` body, without their names: what a marker takes from them, and the
    centre of mass of the undeformed body (m, body axes)."""

    points: Float[Array, "nodes 3"]
    translations: Float[Array, "nodes 3 modes"]
    rotations: Float[Array, "nodes 3 modes"]
    centre: Vector3


def nodes_of(reduced: ReducedBody) -> Nodes:
    """Of a `normalised` body."""
    centre = reduced.first_moment / reduced.mass
    return Nodes(reduced.points, reduced.translations, reduced.rotations, centre)


@jax.jit
def node_frames(nodes: Nodes, q: Float[Array, " nq"]) -> SpatialFrame:
    """The frames of all nodes, along a leading axis."""
    return jax.vmap(node_frame, in_axes=(0, 0, 0, None))(
        nodes.points, nodes.translations, nodes.rotations, q
    )


@jax.jit
def attached(
    nodes: Nodes, q: Float[Array, " nq"], node: Int[Array, ""], placement: SpatialFrame
) -> ModalMarker:
    """The marker on the node of that place that lies at `placement` when the body is at q."""
    point, rotation = nodes.points[node], nodes.rotations[node]
    translation = nodes.translations[node]
    offset = placement.relative(node_frame(point, translation, rotation, q))
    return ModalMarker(
        point=point,
        translation=translation,
        rotation=rotation,
        offset=offset,
        arm=jnp.linalg.norm(point + offset.origin - nodes.centre),
        coordinates=modal_coordinates(translation.shape[1]),
    )
