"""Ropes over pulleys, and belts between them.

In the plane each entry of a rope's way is a circle with a signed radius: positive where the rope
runs around it counterclockwise, so that the centre lies to the left of its direction of travel,
negative where clockwise, and zero for a point. With d the vector from one centre to the next and b
the difference of their signed radii, the free span between them is the common tangent of length
l = sqrt(d^2 - b^2), whose direction is that of d turned by -atan2(b, l): an outer tangent where
both are passed in the same sense, an inner one otherwise. In space circles have axes
(`_pulleys.py`).
"""

import abc
from collections.abc import Callable, Sequence
from typing import Any, cast, ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .. import _checks
from .._custom_types import NumberList, Numbers, RealScalarLike, Scalar
from .._fields import Field, Moves, optional, positive, reference
from .._geometry import LENGTH, PlanarFrame
from .._programs import Compiling, program
from ._fields import (
    JOINT_NAME,
    planar_frames,
    SOME_BODIES,
    spatial_frames,
    triad,
    unturned,
    unturned_frames,
    world_axes,
)
from ._pulleys import LARGEST_FLEET, space_length, space_outline, space_way
from .base import (
    AbstractGeometricPrimitive,
    AbstractJoint,
    AbstractPrimitive,
    Frames,
    OneSided,
    Row,
)


# --------------------------------------------------------------------------------------------------
# Geometry of the way.
# --------------------------------------------------------------------------------------------------


# A rope that only touches a pulley is wound around it by an angle of rounding, not by a full turn.
_TOUCHES = 1e-9
_TURN = 2 * np.pi
# Between points of drawn arcs (rad).
_STEP = 0.05


class Spans(NamedTuple):
    """Lengths (m) of the free spans, and their directions (rad)."""

    length: Float[Array, " spans"]
    direction: Float[Array, " spans"]


def spans(
    first: Float[Array, "spans 2"],
    second: Float[Array, "spans 2"],
    radius: Float[Array, " spans"],
    other: Float[Array, " spans"],
) -> Spans:
    """Common tangents of pairs of circles with signed radii (m); NaN where circles overlap."""
    between = second - first
    offset = other - radius
    length = jnp.sqrt(jnp.sum(between**2, axis=1) - offset**2)
    ahead = jnp.arctan2(between[:, 1], between[:, 0])
    return Spans(length, ahead - jnp.arctan2(offset, length))


def nearest_turn(angle: Float[Array, " n"], wanted: Float[Array, " n"]) -> Float[Array, " n"]:
    """The angles (rad) plus the full turns that bring them nearest to the wanted ones."""
    return angle - _TURN * jnp.round((angle - wanted) / _TURN)


def rope_length(
    points: Float[Array, "n dim"],
    radii: Float[Array, " n"],
    wound: Float[Array, " n"],
    axes: Float[Array, "n 3 3"] | None = None,
) -> Scalar:
    """Length (m) of a rope's way.

    **Arguments:** `points` (n, dim): centres (m). `radii` (n,): signed (m); zero in space without
    `axes`. `wound` (n,): angle (rad) by which the rope turns at each, within half a turn. `axes`:
    of the circles in space, as of `space_way`.
    """
    if axes is not None:
        way = space_way(points, axes, radii)
        return space_length(way, radii, nearest_turn(way.turned, wound[1:-1]))
    if points.shape[1] == 3:
        # Of derivative zero where neighbours meet.
        square = jnp.sum(jnp.diff(points, axis=0) ** 2, axis=1)
        apart = square > 0
        return jnp.sum(jnp.where(apart, jnp.sqrt(jnp.where(apart, square, 1.0)), 0.0))
    free = spans(points[:-1], points[1:], radii[:-1], radii[1:])
    turned = nearest_turn(jnp.diff(free.direction), wound[1:-1])
    return jnp.sum(free.length) + radii[1:-1] @ turned


def _least_arc(
    turned: Float[Array, " n"], wanted: Float[Array, " n"], radii: Float[Array, " n"]
) -> Scalar:
    """The least angle (rad) of arcs, in the senses of their circles; infinite without a circle."""
    arcs = jnp.sign(radii) * nearest_turn(turned, wanted)
    return jnp.min(jnp.where(radii != 0, arcs, jnp.inf), initial=jnp.inf)


def _wound(turned: Float[Array, " n"], radii: Float[Array, " n"]) -> Float[Array, " n"]:
    """Change of direction (rad) at each circle, in the sense of its signed radius (m), as an angle
    from 0 to a full turn that is positive counterclockwise."""
    sense = jnp.sign(radii)
    return sense * (jnp.mod(sense * turned + _TOUCHES, _TURN) - _TOUCHES)


