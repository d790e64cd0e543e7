"""Motors, their actuators and controllers: against closed forms, transfer functions and an oracle
of differential equations in SciPy.
"""

import functools
from collections.abc import Callable
from typing import Any

import diffrax as dfx
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.integrate
import scipy.signal

import jaxmbs as jm
from jaxmbs import forces, motions, planar, spatial
from jaxmbs.runs import feed_forward, motor_duty


INERTIA, CONSTANT, RESISTANCE, RATIO = 0.02, 0.05, 0.4, 3.0


def hold(value: float) -> motions.Linear:
    """A motion that stays there."""
    return motions.Linear(rate=0.0, offset=value)


# What changes nothing: a model with all parts of a motor serves every test of a run, so that one
# program is compiled.
LARGE = 1e9


def controlled(
    command: float = 0.0,
    reference: float = 0.0,
    gains: tuple[float, float, float] = (0.0, 0.0, 0.0),
    filter_time: float = 1.0,
    weight: float = 0.0,
    tracking_time: float = LARGE,
    limits: float = LARGE,
    current: float = LARGE,
    efficiency: float = 1.0,
    sine: float = 0.0,
) -> forces.Motor:
    proportional, integral, derivative = gains
    return forces.Motor(
        "M",
        "A",
        actuator=forces.DCMotor(
            torque_constant=CONSTANT, resistance=RESISTANCE, current_limit=current
        ),
        controller=forces.PID(
            proportional=proportional,
            integral=integral,
            derivative=derivative,
            filter_time=filter_time,
            derivative_weight=weight,
            tracking_time=tracking_time,
        ),
        reference=motions.Sine(amplitude=sine, frequency=0.7, offset=reference),
        command=hold(command),
        limits=limits,
        ratio=RATIO,
        efficiency=efficiency,
        transition_speed=0.3,
    )


def flywheel(motor: forces.Motor) -> jm.MultibodySystem:
    wheel = planar.Body("wheel", mass=1.0, inertia=INERTIA, position=(0.0, 0.0))
    hinge = planar.Revolute("A", ("ground", "wheel"), at=(0.0, 0.0))
    return jm.Model("flywheel", 2, bodies=[wheel], joints=[hinge], forces=[motor]).system()


@functools.cache
def run(end: float = 1.0, **keys: Any) -> jm.results.Trajectory:
    system = flywheel(controlled(**keys))
    state = (system.reference_q, system.initial_v)
    every = end / 200
    return jm.simulate(system, *state, end, every=every, rtol=1e-11, atol=1e-13, monitor=False)


# --------------------------------------------------------------------------------------------------
# Runs with closed forms.
# --------------------------------------------------------------------------------------------------


def test_a_flywheel_is_run_up_as_an_exponential():
    voltage = 12.0
    found = run(command=voltage)
    time, no_load = INERTIA * RESISTANCE / (RATIO * CONSTANT) ** 2, voltage / (RATIO * CONSTANT)
    t = np.asarray(found.times)
    assert np.allclose(found.v[:, 2], no_load * (1 - np.exp(-t / time)), rtol=0, atol=1e-8)
    angle = no_load * (t - time * (1 - np.exp(-t / time)))
    assert np.allclose(found.q[:, 2], angle, rtol=0, atol=1e-8)
    duty = motor_duty(found)
    stall = RATIO * CONSTANT * voltage / RESISTANCE
    assert np.allclose(duty.states.torque[:, 0], stall * np.exp(-t / time), rtol=0, atol=1e-8)
    assert np.isclose(duty.peak_torque[0], stall)
    mean = stall**2 * time / 2 * (1 - np.exp(-2 / time))
    assert np.isclose(duty.rms_torque[0], np.sqrt(mean), rtol=1e-6)
    # Of the energy that is taken, what the wheel has is half in the end.
    kinetic = 0.5 * INERTIA * float(found.v[-1, 2]) ** 2
    assert np.isclose(duty.mechanical_energy[0], kinetic, rtol=1e-7)
    taken = duty.mechanical_energy + duty.winding_heat + duty.gear_heat
    assert np.allclose(duty.electrical_energy, taken, rtol=1e-14)
    current = np.exp(-t / time) * voltage / RESISTANCE
    assert np.allclose(duty.electrical_power[:, 0], voltage * current, rtol=0, atol=1e-6)
    assert float(duty.saturated_fraction[0]) == 0.0


