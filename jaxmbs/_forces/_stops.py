"""Stops: one-sided springs with dampers at the ends of the range of a joint's coordinate."""

import math
from typing import ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from .. import _checks
from .._constraints import (
    AbstractCoordinate,
    AbstractGeometricPrimitive,
    AbstractJoint,
    Frames,
    OneSided,
    Release,
    Row,
    SpatialRotation,
    Twists,
)
from .._custom_types import RealScalarLike, Scalar
from .._fields import bounded, not_negative, number, optional, positive, word
from .._geometry import ANGLE, LENGTH, Quantity
from .._limits import NumberRange
from ._contact_law import normal_force, restitution_damping, stored_energy
from ._springs import rates
from .base import AbstractJointForce, AbstractOneSidedLoad, Clearance, FORCE_NAME, JOINT


# Frames in space do not count turns. What is left of the turn (rad) outside of the range must not
# be less than this.
_LEAST_REST = 0.1
# Of that rest, what is known to be beyond the nearer bound: each side has half of it.
_KNOWN_FRACTION = 0.75


def within_turn(lower: float, upper: float) -> bool:
    """Is a range (rad; zero for a missing bound) one that angles in space tell from turns?"""
    return abs(upper - lower) <= 2 * math.pi - _LEAST_REST


class StopState(eqx.Module):
    """A stop at one state.

    - `value` of the joint's coordinate (rad or m), `rate` its rate.
    - `depths` (2,): how deep the lower and the upper bound are pressed; minus the distance where
      they are not, -inf where there is no such bound.
    - `force` on the joint's second body along the coordinate (N m or N).
    - `loss`: power (W) that the damping takes.
    - `stiffness`, `exponent`: of the law.
    """

    value: Scalar
    rate: Scalar
    depths: Float[Array, "2"]
    force: Scalar
    loss: Scalar
    stiffness: Scalar
    exponent: Scalar


class StopInfo(NamedTuple):
    """One stop: its joint, and the quantity of the coordinate on which it acts."""

    name: str
    joint: str
    quantity: Quantity


class StopLoad(AbstractOneSidedLoad):
    """The force of a stop along a joint's coordinate. `restitution`: in motions with rigid limits,
    NaN where the stop has a damping that does not tell it."""

    coordinate: AbstractCoordinate
    lower: Scalar | None
    upper: Scalar | None
    stiffness: Scalar
    exponent: Scalar
    damping: Scalar
    restitution: Scalar

    def wrenches(self, frames: Frames, twists: Twists, t: RealScalarLike) -> Twists:
        del t
        rate, transpose = jax.vjp(lambda w: self.rate(frames, w), twists)
        (found,) = transpose(self._force(self.value(frames), rate))
        return found

    def potential(self, frames: Frames) -> Scalar:
        return self._energy(self.value(frames))

    def stop_state(self, frames: Frames, twists: Twists) -> StopState:
        """The stop at this motion of the markers."""
        value, rate = self.value(frames), self.rate(frames, twists)
        force = self._force(value, rate)
        return StopState(
            value=value,
            rate=rate,
            depths=self.depths(frames),
            force=force,
            loss=(self._force(value, jnp.zeros_like(rate)) - force) * rate,
            stiffness=self.stiffness,
            exponent=self.exponent,
        )

    def depths(self, frames: Frames) -> Float[Array, "2"]:
        """Penetration of the lower and of the upper bound (rad or m); -inf without a bound."""
        value = self.value(frames)
        without = jnp.full_like(value, -jnp.inf)
        lower = without if self.lower is None else self.lower - value
        upper = without if self.upper is None else value - self.upper
        return jnp.stack([lower, upper])

    def clearance(self, frames: Frames, twists: Twists) -> Clearance:
        # A range is wide beside depths that are small; an angle without one counts as 1 rad.
        size = jnp.full_like(self.stiffness, jnp.inf if self.coordinate.quantity == LENGTH else 1.0)
        if self.lower is not None and self.upper is not None:
            size = jnp.minimum(size, self.upper - self.lower)
        return Clearance(-jnp.max(self.depths(frames)), jnp.abs(self.rate(frames, twists)), size)

    def rate(self, frames: Frames, twists: Twists) -> Scalar:
        """The rate of the coordinate (rad/s or m/s), linear in the twists."""
        zero = jnp.zeros((), frames[0].dtype)
        along = rates(frames, twists)
        return jax.jvp(lambda f: self.coordinate.excess(f, zero), (frames,), (along,))[1]

    def value(self, frames: Frames) -> Scalar:
        """The coordinate (rad or m).

        An angle in space is that within half a turn of the middle of the range, of which one end is
        zero where a bound is missing; NaN around the opposite of the middle, where it could be
        beyond either end.
        """
        lower = jnp.zeros_like(self.stiffness) if self.lower is None else self.lower
        upper = jnp.zeros_like(self.stiffness) if self.upper is None else self.upper
        middle = (lower + upper) / 2
        away = self.coordinate.excess(frames, middle)
        if not isinstance(self.coordinate, SpatialRotation):
            return middle + away
        half = jnp.abs(upper - lower) / 2
        rest = jnp.pi - half
        known = (jnp.abs(away) < half + _KNOWN_FRACTION * rest) & (2 * rest >= _LEAST_REST)
        return jnp.where(known, middle + away, jnp.nan)

    def _force(self, value: Scalar, rate: Scalar) -> Scalar:
        law = (self.stiffness, self.exponent, self.damping)
        force = jnp.zeros_like(value)
        if self.lower is not None:
            force = force + normal_force(self.lower - value, -rate, *law)
        if self.upper is not None:
            force = force - normal_force(value - self.upper, rate, *law)
        # A value that is not known is not one outside of the range.
        return jnp.where(jnp.isnan(value), value, force)

    def _energy(self, value: Scalar) -> Scalar:
        law = (self.stiffness, self.exponent)
        energy = jnp.zeros_like(value)
        if self.lower is not None:
            energy = energy + stored_energy(self.lower - value, *law)
        if self.upper is not None:
            energy = energy + stored_energy(value - self.upper, *law)
        return jnp.where(jnp.isnan(value), value, energy)