def reference_way(
    points: Float[Array, "n dim"],
    radii: Float[Array, " n"],
    axes: Float[Array, "n 3 3"] | None = None,
) -> tuple[Scalar, Float[Array, " n"]]:
    """Length (m) of a rope's way in the reference configuration, where it is wound by less than a
    full turn around each circle, and these angles (rad), positive counterclockwise."""
    return _reference_way(points, radii) if axes is None else _space_way(points, radii, axes)[:2]


@program(compiling=Compiling.ONCE, of_arrays=True)
def _space_way(
    points: Float[Array, "n 3"], radii: Float[Array, " n"], axes: Float[Array, "n 3 3"]
) -> tuple[Scalar, Float[Array, " n"], Float[Array, " spans"]]:
    """The same around circles in space, and the fleet angle of each span (rad)."""
    way = space_way(points, axes, radii)
    wound = jnp.zeros_like(radii).at[1:-1].set(_wound(way.turned, radii[1:-1]))
    return space_length(way, radii, wound[1:-1]), wound, way.spans.fleet


@program(compiling=Compiling.ONCE, of_arrays=True)
def _reference_way(
    points: Float[Array, "n dim"], radii: Float[Array, " n"]
) -> tuple[Scalar, Float[Array, " n"]]:
    wound = jnp.zeros_like(radii)
    if points.shape[1] == 2 and radii.shape[0] > 2:
        free = spans(points[:-1], points[1:], radii[:-1], radii[1:])
        wound = wound.at[1:-1].set(_wound(jnp.diff(free.direction), radii[1:-1]))
    return rope_length(points, radii, wound), wound


def outline(
    points: Any, radii: Array, wound: Array, closed: bool = False, axes: Any = None
) -> Float[np.ndarray, "m dim"]:
    """The line of a way, with points on its arcs every few degrees; known numbers only.

    **Arguments:** `points`, `radii`, `wound`, `axes`: as of `rope_length`. `closed`: does the last
    span lead back to the first circle?
    """
    given = np.asarray(points, dtype=float)
    if axes is not None:
        way = space_way(jnp.asarray(given), jnp.asarray(axes), jnp.asarray(radii))
        turned = np.asarray(nearest_turn(way.turned, jnp.asarray(wound)[1:-1]))
        return space_outline(given, np.asarray(axes), np.asarray(radii), way, turned)
    if given.shape[1] == 3:
        return given
    known, signed, around = (jnp.asarray(x) for x in (given, radii, wound))
    order = np.append(np.arange(len(given)), 0) if closed else np.arange(len(given))
    first, second = known[order[:-1]], known[order[1:]]
    free = spans(first, second, signed[order[:-1]], signed[order[1:]])
    heading = np.asarray(free.direction)
    arriving = np.roll(heading, 1) if closed else np.append(heading[:1], heading)
    leaving = heading if closed else np.append(heading, heading[-1:])
    turned = np.asarray(nearest_turn(jnp.asarray(leaving - arriving), around))
    lines = []
    for k, centre in enumerate(given):
        steps = 1 + int(np.ceil(abs(turned[k]) / _STEP)) if radii[k] else 1
        angles = arriving[k] + turned[k] * np.linspace(0.0, 1.0, steps)
        side = np.stack([np.sin(angles), -np.cos(angles)], axis=1)
        lines.append(centre + float(radii[k]) * side)
    return np.concatenate([*lines, lines[0][:1]] if closed else lines)


# Points of drawn arcs and circles in pictures of many states.
_ARC_POINTS, _CIRCLE_POINTS = 17, 33


