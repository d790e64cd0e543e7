"""Joints of space."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast, ClassVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .. import _checks
from .._custom_types import NumberList, Numbers, Scalar, Vector3
from .._fields import Field, Moves, number, numbers, positive, two_points
from .._geometry import SpatialFrame
from ._fields import (
    along,
    JOINT_NAME,
    ONE_BODY,
    SOME_BODIES,
    SPATIAL_AXIS,
    spatial_frames,
    SPATIAL_PAIR,
    triad,
    TWO_AXES,
    TWO_BODIES,
    world_axes,
)
from ._primitives import (
    Advance,
    AxesParallel,
    AxesPerpendicular,
    Coincide,
    Coupled,
    COUPLING,
    NoSlip,
    OnLine,
    OnPlane,
    SameRotation,
    SpatialRotation,
    SpatialTranslation,
    Touches,
)
from .base import AbstractCoordinate, AbstractJoint, AbstractPrimitive, Frames, Release


# Both markers of a pair lie at one point in the reference configuration.
_KINDS: Mapping[str, Callable[[], AbstractCoordinate]] = {
    "rotation": SpatialRotation,
    "translation": lambda: SpatialTranslation(jnp.zeros(())),
}


def _four_bodies(value: Any, what: str) -> tuple[str, ...]:
    names = tuple(value) if isinstance(value, list | tuple) else ()
    if len(names) != 4 or not all(isinstance(name, str) and name for name in names):
        raise ValueError(
            f"{what} must name four bodies, first and second of each of the two joints, got "
            f"{_checks.shown(value)}."
        )
    for first, second in (names[:2], names[2:]):
        _checks.body_names([first, second], 2)
    return names


def _two_measures(value: Any, what: str) -> tuple[str, ...]:
    names = tuple(value) if isinstance(value, list | tuple) else ()
    if len(names) != 2 or not all(name in _KINDS for name in names):
        raise ValueError(
            f"{what} must be two words, each 'rotation' or 'translation', got "
            f"{_checks.shown(value)}."
        )
    return names


_BODIES = cast(Field, SOME_BODIES)._replace(
    meaning="of the first coordinate two, then of the second",
    admits="4 names, of which some may be the same",
    check=_four_bodies,
)
_MEASURES = Field(
    "measures",
    "",
    "which move in each of the two pairs of bodies",
    list[str],
    "2 words, each `rotation` or `translation`",
    _two_measures,
)
_POINTS = two_points("points", "one on each axis, reference configuration", 3)
_COEFFICIENTS = numbers(
    "coefficients", "", "c0, c1, ... of the first coordinate as a polynomial of the second"
)


class Coupling(AbstractJoint):
    """The coordinate of one pair of bodies is a polynomial of that of another: a gear between two
    hinges, a rack, a finger that follows another. One row,

        s_1 - (c_0 + c_1 s_2 + c_2 s_2^2 + ...) = 0.

    It acts along the coordinates alone, so that bearings carry nothing of the force between the
    teeth of gears; in a `GearPair` they do.

    Each coordinate is that of a revolute, cylindrical or translational joint between the two
    bodies of its pair, which is declared separately: of the SECOND body against the first, about or
    along the axis, zero in the reference configuration.

    Frames do not count turns: of angles the ones nearest to the condition are meant. A ratio c1 of
    two angles that is a fraction m / n with n at most 100 holds over any number of turns; like
    teeth, phases that differ by 1 / n of a turn are not told apart. Other ratios hold as long as
    both angles stay between -pi and pi, and so do polynomials of more than first degree for the
    second angle; a run ends where they would go beyond.

    **Arguments:** `bodies`: four names, first and second body of each pair; `measures`: two
    words, `rotation` or `translation`; `points` (m): one on each axis; `axes`: two world
    directions, both in the reference configuration; `coefficients`: at least one number.
    """

    kind: ClassVar[str] = COUPLING
    located: ClassVar[bool] = False
    name: str = eqx.field(static=True, converter=JOINT_NAME)
    bodies: tuple[str, ...] = eqx.field(static=True, converter=_BODIES)
    measures: tuple[str, ...] = eqx.field(static=True, converter=_MEASURES)
    points: Float[Array, "2 3"] = eqx.field(converter=_POINTS)
    axes: Float[Array, "2 3"] = eqx.field(converter=TWO_AXES)
    coefficients: Float[Array, " n"] = eqx.field(converter=_COEFFICIENTS)

    def __init__(
        self,
        name: str,
        bodies: Sequence[str],
        *,
        measures: Sequence[str],
        points: Numbers,
        axes: Numbers,
        coefficients: NumberList,
    ):
        self.name = name
        self.bodies = _BODIES(bodies)
        self.measures = _MEASURES(measures)
        self.points = _POINTS(points)
        self.axes = TWO_AXES(axes)
        self.coefficients = _COEFFICIENTS(coefficients)

    def placements(self, references: Frames) -> tuple[SpatialFrame, ...]:
        del references
        pairs = [SpatialFrame(self.points[k], triad(self.axes[k])) for k in range(2)]
        return (pairs[0], pairs[0], pairs[1], pairs[1])

    def primitives(self) -> tuple[AbstractPrimitive, ...]:
        first, second = (_KINDS[word]() for word in self.measures)
        return (Coupled(first, second, self.coefficients),)


_SPIN = cast(Field, SPATIAL_AXIS)._replace(moves=Moves.over_plane)


class RollingDisk(AbstractJoint):
    """A thin disk rolls on the ground's plane z = 0 without slipping: rows `.x .y` (velocity
    of the point of contact, nonholonomic) and `.z` (its height).

    **Arguments:** `bodies`: one name, whose centre of mass is the disk's centre; `axis`:
    world direction of the spin axis, reference configuration, not vertical; `radius`: m.
    """

    kind: ClassVar[str] = "rolling_disk"
    name: str = eqx.field(static=True, converter=JOINT_NAME)
    bodies: tuple[str, ...] = eqx.field(static=True, converter=ONE_BODY)
    axis: Vector3 = eqx.field(kw_only=True, converter=_SPIN)
    radius: Scalar = eqx.field(kw_only=True, converter=positive("radius", "m", "of the disk"))

    def __check_init__(self):
        """The disk touches the plane in one point."""
        known = _checks.concrete(self.axis)
        if known is not None and np.linalg.norm(known[:2]) < 1e-9 * np.linalg.norm(known):
            raise ValueError(
                "axis is vertical: the disk lies flat and has no single point of contact; tilt it."
            )

    def placements(self, references: Frames) -> tuple[SpatialFrame, ...]:
        (centre,) = references
        return (SpatialFrame(centre.origin, triad(self.axis)),)

    def primitives(self) -> tuple[AbstractPrimitive, ...]:
        return (NoSlip(self.radius), Touches(self.radius))


# --------------------------------------------------------------------------------------------------
# Rotations of marker axes, for joints of fewer rows at the place of another.
# --------------------------------------------------------------------------------------------------


def onto_axis(k: int) -> np.ndarray:
    """Rotation (3, 3) whose third column is the k-th of the old axes (0: x, 1: y, 2: z)."""
    return np.roll(np.eye(3), 2 - k, axis=1)


AS_IS = np.eye(3)


# --------------------------------------------------------------------------------------------------
# Spatial joints that are described by a point and an axis.
# --------------------------------------------------------------------------------------------------


_CYLINDRICAL = Release("cylindrical", (OnLine(), AxesParallel()), (AS_IS, AS_IS), axis=2)
_POINT_ON_LINE = Release("point_on_line", (OnLine(),), (AS_IS, AS_IS), axis=2)
_PARALLEL_AXES = Release("parallel_axes", (AxesParallel(),), (AS_IS, AS_IS), axis=2)
_PLANES = tuple(
    Release("point_on_plane", (OnPlane(),), (onto_axis(k), onto_axis(k)), axis=2) for k in range(3)
)


class Revolute(AbstractJoint):
    """Points coincide and axes stay parallel: rows `.x .y .z .a1 .a2`.

    **Arguments:** `bodies`: two names; `at`: world point (m), or two; `axis`: world
    direction, reference configuration. The coordinate `rotation` can be driven.
    """

    kind: ClassVar[str] = "revolute"
    name: str = eqx.field(static=True, converter=JOINT_NAME)
    bodies: tuple[str, ...] = eqx.field(static=True, converter=TWO_BODIES)
    at: Float[Array, "2 3"] = eqx.field(converter=SPATIAL_PAIR)
    axis: Vector3 = eqx.field(converter=SPATIAL_AXIS)

    def placements(self, references: Frames) -> tuple[SpatialFrame, ...]:
        del references
        return spatial_frames(self.at, triad(self.axis))

    def primitives(self) -> tuple[AbstractPrimitive, ...]:
        return (Coincide(3), AxesParallel())

    def coordinates(self) -> Mapping[str, AbstractCoordinate]:
        return {"rotation": SpatialRotation()}

    @classmethod
    def releases(cls) -> tuple[Release, ...]:
        cross = (Coincide(3), AxesPerpendicular())
        return (
            _CYLINDRICAL,
            Release("universal", cross, (AS_IS, onto_axis(0)), axis=2),
            Release("universal", cross, (AS_IS, onto_axis(1)), axis=2),
            Release("spherical", (Coincide(3),)),
            Release("planar", (OnPlane(), AxesParallel()), (AS_IS, AS_IS), axis=2),
            _POINT_ON_LINE,
            _PARALLEL_AXES,
            *_PLANES,
        )


class Translational(AbstractJoint):
    """Motion along `axis` only: rows `.n1 .n2 .rx .ry .rz`.

    **Arguments:** `bodies`: two names; `at`: world point (m), or two; `axis`: world
    direction, reference configuration. The coordinate `translation` can be driven.
    """

    kind: ClassVar[str] = "translational"
    name: str = eqx.field(static=True, converter=JOINT_NAME)
    bodies: tuple[str, ...] = eqx.field(static=True, converter=TWO_BODIES)
    at: Float[Array, "2 3"] = eqx.field(converter=SPATIAL_PAIR)
    axis: Vector3 = eqx.field(converter=SPATIAL_AXIS)

    def placements(self, references: Frames) -> tuple[SpatialFrame, ...]:
        del references
        return spatial_frames(self.at, triad(self.axis))

    def primitives(self) -> tuple[AbstractPrimitive, ...]:
        return (OnLine(), SameRotation(triad(self.axis)))

    def coordinates(self) -> Mapping[str, AbstractCoordinate]:
        return {"translation": SpatialTranslation(along(self.axis, self.at))}

    @classmethod
    def releases(cls) -> tuple[Release, ...]:
        plane = (OnPlane(), AxesParallel())
        sides = [onto_axis(0), onto_axis(1)]
        return (
            _CYLINDRICAL,
            *(Release("planar", plane, (turn, turn), axis=2) for turn in sides),
            _POINT_ON_LINE,
            _PARALLEL_AXES,
            *_PLANES[:2],
        )


class Cylindrical(AbstractJoint):
    """Points stay on the axis, axes parallel: rows `.n1 .n2 .a1 .a2`.

    **Arguments:** `bodies`: two names; `at`: world point (m), or two; `axis`: world
    direction, reference configuration. `rotation` and `translation` can be driven.
    """

    kind: ClassVar[str] = "cylindrical"
    name: str = eqx.field(static=True, converter=JOINT_NAME)
    bodies: tuple[str, ...] = eqx.field(static=True, converter=TWO_BODIES)
    at: Float[Array, "2 3"] = eqx.field(converter=SPATIAL_PAIR)
    axis: Vector3 = eqx.field(converter=SPATIAL_AXIS)

    def placements(self, references: Frames) -> tuple[SpatialFrame, ...]:
        del references
        return spatial_frames(self.at, triad(self.axis))

    def primitives(self) -> tuple[AbstractPrimitive, ...]:
        return (OnLine(), AxesParallel())

    def coordinates(self) -> Mapping[str, AbstractCoordinate]:
        return {
            "translation": SpatialTranslation(along(self.axis, self.at)),
            "rotation": SpatialRotation(),
        }

    @classmethod
    def releases(cls) -> tuple[Release, ...]:
        return (_POINT_ON_LINE, _PARALLEL_AXES)


class Screw(AbstractJoint):
    """As cylindrical, and advance = pitch * angle / 2 pi: rows `.n1 .n2 .a1 .a2 .s`.

    **Arguments:** `bodies`: two names; `at`: world point (m), or two; `axis`: world
    direction, reference configuration; `pitch`: m per turn.
    """

    kind: ClassVar[str] = "screw"
    name: str = eqx.field(static=True, converter=JOINT_NAME)
    bodies: tuple[str, ...] = eqx.field(static=True, converter=TWO_BODIES)
    at: Float[Array, "2 3"] = eqx.field(converter=SPATIAL_PAIR)
    axis: Vector3 = eqx.field(converter=SPATIAL_AXIS)
    pitch: Scalar = eqx.field(converter=number("pitch", "m", "advance in a turn"))

    def placements(self, references: Frames) -> tuple[SpatialFrame, ...]:
        del references
        return spatial_frames(self.at, triad(self.axis))

    def primitives(self) -> tuple[AbstractPrimitive, ...]:
        zero = along(self.axis, self.at)
        return (OnLine(), AxesParallel(), Advance(self.pitch, zero))

    @classmethod
    def releases(cls) -> tuple[Release, ...]:
        return (_CYLINDRICAL, _POINT_ON_LINE, _PARALLEL_AXES)


class Planar(AbstractJoint):
    """A point of the FIRST body stays in a plane of the SECOND, normals parallel: rows
    `.n .a1 .a2`.

    **Arguments:** `bodies`: two names; `at`: world point (m), or two; `axis`: the
    plane's world normal, reference configuration.
    """

    kind: ClassVar[str] = "planar"
    name: str = eqx.field(static=True, converter=JOINT_NAME)
    bodies: tuple[str, ...] = eqx.field(static=True, converter=TWO_BODIES)
    at: Float[Array, "2 3"] = eqx.field(converter=SPATIAL_PAIR)
    axis: Vector3 = eqx.field(converter=SPATIAL_AXIS)

    def placements(self, references: Frames) -> tuple[SpatialFrame, ...]:
        del references
        return spatial_frames(self.at, triad(self.axis))

    def primitives(self) -> tuple[AbstractPrimitive, ...]:
        return (OnPlane(), AxesParallel())

    @classmethod
    def releases(cls) -> tuple[Release, ...]:
        flat = Release("point_on_plane", (OnPlane(),), (AS_IS, AS_IS), axis=2)
        return (_PARALLEL_AXES, flat)


class PointOnLine(AbstractJoint):
    """A point of the FIRST body stays on a line carried by the SECOND: rows `.n1 .n2`.

    **Arguments:** `bodies`: two names; `at`: world point (m), or two; `axis`: the
    line's world direction, reference configuration.
    """

    kind: ClassVar[str] = "point_on_line"
    name: str = eqx.field(static=True, converter=JOINT_NAME)
    bodies: tuple[str, ...] = eqx.field(static=True, converter=TWO_BODIES)
    at: Float[Array, "2 3"] = eqx.field(converter=SPATIAL_PAIR)
    axis: Vector3 = eqx.field(converter=SPATIAL_AXIS)

    def placements(self, references: Frames) -> tuple[SpatialFrame, ...]:
        del references
        return spatial_frames(self.at, triad(self.axis))

    def primitives(self) -> tuple[AbstractPrimitive, ...]:
        return (OnLine(),)

    @classmethod
    def releases(cls) -> tuple[Release, ...]:
        sides = [onto_axis(0), onto_axis(1)]
        return tuple(
            Release("point_on_plane", (OnPlane(),), (turn, turn), axis=2) for turn in sides
        )


class PointOnPlane(AbstractJoint):
    """A point of the FIRST body stays on a plane carried by the SECOND: one row.

    **Arguments:** `bodies`: two names; `at`: world point (m), or two; `axis`: the
    plane's world normal, reference configuration.
    """

    kind: ClassVar[str] = "point_on_plane"
    name: str = eqx.field(static=True, converter=JOINT_NAME)
    bodies: tuple[str, ...] = eqx.field(static=True, converter=TWO_BODIES)
    at: Float[Array, "2 3"] = eqx.field(converter=SPATIAL_PAIR)
    axis: Vector3 = eqx.field(converter=SPATIAL_AXIS)

    def placements(self, references: Frames) -> tuple[SpatialFrame, ...]:
        del references
        return spatial_frames(self.at, triad(self.axis))

    def primitives(self) -> tuple[AbstractPrimitive, ...]:
        return (OnPlane(),)


# --------------------------------------------------------------------------------------------------
# Spatial joints that are described by a point alone.
# --------------------------------------------------------------------------------------------------


class Spherical(AbstractJoint):
    """Two points coincide: rows `.x .y .z` (Wojtyra & Fraczek 2012, eq. 3).

    **Arguments:** `bodies`: two names; `at`: world point (m) in the reference configuration,
    or two, one on each body.
    """

    kind: ClassVar[str] = "spherical"
    name: str = eqx.field(static=True, converter=JOINT_NAME)
    bodies: tuple[str, ...] = eqx.field(static=True, converter=TWO_BODIES)
    at: Float[Array, "2 3"] = eqx.field(converter=SPATIAL_PAIR)

    def placements(self, references: Frames) -> tuple[SpatialFrame, ...]:
        del references
        return spatial_frames(self.at, world_axes())

    def primitives(self) -> tuple[AbstractPrimitive, ...]:
        return (Coincide(3),)

    @classmethod
    def releases(cls) -> tuple[Release, ...]:
        return point_releases()


class Fixed(AbstractJoint):
    """No relative motion: rows `.x .y .z .rx .ry .rz`.

    **Arguments:** `bodies`: two names; `at`: world point (m), or two.
    """

    kind: ClassVar[str] = "fixed"
    name: str = eqx.field(static=True, converter=JOINT_NAME)
    bodies: tuple[str, ...] = eqx.field(static=True, converter=TWO_BODIES)
    at: Float[Array, "2 3"] = eqx.field(converter=SPATIAL_PAIR)

    def placements(self, references: Frames) -> tuple[SpatialFrame, ...]:
        del references
        return spatial_frames(self.at, world_axes())

    def primitives(self) -> tuple[AbstractPrimitive, ...]:
        return (Coincide(3), SameRotation(world_axes()))

    @classmethod
    def releases(cls) -> tuple[Release, ...]:
        from_axes = [onto_axis(k) for k in range(3)]
        return (
            *(_hinge(turn) for turn in from_axes),
            *(_slide(turn) for turn in from_axes),
            Release("spherical", (Coincide(3),)),
            *point_releases(),
        )


def point_releases() -> tuple[Release, ...]:
    """A point on a line, or on a plane, along each axis of the markers."""
    turns = [(onto_axis(k), onto_axis(k)) for k in range(3)]
    lines = [Release("point_on_line", (OnLine(),), turn, axis=2) for turn in turns]
    planes = [Release("point_on_plane", (OnPlane(),), turn, axis=2) for turn in turns]
    return (*lines, *planes)


def _hinge(turn: np.ndarray) -> Release:
    return Release("revolute", (Coincide(3), AxesParallel()), (turn, turn), axis=2)


def _slide(turn: np.ndarray) -> Release:
    rows = (OnLine(), SameRotation(world_axes() @ turn))
    return Release("translational", rows, (turn, turn), axis=2)


# --------------------------------------------------------------------------------------------------
# Spatial joints that are described by one direction on each body.
# --------------------------------------------------------------------------------------------------


class Universal(AbstractJoint):
    """Points coincide and two axes, one on each body, stay perpendicular: rows
    `.x .y .z .a`.

    **Arguments:** `bodies`: two names; `at`: world point (m), or two; `axes`: two world
    directions, reference configuration (perpendicular there).
    """

    kind: ClassVar[str] = "universal"
    name: str = eqx.field(static=True, converter=JOINT_NAME)
    bodies: tuple[str, ...] = eqx.field(static=True, converter=TWO_BODIES)
    at: Float[Array, "2 3"] = eqx.field(converter=SPATIAL_PAIR)
    axes: Float[Array, "2 3"] = eqx.field(converter=TWO_AXES)

    def placements(self, references: Frames) -> tuple[SpatialFrame, ...]:
        del references
        return _each(self.at, self.axes)

    def primitives(self) -> tuple[AbstractPrimitive, ...]:
        return (Coincide(3), AxesPerpendicular())

    @classmethod
    def releases(cls) -> tuple[Release, ...]:
        ball = Release("spherical", (Coincide(3),))
        return (ball, *point_releases())


class ParallelAxes(AbstractJoint):
    """Two body directions stay parallel: rows `.a1 .a2`.

    **Arguments:** `bodies`: two names; `axes`: two world directions, reference configuration.
    """

    kind: ClassVar[str] = "parallel_axes"
    located: ClassVar[bool] = False
    name: str = eqx.field(static=True, converter=JOINT_NAME)
    bodies: tuple[str, ...] = eqx.field(static=True, converter=TWO_BODIES)
    axes: Float[Array, "2 3"] = eqx.field(converter=TWO_AXES)

    def placements(self, references: Frames) -> tuple[SpatialFrame, ...]:
        return _each(jnp.stack([frame.origin for frame in references]), self.axes)

    def primitives(self) -> tuple[AbstractPrimitive, ...]:
        return (AxesParallel(),)

    @classmethod
    def releases(cls) -> tuple[Release, ...]:
        return tuple(
            Release("perpendicular_axes", (AxesPerpendicular(),), (AS_IS, onto_axis(k)), 2)
            for k in range(2)
        )


class PerpendicularAxes(AbstractJoint):
    """Two body directions stay perpendicular: one row.

    **Arguments:** `bodies`: two names; `axes`: two world directions, reference configuration.
    """

    kind: ClassVar[str] = "perpendicular_axes"
    located: ClassVar[bool] = False
    name: str = eqx.field(static=True, converter=JOINT_NAME)
    bodies: tuple[str, ...] = eqx.field(static=True, converter=TWO_BODIES)
    axes: Float[Array, "2 3"] = eqx.field(converter=TWO_AXES)

    def placements(self, references: Frames) -> tuple[SpatialFrame, ...]:
        return _each(jnp.stack([frame.origin for frame in references]), self.axes)

    def primitives(self) -> tuple[AbstractPrimitive, ...]:
        return (AxesPerpendicular(),)


def _each(points: Float[Array, "2 3"], axes: Float[Array, "2 3"]) -> tuple[SpatialFrame, ...]:
    return tuple(SpatialFrame(p, triad(axis)) for p, axis in zip(points, axes, strict=True))
