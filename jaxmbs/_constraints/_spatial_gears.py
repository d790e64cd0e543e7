"""Gears of space: on parallel axes, bevel gears, a worm and its wheel, a rack and its pinion. What
their rows say stands in `_gears.py`.
"""

from collections.abc import Sequence
from typing import Any, ClassVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .. import _checks
from .._checks import known_array
from .._custom_types import Numbers, RealScalarLike, Scalar, Vector3
from .._fields import point, positive, two_points
from .._geometry import composed, rotated, SpatialFrame
from ._fields import JOINT_NAME, SPATIAL_AXIS, TWO_AXES
from ._gears import (
    AbstractMesh,
    angle_field,
    check_apart,
    FLANK,
    line_of_action,
    MESHING,
    meshing_bodies,
    PRESSURE_ANGLE,
    STANDARD_PRESSURE_ANGLE,
    TEETH,
    unit,
)
from ._primitives import angle_about_axis
from .base import AbstractJoint, AbstractPrimitive, Frames


_HELIX = angle_field(
    "helix_angle", "of the teeth of the first, positive of a right-hand one", -1.4, 1.4
)
_LEAD = angle_field(
    "lead_angle", "of the thread of the worm, positive of a right-hand one", -1.4, 1.4
)


# --------------------------------------------------------------------------------------------------
# Rows.
# --------------------------------------------------------------------------------------------------


class Spin(eqx.Module):
    """A wheel in space: `turn` (3, 3), its marker's axes in those of the carrier, reference
    configuration: z its axis, x to the pitch point; `radius` (m) from there; `lever` (m) of a unit
    force along the line of action about its axis."""

    turn: Float[Array, "3 3"]
    radius: Scalar
    lever: Scalar

    def of(self, wheel: SpatialFrame, carrier: SpatialFrame) -> tuple[Vector3, Scalar]:
        """The pitch point as if fixed to the wheel without its spin (m, world), and the spin
        (rad), which is known up to full turns."""
        start = SpatialFrame(carrier.origin, composed(carrier.rotation, self.turn))
        angle = angle_about_axis(start, wheel)
        x, y = wheel.rotation[:, 0], wheel.rotation[:, 1]
        return wheel.origin + self.radius * (jnp.cos(angle) * x - jnp.sin(angle) * y), angle


def nearest(gap: Scalar, period: Scalar) -> Scalar:
    """The least of the gaps that differ by whole teeth, or whole turns."""
    return gap - period * jnp.round(gap / period)


class SpatialMesh(AbstractMesh):
    """Two wheels. `normal` (3,): direction of the force on the second, in the carrier's axes;
    `period` (m): from tooth to tooth along it. Frames do not count turns, so that teeth are not
    told apart."""

    normal: Vector3
    first: Spin
    second: Spin
    period: Scalar

    def position(self, frames: Frames, t: RealScalarLike) -> Float[Array, " geometric"]:
        del t
        first, second, carrier = frames
        (one, spin), (other, turned) = (
            self.first.of(first, carrier),
            self.second.of(second, carrier),
        )
        gap = rotated(carrier.rotation, self.normal) @ (other - one)
        return nearest(gap + self.second.lever * turned - self.first.lever * spin, self.period)[
            None
        ]

    def unambiguous(self) -> Float[Array, " rows"]:
        return self.period[None] / 2


class SpatialRackMesh(AbstractMesh):
    """A pinion and a rack, as `PlanarRackMesh`. Turns of the pinion are counted by the rack."""

    normal: Vector3
    along: Vector3
    pinion: Spin

    def position(self, frames: Frames, t: RealScalarLike) -> Float[Array, " geometric"]:
        del t
        pinion, rack, carrier = frames
        one, spin = self.pinion.of(pinion, carrier)
        slid = rotated(carrier.rotation, self.along) @ (rack.origin - carrier.origin)
        there = rack.origin - slid * rotated(rack.rotation, self.along)
        gap = rotated(carrier.rotation, self.normal) @ (there - one)
        gap = gap + self.normal @ self.along * slid - self.pinion.lever * spin
        return nearest(gap, self._turn())[None]

    def unambiguous(self) -> Float[Array, " rows"]:
        return self._turn()[None] / 2

    def _turn(self) -> Scalar:
        return 2 * jnp.pi * jnp.abs(self.pinion.lever)


# --------------------------------------------------------------------------------------------------
# In space.
# --------------------------------------------------------------------------------------------------


