"""Springs with dampers between two bodies: along a line, about an axis, in all directions."""

import abc
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .. import _checks
from .._constraints import AbstractJoint, Frames, Twists
from .._constraints._fields import unturned_frames
from .._constraints.base import AbstractCoordinate
from .._custom_types import Numbers, Quaternion, RealScalarLike, Scalar
from .._fields import (
    Field,
    Moves,
    Naming,
    not_negative,
    number,
    optional,
    point_or_points,
    two_points,
    vector,
)
from .._geometry import (
    quaternion_exponential,
    quaternion_from_rotation,
    quaternion_logarithm,
    quaternion_product,
    relative_rotation_vector,
    rotated,
)
from .base import AbstractBodyForce, AbstractJointForce, AbstractLoad, FORCE_NAME, JOINT, TWO_BODIES


def rates(frames: Any, twists: Any) -> Frames:
    """The rate of change of each frame that moves with its twist."""
    return tuple(frame.rate(twist) for frame, twist in zip(frames, twists, strict=True))


class AbstractElasticLoad(AbstractLoad):
    """A linear law of a deformation x of the markers:

        stress = stiffness x + damping dx/dt - preload,

    with wrenches of the power -stress . dx/dt. So they balance each other wherever x does not
    change in a rigid motion, and give back what is stored, however large x is.
    """

    stiffness: eqx.AbstractVar[Float[Array, "n n"]]
    damping: eqx.AbstractVar[Float[Array, "n n"]]
    preload: eqx.AbstractVar[Float[Array, " n"]]

    @abc.abstractmethod
    def deformation(self, frames: Frames) -> Float[Array, " n"]:
        """x (m, rad)."""

    def wrenches(self, frames: Frames, twists: Twists, t: RealScalarLike) -> Twists:
        del t

        def rate(twists: Twists) -> Float[Array, " n"]:
            return jax.jvp(self.deformation, (frames,), (rates(frames, twists),))[1]

        speed, transpose = jax.vjp(rate, twists)
        elastic = self.stiffness @ self.deformation(frames) - self.preload
        (wrenches,) = transpose(-elastic - self.damping @ speed)
        return wrenches

    def potential(self, frames: Frames) -> Scalar:
        x = self.deformation(frames)
        return 0.5 * x @ self.stiffness @ x


class CoordinateLoad(AbstractElasticLoad):
    """A force along, or a moment about, a joint's axis that depends on the joint's coordinate."""

    coordinate: AbstractCoordinate
    rest: Scalar
    stiffness: Float[Array, "1 1"]
    damping: Float[Array, "1 1"]
    preload: Float[Array, "1"]

    def deformation(self, frames: Frames) -> Float[Array, " n"]:
        return self.coordinate.excess(frames, self.rest)[None]


def coordinate_load(
    joint: AbstractJoint,
    coordinate: str,
    advice: str,
    *,
    rest: Scalar,
    stiffness: Scalar,
    damping: Scalar,
    preload: Scalar,
) -> CoordinateLoad:
    """The load on the translation or rotation of a joint.

    **Raises:** `ValueError` for a joint that has none.
    """
    coordinates = joint.coordinates()
    if coordinate not in coordinates:
        raise ValueError(
            f"joint {_checks.shown(joint.name)} ({joint.kind}) has no {coordinate}; {advice}."
        )
    return CoordinateLoad(
        coordinate=coordinates[coordinate],
        rest=rest,
        stiffness=stiffness[None, None],
        damping=damping[None, None],
        preload=preload[None],
    )


class AxialSpring(AbstractJointForce):
    """A spring, a damper and a constant force along the axis of a translational or cylindrical
    joint:

        force on its second body = -stiffness (translation - rest) - damping rate + force,

    and the opposite on the first. The translation is that which a driver would prescribe: of the
    second body against the first, zero in the reference configuration.

    **Arguments:** `joint`: its name; `stiffness`: N/m; `damping`: N s/m; `rest`: m; `force`: N.
    The potential energy is that of the spring; the force is a motor's.
    """

    kind: ClassVar[str] = "axial_spring"
    strengths: ClassVar[tuple[str, ...]] = ("stiffness", "damping", "force")
    name: str = eqx.field(static=True, converter=FORCE_NAME)
    joint: str = eqx.field(static=True, converter=JOINT)
    stiffness: Scalar = eqx.field(
        default=0.0, kw_only=True, converter=number("stiffness", "N/m", "of the spring")
    )
    damping: Scalar = eqx.field(
        default=0.0, kw_only=True, converter=number("damping", "N s/m", "of the damper")
    )
    rest: Scalar = eqx.field(
        default=0.0, kw_only=True, converter=number("rest", "m", "translation without force")
    )
    force: Scalar = eqx.field(
        default=0.0, kw_only=True, converter=number("force", "N", "on the second body")
    )

    def load_on(self, joint: AbstractJoint) -> CoordinateLoad:
        return coordinate_load(
            joint,
            "translation",
            "an axial spring acts along a translational or cylindrical joint",
            rest=self.rest,
            stiffness=self.stiffness,
            damping=self.damping,
            preload=self.force,
        )