def drawn_way(
    points: Float[Array, "n dim"],
    radii: Float[Array, " n"],
    wound: Float[Array, " n"],
    axes: Float[Array, "n 3 3"] | None = None,
    closed: bool = False,
) -> tuple[Float[Array, "m dim"], Float[Array, "n k dim"]]:
    """The line of a way, with as many points for each entry, and the circle of each, whose points
    coincide where there is none. Arguments as of `outline`, of one of many states."""
    if points.shape[1] == 3 and axes is None:
        return points, points[:, None]
    if axes is None:
        planes = jnp.broadcast_to(jnp.eye(2, dtype=points.dtype), (points.shape[0], 2, 2))
        order = jnp.arange(points.shape[0] + closed) % points.shape[0]
        first, second = order[:-1], order[1:]
        free = spans(points[first], points[second], radii[first], radii[second])
        leaves = reaches = free.direction
    else:
        planes = axes[:, :, :2]
        found = space_way(points, axes, radii).spans
        leaves, reaches = found.leaves, found.reaches
    if closed:
        arriving, leaving = jnp.roll(reaches, 1), leaves
    else:
        arriving = jnp.concatenate([leaves[:1], reaches])
        leaving = jnp.concatenate([leaves, reaches[-1:]])
    turned = nearest_turn(leaving - arriving, wound)
    angles = arriving[:, None] + turned[:, None] * jnp.linspace(0.0, 1.0, _ARC_POINTS)[None]
    across = jnp.stack([jnp.sin(angles), -jnp.cos(angles)], axis=-1)
    line = points[:, None] + radii[:, None, None] * jnp.einsum("nij,nkj->nki", planes, across)
    line = line.reshape(-1, points.shape[1])
    around = jnp.linspace(0.0, 2 * jnp.pi, _CIRCLE_POINTS)
    circle = jnp.stack([jnp.cos(around), jnp.sin(around)], axis=-1)
    circles = points[:, None] + radii[:, None, None] * jnp.einsum("nij,kj->nki", planes, circle)
    return (jnp.concatenate([line, line[:1]]) if closed else line), circles


class AbstractWay(eqx.Module):
    """A rope, belt or tendon along a way through its first markers."""

    @abc.abstractmethod
    def drawn(self, frames: Frames) -> tuple[Float[Array, "m dim"], Float[Array, "n k dim"]]:
        """The line and the circles of the way (`drawn_way`)."""


# --------------------------------------------------------------------------------------------------
# Declarations that ropes, elastic ropes and belts share.
# --------------------------------------------------------------------------------------------------


def _names(value: Any, what: str) -> tuple[str, ...]:
    names = _checks.name_list(value, what)
    if len(names) < 2 or not all(names):
        raise ValueError(
            f"{what} must name a body for each point, at least two, got "
            f"{_checks.shown(list(names))}."
        )
    if len(set(names)) < 2:
        raise ValueError(
            f"{what} names {_checks.shown(names[0])} alone; name at least two different bodies "
            '("ground" is the fixed frame).'
        )
    return names


ROPE_BODIES = cast(Field, SOME_BODIES)._replace(
    meaning="one for each point, in the order of its way",
    admits="at least two names, of which some may be the same",
    check=_names,
)


def _points(value: Any, what: str) -> Float[Array, "n dim"]:
    shape = _checks.shape_of(value)
    if len(shape) != 2 or shape[0] < 2 or shape[1] not in (2, 3):
        raise ValueError(
            f"{what} must hold at least two world points of 2 numbers (in space 3) each, got "
            f"{_checks.shown(value)}."
        )
    return _checks.real(value, shape, what)


ROPE_POINTS: Callable[[Numbers], Float[Array, "n dim"]] = Field(
    "points",
    "m",
    "anchors, eyelets and centres of pulleys in the reference configuration",
    list[list[float]],
    "one world point for each body",
    _points,
    moves=Moves.point,
)


def _radii(value: Any, what: str) -> Float[Array, " n"]:
    radii = _checks.numbers(value, what)
    known = _checks.concrete(radii)
    if known is not None and np.any(known < 0):
        raise ValueError(f"{what} must be at least 0, got {_checks.shown(value)}.")
    return radii


def _senses(value: Any, what: str) -> Float[Array, " n"]:
    senses = _checks.numbers(value, what)
    known = _checks.concrete(senses)
    if known is not None and not np.all(np.isin(known, (-1.0, 0.0, 1.0))):
        raise ValueError(
            f"{what} must be 1 (counterclockwise), -1 (clockwise) or 0 (a point), got "
            f"{_checks.shown(value)}."
        )
    return senses


ROPE_RADII = cast(
    Callable[[NumberList | None], Float[Array, " n"] | None],
    optional(
        Field(
            "radii",
            "m",
            "of pulleys; 0 for anchors and eyelets",
            list[float],
            "one number >= 0 for each point, 0 at both ends",
            _radii,
        ),
        "points alone",
    ),
)
_SENSES = Field(
    "senses",
    "1",
    "how it runs around each pulley: 1 counterclockwise, -1 clockwise",
    list[float],
    "1 or -1 for each pulley, 0 for a point",
    _senses,
)
ROPE_SENSES = cast(
    Callable[[NumberList | None], Float[Array, " n"] | None],
    optional(_SENSES, "no pulleys"),
)


def _axes(value: Any, what: str) -> Float[Array, "n 3"]:
    shape = _checks.shape_of(value)
    if len(shape) != 2 or shape[1] != 3:
        raise ValueError(
            f"{what} must hold a direction of 3 numbers for each point, zeros where there is no "
            f"pulley, got {_checks.shown(value)}."
        )
    return _checks.real(value, shape, what)