class Wheel(eqx.Module):
    """A wheel and the pitch point (m): the foot of that on the axis, and the marker's axes."""

    centre: Vector3
    axes: Float[Array, "3 3"]
    radius: Scalar

    @staticmethod
    def about(axis: Vector3, start: Vector3, pitch: Vector3) -> "Wheel":
        """The wheel about the axis through `start`."""
        z = unit(axis)
        centre = start + ((pitch - start) @ z) * z
        x = unit(pitch - centre)
        axes = jnp.stack([x, jnp.cross(z, x), z], axis=1)
        return Wheel(centre, axes, jnp.linalg.norm(pitch - centre))

    @property
    def ahead(self) -> Vector3:
        """The direction in which a positive spin moves the pitch point."""
        return self.axes[:, 1]

    def frame(self) -> SpatialFrame:
        """Its marker in the reference configuration."""
        return SpatialFrame(self.centre, self.axes)

    def spin(self, normal: Vector3) -> Spin:
        """The wheel under a force along the normal."""
        return Spin(self.axes, self.radius, self.radius * (normal @ self.ahead))


def _acting(
    first: Wheel, tooth: Vector3, sense: Scalar, pressure: Scalar, flank: Scalar
) -> Vector3:
    """From the first wheel to the second. `tooth`: direction of the teeth in the pitch plane, which
    the motion of the pitch point on the first wheel spans with it; `sense`: -1 of an internal
    wheel."""
    outward = jnp.cross(first.ahead, tooth)
    outward = outward * jnp.sign(outward @ first.axes[:, 0])
    across = jnp.cross(tooth, outward)
    across = across * jnp.sign(across @ first.ahead)
    return line_of_action(across, sense * outward, pressure, flank)


def _markers(first: Wheel, second: Wheel, pitch: Vector3) -> tuple[SpatialFrame, ...]:
    carrier = SpatialFrame(pitch, known_array(np.eye(3)))
    return (first.frame(), second.frame(), carrier)


def _mesh(first: Wheel, second: Wheel, normal: Vector3, teeth: Scalar) -> SpatialMesh:
    """The row of two wheels; `teeth` of the first."""
    one, other = first.spin(normal), second.spin(normal)
    return SpatialMesh(normal, one, other, 2 * jnp.pi * jnp.abs(one.lever / teeth))


_ON_AXES: Any = two_points("points", "one on each axis, reference configuration", 3)
_PITCH: Any = two_points(
    "points", "the centre of the pinion and the pitch point, reference configuration", 3
)


class GearPair(AbstractJoint):
    """Two gears on parallel axes, straight or helical, external or internal: one row, as that of
    the plane's `GearPair`, along the line of action through the pitch point. That is in the plane
    across the axes through the first of the `points`, in the middle of the teeth. The force has the
    axial part tan(helix_angle) times the tangential one.

    Frames do not count turns: teeth are not told apart.

    **Arguments:** `bodies`: two names, or three, the carrier's last; `points` (m): one on each
    axis; `axis`: direction of both; `teeth`: two whole numbers, negative of an internal gear;
    `carrier`: the body that holds both axles; `pressure_angle` (rad, of the normal section): 20
    degrees if left out; `helix_angle` (rad): of the first gear, positive of a right-hand one;
    `flank`: 1 (default) if the first gear pushes the second by turning in the positive sense about
    `axis`, else -1.
    """

    kind: ClassVar[str] = "gear_pair"
    name: str = eqx.field(static=True, converter=JOINT_NAME)
    bodies: tuple[str, ...] = eqx.field(static=True, converter=MESHING)
    points: Float[Array, "2 3"] = eqx.field(converter=_ON_AXES)
    axis: Vector3 = eqx.field(converter=SPATIAL_AXIS)
    teeth: Float[Array, "2"] = eqx.field(converter=TEETH)
    pressure_angle: Scalar = eqx.field(converter=PRESSURE_ANGLE)
    helix_angle: Scalar = eqx.field(converter=_HELIX)
    flank: Scalar = eqx.field(converter=FLANK)

    def __init__(
        self,
        name: str,
        bodies: Sequence[str],
        *,
        points: Numbers,
        axis: Numbers,
        teeth: Numbers,
        carrier: str = "ground",
        pressure_angle: Numbers = STANDARD_PRESSURE_ANGLE,
        helix_angle: Numbers = 0.0,
        flank: Numbers = 1.0,
    ):
        self.name = name
        self.bodies = meshing_bodies(bodies, carrier)
        self.points = _ON_AXES(points)
        self.axis = SPATIAL_AXIS(axis)
        self.teeth = TEETH(teeth)
        self.pressure_angle = PRESSURE_ANGLE(pressure_angle)
        self.helix_angle = _HELIX(helix_angle)
        self.flank = FLANK(flank)
        check_apart(self.points, self.axis, "one on each axis")

    def pitch_point(self) -> Vector3:
        """The pitch point (m, world, reference configuration)."""
        z, way = unit(self.axis), self.points[1] - self.points[0]
        share = self.teeth[0] / (self.teeth[0] + self.teeth[1])
        return self.points[0] + share * (way - (way @ z) * z)

    def wheels(self) -> tuple[Wheel, Wheel]:
        """Both gears."""
        first, second = (Wheel.about(self.axis, p, self.pitch_point()) for p in self.points)
        return first, second

    def placements(self, references: Frames) -> tuple[SpatialFrame, ...]:
        del references
        return _markers(*self.wheels(), self.pitch_point())

    def primitives(self) -> tuple[AbstractPrimitive, ...]:
        first, second = self.wheels()
        tooth = _helical(first, self.helix_angle)
        sense = jnp.sign(self.teeth[0])
        normal = _acting(first, tooth, sense, self.pressure_angle, self.flank)
        return (_mesh(first, second, normal, self.teeth[0]),)


