"""Power, energy and saturation of motors along a motion, and the command that an inverse dynamics
asks of a motor.
"""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .. import _printing, _settings
from .._constraints import Table as MotionTable
from .._custom_types import Setting
from .._forces import Motor, MotorInfo, MotorState
from .._printing import AbstractAnswer, Column, Description, Table
from .._programs import Compiling, program
from .._system import AbstractSystem
from ._trajectory import Trajectory


# What a property of motors is made of, and what its integral is over.
_Property = Callable[[MotorState], Float[Array, "n motors"]]


class MotorDuty(AbstractAnswer):
    """Torques, powers and saturation of the motors of a system at the saved times of a motion.

    Integrals over time are those of cubic Hermite polynomials through the saved states and their
    rates: of fourth order in their spacing where the motion is smooth, and of second order across
    the ends of a saturation. Means are integrals over the duration.

    - `times` (n,): s. `motors`: name, joint and units of each. `states`, and their rates of change
      `slopes` (1/s): arrays (n, motors), `saturated` as 1 or 0.
    """

    times: Float[Array, " n"]
    states: MotorState
    slopes: MotorState
    motors: tuple[MotorInfo, ...] = eqx.field(static=True)

    @property
    def mechanical_power(self) -> Float[Array, "n motors"]:
        """Power of the torques on the joints (W): positive where motors drive."""
        return _mechanical_power(self.states)

    @property
    def shaft_power(self) -> Float[Array, "n motors"]:
        """Power of the actuators before their gears (W)."""
        return _shaft_power(self.states)

    @property
    def gear_loss(self) -> Float[Array, "n motors"]:
        """Power that the gears lose (W), never negative beyond rounding."""
        return _gear_loss(self.states)

    @property
    def electrical_power(self) -> Float[Array, "n motors"]:
        """Power at the terminals (W): that of the shaft and the heat of the winding; of actuators
        without winding that of the shaft."""
        return _electrical_power(self.states)

    @property
    def mechanical_energy(self) -> Float[Array, " motors"]:
        """Work of the torques on the joints (J)."""
        return self._integral(_mechanical_power)

    @property
    def electrical_energy(self) -> Float[Array, " motors"]:
        """Energy taken at the terminals (J)."""
        return self._integral(_electrical_power)

    @property
    def winding_heat(self) -> Float[Array, " motors"]:
        """Heat of the windings (J)."""
        return self._integral(lambda at: at.winding_loss)

    @property
    def gear_heat(self) -> Float[Array, " motors"]:
        """Heat of the gears (J)."""
        return self._integral(_gear_loss)

    @property
    def rms_torque(self) -> Float[Array, " motors"]:
        """Root mean square of the torque on the joint (N m or N)."""
        return self._root_mean(lambda at: at.torque)

    @property
    def rms_shaft_torque(self) -> Float[Array, " motors"]:
        """Root mean square of the torque of the actuator before its gear, which heats it."""
        return self._root_mean(lambda at: at.shaft_torque)

    @property
    def peak_torque(self) -> Float[Array, " motors"]:
        """Largest size of the torque on the joint (N m or N) at a saved time."""
        return jnp.max(jnp.abs(self.states.torque), axis=0)

    @property
    def peak_rate(self) -> Float[Array, " motors"]:
        """Largest size of the rate of the joint's coordinate (rad/s or m/s), likewise."""
        return jnp.max(jnp.abs(self.states.rate), axis=0)

    @property
    def peak_power(self) -> Float[Array, " motors"]:
        """Largest mechanical power that drives (W), likewise; zero of a motor that only brakes."""
        return jnp.max(self.mechanical_power, axis=0, initial=0.0)

    @property
    def saturated_fraction(self) -> Float[Array, " motors"]:
        """Fraction of the time in which the command that is wanted is not carried out."""
        return self._mean(lambda at: at.saturated)

    def of(self, name: str) -> "MotorDuty":
        """The duty of one motor alone.

        **Raises:** `ValueError` that lists the names there are.
        """
        names = [motor.name for motor in self.motors]
        if name not in names:
            raise ValueError(f"there is no motor {name!r}; there are {', '.join(names)}.")
        place = names.index(name)
        states, slopes = jax.tree.map(lambda x: x[:, place : place + 1], (self.states, self.slopes))
        return MotorDuty(self.times, states, slopes, (self.motors[place],))

    def _integral(self, of: _Property) -> Float[Array, " motors"]:
        values, slopes = jax.jvp(of, (self.states,), (self.slopes,))
        step = jnp.diff(self.times)[:, None]
        pieces = step * (values[1:] + values[:-1]) / 2 - step**2 * jnp.diff(slopes, axis=0) / 12
        return jnp.sum(pieces, axis=0)

    def _mean(self, of: _Property) -> Float[Array, " motors"]:
        duration = self.times[-1] - self.times[0]
        some = duration > 0
        # Of one state the mean is its value.
        return jnp.where(
            some, self._integral(of) / jnp.where(some, duration, 1.0), of(self.states)[0]
        )

    def _root_mean(self, of: _Property) -> Float[Array, " motors"]:
        square = self._mean(lambda at: of(at) ** 2)
        some = square > 0
        return jnp.where(some, jnp.sqrt(jnp.where(some, square, 1.0)), 0.0)

    def described(self) -> Description:
        if self.times.ndim > 1:
            return _printing.batch("duties", self.times.shape[:-1])
        first, last = np.asarray(self.times)[[0, -1]]
        columns = [Column(title, cells, unit) for title, unit, cells in self._columns()]
        saturated = np.asarray(self.saturated_fraction) > 0
        return Description(
            [f"motors from {first:g} s to {last:g} s, {self.times.shape[0]} states"],
            [Table(columns, saturated.tolist())],
            data=self._data,
        )

    def _columns(self) -> list[tuple[str, str, list[str]]]:
        units = [motor.quantity.force_unit for motor in self.motors]
        rates = [f"{motor.quantity.unit}/s" for motor in self.motors]
        windings = [motor.electrical for motor in self.motors]

        def electrical(numbers: Any) -> list[str]:
            cells = zip(_cells(numbers), windings, strict=True)
            return [cell if has else "" for cell, has in cells]

        found = [
            ("motor", "", [motor.name for motor in self.motors]),
            ("joint", "", [motor.joint for motor in self.motors]),
            ("RMS torque", "", _cells(self.rms_torque, units)),
            ("peak torque", "", _cells(self.peak_torque, units)),
            ("peak rate", "", _cells(self.peak_rate, rates)),
            ("peak power", "W", _cells(self.peak_power)),
            ("work", "J", _cells(self.mechanical_energy)),
            ("gear losses", "J", _cells(self._known_gear_heat())),
            ("electrical energy", "J", electrical(self.electrical_energy)),
            ("winding heat", "J", electrical(self.winding_heat)),
            ("saturated", "%", _cells(100 * self.saturated_fraction)),
        ]
        return [own for own in found if any(own[2])]

    def _known_gear_heat(self) -> Float[np.ndarray, " motors"]:
        """That of an ideal gear is zero up to the rounding of a difference."""
        heat, work = np.asarray(self.gear_heat), np.asarray(self._integral(_absolute_power))
        return np.where(np.abs(heat) > 1e-12 * work, heat, 0.0)

    def _data(self) -> dict[str, Any]:
        numbers = {
            "rms_torque": self.rms_torque,
            "peak_torque": self.peak_torque,
            "peak_rate": self.peak_rate,
            "peak_power": self.peak_power,
            "mechanical_energy": self.mechanical_energy,
            "gear_heat": self.gear_heat,
            "electrical_energy": self.electrical_energy,
            "winding_heat": self.winding_heat,
            "saturated_fraction": self.saturated_fraction,
        }
        return {
            motor.name: {"joint": motor.joint}
            | {key: float(value[k]) for key, value in numbers.items()}
            for k, motor in enumerate(self.motors)
        }


