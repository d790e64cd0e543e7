"""Lower pairs of the plane."""

from collections.abc import Mapping
from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..._custom_types import Vector2
from ..._geometry import PlanarFrame
from .._fields import JOINT_NAME, PLANAR_AXIS, PLANAR_PAIR, TWO_BODIES
from .._placing import along, line_angle, line_side, planar_frames, unturned
from .._primitives import (
    Coincide,
    OnPlanarLine,
    PlanarRotation,
    PlanarTranslation,
    SameAngle,
)
from ..base import AbstractCoordinate, AbstractJoint, AbstractPrimitive, Frames, Release


_QUARTER = np.asarray(np.pi / 2)
_AS_IS = np.asarray(0.0)


def _lines() -> tuple[Release, ...]:
    """A point of the first body on a line along each of the second marker's axes."""
    line = (OnPlanarLine(jnp.asarray(1.0)),)
    return (
        Release("point_on_line", line, (_AS_IS, _AS_IS), axis=0),
        Release("point_on_line", line, (_QUARTER, _QUARTER), axis=0),
    )


class Revolute(AbstractJoint):
    """Two points coincide (Haug 1989, section 3.3): rows `.x .y`.

    **Arguments:** `bodies`: two names; `at`: world point (m) in the reference configuration,
    or two, one on each body. The coordinate `rotation` can be driven.
    """

    kind: ClassVar[str] = "revolute"
    name: str = eqx.field(static=True, converter=JOINT_NAME)
    bodies: tuple[str, ...] = eqx.field(static=True, converter=TWO_BODIES)
    at: Float[Array, "2 2"] = eqx.field(converter=PLANAR_PAIR)

    def placements(self, references: Frames) -> tuple[PlanarFrame, ...]:
        del references
        return planar_frames(self.at, unturned())

    def primitives(self) -> tuple[AbstractPrimitive, ...]:
        return (Coincide(2),)

    def coordinates(self) -> Mapping[str, AbstractCoordinate]:
        return {"rotation": PlanarRotation()}

    @classmethod
    def releases(cls) -> tuple[Release, ...]:
        return _lines()


class Translational(AbstractJoint):
    """Motion along `axis` only: rows `.n .r` (Haug 1989, section 3.3).

    **Arguments:** `bodies`: two names; `at`: world point (m), or two; `axis`: world
    direction, reference configuration. The coordinate `translation` can be driven.
    """

    kind: ClassVar[str] = "translational"
    name: str = eqx.field(static=True, converter=JOINT_NAME)
    bodies: tuple[str, ...] = eqx.field(static=True, converter=TWO_BODIES)
    at: Float[Array, "2 2"] = eqx.field(converter=PLANAR_PAIR)
    axis: Vector2 = eqx.field(converter=PLANAR_AXIS)

    def placements(self, references: Frames) -> tuple[PlanarFrame, ...]:
        del references
        return planar_frames(self.at, line_angle(self.axis))

    def primitives(self) -> tuple[AbstractPrimitive, ...]:
        return (OnPlanarLine(line_side(self.axis)), SameAngle())

    def coordinates(self) -> Mapping[str, AbstractCoordinate]:
        return {"translation": PlanarTranslation(along(self.axis, self.at))}

    @classmethod
    def releases(cls) -> tuple[Release, ...]:
        return _lines()[:1]


class Fixed(AbstractJoint):
    """No relative motion: rows `.x .y .r`.

    **Arguments:** `bodies`: two names; `at`: world point (m), or two.
    """

    kind: ClassVar[str] = "fixed"
    name: str = eqx.field(static=True, converter=JOINT_NAME)
    bodies: tuple[str, ...] = eqx.field(static=True, converter=TWO_BODIES)
    at: Float[Array, "2 2"] = eqx.field(converter=PLANAR_PAIR)

    def placements(self, references: Frames) -> tuple[PlanarFrame, ...]:
        del references
        return planar_frames(self.at, unturned())

    def primitives(self) -> tuple[AbstractPrimitive, ...]:
        return (Coincide(2), SameAngle())

    @classmethod
    def releases(cls) -> tuple[Release, ...]:
        slide = (OnPlanarLine(jnp.asarray(1.0)), SameAngle())
        return (
            Release("revolute", (Coincide(2),)),
            Release("translational", slide, (_AS_IS, _AS_IS), axis=0),
            Release("translational", slide, (_QUARTER, _QUARTER), axis=0),
            *_lines(),
        )


class PointOnLine(AbstractJoint):
    """A point of the FIRST body stays on a line carried by the SECOND: one row.

    **Arguments:** `bodies`: two names; `at`: world point (m), or two; `axis`: the line's
    world direction, reference configuration.
    """

    kind: ClassVar[str] = "point_on_line"
    name: str = eqx.field(static=True, converter=JOINT_NAME)
    bodies: tuple[str, ...] = eqx.field(static=True, converter=TWO_BODIES)
    at: Float[Array, "2 2"] = eqx.field(converter=PLANAR_PAIR)
    axis: Vector2 = eqx.field(converter=PLANAR_AXIS)

    def placements(self, references: Frames) -> tuple[PlanarFrame, ...]:
        del references
        return planar_frames(self.at, line_angle(self.axis))

    def primitives(self) -> tuple[AbstractPrimitive, ...]:
        return (OnPlanarLine(line_side(self.axis)),)
