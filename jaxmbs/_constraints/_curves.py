"""Joints along curves: a point that stays on a curve, and cams.

A curve is carried by the FIRST body, as its points in the reference configuration. Its place that
touches the second body is found from the frames at each evaluation and has no coordinate of its
own.
"""

from typing import Any, cast, ClassVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float

from .. import _checks
from .._custom_types import RealScalarLike, Scalar, Vector2
from .._fields import (
    curve_points,
    direction,
    Field,
    Moves,
    numbers,
    optional,
    point,
    positive,
    switch,
)
from .._geometry import (
    check_curve,
    curvature,
    LENGTH,
    PlanarFrame,
    rotated,
    sampled,
    Spline,
    spline_through,
)
from ._fields import JOINT_NAME, line_angle, TWO_BODIES, unturned, unturned_frames
from .base import (
    AbstractGeometricPrimitive,
    AbstractJoint,
    AbstractPrimitive,
    Frames,
    OneSided,
    Row,
)


_CONTACT = OneSided(1, "contact force", "the follower has lifted off", opens=True)


# --------------------------------------------------------------------------------------------------
# Conditions. Points of a spline are given in the axes of the first marker.
# --------------------------------------------------------------------------------------------------


class OnPlanarCurve(AbstractGeometricPrimitive):
    """The second marker's origin P keeps a distance from a planar curve: n . (C - P) + offset, with
    the curve's nearest point C and its unit normal n there.

    `side`: +1 where n is the tangent turned by +90 deg, -1 where by -90 deg. `offset` (m): the
    distance of P along n. `clearance` (m): how far along n the radius of curvature must reach; NaN
    where it does not, and beyond the ends.
    """

    spline: Spline
    side: Scalar
    offset: Scalar
    clearance: Scalar
    one_sided: OneSided | None = eqx.field(static=True)

    @property
    def rows(self) -> tuple[Row, ...]:
        return (Row("n", LENGTH, self.one_sided),)

    def position(self, frames: Frames, t: RealScalarLike) -> Float[Array, " geometric"]:
        del t
        first, second = frames
        target = rotated(first.rotation.T, second.origin - first.origin)
        place = self.spline.nearest(target, 1)
        c = place.derivatives()
        normal = self.side * _left(c[1]) / jnp.linalg.norm(c[1])
        gap = jnp.sum(normal * (c[0] - target)) + self.offset
        # A curve that bends away from the normal has a negative curvature towards it.
        fits = 1 - self.side * curvature(c) * self.clearance > 0
        fits = fits | (self.clearance == 0)
        return jnp.where(place.inside & lax.stop_gradient(fits), gap, jnp.nan)[None]


class OnSpatialCurve(AbstractGeometricPrimitive):
    """The second marker's origin P stays on a curve in space: n1, n2 . (C - P), with the curve's
    nearest point C and two normals of its tangent there.

    n1 is the axis of the first marker least aligned with the tangent, made normal to it; n2 =
    tangent x n1. NaN beyond the ends.
    """

    spline: Spline

    @property
    def rows(self) -> tuple[Row, ...]:
        return (Row("n1", LENGTH), Row("n2", LENGTH))

    def position(self, frames: Frames, t: RealScalarLike) -> Float[Array, " geometric"]:
        del t
        first, second = frames
        target = rotated(first.rotation.T, second.origin - first.origin)
        # The normals turn with the place, so that the rows are not stationary in it.
        place = self.spline.nearest(target, 2)
        c = place.derivatives()
        tangent = c[1] / jnp.linalg.norm(c[1])
        least = jnp.argmin(jnp.abs(lax.stop_gradient(tangent)))
        axis = (np.arange(3) == least).astype(tangent.dtype)
        across = axis - jnp.sum(axis * tangent) * tangent
        n1 = across / jnp.linalg.norm(across)
        n2 = jnp.cross(tangent, n1)
        apart = c[0] - target
        gap = jnp.stack([jnp.sum(n1 * apart), jnp.sum(n2 * apart)])
        return jnp.where(place.inside, gap, jnp.nan)


