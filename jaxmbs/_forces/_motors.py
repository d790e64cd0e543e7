"""Motors: forces along a joint's coordinate by an actuator behind a gear, with a given command or a
controller.
"""

from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from .. import _checks, _settings
from .._constraints import AbstractCoordinate, AbstractJoint, AbstractMotion, Frames, Twists
from .._custom_types import Numbers, RealScalarLike, Scalar, Setting
from .._fields import Field, optional, positive, word
from .._geometry import ANGLE, LENGTH, Quantity
from ._actuators import AbstractActuator, clamp, Operation
from ._controllers import AbstractController, Feedback
from ._springs import rates
from .base import (
    AbstractExternalLoad,
    AbstractJointForce,
    AbstractStatefulLoad,
    FORCE_NAME,
    JOINT,
    States,
)


# --------------------------------------------------------------------------------------------------
# The law: from the motion of a coordinate to the force along it.
# --------------------------------------------------------------------------------------------------


class Gear(eqx.Module):
    """A gear with losses: in the `forward` direction, where the actuator drives the joint, its
    efficiency; `backward`, where the joint drives the actuator; the speed of the joint's coordinate
    within which the losses set in."""

    forward: Scalar
    backward: Scalar
    transition_speed: Scalar

    def factor(self, torque: Scalar, rate: Scalar) -> Scalar:
        """The torque on the joint over that of an ideal gear, `torque`, at this rate of the joint.

        With s = tanh(rate / transition_speed) along the torque it is 1 - (1 - forward) s where s
        is positive, 1 - (1 / backward - 1) s where it is negative: 1 at rest, with a kink there.
        """
        s = jnp.tanh(rate / self.transition_speed) * jnp.sign(torque)
        lost = jnp.where(s > 0, 1 - self.forward, 1 / self.backward - 1)
        return 1 - lost * s


class MotorState(eqx.Module):
    """A motor at one state.

    - `coordinate` of the joint (rad or m), an angle between -pi and pi where the configuration
      counts no turns, and its `rate` (rad/s or m/s); `torque` on the joint's second body along it
      (N m or N); `speed` and `shaft_torque` of the actuator before the gear.
    - `command` that is carried out (V, N m or N), `wanted` the one that command and controller ask
      for; `saturated`: are the two different (True or False; along a motion 1 or 0)?
    - `current` (A) and `winding_loss` (W): zero of actuators without winding.
    """

    coordinate: Scalar
    rate: Scalar
    torque: Scalar
    speed: Scalar
    shaft_torque: Scalar
    command: Scalar
    wanted: Scalar
    saturated: Bool[Array, ""] | Scalar
    current: Scalar
    winding_loss: Scalar


class MotorInfo(NamedTuple):
    """One motor: its joint, the quantity of the coordinate on which it acts, the unit of its
    command, and whether its actuator has a winding."""

    name: str
    joint: str
    quantity: Quantity
    command_unit: str
    electrical: bool


class MotorLaw(eqx.Module):
    """The law of a motor, without name and place."""

    coordinate: AbstractCoordinate
    actuator: AbstractActuator
    controller: AbstractController | None
    reference: AbstractMotion | None
    given: AbstractMotion | None
    limits: Float[Array, "2"] | None
    ratio: Scalar
    gear: Gear | None

    def rate(self, frames: Frames, twists: Twists) -> Scalar:
        """The rate of the coordinate (rad/s or m/s), linear in the twists."""
        zero = jnp.zeros((), frames[0].dtype)
        along = rates(frames, twists)
        return jax.jvp(lambda f: self.coordinate.excess(f, zero), (frames,), (along,))[1]

    def state(
        self, frames: Frames, rate: Scalar, states: Float[Array, " n"], t: RealScalarLike
    ) -> MotorState:
        """The motor at the joint's marker frames and this rate of its coordinate."""
        wanted = self._wanted(self._seen(frames, rate, t), states, t)
        value = self.coordinate.excess(frames, jnp.zeros_like(rate))
        return eqx.tree_at(lambda x: x.coordinate, self._run(wanted, rate), value)

    def state_rates(
        self, frames: Frames, rate: Scalar, states: Float[Array, " n"], t: RealScalarLike
    ) -> Float[Array, " n"]:
        """The rates of the controller's states (1/s)."""
        assert self.controller is not None
        seen = self._seen(frames, rate, t)
        shortfall = jnp.zeros_like(rate)
        if self.controller.resists_windup():
            found = self._run(self._wanted(seen, states, t), rate)
            # (Exactly zero where nothing is limited.)
            shortfall = jnp.where(found.saturated, found.command - found.wanted, 0.0)
        return self.controller.state_rates(seen, states, shortfall)

    def _seen(self, frames: Frames, rate: Scalar, t: RealScalarLike) -> Feedback:
        t = jnp.asarray(t, frames[0].dtype)
        zero = jnp.zeros_like(rate)
        if self.controller is None or self.reference is None:
            return Feedback(zero, rate, zero)
        value, slope = jax.jvp(self.reference, (t,), (jnp.ones_like(t),))
        if not self.controller.needs_error():
            return Feedback(zero, rate, slope)
        return Feedback(-self.coordinate.excess(frames, value), rate, slope)

    def _wanted(self, seen: Feedback, states: Float[Array, " n"], t: RealScalarLike) -> Scalar:
        given = jnp.zeros_like(seen.rate)
        if self.given is not None:
            given = given + self.given(jnp.asarray(t, seen.rate.dtype))
        return given if self.controller is None else given + self.controller.command(seen, states)

    def _run(self, wanted: Scalar, rate: Scalar) -> MotorState:
        held, limited = wanted, jnp.zeros_like(wanted, bool)
        if self.limits is not None:
            held = clamp(wanted, self.limits[0], self.limits[1])
            limited = (wanted < self.limits[0]) | (wanted > self.limits[1])
        speed = self.ratio * rate
        found: Operation = self.actuator.operate(held, speed)
        torque = self.ratio * found.torque
        if self.gear is not None:
            torque = torque * self.gear.factor(torque, rate)
        return MotorState(
            coordinate=jnp.zeros_like(rate),
            rate=rate,
            torque=torque,
            speed=speed,
            shaft_torque=found.torque,
            command=found.command,
            wanted=wanted,
            saturated=limited | found.limited,
            current=found.current,
            winding_loss=found.loss,
        )