_REST = vector("rest", "rad", "rotation vector without moment, world axes", 3)


class BallLoad(AbstractLoad):
    """A moment along the rotation vector x of the second frame against the first, measured from
    `rest`: the gradient of 1/2 stiffness |x|^2, as a turn changes |x| along x alone."""

    stiffness: Scalar
    damping: Scalar
    rest: Quaternion

    def wrenches(self, frames: Frames, twists: Twists, t: RealScalarLike) -> Twists:
        del t
        spin = twists[1].angular - twists[0].angular
        moment = -self.stiffness * rotated(frames[1].rotation, self._rotation(frames))
        moment = moment - self.damping * spin
        return tuple(
            frame.wrench(jnp.zeros_like(moment), own)
            for frame, own in zip(frames, (-moment, moment), strict=True)
        )

    def potential(self, frames: Frames) -> Scalar:
        x = self._rotation(frames)
        return 0.5 * self.stiffness * (x @ x)

    def _rotation(self, frames: Frames) -> Float[Array, "3"]:
        """x, along the second frame's axes."""
        turn = quaternion_from_rotation(frames[0].rotation.T @ frames[1].rotation)
        away = quaternion_product(self.rest * jnp.asarray([1.0, -1.0, -1.0, -1.0]), turn)
        # Both quaternions of a turn are the same turn; the shorter way is meant.
        return quaternion_logarithm(jnp.where(away[0] < 0, -away, away))


class BallSpring(AbstractBodyForce):
    """A spring and a damper against the turning of one body against another, the same about every
    axis:

        moment on the second body = -stiffness x - damping w,

    and the opposite on the first, with x the rotation vector (at most half a turn) that leads from
    the rest to the present orientation of the second body against the first, and w the angular
    velocity of the second against the first.

    **Arguments:** `bodies`: two names; `stiffness`: N m/rad; `damping`: N m s/rad; `rest`: the
    rotation vector, world axes, from the reference configuration to that without moment (rad).
    """

    kind: ClassVar[str] = "ball_spring"
    strengths: ClassVar[tuple[str, ...]] = ("stiffness", "damping")
    name: str = eqx.field(static=True, converter=FORCE_NAME)
    bodies: tuple[str, ...] = eqx.field(static=True, converter=TWO_BODIES)
    stiffness: Scalar = eqx.field(
        default=0.0, kw_only=True, converter=number("stiffness", "N m/rad", "of the spring")
    )
    damping: Scalar = eqx.field(
        default=0.0, kw_only=True, converter=number("damping", "N m s/rad", "of the damper")
    )
    rest: Float[Array, "3"] = eqx.field(default=(0.0, 0.0, 0.0), kw_only=True, converter=_REST)

    def placements(self, references: Frames) -> Frames:
        if any(frame.dimension != 3 for frame in references):
            raise ValueError(
                "it acts between bodies in space; in the plane a torsion spring in a revolute "
                "joint does the same."
            )
        return unturned_frames(jnp.stack([frame.origin for frame in references]))

    def load(self) -> BallLoad:
        return BallLoad(self.stiffness, self.damping, quaternion_exponential(self.rest))


class TorsionSpring(AbstractJointForce):
    """A spring, a damper and a constant torque about the axis of a revolute or cylindrical joint:

        moment on its second body = -stiffness (angle - rest) - damping rate + torque,

    and the opposite on the first. The angle is that which a driver would prescribe: of the
    second body against the first, zero in the reference configuration. In the plane it is
    continuous and counts full turns. In space frames do not count them: the angle is known up
    to 2 pi, so that angle - rest is taken between -pi and pi, and the moment of the spring
    jumps half a turn away from `rest`.

    **Arguments:** `joint`: its name; `stiffness`: N m/rad; `damping`: N m s/rad; `rest`: rad;
    `torque`: N m. The potential energy is that of the spring; the torque is a motor's.
    """

    kind: ClassVar[str] = "torsion_spring"
    strengths: ClassVar[tuple[str, ...]] = ("stiffness", "damping", "torque")
    name: str = eqx.field(static=True, converter=FORCE_NAME)
    joint: str = eqx.field(static=True, converter=JOINT)
    stiffness: Scalar = eqx.field(
        default=0.0, kw_only=True, converter=number("stiffness", "N m/rad", "of the spring")
    )
    damping: Scalar = eqx.field(
        default=0.0, kw_only=True, converter=number("damping", "N m s/rad", "of the damper")
    )
    rest: Scalar = eqx.field(
        default=0.0, kw_only=True, converter=number("rest", "rad", "angle without moment")
    )
    torque: Scalar = eqx.field(
        default=0.0, kw_only=True, converter=number("torque", "N m", "on the second body")
    )

    def load_on(self, joint: AbstractJoint) -> CoordinateLoad:
        return coordinate_load(
            joint,
            "rotation",
            "a torsion spring acts about a revolute or cylindrical joint",
            rest=self.rest,
            stiffness=self.stiffness,
            damping=self.damping,
            preload=self.torque,
        )


