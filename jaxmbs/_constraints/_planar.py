"""Joints of the plane."""

from collections.abc import Mapping, Sequence
from typing import cast, ClassVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .. import _checks
from .._checks import known_array
from .._custom_types import Numbers, Scalar, Vector2
from .._fields import direction, Field, number, point, reference
from .._geometry import PlanarFrame
from ._fields import (
    along,
    JOINT_NAME,
    line_angle,
    line_side,
    ONE_BODY,
    PLANAR_AXIS,
    planar_frames,
    PLANAR_PAIR,
    TWO_BODIES,
    unturned,
)
from ._primitives import (
    AnglesInRatio,
    Coincide,
    NoVelocityAcross,
    OnPlanarLine,
    PlanarRotation,
    PlanarTranslation,
    SameAngle,
)
from .base import AbstractCoordinate, AbstractJoint, AbstractPrimitive, Frames, Release


_RATIO = number("ratio", "1", "angle of the first body over that of the second")
_CARRIER = cast(Field, reference("carrier", "against which both angles count"))
# The ground may be the carrier and one of the two.
_BODIES = cast(Field, TWO_BODIES)._replace(
    check=lambda names, _: tuple(names),
    others=(_CARRIER,),
    split=lambda names: {"bodies": names[:2], "carrier": names[2]},
)


class Gear(AbstractJoint):
    """Angle of the first body = ratio * angle of the second, each against the carrier and
    measured from the reference configuration: one row. It acts by torques alone, so that bearings
    carry nothing of the force between teeth; in a `GearPair` they do.

    **Arguments:** `bodies`: two names, or three, the carrier's last; `ratio`: a number;
    `carrier`: a body's name. The ground's angle is 0; it may be any of the bodies.
    """

    kind: ClassVar[str] = "gear"
    located: ClassVar[bool] = False
    name: str = eqx.field(static=True, converter=JOINT_NAME)
    bodies: tuple[str, ...] = eqx.field(static=True, converter=_BODIES)
    ratio: Scalar = eqx.field(converter=_RATIO)

    def __init__(
        self,
        name: str,
        bodies: Sequence[str],
        *,
        ratio: Numbers,
        carrier: str = "ground",
    ):
        self.name = name
        three = isinstance(bodies, Sequence) and not isinstance(bodies, str) and len(bodies) == 3
        if three and carrier == "ground":
            *bodies, carrier = bodies
        first, second = TWO_BODIES(bodies)
        _CARRIER(carrier)
        if carrier != "ground" and carrier in (first, second):
            raise ValueError(
                f"carrier {_checks.shown(carrier)} is one of the two geared bodies itself; name "
                "the body that carries both gears' axles, or leave carrier out for the ground."
            )
        self.bodies = (first, second, carrier)
        self.ratio = _RATIO(ratio)

    def placements(self, references: Frames) -> tuple[PlanarFrame, ...]:
        del references
        return planar_frames(known_array(np.zeros((3, 2))), unturned())

    def primitives(self) -> tuple[AbstractPrimitive, ...]:
        return (AnglesInRatio(self.ratio),)


class KnifeEdge(AbstractJoint):
    """No velocity across an edge carried by one body (nonholonomic): one row, the velocity
    at the point along `direction` turned by +90 deg (Wojtyra & Fraczek 2013, eq. 30).

    **Arguments:** `bodies`: one name; `at`: world point (m); `direction`: world direction of
    the edge, reference configuration.
    """

    kind: ClassVar[str] = "knife_edge"
    name: str = eqx.field(static=True, converter=JOINT_NAME)
    bodies: tuple[str, ...] = eqx.field(static=True, converter=ONE_BODY)
    at: Vector2 = eqx.field(converter=point("at", "in the world, reference configuration", 2))
    direction: Vector2 = eqx.field(
        converter=direction("direction", "of the edge in the world, reference configuration", 2)
    )

    def placements(self, references: Frames) -> tuple[PlanarFrame, ...]:
        del references
        return (PlanarFrame(self.at, line_angle(self.direction)),)

    def primitives(self) -> tuple[AbstractPrimitive, ...]:
        return (NoVelocityAcross(),)


# --------------------------------------------------------------------------------------------------
# Lower pairs of the plane.
# --------------------------------------------------------------------------------------------------


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
