"""Tendons: lengths that follow from a motion, as coordinates on which forces and drivers act.

A tendon has no row. It stands among the joints, because motors, stops, friction, springs and
drivers name it as they name a joint.
"""

from collections.abc import Mapping
from typing import Any, cast, ClassVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .. import _checks
from .._custom_types import Numbers, Scalar
from .._fields import Field, Moves, numbers
from .._geometry import LENGTH, Quantity, SpatialFrame
from .._stop_gradient import stop_gradient
from ._fields import JOINT_NAME, SOME_BODIES, triad
from ._primitives import SpatialRotation, SpatialTranslation
from ._ropes import (
    AbstractWay,
    check_way,
    drawn_way,
    ROPE_AXES,
    ROPE_BODIES,
    rope_length,
    ROPE_POINTS,
    ROPE_RADII,
    ROPE_SENSES,
    Way,
    way_orientations,
)
from .base import AbstractCoordinate, AbstractJoint, AbstractPrimitive, Frames


# Frames in space do not count turns: angles of a tendon are known up to this (rad), short of half
# a turn by more than a step of a run changes an angle.
_LARGEST_ANGLE = 3.0
_MEASURES = ("rotation", "translation")


class CombinedCoordinate(AbstractCoordinate):
    """A linear combination of the coordinates of pairs of markers (m): sum of `ratios` times angles
    (rad) and displacements (m). NaN where an angle may have gone beyond half a turn."""

    quantity: ClassVar[Quantity] = LENGTH
    ratios: Float[Array, " n"]
    turning: tuple[bool, ...] = eqx.field(static=True)

    def excess(self, frames: Frames, value: Scalar) -> Scalar:
        zero = jnp.zeros((), frames[0].dtype)
        slide, hinge = SpatialTranslation(zero), SpatialRotation()
        terms, known = [], jnp.ones((), bool)
        for k, turns in enumerate(self.turning):
            own = (hinge if turns else slide).excess(frames[2 * k : 2 * k + 2], zero)
            terms.append(own)
            if turns:
                known = known & (jnp.abs(own) < _LARGEST_ANGLE)
        # Rates are known at every angle.
        doubt = stop_gradient(jnp.where(known, 0.0, jnp.nan).astype(zero.dtype))
        return self.ratios @ jnp.stack(terms) - value + doubt


class LengthCoordinate(AbstractCoordinate, AbstractWay):
    """The length of a way through the markers beyond that in the reference configuration (m)."""

    quantity: ClassVar[Quantity] = LENGTH
    radii: Float[Array, " n"]
    wound: Float[Array, " n"]
    start: Scalar
    around: bool = eqx.field(static=True)

    def drawn(self, frames: Frames) -> tuple[Float[Array, "m dim"], Float[Array, "n k dim"]]:
        frames = frames[: self.radii.shape[0]]
        points = jnp.stack([frame.origin for frame in frames])
        return drawn_way(points, self.radii, self.wound, way_orientations(frames, self.around))

    def excess(self, frames: Frames, value: Scalar) -> Scalar:
        points = jnp.stack([frame.origin for frame in frames])
        axes = way_orientations(frames, self.around)
        return rope_length(points, self.radii, self.wound, axes) - self.start - value


# --------------------------------------------------------------------------------------------------
# A tendon along joints.
# --------------------------------------------------------------------------------------------------


def _pairs(value: Any, what: str) -> tuple[str, ...]:
    names = tuple(value) if isinstance(value, list | tuple) else ()
    if not names or len(names) % 2 or not all(isinstance(x, str) and x for x in names):
        raise ValueError(
            f"{what} must name two bodies for each joint, its first and its second, got "
            f"{_checks.shown(value)}."
        )
    for k in range(0, len(names), 2):
        _checks.body_names(list(names[k : k + 2]), 2)
    return names