ROPE_AXES = cast(
    Callable[[Numbers | None], Float[Array, "n 3"] | None],
    optional(
        Field(
            "axes",
            "1",
            "in space, of pulleys in the reference configuration; zeros for points",
            list[list[float]],
            "one direction of 3 numbers for each point",
            _axes,
            moves=Moves.vector,
        ),
        "no pulleys in space",
    ),
)


class Way(NamedTuple):
    """The data of a way that ropes, elastic ropes and tendons have in common."""

    bodies: tuple[str, ...]
    points: Array
    radii: Array | None
    senses: Array | None
    axes: Array | None

    def frames(self) -> Frames:
        """Frames at the points; those of pulleys in space have the axis as z."""
        if self.axes is None:
            return unturned_frames(self.points)
        turns = way_axes(self.axes)
        return tuple(
            frame
            for k in range(self.points.shape[0])
            for frame in spatial_frames(self.points[k : k + 1], turns[k])
        )

    def reference(self) -> tuple[Float[Array, " n"], Scalar, Float[Array, " n"]]:
        """Signed radii, and what `reference_way` finds."""
        radii = signed_radii(self)
        return radii, *reference_way(self.points, radii, self.orientations())

    def orientations(self) -> Float[Array, "n 3 3"] | None:
        """Orientations of the frames (n, 3, 3); None without pulleys in space."""
        return None if self.axes is None else way_axes(self.axes)

    def drawn(self, points: Any, frames: Any = None) -> Float[np.ndarray, "m dim"]:
        """The line at these points (m); `frames`: orientations there, default as they were."""
        radii, _, wound = self.reference()
        axes = self.orientations() if frames is None or self.axes is None else frames
        return outline(points, radii, wound, axes=axes)


@program(compiling=Compiling.ONCE, of_arrays=True)
def way_axes(axes: Float[Array, "n 3"]) -> Float[Array, "n 3 3"]:
    """Orientations with these z axes; the world's where there is none."""
    none = jnp.all(axes == 0, axis=1)
    up = jnp.asarray([0.0, 0.0, 1.0], axes.dtype)
    turned = jax.vmap(triad)(jnp.where(none[:, None], up, axes))
    return jnp.where(none[:, None, None], world_axes().astype(axes.dtype), turned)


def way_orientations(frames: Frames, around: bool) -> Float[Array, "n 3 3"] | None:
    """Orientations of markers, where a rope runs around circles in space."""
    return jnp.stack([frame.rotation for frame in frames]) if around else None


def signed_radii(way: Way) -> Float[Array, " n"]:
    """Radii (m) of a rope's way, negative where it runs clockwise."""
    points, radii, senses = way.points, way.radii, way.senses
    if radii is None:
        return _checks.known_array(np.zeros(points.shape[0]))
    return radii if senses is None else radii * senses


def check_way(way: Way) -> None:
    """Refuse ways that no rope can take.

    **Raises:** `ValueError`.
    """
    bodies, points, radii, senses, axes = way
    check_counts(bodies, points, radii, senses, axes)
    if axes is not None and points.shape[1] == 2:
        raise ValueError("axes are those of pulleys in space, and points are of the plane.")
    if axes is not None and radii is None:
        raise ValueError("axes are given without `radii`, those of the pulleys; give both.")
    known_radii = None if radii is None else _checks.concrete(radii)
    if radii is None or (known_radii is not None and not np.any(known_radii)):
        check_apart(points, np.zeros(len(bodies)))
        return
    if points.shape[1] == 3 and axes is None:
        raise ValueError(
            "axes is missing: give a direction for each pulley in space (zeros for anchors and "
            "eyelets), or leave radii out, where the rope runs through points alone."
        )
    if senses is None:
        raise ValueError(
            "senses is missing: say for each pulley whether the rope runs around it "
            "counterclockwise (1) or clockwise (-1)."
        )
    if known_radii is None:
        return
    if known_radii[0] or known_radii[-1]:
        raise ValueError(
            "a rope begins and ends at points: the first and the last of radii must be 0."
        )
    check_senses(known_radii, senses)
    check_apart(points, known_radii)
    if axes is not None:
        _check_planes(points, radii * senses, axes)


