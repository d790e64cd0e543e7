"""Friction on a joint's coordinate that does not depend on the joint's reaction."""

from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from .. import _checks
from .._constraints import AbstractCoordinate, AbstractJoint, Frames, Twists
from .._custom_types import RealScalarLike, Scalar
from .._fields import not_negative, optional, positive, word
from .._geometry import ANGLE, LENGTH
from ._joint_patterns import JOINT_KIND, JOINT_OR_PATTERN
from ._springs import rates
from .base import (
    AbstractExternalLoad,
    AbstractJointForce,
    AbstractPatternForce,
    AbstractSign,
    AbstractStatefulLoad,
    check_sign,
    FORCE_NAME,
    RELAXATION_TIME,
    sign_of,
    States,
)


class RateFriction(eqx.Module):
    """A force along a joint's coordinate, of the rate u (rad/s or m/s) of the coordinate and of the
    `sign`'s number s between -1 and 1 in the place of u / |u|:

    -(sliding + (breakaway - sliding) exp(-(u / stribeck_speed)^2)) s - viscous u.
    """

    coordinate: AbstractCoordinate
    sliding: Scalar
    breakaway: Scalar
    stribeck_speed: Scalar
    sign: AbstractSign
    viscous: Scalar

    def resistance(self, rate: Scalar, bent: Scalar) -> Scalar:
        """The torque (N m) or force (N) along the coordinate."""
        fading = jnp.exp(-jnp.square(rate / self.stribeck_speed))
        dry = self.sliding + (self.breakaway - self.sliding) * fading
        return -dry * self.sign.direction(rate[None], bent[None])[0] - self.viscous * rate

    def rate_and_transpose(self, frames: Frames, twists: Twists) -> tuple[Scalar, Any]:
        """The rate of the coordinate, and what makes wrenches of a force along it."""
        zero = jnp.zeros((), frames[0].dtype)

        def rate_of(twists: Twists) -> Scalar:
            along = rates(frames, twists)
            return jax.jvp(lambda f: self.coordinate.excess(f, zero), (frames,), (along,))[1]

        return jax.vjp(rate_of, twists)

    def wrenches(self, frames: Frames, twists: Twists, bent: Scalar) -> Twists:
        rate, transpose = self.rate_and_transpose(frames, twists)
        (found,) = transpose(self.resistance(rate, bent))
        return found


class RateFrictionLoad(AbstractExternalLoad):
    """Friction of a joint's coordinate without states."""

    law: RateFriction

    def wrenches(self, frames: Frames, twists: Twists, t: RealScalarLike) -> Twists:
        del t
        return self.law.wrenches(frames, twists, jnp.zeros((), frames[0].dtype))


class BristleFrictionLoad(AbstractStatefulLoad):
    """Friction of a joint's coordinate with the displacement of its bristles as a state."""

    law: RateFriction

    def wrenches_with(
        self, frames: Frames, twists: Twists, states: Float[Array, " n"], t: RealScalarLike
    ) -> Twists:
        del t
        return self.law.wrenches(frames, twists, states[0])

    def state_rates(
        self, frames: Frames, twists: Twists, states: Float[Array, " n"], t: RealScalarLike
    ) -> Float[Array, " n"]:
        del t
        rate, _ = self.law.rate_and_transpose(frames, twists)
        return self.law.sign.rate(rate[None], states)


