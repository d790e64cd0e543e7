"""Spatial joints that are described by a point alone."""

from typing import ClassVar

import equinox as eqx
import numpy as np
from jaxtyping import Array, Float

from ..._geometry import SpatialFrame
from .._fields import JOINT_NAME, SPATIAL_PAIR, TWO_BODIES
from .._placing import spatial_frames, world_axes
from .._primitives import AxesParallel, Coincide, OnLine, OnPlane, SameRotation
from ..base import AbstractJoint, AbstractPrimitive, Frames, Release
from ._turns import onto_axis


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