@pytest.mark.parametrize(
    "gains", [(40.0, 0.0, 0.0), (40.0, 20.0, 0.0), (40.0, 20.0, 2.0), (40.0, 0.0, 2.0)]
)
def test_a_step_is_answered_as_by_the_transfer_function(gains: tuple[float, float, float]):
    """P, PI, PID and PD, whose derivative is filtered and acts on the measured velocity."""
    filter_time = 0.02
    found = run(reference=1.0, gains=gains, filter_time=filter_time)
    proportional, integral, derivative = gains
    torque = RATIO * CONSTANT / RESISTANCE
    # theta (J s^2 + k^2 n^2 / R s) = g (C_e (r - theta) - C_d theta), everything by s (T_f s + 1).
    plant = np.array([INERTIA, (RATIO * CONSTANT) ** 2 / RESISTANCE, 0.0])
    lag, error = np.array([filter_time, 1.0]), torque * np.array([proportional, integral])
    drive = np.polymul(error, lag)
    closed = np.polymul(np.polymul(plant, [1.0, 0.0]), lag)
    closed = np.polyadd(closed, drive)
    closed = np.polyadd(closed, torque * np.array([derivative, 0.0, 0.0]))
    t = np.asarray(found.times)
    _, expected = scipy.signal.step((drive, closed), T=t)
    assert np.allclose(found.q[:, 2], expected, rtol=0, atol=1e-8)
    assert np.max(found.q[:, 2]) > 0.9


def oracle(t: Any, y: np.ndarray, keys: dict[str, Any]) -> np.ndarray:
    """Rates of angle, speed, integral and filtered derivative, as the theory page has them."""
    angle, speed, integral, filtered = y
    proportional, gain, derivative = keys["gains"]
    wave = 2 * np.pi * 0.7
    reference = keys["reference"] + keys["sine"] * np.sin(wave * t)
    slope = keys["weight"] * keys["sine"] * wave * np.cos(wave * t) - speed
    error = reference - angle
    wanted = keys["command"] + proportional * error + integral + derivative * filtered
    held = min(max(wanted, -keys["limits"]), keys["limits"])
    current = (held - CONSTANT * RATIO * speed) / RESISTANCE
    if abs(current) > keys["current"]:
        current = np.sign(current) * keys["current"]
        held = RESISTANCE * current + CONSTANT * RATIO * speed
    torque = RATIO * CONSTANT * current
    s = np.tanh(abs(speed) / 0.3)
    if torque * speed > 0:
        torque *= 1 - (1 - keys["efficiency"]) * s
    else:
        torque *= 1 + (1 / keys["efficiency"] - 1) * s
    windup = gain * error + (held - wanted) / keys["tracking_time"]
    return np.array([speed, torque / INERTIA, windup, (slope - filtered) / keys["filter_time"]])


EVERYTHING: dict[str, Any] = {
    "command": 0.7,
    "reference": 2.0,
    "gains": (60.0, 90.0, 3.0),
    "filter_time": 0.02,
    "weight": 0.8,
    "tracking_time": 0.1,
    "limits": 12.0,
    "current": 9.0,
    "efficiency": 0.75,
    "sine": 0.5,
}


