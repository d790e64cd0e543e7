"""Compliant bodies, joints and rods."""

from collections.abc import Callable
from typing import Any, ClassVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import block_diag
from jaxtyping import Array, Float

from .. import _checks, _settings
from .._bodies import ReducedBody
from .._custom_types import Scalar, Setting
from .._fields import dimension_of, Field, Moves, number, optional, positive, reference, vector
from .._geometry import ANGLE, cross_matrix, LENGTH
from .._linalg import cholesky
from .._linalg._solvers import substitute_lower
from .base import (
    AbstractBodyCompliance,
    AbstractDeformation,
    AbstractJointCompliance,
    COMPLIANCE_NAME,
    Direction,
)


# A joint is at a node if it lies within this part of the body's size.
_AT_NODE = 1e-6


class NodeDeformation(AbstractDeformation):
    """Displacements of nodes (`points` (nodes, 3), m, body axes) by modes that do not couple:
    `translations` and `rotations` (nodes, 3, modes). A marker goes with the node next to it."""

    compliance: Float[Array, " n"]
    misfit: Float[Array, " n"]
    points: Float[Array, "nodes 3"]
    translations: Float[Array, "nodes 3 n"]
    rotations: Float[Array, "nodes 3 n"]

    @property
    def directions(self) -> tuple[Direction, ...]:
        count = self.compliance.shape[-1]
        return tuple(Direction(f"mode {k + 1}", LENGTH) for k in range(count))

    def displacements(self, marker: Any, body: Any) -> Float[Array, "motions n"]:
        place = body.rotation.T @ (marker.origin - body.origin)
        node = jnp.argmin(jnp.sum((self.points - place[None]) ** 2, axis=1))
        turned = self.rotations[node]
        moved = self.translations[node] - cross_matrix(place - self.points[node]) @ turned
        return jnp.concatenate([body.rotation @ moved, body.rotation @ turned])


class BodyCompliance(AbstractBodyCompliance):
    """A body with the elasticity of finite elements, reduced to its nodes, without their dynamics,

        displacement of the nodes = sum over modes of phi (phi^T force) / stiffness,

    with the modes of the body free in space, so that its acceleration loads it by its own inertia,
    as far as those modes represent it. Joints hold it at nodes.

    **Arguments:** `body`: its name, a body in space whose frame is that of the reduced one (origin
    and axes); `reduced`: a `jaxmbs.spatial.ReducedBody` with positive definite stiffness.
    """

    kind: ClassVar[str] = "body"
    name: str = eqx.field(static=True, converter=COMPLIANCE_NAME)
    body: str = eqx.field(static=True, converter=reference("body", "which gives way"))
    reduced: ReducedBody

    def __init__(self, name: str, body: str, reduced: Setting[ReducedBody]):
        self.name, self.body = name, body
        such_as = "a ReducedBody, such as finite_elements.reduce returns"
        self.reduced = _settings.instance(reduced, ReducedBody, "reduced", such_as)
        known = _checks.concrete(self.reduced.stiffness)
        if known is None:
            return
        size = np.max(np.abs(known), initial=0.0)
        if np.max(np.abs(known - known.T), initial=0.0) > 1e-9 * size:
            raise ValueError("reduced.stiffness must be symmetric.")
        if known.shape[0] == 0 or np.linalg.eigvalsh((known + known.T) / 2)[0] <= 0:
            raise ValueError(
                "reduced must have modes whose stiffness is positive definite; one that stores no "
                "energy is a motion of the rigid body, which is there already."
            )

    def deformation(self, reference: Any) -> NodeDeformation:
        if reference.dimension != 3:
            raise ValueError("a reduced body is one in space, and its body is not.")
        # With K = L L^T and eta = L^-T z modes do not couple, and each z has the stiffness 1.
        lower = cholesky(self.reduced.stiffness)

        def uncoupled(shapes: Float[Array, "nodes 3 n"]) -> Float[Array, "nodes 3 n"]:
            rows = shapes.reshape(-1, shapes.shape[2])
            return substitute_lower(lower, rows.T).T.reshape(shapes.shape)

        translations = uncoupled(self.reduced.translations)
        rotations = uncoupled(self.reduced.rotations)
        # A unit moves some node by a metre, or turns it by a radian: no verdict depends on how
        # modes were scaled.
        size = jnp.maximum(*(jnp.max(jnp.abs(x), axis=(0, 1)) for x in (translations, rotations)))
        size = jnp.where(size > 0, size, 1.0)
        return NodeDeformation(
            compliance=size**2,
            misfit=jnp.zeros_like(size),
            points=self.reduced.points,
            translations=translations / size[None, None],
            rotations=rotations / size[None, None],
        )

    def check_points(self, points: Callable[[], list[np.ndarray]]) -> None:
        known = _checks.concrete(self.reduced.points)
        if known is None:
            return
        size = np.max(np.linalg.norm(known - known.mean(axis=0), axis=1))
        for point in points():
            apart = np.linalg.norm(known - point, axis=1)
            if np.min(apart) > _AT_NODE * max(size, np.linalg.norm(point)):
                nearest = self.reduced.nodes[int(np.argmin(apart))]
                raise ValueError(
                    f"a joint lies at {_checks.shown(point.round(6).tolist())} of the body, where "
                    f"it has no node; the nearest, {_checks.shown(nearest)}, is "
                    f"{np.min(apart):.6g} m away. Attach one there."
                )


