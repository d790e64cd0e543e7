"""Elastic bodies that deform by modes in a floating frame of reference."""

import dataclasses
import functools
import warnings
from collections.abc import Mapping
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from .. import _checks, _settings
from .._custom_types import Matrix3, Numbers, Quaternion, Scalar, Setting, Vector3
from .._fields import Field, part_name
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
from ._modal_inertia import (
    ARC,
    modal_coordinates,
    modal_inertia,
    modal_scale,
    ModalInertia,
    normalised,
    ReducedBody,
    SecondOrder,
    undeformed_mass_matrix,
)
from .base import (
    AbstractBody,
    AbstractMarker,
    ANGULAR_VELOCITY,
    FRAME_POSITION,
    FRAME_VELOCITY,
    MarkerKinematics,
    ORIENTATION,
    orientation_of,
    Site,
)


# --------------------------------------------------------------------------------------------------
# Checks of the numbers of an elastic body when it is made. Concrete values only.
# --------------------------------------------------------------------------------------------------


# A body must have a mass matrix where it bends by this part of its length, along each of the shapes
# by which it is softest; runs say that they leave the theory there.
_BENT = 0.2
_SHAPES = 6


def check_definite(reduced: ReducedBody) -> None:
    """Refuse a mass matrix, of the undeformed body, that has no inverse."""
    # Nothing is known of what is traced, nor while a program is traced of what follows from it.
    products = _checks.concrete(reduced.mode_products)
    if products is None:
        return
    squares = np.diagonal(products[0, 0] + products[1, 1] + products[2, 2])
    if np.any(squares <= 0):
        raise ValueError(
            f"mode {int(np.argmin(squares)) + 1} of reduced moves no mass; leave it out."
        )
    matrix = _checks.concrete(undeformed_mass_matrix(reduced))
    if matrix is None:
        return
    scale = np.sqrt(np.maximum(np.diagonal(matrix), 0.0))
    if np.any(scale == 0):
        raise ValueError("reduced.inertia must be positive definite.")
    least = np.linalg.eigvalsh(matrix / np.outer(scale, scale))[0]
    if least < 1e-12:
        raise ValueError(
            "the mass matrix of reduced must be positive definite (its smallest eigenvalue, for a "
            f"unit diagonal, is {least:.2g}): leave out modes that depend on each other or move it "
            "as a rigid body, and check that first_moment and inertia are about one point."
        )


def warn_fast_spin(name: str, reduced: ReducedBody, spin: Vector3) -> None:
    """Warn of a body whose centrifugal force, which does not stiffen its bending, is larger than
    what holds its first mode together."""
    known = _checks.concrete(spin)
    if reduced.second_order is not None or known is None or not np.any(known):
        return
    products, stiffness = (_checks.concrete(x) for x in (reduced.mode_products, reduced.stiffness))
    if products is None or stiffness is None or not stiffness.size:
        return
    inverse = np.linalg.inv(np.linalg.cholesky(np.einsum("aaij->ij", products)))
    lowest = np.sqrt(max(np.linalg.eigvalsh(inverse @ stiffness @ inverse.T)[0], 0.0))
    if np.linalg.norm(known) > lowest:
        warnings.warn(
            f"Body {_checks.shown(name)} begins at {np.linalg.norm(known):.3g} rad/s, above its "
            f"lowest frequency of {lowest:.3g} rad/s, and centrifugal force does not stiffen it. "
            "Give it displacements of second order (reduced.second_order, which "
            "finite_elements.reduce computes for solid meshes and for beams), or let it spin more "
            "slowly.",
            stacklevel=4,
        )


def warn_bent_mass(name: str, reduced: ReducedBody) -> None:
    """Warn of integrals that no displaced mass has: at rest they may be definite, and bent not."""
    known = _checks.concrete(reduced.mode_products)
    if known is None or not known.size:
        return
    shape = _shape_without_mass(reduced)
    if shape is not None:
        warnings.warn(
            f"Body {_checks.shown(name)} has no mass matrix where it bends by "
            f"{100 * _BENT:g} % of its length along its softest shape number {shape + 1}: the "
            "integrals of reduced are not those of one mass that its modes displace. Runs end "
            "there, or before. Compute inertia, mode_first_moment, mode_second_moment and "
            "mode_products by the same quadrature, about the same point.",
            stacklevel=4,
        )


