"""Coulomb friction from a joint's own reaction."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .. import _checks
from .._constraints import (
    _gears,
    _planar,
    _ropes,
    _spatial,
    _spatial_gears,
    AbstractJoint,
    Frames,
    Twists,
)
from .._constraints._ropes import nearest_turn, reference_way, signed_radii, Spans, spans, Way
from .._custom_types import Scalar, Vector3
from .._fields import not_negative, optional, positive, word
from ._joint_patterns import JOINT_KIND, JOINT_OR_PATTERN
from ._springs import rates
from .base import (
    AbstractFrictionLaw,
    AbstractJointFriction,
    AbstractPatternForce,
    AbstractSign,
    check_sign,
    Exerted,
    FORCE_NAME,
    RELAXATION_TIME,
    sign_of,
)


class Sliding(NamedTuple):
    """Sliding directions of a kind of joint, in the axes of its second marker: the axes along which
    it slides, the axes about which it turns, and those along which its reaction presses. `plane`:
    the first marker's origin slides on a plane of the second body, away from its marker."""

    slides: tuple[int, ...]
    turns: tuple[int, ...]
    presses: tuple[int, ...]
    plane: bool = False

    @property
    def count(self) -> int:
        """Number of components of the slip."""
        return len(self.slides) + len(self.turns)


# The axis of a planar joint is x of its markers, of a spatial one z.
_SLIDING: Mapping[type[AbstractJoint], Sliding] = MappingProxyType(
    {
        _planar.Revolute: Sliding((), (0,), (0, 1)),
        _planar.Translational: Sliding((0,), (), (1,)),
        _planar.PointOnLine: Sliding((0,), (), (1,)),
        _spatial.Revolute: Sliding((), (2,), (0, 1)),
        _spatial.Translational: Sliding((2,), (), (0, 1)),
        _spatial.Cylindrical: Sliding((2,), (2,), (0, 1)),
        _spatial.Spherical: Sliding((), (0, 1, 2), (0, 1, 2)),
        _spatial.PointOnLine: Sliding((2,), (), (0, 1)),
        _spatial.PointOnPlane: Sliding((0, 1), (), (2,), plane=True),
        _spatial.Planar: Sliding((0, 1), (2,), (2,), plane=True),
    }
)

# Joints whose couples two bearings at a distance carry.
_IN_BEARINGS = (
    _planar.Translational,
    _spatial.Revolute,
    _spatial.Translational,
    _spatial.Cylindrical,
    _spatial.Universal,
)


def _places(axes: tuple[int, ...]) -> np.ndarray:
    return np.array(axes, dtype=int)


def _slip(
    sliding: Sliding, radius: Scalar, frames: Frames, twists: Twists
) -> Float[Array, " slip"]:
    """Speeds along the sliding axes, and `radius` times the angular velocities about the turning
    axes."""
    first, second = frames
    dim = second.origin.shape[0]
    relative = second.components(jax.tree.map(jnp.subtract, twists[1], twists[0]))
    linear, angular = relative[:dim], relative[dim:]
    if sliding.plane:
        linear = linear + jnp.cross(twists[1].angular, first.origin - second.origin)
    linear = second.rotation.T @ linear
    slides, turns = _places(sliding.slides), _places(sliding.turns)
    return jnp.concatenate([linear[slides], radius * angular[turns]])


class ResultantFriction(AbstractFrictionLaw):
    """Friction of the power -coefficient N |u| (u / |u| as the `sign` has it).

    u (m/s) is the sliding velocity in the joint: speeds along its sliding axes, and `radius` times
    the angular velocities about its turning axes. N (N) is the resultant of the joint's force
    along its pressing axes.
    """

    coefficient: Scalar
    radius: Scalar
    sign: AbstractSign
    sliding: Sliding = eqx.field(static=True)

    @property
    def sliding_together(self) -> tuple[int, ...]:
        return (0,)

    @property
    def slip_count(self) -> int:
        return self.sliding.count

    def slips(self, frames: Frames, twists: Twists) -> tuple[Float[Array, " slip"], ...]:
        return (_slip(self.sliding, self.radius, frames, twists),)

    def resistances(
        self, frames: Frames, senses: tuple[Float[Array, " slip"], ...]
    ) -> tuple[tuple[Scalar, Float[Array, " slip"]], ...]:
        del frames
        return tuple((self.coefficient, sense) for sense in senses)

    def pressings(self, frames: Frames, exerted: Exerted) -> tuple[Float[Array, " pressing"], ...]:
        return ((frames[1].rotation.T @ exerted.force)[_places(self.sliding.presses)],)