class JointDeformation(AbstractDeformation):
    """Displacement along the axes of the marker (m), and rotation about them (rad)."""

    compliance: Float[Array, " n"]
    misfit: Float[Array, " n"]

    @property
    def directions(self) -> tuple[Direction, ...]:
        planar = self.compliance.shape[-1] == 3
        lengths, angles = ("xy", ("r",)) if planar else ("xyz", ("rx", "ry", "rz"))
        return (
            *(Direction(name, LENGTH) for name in lengths),
            *(Direction(name, ANGLE) for name in angles),
        )

    def displacements(self, marker: Any, body: Any) -> Float[Array, "motions n"]:
        del body
        axes = marker.rotation
        turns = axes if axes.shape[0] == 3 else jnp.ones((1, 1), axes.dtype)
        return block_diag(axes, turns)


def _not_negative(value: Any, shape: tuple[int, ...], what: str) -> Float[Array, "*shape"]:
    array = _checks.real(value, shape, what)
    known = _checks.concrete(array)
    if known is not None and np.any(known < 0):
        raise ValueError(
            f"{what} must be at least zero, got {_checks.shown(known.tolist())}; zero does not "
            "give way, and 1 / stiffness is the compliance of a spring."
        )
    return array


def _turns(value: Any) -> tuple[int, ...]:
    """The shape of a rotation: a number in the plane, a vector in space."""
    return (3,) if _checks.shape_of(value) else ()


def _compliance(key: str, unit: str, meaning: str, turning: bool) -> Callable[..., Any]:
    def check(value: Any, what: str) -> Float[Array, "..."]:
        shape = _turns(value) if turning else (dimension_of(value),)
        return _not_negative(value, shape, what)

    return optional(
        Field(
            key,
            unit,
            meaning,
            float | list[float] if turning else list[float],
            "1 number >= 0, 3 in space" if turning else "2 numbers >= 0, 3 in space",
            check,
            moves=Moves.along_marker,
        ),
        "zero",
    )


_TILT_MISFIT = optional(
    Field(
        "tilt_misfit",
        "rad",
        "by how much its axes are off on the second body",
        float | list[float],
        "1 number, 3 in space",
        lambda value, what: _checks.real(value, _turns(value), what),
        moves=Moves.along_marker,
    ),
    "zero",
)


class JointCompliance(AbstractJointCompliance):
    """Flexibility of a joint in its constrained directions, with the displacement and the force on
    body 2 (of a joint to the ground: on its body):

        displacement = compliance * force + misfit,

    with the force (and torque) that the joint exerts on that body at its point, which is displaced
    there. The axes are those of its marker, which that body carries: the third one along a spatial
    joint's axis and the first along n1 (`io/REFERENCE.md`, names of rows), the world's in the
    reference configuration where it has none; in the plane the first is along the joint's axis.
    Free directions carry no force and are not deformed.

    **Arguments:**

    - `joint`: its name.
    - `compliance` (dim,), m/N; `tilt_compliance`, rad/(N m), a number in the plane and (3,) in
      space: at least zero, the reciprocals of stiffnesses. Default 0: rigid.
    - `misfit` (dim,), m; `tilt_misfit`, rad: how far its point, and its axes, are off their place
      on that body; default 0.

    **Raises:** `ValueError` for a negative compliance, or numbers of the other dimension.
    """

    kind: ClassVar[str] = "joint"
    name: str = eqx.field(static=True, converter=COMPLIANCE_NAME)
    joint: str = eqx.field(static=True, converter=reference("joint", "which gives way"))
    compliance: Float[Array, " dim"] | None = eqx.field(
        default=None,
        kw_only=True,
        converter=_compliance("compliance", "m/N", "along the axes of its marker", False),
    )
    tilt_compliance: Float[Array, "..."] | None = eqx.field(
        default=None,
        kw_only=True,
        converter=_compliance("tilt_compliance", "rad/(N m)", "about those axes", True),
    )
    misfit: Float[Array, " dim"] | None = eqx.field(
        default=None,
        kw_only=True,
        converter=optional(
            vector(
                "misfit",
                "m",
                "how far its point is off on the second body",
                moves=Moves.along_marker,
            ),
            "zero",
        ),
    )
    tilt_misfit: Float[Array, "..."] | None = eqx.field(
        default=None, kw_only=True, converter=_TILT_MISFIT
    )

    def __check_init__(self):
        """All numbers are of one dimension."""
        keys = ("compliance", "misfit", "tilt_compliance", "tilt_misfit")
        sizes = {key: given.size for key in keys if (given := getattr(self, key)) is not None}
        for key, size in sizes.items():
            dimension = next(iter(sizes.values()))
            dimension = 2 if dimension < 3 else 3
            if size != (2 * dimension - 3 if key.startswith("tilt") else dimension):
                raise ValueError(
                    f"{key} is not of dimension {dimension}, of which {next(iter(sizes))} is: in "
                    "the plane give 2 numbers and for a tilt 1, in space 3 and 3."
                )

    def deformation(self, dimension: int) -> JointDeformation:
        sizes = (dimension, 2 * dimension - 3)
        given = {
            "compliance": (self.compliance, self.tilt_compliance),
            "misfit": (self.misfit, self.tilt_misfit),
        }
        made = {}
        for key, parts in given.items():
            both = zip((key, f"tilt_{key}"), parts, sizes, strict=True)
            made[key] = jnp.concatenate([_for_each(*part) for part in both])
        return JointDeformation(**made)


