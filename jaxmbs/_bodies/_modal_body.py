import dataclasses
import functools
from collections.abc import Mapping
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .. import _checks, _settings
from .._custom_types import Numbers, Quaternion, Setting, Vector3
from .._fields import Field, part_name
from .._geometry import rotation_from_quaternion, SpatialFrame
from ._fields import (
    ANGULAR_VELOCITY,
    FRAME_POSITION,
    FRAME_VELOCITY,
    ORIENTATION,
    orientation_of,
)
from ._modal_checks import check_definite, warn_bent_mass, warn_fast_spin
from ._modal_inertia import (
    modal_inertia,
    modal_scale,
    ModalInertia,
    normalised,
)
from ._modal_marker import attached, ModalMarker, node_frames, Nodes, nodes_of
from ._reduced_body import ReducedBody, SecondOrder
from .base import AbstractBody, Site


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
