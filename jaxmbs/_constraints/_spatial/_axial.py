"""Spatial joints that are described by a point and an axis."""

from collections.abc import Mapping
from typing import ClassVar

import equinox as eqx
from jaxtyping import Array, Float

from ..._custom_types import Scalar, Vector3
from ..._fields import number
from ..._geometry import SpatialFrame
from .._fields import JOINT_NAME, SPATIAL_AXIS, SPATIAL_PAIR, TWO_BODIES
from .._placing import along, spatial_frames, triad
from .._primitives import (
    Advance,
    AxesParallel,
    AxesPerpendicular,
    Coincide,
    OnLine,
    OnPlane,
    SameRotation,
    SpatialRotation,
    SpatialTranslation,
)
from ..base import AbstractCoordinate, AbstractJoint, AbstractPrimitive, Frames, Release
from ._turns import AS_IS, onto_axis


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