def _check_planes(points: Array, radii: Array, axes: Array) -> None:
    """**Raises:** `ValueError` for a pulley without an axis, and for spans that leave the plane of
    one."""
    known_radii, known_axes = _checks.concrete(radii), _checks.concrete(axes)
    if _checks.concrete(points) is None or known_radii is None or known_axes is None:
        return
    for k, (radius, axis) in enumerate(zip(known_radii, known_axes, strict=True)):
        if radius and not np.any(axis):
            raise ValueError(f"axes, entry {k + 1} must not be zero, as there is a pulley.")
    length, _, fleet = _space_way(points, radii, way_axes(axes))
    worst = int(np.argmax(np.where(np.isnan(fleet), np.inf, fleet)))
    both = f"entries {worst + 1} and {worst + 2}"
    if fleet[worst] > LARGEST_FLEET:
        raise ValueError(
            f"the span between {both} leaves the plane of a pulley by "
            f"{np.degrees(fleet[worst]):.3g} deg, and a pulley carries a rope within "
            f"{np.degrees(LARGEST_FLEET):.3g} deg of its plane; turn its axis, move the points, or "
            "lead the rope through a point in its place."
        )
    if not np.isfinite(length):
        raise ValueError(f"no span between {both} touches both; move their centres apart.")


def check_counts(
    bodies: Sequence[str],
    points: Array,
    radii: Array | None,
    senses: Array | None,
    axes: Array | None = None,
) -> None:
    """**Raises:** `ValueError` where there are not as many of each as bodies."""
    held = {"points": points, "radii": radii, "senses": senses, "axes": axes}
    counts = {what: x.shape[0] for what, x in held.items() if x is not None}
    if any(count != len(bodies) for count in counts.values()):
        got = ", ".join(f"{count} of {what}" for what, count in counts.items())
        raise ValueError(
            f"{_checks.listed(counts)} must hold one entry for each of the {len(bodies)} "
            f"bodies, got {got}."
        )


def check_senses(radii: np.ndarray, senses: Array) -> None:
    """**Raises:** `ValueError` for a pulley without a sense."""
    known = _checks.concrete(senses)
    if known is None:
        return
    for k in np.flatnonzero((radii > 0) & (known == 0)):
        raise ValueError(f"senses, entry {k + 1} must be 1 or -1, as there is a pulley.")


def check_apart(points: Array, radii: np.ndarray, closed: bool = False) -> None:
    """`closed`: does the last entry have the first one as its neighbour?

    **Raises:** `ValueError` for neighbours that overlap.
    """
    known = _checks.concrete(points)
    if known is None:
        return
    count = len(known)
    for k in range(count if closed else count - 1):
        other = (k + 1) % count
        apart = float(np.linalg.norm(known[other] - known[k]))
        both = f"entries {k + 1} and {other + 1}"
        if apart < _checks.SMALLEST:
            raise ValueError(f"{both} of points coincide, so that the span has no direction.")
        if apart > radii[k] + radii[other]:
            continue
        if radii[k] and radii[other]:
            raise ValueError(f"the circles of {both} overlap; move their centres apart.")
        point, circle = (k, other) if radii[other] else (other, k)
        raise ValueError(
            f"point {point + 1} lies inside the circle of entry {circle + 1}; move it outside."
        )


# --------------------------------------------------------------------------------------------------
# The rope.
# --------------------------------------------------------------------------------------------------


_SLACK = OneSided(1, "tension", "the rope would be slack", opens=True)


class LengthOfWay(AbstractGeometricPrimitive, AbstractWay):
    """The way through the markers keeps the rope's `length` (m): way - length. Its multiplier is
    the tension (N). `arcs` (n,): the angles (rad) by which the rope is wound around the circles in
    the reference configuration; `around`: does it run around circles in space?"""

    radii: Float[Array, " n"]
    arcs: Float[Array, " n"]
    length: Scalar
    around: bool = eqx.field(static=True, default=False)

    @property
    def rows(self) -> tuple[Row, ...]:
        return (Row("l", LENGTH, _SLACK),)

    def position(self, frames: Frames, t: RealScalarLike) -> Float[Array, " geometric"]:
        del t
        points = jnp.stack([frame.origin for frame in frames])
        axes = way_orientations(frames, self.around)
        return (rope_length(points, self.radii, self.arcs, axes) - self.length)[None]

    def drawn(self, frames: Frames) -> tuple[Float[Array, "m dim"], Float[Array, "n k dim"]]:
        points = jnp.stack([frame.origin for frame in frames])
        return drawn_way(points, self.radii, self.arcs, way_orientations(frames, self.around))

    def wound(self, frames: Frames) -> Float[Array, " rows"]:
        points = jnp.stack([frame.origin for frame in frames])
        axes = way_orientations(frames, self.around)
        if axes is not None:
            turned = space_way(points, axes, self.radii).turned
            return _least_arc(turned, self.arcs[1:-1], self.radii[1:-1])[None]
        if points.shape[1] == 3:
            return jnp.full((1,), jnp.inf, points.dtype)
        radii = self.radii
        free = spans(points[:-1], points[1:], radii[:-1], radii[1:])
        return _least_arc(jnp.diff(free.direction), self.arcs[1:-1], radii[1:-1])[None]