def _measures(value: Any, what: str) -> tuple[str, ...]:
    words = tuple(value) if isinstance(value, list | tuple) else ()
    if not words or not all(word in _MEASURES for word in words):
        raise ValueError(
            f"{what} must be one word for each joint, 'rotation' or 'translation', got "
            f"{_checks.shown(value)}."
        )
    return words


def _points(value: Any, what: str) -> Float[Array, "n 3"]:
    return _checks.real(value, (_count(value, what), 3), what)


def _axes(value: Any, what: str) -> Float[Array, "n 3"]:
    found = _checks.real(value, (_count(value, what), 3), what)
    for k in range(found.shape[0]):
        _checks.direction(found[k], 3, f"{what}, entry {k + 1},")
    return found


def _count(value: Any, what: str) -> int:
    shape = _checks.shape_of(value)
    if len(shape) != 2 or shape[0] < 1 or shape[1] != 3:
        raise ValueError(
            f"{what} must hold 3 numbers for each joint, at least one joint, got "
            f"{_checks.shown(value)}."
        )
    return shape[0]


_PAIRS = cast(Field, SOME_BODIES)._replace(
    meaning="two for each joint, first and second",
    admits="an even number of names, of which some may be the same",
    check=_pairs,
)
_WORDS = Field(
    "measures",
    "",
    "which move in each of the pairs of bodies",
    list[str],
    "`rotation` or `translation` for each joint",
    _measures,
)
_ROWS = list[list[float]]
_ON_AXES = Field(
    "points",
    "m",
    "one on each axis, reference configuration",
    _ROWS,
    "one world point for each joint",
    _points,
    moves=Moves.point,
)
_DIRECTIONS = Field(
    "axes",
    "1",
    "in the world, reference configuration",
    _ROWS,
    "one direction of 3 numbers for each joint",
    _axes,
    moves=Moves.vector,
)
_RATIOS = numbers("ratios", "m/rad or 1", "length of the tendon over each coordinate")


class JointTendon(AbstractJoint):
    """A tendon whose length is a linear combination of joint coordinates: of a finger, or of a
    differential. (In MJCF a `fixed` tendon.) With x_k the coordinates,

        translation = ratio_1 x_1 + ratio_2 x_2 + ... (m),

    zero in the reference configuration. Forces and drivers on its `translation` name the tendon as
    their joint: `forces.AxialSpring`, `Motor`, `JointStop` and `JointFriction`, with
    coordinate="translation". A force F along it, which lengthens it where it is positive, acts on
    each joint with ratio_k F, and on bearings not at all. It has neither rows nor mass.

    Each coordinate is that of a revolute, cylindrical or translational joint between the two
    bodies of its pair, which is declared separately: of the SECOND body against the first, about or
    along the axis, zero in the reference configuration. Frames in space do not count turns: where
    an angle is more than 3 rad the translation is NaN, which ends a run.

    **Arguments:** `bodies`: first and second body of each pair; `measures`: for each a word,
    `rotation` or `translation`; `points` (n, 3): one on each axis (m); `axes` (n, 3): world
    directions, both in the reference configuration; `ratios` (n,): m/rad of angles (the moment arm
    of the tendon), 1 of displacements.
    """

    kind: ClassVar[str] = "joint_tendon"
    located: ClassVar[bool] = False
    constrains: ClassVar[bool] = False
    name: str = eqx.field(static=True, converter=JOINT_NAME)
    bodies: tuple[str, ...] = eqx.field(static=True, converter=_PAIRS)
    measures: tuple[str, ...] = eqx.field(static=True, kw_only=True, converter=_WORDS)
    points: Float[Array, "n 3"] = eqx.field(kw_only=True, converter=_ON_AXES)
    axes: Float[Array, "n 3"] = eqx.field(kw_only=True, converter=_DIRECTIONS)
    ratios: Float[Array, " n"] = eqx.field(kw_only=True, converter=_RATIOS)

    def __check_init__(self):
        """There is one of each for each pair of bodies."""
        count = len(self.bodies) // 2
        held = {
            "measures": len(self.measures),
            "points": self.points.shape[0],
            "axes": self.axes.shape[0],
            "ratios": self.ratios.shape[0],
        }
        if any(own != count for own in held.values()):
            got = ", ".join(f"{own} of {what}" for what, own in held.items())
            raise ValueError(
                f"{_checks.listed(held)} must hold one entry for each of the {count} pairs of "
                f"bodies, got {got}."
            )

    def placements(self, references: Frames) -> tuple[SpatialFrame, ...]:
        del references
        count = len(self.measures)
        pairs = [SpatialFrame(self.points[k], triad(self.axes[k])) for k in range(count)]
        return tuple(frame for pair in pairs for frame in (pair, pair))

    def primitives(self) -> tuple[AbstractPrimitive, ...]:
        return ()

    def coordinates(self) -> Mapping[str, AbstractCoordinate]:
        turning = tuple(word == "rotation" for word in self.measures)
        return {"translation": CombinedCoordinate(self.ratios, turning)}


