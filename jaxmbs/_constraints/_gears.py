"""Gears whose teeth press on their bearings: pairs of gears, bevel gears, a worm and its wheel, a
rack and its pinion.

Each is one row between two wheels and the carrier of their axles. At the pitch point P, which the
carrier holds, the teeth touch along a direction n, and the row says that the points of both wheels
there have one velocity along it:

    n . (v_P2 - v_P1) = 0.

Its multiplier so is the tooth force, along the line of action through P, and what follows from its
place and direction (the separating force, the axial force of a helical gear, tilting moments) is in
the reactions of the bearings. The row restricts positions: with theta_i the angles of the wheels
against the carrier and p_i where P were on wheel i without its spin, the residual is

    n . (p_2 - p_1) + n . (t_2 theta_2 - t_1 theta_1),     t_i = a_i x (P - C_i),

whose rate is that condition, since the spin of a wheel moves its point at P by t_i theta_i' (a_i:
the axis, C_i: the foot of P on it). Carriers drop out of the rate and carry nothing.

Flanks push and do not pull. The radial part of the force therefore has one sense, whichever way the
torque goes, and a row has one n: that of the `flank` that is meant. Where the other one carries,
the multiplier changes its sign, which is told (`OneSided`).
"""

from collections.abc import Sequence
from typing import Any, cast, ClassVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .. import _checks
from .._custom_types import Numbers, RealScalarLike, Scalar, Vector2
from .._fields import Field, reference, two_points
from .._geometry import LENGTH, PlanarFrame
from ._fields import JOINT_NAME, planar_frames, TWO_BODIES, unturned
from .base import (
    AbstractGeometricPrimitive,
    AbstractJoint,
    AbstractPrimitive,
    Frames,
    OneSided,
    Row,
)


# --------------------------------------------------------------------------------------------------
# What such joints are declared by.
# --------------------------------------------------------------------------------------------------


CARRIER = cast(Field, reference("carrier", "which holds the axles of both"))
# The ground may be the carrier and one of the two.
MESHING = cast(Field, TWO_BODIES)._replace(
    check=lambda names, _: tuple(names),
    others=(CARRIER,),
    split=lambda names: {"bodies": names[:2], "carrier": names[2]},
)


def meshing_bodies(bodies: Sequence[str], carrier: str) -> tuple[str, str, str]:
    """The names of both wheels and of the carrier.

    **Raises:** `ValueError`, `TypeError`.
    """
    three = isinstance(bodies, Sequence) and not isinstance(bodies, str) and len(bodies) == 3
    if three and carrier == "ground":
        *bodies, carrier = bodies
    first, second = TWO_BODIES(bodies)
    CARRIER(carrier)
    if carrier != "ground" and carrier in (first, second):
        raise ValueError(
            f"carrier {_checks.shown(carrier)} is one of the two bodies that mesh; name the body "
            "that carries both axles, or leave carrier out for the ground."
        )
    return first, second, carrier


def _teeth(value: Any, what: str) -> Float[Array, "2"]:
    numbers = _checks.real(value, (2,), what)
    known = _checks.concrete(numbers)
    if known is None:
        return numbers
    if np.any(known != np.round(known)) or np.any(known == 0):
        raise ValueError(
            f"{what} must be two whole numbers other than 0, got {_checks.shown(value)}."
        )
    if np.sum(known) <= 0 and np.min(known) == -np.max(known):
        raise ValueError(
            f"{what} must differ where one gear is internal (a negative number), got "
            f"{_checks.shown(value)}; equal ones have one axis."
        )
    if np.all(known < 0) or (np.any(known < 0) and np.sum(known) > 0):
        raise ValueError(
            f"{what} may have one negative number, of the internal gear, which has more teeth than "
            f"the other, got {_checks.shown(value)}."
        )
    return numbers


TEETH: Any = Field(
    "teeth",
    "1",
    "of both gears; negative of an internal one",
    list[float],
    "2 whole numbers other than 0",
    _teeth,
    shape=(2,),
)


def angle_field(key: str, meaning: str, least: float, most: float) -> Any:
    def check(value: Any, what: str) -> Scalar:
        angle = _checks.real(value, (), what)
        known = _checks.concrete(angle)
        if known is not None and not least <= known <= most:
            raise ValueError(
                f"{what} must be between {least:g} and {most:g} rad, got {_checks.shown(value)}."
            )
        return angle

    bounds = (("minimum", least), ("maximum", most))
    admits = f"a number from {least:g} to {most:g}"
    return Field(key, "rad", meaning, float, admits, check, bounds=bounds)


PRESSURE_ANGLE = angle_field("pressure_angle", "of the teeth, in their normal section", 0.0, 0.8)
STANDARD_PRESSURE_ANGLE = np.pi / 9