def _helical(wheel: Wheel, angle: Scalar) -> Vector3:
    """The direction of teeth of this helix angle; right-hand ones climb along the axis as they go
    round it in the positive sense."""
    return jnp.cos(angle) * wheel.axes[:, 2] + jnp.sin(angle) * wheel.ahead


class BevelPair(AbstractJoint):
    """Two bevel gears with straight teeth, on axes that meet: one row, as that of a `GearPair`. The
    pitch point is in the middle of the teeth, at the mean pitch radius.

    **Arguments:** `bodies`: two names, or three, the carrier's last; `apex` (m): where the axes
    meet; `axes`: two directions, from there to the gears; `teeth`: two whole numbers > 0; `radius`
    (m): mean pitch radius of the first; `carrier`, `pressure_angle`, `flank`: as those of a
    `GearPair` on parallel axes.
    """

    kind: ClassVar[str] = "bevel_pair"
    name: str = eqx.field(static=True, converter=JOINT_NAME)
    bodies: tuple[str, ...] = eqx.field(static=True, converter=MESHING)
    apex: Vector3 = eqx.field(converter=point("apex", "where the axes meet", 3))
    axes: Float[Array, "2 3"] = eqx.field(converter=TWO_AXES)
    teeth: Float[Array, "2"] = eqx.field(converter=TEETH)
    radius: Scalar = eqx.field(converter=positive("radius", "m", "mean pitch radius of the first"))
    pressure_angle: Scalar = eqx.field(converter=PRESSURE_ANGLE)
    flank: Scalar = eqx.field(converter=FLANK)

    def __init__(
        self,
        name: str,
        bodies: Sequence[str],
        *,
        apex: Numbers,
        axes: Numbers,
        teeth: Numbers,
        radius: Numbers,
        carrier: str = "ground",
        pressure_angle: Numbers = STANDARD_PRESSURE_ANGLE,
        flank: Numbers = 1.0,
    ):
        self.name = name
        self.bodies = meshing_bodies(bodies, carrier)
        self.apex = point("apex", "where the axes meet", 3)(apex)
        self.axes = TWO_AXES(axes)
        self.teeth = TEETH(teeth)
        self.radius = positive("radius", "m", "mean pitch radius of the first")(radius)
        self.pressure_angle = PRESSURE_ANGLE(pressure_angle)
        self.flank = FLANK(flank)
        known = _checks.concrete(self.teeth)
        if known is not None and np.any(known < 0):
            raise ValueError(
                f"teeth of bevel gears must be positive, got {_checks.shown(teeth)}; internal "
                "bevel gears are not known."
            )
        _check_crossed(self.axes, "they must meet in the apex")

    def pitch_point(self) -> Vector3:
        """The mean pitch point (m, world, reference configuration). The cone angle delta of the
        first gear follows from tan(delta) = sin(Sigma) / (z_2 / z_1 + cos(Sigma)), Sigma the angle
        between the axes."""
        first, second = (unit(axis) for axis in self.axes)
        cosine = first @ second
        across = second - cosine * first
        sine = jnp.linalg.norm(across)
        height = self.radius * (self.teeth[1] / self.teeth[0] + cosine) / sine
        return self.apex + height * first + self.radius * across / sine

    def wheels(self) -> tuple[Wheel, Wheel]:
        """Both gears."""
        first, second = (Wheel.about(a, self.apex, self.pitch_point()) for a in self.axes)
        return first, second

    def placements(self, references: Frames) -> tuple[SpatialFrame, ...]:
        del references
        return _markers(*self.wheels(), self.pitch_point())

    def primitives(self) -> tuple[AbstractPrimitive, ...]:
        first, second = self.wheels()
        tooth = unit(self.pitch_point() - self.apex)
        one = jnp.ones_like(self.flank)
        normal = _acting(first, tooth, one, self.pressure_angle, self.flank)
        return (_mesh(first, second, normal, self.teeth[0]),)


