from typing import NamedTuple

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
    rotated,
    rotation_from_quaternion,
    SpatialFrame,
)
from .._programs import Compiling, program
from ._modal_inertia import modal_coordinates
from ._reduced_body import ReducedBody
from .base import AbstractMarker, MarkerKinematics


class NodeSecondOrder(NamedTuple):
    """Second-order displacement (`translation`) and rotation (`rotation`) of a node by products of
    modal coordinates; for all nodes with a leading axis."""

    translation: Float[Array, "*nodes 3 modes modes"]
    rotation: Float[Array, "*nodes 3 modes modes"]


class ModalMarker(AbstractMarker):
    """A frame that is rigidly attached to a node of an elastic body.

    The node, at `point` of the undeformed body (m, body axes), is displaced by phi eta
    (`translation`), and turned by the rotation whose vector is the small one of the modes, psi eta
    (`rotation`): 2 tan(angle / 2) axis, as bushings measure rotations. That is exp(psi eta) to
    third order, where modes hold to the first alone, and orthogonal at any eta. (The exponential
    itself, differentiated, made 910 equations of `kinematics` in place of 325.) `second_order` adds
    1/2 Gamma eta eta and 1/2 Psi eta eta to both. `offset`: of the frame from that of the node.
    `arm`: distance (m) of the frame from the centre of mass of the undeformed body.
    """

    point: Vector3
    translation: Float[Array, "3 modes"]
    rotation: Float[Array, "3 modes"]
    offset: SpatialFrame
    arm: Scalar
    second_order: NodeSecondOrder | None
    coordinates: ProductCoordinates = eqx.field(static=True)

    def frame(self, q: Float[Array, " nq"]) -> SpatialFrame:
        node = node_frame(self.point, self.translation, self.rotation, self.second_order, q)
        return node.compose(self.offset)

    def body_frame(self, q: Float[Array, " nq"]) -> SpatialFrame:
        return SpatialFrame(q[:3], rotation_from_quaternion(q[3:7]))

    def kinematics(self, q: Float[Array, " nq"], v: Float[Array, " nv"]) -> MarkerKinematics:
        # As on a rigid body (`SpatialMarker`), but what the body's rotation turns moves within it.
        # Origin and axes concatenated, (3, 4). With c = psi eta / 2 the node's rotation B
        # has B' = B (omega x), omega = 2 (c' - c x c') / (1 + c c) (Rodrigues parameters, Shabana
        # 2020, chapter 2), so that omega' = -2 c c' / (1 + c c) omega where c' is constant; with
        # displacements of second order it is not, and 2 (c'' - c x c'') / (1 + c c) is added.
        eta, w, rates = q[7:], v[3:6], v[6:]
        moved, turned = _bent(self.translation, self.rotation, self.second_order, eta)
        offset = jnp.concatenate([self.offset.origin[:, None], self.offset.rotation], axis=1)
        half = 0.5 * turned.slope
        c, c_rate = 0.5 * turned.value, half @ rates
        size = 1 + c @ c
        by_modes = (2 / size) * (half - composed(cross_matrix(c), half))
        omega = cross_matrix(by_modes @ rates)
        once = composed(omega, offset)
        twice = composed(omega, once) - (2 / size) * (c @ c_rate) * once
        if self.second_order is not None:
            bend = 0.5 * (self.second_order.rotation @ rates) @ rates
            change = (2 / size) * (bend - rotated(cross_matrix(c), bend))
            twice = twice + composed(cross_matrix(change), offset)
        modal = jnp.tensordot(by_modes, crossed_axes(offset), (0, 0))
        fixed = jnp.concatenate([jnp.stack([offset, twice]), modal])
        own = _beside(_turn(turned.value), fixed)
        origins = jnp.concatenate([(self.point + moved.value)[None], moved.slope.T])
        place, acceleration = own[0] + _as_origin(origins[0]), own[1]
        if self.second_order is not None:
            bend = (self.second_order.translation @ rates) @ rates
            acceleration = acceleration + _as_origin(bend)
        modal = own[2:] + jax.vmap(_as_origin)(origins[1:])
        rate = jnp.tensordot(rates, modal, 1)
        spin = cross_matrix(w)
        first = composed(spin, place) + rate
        second = composed(spin, first + rate) + acceleration
        fixed = jnp.concatenate([jnp.stack([place, first, second]), crossed_axes(place), modal])
        world = _beside(rotation_from_quaternion(q[3:7]), fixed)
        frame, first, second, changes = world[0], world[1], world[2], world[3:]
        origins = jnp.concatenate([np.eye(3, dtype=q.dtype), changes[:, :, 0]])
        still = np.zeros((3, 3, 3), q.dtype)
        rotations = jnp.concatenate([still, changes[:, :, 1:]])
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
            second_order=self.second_order,
            coordinates=self.coordinates,
        )

    def lever_arm(self) -> Float[Array, ""]:
        return self.arm