class BearingFriction(AbstractFrictionLaw):
    """The same friction in two bearings at the distance `length` (m) along the joint's axis, which
    carry the force F across the axis and the couple C across it as the forces

        R = F / 2 -+ axis x C / length        (in the plane F / 2 +- C / length).

    The couple is that about the origin of the marker `carrier` (0 or 1), midway between the
    bearings. `twist`: a couple about the axis presses as well, with the force C / radius.
    """

    coefficient: Scalar
    radius: Scalar
    sign: AbstractSign
    length: Scalar
    sliding: Sliding = eqx.field(static=True)
    carrier: int = eqx.field(static=True)
    twist: bool = eqx.field(static=True)

    @property
    def sliding_together(self) -> tuple[int, ...]:
        return (0, 0, 0) if self.twist else (0, 0)

    @property
    def slip_count(self) -> int:
        return self.sliding.count

    def slips(self, frames: Frames, twists: Twists) -> tuple[Float[Array, " slip"], ...]:
        return (_slip(self.sliding, self.radius, frames, twists),) * (3 if self.twist else 2)

    def resistances(
        self, frames: Frames, senses: tuple[Float[Array, " slip"], ...]
    ) -> tuple[tuple[Scalar, Float[Array, " slip"]], ...]:
        del frames
        return tuple((self.coefficient, sense) for sense in senses)

    def pressings(self, frames: Frames, exerted: Exerted) -> tuple[Float[Array, " pressing"], ...]:
        first, second = frames
        force, couple, _ = exerted
        if self.carrier == 0:
            arm = second.origin - first.origin
            if force.shape[0] == 2:
                couple = couple + arm[0] * force[1] - arm[1] * force[0]
            else:
                couple = couple + jnp.cross(arm, force)
        across = (second.rotation.T @ force)[_places(self.sliding.presses)]
        if force.shape[0] == 2:
            edge = couple[None] / self.length
            return (across / 2 + edge, across / 2 - edge)
        local = second.rotation.T @ couple
        return (
            *_bearing_forces(across, local, self.length),
            *((local[2:] / self.radius,) if self.twist else ()),
        )


def _bearing_forces(
    across: Float[Array, "2"], couple: Float[Array, "3"], length: Scalar
) -> tuple[Float[Array, "2"], Float[Array, "2"]]:
    """The forces (N) on two bearings at -+ length / 2 on the z axis that carry a force across it
    and a couple about its middle."""
    edge = jnp.stack([-couple[1], couple[0]]) / length
    return across / 2 - edge, across / 2 + edge


class CrossFriction(AbstractFrictionLaw):
    """Friction of a universal joint, in the pins of its massless cross: about each of its two axes,
    z of the markers, by the force across that axis. With `length` each axis has two bearings at
    that distance, which carry the couple of the cross as well."""

    coefficient: Scalar
    radius: Scalar
    sign: AbstractSign
    length: Scalar | None

    @property
    def sliding_together(self) -> tuple[int, ...]:
        return (0, 1) if self.length is None else (0, 0, 1, 1)

    @property
    def slip_count(self) -> int:
        return 2

    def slips(self, frames: Frames, twists: Twists) -> tuple[Float[Array, " slip"], ...]:
        spin = twists[1].angular - twists[0].angular
        about = [self.radius * (frame.rotation[:, 2] @ spin)[None] for frame in frames]
        return tuple(u for u in about for _ in range(1 if self.length is None else 2))

    def resistances(
        self, frames: Frames, senses: tuple[Float[Array, " slip"], ...]
    ) -> tuple[tuple[Scalar, Float[Array, " slip"]], ...]:
        del frames
        return tuple((self.coefficient, sense) for sense in senses)

    def pressings(self, frames: Frames, exerted: Exerted) -> tuple[Float[Array, " pressing"], ...]:
        found = []
        force, couple, _ = exerted
        for frame in frames:
            across, local = (frame.rotation.T @ force)[:2], frame.rotation.T @ couple
            if self.length is None:
                found.append(across)
            else:
                found.extend(_bearing_forces(across, local, self.length))
        return tuple(found)