class OnFlatFace(AbstractGeometricPrimitive):
    """A line of the second body, the x axis of its marker, touches a closed convex curve: n . (C -
    P) with the line's normal n away from the curve, the curve's farthest point C along it and the
    marker's origin P.

    `side`: +1 where n is the y axis of the marker, -1 where it is opposite. `turns`: +1 for a curve
    that runs counter-clockwise, -1 for one that runs clockwise; NaN where the curve is hollow.
    """

    spline: Spline
    side: Scalar
    turns: Scalar

    @property
    def rows(self) -> tuple[Row, ...]:
        return (Row("n", LENGTH, _CONTACT),)

    def position(self, frames: Frames, t: RealScalarLike) -> Float[Array, " geometric"]:
        del t
        first, second = frames
        target = rotated(first.rotation.T, second.origin - first.origin)
        normal = rotated(first.rotation.T, self.side * second.rotation[:, 1])
        c = self.spline.farthest(normal).derivatives()
        gap = jnp.sum(normal * (c[0] - target))
        convex = self.turns * curvature(c) > 0
        return jnp.where(lax.stop_gradient(convex), gap, jnp.nan)[None]


def _left(vector: Float[Array, "2"]) -> Float[Array, "2"]:
    return jnp.stack([-vector[1], vector[0]])


# --------------------------------------------------------------------------------------------------
# Joints
# --------------------------------------------------------------------------------------------------


class PointOnCurve(AbstractJoint):
    """A point of the SECOND body stays on a curve carried by the FIRST: a pin in a curved slot, a
    bead on a wire. In the plane one row, along the curve's normal to the left of its direction; in
    space two, `.n1 .n2`.

    The curve is the C2 cubic spline through its points over the lengths of the chords between them.
    With ends it has not-a-knot ends, and a point that comes to one ends a run: beyond it the joint
    is not defined. The point of the curve that is nearest to the body's point counts, so that
    branches of a curve must not come as close to each other as a chord is from its arc.

    The multiplier of the plane's row is the force (N) that pushes the second body to the left.

    **Arguments:**

    - `bodies`: two names, the curve's body first.
    - `at`: world point (m) of the second body, reference configuration.
    - `curve`: its points (n, 2) or (n, 3) in the world (m), reference configuration: at least 4,
      or 5 of a closed one, which does not repeat its first point.
    - `closed`: is it closed?

    **Raises:** `ValueError` for a curve that turns by more than 75 deg from one chord to the next,
    that crosses itself, or whose points coincide.
    """

    kind: ClassVar[str] = "point_on_curve"
    name: str = eqx.field(static=True, converter=JOINT_NAME)
    bodies: tuple[str, ...] = eqx.field(static=True, converter=TWO_BODIES)
    at: Float[Array, " dim"] = eqx.field(
        converter=point("at", "of the second body, reference configuration")
    )
    curve: Float[Array, "n dim"] = eqx.field(
        converter=curve_points("curve", "of the curve on the first body, reference configuration")
    )
    closed: bool = eqx.field(
        static=True, default=False, converter=switch("closed", "does the curve return to its start")
    )

    def __check_init__(self):
        """Points of a curve, in the space of `at`."""
        if self.curve.shape[1] != self.at.shape[0]:
            raise ValueError(
                f"curve has points of {self.curve.shape[1]} numbers, and at has "
                f"{self.at.shape[0]}; give both in the plane or both in space."
            )
        _check_points(self.curve, self.closed, "curve")

    def placements(self, references: Frames) -> Frames:
        del references
        return unturned_frames(_twice(self.at))

    def primitives(self) -> tuple[AbstractPrimitive, ...]:
        spline = _from(self.at, self.curve, self.closed)
        if self.at.shape == (3,):
            return (OnSpatialCurve(spline),)
        return (OnPlanarCurve(spline, _number(1.0), _number(0.0), _number(0.0), None),)

    def length(self) -> Scalar:
        """Length of arc of the curve (m)."""
        return spline_through(self.curve, self.closed).length()

    def along(self, count: int) -> Float[Array, "count dim"]:
        """World points (m) of the curve, reference configuration, at `count` equal steps of its
        parameter from the first point to the last one, or around."""
        return _along(spline_through(self.curve, self.closed), count)


_PROFILE = optional(
    curve_points("profile", "of the cam's outline, reference configuration", 2),
    "by radii",
)
_RADII = optional(
    cast(
        Field,
        numbers(
            "radii",
            "m",
            "of the cam's outline about its centre, at equal angles, counter-clockwise from x",
        ),
    )._replace(moves=Moves.along_marker),
    "by profile",
)
_CENTRE = optional(point("centre", "from which radii count, reference configuration", 2), "none")
_ROLLER = optional(positive("radius", "m", "of the follower's roller"), "no roller")
_FACE = optional(
    direction("face", "along a flat follower's face, reference configuration", 2), "no flat face"
)