def test_limits_losses_and_anti_windup_are_those_of_the_oracle():
    found = run(**EVERYTHING)
    answer = scipy.integrate.solve_ivp(
        oracle,
        (0.0, 1.0),
        np.zeros(4),
        args=(EVERYTHING,),
        t_eval=np.asarray(found.times),
        rtol=1e-10,
        atol=1e-12,
        max_step=5e-3,
    )
    mine = np.stack([found.q[:, 2], found.v[:, 2], found.q[:, 3], found.q[:, 4]])
    # Both step over kinks: at the ends of saturation and where the motion turns.
    assert np.allclose(mine, answer.y, rtol=1e-7, atol=1e-7)
    duty = motor_duty(found)
    saturated = np.asarray(duty.states.saturated[:, 0], bool)
    assert 0 < saturated.sum() < saturated.size
    assert np.all(np.abs(duty.states.command) <= 12.0)
    assert np.all(np.abs(duty.states.current) <= 9.0)
    # Exactly, where it is limited and where it is not.
    at_limit = np.abs(duty.states.current[:, 0]) == 9.0
    assert at_limit.any()
    kept = ~saturated
    assert np.array_equal(duty.states.command[kept], duty.states.wanted[kept])
    assert np.all(np.asarray(duty.gear_loss) >= -1e-12)
    assert float(duty.gear_heat[0]) > 0.01
    kinetic = 0.5 * INERTIA * float(found.v[-1, 2]) ** 2
    # Within a step that holds a kink the integral is off by an eighth of the jump of the slope
    # times the step squared; there are a few such steps.
    jump = 2 * float(np.max(np.abs(np.diff(duty.mechanical_power[:, 0]))))
    assert abs(float(duty.mechanical_energy[0]) - kinetic) < 4 * jump / 200 / 8


def test_anti_windup_takes_the_overshoot_away():
    given = {"reference": 6.0, "gains": (8.0, 40.0, 1.2), "filter_time": 0.01, "limits": 6.0}
    over = {}
    for tracking_time in (LARGE, 0.05):
        found = run(end=3.0, tracking_time=tracking_time, **given)
        over[tracking_time] = float(np.max(found.q[:, 2])) - 6.0
    # As the overshoot without any limit, or less.
    free = run(end=3.0, **(given | {"limits": LARGE}))
    assert over[0.05] < max(0.05 * over[LARGE], float(np.max(free.q[:, 2])) - 6.0)
    assert over[LARGE] > 1.0


def test_a_duty_tells_how_long_a_motor_was_saturated():
    """By a current limit until the back-EMF is large enough: run-up at constant torque."""
    voltage, current = 12.0, 10.0
    found = run(command=voltage, current=current, end=2.0)
    torque = RATIO * CONSTANT * current
    speed = (voltage - RESISTANCE * current) / (RATIO * CONSTANT)
    ends = INERTIA * speed / torque
    duty = motor_duty(found)
    assert np.isclose(duty.saturated_fraction[0], ends / 2.0, atol=2.0 / 200)
    before = np.asarray(found.times) < ends
    assert np.allclose(found.v[before, 2], torque / INERTIA * found.times[before], atol=1e-9)
    told = duty.described()
    (table,) = told.tables
    assert [*table.marked] == [True]
    assert {"motor", "RMS torque", "work", "winding heat"} <= {c.title for c in table.columns}
    assert set(told.data()) == {"M"}
    assert "N m" in str(duty)
    assert str(duty.of("M")) == str(duty)
    with pytest.raises(ValueError, match=r"there is no motor 'N'; there are M\."):
        duty.of("N")


def test_a_duty_needs_motors_and_one_run():
    found = run(command=12.0)
    with pytest.raises(TypeError, match="trajectory must be that of simulate"):
        motor_duty(found.system)  # pyright: ignore[reportArgumentType]


# --------------------------------------------------------------------------------------------------
# Actuators, gears and controllers by themselves: nothing is compiled.
# --------------------------------------------------------------------------------------------------


def central(function: Callable[[Any], Any], x: float, step: float = 1e-6) -> float:
    return float((function(x + step) - function(x - step)) / (2 * step))