def _shape_without_mass(reduced: ReducedBody) -> int | None:
    """The number of the first of the softest shapes of which, bent along it, the mass matrix of
    linear displacements is not positive definite; those of second order keep it so."""
    mass, first, inertia, mode_first, mode_second, products, stiffness = (
        np.asarray(getattr(reduced, word), float)
        for word in (
            *("mass", "first_moment", "inertia", "mode_first_moment", "mode_second_moment"),
            *("mode_products", "stiffness"),
        )
    )
    second = np.trace(inertia) / 2 * np.eye(3) - inertia

    def matrix(eta: Float[np.ndarray, " modes"]) -> Float[np.ndarray, "nv nv"]:
        modal = mode_second + np.einsum("abjk,j->abk", products, eta)
        moved = second + (mode_second @ eta).T + modal @ eta
        x, y, z = first + mode_first @ eta
        turning = np.array([[0, z, -y], [-z, 0, x], [y, -x, 0]])
        coupling = np.stack([modal[a, b] - modal[b, a] for a, b in ((1, 2), (2, 0), (0, 1))])
        turned = np.trace(moved) * np.eye(3) - moved
        whole = [
            [mass * np.eye(3), turning, mode_first],
            [turning.T, turned, coupling],
            [mode_first.T, coupling.T, np.einsum("aaij->ij", products)],
        ]
        return np.block(whole)

    rest = matrix(np.zeros(len(stiffness)))
    rigid, coupling = rest[:6, :6], rest[:6, 6:]
    apart = rest[6:, 6:] - coupling.T @ np.linalg.solve(rigid, coupling)
    centre = first / mass
    squares = ARC / (np.trace(second) - mass * centre @ centre) * apart
    inverse = np.linalg.inv(np.linalg.cholesky(squares))
    shapes = inverse.T @ np.linalg.eigh(inverse @ stiffness @ inverse.T)[1]
    size = np.sqrt(np.diagonal(rest))
    for k, shape in enumerate(shapes.T[:_SHAPES]):
        for eta in (_BENT * shape, -_BENT * shape):
            scaled = matrix(eta) / np.outer(size, size)
            if np.linalg.eigvalsh(scaled)[0] <= 0:
                return k
    return None


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


# A point is at a node that is not farther from it than this part of the body's size.
_AT_NODE = 1e-6
_NEAREST = 3


def _modal(key: str, unit: str, meaning: str) -> Any:
    """One number for each mode."""

    def check(value: Numbers, what: str) -> Float[Array, " modes"]:
        shape = _checks.shape_of(value)
        return _checks.real(value, shape if len(shape) == 1 else (1,), what)

    return Field(key, unit, meaning, list[float], "a number for each mode", check)


_COORDINATES = _modal("modal_coordinates", "m", "root mean square displacements, at the start")
_VELOCITIES = _modal("modal_velocities", "m/s", "their rates, initial")