def _wrenches(
    law: MotorLaw, frames: Frames, twists: Twists, states: Float[Array, " n"], t: RealScalarLike
) -> Twists:
    """The wrenches of power torque * rate, which balance each other."""
    rate, transpose = jax.vjp(lambda w: law.rate(frames, w), twists)
    (found,) = transpose(law.state(frames, rate, states, t).torque)
    return found


class MotorLoad(AbstractExternalLoad):
    """A motor without states of its own."""

    law: MotorLaw

    def wrenches(self, frames: Frames, twists: Twists, t: RealScalarLike) -> Twists:
        return _wrenches(self.law, frames, twists, jnp.zeros((0,), frames[0].dtype), t)

    def motor_state(self, frames: Frames, twists: Twists, t: RealScalarLike) -> MotorState:
        """The motor at this motion of the markers."""
        none = jnp.zeros((0,), frames[0].dtype)
        return self.law.state(frames, self.law.rate(frames, twists), none, t)


class ControlledMotorLoad(AbstractStatefulLoad):
    """A motor whose controller has states."""

    law: MotorLaw

    def wrenches_with(
        self, frames: Frames, twists: Twists, states: Float[Array, " n"], t: RealScalarLike
    ) -> Twists:
        return _wrenches(self.law, frames, twists, states, t)

    def state_rates(
        self, frames: Frames, twists: Twists, states: Float[Array, " n"], t: RealScalarLike
    ) -> Float[Array, " n"]:
        return self.law.state_rates(frames, self.law.rate(frames, twists), states, t)

    def motor_state(self, frames: Frames, twists: Twists, t: RealScalarLike) -> MotorState:
        """The motor at this motion of the markers, the last of which holds the states."""
        held, moving = frames[:-1], twists[:-1]
        return self.law.state(held, self.law.rate(held, moving), frames[-1].values, t)


# --------------------------------------------------------------------------------------------------
# The motor as the user writes it.
# --------------------------------------------------------------------------------------------------


def _held(key: str, meaning: str, holds: str, cls: type[Any], example: str) -> Callable[[Any], Any]:
    """A part within the motor, which a model file writes as a table."""

    def check(value: Any, what: str) -> Any:
        return _settings.instance(value, cls, what, example)

    return Field(key, "", meaning, dict[str, Any], "a table", check, holds=holds)


_EXAMPLE = "a motion, such as motions.Step(times=[0, 1], values=[0, 2])"
_ACTUATOR = _held(
    "actuator",
    "that makes the torque",
    "actuator",
    AbstractActuator,
    "an actuator, such as forces.DCMotor(torque_constant=0.05, resistance=0.4)",
)
_CONTROLLER = _held(
    "controller",
    "of the coordinate",
    "controller",
    AbstractController,
    "a controller, such as forces.PID(proportional=10.0)",
)
_REFERENCE = _held("reference", "that the controller follows", "motion", AbstractMotion, _EXAMPLE)
_COMMAND = _held(
    "command", "over time, with that of the controller", "motion", AbstractMotion, _EXAMPLE
)