class TestActuators:
    TABLE = forces.TorqueSpeed(speeds=[-50.0, 0.0, 100.0, 300.0], torques=[3.0, 2.0, 1.5, 0.0])

    @pytest.mark.parametrize("speed", [-400.0, -300.0, -20.0, 0.0, 40.0, 100.0, 250.0, 300.0, 1e4])
    def test_a_table_is_its_lines(self, speed: float):
        rows = np.asarray(self.TABLE.speeds), np.asarray(self.TABLE.torques)
        high, low = np.interp(speed, *rows), -np.interp(-speed, *rows)
        for command in (-5.0, low, 0.1, high, 5.0):
            found = self.TABLE.operate(jnp.asarray(command), jnp.asarray(speed))
            assert np.isclose(found.torque, np.clip(command, low, high), rtol=1e-15, atol=1e-15)
            assert bool(found.limited) == (float(found.torque) != command)

    def test_derivatives_at_rows_and_limits_are_means(self):
        def torque(command: Any, speed: Any) -> Any:
            return self.TABLE.operate(jnp.asarray(command), jnp.asarray(speed)).torque

        at_row = jax.grad(torque, argnums=1)(9.0, 100.0)
        assert np.isclose(at_row, (-0.005 - 0.0075) / 2)
        assert np.isclose(at_row, central(lambda x: torque(9.0, x), 100.0), rtol=1e-6)
        assert [float(jax.grad(torque)(x, 0.0)) for x in (1.9, 2.0, 2.1)] == [1.0, 0.5, 0.0]
        for speed in (-20.0, 40.0, 250.0):
            slope = jax.grad(torque, argnums=1)(9.0, speed)
            assert np.isclose(slope, central(lambda x: torque(9.0, x), speed), rtol=1e-6)

    def test_a_dc_motor_balances_its_power(self):
        motor = forces.DCMotor(torque_constant=0.05, resistance=0.4, current_limit=20.0)
        for voltage in (-30.0, -8.0, 0.0, 5.0, 30.0):
            for speed in (-300.0, 0.0, 150.0):
                at = motor.operate(jnp.asarray(voltage), jnp.asarray(speed))
                power = at.command * at.current
                assert np.isclose(power, at.torque * speed + at.loss, rtol=1e-14, atol=1e-12)
                assert abs(float(at.current)) <= 20.0
                assert bool(at.limited) == (float(at.command) != voltage)
                if not at.limited:
                    again = motor.command_of(at.torque, jnp.asarray(speed))
                    assert np.isclose(again, voltage, atol=1e-12)


def lossy(ratio: float = -4.0, backward: float | None = 0.5) -> forces.Motor:
    return forces.Motor(
        "M",
        "A",
        actuator=forces.IdealActuator(),
        command=hold(1.0),
        ratio=ratio,
        efficiency=0.8,
        backward_efficiency=backward,
        transition_speed=0.01,
    )


class TestGear:
    LAW = lossy().law(planar.Revolute("A", ("ground", "b"), at=(0, 0)).coordinates()["rotation"])

    def at(self, wanted: float, rate: float) -> Any:
        return self.LAW._run(jnp.asarray(wanted), jnp.asarray(rate))

    @pytest.mark.parametrize("wanted", [-3.0, 3.0])
    @pytest.mark.parametrize("rate", [-2.0, 2.0])
    def test_the_efficiency_is_that_of_the_direction(self, wanted: float, rate: float):
        found = self.at(wanted, rate)
        shaft, joint = float(found.shaft_torque * found.speed), float(found.torque * found.rate)
        assert np.isclose(joint / shaft, 0.8 if shaft > 0 else 1 / 0.5)
        assert shaft > joint

    def test_losses_vanish_at_rest_without_a_jump(self):
        assert float(self.at(3.0, 0.0).torque) == -12.0
        for rate in (-1e-9, 1e-9):
            assert np.isclose(self.at(3.0, rate).torque, -12.0, rtol=1e-6)
        assert float(self.at(0.0, 1.0).torque) == 0.0
        slopes = jax.jacfwd(lambda x: self.at(*x).torque)(jnp.zeros(2))
        assert np.all(np.isfinite(slopes))

    def test_the_command_of_a_torque_makes_it(self):
        motor = lossy(backward=None)
        law = motor.law(self.LAW.coordinate)
        for torque in (-5.0, 0.0, 2.0):
            for rate in (-1.0, 0.0, 0.004):
                command = motor.command_of(jnp.asarray(torque), jnp.asarray(rate))
                assert np.isclose(law._run(command, jnp.asarray(rate)).torque, torque, rtol=1e-14)


