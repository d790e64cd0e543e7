"""Shapes of bodies that touch each other, in the reference configuration."""

import abc
from collections.abc import Callable
from typing import Any, cast, ClassVar, TYPE_CHECKING, TypeAlias

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .. import _checks
from .._bodies.base import ORIENTATION
from .._constraints._fields import unturned_frame
from .._custom_types import Numbers, Scalar
from .._fields import (
    AbstractDeclared,
    dimension_of,
    direction,
    Field,
    Moves,
    not_negative,
    number,
    optional,
    point,
    positive,
    two_points,
)
from .._geometry import PlanarFrame, rotation_from_quaternion, SpatialFrame
from .._loading import late
from ._contact_geometry import Ball, Block, Hull, Rod, Wall


if TYPE_CHECKING:
    from scipy import spatial
else:
    # For convex hulls alone, which few models have.
    spatial = late("scipy.spatial")


# The frame of a body that has a place.
PlacedFrame: TypeAlias = PlanarFrame | SpatialFrame


class AbstractContactShape(AbstractDeclared):
    """A shape in contact, attached to a body. `kind`: its name in model files."""

    kind: ClassVar[str]

    @property
    @abc.abstractmethod
    def dimension(self) -> int | None:
        """Dimension of the space; None where no number of the shape decides it."""

    @abc.abstractmethod
    def frame(self, reference: PlacedFrame) -> PlacedFrame:
        """The world frame of the shape's marker in the reference configuration, where `reference`
        is that of the body."""

    @abc.abstractmethod
    def is_placed(self) -> bool:
        """Is its place a point of the world, and not the body's own point?"""

    @abc.abstractmethod
    def solid(self) -> Any:
        """The shape in the axes of its marker."""

    @abc.abstractmethod
    def smallest_dimension(self) -> Scalar | None:
        """The smallest dimension (m): the radius of a sphere or capsule, the shortest edge of a
        box, the shortest extent of a polytope along a world axis; None for points and
        half-spaces."""


_CENTRE = "the body's own point (its `position`)"
_AT = optional(point("at", "its centre, in the reference configuration"), _CENTRE)


def _placed(at: Float[Array, " dim"] | None, reference: PlacedFrame) -> PlacedFrame:
    """An unturned frame at the point, or at that of the body."""
    return unturned_frame(reference.origin if at is None else at)[0]


def _refuse_two_dimensions(
    word: str, value: Float[Array, " dim"], at: Float[Array, " dim"] | None
) -> None:
    if at is not None and at.shape != value.shape:
        raise ValueError(
            f"{word} has {value.shape[0]} numbers and `at` {at.shape[0]}; both are of the plane "
            "(2) or both of space (3)."
        )


def _known_length(at: Float[Array, " dim"] | None) -> int | None:
    return None if at is None else at.shape[0]


class ContactSphere(AbstractContactShape):
    """A sphere, in the plane a disc.

    **Arguments:** `radius` (m), zero for a point; `at`: the centre, a world point in the reference
    configuration (m), default the body's own point.
    """

    kind: ClassVar[str] = "sphere"
    radius: Scalar = eqx.field(
        converter=not_negative("radius", "m", "of the surface; 0 for a point")
    )
    at: Float[Array, " dim"] | None = eqx.field(default=None, kw_only=True, converter=_AT)

    @property
    def dimension(self) -> int | None:
        return _known_length(self.at)

    def frame(self, reference: PlacedFrame) -> PlacedFrame:
        return _placed(self.at, reference)

    def is_placed(self) -> bool:
        return self.at is not None

    def solid(self) -> Ball:
        return Ball(self.radius)

    def smallest_dimension(self) -> Scalar | None:
        known = _checks.concrete(self.radius)
        return None if known is not None and known == 0 else self.radius


def _segment(value: Numbers, what: str) -> Float[Array, "2 dim"]:
    pair = _checks.two_points(value, dimension_of(value), what)
    known = _checks.concrete(pair)
    if known is not None and np.array_equal(known[0], known[1]):
        raise ValueError(
            f"{what} must be two different points, the ends of the axis; a capsule without length "
            "is a sphere."
        )
    return pair


_POINTS = cast(Field, two_points("points", "ends of its axis, in the reference configuration"))
_POINTS = _POINTS._replace(admits="two different world points", check=_segment)
_RADIUS = positive("radius", "m", "of the surface about the axis")