def _limits(value: Numbers, what: str) -> Float[Array, "2"]:
    """One number for both directions, or the least and the greatest command."""
    if _checks.shape_of(value) == ():
        size = _checks.positive(value, what)
        return jnp.stack([-size, size])
    pair = _checks.real(value, (2,), what)
    known = _checks.concrete(pair)
    if known is not None and not known[0] < known[1]:
        raise ValueError(
            f"{what} must be one number > 0, or the least command and a greater one, got "
            f"{_checks.shown(known.tolist())}."
        )
    return pair


_LIMITS = optional(
    Field(
        "limits",
        "V, N m or N",
        "least and greatest command",
        float | list[float],
        "a number > 0 for both directions, or 2 increasing numbers",
        _limits,
        split=lambda pair: {"limits": pair[1] if pair[0] == -pair[1] else pair},
    ),
    "none",
)


def _ratio(value: Numbers, what: str) -> Scalar:
    array = _checks.real(value, (), what)
    known = _checks.concrete(array)
    if known is not None and abs(float(known)) < _checks.SMALLEST:
        raise ValueError(
            f"{what} must not be zero, got {float(known):g}: it is the speed of the actuator over "
            "that of the joint."
        )
    return array


_RATIO = Field(
    "ratio",
    "1 or rad/m",
    "speed of the actuator over that of the joint",
    float,
    "a number, not 0",
    _ratio,
)


def _efficiency(key: str, meaning: str, left_out: str) -> Callable[[Numbers | None], Scalar | None]:
    def check(value: Numbers, what: str) -> Scalar:
        array = _checks.positive(value, what)
        known = _checks.concrete(array)
        if known is not None and known > 1:
            raise ValueError(f"{what} must be at most 1, got {float(known):g}.")
        return array

    bounds = (("exclusiveMinimum", 0.0), ("maximum", 1.0))
    field = Field(key, "1", meaning, float, "a number > 0, at most 1", check, bounds=bounds)
    return optional(field, left_out)


_QUANTITIES = {"rotation": ANGLE, "translation": LENGTH}