# --------------------------------------------------------------------------------------------------
# Motors in mechanisms.
# --------------------------------------------------------------------------------------------------


def pair(dimension: int, coordinate: str, scale: float = 1.0, offset: float = 0.0) -> Any:
    """Two bodies with a joint between them that has both coordinates, or its planar one, and a
    motor there; numbers of this size and this far from the origin."""
    far, one = offset * np.ones(dimension), np.eye(dimension)[0] * scale
    kinds: Any = planar if dimension == 2 else spatial
    inertia = 0.3 * scale**2 if dimension == 2 else np.diag([0.3, 0.4, 0.5]) * scale**2
    bodies = [
        kinds.Body(name, mass=1.0, inertia=inertia, position=far + place)
        for name, place in (("a", 0 * one), ("b", one))
    ]
    if dimension == 3:
        axis = np.array([0.6, 0.0, 0.8])
        joint = spatial.Cylindrical("A", ("a", "b"), at=far + one / 2, axis=axis)
    elif coordinate == "rotation":
        joint = planar.Revolute("A", ("a", "b"), at=far + one / 2)
    else:
        joint = planar.Translational("A", ("a", "b"), at=far + one / 2, axis=(0.6, 0.8))
    motor = forces.Motor(
        "M",
        "A",
        coordinate,
        actuator=forces.DCMotor(torque_constant=0.2, resistance=0.5),
        command=motions.Linear(rate=1.0, offset=2.0),
        ratio=5.0,
    )
    model = jm.Model("pair", dimension, bodies=bodies, joints=[joint], forces=[motor])
    return model.system()


@pytest.mark.parametrize("coordinate", ["rotation", "translation"])
@pytest.mark.parametrize("dimension", [2, 3])
def test_a_motor_acts_and_reacts_along_its_coordinate(dimension: int, coordinate: str, rng):
    """Its power is the torque times the rate for whatever velocities, also impossible ones, it
    leaves what moves as one body alone, and no unit and no origin changes it."""
    size = 3 if dimension == 2 else 6
    v = jnp.asarray(rng.normal(size=2 * size))
    for scale, offset in ((1.0, 0.0), (1e-3, 0.0), (1e3, 1e4)):
        system = pair(dimension, coordinate, scale, offset)
        still = system.force(system.reference_q, jnp.zeros_like(v), 0.5)
        gyroscopic = _without(system).force(system.reference_q, v, 0.5)
        force = system.force(system.reference_q, v, 0.5) - gyroscopic
        at = system.motor_states(system.reference_q, v, 0.5)
        unit = float(jnp.max(jnp.abs(force)))
        assert np.isclose(force @ v, at.torque[0] * at.rate[0], rtol=1e-9)
        expected = 5.0 * 0.2 * (2.5 - 0.2 * 5.0 * at.rate[0]) / 0.5
        assert np.isclose(at.torque[0], expected, rtol=1e-12)
        linear = 2 if dimension == 2 else 3
        assert np.allclose(force[:linear] + force[size : size + linear], 0, atol=1e-12 * unit)
        own = still[:linear] if coordinate == "translation" else still[linear:size]
        assert np.isclose(np.linalg.norm(own), 5.0 * 0.2 * 2.5 / 0.5, rtol=1e-9)