def _turn(vector: Vector3) -> Matrix3:
    """The rotation whose vector is twice the Rodrigues vector, 2 tan(angle / 2) axis."""
    return rotation_from_quaternion(jnp.concatenate([jnp.ones((1,), vector.dtype), 0.5 * vector]))


def _as_origin(vector: Vector3) -> Float[Array, "3 4"]:
    """A displacement of the origin in an array of origin and axes; the axes do not rotate."""
    return jnp.pad(vector[:, None], ((0, 0), (0, 3)))


def _beside(rotation: Matrix3, columns: Float[Array, "n 3 4"]) -> Float[Array, "n 3 4"]:
    """Each of them turned, in one product."""
    return jnp.moveaxis(jnp.tensordot(rotation, columns, (1, 1)), 0, 1)


class _Bent(NamedTuple):
    """A vector that modes change, and its derivatives along them."""

    value: Vector3
    slope: Float[Array, "3 modes"]


def _bent(
    translation: Float[Array, "3 modes"],
    rotation: Float[Array, "3 modes"],
    second_order: NodeSecondOrder | None,
    eta: Float[Array, " modes"],
) -> tuple[_Bent, _Bent]:
    """The displacement and the rotation of a node."""
    linear = (translation, rotation)
    if second_order is None:
        moved, turned = (_Bent(x @ eta, x) for x in linear)
        return moved, turned
    slopes = [(x, y @ eta) for x, y in zip(linear, second_order, strict=True)]
    moved, turned = (_Bent((x + 0.5 * y) @ eta, x + y) for x, y in slopes)
    return moved, turned


def node_frame(
    point: Vector3,
    translation: Float[Array, "3 modes"],
    rotation: Float[Array, "3 modes"],
    second_order: NodeSecondOrder | None,
    q: Float[Array, " nq"],
) -> SpatialFrame:
    """The frame of a node in the world: the body's axes, displaced and turned by the modes."""
    moved, turned = _bent(translation, rotation, second_order, q[7:])
    own = SpatialFrame(point + moved.value, _turn(turned.value))
    return SpatialFrame(q[:3], rotation_from_quaternion(q[3:7])).compose(own)


class Nodes(NamedTuple):
    """The nodes of a `normalised` body, without their names: what a marker takes from them, and the
    centre of mass of the undeformed body (m, body axes)."""

    points: Float[Array, "nodes 3"]
    translations: Float[Array, "nodes 3 modes"]
    rotations: Float[Array, "nodes 3 modes"]
    centre: Vector3
    second_order: NodeSecondOrder | None


def nodes_of(reduced: ReducedBody) -> Nodes:
    """The nodes of a `normalised` body."""
    centre = reduced.first_moment / reduced.mass
    found = reduced.second_order
    second = None if found is None else NodeSecondOrder(found.translations, found.rotations)
    return Nodes(reduced.points, reduced.translations, reduced.rotations, centre, second)


@program(compiling=Compiling.ONCE, of_arrays=True)
def node_frames(nodes: Nodes, q: Float[Array, " nq"]) -> SpatialFrame:
    """The frames of all nodes, along a leading axis."""
    return jax.vmap(node_frame, in_axes=(0, 0, 0, 0, None))(
        nodes.points, nodes.translations, nodes.rotations, nodes.second_order, q
    )


@program(compiling=Compiling.ONCE, of_arrays=True)
def attached(
    nodes: Nodes, q: Float[Array, " nq"], node: Int[Array, ""], placement: SpatialFrame
) -> ModalMarker:
    """The marker on the node of that place that lies at `placement` when the body is at q."""
    point, rotation = nodes.points[node], nodes.rotations[node]
    translation = nodes.translations[node]
    second = jax.tree.map(lambda x: x[node], nodes.second_order)
    offset = placement.relative(node_frame(point, translation, rotation, second, q))
    return ModalMarker(
        point=point,
        translation=translation,
        rotation=rotation,
        offset=offset,
        arm=jnp.linalg.norm(point + offset.origin - nodes.centre),
        second_order=second,
        coordinates=modal_coordinates(translation.shape[1]),
    )