def _for_each(key: str, given: Float[Array, "..."] | None, count: int) -> Float[Array, " count"]:
    """One number for each axis.

    **Raises:** `ValueError` where there are others than `count`.
    """
    if given is None:
        return jnp.zeros(count)
    if given.size != count:
        raise ValueError(f"{key} must hold {count} numbers in this dimension, got {given.size}.")
    return given.reshape(count)


def _two_ends(value: Any, what: str) -> Float[Array, "2 dim"]:
    shape = _checks.shape_of(value)
    if shape not in ((2, 2), (2, 3)):
        raise ValueError(
            f"{what} must be two world points [[..], [..]], the ends of the rod, got "
            f"{_checks.shown(value)}."
        )
    return _checks.real(value, shape, what)


_ENDS = Field(
    "points",
    "m",
    "the ends, in the reference configuration",
    list[list[float]],
    "two world points",
    _two_ends,
    moves=Moves.point,
)


class AxialDeformation(AbstractDeformation):
    """Uniform axial strain: the elongation (m) of the length between two points.

    `middle`, `direction` (dim,): in the body's frame, m; the direction is over the length, so that
    `along @ (x - middle)` is -1/2 and 1/2 at the two points.
    """

    compliance: Float[Array, " n"]
    misfit: Float[Array, " n"]
    middle: Float[Array, " dim"]
    direction: Float[Array, " dim"]

    @property
    def directions(self) -> tuple[Direction, ...]:
        return (Direction("elongation", LENGTH),)

    def displacements(self, marker: Any, body: Any) -> Float[Array, "motions n"]:
        from_middle = body.rotation.T @ (marker.origin - body.origin) - self.middle
        share = self.direction @ from_middle
        unit = self.direction / jnp.linalg.norm(self.direction)
        moved = share * (body.rotation @ unit)
        return jnp.concatenate([moved, jnp.zeros(2 * moved.shape[0] - 3, moved.dtype)])[:, None]


class Rod(AbstractBodyCompliance):
    """A body that is elastic along one line: a rod between the points of its joints,

        elongation = tension / stiffness + misfit.

    The tension is the mean of what the joints at its two ends pull with, half of the difference of
    their axial forces; what they differ by accelerates the body, or is its weight. Joints between
    the ends take their part of the elongation.

    **Arguments:** `body`: its name; `points`: two world points (m), reference configuration;
    `stiffness`: axial, of the whole length (N/m, > 0), E A / l of a prismatic rod; `misfit`: by how
    much (m) it is too long for where its ends are in the reference configuration, default 0:
    tolerances, thermal expansion, preload.
    """

    kind: ClassVar[str] = "rod"
    name: str = eqx.field(static=True, converter=COMPLIANCE_NAME)
    body: str = eqx.field(static=True, converter=reference("body", "which gives way"))
    points: Float[Array, "2 dim"] = eqx.field(kw_only=True, converter=_ENDS)
    stiffness: Scalar = eqx.field(
        kw_only=True, converter=positive("stiffness", "N/m", "axial, of the whole length")
    )
    misfit: Scalar = eqx.field(
        default=0.0, kw_only=True, converter=number("misfit", "m", "by how much it is too long")
    )

    def __check_init__(self):
        """A rod has a direction."""
        known = _checks.concrete(self.points[1] - self.points[0])
        if known is not None and not np.any(known):
            raise ValueError(
                "the two points coincide, so that the rod has no direction; give the points of "
                "the joints at its ends."
            )

    def check_points(self, points: Callable[[], list[np.ndarray]]) -> None:
        """Uniform strain is defined at all points."""

    def deformation(self, reference: Any) -> AxialDeformation:
        if reference.dimension != self.points.shape[1]:
            raise ValueError(
                f"its points are of dimension {self.points.shape[1]} and its body is of dimension "
                f"{reference.dimension or 'none'}."
            )
        start, end = (reference.rotation.T @ (p - reference.origin) for p in self.points)
        between = end - start
        return AxialDeformation(
            compliance=1 / self.stiffness[None],
            misfit=self.misfit[None],
            middle=(start + end) / 2,
            direction=between / (between @ between),
        )