# --------------------------------------------------------------------------------------------------
# A tendon along a way.
# --------------------------------------------------------------------------------------------------


class PathTendon(AbstractJoint):
    """A tendon whose length is that of a way through points of bodies and around pulleys, over
    which it slides without friction: a muscle, the rope of a winch. (In MJCF a `spatial` tendon.)

        translation = length of the way - that in the reference configuration (m).

    Forces and drivers on its `translation` name the tendon as their joint: `forces.AxialSpring`,
    `Motor`, `JointStop` and `JointFriction`, with coordinate="translation". A force F along it,
    which lengthens it where it is positive, acts on each point with the tension -F. It has neither
    rows nor mass. An `AxialSpring` also pushes: a rope that only pulls is a `forces.ElasticRope`,
    or a `JointStop` with its `upper` bound alone. That it stays on its pulleys is not checked.

    **Arguments:** `bodies`, `points`, `radii`, `senses`, `axes`: as of a `Rope`.
    """

    kind: ClassVar[str] = "path_tendon"
    located: ClassVar[bool] = False
    constrains: ClassVar[bool] = False
    name: str = eqx.field(static=True, converter=JOINT_NAME)
    bodies: tuple[str, ...] = eqx.field(static=True, converter=ROPE_BODIES)
    points: Float[Array, "n dim"] = eqx.field(kw_only=True, converter=ROPE_POINTS)
    radii: Float[Array, " n"] | None = eqx.field(default=None, kw_only=True, converter=ROPE_RADII)
    senses: Float[Array, " n"] | None = eqx.field(default=None, kw_only=True, converter=ROPE_SENSES)
    axes: Float[Array, "n 3"] | None = eqx.field(default=None, kw_only=True, converter=ROPE_AXES)

    def __check_init__(self):
        """A tendon can take its way."""
        check_way(self._way)

    @property
    def _way(self) -> Way:
        return Way(self.bodies, self.points, self.radii, self.senses, self.axes)

    def placements(self, references: Frames) -> Frames:
        del references
        return self._way.frames()

    def primitives(self) -> tuple[AbstractPrimitive, ...]:
        return ()

    def coordinates(self) -> Mapping[str, AbstractCoordinate]:
        radii, way, wound = self._way.reference()
        return {"translation": LengthCoordinate(radii, wound, way, self.axes is not None)}

    def reference_length(self) -> Scalar:
        """Length of the way in the reference configuration (m)."""
        return self._way.reference()[1]

    def outline(
        self, points: Numbers | None = None, rotations: Numbers | None = None
    ) -> Float[np.ndarray, "m dim"]:
        """Points (m, dim) of the tendon's line, for drawings: as of a `Rope`."""
        return self._way.drawn(self.points if points is None else ROPE_POINTS(points), rotations)