def _mechanical_power(at: MotorState) -> Float[Array, "n motors"]:
    return at.torque * at.rate


def _shaft_power(at: MotorState) -> Float[Array, "n motors"]:
    return at.shaft_torque * at.speed


def _gear_loss(at: MotorState) -> Float[Array, "n motors"]:
    return _shaft_power(at) - _mechanical_power(at)


def _absolute_power(at: MotorState) -> Float[Array, "n motors"]:
    return jnp.abs(_shaft_power(at))


def _electrical_power(at: MotorState) -> Float[Array, "n motors"]:
    return _shaft_power(at) + at.winding_loss


def _cells(numbers: Any, units: list[str] | None = None) -> list[str]:
    """Numbers as text, each with its unit where these differ."""
    # Adding zero turns a printed -0 into 0.
    texts = [f"{float(f'{x:.6g}') + 0.0:g}" for x in np.asarray(numbers)]
    return texts if units is None else [f"{x} {u}" for x, u in zip(texts, units, strict=True)]


def motor_duty(trajectory: Setting[Trajectory]) -> MotorDuty:
    """Evaluate torque, speed, power, energy and saturation of each motor along a motion.

    Electrical power is mechanical power, losses of the gear and heat of the winding: the energies
    of the answer balance. Differentiable, forward and reverse.

    **Arguments:** `trajectory`: one motion, of `simulate` or `inverse_dynamics`; of many runs one
    after the other (`trajectory.run(k)`).

    **Returns:** `MotorDuty`, to be printed.

    **Raises:** `TypeError` for what is no trajectory; `ValueError` for many runs, and for a system
    without motors.
    """
    trajectory = _settings.instance(trajectory, Trajectory, "trajectory", "that of simulate")
    _refuse_many(trajectory)
    if not trajectory.system.motors:
        raise ValueError("the system of the trajectory has no motor (forces.Motor).")
    saved = (trajectory.q, trajectory.v, trajectory.acceleration, trajectory.times)
    states, slopes = _motor_states(trajectory.system, *saved)
    return MotorDuty(trajectory.times, states, slopes, trajectory.system.motors)