def _without(system: jm.MultibodySystem) -> jm.MultibodySystem:
    return eqx.tree_at(
        lambda s: (
            s.force_groups[0].load.law.given.offset,
            s.force_groups[0].load.law.given.rate,
            s.force_groups[0].load.law.ratio,
        ),
        system,
        replace_fn=jnp.zeros_like,
    )


def test_a_spatial_motor_is_the_planar_one():
    """On the same flywheel, with a rotor behind its gear: J + n^2 J_r."""
    rotor = 1e-3
    wheel = spatial.Body("wheel", mass=1.0, inertia=np.eye(3) * INERTIA, position=(0.0, 0.0, 0.0))
    place = {"at": (0.0, 0.0, 0.0), "axis": (0.0, 0.0, 1.0)}
    hinge = spatial.Revolute("A", ("ground", "wheel"), **place)
    reflected = spatial.ReflectedInertia(
        "rotor", ("ground", "wheel"), axis=(0.0, 0.0, 1.0), inertia=RATIO**2 * rotor
    )
    motor = controlled(command=12.0, reference=1.0, gains=(5.0, 1.0, 0.1))
    model = jm.Model(
        "flywheel", 3, bodies=[wheel], joints=[hinge], forces=[motor], elements=[reflected]
    )
    system, plane = model.system(), flywheel(motor)
    v = jnp.asarray([0.0, 0.0, 0.0, 0.0, 0.0, 7.0])
    found = system.force(system.reference_q, v, 0.1)
    flat = plane.force(plane.reference_q, v[jnp.array([0, 1, 5])], 0.1)
    assert np.allclose(found, [0, 0, 0, 0, 0, float(flat[2])], atol=1e-14)
    change = system.free_acceleration(system.reference_q, v, 0.1)
    assert np.isclose(change[5], flat[2] / (INERTIA + RATIO**2 * rotor), rtol=1e-12)


# --------------------------------------------------------------------------------------------------
# What is refused.
# --------------------------------------------------------------------------------------------------


IDEAL: dict[str, Any] = {"actuator": forces.IdealActuator()}
PD = forces.PID(proportional=1.0, derivative=0.1)
WOUND = forces.PID(proportional=1.0, integral=1.0, tracking_time=0.1)


def motor(**keys: Any) -> Callable[[], Any]:
    return lambda: forces.Motor("M", "A", **keys)