class Cam(AbstractJoint):
    """A disc cam, the FIRST body, and its follower, the SECOND, touch: one row, along the common
    normal. The follower has a knife edge, a roller (`radius`) or a flat face (`face`), and a
    joint of its own that guides it along a line or turns it about a pivot.

    The outline is the closed C2 cubic spline through `profile`, or through points at `radii` from a
    `centre` at equal angles. The multiplier is the contact force (N) by which the cam pushes the
    follower away; a contact that does not pull has lifted off where it is negative.

    A roller must fit into the hollows of the outline, and a flat face has none that it could reach:
    both are refused here, and where the cam is designed while it is traced the joint is not defined
    there. The roller does not spin: its rotation takes no part.

    **Arguments:**

    - `bodies`: two names, the cam first.
    - `at`: world point (m) of the follower, reference configuration: its edge, the centre of its
      roller, or any point of its face.
    - `profile` (n, 2): world points of the outline, reference configuration, in order, at least 5;
      or `radii` (n,), m, about `centre` (2,), at angles 0, 360/n, ... deg from the world's x axis,
      counter-clockwise, reference configuration.
    - `radius`: of the roller (m); `pitch_curve`: is the outline the path of the roller's centre?
    - `face`: world direction of the flat face, reference configuration.

    **Raises:** `ValueError` for none or several of these, a roller that does not fit (undercut), a
    flat face on a cam that is hollow (undercut), and points that make no curve (`PointOnCurve`).
    """

    kind: ClassVar[str] = "cam"
    name: str = eqx.field(static=True, converter=JOINT_NAME)
    bodies: tuple[str, ...] = eqx.field(static=True, converter=TWO_BODIES)
    at: Vector2 = eqx.field(converter=point("at", "of the follower, reference configuration", 2))
    profile: Float[Array, "n 2"] | None = eqx.field(default=None, kw_only=True, converter=_PROFILE)
    radii: Float[Array, " n"] | None = eqx.field(default=None, kw_only=True, converter=_RADII)
    centre: Vector2 | None = eqx.field(default=None, kw_only=True, converter=_CENTRE)
    radius: Scalar | None = eqx.field(default=None, kw_only=True, converter=_ROLLER)
    pitch_curve: bool = eqx.field(
        static=True,
        default=False,
        kw_only=True,
        converter=switch("pitch_curve", "is the outline the path of the roller's centre"),
    )
    face: Vector2 | None = eqx.field(default=None, kw_only=True, converter=_FACE)

    def __check_init__(self):
        """One outline, one follower, which fit."""
        if (self.profile is None) == (self.radii is None):
            raise ValueError("a cam has either profile or radii (with centre); give one of them.")
        if (self.radii is None) != (self.centre is None):
            raise ValueError("radii and centre belong together; give both, or profile alone.")
        if self.radius is not None and self.face is not None:
            raise ValueError("a follower has either a roller (radius) or a flat face; give one.")
        if self.pitch_curve and self.radius is None:
            raise ValueError(
                "pitch_curve says that the outline is the path of the roller's centre; give the "
                "roller's radius too."
            )
        self._check_radii()
        outline = self.outline()
        _check_points(outline, True, "profile" if self.radii is None else "radii")
        self._check_undercut(outline)

    def _check_radii(self) -> None:
        known = None if self.radii is None else _checks.concrete(self.radii)
        if known is not None and np.any(known < _checks.SMALLEST):
            k = int(np.argmax(known < _checks.SMALLEST))
            raise ValueError(
                f"radii, entry {k + 1} must be greater than zero, got {known[k]:g}; choose a "
                "centre inside of the outline."
            )

    def _check_undercut(self, outline: Float[Array, "n 2"]) -> None:
        known = _checks.concrete(outline)
        radius = None if self.radius is None else _checks.concrete(self.radius)
        if known is None or (self.face is None and radius is None):
            return
        c = sampled(spline_through(outline, True))
        bend = c[:, 1, 0] * c[:, 2, 1] - c[:, 1, 1] * c[:, 2, 0]
        bend = _area_sign(known) * bend / np.linalg.norm(c[:, 1], axis=1) ** 3
        if radius is None:
            k = int(np.argmin(bend))
            if bend[k] <= 0:
                x, y = c[k, 0]
                raise ValueError(
                    f"the cam is hollow or straight at ({x:.6g}, {y:.6g}), where no flat face "
                    "touches it (undercut); make it convex, with a larger base circle, or take a "
                    "roller."
                )
            return
        # Of a path of the centre what bends outwards is too sharp, of an outline what is hollow.
        hollow = bend if self.pitch_curve else -bend
        k = int(np.argmax(hollow))
        if hollow[k] * radius >= 1:
            (x, y), bound = c[k, 0], 1 / hollow[k]
            raise ValueError(
                f"the roller of radius {float(radius):.6g} m does not fit the cam at ({x:.6g}, "
                f"{y:.6g}), where the radius of curvature is {bound:.6g} m (undercut); take a "
                "smaller roller, or a larger base circle."
            )

    def outline(self) -> Float[Array, "n 2"]:
        """World points (m) through which the outline is laid, reference configuration."""
        if self.radii is None or self.centre is None:
            assert self.profile is not None
            return self.profile
        angles = 2 * np.pi * np.arange(self.radii.shape[0]) / self.radii.shape[0]
        rays = np.stack([np.cos(angles), np.sin(angles)], axis=1)
        return _checks.of_known(
            lambda radii, centre: radii[:, None] * rays + centre[None], self.radii, self.centre
        )

    def placements(self, references: Frames) -> tuple[PlanarFrame, ...]:
        del references
        angle = unturned() if self.face is None else line_angle(self.face)
        return (PlanarFrame(self.at, unturned()), PlanarFrame(self.at, angle))

    def primitives(self) -> tuple[AbstractPrimitive, ...]:
        outline = self.outline()
        spline = _from(self.at, outline, True)
        turns = _checks.of_known(_area_sign, outline)
        if self.face is not None:
            side = _checks.of_known(_face_side, self.face, self.at, outline)
            return (OnFlatFace(spline, side, turns),)
        # The outward normal is to the right of an outline that runs counter-clockwise.
        outwards = _checks.of_known(lambda x: -x, turns)
        none = _number(0.0)
        if self.radius is None:
            return (OnPlanarCurve(spline, outwards, none, none, _CONTACT),)
        if self.pitch_curve:
            inwards = _checks.of_known(lambda x: -x, self.radius)
            return (OnPlanarCurve(spline, outwards, none, inwards, _CONTACT),)
        return (OnPlanarCurve(spline, outwards, self.radius, self.radius, _CONTACT),)

    def length(self) -> Scalar:
        """Length of arc of the outline (m)."""
        return spline_through(self.outline(), True).length()

    def along(self, count: int) -> Float[Array, "count 2"]:
        """World points (m) of the outline, reference configuration, at `count` equal steps of its
        parameter around."""
        return _along(spline_through(self.outline(), True), count)