class ContactCapsule(AbstractContactShape):
    """A cylinder with hemispherical ends: all points within `radius` of a segment.

    **Arguments:** `radius` (m); `points`: the ends of the segment, two world points in the
    reference configuration (m).
    """

    kind: ClassVar[str] = "capsule"
    radius: Scalar = eqx.field(converter=_RADIUS)
    points: Float[Array, "2 dim"] = eqx.field(kw_only=True, converter=_POINTS)

    @property
    def dimension(self) -> int | None:
        return self.points.shape[-1]

    def frame(self, reference: PlacedFrame) -> PlacedFrame:
        del reference
        return unturned_frame((self.points[0] + self.points[1]) / 2)[0]

    def is_placed(self) -> bool:
        return True

    def solid(self) -> Rod:
        return Rod(self.radius, (self.points[1] - self.points[0]) / 2)

    def smallest_dimension(self) -> Scalar | None:
        return self.radius


def _edges(value: Numbers, what: str) -> Float[Array, " dim"]:
    edges = _checks.real(value, (dimension_of(value),), what)
    known = _checks.concrete(edges)
    if known is not None:
        for length in known:
            _checks.positive(length, f"an edge in {what}")
    return edges


def _edges_within(dimension: int) -> Callable[[Numbers], Float[Array, " dim"]]:
    def check(value: Numbers, what: str) -> Float[Array, " dim"]:
        return _edges(_checks.real(value, (dimension,), what), what)

    return cast(Field, _SIZE)._replace(
        admits=f"{dimension} numbers > 0", check=check, shape=(dimension,), within=None
    )


_SIZE: Callable[[Numbers], Float[Array, " dim"]] = Field(
    "size",
    "m",
    "edges along its own axes",
    list[float],
    "2 numbers > 0, 3 in space",
    _edges,
    _edges_within,
)


_BODY_AXES = "the body's axes"
_ORIENTATION = ORIENTATION._replace(
    meaning="in space, from its axes to the world's, reference configuration",
    left_out=_BODY_AXES,
    others=(),
    exclusive=False,
    split=None,
)
_ANGLE = optional(
    number("angle", "rad", "in the plane, of its axes, reference configuration", Moves.angle),
    _BODY_AXES,
)


class ContactBox(AbstractContactShape):
    """A box, in the plane a rectangle.

    **Arguments:** `size`: its edges (m), two in the plane; `at`: the centre, a world point in the
    reference configuration (m), default the body's own point; `orientation`: in space, quaternion
    from the box's axes to the world's in the reference configuration; `angle`: in the plane (rad);
    default the axes of the body.
    """

    kind: ClassVar[str] = "box"
    size: Float[Array, " dim"] = eqx.field(converter=_SIZE)
    at: Float[Array, " dim"] | None = eqx.field(default=None, kw_only=True, converter=_AT)
    orientation: Float[Array, "4"] | None = eqx.field(
        default=None, kw_only=True, converter=_ORIENTATION
    )
    angle: Scalar | None = eqx.field(default=None, kw_only=True, converter=_ANGLE)

    def __check_init__(self):
        """It lies in the plane or in space."""
        _refuse_two_dimensions("size", self.size, self.at)
        other, own = "orientation", "angle"
        if self.size.shape == (3,):
            other, own = own, other
        if getattr(self, other) is not None:
            raise ValueError(
                f"size has {self.size.shape[0]} numbers, and a box of that dimension has `{own}` "
                f"and no `{other}`."
            )

    @property
    def dimension(self) -> int | None:
        return self.size.shape[0]

    def frame(self, reference: PlacedFrame) -> PlacedFrame:
        if self.dimension == 2:
            assert isinstance(reference, PlanarFrame)
            origin = reference.origin if self.at is None else self.at
            return PlanarFrame(origin, reference.angle if self.angle is None else self.angle)
        assert isinstance(reference, SpatialFrame)
        origin = reference.origin if self.at is None else self.at
        if self.orientation is None:
            return SpatialFrame(origin, reference.rotation)
        return SpatialFrame(origin, rotation_from_quaternion(self.orientation))

    def is_placed(self) -> bool:
        return self.at is not None

    def solid(self) -> Block:
        return Block(self.size / 2)

    def smallest_dimension(self) -> Scalar | None:
        return jnp.min(self.size)


def _corners(value: Any, what: str) -> Float[Array, "n dim"]:
    shape = _checks.shape_of(value)
    if len(shape) != 2 or shape[1] not in (2, 3) or shape[0] <= shape[1]:
        raise ValueError(
            f"{what} must hold at least 3 world points of 2 numbers, in space 4 of 3 numbers, got "
            f"{_checks.shown(value)}."
        )
    return _checks.real(value, shape, what)