class ThreadFriction(AbstractFrictionLaw):
    """Friction of the teeth of a worm and its wheel, at the pitch point, which is the origin of the
    third marker, that of the carrier: against the sliding `along` the thread, and pressed by the
    force along the line of action `normal` (both (3,), unit vectors in that marker's axes)."""

    coefficient: Scalar
    sign: AbstractSign
    along: Vector3
    normal: Vector3

    @property
    def sliding_together(self) -> tuple[int, ...]:
        return (0,)

    @property
    def slip_count(self) -> int:
        return 1

    def slips(self, frames: Frames, twists: Twists) -> tuple[Float[Array, " slip"], ...]:
        pitch, along = frames[2].origin, frames[2].rotation @ self.along
        one, two = (
            twist.linear + jnp.cross(twist.angular, pitch - frame.origin)
            for frame, twist in zip(frames[:2], twists[:2], strict=True)
        )
        return ((along @ (two - one))[None],)

    def resistances(
        self, frames: Frames, senses: tuple[Float[Array, " slip"], ...]
    ) -> tuple[tuple[Scalar, Float[Array, " slip"]], ...]:
        del frames
        return tuple((self.coefficient, sense) for sense in senses)

    def pressings(self, frames: Frames, exerted: Exerted) -> tuple[Float[Array, " pressing"], ...]:
        return (((frames[2].rotation @ self.normal) @ exerted.force)[None],)


class CapstanFriction(AbstractFrictionLaw):
    """Friction of a rope on the circles and eyelets of its way. Across each the tension T changes
    by the factor exp(mu phi s), with phi the angle (rad) of its arc and s the `sign`'s number for
    the speed of the rope along its way against the surface. The multiplier is the tension of the
    last span, so that the friction forces T_out - T_in are multiples of it.

    `radii` (n,), `arcs` (n,): as of the rope's row.
    """

    coefficient: Scalar
    sign: AbstractSign
    radii: Float[Array, " n"]
    arcs: Float[Array, " n"]

    @property
    def sliding_together(self) -> tuple[int, ...]:
        return tuple(range(self.slip_count))

    @property
    def slip_count(self) -> int:
        return self.radii.shape[-1] - 2

    @property
    def signed(self) -> bool:
        return True

    def slips(self, frames: Frames, twists: Twists) -> tuple[Float[Array, " slip"], ...]:
        along = rates(frames, twists)
        lengthening = jax.jvp(self._pieces, (frames,), (along,))[1]
        return tuple(-lengthening[k][None] for k in range(self.slip_count))

    def resistances(
        self, frames: Frames, senses: tuple[Float[Array, " slip"], ...]
    ) -> tuple[tuple[Scalar, Float[Array, " slip"]], ...]:
        most = self.coefficient * self._angles(frames)
        logarithms = most * jnp.concatenate(senses)
        found = []
        for k, sense in enumerate(senses):
            # T_out - T_in = T_last exp(-later) (1 - exp(-x)), x = mu phi s.
            bound = jnp.exp(jnp.sum(most[k + 1 :])) * growth(most[k])
            share = jnp.exp(-jnp.sum(logarithms[k + 1 :])) * growth(-logarithms[k])
            found.append((bound * most[k], sense * share / bound))
        return tuple(found)

    def pressings(self, frames: Frames, exerted: Exerted) -> tuple[Float[Array, " pressing"], ...]:
        del frames
        return (exerted.multipliers,) * self.slip_count

    def _spans(self, frames: Frames) -> Spans:
        points = jnp.stack([frame.origin for frame in frames])
        return spans(points[:-1], points[1:], self.radii[:-1], self.radii[1:])

    def _turned(self, free: Spans) -> Float[Array, " slips"]:
        """Angles (rad) by which the rope turns, positive counterclockwise."""
        return nearest_turn(jnp.diff(free.direction), self.arcs[1:-1])

    def _angles(self, frames: Frames) -> Float[Array, " slips"]:
        """Angles (rad) of the arcs, not negative."""
        turned, radii = self._turned(self._spans(frames)), self.radii[1:-1]
        arcs = jnp.where(radii == 0, jnp.abs(turned), jnp.sign(radii) * turned)
        return jnp.maximum(arcs, 0.0)

    def _pieces(self, frames: Frames) -> Float[Array, " slips"]:
        """Length (m) of the way to a mark on each circle, which turns with it."""
        free = self._spans(frames)
        radii, angles = self.radii[1:-1], jnp.stack([frame.angle for frame in frames[1:-1]])
        arcs = radii * self._turned(free)
        before = jnp.cumsum(free.length[:-1]) + jnp.cumsum(arcs) - arcs
        return before + radii * (angles - self._heading(free)[:-1])

    def _heading(self, free: Spans) -> Float[Array, " spans"]:
        """Directions of the spans without jumps by full turns."""
        return jnp.concatenate(
            [free.direction[:1], free.direction[0] + jnp.cumsum(self._turned(free))]
        )