class Rope(AbstractJoint):
    """An inextensible rope without mass through points of bodies and around circles on them
    (pulleys), over which it slides without friction: one row,

        sum of the free spans + sum of the arcs - length = 0.

    Its multiplier is the tension (N), the same everywhere, positive where the rope pulls
    (`Reactions.one_sided_force`); what the rope exerts on an anchor or a pulley is its reaction on
    that body. The rotation of a pulley plays no part, unless a `forces.CoulombFriction` in this
    joint lets the rope rub on its circles; the multiplier then is the tension at the last point.
    Equations and verdicts hold the row both ways; a rope that would be slack is told with the
    reactions.

    The equations keep the rope on its pulleys: the angle by which it is wound around each is that
    of the reference configuration (0 to a full turn) plus a change of less than half a turn. Where
    it is negative the rope would have left the pulley, which motions and reactions tell.

    **Arguments:**

    - `bodies`: a name for each point, in the order of the rope's way; a body may come again.
    - `points` (n, 2 or 3): world points (m), reference configuration: anchors first and last,
      eyelets and centres of pulleys between.
    - `radii` (n,): m, of pulleys; 0 for a point. `senses` (n,): 1 where the rope, on its way from
      the first point to the last, runs around the pulley counterclockwise (in space about its
      axis), -1 clockwise, 0 for a point.
    - `axes` (n, 3): in space, world directions of the axes of pulleys in the reference
      configuration, which their bodies carry; zeros for points. The rope may leave the plane of a
      pulley by at most 0.1 rad; a run that goes beyond ends with the rope's name.
    - `length`: m, > 0, at least that of the way; that of the reference configuration if left out.
    """

    kind: ClassVar[str] = "rope"
    name: str = eqx.field(static=True, converter=JOINT_NAME)
    bodies: tuple[str, ...] = eqx.field(static=True, converter=ROPE_BODIES)
    points: Float[Array, "n dim"] = eqx.field(kw_only=True, converter=ROPE_POINTS)
    radii: Float[Array, " n"] | None = eqx.field(default=None, kw_only=True, converter=ROPE_RADII)
    senses: Float[Array, " n"] | None = eqx.field(default=None, kw_only=True, converter=ROPE_SENSES)
    axes: Float[Array, "n 3"] | None = eqx.field(default=None, kw_only=True, converter=ROPE_AXES)
    length: Scalar | None = eqx.field(
        default=None,
        kw_only=True,
        converter=optional(
            positive("length", "m", "of the rope"),
            "that of its way",
            lambda rope: rope.reference_length(),
        ),
    )

    def __check_init__(self):
        """A rope can take its way."""
        check_way(self._way)
        if self.length is None:
            return
        given, way = (_checks.concrete(x) for x in (self.length, self.reference_length()))
        if given is not None and way is not None and given < way * (1 - 1e-9):
            raise ValueError(
                f"length is {given:.9g} m and the way of the rope is {way:.9g} m long in the "
                "reference configuration; make the rope longer, or move the points."
            )

    @property
    def _way(self) -> Way:
        return Way(self.bodies, self.points, self.radii, self.senses, self.axes)

    def placements(self, references: Frames) -> Frames:
        del references
        return self._way.frames()

    def primitives(self) -> tuple[AbstractPrimitive, ...]:
        radii, way, wound = self._way.reference()
        length = way if self.length is None else self.length
        return (LengthOfWay(radii, wound, length, self.axes is not None),)

    def reference_length(self) -> Scalar:
        """Length of the way in the reference configuration (m)."""
        return self._way.reference()[1]

    def outline(
        self, points: Numbers | None = None, rotations: Numbers | None = None
    ) -> Float[np.ndarray, "m dim"]:
        """Points (m, dim) of the rope's line, for drawings. `points` (n, dim): where those of the
        rope are at another state (m), default as in the reference configuration; `rotations`
        (n, 3, 3): of its marker frames there, of ropes around pulleys in space."""
        return self._way.drawn(self.points if points is None else ROPE_POINTS(points), rotations)


# --------------------------------------------------------------------------------------------------
# The belt.
# --------------------------------------------------------------------------------------------------


_BELT_SLACK = OneSided(1, "tension", "the belt would be slack")


