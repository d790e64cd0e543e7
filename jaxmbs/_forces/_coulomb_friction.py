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
from .._fields import not_negative, optional, positive
from .base import AbstractFrictionLaw, AbstractJointFriction, FORCE_NAME, JOINT


# The normal force |F| is smoothed to sqrt(F . F + SMOOTHING^2), so that it has a derivative where
# the joint is not pressed together (N).
SMOOTHING = 1e-12


class Sliding(NamedTuple):
    """Sliding directions of a kind of joint, in the axes of its second marker: the axes along which
    it slides, the axes about which it turns, and those along which its reaction presses."""

    slides: tuple[int, ...]
    turns: tuple[int, ...]
    presses: tuple[int, ...]


# The axis of a planar joint is x of its markers, of a spatial one z.
_SLIDING: Mapping[type[AbstractJoint], Sliding] = MappingProxyType(
    {
        _planar.Revolute: Sliding((), (0,), (0, 1)),
        _planar.Translational: Sliding((0,), (), (1,)),
        _spatial.Revolute: Sliding((), (2,), (0, 1)),
        _spatial.Translational: Sliding((2,), (), (0, 1)),
        _spatial.Cylindrical: Sliding((2,), (2,), (0, 1)),
        _spatial.Spherical: Sliding((), (0, 1, 2), (0, 1, 2)),
    }
)


class SlidingFriction(AbstractFrictionLaw):
    """Friction of the power -coefficient N u . (tanh(|u| / velocity) / |u|) u.

    u (m/s) is the sliding velocity in the joint: speeds along its sliding axes, and `radius` times
    the angular velocities about its turning axes. N (N) is the resultant of the joint's force
    along its pressing axes.
    """

    coefficient: Scalar
    radius: Scalar
    velocity: Scalar
    sliding: Sliding = eqx.field(static=True)

    def slip(self, frames: Frames, twists: Twists) -> Float[Array, " slip"]:
        second = frames[1]
        dim = second.origin.shape[0]
        relative = second.components(jax.tree.map(jnp.subtract, twists[1], twists[0]))
        linear, angular = second.rotation.T @ relative[:dim], relative[dim:]
        slides, turns = _places(self.sliding.slides), _places(self.sliding.turns)
        return jnp.concatenate([linear[slides], self.radius * angular[turns]])

    def pressing(self, frames: Frames, force: Float[Array, " dim"]) -> Float[Array, " pressing"]:
        return (frames[1].rotation.T @ force)[_places(self.sliding.presses)]

    def wrenches(self, frames: Frames, twists: Twists, force: Float[Array, " dim"]) -> Twists:
        speed, transpose = jax.vjp(lambda own: self.slip(frames, own), twists)
        pressing = self.pressing(frames, force)
        normal = jnp.sqrt(pressing @ pressing + SMOOTHING**2)
        (wrenches,) = transpose(-self.coefficient * normal * saturated(speed / self.velocity))
        return wrenches


def _places(axes: tuple[int, ...]) -> np.ndarray:
    return np.array(axes, dtype=int)


class CoulombFriction(AbstractJointFriction):
    """Dry friction in a joint, regularised, from the joint's own reaction:

        friction = coefficient N tanh(|u| / velocity)

    against the sliding velocity u. N is the resultant of the joint's point rows: in a revolute
    joint of the plane and in a spherical joint the whole reaction force, in all other joints the
    reaction force across the axis (neither the thrust along the axis of a revolute joint nor
    bending moments rub). |F| is smoothed to sqrt(F . F + (1e-12 N)^2).

    - Revolute: u = radius times the relative angular velocity; torque about the axis.
    - Translational: u = the relative velocity along the axis; force along the axis.
    - Cylindrical: u has both components, and the friction is against their resultant.
    - Spherical: u = radius times the relative angular velocity, a vector; torque along it.

    F in the equations of motion then depends on the multipliers: `solve_with_friction` solves for
    both, and `certify` shows whether the motion is unique.

    **Arguments:** `joint`: its name; `coefficient`: >= 0; `velocity`: regularisation velocity
    (m/s) of the sliding, > 0; `radius`: bearing radius (m), > 0, of joints that turn.
    """

    kind: ClassVar[str] = "coulomb_friction"
    strengths: ClassVar[tuple[str, ...]] = ("coefficient",)
    name: str = eqx.field(static=True, converter=FORCE_NAME)
    joint: str = eqx.field(static=True, converter=JOINT)
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

    def law_of(self, joint: AbstractJoint) -> SlidingFriction:
        if type(joint) not in _SLIDING:
            raise ValueError(
                f"friction in joint {_checks.shown(joint.name)} ({joint.kind}) is not known; it is "
                "in revolute, translational, cylindrical and spherical joints."
            )
        sliding = _SLIDING[type(joint)]
        if sliding.turns and self.radius is None:
            raise ValueError(
                f"joint {_checks.shown(joint.name)} ({joint.kind}) turns, so its friction "
                "needs `radius`, that of the bearing."
            )
        radius = jnp.asarray(0.0) if self.radius is None else self.radius
        return SlidingFriction(self.coefficient, radius, self.velocity, sliding)


def saturated(x: Float[Array, " n"]) -> Float[Array, " n"]:
    """x tanh(|x|) / |x|: x near zero, the unit vector along x far away.

    The quotient is a function of the squared length, with a Taylor branch where it has no
    digits to lose (the next term is below 1e-19 there), so that all derivatives exist.
    """
    square = x @ x
    small = square < 1e-6
    size = jnp.sqrt(jnp.where(small, 1.0, square))
    quotient = jnp.where(small, 1 - square / 3 + 2 * square**2 / 15, jnp.tanh(size) / size)
    return quotient * x
