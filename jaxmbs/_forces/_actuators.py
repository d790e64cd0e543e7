"""Actuators of motors: the torque that a command makes at a speed of the shaft."""

import abc
from collections.abc import Callable
from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from .. import _checks
from .._custom_types import NumberList, Numbers, Scalar
from .._fields import AbstractDeclared, Field, numbers, optional, positive


def clamp(
    value: Float[Array, ""], low: Float[Array, "*shape"], high: Float[Array, "*shape"]
) -> Float[Array, "*shape"]:
    """The value held between `low` and `high`. Its derivative in the value is 1 between them, 0
    beyond, and 1/2 at a limit itself; that in a limit is what is missing to 1."""
    return jnp.minimum(jnp.maximum(value, low), high)


class Operation(eqx.Module):
    """An actuator at work.

    - `torque`: on the shaft (N m; N of a linear one). `current`: A. `loss`: heat of the winding
      (W); both zero of an actuator without winding.
    - `command`: the one that is carried out, which is another than the given one where the
      actuator is `limited`.
    """

    torque: Scalar
    current: Scalar
    loss: Scalar
    command: Scalar
    limited: Bool[Array, ""]


class AbstractActuator(AbstractDeclared):
    """The law of a motor's torque. `kind`: its name in model files; `electrical`: does it have a
    winding; `passive`: is its torque zero at the command zero, whatever the speed?"""

    kind: ClassVar[str]
    electrical: ClassVar[bool]
    passive: ClassVar[bool]

    @abc.abstractmethod
    def command_unit(self, coordinate: str) -> str:
        """The unit of the command of a motor on that coordinate of a joint."""

    @abc.abstractmethod
    def saturates(self) -> bool:
        """Is there any command that the actuator does not carry out?"""

    @abc.abstractmethod
    def operate(self, command: Scalar, speed: Scalar) -> Operation:
        """The actuator at a command and a speed of its shaft (rad/s; m/s of a linear one)."""

    @abc.abstractmethod
    def command_of(self, torque: Scalar, speed: Scalar) -> Scalar:
        """The command that makes this torque at this speed, limits aside."""


class IdealActuator(AbstractActuator):
    """An actuator whose torque is its command: N m in a joint that turns, N along one that
    slides."""

    kind: ClassVar[str] = "ideal"
    electrical: ClassVar[bool] = False
    passive: ClassVar[bool] = True

    def command_unit(self, coordinate: str) -> str:
        return "N" if coordinate == "translation" else "N m"

    def saturates(self) -> bool:
        return False

    def operate(self, command: Scalar, speed: Scalar) -> Operation:
        zero = jnp.zeros_like(speed)
        return Operation(command, zero, zero, command, jnp.zeros_like(speed, bool))

    def command_of(self, torque: Scalar, speed: Scalar) -> Scalar:
        del speed
        return torque


class DCMotor(AbstractActuator):
    """A direct-current motor with constant field, whose command is the voltage u (V) at its
    terminals. The inductance of the winding is left out:

        u = R i + k omega,    torque = k i,

    with the current i (A), the torque constant k, which is that of the back-EMF too, and the speed
    omega of the shaft (Krause, Wasynczuk, Sudhoff & Pekarek 2013). At rest it brakes: with u = 0
    its torque is -k^2 omega / R.

    **Arguments:** `torque_constant`: k (N m/A = V s/rad), > 0; `resistance`: R (ohm), > 0;
    `current_limit`: the largest size of the current (A), which the drive holds by another voltage;
    default none.
    """

    kind: ClassVar[str] = "dc_motor"
    electrical: ClassVar[bool] = True
    passive: ClassVar[bool] = False
    torque_constant: Scalar = eqx.field(
        kw_only=True,
        converter=positive("torque_constant", "N m/A", "torque by current, voltage by speed"),
    )
    resistance: Scalar = eqx.field(
        kw_only=True, converter=positive("resistance", "ohm", "of the winding")
    )
    current_limit: Scalar | None = eqx.field(
        default=None,
        kw_only=True,
        converter=optional(positive("current_limit", "A", "largest size of the current"), "none"),
    )

    def command_unit(self, coordinate: str) -> str:
        del coordinate
        return "V"

    def saturates(self) -> bool:
        return self.current_limit is not None

    def operate(self, command: Scalar, speed: Scalar) -> Operation:
        wanted = (command - self.torque_constant * speed) / self.resistance
        if self.current_limit is None:
            current, limited, voltage = wanted, jnp.zeros_like(wanted, bool), command
        else:
            current = clamp(wanted, -self.current_limit, self.current_limit)
            limited = jnp.abs(wanted) > self.current_limit
            held = self.resistance * current + self.torque_constant * speed
            # Rounding is no limit.
            voltage = jnp.where(limited, held, command)
        loss = self.resistance * current**2
        return Operation(self.torque_constant * current, current, loss, voltage, limited)

    def command_of(self, torque: Scalar, speed: Scalar) -> Scalar:
        return self.resistance * torque / self.torque_constant + self.torque_constant * speed