def growth(x: Float[Array, "..."]) -> Float[Array, "..."]:
    """(exp(x) - 1) / x, with a Taylor branch where it has no digits to lose."""
    small = jnp.abs(x) < 1e-4
    safe = jnp.where(small, 1.0, x)
    series = 1 + x / 2 * (1 + x / 3 * (1 + x / 4 * (1 + x / 5)))
    return jnp.where(small, series, jnp.expm1(safe) / safe)


_MARKERS = {"first": 0, "second": 1}

# Gears whose pitch circles or cones roll on each other.
_ROLLING = (
    _gears.GearPair,
    _gears.RackAndPinion,
    _spatial_gears.GearPair,
    _spatial_gears.BevelPair,
    _spatial_gears.RackAndPinion,
)


class CoulombFriction(AbstractJointFriction, AbstractPatternForce):
    """Dry friction in a joint, from the joint's own reaction:

        friction = coefficient N tanh(|u| / velocity)

    against the sliding velocity u, or with `presliding` friction that sticks. N is the resultant of
    the joint's point rows: in a revolute joint of the plane and in a spherical joint the whole
    reaction force, on a plane the force normal to it, in all other joints the reaction force across
    the axis (a thrust along the axis of a revolute joint does not rub). |F| is smoothed to
    sqrt(F . F + (1e-12 N)^2).

    - Revolute: u = radius times the relative angular velocity; torque about the axis.
    - Translational, point on a line: u = the relative velocity along the axis; force along it.
    - Cylindrical: u has both components, and the friction is against their resultant.
    - Spherical: u = radius times the relative angular velocity, a vector; torque along it.
    - Point on a plane: u = the relative velocity of the point, a vector in the plane. Planar: with
      radius times the angular velocity about the normal as a third component.
    - Universal: about each of its two axes u = radius times the angular velocity, and N = the force
      across that axis.
    - Worm pair: u = the sliding velocity of the teeth along the thread at the pitch point, N = the
      tooth force; with coefficient / cos(pressure_angle) > tan(lead_angle) the worm locks itself.
      The teeth of other gears roll there, and their friction is refused.
    - Rope of the plane: on each circle and eyelet of its way, u = the speed of the rope against the
      surface, which turns with its body; the tensions on both sides have the ratio exp(coefficient
      phi) at most, phi the angle of the arc (Euler, Eytelwein). The row's multiplier is the tension
      at the last point. A pulley that shall turn with the rope is a body of its own in a bearing.

    **Couples.** With `length` L the joint has two bearings at that distance along its axis, or
    along each axis of a universal joint, and N is the sum of the forces on them,

        N = |F / 2 + c / L| + |F / 2 - c / L|,      c = axis x C,

    with F the force and C the couple across the axis. In the plane that is max(|F|, 2 |C| / L). So
    a slide may jam, and bending moments of a hinge rub. Of a translational joint in space
    the couple about the axis counts too, with |C| / radius.

    **At rest.** With `velocity` friction at rest is none, and what is loaded creeps. With
    `presliding` s it is coefficient N (z + relaxation_time u) / s, at most coefficient N, of an
    elastic displacement z (m) that follows the slip: what is loaded by less than coefficient N
    stands still after a displacement below s, and beyond that it slides. z is a state of the force,
    integrated with the motion and saved with it; beyond s it returns with `relaxation_time`.

    F in the equations of motion then depends on the multipliers: `solve_with_friction` solves for
    both, and `certify` shows whether they exist and are unique.

    **Arguments:** `joint`: its name, or a pattern such as "knee *" (wildcards * ? [ ]): friction of
    these numbers in each joint that it matches. `joint_kind`: of these only the joints of one kind,
    such as "revolute". `coefficient`: >= 0; one of `velocity`, regularisation velocity (m/s) of
    the sliding, > 0, and `presliding` (m), > 0, with `relaxation_time` (s), > 0, default 0.001;
    `radius`: bearing radius (m), > 0, of joints that turn; of a pad that turns on a
    plane the radius at which its friction acts. `length`: distance of the bearings (m), > 0;
    `bearing`: on which body of a translational or cylindrical joint their middle is, at its point
    of the joint: "second" (default) or "first".
    """

    kind: ClassVar[str] = "coulomb_friction"
    strengths: ClassVar[tuple[str, ...]] = ("coefficient",)
    name: str = eqx.field(static=True, converter=FORCE_NAME)
    joint: str = eqx.field(static=True, converter=JOINT_OR_PATTERN)
    joint_kind: str | None = eqx.field(
        static=True, default=None, kw_only=True, converter=JOINT_KIND
    )
    coefficient: Scalar = eqx.field(
        kw_only=True, converter=not_negative("coefficient", "1", "of friction")
    )
    velocity: Scalar | None = eqx.field(
        default=None,
        kw_only=True,
        converter=optional(positive("velocity", "m/s", "of the regularisation"), "`presliding`"),
    )
    presliding: Scalar | None = eqx.field(
        default=None,
        kw_only=True,
        converter=optional(
            positive("presliding", "m", "displacement up to which it sticks"), "`velocity`"
        ),
    )
    relaxation_time: Scalar | None = eqx.field(
        default=None, kw_only=True, converter=RELAXATION_TIME
    )
    radius: Scalar | None = eqx.field(
        default=None,
        kw_only=True,
        converter=optional(positive("radius", "m", "of the bearing"), "none, of joints that slide"),
    )
    length: Scalar | None = eqx.field(
        default=None,
        kw_only=True,
        converter=optional(
            positive("length", "m", "distance of the two bearings"), "couples do not rub"
        ),
    )
    bearing: str | None = eqx.field(
        static=True,
        default=None,
        kw_only=True,
        converter=optional(
            word("bearing", "body that carries the two bearings", "first or second"), "second"
        ),
    )

    def __check_init__(self):
        """One law at rest; the place of the bearings belongs to their distance."""
        check_sign(self.velocity, self.presliding, self.relaxation_time, "m")
        if self.bearing is None:
            return
        _checks.one_of(self.bearing, _MARKERS, "bearing")
        if self.length is None:
            raise ValueError(
                "bearing is given without `length`; give the distance of the two bearings, or "
                "leave it out."
            )

    def _capstan(
        self, joint: _ropes.Rope | _ropes.Belt, called: str, sign: AbstractSign
    ) -> CapstanFriction:
        if isinstance(joint, _ropes.Belt):
            raise ValueError(
                f"{called} is a belt that does not slip, so that there is no friction against "
                "sliding; a rope with an end on either side of a pulley slips."
            )
        if joint.points.shape[1] == 3:
            raise ValueError(f"friction of {called} in space is not known; ropes rub in the plane.")
        if len(joint.bodies) < 3:
            raise ValueError(f"{called} has no pulley and no eyelet, on which it would rub.")
        if self.radius is not None or self.length is not None:
            raise ValueError(
                f"{called} rubs on its own circles, so that its friction takes no `radius` and no "
                "`length`; leave them out."
            )
        radii = signed_radii(Way(joint.bodies, joint.points, joint.radii, joint.senses, None))
        _, arcs = reference_way(joint.points, radii)
        return CapstanFriction(self.coefficient, sign, radii, arcs)

    def _of_gear_or_rope(
        self, joint: AbstractJoint, called: str, sign: AbstractSign
    ) -> AbstractFrictionLaw | None:
        """The law of a joint of which what rubs is its own; None for others."""
        if isinstance(joint, _spatial_gears.WormPair):
            if self.radius is not None or self.length is not None:
                raise ValueError(
                    f"the teeth of {called} slide along the thread at its pitch point, so that "
                    "their friction takes no `radius` and no `length`; leave them out."
                )
            along, normal = joint.directions()
            return ThreadFriction(self.coefficient, sign, along, normal)
        if isinstance(joint, _ropes.Rope | _ropes.Belt):
            return self._capstan(joint, called, sign)
        if isinstance(joint, _ROLLING):
            raise ValueError(
                f"the teeth of {called} roll on each other at the pitch point, where the tooth "
                "force acts, so that there is no Coulomb friction there; take the losses of these "
                "gears as friction of their bearings, or as the efficiency of a motor's gear."
            )
        return None

    def law_of(self, joint: AbstractJoint) -> AbstractFrictionLaw:
        called = f"joint {_checks.shown(joint.name)} ({joint.kind})"
        sign = sign_of(self.velocity, self.presliding, self.relaxation_time)
        own = self._of_gear_or_rope(joint, called, sign)
        if own is not None:
            return own
        cross = isinstance(joint, _spatial.Universal)
        if type(joint) not in _SLIDING and not cross:
            raise ValueError(
                f"friction in {called} is not known; it is in revolute, translational, cylindrical,"
                " spherical, universal and planar joints and at points on a line or a plane."
            )
        if self.length is not None and not isinstance(joint, _IN_BEARINGS):
            raise ValueError(
                f"{called} has no two bearings that carry a couple, so its friction takes no "
                "`length`; leave it out."
            )
        sliding = Sliding((), (2,), (0, 1)) if cross else _SLIDING[type(joint)]
        if sliding.turns and self.radius is None:
            raise ValueError(
                f"{called} turns, so its friction needs `radius`, that of the bearing."
            )
        twist = isinstance(joint, _spatial.Translational)
        if twist and self.length is not None and self.radius is None:
            raise ValueError(
                f"{called} carries a couple about its axis, so that friction with `length` needs "
                "`radius`, the lever arm at which that couple presses."
            )
        if self.bearing is not None and not {"translation"} & {*joint.coordinates()}:
            raise ValueError(
                f"the bearings of {called} stay where they are on both bodies, so that it takes no "
                "`bearing`; leave it out."
            )
        radius = jnp.asarray(0.0) if self.radius is None else self.radius
        own: Any = {"coefficient": self.coefficient, "radius": radius, "sign": sign}
        if cross:
            return CrossFriction(**own, length=self.length)
        if self.length is None:
            return ResultantFriction(**own, sliding=sliding)
        carrier = _MARKERS[self.bearing or "second"]
        return BearingFriction(
            **own, length=self.length, sliding=sliding, carrier=carrier, twist=twist
        )