def _check_crossed(axes: Any, why: str) -> None:
    """
    **Raises:** `ValueError` for parallel axes.
    """
    known = _checks.concrete(axes)
    if known is None:
        return
    one, other = known / np.linalg.norm(known, axis=1, keepdims=True)
    if np.linalg.norm(np.cross(one, other)) < 1e-6:
        raise ValueError(f"axes must not be parallel, as {why}, got {_checks.shown(axes)}.")


class WormPair(AbstractJoint):
    """A worm and its wheel, on axes that cross at a right angle: one row, as that of a `GearPair`.
    The pitch radius of the worm is d / (1 + tan(lead_angle) z_2 / z_1), d the distance of the axes,
    so that the wheel turns by z_1 / z_2 of the worm. Without friction it can be driven from either
    side: what locks a worm is friction of its teeth, a `forces.CoulombFriction` in this joint.

    **Arguments:** `bodies`: worm and wheel, and the carrier, if it is named last; `points` (m): one
    on each axis; `axes`: two directions, perpendicular; `teeth`: the starts of the worm and the
    teeth of the wheel; `lead_angle` (rad, not 0): of the thread at the pitch radius, positive of a
    right-hand one; `carrier`, `pressure_angle`, `flank`: as those of a `GearPair`.
    """

    kind: ClassVar[str] = "worm_pair"
    name: str = eqx.field(static=True, converter=JOINT_NAME)
    bodies: tuple[str, ...] = eqx.field(static=True, converter=MESHING)
    points: Float[Array, "2 3"] = eqx.field(converter=_ON_AXES)
    axes: Float[Array, "2 3"] = eqx.field(converter=TWO_AXES)
    teeth: Float[Array, "2"] = eqx.field(converter=TEETH)
    lead_angle: Scalar = eqx.field(converter=_LEAD)
    pressure_angle: Scalar = eqx.field(converter=PRESSURE_ANGLE)
    flank: Scalar = eqx.field(converter=FLANK)

    def __init__(
        self,
        name: str,
        bodies: Sequence[str],
        *,
        points: Numbers,
        axes: Numbers,
        teeth: Numbers,
        lead_angle: Numbers,
        carrier: str = "ground",
        pressure_angle: Numbers = STANDARD_PRESSURE_ANGLE,
        flank: Numbers = 1.0,
    ):
        self.name = name
        self.bodies = meshing_bodies(bodies, carrier)
        self.points = _ON_AXES(points)
        self.axes = TWO_AXES(axes)
        self.teeth = TEETH(teeth)
        self.lead_angle = _LEAD(lead_angle)
        self.pressure_angle = PRESSURE_ANGLE(pressure_angle)
        self.flank = FLANK(flank)
        self._check()

    def _check(self) -> None:
        teeth, lead = _checks.concrete(self.teeth), _checks.concrete(self.lead_angle)
        if teeth is not None and np.any(teeth < 0):
            raise ValueError(f"teeth of a worm pair must be positive, got {_checks.shown(teeth)}.")
        if lead is not None and lead == 0:
            raise ValueError("lead_angle must not be 0: such a worm does not move its wheel.")
        _check_crossed(self.axes, "those of worm and wheel cross at a right angle")
        axes, points = _checks.concrete(self.axes), _checks.concrete(self.points)
        if axes is None or points is None:
            return
        one, other = axes / np.linalg.norm(axes, axis=1, keepdims=True)
        if abs(one @ other) > 1e-6:
            raise ValueError(
                f"axes must be perpendicular, got {_checks.shown(axes)}; worms at other angles are "
                "not known."
            )
        if abs((points[1] - points[0]) @ np.cross(one, other)) < _checks.SMALLEST:
            raise ValueError(
                f"points must be on axes that do not meet, got {_checks.shown(points)}."
            )

    def pitch_point(self) -> Vector3:
        """Between both axes, on the pitch cylinder of the worm (m, reference configuration)."""
        first, second = (unit(axis) for axis in self.axes)
        way = self.points[1] - self.points[0]
        # From the point of the worm's axis that is nearest to the wheel's.
        start = self.points[0] + (way @ first) * first
        across = jnp.cross(first, second)
        distance = (way @ across) * across
        ratio = self.teeth[1] / self.teeth[0]
        return start + distance / (1 + jnp.abs(jnp.tan(self.lead_angle)) * ratio)

    def wheels(self) -> tuple[Wheel, Wheel]:
        """Worm and wheel."""
        pairs = zip(self.axes, self.points, strict=True)
        worm, wheel = (Wheel.about(a, p, self.pitch_point()) for a, p in pairs)
        return worm, wheel

    def placements(self, references: Frames) -> tuple[SpatialFrame, ...]:
        del references
        return _markers(*self.wheels(), self.pitch_point())

    def directions(self) -> tuple[Vector3, Vector3]:
        """Unit vectors at the pitch point: along the thread, and along the line of action (world,
        reference configuration)."""
        worm, _ = self.wheels()
        # The thread of a right-hand worm climbs along its axis as it goes round.
        quarter = jnp.pi / 2
        helix = jnp.sign(self.lead_angle) * (quarter - jnp.abs(self.lead_angle))
        tooth = _helical(worm, helix)
        one = jnp.ones_like(self.flank)
        return tooth, _acting(worm, tooth, one, self.pressure_angle, self.flank)

    def primitives(self) -> tuple[AbstractPrimitive, ...]:
        _, normal = self.directions()
        return (_mesh(*self.wheels(), normal, self.teeth[0]),)