class ModalBody(AbstractBody):
    """An elastic body in space that moves far and deforms little: a floating frame of reference,
    in which modes displace its points.

    A point p of the undeformed body (m, body axes) is at R + A (p + phi(p) eta), with R the
    frame's origin, A its rotation and eta the modal coordinates. The body obeys

        M(eta) dv/dt = (velocity terms of M) - K eta - D deta/dt + weight + what acts on it,

    with v = (dR/dt in the world, angular velocity along the body's axes, deta/dt). M holds all
    terms of this displacement field, up to the quadratic ones in eta, so that momentum and energy
    are those of the displaced mass, exactly.

    Where `reduced` holds displacements of second order (`SecondOrder`), a bent body becomes
    shorter, so that tension, including centrifugal force, stiffens bending, and compression softens
    it until the body buckles; deformations must still be small relative to the body. Without them a
    body must not spin nearly as fast as it vibrates in its first bending mode, nor be pressed with
    a notable part of its buckling load. `simulate` reports where a run leaves either.

    Joints, drivers and forces hold it at its nodes. By the body's name: at the node that lies at
    the joint's point in the reference configuration. By "link.A": at the node "A" of "link", to
    which the joint's point is attached rigidly, however far it is. A node rotates by the rotation
    whose vector, 2 tan(angle / 2) axis, is the small rotation of the modes, psi eta.

    **Arguments:**

    - `name`: unique among the bodies; its sites are called `name.node`.
    - `reduced`: `ReducedBody`, its mass, stiffness, damping, modes and nodes in its own frame.
    - `position`: the frame's origin in the world (m), reference configuration; the centre of mass
      is there only if `reduced.first_moment` is zero.
    - `orientation`: quaternion `[w, x, y, z]`, body to world, of any non-zero length; or
      `rotation`: orthogonal matrix whose columns are the body axes in the world.
    - `velocity` (m/s, of the frame's origin) and `angular_velocity` (rad/s): initial, in WORLD
      axes.
    - `stiffening`: do forces along the body act on its bending? None: where `reduced` holds
      displacements of second order. False: leave these out.
    - `modal_coordinates` (modes,), of the reference configuration, and `modal_velocities`
      (modes,), initial; default zero. They are measured as root mean square displacements of the
      body's mass (m, m/s), whatever `reduced` scales its modes to: eta times `modal_scale`.

    **Raises:** `TypeError` if `reduced` is not a `ReducedBody`; `ValueError` for `stiffening` by a
    body whose displacements of second order are not known, and for numbers that no body can have:
    of shapes that do not belong together, matrices that are not symmetric, a mass matrix that is
    not positive definite (modes that depend on each other, or are motions of a rigid body). Warns
    of a body that begins faster than it vibrates, without displacements of second order, and of
    integrals that are not those of one displaced mass, so that bent they leave no mass matrix.

    Source: Shabana, *Dynamics of Multibody Systems* (2020), chapter 5; of second order Wallrapp &
    Schwertassek, "Representation of geometric stiffening in multibody system simulation" (1991).
    """

    name: str = eqx.field(static=True, converter=part_name("a body"))
    reduced: ReducedBody
    position: Vector3 = eqx.field(converter=FRAME_POSITION)
    orientation: Quaternion = eqx.field(converter=ORIENTATION)
    velocity: Vector3 = eqx.field(converter=FRAME_VELOCITY)
    angular_velocity: Vector3 = eqx.field(converter=ANGULAR_VELOCITY)
    modal_coordinates: Float[Array, " modes"] = eqx.field(converter=_COORDINATES)
    modal_velocities: Float[Array, " modes"] = eqx.field(converter=_VELOCITIES)

    def __init__(
        self,
        name: str,
        reduced: Setting[ReducedBody],
        *,
        position: Numbers,
        orientation: Numbers | None = None,
        rotation: Numbers | None = None,
        velocity: Numbers = (0.0, 0.0, 0.0),
        angular_velocity: Numbers = (0.0, 0.0, 0.0),
        stiffening: Setting[bool | None] = None,
        modal_coordinates: Numbers | None = None,
        modal_velocities: Numbers | None = None,
    ):
        self.name = name
        self.reduced = _stiffened(_checked(reduced), stiffening)
        self.position = FRAME_POSITION(position)
        self.orientation = orientation_of(orientation, rotation)
        self.velocity = FRAME_VELOCITY(velocity)
        self.angular_velocity = ANGULAR_VELOCITY(angular_velocity)
        modes = self.reduced.stiffness.shape[:1]
        start = np.zeros(modes) if modal_coordinates is None else modal_coordinates
        self.modal_coordinates = _checks.real(start, modes, "modal_coordinates")
        rates = np.zeros(modes) if modal_velocities is None else modal_velocities
        self.modal_velocities = _checks.real(rates, modes, "modal_velocities")
        warn_fast_spin(self.name, self.reduced, self.angular_velocity)
        warn_bent_mass(self.name, self.reduced)

    @property
    def modal_scale(self) -> Float[Array, " modes"]:
        """Root mean square displacement (m) of the mass by a unit of each coordinate eta of
        `reduced`: modal coordinates of the body are eta times this."""
        return modal_scale(self.reduced)

    def inertia_properties(self) -> ModalInertia:
        return modal_inertia(normalised(self.reduced))

    def coordinates(self) -> Float[Array, " nq"]:
        unit = self.orientation / jnp.linalg.norm(self.orientation)
        return jnp.concatenate([self.position, unit, self.modal_coordinates])

    def velocities(self) -> Float[Array, " nv"]:
        rotation = rotation_from_quaternion(self.orientation)
        turning = rotation.T @ self.angular_velocity
        return jnp.concatenate([self.velocity, turning, self.modal_velocities])

    def sites(self) -> Mapping[str, Site]:
        nodes, q = nodes_of(normalised(self.reduced)), self.coordinates()
        frames = node_frames(nodes, q)
        own = SpatialFrame(self.position, rotation_from_quaternion(self.orientation))
        found = {self.name: Site(own, functools.partial(self._at_nearest, nodes, q, frames))}
        for k, node in enumerate(self.reduced.nodes):
            frame = SpatialFrame(frames.origin[k], frames.rotation[k])
            marker = functools.partial(attached, nodes, q, jnp.asarray(k))
            found[f"{self.name}.{node}"] = Site(frame, marker)
        return found

    def _at_nearest(
        self,
        nodes: Nodes,
        q: Float[Array, " nq"],
        frames: SpatialFrame,
        placement: SpatialFrame,
    ) -> ModalMarker:
        """The marker on the node at the placement; where numbers are traced, on the nearest."""
        distances = jnp.linalg.norm(frames.origin - placement.origin[None], axis=1)
        self._refuse_far(distances, placement.origin)
        return attached(nodes, q, jnp.argmin(distances), placement)

    def _refuse_far(self, distances: Float[Array, " nodes"], point: Vector3) -> None:
        known, size = _checks.concrete(distances), _checks.concrete(_size(self.reduced))
        if known is None or size is None or np.min(known) <= _AT_NODE * size:
            return
        order = np.argsort(known)[:_NEAREST]
        nearest = ", ".join(f"'{self.reduced.nodes[k]}' ({known[k]:.6g} m away)" for k in order)
        site = f"{self.name}.{self.reduced.nodes[order[0]]}"
        raise ValueError(
            f"no node of body {_checks.shown(self.name)} lies at the point "
            f"{_checks.shown(np.asarray(point).tolist())}; the nearest are {nearest}: give the "
            f"point of a node, or name a node ({_checks.shown(site)}) to attach it rigidly."
        )