def _refuse_many(trajectory: Trajectory) -> None:
    if trajectory.times.ndim != 1:
        raise ValueError("trajectory holds many runs; give one of them, trajectory.run(k).")


@program(compiling=Compiling.ONCE)
def _motor_states(
    system: AbstractSystem,
    q: Float[Array, "n nq"],
    v: Float[Array, "n nv"],
    acceleration: Float[Array, "n nv"],
    times: Float[Array, " n"],
) -> tuple[MotorState, MotorState]:
    """The states of the motors, and their rates along the motion."""

    def at(q: Float[Array, " nq"], v: Float[Array, " nv"], t: Float[Array, ""]) -> MotorState:
        found = system.motor_states(q, v, t)
        return eqx.tree_at(lambda x: x.saturated, found, found.saturated.astype(q.dtype))

    def with_slope(state: tuple[Array, Array, Array, Array]) -> tuple[MotorState, MotorState]:
        q, v, acceleration, t = state
        return jax.jvp(at, (q, v, t), (system.flow(q, v, t), acceleration, jnp.ones_like(t)))

    return jax.vmap(with_slope)((q, v, acceleration, times))


def feed_forward(
    trajectory: Setting[Trajectory], driver: Setting[str], motor: Setting[Motor]
) -> MotionTable:
    """The command by which a motor does what a driver does in an inverse dynamics.

    The force of the driver is that of `reactions().driving(driver)`; the command makes it at the
    rate of the coordinate, through gear and actuator, losses included (`Motor.command_of`). As the
    `command` of a motor it is the feed-forward beside a controller, which then has little to do. It
    is a spline through the saved times and NaN outside of them.

    **Arguments:** `trajectory`: of `inverse_dynamics`; `driver`: the name of a driver in it that
    acts on the motor's joint and coordinate; `motor`: whose command is wanted. Its limits are not
    applied.

    **Returns:** a motion (`motions.Table`) in the unit of the motor's command. Differentiable.

    **Raises:** `TypeError` or `ValueError` that names what is wrong.
    """
    trajectory = _settings.instance(
        trajectory, Trajectory, "trajectory", "that of inverse_dynamics"
    )
    _settings.text(driver, "driver")
    motor = _settings.instance(motor, Motor, "motor", "a motor, forces.Motor(...)")
    _refuse_many(trajectory)
    torque = trajectory.reactions().driving(driver)
    info = trajectory.system.structure.constraint(driver)
    structure = trajectory.system.structure
    row = structure.rows[info.start]
    # (Joints of the same two bodies that both turn or slide have one coordinate.)
    if motor.joint not in structure.constraint_names or set(
        structure.constraint(motor.joint).sites
    ) != set(info.sites):
        raise ValueError(
            f"driver {driver!r} does not drive the joint {motor.joint!r} of motor {motor.name!r}; "
            "name the driver of that joint, or the joint in the motor."
        )
    if row.quantity != motor.quantity:
        raise ValueError(
            f"driver {driver!r} acts on a coordinate in {row.quantity.unit}, and the motor "
            f"{motor.name!r} on one in {motor.quantity.unit} (its {motor.coordinate})."
        )
    matrices = _matrices(trajectory.system, trajectory.q, trajectory.v, trajectory.times)
    # The row of a driver is the coordinate minus its motion: of C it has the coordinate's rate.
    rate = jnp.einsum("nk,nk->n", matrices[:, info.start], trajectory.v)
    values = jax.vmap(motor.command_of)(torque, rate)
    return MotionTable(times=trajectory.times, values=values)


@program(compiling=Compiling.ONCE)
def _matrices(
    system: AbstractSystem,
    q: Float[Array, "n nq"],
    v: Float[Array, "n nv"],
    times: Float[Array, " n"],
) -> Float[Array, "n rows nv"]:
    return jax.vmap(system.constraint_matrix)(q, v, times)