def _sense(value: Any, what: str) -> Scalar:
    sense = _checks.real(value, (), what)
    known = _checks.concrete(sense)
    if known is not None and abs(known) != 1:
        raise ValueError(f"{what} must be 1 or -1, got {_checks.shown(value)}.")
    return sense


FLANK: Any = Field(
    "flank",
    "1",
    "which carries: 1 if the first pushes the second by turning in the positive sense, else -1",
    float,
    "1 or -1",
    _sense,
)
_APART = "their axes must not coincide"

TOOTH_FORCE = OneSided(-1, "tooth force", "the other flank would carry (change the sign of flank)")


def check_apart(points: Any, axis: Any, what: str) -> None:
    """
    **Raises:** `ValueError` for points on one axis.
    """
    known = _checks.concrete(points)
    direction = None if axis is None else _checks.concrete(axis)
    if known is None or (axis is not None and direction is None):
        return
    way = known[1] - known[0]
    if direction is not None:
        unit = direction / np.linalg.norm(direction)
        way = way - (way @ unit) * unit
    if np.linalg.norm(way) < _checks.SMALLEST:
        raise ValueError(f"points must be {what}, and {_APART}, got {_checks.shown(points)}.")


def unit(vector: Float[Array, " dim"]) -> Float[Array, " dim"]:
    return vector / jnp.linalg.norm(vector)


def line_of_action(
    ahead: Float[Array, " dim"], outward: Float[Array, " dim"], pressure: Scalar, flank: Scalar
) -> Float[Array, " dim"]:
    """The line of action, from the first wheel to the second; `ahead`: the normal of the teeth in
    the pitch plane, `outward`: out of the body of the first."""
    along = flank * jnp.cos(pressure) * unit(ahead)
    return along + jnp.sin(pressure) * unit(outward)


# --------------------------------------------------------------------------------------------------
# Rows.
# --------------------------------------------------------------------------------------------------


class AbstractMesh(AbstractGeometricPrimitive):
    """Teeth that touch at a point of the carrier: one row, the gap (m) along the line of action."""

    @property
    def rows(self) -> tuple[Row, ...]:
        return (Row("m", LENGTH, TOOTH_FORCE),)


class PlanarMesh(AbstractMesh):
    """Two wheels. In the carrier's axes: `normal` (2,), the direction of the force on the second;
    `reach` (2, 2) from the wheels' centres to the pitch point; `levers` (2,): moments (m) of a unit
    force there about the centres."""

    normal: Vector2
    reach: Float[Array, "2 2"]
    levers: Float[Array, "2"]

    def position(self, frames: Frames, t: RealScalarLike) -> Float[Array, " geometric"]:
        del t
        first, second, carrier = frames
        normal = carrier.rotation @ self.normal
        between = second.origin - first.origin
        between = between + carrier.rotation @ (self.reach[1] - self.reach[0])
        spins = jnp.stack([second.angle - carrier.angle, first.angle - carrier.angle])
        return (normal @ between + self.levers[1] * spins[0] - self.levers[0] * spins[1])[None]


class PlanarRackMesh(AbstractMesh):
    """A pinion and a rack. In the carrier's axes: `normal` (2,), the direction of the force on the
    rack; `along` (2,), a unit vector along which that slides; `reach` (2,) from the pinion's centre
    to the pitch point, where the markers of rack and carrier are; `lever` (m) as above."""

    normal: Vector2
    along: Vector2
    reach: Vector2
    lever: Scalar

    def position(self, frames: Frames, t: RealScalarLike) -> Float[Array, " geometric"]:
        del t
        pinion, rack, carrier = frames
        normal = carrier.rotation @ self.normal
        slid = (carrier.rotation @ self.along) @ (rack.origin - carrier.origin)
        there = rack.origin - slid * (rack.rotation @ self.along)
        between = there - pinion.origin - carrier.rotation @ self.reach
        spin = pinion.angle - carrier.angle
        return (normal @ between + self.normal @ self.along * slid - self.lever * spin)[None]


# --------------------------------------------------------------------------------------------------
# In the plane.
# --------------------------------------------------------------------------------------------------


def _ahead(reach: Float[Array, "2"]) -> Float[Array, "2"]:
    """The direction in which a positive spin moves a point there."""
    return jnp.stack([-reach[1], reach[0]])


_CENTRES: Any = two_points("points", "the centres of both gears, reference configuration", 2)
_PINION: Any = two_points(
    "points", "the centre of the pinion and the pitch point, reference configuration", 2
)