class SpringDamperLoad(AbstractLoad):
    """Tension along the line between two points.

    Where the points coincide the line has no direction: it is taken as none there, which leaves
    the force stiffness (P_2 - P_1), that of a spring without natural length, and its derivative.
    """

    stiffness: Scalar
    damping: Scalar
    length: Scalar

    def wrenches(self, frames: Frames, twists: Twists, t: RealScalarLike) -> Twists:
        del t
        between = frames[1].origin - frames[0].origin
        speed = twists[1].linear - twists[0].linear
        distance = _distance(between)
        apart = distance > 0
        along = jnp.where(apart, between, 0.0) / jnp.where(apart, distance, 1.0)
        # stiffness L along = stiffness (P_2 - P_1) is smooth, the rest is along the line.
        rest = self.damping * (along @ speed) - self.stiffness * self.length
        tension = self.stiffness * between + rest * along
        return tuple(
            frame.wrench(force, jnp.zeros_like(twist.angular))
            for frame, twist, force in zip(frames, twists, (tension, -tension), strict=True)
        )

    def potential(self, frames: Frames) -> Scalar:
        distance = _distance(frames[1].origin - frames[0].origin)
        return 0.5 * self.stiffness * (distance - self.length) ** 2


class SpringDamper(AbstractBodyForce):
    """A spring and a damper in parallel between two points:

        tension = stiffness (L - length) + damping dL/dt,

    with L the distance of the points. It pulls both together where it is positive.

    **Arguments:** `bodies`: two names; `points`: one world point (m) on each body, reference
    configuration; `stiffness`: N/m; `damping`: N s/m; `length`: the natural length (m), the
    reference distance if left out.
    """

    kind: ClassVar[str] = "spring_damper"
    strengths: ClassVar[tuple[str, ...]] = ("stiffness", "damping")
    name: str = eqx.field(static=True, converter=FORCE_NAME)
    bodies: tuple[str, ...] = eqx.field(static=True, converter=TWO_BODIES)
    points: Float[Array, "2 dim"] = eqx.field(
        kw_only=True, converter=two_points("points", "in the reference configuration")
    )
    stiffness: Scalar = eqx.field(
        kw_only=True, converter=number("stiffness", "N/m", "of the spring")
    )
    damping: Scalar = eqx.field(
        default=0.0, kw_only=True, converter=number("damping", "N s/m", "of the damper")
    )
    length: Scalar | None = eqx.field(
        default=None,
        kw_only=True,
        converter=optional(
            not_negative("length", "m", "natural length"),
            "the distance of the points",
            lambda spring: spring.natural_length(),
        ),
    )

    def __check_init__(self):
        """A spring that pushes needs a direction to push in."""
        if self.length is None:
            return
        known = _checks.concrete(self.points[1] - self.points[0])
        length = _checks.concrete(self.length)
        if known is not None and length is not None and length > 0 and not np.any(known):
            raise ValueError(
                f"the two points coincide, so a spring of natural length {length:g} has no "
                "direction to push in; move one, or give length = 0."
            )

    def placements(self, references: Frames) -> Frames:
        del references
        return unturned_frames(self.points)

    def load(self) -> SpringDamperLoad:
        length = self.natural_length() if self.length is None else self.length
        return SpringDamperLoad(self.stiffness, self.damping, length)

    def natural_length(self) -> Scalar:
        """Natural length of a spring without a given one (m)."""
        return _distance(self.points[1] - self.points[0])


def _distance(between: Float[Array, " dim"]) -> Scalar:
    """Length of a vector, of derivative zero where it vanishes."""
    square = between @ between
    apart = square > 0
    return jnp.where(apart, jnp.sqrt(jnp.where(apart, square, 1.0)), 0.0)


class PlanarBushingLoad(AbstractElasticLoad):
    """x = displacement of the second marker against the first in the second one's axes (m),
    then phi_2 - phi_1 (rad)."""

    stiffness: Float[Array, "3 3"]
    damping: Float[Array, "3 3"]
    preload: Float[Array, "3"]

    def deformation(self, frames: Frames) -> Float[Array, " n"]:
        first, second = frames
        displacement = second.rotation.T @ (second.origin - first.origin)
        return jnp.append(displacement, second.angle - first.angle)