_SPEEDS: Callable[[NumberList], Float[Array, " rows"]] = numbers(
    "speeds", "rad/s", "two or more, increasing"
)


def _torques(value: Numbers, what: str) -> Float[Array, " rows"]:
    """Largest torques, from which directions follow from the command's sign."""
    array = _checks.numbers(value, what)
    known = _checks.concrete(array)
    if known is not None and np.any(known < 0):
        raise ValueError(
            f"{what} must not be negative, got {_checks.shown(known.tolist())}: they are sizes, "
            "and the same table holds for both directions."
        )
    return array


_TORQUES: Callable[[Numbers], Float[Array, " rows"]] = Field(
    "torques",
    "N m",
    "largest torque at these speeds",
    list[float],
    "as many numbers >= 0",
    _torques,
)


class TorqueSpeed(AbstractActuator):
    """A servo drive whose torque is its command (N m) as far as a torque-speed table allows it.

    T(s) is the table: linear between its rows, and constant outside of them. For a shaft that turns
    at omega

        -T(-omega) <= torque <= T(omega),

    so that a torque along the motion is at most T(|omega|), one against it at most T(-|omega|). A
    table from 0 (stall) to the no-load speed, where the torque is zero, lets the motor brake with
    the stall torque; rows of negative speeds give another braking torque.

    Derivatives are those of `clamp`; at a row of the table, the mean of those on both sides.

    **Arguments:** `speeds`: rad/s, two or more, increasing; `torques`: N m, >= 0, one for each.
    """

    kind: ClassVar[str] = "torque_speed"
    electrical: ClassVar[bool] = False
    passive: ClassVar[bool] = True
    speeds: Float[Array, " rows"] = eqx.field(kw_only=True, converter=_SPEEDS)
    torques: Float[Array, " rows"] = eqx.field(kw_only=True, converter=_TORQUES)

    def __check_init__(self):
        """A table is a function of the speed."""
        _checks.check_table(self.speeds, self.torques, ("speeds", "torques"))

    def command_unit(self, coordinate: str) -> str:
        del coordinate
        return "N m"

    def saturates(self) -> bool:
        return True

    def available(self, speed: Scalar) -> Scalar:
        """T(speed)."""
        slopes = jnp.diff(self.torques) / jnp.diff(self.speeds)
        # One hinge for each row: no search, and a derivative at the rows themselves.
        within = clamp(speed, self.speeds[:-1], self.speeds[1:]) - self.speeds[:-1]
        return self.torques[0] + slopes @ within

    def operate(self, command: Scalar, speed: Scalar) -> Operation:
        low, high = -self.available(-speed), self.available(speed)
        torque = clamp(command, low, high)
        zero = jnp.zeros_like(torque)
        return Operation(torque, zero, zero, torque, (command < low) | (command > high))

    def command_of(self, torque: Scalar, speed: Scalar) -> Scalar:
        del speed
        return torque