def _faces(points: Float[Array, "n dim"], what: str) -> tuple[tuple[int, ...], ...]:
    """Faces of the convex hull.

    **Raises:** `ValueError` for points in one plane (in the plane on one line), and for points that
    are not known.
    """
    known = _checks.concrete(points)
    if known is None:
        raise ValueError(f"{what} must be known numbers, as the faces follow from them.")
    known = np.asarray(known)
    try:
        hull = spatial.ConvexHull(known)
    except (spatial.QhullError, ValueError):
        flat = "on one line" if known.shape[1] == 2 else "in one plane"
        raise ValueError(f"{what} lie {flat}; a polytope has a volume.") from None
    faces = []
    for face, plane in zip(hull.simplices, hull.equations, strict=True):
        corners = known[face]
        along = corners[1] - corners[0]
        if known.shape[1] == 2:
            across = np.array([along[1], -along[0]])
        else:
            across = np.cross(along, corners[2] - corners[0])
        order = face if across @ plane[:-1] > 0 else face[::-1]
        faces.append(tuple(int(k) for k in order))
    return tuple(faces)


_VERTICES: Callable[[Numbers], Float[Array, "n dim"]] = Field(
    "vertices",
    "m",
    "its corners, in the reference configuration",
    list[list[float]],
    "at least 3 world points, in space 4",
    _corners,
    moves=Moves.point,
)


class ContactPolytope(AbstractContactShape):
    """A convex polytope, in the plane a convex polygon: the convex hull of points.

    **Arguments:** `vertices` (n, dim): world points in the reference configuration (m), known
    numbers that do not lie in one plane. Which of them make a face is decided from these.

    **Raises:** `ValueError`.
    """

    kind: ClassVar[str] = "polytope"
    vertices: Float[Array, "n dim"] = eqx.field(converter=_VERTICES)
    faces: tuple[tuple[int, ...], ...] = eqx.field(static=True)

    def __init__(self, vertices: Numbers):
        self.vertices = _VERTICES(vertices)
        self.faces = _faces(self.vertices, "vertices")

    @property
    def dimension(self) -> int | None:
        return self.vertices.shape[-1]

    def frame(self, reference: PlacedFrame) -> PlacedFrame:
        del reference
        return unturned_frame(jnp.mean(self.vertices, axis=0))[0]

    def is_placed(self) -> bool:
        return True

    def solid(self) -> Hull:
        return Hull(self.vertices - jnp.mean(self.vertices, axis=0, keepdims=True), self.faces)

    def smallest_dimension(self) -> Scalar | None:
        spread = jnp.max(self.vertices, axis=0) - jnp.min(self.vertices, axis=0)
        return jnp.min(spread)


def _normal(value: Numbers, what: str) -> Float[Array, " dim"]:
    return _checks.direction(value, dimension_of(value), what)


_NORMAL: Callable[[Numbers], Float[Array, " dim"]] = Field(
    "normal",
    "1",
    "of its surface, outward, in the world, reference configuration",
    list[float],
    "2 numbers, 3 in space, not all zero",
    _normal,
    lambda dimension: direction("normal", "of its surface", dimension),
    moves=Moves.vector,
)
_SURFACE = optional(point("at", "on its surface, in the reference configuration"), _CENTRE)


class ContactHalfSpace(AbstractContactShape):
    """All that lies behind a plane; in the plane behind a line: a floor, a wall, a slope.

    **Arguments:** `normal`: a vector of any length in the world, reference configuration, that
    points out of it, to where other bodies are; `at`: a world point on its surface (m), default the
    body's own point, of the ground the world's origin.
    """

    kind: ClassVar[str] = "half_space"
    normal: Float[Array, " dim"] = eqx.field(converter=_NORMAL)
    at: Float[Array, " dim"] | None = eqx.field(default=None, kw_only=True, converter=_SURFACE)

    def __check_init__(self):
        """Normal and point are of one dimension."""
        _refuse_two_dimensions("normal", self.normal, self.at)

    @property
    def dimension(self) -> int | None:
        return self.normal.shape[0]

    def frame(self, reference: PlacedFrame) -> PlacedFrame:
        return _placed(self.at, reference)

    def is_placed(self) -> bool:
        return self.at is not None

    def solid(self) -> Wall:
        return Wall(self.normal / jnp.linalg.norm(self.normal))

    def smallest_dimension(self) -> Scalar | None:
        return None