class Motor(AbstractJointForce):
    """A motor on a coordinate of a joint: an actuator behind a gear, with a command over time, a
    controller, or both.

        torque on the second body along the coordinate = ratio * shaft torque * gear factor,

    and the opposite on the first. The coordinate is that which a driver would prescribe: of the
    second body against the first, zero in the reference configuration. The shaft turns at `ratio`
    times the rate of the coordinate. The command of the actuator is `command(t)`, by which a
    controller is fed forward, plus the controller's, and held within `limits` (`clamp`).

    A gear with losses passes the part `efficiency` of the power on to the joint where the actuator
    drives it; where the joint drives the actuator, that takes the part `backward_efficiency` of the
    joint's power (default the same). At a speed u of the coordinate along the torque the losses are
    tanh(|u| / transition_speed) times these, so that the torque is continuous, with a kink at rest.

    A motor is a force and has no mass: the inertia of its rotor, ratio^2 times its own, is an
    element (`spatial.ReflectedInertia`, `spatial.ReflectedMass`) or belongs to a body. It stores no
    energy. It is a load and not a constraint, which leaves the mobility as it is.

    **Arguments:** `joint`: its name; `coordinate`: "rotation" (default; revolute, cylindrical) or
    "translation" (translational, cylindrical); `actuator`: `IdealActuator`, `DCMotor` or
    `TorqueSpeed`. `controller`: a `PID`, and the motion `reference` (rad or m) that it follows.
    `command`: a motion in the actuator's unit: V of a `DCMotor`, N m, or N of an `IdealActuator`
    that slides. `limits`: of the command, one number > 0 or (least, greatest). `ratio`: default 1;
    of a shaft that turns and a joint that slides rad/m. `efficiency`, `backward_efficiency`:
    0 < ... <= 1, default without losses; `transition_speed`: rad/s or m/s, needed with them.

    **Raises:** `TypeError` or `ValueError` that names what is wrong: neither command nor
    controller, a controller without its reference, losses without a speed.
    """

    kind: ClassVar[str] = "motor"
    name: str = eqx.field(static=True, converter=FORCE_NAME)
    joint: str = eqx.field(static=True, converter=JOINT)
    coordinate: str = eqx.field(
        static=True,
        default="rotation",
        converter=word("coordinate", "of the joint", "rotation or translation"),
    )
    actuator: Setting[AbstractActuator] = eqx.field(kw_only=True, converter=_ACTUATOR)
    controller: AbstractController | None = eqx.field(
        default=None, kw_only=True, converter=optional(_CONTROLLER, "none")
    )
    reference: AbstractMotion | None = eqx.field(
        default=None, kw_only=True, converter=optional(_REFERENCE, "none")
    )
    command: AbstractMotion | None = eqx.field(
        default=None, kw_only=True, converter=optional(_COMMAND, "zero")
    )
    limits: Float[Array, "2"] | None = eqx.field(default=None, kw_only=True, converter=_LIMITS)
    ratio: Scalar = eqx.field(default=1.0, kw_only=True, converter=_RATIO)
    efficiency: Scalar | None = eqx.field(
        default=None,
        kw_only=True,
        converter=_efficiency("efficiency", "of the gear, driving the joint", "no losses"),
    )
    backward_efficiency: Scalar | None = eqx.field(
        default=None,
        kw_only=True,
        converter=_efficiency(
            "backward_efficiency", "of the gear, driven by the joint", "as efficiency"
        ),
    )
    transition_speed: Scalar | None = eqx.field(
        default=None,
        kw_only=True,
        converter=optional(
            positive("transition_speed", "rad/s or m/s", "within which the losses set in"), "none"
        ),
    )

    def __check_init__(self):
        """Each part has what it needs, and something to act on."""
        _checks.one_of(self.coordinate, _QUANTITIES, "coordinate")
        self._check_command()
        lossy = self.efficiency is not None
        if self.backward_efficiency is not None and not lossy:
            raise ValueError("backward_efficiency is given without `efficiency`; give both.")
        if lossy != (self.transition_speed is not None):
            missing, given = "transition_speed", "efficiency"
            if not lossy:
                missing, given = given, missing
            raise ValueError(
                f"{given} is given without `{missing}`; a gear with losses needs both, the part of "
                "the power that it passes on and the speed of the joint within which losses set in."
            )

    def _check_command(self) -> None:
        controller = self.controller
        if controller is None and self.command is None:
            raise ValueError("a motor needs a `command`, a `controller`, or both, got neither.")
        if controller is None and self.reference is not None:
            raise ValueError(
                "a reference is followed by a controller, and there is none; give a `controller`, "
                "such as PID(proportional=10.0), or say `command` if that is meant."
            )
        if controller is None:
            return
        if controller.needs_reference() and self.reference is None:
            raise ValueError(
                "the controller needs a `reference`, the motion that it follows (rad or m), such "
                "as Linear(rate=1.0)."
            )
        if controller.resists_windup() and self.limits is None and not self.actuator.saturates():
            raise ValueError(
                "tracking_time is that of a limited command, and nothing limits it; give `limits`, "
                "or leave it out."
            )

    @property
    def quantity(self) -> Quantity:
        """The quantity of the coordinate: an angle or a length."""
        return _QUANTITIES[self.coordinate]

    @property
    def command_unit(self) -> str:
        """The unit of the command."""
        return self.actuator.command_unit(self.coordinate)

    @property
    def info(self) -> MotorInfo:
        """The motor in words."""
        electrical = self.actuator.electrical
        return MotorInfo(self.name, self.joint, self.quantity, self.command_unit, electrical)

    def states(self) -> States | None:
        names = () if self.controller is None else self.controller.state_names
        if self.controller is None or not names:
            return None
        command = Quantity("command", self.command_unit)
        quantities = self.controller.state_quantities(command, self.quantity)
        return States(names, quantities, jnp.zeros(len(names)))

    def law(self, coordinate: AbstractCoordinate) -> MotorLaw:
        """The law along a coordinate."""
        return MotorLaw(
            coordinate=coordinate,
            actuator=self.actuator,
            controller=self.controller,
            reference=self.reference,
            given=self.command,
            limits=self.limits,
            ratio=self.ratio,
            gear=self._gear(),
        )

    def _gear(self) -> Gear | None:
        """The losses of the gear, if it has any."""
        forward, backward, speed = self.efficiency, self.backward_efficiency, self.transition_speed
        if forward is None or speed is None:
            return None
        return Gear(forward, forward if backward is None else backward, speed)

    def load_on(self, joint: AbstractJoint) -> MotorLoad | ControlledMotorLoad:
        coordinates = joint.coordinates()
        if self.coordinate not in coordinates:
            offer = " or ".join(map(repr, coordinates)) or "none on which a motor acts"
            raise ValueError(
                f"joint {_checks.shown(joint.name)} ({joint.kind}) has no {self.coordinate}; it "
                f"has {offer}."
            )
        law = self.law(coordinates[self.coordinate])
        return MotorLoad(law) if self.states() is None else ControlledMotorLoad(law)

    def command_of(self, torque: Scalar, rate: Scalar) -> Scalar:
        """The command that makes this torque on the joint (N m or N) at this rate of its
        coordinate, limits aside."""
        shaft = torque / self.ratio
        gear = self._gear()
        if gear is not None:
            # The factor depends on the sign of the torque, which losses do not change.
            shaft = shaft / gear.factor(torque, rate)
        return self.actuator.command_of(shaft, self.ratio * rate)