class JointFriction(AbstractJointForce, AbstractPatternForce):
    """Friction on a coordinate of a joint, whatever presses the joint together: of a bearing with
    seals, a gear, a preloaded slide. On the second body along the coordinate acts

        -(sliding + (breakaway - sliding) exp(-(u / stribeck_speed)^2)) tanh(u / velocity)
        - viscous u,

    and the opposite on the first, with u the rate of the coordinate (rad/s or m/s), that which a
    driver would prescribe: constant (Coulomb), viscous and Stribeck friction (Armstrong-Helouvry,
    Dupont & Canudas de Wit, Automatica 30, 1994, 1083-1138). The sign of u is regularised by
    tanh(u / velocity), so that a joint at rest creeps. With `presliding` in the place of `velocity`
    it sticks: the sign is (z + relaxation_time u) / presliding, between -1 and 1, of an elastic
    displacement z that follows the coordinate, a state of the force. A load below `breakaway` (or
    `sliding`) moves the joint by less than `presliding`, and holds it there.

    It is a load, as a damper is: reactions do not change it, and `certify` has no doubt about it.
    For friction from the joint's own reaction see `CoulombFriction`.

    **Arguments:** `joint`: its name, or a pattern such as "knee *" (wildcards * ? [ ]): friction of
    these numbers in each joint that it matches. `joint_kind`: of these only the joints of one kind,
    such as "revolute". `coordinate`: "rotation" (default; revolute, cylindrical) or "translation"
    (translational, cylindrical). `sliding`: constant friction, N m or N, >= 0 (MJCF `frictionloss`,
    URDF and SDF `friction`); `viscous`: N m s/rad or N s/m, >= 0. `breakaway`: friction as it
    starts to slide, N m or N, at least `sliding`; with it `stribeck_speed`, over which it falls,
    rad/s or m/s, > 0. One of the next two is needed with `sliding` or `breakaway`: `velocity`,
    regularisation speed, rad/s or m/s, > 0, well below `stribeck_speed`; `presliding`, rad or m,
    > 0, with `relaxation_time`, s, > 0, default 0.001, in which a displacement beyond it returns.
    """

    kind: ClassVar[str] = "joint_friction"
    strengths: ClassVar[tuple[str, ...]] = ("sliding", "viscous", "breakaway")
    name: str = eqx.field(static=True, converter=FORCE_NAME)
    joint: str = eqx.field(static=True, converter=JOINT_OR_PATTERN)
    coordinate: str = eqx.field(
        static=True,
        default="rotation",
        converter=word("coordinate", "of the joint", "rotation or translation"),
    )
    joint_kind: str | None = eqx.field(
        static=True, default=None, kw_only=True, converter=JOINT_KIND
    )
    sliding: Scalar = eqx.field(
        default=0.0,
        kw_only=True,
        converter=not_negative("sliding", "N m or N", "constant friction"),
    )
    viscous: Scalar = eqx.field(
        default=0.0,
        kw_only=True,
        converter=not_negative("viscous", "N m s/rad or N s/m", "friction over the rate"),
    )
    breakaway: Scalar | None = eqx.field(
        default=None,
        kw_only=True,
        converter=optional(
            not_negative("breakaway", "N m or N", "friction as it starts to slide"), "sliding"
        ),
    )
    stribeck_speed: Scalar | None = eqx.field(
        default=None,
        kw_only=True,
        converter=optional(
            positive("stribeck_speed", "rad/s or m/s", "over which breakaway falls to sliding"),
            "none",
        ),
    )
    velocity: Scalar | None = eqx.field(
        default=None,
        kw_only=True,
        converter=optional(positive("velocity", "rad/s or m/s", "of the regularisation"), "none"),
    )
    presliding: Scalar | None = eqx.field(
        default=None,
        kw_only=True,
        converter=optional(
            positive("presliding", "rad or m", "displacement up to which it sticks"), "none"
        ),
    )
    relaxation_time: Scalar | None = eqx.field(
        default=None, kw_only=True, converter=RELAXATION_TIME
    )

    def __check_init__(self):
        """Each number has those that it needs."""
        _checks.one_of(self.coordinate, ("rotation", "translation"), "coordinate")
        if (self.breakaway is None) != (self.stribeck_speed is None):
            missing, given = "stribeck_speed", "breakaway"
            if self.breakaway is None:
                missing, given = given, missing
            raise ValueError(
                f"{given} is given without `{missing}`; Stribeck friction needs both, the friction "
                "as it starts to slide and the speed over which it falls to `sliding`."
            )
        sliding = _checks.concrete(self.sliding)
        breakaway = None if self.breakaway is None else _checks.concrete(self.breakaway)
        if sliding is not None and breakaway is not None and breakaway < sliding:
            raise ValueError(
                f"breakaway must be at least `sliding` = {float(sliding):g}, got "
                f"{float(breakaway):g}."
            )
        # Numbers that are not known may be zero, as they are in derivatives.
        dry = self.breakaway is not None or sliding is None or bool(sliding > 0)
        if dry or self.presliding is not None or self.relaxation_time is not None:
            unit = "rad" if self.coordinate == "rotation" else "m"
            check_sign(self.velocity, self.presliding, self.relaxation_time, unit)

    def states(self) -> States | None:
        if self.presliding is None:
            return None
        quantity = ANGLE if self.coordinate == "rotation" else LENGTH
        return States(("z",), (quantity,), jnp.zeros(1))

    def load_on(self, joint: AbstractJoint) -> RateFrictionLoad | BristleFrictionLoad:
        coordinates = joint.coordinates()
        if self.coordinate not in coordinates:
            offer = " or ".join(map(repr, coordinates)) or "none on which this friction acts"
            raise ValueError(
                f"joint {_checks.shown(joint.name)} ({joint.kind}) has no {self.coordinate}; it "
                f"has {offer}."
            )
        one = jnp.ones_like(self.sliding)
        velocity = one if self.velocity is None else self.velocity
        law = RateFriction(
            coordinate=coordinates[self.coordinate],
            sliding=self.sliding,
            breakaway=self.sliding if self.breakaway is None else self.breakaway,
            stribeck_speed=one if self.stribeck_speed is None else self.stribeck_speed,
            sign=sign_of(velocity, self.presliding, self.relaxation_time),
            viscous=self.viscous,
        )
        return RateFrictionLoad(law) if self.presliding is None else BristleFrictionLoad(law)
