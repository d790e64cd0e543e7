"""Coulomb friction from a joint's own reaction."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .. import _checks
from .._constraints import _planar, _spatial, AbstractJoint, Frames, Twists
from .._custom_types import Scalar
from .._fields import not_negative, optional, positive, word
from ._joint_patterns import JOINT_KIND, JOINT_OR_PATTERN
from .base import (
    AbstractFrictionLaw,
    AbstractJointFriction,
    AbstractPatternForce,
    FORCE_NAME,
)


class Sliding(NamedTuple):
    """Sliding directions of a kind of joint, in the axes of its second marker: the axes along which
    it slides, the axes about which it turns, and those along which its reaction presses. `plane`:
    the first marker's origin slides on a plane of the second body, away from its marker."""

    slides: tuple[int, ...]
    turns: tuple[int, ...]
    presses: tuple[int, ...]
    plane: bool = False


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
    """Friction of the power -coefficient N |u| tanh(|u| / velocity).

    u (m/s) is the sliding velocity in the joint: speeds along its sliding axes, and `radius` times
    the angular velocities about its turning axes. N (N) is the resultant of the joint's force
    along its pressing axes.
    """

    coefficient: Scalar
    radius: Scalar
    velocity: Scalar
    sliding: Sliding = eqx.field(static=True)

    def slips(self, frames: Frames, twists: Twists) -> tuple[Float[Array, " slip"], ...]:
        return (_slip(self.sliding, self.radius, frames, twists),)

    def pressings(
        self, frames: Frames, force: Float[Array, " dim"], couple: Float[Array, " ..."]
    ) -> tuple[Float[Array, " pressing"], ...]:
        del couple
        return ((frames[1].rotation.T @ force)[_places(self.sliding.presses)],)


class BearingFriction(AbstractFrictionLaw):
    """The same friction in two bearings at the distance `length` (m) along the joint's axis, which
    carry the force F across the axis and the couple C across it as the forces

        R = F / 2 -+ axis x C / length        (in the plane F / 2 +- C / length).

    The couple is that about the origin of the marker `carrier` (0 or 1), midway between the
    bearings. `twist`: a couple about the axis presses as well, with the force C / radius.
    """

    coefficient: Scalar
    radius: Scalar
    velocity: Scalar
    length: Scalar
    sliding: Sliding = eqx.field(static=True)
    carrier: int = eqx.field(static=True)
    twist: bool = eqx.field(static=True)

    def slips(self, frames: Frames, twists: Twists) -> tuple[Float[Array, " slip"], ...]:
        return (_slip(self.sliding, self.radius, frames, twists),) * (3 if self.twist else 2)

    def pressings(
        self, frames: Frames, force: Float[Array, " dim"], couple: Float[Array, " ..."]
    ) -> tuple[Float[Array, " pressing"], ...]:
        first, second = frames
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
    velocity: Scalar
    length: Scalar | None

    def slips(self, frames: Frames, twists: Twists) -> tuple[Float[Array, " slip"], ...]:
        spin = twists[1].angular - twists[0].angular
        about = [self.radius * (frame.rotation[:, 2] @ spin)[None] for frame in frames]
        return tuple(u for u in about for _ in range(1 if self.length is None else 2))

    def pressings(
        self, frames: Frames, force: Float[Array, " dim"], couple: Float[Array, " ..."]
    ) -> tuple[Float[Array, " pressing"], ...]:
        found = []
        for frame in frames:
            across, local = (frame.rotation.T @ force)[:2], frame.rotation.T @ couple
            if self.length is None:
                found.append(across)
            else:
                found.extend(_bearing_forces(across, local, self.length))
        return tuple(found)


_MARKERS = {"first": 0, "second": 1}


class CoulombFriction(AbstractJointFriction, AbstractPatternForce):
    """Dry friction in a joint, regularised, from the joint's own reaction:

        friction = coefficient N tanh(|u| / velocity)

    against the sliding velocity u. N is the resultant of the joint's point rows: in a revolute
    joint of the plane and in a spherical joint the whole reaction force, on a plane the force
    normal to it, in all other joints the reaction force across the axis (a thrust along the axis
    of a revolute joint does not rub). |F| is smoothed to sqrt(F . F + (1e-12 N)^2).

    - Revolute: u = radius times the relative angular velocity; torque about the axis.
    - Translational, point on a line: u = the relative velocity along the axis; force along it.
    - Cylindrical: u has both components, and the friction is against their resultant.
    - Spherical: u = radius times the relative angular velocity, a vector; torque along it.
    - Point on a plane: u = the relative velocity of the point, a vector in the plane. Planar: with
      radius times the angular velocity about the normal as a third component.
    - Universal: about each of its two axes u = radius times the angular velocity, and N = the force
      across that axis.

    **Couples.** With `length` L the joint has two bearings at that distance along its axis, or
    along each axis of a universal joint, and N is the sum of the forces on them,

        N = |F / 2 + c / L| + |F / 2 - c / L|,      c = axis x C,

    with F the force and C the couple across the axis. In the plane that is max(|F|, 2 |C| / L). So
    a slide may jam, and bending moments of a hinge rub. Of a translational joint in space
    the couple about the axis counts too, with |C| / radius.

    F in the equations of motion then depends on the multipliers: `solve_with_friction` solves for
    both, and `certify` shows whether they exist and are unique.

    **Arguments:** `joint`: its name, or a pattern such as "knee *" (wildcards * ? [ ]): friction of
    these numbers in each joint that it matches. `joint_kind`: of these only the joints of one kind,
    such as "revolute". `coefficient`: >= 0; `velocity`: regularisation velocity (m/s) of the
    sliding, > 0; `radius`: bearing radius (m), > 0, of joints that turn; of a pad that turns on a
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
    velocity: Scalar = eqx.field(
        kw_only=True, converter=positive("velocity", "m/s", "of the regularisation")
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
        """The place of the bearings belongs to their distance."""
        if self.bearing is None:
            return
        _checks.one_of(self.bearing, _MARKERS, "bearing")
        if self.length is None:
            raise ValueError(
                "bearing is given without `length`; give the distance of the two bearings, or "
                "leave it out."
            )

    def law_of(self, joint: AbstractJoint) -> AbstractFrictionLaw:
        called = f"joint {_checks.shown(joint.name)} ({joint.kind})"
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
        numbers = (self.coefficient, radius, self.velocity)
        if cross:
            return CrossFriction(*numbers, self.length)
        if self.length is None:
            return ResultantFriction(*numbers, sliding)
        carrier = _MARKERS[self.bearing or "second"]
        return BearingFriction(*numbers, self.length, sliding, carrier, twist)