def _size(reduced: ReducedBody) -> Float[Array, ""]:
    """Root mean square distance (m) of the mass from its centre."""
    second = 0.5 * jnp.trace(reduced.inertia) / reduced.mass
    centre = reduced.first_moment / reduced.mass
    return jnp.sqrt(second - centre @ centre)


def _stiffened(reduced: ReducedBody, stiffening: Setting[bool | None]) -> ReducedBody:
    """The body with or without its displacements of second order."""
    wanted = None if stiffening is None else _settings.flag(stiffening, "stiffening")
    if wanted and reduced.second_order is None:
        raise ValueError(
            "stiffening needs a reduced body that knows its displacements of second order "
            "(reduced.second_order): finite_elements.reduce computes them for solid meshes and for "
            "beams between two nodes each; give such a body, or leave out stiffening."
        )
    return dataclasses.replace(reduced, second_order=None) if wanted is False else reduced


def _checked(reduced: Setting[ReducedBody]) -> ReducedBody:
    """Refuse a value that is not a reduced body.

    **Raises:** `TypeError` or `ValueError`.
    """
    if not isinstance(reduced, ReducedBody):
        raise TypeError(
            f"reduced must be a ReducedBody, which a reduction of finite elements leaves, got "
            f"{_checks.shown(reduced)}."
        )
    modes, nodes = _checks.shape_of(reduced.stiffness)[-1:], (len(reduced.nodes),)
    for node in reduced.nodes:
        _checks.name(node, "a node")
    if not reduced.nodes or len({*reduced.nodes}) != len(reduced.nodes):
        raise ValueError(
            f"reduced.nodes must be different names, at least one, got "
            f"{_checks.listed(reduced.nodes)}."
        )
    shapes: dict[str, tuple[int, ...]] = {
        "mass": (),
        "first_moment": (3,),
        "inertia": (3, 3),
        "mode_first_moment": (3, *modes),
        "mode_second_moment": (3, 3, *modes),
        "mode_products": (3, 3, *modes, *modes),
        "stiffness": (*modes, *modes),
        "damping": (*modes, *modes),
        "points": (*nodes, 3),
        "translations": (*nodes, 3, *modes),
        "rotations": (*nodes, 3, *modes),
    }
    numbers = {
        word: _checks.real(getattr(reduced, word), shape, f"reduced.{word}")
        for word, shape in shapes.items()
    }
    _checks.positive(numbers["mass"], "reduced.mass")
    _check_symmetric(numbers)
    second = _checked_second_order(reduced.second_order, nodes, modes)
    own = ReducedBody(**numbers, nodes=reduced.nodes, second_order=second)
    check_definite(own)
    return own


def _checked_second_order(
    given: SecondOrder | None, nodes: tuple[int, ...], modes: tuple[int, ...]
) -> SecondOrder | None:
    if given is None:
        return None
    if not isinstance(given, SecondOrder):
        raise TypeError(
            f"reduced.second_order must be a SecondOrder or None, got {_checks.shown(given)}."
        )
    shapes = {
        "first_moment": (3, *modes, *modes),
        "second_moment": (3, 3, *modes, *modes),
        "translations": (*nodes, 3, *modes, *modes),
        "rotations": (*nodes, 3, *modes, *modes),
    }
    numbers = {
        word: _checks.real(getattr(given, word), shape, f"reduced.second_order.{word}")
        for word, shape in shapes.items()
    }
    for word, value in numbers.items():
        known = _checks.concrete(value)
        if known is None:
            continue
        size, turned = np.max(np.abs(known), initial=0.0), np.swapaxes(known, -1, -2)
        if np.max(np.abs(known - turned), initial=0.0) > 1e-9 * size:
            raise ValueError(
                f"reduced.second_order.{word} must be symmetric in its last two axes, which are "
                "both those of the modes."
            )
    return SecondOrder(**numbers)


def _check_symmetric(numbers: Mapping[str, Array]) -> None:
    for word in ("inertia", "stiffness", "damping"):
        known = _checks.concrete(numbers[word])
        size = 0.0 if known is None else np.max(np.abs(known), initial=0.0)
        if known is not None and np.max(np.abs(known - known.T), initial=0.0) > 1e-9 * size:
            raise ValueError(
                f"reduced.{word} must be a symmetric matrix; it differs from its transpose by "
                f"{np.max(np.abs(known - known.T)):.3g}, where its largest entry is {size:.3g}."
            )