def _number(value: float) -> Scalar:
    return _checks.known_array(np.asarray(value))


def _twice(at: Float[Array, " dim"]) -> Float[Array, "2 dim"]:
    return _checks.of_known(lambda x: _checks.namespace(x).stack([x, x]), at)


def _from(at: Float[Array, " dim"], points: Float[Array, "n dim"], closed: bool) -> Spline:
    """The spline through the points as seen from `at`, along the world's axes."""
    return spline_through(_checks.of_known(lambda a, p: p - a[None], at, points), closed)


def _along(spline: Spline, count: int) -> Float[Array, "count dim"]:
    share = np.linspace(0.0, 1.0, count, endpoint=not spline.closed)
    u = _checks.of_known(lambda knots: knots[-1] * share, spline.knots)
    return spline.at(u)[:, 0]


def _check_points(points: Float[Array, "n dim"], closed: bool, what: str) -> None:
    known = _checks.concrete(points)
    if known is not None:
        check_curve(known, closed, what)


def _area_sign(outline: Any) -> Any:
    """+1 for an outline that runs counter-clockwise, -1 for one that runs clockwise."""
    xp = _checks.namespace(outline)
    x, y = (outline - outline[:1]).T
    area = xp.sum(x * xp.roll(y, -1) - y * xp.roll(x, -1))
    return xp.where(area > 0, 1.0, -1.0)


def _face_side(face: Any, at: Any, outline: Any) -> Any:
    """+1 where the face's direction turned by +90 deg points away from the cam, -1 else."""
    xp = _checks.namespace(outline)
    x, y = at - xp.mean(outline, axis=0)
    return xp.where(face[0] * y - face[1] * x > 0, 1.0, -1.0)