class GearPair(AbstractJoint):
    """Two gears of the plane whose teeth press on their bearings: one row, along the line of action
    through the pitch point, whose multiplier is the tooth force (N, positive of the `flank` that is
    meant; `Reactions.one_sided_force`).

    Pitch radii are those of the reference configuration: its centre distance is shared in the ratio
    of the teeth. The radial part of the force, tan(pressure_angle) times the tangential one, pushes
    the gears apart. Angles count from the reference configuration, full turns as well.

    **Arguments:** `bodies`: two names, or three, the carrier's last; `points` (m): the centres;
    `teeth`: two whole numbers, negative of an internal gear; `carrier`: the body that holds both
    axles; `pressure_angle` (rad): 20 degrees if left out; `flank`: 1 (default) if the first gear
    pushes the second by turning counterclockwise, -1 if clockwise.
    """

    kind: ClassVar[str] = "gear_pair"
    name: str = eqx.field(static=True, converter=JOINT_NAME)
    bodies: tuple[str, ...] = eqx.field(static=True, converter=MESHING)
    points: Float[Array, "2 2"] = eqx.field(converter=_CENTRES)
    teeth: Float[Array, "2"] = eqx.field(converter=TEETH)
    pressure_angle: Scalar = eqx.field(converter=PRESSURE_ANGLE)
    flank: Scalar = eqx.field(converter=FLANK)

    def __init__(
        self,
        name: str,
        bodies: Sequence[str],
        *,
        points: Numbers,
        teeth: Numbers,
        carrier: str = "ground",
        pressure_angle: Numbers = STANDARD_PRESSURE_ANGLE,
        flank: Numbers = 1.0,
    ):
        self.name = name
        self.bodies = meshing_bodies(bodies, carrier)
        self.points = _CENTRES(points)
        self.teeth = TEETH(teeth)
        self.pressure_angle = PRESSURE_ANGLE(pressure_angle)
        self.flank = FLANK(flank)
        check_apart(self.points, None, "apart")

    def pitch_point(self) -> Vector2:
        """The pitch point (m, world, reference configuration)."""
        share = self.teeth[0] / (self.teeth[0] + self.teeth[1])
        return self.points[0] + share * (self.points[1] - self.points[0])

    def placements(self, references: Frames) -> tuple[PlanarFrame, ...]:
        del references
        return planar_frames(jnp.stack([*self.points, self.pitch_point()]), unturned())

    def primitives(self) -> tuple[AbstractPrimitive, ...]:
        reach = self.pitch_point()[None] - self.points
        ahead = _ahead(reach[0])
        outward = reach[0] * jnp.sign(self.teeth[0])
        normal = line_of_action(ahead, outward, self.pressure_angle, self.flank)
        levers = jnp.stack([normal @ ahead, normal @ _ahead(reach[1])])
        return (PlanarMesh(normal, reach, levers),)


class RackAndPinion(AbstractJoint):
    """A pinion and a rack of the plane, whose teeth press on pinion and rack: one row, as that of a
    `GearPair`. The rack slides across the line from the pinion's centre to the pitch point.

    **Arguments:** `bodies`: pinion and rack, and the carrier, if it is named last; `points` (m):
    the centre of the pinion and the pitch point, at the distance of the pitch radius; `carrier`:
    the body that holds the pinion's axle and guides the rack; `pressure_angle` (rad): 20 degrees
    if left out; `flank`: 1 (default) if the pinion pushes the rack by turning counterclockwise, -1
    if clockwise.
    """

    kind: ClassVar[str] = "rack_and_pinion"
    name: str = eqx.field(static=True, converter=JOINT_NAME)
    bodies: tuple[str, ...] = eqx.field(static=True, converter=MESHING)
    points: Float[Array, "2 2"] = eqx.field(converter=_PINION)
    pressure_angle: Scalar = eqx.field(converter=PRESSURE_ANGLE)
    flank: Scalar = eqx.field(converter=FLANK)

    def __init__(
        self,
        name: str,
        bodies: Sequence[str],
        *,
        points: Numbers,
        carrier: str = "ground",
        pressure_angle: Numbers = STANDARD_PRESSURE_ANGLE,
        flank: Numbers = 1.0,
    ):
        self.name = name
        self.bodies = meshing_bodies(bodies, carrier)
        self.points = _PINION(points)
        self.pressure_angle = PRESSURE_ANGLE(pressure_angle)
        self.flank = FLANK(flank)
        check_apart(self.points, None, "the centre and the pitch point")

    def placements(self, references: Frames) -> tuple[PlanarFrame, ...]:
        del references
        centre, pitch = self.points
        return planar_frames(jnp.stack([centre, pitch, pitch]), unturned())

    def primitives(self) -> tuple[AbstractPrimitive, ...]:
        reach = self.points[1] - self.points[0]
        ahead = _ahead(reach)
        normal = line_of_action(ahead, reach, self.pressure_angle, self.flank)
        return (PlanarRackMesh(normal, unit(ahead), reach, normal @ ahead),)