_PRESSED = OneSided(-1, "contact force", "the joint would leave its stop", opens=True)


class StopRows(AbstractGeometricPrimitive):
    """A stop of a joint as one-sided rows, of its lower and of its upper bound: how far the
    coordinate is inside of its range (m or rad). Minus the multiplier is the force (N or N m) that
    pushes it back."""

    load: StopLoad

    @property
    def rows(self) -> tuple[Row, ...]:
        load = self.load
        ends = (("lower", load.lower), ("upper", load.upper))
        quantity = load.coordinate.quantity
        return tuple(Row(word, quantity, _PRESSED) for word, end in ends if end is not None)

    def position(self, frames: Frames, t: RealScalarLike) -> Float[Array, " geometric"]:
        del t
        value, load = self.load.value(frames), self.load
        inside = [] if load.lower is None else [value - load.lower]
        inside += [] if load.upper is None else [load.upper - value]
        return jnp.stack(inside)


_QUANTITIES = {"rotation": ANGLE, "translation": LENGTH}


class JointStop(AbstractJointForce):
    """Stops at the ends of the range of a joint's coordinate x, springs with dampers that push the
    joint back and never pull (Hunt & Crossley 1975):

        force = stiffness d^exponent (1 + damping dd/dt) where d > 0 and the bracket is positive,

    else zero, with d = lower - x and d = x - upper the depths of the two ends. The coordinate is
    that which a driver would prescribe: of the second body against the first, zero in the reference
    configuration. It is a load and not a constraint, so that it leaves the mobility as it is;
    verdicts and reactions take it as a known force.

    A coefficient of restitution is exact for this law: a joint that meets a stop at `impact_speed`
    and is pressed by nothing else leaves it with `restitution` times that speed, whatever its mass
    and the stiffness are. Slower impacts lose less, and faster ones more. Stops with unlike ends
    are two.

    An angle in space is known up to full turns: the range (with zero for a missing bound) is less
    than a turn by 0.1 rad or more. Where the angle is so far outside that it could be beyond either
    end, the force is NaN, which ends a run.

    **Arguments:** `joint`: its name; `coordinate`: "rotation" (default; revolute, cylindrical) or
    "translation" (translational, cylindrical); `lower`, `upper`: rad or m, at least one of them;
    `stiffness`: N/m^exponent or N m/rad^exponent; `exponent`: at least 1, default 1.
    `restitution`: 0 < ... <= 1 at `impact_speed` (m/s or rad/s); or `damping` (s/m or s/rad);
    default without damping.

    **Raises:** `TypeError` or `ValueError` that names what is wrong: no bound, bounds that do not
    increase, a restitution without its speed or beside a damping.
    """

    kind: ClassVar[str] = "joint_stop"
    name: str = eqx.field(static=True, converter=FORCE_NAME)
    joint: str = eqx.field(static=True, converter=JOINT)
    coordinate: str = eqx.field(
        static=True,
        default="rotation",
        converter=word("coordinate", "of the joint", "rotation or translation"),
    )
    lower: Scalar | None = eqx.field(
        default=None,
        kw_only=True,
        converter=optional(number("lower", "rad or m", "least value of the coordinate"), "none"),
    )
    upper: Scalar | None = eqx.field(
        default=None,
        kw_only=True,
        converter=optional(number("upper", "rad or m", "greatest value of the coordinate"), "none"),
    )
    stiffness: Scalar = eqx.field(
        kw_only=True,
        converter=positive("stiffness", "N/m^exponent or N m/rad^exponent", "of the stops"),
    )
    exponent: Scalar = eqx.field(
        default=1.0,
        kw_only=True,
        converter=bounded("exponent", "1", "of the depth", NumberRange(least=1, most=10)),
    )
    restitution: Scalar | None = eqx.field(
        default=None,
        kw_only=True,
        converter=optional(
            bounded(
                "restitution",
                "1",
                "speed after an impact over that before it",
                NumberRange(above=0, most=1),
            ),
            "no damping",
        ),
    )
    impact_speed: Scalar | None = eqx.field(
        default=None,
        kw_only=True,
        converter=optional(
            positive("impact_speed", "rad/s or m/s", "at which the restitution is meant"), "none"
        ),
    )
    damping: Scalar | None = eqx.field(
        default=None,
        kw_only=True,
        converter=optional(
            not_negative("damping", "s/rad or s/m", "of the stops, in place of a restitution"),
            "from the restitution",
        ),
    )

    def __check_init__(self):
        """There is a range, and one damping."""
        _checks.one_of(self.coordinate, _QUANTITIES, "coordinate")
        if self.lower is None and self.upper is None:
            raise ValueError("a stop needs a `lower` bound, an `upper` one, or both, got neither.")
        if self.lower is not None and self.upper is not None:
            low, high = map(_checks.concrete, (self.lower, self.upper))
            if low is not None and high is not None and not low < high:
                raise ValueError(f"lower must be less than upper, got {low:g} and {high:g}.")
        if (self.restitution is None) != (self.impact_speed is None):
            given, missing = "restitution", "impact_speed"
            if self.restitution is None:
                given, missing = missing, given
            raise ValueError(
                f"{given} is given without `{missing}`; a coefficient of restitution is that at a "
                "stated speed, and needs both."
            )
        if self.restitution is not None and self.damping is not None:
            raise ValueError(
                "damping and restitution are both given, and each is the damping; leave one out."
            )

    @property
    def quantity(self) -> Quantity:
        """The quantity of the coordinate: an angle or a length."""
        return _QUANTITIES[self.coordinate]

    @property
    def info(self) -> StopInfo:
        """The stop in words."""
        return StopInfo(self.name, self.joint, self.quantity)

    def load_on(self, joint: AbstractJoint) -> StopLoad:
        coordinates = joint.coordinates()
        if self.coordinate not in coordinates:
            offer = " or ".join(map(repr, coordinates)) or "none on which a stop acts"
            raise ValueError(
                f"joint {_checks.shown(joint.name)} ({joint.kind}) has no {self.coordinate}; it "
                f"has {offer}."
            )
        coordinate = coordinates[self.coordinate]
        if isinstance(coordinate, SpatialRotation):
            self._refuse_whole_turn()
        return StopLoad(
            coordinate=coordinate,
            lower=self.lower,
            upper=self.upper,
            stiffness=self.stiffness,
            exponent=self.exponent,
            damping=self._damping(),
            restitution=self._rigid_restitution(),
        )

    def _refuse_whole_turn(self) -> None:
        ends = [_checks.concrete(0.0 if x is None else x) for x in (self.lower, self.upper)]
        if any(x is None for x in ends):
            return
        low, high = (float(x) for x in ends if x is not None)
        if not within_turn(low, high):
            zero = "" if None not in (self.lower, self.upper) else " (zero for the missing bound)"
            raise ValueError(
                f"the range from {low:g} to {high:g} rad{zero} leaves less than {_LEAST_REST:g} "
                "rad of a turn, and angles in space are known up to full turns; give a smaller "
                "range."
            )

    @classmethod
    def releases(cls) -> tuple[Release, ...]:
        """Joints of fewer rows that may take the place of a rigid stop: none."""
        return ()

    def _rigid_restitution(self) -> Scalar:
        """The coefficient of restitution of a rigid stop: 1 without damping."""
        if self.restitution is not None:
            return self.restitution
        if self.damping is None:
            return jnp.ones_like(self.stiffness)
        return jnp.where(self.damping > 0, jnp.nan, jnp.ones_like(self.stiffness))

    def _damping(self) -> Scalar:
        """That of the law (s/m or s/rad)."""
        if self.restitution is None or self.impact_speed is None:
            return jnp.zeros_like(self.stiffness) if self.damping is None else self.damping
        return restitution_damping(self.restitution) / self.impact_speed