REFUSED: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "nothing to do": (motor(**IDEAL), ValueError, "needs a `command`, a `controller`, or both"),
    "no actuator": (motor(controller=PD, reference=hold(1.0)), TypeError, "actuator"),
    "a reference alone": (
        motor(**IDEAL, command=hold(1.0), reference=hold(1.0)),
        ValueError,
        "a reference is followed by a controller, and there is none",
    ),
    "no reference": (motor(**IDEAL, controller=PD), ValueError, "needs a `reference`"),
    "a number for a reference": (
        motor(**IDEAL, controller=PD, reference=1.0),
        TypeError,
        "reference must be a motion",
    ),
    "a class of actuators": (
        motor(actuator=forces.IdealActuator, command=hold(1.0)),
        TypeError,
        r"put brackets behind it: IdealActuator\(\.\.\.\)",
    ),
    "no gains": (forces.PID, ValueError, "a PID needs at least one of its gains"),
    "a filter of nothing": (
        lambda: forces.PID(proportional=1.0, filter_time=0.1),
        ValueError,
        "filter_time belongs to the gain `derivative`, which is left out",
    ),
    "a windup of nothing": (
        lambda: forces.PID(proportional=1.0, tracking_time=0.1),
        ValueError,
        "tracking_time belongs to the gain `integral`",
    ),
    "a windup without limits": (
        motor(**IDEAL, controller=WOUND, reference=hold(1.0)),
        ValueError,
        "tracking_time is that of a limited command, and nothing limits it",
    ),
    "limits the wrong way": (
        motor(**IDEAL, command=hold(1.0), limits=(2.0, -2.0)),
        ValueError,
        "limits must be one number > 0, or the least command and a greater one",
    ),
    "no limit at all": (
        motor(**IDEAL, command=hold(1.0), limits=0.0),
        ValueError,
        "limits must be greater than zero",
    ),
    "no gear": (motor(**IDEAL, command=hold(1.0), ratio=0.0), ValueError, "ratio must not be zero"),
    "more than all": (
        motor(**IDEAL, command=hold(1.0), efficiency=1.2, transition_speed=1.0),
        ValueError,
        "efficiency must be at most 1, got 1.2",
    ),
    "losses without a speed": (
        motor(**IDEAL, command=hold(1.0), efficiency=0.9),
        ValueError,
        "efficiency is given without `transition_speed`",
    ),
    "a speed without losses": (
        motor(**IDEAL, command=hold(1.0), transition_speed=0.9),
        ValueError,
        "transition_speed is given without `efficiency`",
    ),
    "another coordinate": (
        motor(**IDEAL, coordinate="angle", command=hold(1.0)),
        ValueError,
        "coordinate must be .*rotation",
    ),
    "a table of one row": (
        lambda: forces.TorqueSpeed(speeds=[0.0], torques=[1.0]),
        ValueError,
        "at least two entries, got 1 and 1",
    ),
    "a table that turns back": (
        lambda: forces.TorqueSpeed(speeds=[0.0, 2.0, 1.0], torques=[1.0, 1.0, 0.0]),
        ValueError,
        r"speeds must increase; entry 3 \(1\) does not exceed the one before it \(2\)",
    ),
    "a negative size": (
        lambda: forces.TorqueSpeed(speeds=[0.0, 2.0], torques=[1.0, -1.0]),
        ValueError,
        "torques must not be negative",
    ),
    "no resistance": (
        lambda: forces.DCMotor(torque_constant=1.0, resistance=0.0),
        ValueError,
        "resistance must be greater than zero",
    ),
    "a slide in a hinge": (
        lambda: flywheel(forces.Motor("M", "A", "translation", **IDEAL, command=hold(1.0))),
        ValueError,
        r"force 'M': joint 'A' \(revolute\) has no translation; it has 'rotation'",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_wrong_is_said_in_one_sentence(name: str):
    make, error, sentence = REFUSED[name]
    with pytest.raises(error, match=sentence):
        make()


def test_knots_are_those_of_reference_and_command():
    step = motions.Step(times=[0.25, 0.5], values=[0.0, 1.0])
    table = motions.Table(times=[0.0, 1.0, 2.0], values=[0.0, 1.0, 0.0])
    own = flywheel(forces.Motor("M", "A", **IDEAL, controller=PD, reference=step, command=table))
    assert np.array_equal(own.knots(), [0.0, 0.25, 0.5, 1.0, 2.0])


# --------------------------------------------------------------------------------------------------
# Longer ones: derivatives of runs, many runs, feed-forward, verdicts.
# --------------------------------------------------------------------------------------------------


def end_of(values: Any, adjoint: Any = None) -> Any:
    """The last angle of a run by gains, ratio and limit."""
    gains, ratio, limit = values[:3], values[3], values[4]
    system = flywheel(
        forces.Motor(
            "M",
            "A",
            actuator=forces.DCMotor(torque_constant=CONSTANT, resistance=RESISTANCE),
            controller=forces.PID(
                proportional=gains[0], integral=gains[1], derivative=gains[2], tracking_time=0.2
            ),
            reference=hold(1.0),
            limits=limit,
            ratio=ratio,
        )
    )
    keys = {} if adjoint is None else {"adjoint": adjoint}
    state = (system.reference_q, system.initial_v)
    found = jm.simulate(system, *state, 0.6, rtol=1e-10, atol=1e-12, monitor=False, **keys)
    return found.q[-1, 2]


@pytest.mark.thorough
def test_derivatives_of_an_end_by_gains():
    """Saturated at first, so that the limit counts too."""
    values = jnp.asarray([20.0, 10.0, 1.0, 3.0, 8.0])
    reverse = jax.jit(jax.grad(end_of))(values)
    forward = jax.jit(jax.jacfwd(lambda x: end_of(x, dfx.ForwardMode())))(values)
    plain = jax.jit(end_of)
    steps = 1e-4 * values
    each = [
        (plain(values.at[k].add(steps[k])) - plain(values.at[k].add(-steps[k]))) / (2 * steps[k])
        for k in range(5)
    ]
    assert np.all(np.abs(forward) > 1e-4)
    assert np.allclose(forward, each, rtol=1e-4, atol=1e-6)
    assert np.allclose(reverse, forward, rtol=1e-4, atol=1e-6)


@pytest.mark.thorough
def test_gains_are_mapped_over():
    values = jnp.asarray([[20.0, 10.0, 1.0, 3.0, 8.0], [40.0, 0.0, 3.0, 2.0, 6.0]])
    many = jax.jit(jax.vmap(end_of))(values)
    assert np.allclose(many, [end_of(x) for x in values], rtol=1e-9)


@pytest.mark.thorough
def test_a_feed_forward_does_what_the_driver_did():
    """A pendulum on a lossless gear, driven half a turn to and fro."""
    arm = planar.Body("arm", mass=2.0, inertia=0.1, position=(0.4, 0.0))
    hinge = planar.Revolute("A", ("ground", "arm"), at=(0.0, 0.0))
    motion = motions.Sine(amplitude=0.9, frequency=0.8, offset=0.9, phase=-np.pi / 2)
    base: dict[str, Any] = {"bodies": [arm], "joints": [hinge], "gravity": (0.0, -9.81)}
    driver = jm.Driver("D", "A", "rotation", motion)
    system = jm.Model("arm", 2, **base, drivers=[driver]).system()
    times = np.linspace(0.0, 1.0, 401)
    wanted = jm.inverse_dynamics(system, system.reference_q, times)
    plain: dict[str, Any] = {
        "actuator": forces.DCMotor(torque_constant=0.05, resistance=0.3),
        "ratio": 40.0,
    }
    command = feed_forward(wanted, "D", forces.Motor("M", "A", **plain, command=hold(0.0)))
    motor = forces.Motor("M", "A", **plain, command=command)
    free = jm.Model("arm", 2, **base, forces=[motor]).system()
    found = jm.simulate(
        free, free.reference_q, free.initial_v, 1.0, times=times, rtol=1e-9, atol=1e-11
    )
    # Open loop: what the spline is off between the saved times adds up.
    assert np.allclose(found.q[:, 2], wanted.q[:, 2], atol=1e-8)
    sliding = forces.Motor("M", "A", "translation", **IDEAL, command=hold(0.0))
    with pytest.raises(ValueError, match="driver 'D' acts on a coordinate in rad, and the motor"):
        feed_forward(wanted, "D", sliding)
    elsewhere = forces.Motor("M", "B", **plain, command=hold(0.0))
    with pytest.raises(ValueError, match="'D' does not drive the joint 'B' of motor 'M'"):
        feed_forward(wanted, "D", elsewhere)
    with pytest.raises(ValueError, match=r"has no motor \(forces\.Motor\)"):
        motor_duty(wanted)


@pytest.mark.thorough
def test_a_motor_leaves_mobility_and_verdicts():
    system = flywheel(controlled(command=1.0))
    found = jm.analyze(system, system.reference_q, system.initial_v)
    assert int(found.mobility) == 1
    assert bool(found.unique("A"))
