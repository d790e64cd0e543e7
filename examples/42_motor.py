"""Example 42: a slider-crank with a DC motor and a PID.

The crank of a slider-crank follows steps of a reference. A DC motor of 24 V drives it through a
gear of ratio 20 and efficiency 0.85; a PID of the crank's angle commands the voltage. In the larger
step the voltage is at its limit, and anti-windup keeps the integral from growing meanwhile.
`motor_duty` tells what that asks of the motor.

    python examples/42_motor.py
"""

import jax
import matplotlib.pyplot as plt
import numpy as np

import jaxmbs as jm
from jaxmbs import forces, motions, planar
from jaxmbs.runs import motor_duty


jax.config.update("jax_enable_x64", True)

CRANK, ROD, END = 0.15, 0.45, 2.5

bodies = [
    planar.Body("crank", mass=1.5, inertia=0.02, position=(CRANK / 2, 0.0)),
    planar.Body("rod", mass=1.0, inertia=0.017, position=(CRANK + ROD / 2, 0.0)),
    planar.Body("slider", mass=4.0, inertia=0.01, position=(CRANK + ROD, 0.0)),
]
joints = [
    planar.Revolute("A", ("ground", "crank"), at=(0.0, 0.0)),
    planar.Revolute("B", ("crank", "rod"), at=(CRANK, 0.0)),
    planar.Revolute("C", ("rod", "slider"), at=(CRANK + ROD, 0.0)),
    planar.Translational("D", ("ground", "slider"), at=(CRANK + ROD, 0.0), axis=(1.0, 0.0)),
]
reference = motions.Step(times=[0.1, 0.3, 1.1, 1.3], values=[0.0, np.pi, np.pi, np.pi / 2])
motor = forces.Motor(
    "motor",
    "A",
    actuator=forces.DCMotor(torque_constant=0.05, resistance=0.8),
    controller=forces.PID(proportional=80.0, integral=120.0, derivative=6.0, tracking_time=0.05),
    reference=reference,
    limits=24.0,
    ratio=20.0,
    efficiency=0.85,
    transition_speed=0.05,
)
model = jm.Model(
    "slider-crank", 2, bodies=bodies, joints=joints, forces=[motor], gravity=(0.0, -9.81)
)
system = model.system()

times = np.linspace(0.0, END, 1001)
motion = jm.simulate(system, system.reference_q, system.initial_v, END, times=times)
duty = motor_duty(motion)
print(duty)

wanted = jax.vmap(reference)(motion.times)
states = jax.tree.map(lambda x: np.asarray(x)[:, 0], duty.states)
saturated = states.saturated > 0

figure, (angle, current) = plt.subplots(2, 1, figsize=(7.0, 5.2), sharex=True, layout="constrained")
angle.plot(times, np.degrees(wanted), "k--", linewidth=1.2, label="reference")
angle.plot(times, np.degrees(motion.q[:, 2]), "k-", linewidth=1.5, label="crank")
angle.set_ylabel("angle of the crank (deg)")
current.plot(times, states.current, "k-", linewidth=1.5, label="current")
current.set_ylabel("current (A)")
current.set_xlabel("time (s)")
for axes in (angle, current):
    low, high = axes.get_ylim()
    axes.fill_between(
        times, low, high, where=saturated, color="0.85", linewidth=0, label="voltage at its limit"
    )
    axes.set_ylim(low, high)
    axes.set_xlim(0.0, END)
    axes.grid(alpha=0.3)
    axes.legend(fontsize=9, loc="lower right" if axes is angle else "upper right")
angle.set_title("Slider-crank with a 24 V motor and a PID", fontsize=11)
figure.savefig("42_motor.png", dpi=130)