class RackAndPinion(AbstractJoint):
    """A pinion and a rack in space, straight or helical: one row, as that of a `GearPair`. The rack
    slides across the pinion's axis and the line from its centre to the pitch point, which is in
    the middle of the teeth. The rack counts the turns of the pinion.

    **Arguments:** `bodies`: pinion and rack, and the carrier, if it is named last; `points` (m): a
    point on the pinion's axis and the pitch point; `axis`: direction of the pinion's; `carrier`:
    the body that holds the pinion's axle and guides the rack; `pressure_angle`, `helix_angle`,
    `flank`: as those of a `GearPair`, of the pinion.
    """

    kind: ClassVar[str] = "rack_and_pinion"
    name: str = eqx.field(static=True, converter=JOINT_NAME)
    bodies: tuple[str, ...] = eqx.field(static=True, converter=MESHING)
    points: Float[Array, "2 3"] = eqx.field(converter=_PITCH)
    axis: Vector3 = eqx.field(converter=SPATIAL_AXIS)
    pressure_angle: Scalar = eqx.field(converter=PRESSURE_ANGLE)
    helix_angle: Scalar = eqx.field(converter=_HELIX)
    flank: Scalar = eqx.field(converter=FLANK)

    def __init__(
        self,
        name: str,
        bodies: Sequence[str],
        *,
        points: Numbers,
        axis: Numbers,
        carrier: str = "ground",
        pressure_angle: Numbers = STANDARD_PRESSURE_ANGLE,
        helix_angle: Numbers = 0.0,
        flank: Numbers = 1.0,
    ):
        self.name = name
        self.bodies = meshing_bodies(bodies, carrier)
        self.points = _PITCH(points)
        self.axis = SPATIAL_AXIS(axis)
        self.pressure_angle = PRESSURE_ANGLE(pressure_angle)
        self.helix_angle = _HELIX(helix_angle)
        self.flank = FLANK(flank)
        check_apart(self.points, self.axis, "one on the axis and the pitch point")

    def pinion(self) -> Wheel:
        """The pinion."""
        return Wheel.about(self.axis, *self.points)

    def placements(self, references: Frames) -> tuple[SpatialFrame, ...]:
        del references
        held = SpatialFrame(self.points[1], known_array(np.eye(3)))
        return (self.pinion().frame(), held, held)

    def primitives(self) -> tuple[AbstractPrimitive, ...]:
        pinion = self.pinion()
        tooth = _helical(pinion, self.helix_angle)
        one = jnp.ones_like(self.flank)
        normal = _acting(pinion, tooth, one, self.pressure_angle, self.flank)
        return (SpatialRackMesh(normal, pinion.ahead, pinion.spin(normal)),)