def _belt_spans(points: Float[Array, "n 2"], radii: Float[Array, " n"]) -> Spans:
    """From each pulley to the next, and from the last to the first."""
    return spans(points, jnp.roll(points, -1, axis=0), radii, jnp.roll(radii, -1))


@program(compiling=Compiling.ONCE, of_arrays=True)
def _belt_reference(
    points: Float[Array, "n 2"], radii: Float[Array, " n"]
) -> tuple[Scalar, Float[Array, " n"], Float[Array, " n"]]:
    """Length (m) of a belt in the reference configuration, the lengths (m) of its spans there and
    their directions (rad)."""
    free = _belt_spans(points, radii)
    wound = _wound(free.direction - jnp.roll(free.direction, 1), radii)
    return jnp.sum(free.length) + radii @ wound, free.length, free.direction


class SpansOfBelt(AbstractGeometricPrimitive, AbstractWay):
    """The piece of belt between a mark on each pulley and one on the next keeps its length:

        l + (r_1 - r_2) phi - r_1 theta_1 + r_2 theta_2 = constant

    with l and phi the length and the direction of the span, r the signed radii and theta the angles
    of the pulleys. The multiplier is the tension (N) of the span. The last marker is the carrier's,
    against which the turns of phi count. `longer` (m): the belt's length beyond that of the
    reference configuration, of which each piece has its share.
    """

    radii: Float[Array, " n"]
    lengths: Float[Array, " n"]
    directions: Float[Array, " n"]
    longer: Scalar

    @property
    def rows(self) -> tuple[Row, ...]:
        count = self.radii.shape[-1]
        return tuple(Row(str(k + 1), LENGTH, _BELT_SLACK) for k in range(count))

    def position(self, frames: Frames, t: RealScalarLike) -> Float[Array, " geometric"]:
        del t
        *pulleys, carrier = frames
        points = jnp.stack([frame.origin for frame in pulleys])
        angles = jnp.stack([frame.angle for frame in pulleys])
        free = _belt_spans(points, self.radii)
        following = jnp.roll(self.radii, -1)
        # Markers have the world's axes in the reference configuration.
        directions = self.directions + carrier.angle
        turned = nearest_turn(free.direction, directions) - self.directions
        wound = following * jnp.roll(angles, -1) - self.radii * angles
        stretched = free.length - self.lengths + (self.radii - following) * turned + wound
        return stretched - self.longer / self.radii.shape[0]

    def drawn(self, frames: Frames) -> tuple[Float[Array, "m dim"], Float[Array, "n k dim"]]:
        points = jnp.stack([frame.origin for frame in frames[:-1]])
        before = self.directions - jnp.roll(self.directions, 1)
        wound = _wound(before, self.radii)
        return drawn_way(points, self.radii, wound, closed=True)

    def wound(self, frames: Frames) -> Float[Array, " rows"]:
        points = jnp.stack([frame.origin for frame in frames[:-1]])
        directions = _belt_spans(points, self.radii).direction
        turned, before = (x - jnp.roll(x, 1) for x in (directions, self.directions))
        return jnp.sign(self.radii) * nearest_turn(turned, _wound(before, self.radii))


_CARRIER = cast(Field, reference("carrier", "that bears the pulleys"))
_PULLEYS = cast(Field, SOME_BODIES)._replace(
    meaning="the pulleys, in the order of the belt's travel",
    admits="at least two different names",
    check=lambda names, _: tuple(names),
    others=(_CARRIER,),
    split=lambda names: {"bodies": names[:-1], "carrier": names[-1]},
)
_CENTRES = cast(Field, ROPE_POINTS)._replace(
    meaning="centres of the pulleys in the reference configuration",
    admits="one world point of 2 numbers for each pulley",
)
_BELT_RADII = Field(
    "radii", "m", "of the pulleys", list[float], "one number > 0 for each pulley", _radii
)
_BELT_SENSES = _SENSES._replace(
    meaning="how it runs around each pulley: 1 counterclockwise, -1 clockwise",
    admits="1 or -1 for each pulley",
    left_out="1 for all, an open belt",
)