class SpatialBushingLoad(AbstractElasticLoad):
    """x = displacement of the second marker against the first in the second one's axes (m),
    then twice the Rodrigues vector of the second's rotation against the first (rad)."""

    stiffness: Float[Array, "6 6"]
    damping: Float[Array, "6 6"]
    preload: Float[Array, "6"]

    def deformation(self, frames: Frames) -> Float[Array, " n"]:
        first, second = frames
        displacement = second.rotation.T @ (second.origin - first.origin)
        rotation = relative_rotation_vector(first.rotation.T @ second.rotation)
        return jnp.concatenate([displacement, rotation])


def _symmetric(value: Numbers, size: int, what: str) -> Float[Array, "n n"]:
    """A symmetric matrix, given as such or by its diagonal."""
    shape = _checks.shape_of(value)
    if shape not in ((size,), (size, size)):
        raise ValueError(
            f"{what} must be the {size} numbers on the diagonal of a matrix, or a {size} x {size} "
            f"matrix, got {_checks.shown(value)}."
        )
    array = _checks.real(value, shape, what)
    matrix = jnp.diag(array) if len(shape) == 1 else array
    known = _checks.concrete(matrix)
    if known is not None and np.max(np.abs(known - known.T)) > 1e-9 * np.max(np.abs(known)):
        raise ValueError(f"{what} must be a symmetric matrix, got {_checks.shown(known.tolist())}.")
    return matrix


def _matrix(key: str, units: str) -> Callable[[Numbers], Float[Array, "n n"]]:
    """A symmetric matrix, whose letters are those of a spatial bushing."""
    return Field(
        key,
        "",
        units,
        # A single number is refused with the size of the matrix, which a file does not contain.
        float | list[float] | list[list[float]],
        "a symmetric matrix, 3 x 3 (in space 6 x 6), or its diagonal",
        lambda value, what: _symmetric(value, _checks.shape_of(value)[-1], what),
        naming=Naming(("x", "y", "z", "rx", "ry", "rz"), symmetric=True),
        moves=Moves.over_motions,
    )


_AT = point_or_points()
_STIFFNESS = _matrix("stiffness", "against motion at the point: N/m, N/rad, N m/rad")
_DAMPING = optional(_matrix("damping", "of motion at the point: N s/m, N s/rad, N m s/rad"), "zero")


class Bushing(AbstractBodyForce):
    """An elastic, damped connection of two bodies at a point, against every relative motion:

        wrench on the second body = -stiffness x - damping dx/dt,

    with x the displacement and rotation of the second body against the first since the
    reference configuration: (x, y, angle) in the plane, (x, y, z, rx, ry, rz) in space,
    in axes that the second body carries and that are the world's in the reference configuration.
    The rotation is twice the Rodrigues vector, 2 tan(angle / 2) axis: the rotation vector to
    third order, so that bushings are for small rotations (short of half a turn, where it is
    infinite). At finite rotations the wrench is the one that has this stiffness's potential.

    **Arguments:** `bodies`: two names; `at`: world point (m) in the reference configuration, or
    two, one on each body, whose distance counts as displacement; `stiffness` (N/m, N/rad,
    N m/rad) and `damping` (default none): a symmetric matrix, or its diagonal, of size 3 in the
    plane and 6 in space.
    """

    kind: ClassVar[str] = "bushing"
    strengths: ClassVar[tuple[str, ...]] = ("stiffness", "damping")
    name: str = eqx.field(static=True, converter=FORCE_NAME)
    bodies: tuple[str, ...] = eqx.field(static=True, converter=TWO_BODIES)
    at: Float[Array, "2 dim"] = eqx.field(converter=_AT)
    stiffness: Float[Array, "n n"] = eqx.field(converter=_STIFFNESS)
    damping: Float[Array, "n n"] = eqx.field(converter=_DAMPING)

    def __init__(
        self,
        name: str,
        bodies: Sequence[str],
        *,
        at: Numbers,
        stiffness: Numbers,
        damping: Numbers | None = None,
    ):
        self.name = name
        self.bodies = TWO_BODIES(bodies)
        self.at = _AT(at)
        size = 3 if self.at.shape[1] == 2 else 6
        self.stiffness = _symmetric(stiffness, size, "stiffness")
        given = jnp.zeros(size) if damping is None else damping
        self.damping = _symmetric(given, size, "damping")

    def placements(self, references: Frames) -> Frames:
        del references
        return unturned_frames(self.at)

    def load(self) -> PlanarBushingLoad | SpatialBushingLoad:
        size = self.stiffness.shape[0]
        make = PlanarBushingLoad if size == 3 else SpatialBushingLoad
        return make(self.stiffness, self.damping, jnp.zeros(size))