class Belt(AbstractJoint):
    """A closed belt around two or more pulleys, inextensible and without mass, that does not slip:
    rows `.1 .2 ...`, one for each span, from a pulley to the next and from the last to the first.

    Each row keeps the length of belt between a mark on a pulley and one on the next, so that
    rotations are coupled in the ratio of radii and centres keep the length of the belt. The
    multiplier of a row is the tension (N) of its span; what both spans of a pulley exert is the
    belt's reaction on that body: the torque, and the pull on its bearing.

    Where all centres are fixed against each other the rows depend on one another: the difference of
    the tensions of two spans, which makes the torque, is unique, and the pretension, which loads
    the bearings, is not. It is where a tensioner (a pulley under a spring or a weight) sets it.

    **Arguments:**

    - `bodies`: names of the pulleys, in the order in which the belt runs from one to the next; two
      or more, each once; after them the carrier's may stand.
    - `points` (n, 2): their centres (m), world, reference configuration. `radii` (n,): m, > 0.
    - `senses` (n,): 1 for a pulley around which the belt runs counterclockwise, -1 clockwise; all 1
      if left out, an open belt that runs counterclockwise. Two pulleys of unlike senses have a
      crossed belt.
    - `length`: m, > 0; that of the reference configuration if left out.
    - `carrier`: the body that bears the pulleys, default the ground, against which the directions
      of the spans change by less than half a turn.
    """

    kind: ClassVar[str] = "belt"
    name: str = eqx.field(static=True, converter=JOINT_NAME)
    bodies: tuple[str, ...] = eqx.field(static=True, converter=_PULLEYS)
    points: Float[Array, "n 2"] = eqx.field(converter=_CENTRES)
    radii: Float[Array, " n"] = eqx.field(converter=_BELT_RADII)
    senses: Float[Array, " n"] | None = eqx.field(converter=_BELT_SENSES)
    length: Scalar | None = eqx.field(
        converter=optional(
            positive("length", "m", "of the belt"),
            "that of the reference configuration",
            lambda belt: belt.reference_length(),
        ),
    )

    def __init__(
        self,
        name: str,
        bodies: Sequence[str],
        *,
        points: Numbers,
        radii: NumberList,
        senses: NumberList | None = None,
        length: Numbers | None = None,
        carrier: str = "ground",
    ):
        self.name = name
        pulleys = cast(Field, SOME_BODIES)(bodies)
        _CARRIER(carrier)
        self.points = _CENTRES(points)
        self.radii = _BELT_RADII(radii)
        self.senses = _BELT_SENSES(senses)
        self.length = None if length is None else positive("length", "m", "of the belt")(length)
        # As they are written and copied, the last of the bodies is the carrier.
        count = self.points.shape[0]
        if carrier == "ground" and len(pulleys) == count + 1:
            *pulleys, carrier = pulleys
        self.bodies = (*pulleys, carrier)

    def __check_init__(self):
        """A belt can run around the pulleys."""
        *pulleys, carrier = self.bodies
        if len(pulleys) < 2:
            raise ValueError(
                f"bodies must name at least two pulleys, got {_checks.shown(pulleys)}."
            )
        check_counts(pulleys, self.points, self.radii, self.senses)
        if carrier != "ground" and carrier in pulleys:
            raise ValueError(
                f"carrier {_checks.shown(carrier)} is a pulley itself; name the body that bears "
                "the pulleys, or leave carrier out for the ground."
            )
        if self.points.shape[1] != 2:
            raise ValueError("points must be of the plane, 2 numbers each: a belt is planar.")
        known = _checks.concrete(self.radii)
        if known is None:
            return
        if not np.all(known > 0):
            raise ValueError(f"radii must be above 0, got {_checks.shown(known.tolist())}.")
        if self.senses is not None:
            check_senses(known, self.senses)
        check_apart(self.points, known, closed=True)

    @property
    def _signed(self) -> Float[Array, " n"]:
        return self.radii if self.senses is None else self.radii * self.senses

    def placements(self, references: Frames) -> tuple[PlanarFrame, ...]:
        pulleys = planar_frames(self.points, unturned())
        # The carrier's own place has no part.
        return (*pulleys, PlanarFrame(references[-1].origin, unturned()))

    def primitives(self) -> tuple[AbstractPrimitive, ...]:
        way, lengths, directions = _belt_reference(self.points, self._signed)
        longer = jnp.zeros_like(way) if self.length is None else self.length - way
        return (SpansOfBelt(self._signed, lengths, directions, longer),)

    def reference_length(self) -> Scalar:
        """Length of the belt in the reference configuration (m)."""
        return _belt_reference(self.points, self._signed)[0]

    def outline(self, points: Numbers | None = None) -> Float[np.ndarray, "m 2"]:
        """Points (m, 2) of the belt's line, closed, for drawings. `points` (n, 2): the centres at
        another state (m), default as in the reference configuration."""
        signed = self._signed
        direction = _belt_spans(self.points, signed).direction
        wound = _wound(direction - jnp.roll(direction, 1), signed)
        drawn = self.points if points is None else ROPE_POINTS(points)
        return outline(drawn, signed, wound, closed=True)
