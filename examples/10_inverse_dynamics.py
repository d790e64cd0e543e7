"""Example 10: kinematic analysis and inverse dynamics over one turn.

A slider-crank turns at 600 revolutions a minute; its piston runs in two guides in line, which are
redundant. The driver determines the motion, and inverse dynamics the torque behind it. That torque
and the forces in the pins are unique. How the guides share their load is not, though their sum is.
Crosses are the closed form of the motion, and the torque by the balance of power.
"""

import jax
import matplotlib.pyplot as plt
import numpy as np

import jaxmbs as jm
from jaxmbs import planar
from jaxmbs.plot import draw_curve, draw_force


jax.config.update("jax_enable_x64", True)

radius, length, rate = 0.05, 0.2, 600 * 2 * np.pi / 60  # m, m, rad/s
pin, head = (radius, 0.0), (radius + length, 0.0)
bodies = [
    planar.Body("crank", mass=0.8, inertia=5e-4, position=(0.01, 0.0)),
    planar.Body("rod", mass=0.5, inertia=2e-3, position=(radius + 0.07, 0.0)),
    planar.Body("piston", mass=0.4, inertia=1e-3, position=(radius + length + 0.03, 0.0)),
]
joints = [
    planar.Revolute("A", ("ground", "crank"), (0.0, 0.0)),
    planar.Revolute("B", ("crank", "rod"), pin),
    planar.Revolute("C", ("rod", "piston"), head),
    planar.Translational("D1", ("ground", "piston"), head, (1.0, 0.0)),
    planar.Translational("D2", ("ground", "piston"), (head[0] + 0.06, 0.0), (1.0, 0.0)),
]
motor = jm.Driver("motor", "A", "rotation", jm.motions.Linear(rate=rate))
system = jm.MultibodySystem(bodies, joints, [motor], gravity=(0.0, -9.81))

times = np.linspace(0.0, 2 * np.pi / rate, 181)
motion = jm.kinematics(system, system.reference_q, times)
loaded = jm.inverse_dynamics(system, system.reference_q, times)
found = loaded.reactions()
print(found)
one_guide = jm.inverse_dynamics(
    system, system.reference_q, times, formulation=jm.formulations.Elimination(("D2.n", "D2.r"))
).reactions()
torque = np.asarray(found.driving("motor"))

guides = jm.analyze(system, motion.q[20], motion.v[20], times[20], subsets=[("D1", "D2")])
both = found.wrench("D1").force[:, 1] + found.wrench("D2").force[:, 1]

angle = rate * times
side = np.sqrt(length**2 - (radius * np.sin(angle)) ** 2)
exact = (
    -radius
    * rate**2
    * (
        np.cos(angle)
        + radius * np.cos(2 * angle) / side
        + radius**3 * np.sin(2 * angle) ** 2 / (4 * side**3)
    )
)


@jax.vmap
def power(q, v, acceleration, t):
    """Of the motor (W): what accelerates, less what gravity gives."""
    return v @ (system.mass_matrix(q) @ acceleration - system.force(q, v, t))


balance = np.asarray(power(motion.q, motion.v, motion.acceleration, motion.times)) / rate
print(f"largest torque of the motor: {np.max(np.abs(torque)):.2f} N m (unique)")
print(f"against the balance of power: {np.max(np.abs(torque - balance)):.1e} N m")
print(f"against the closed form: {np.max(np.abs(motion.acceleration[:, 6] - exact)):.1e} m/s^2")

figure, panels = plt.subplots(2, 2, figsize=(9.5, 6.5), sharex=True, layout="constrained")
degrees, some = np.degrees(angle), slice(None, None, 12)
(piston, driving), (pins, guided) = panels
piston.plot(degrees, motion.acceleration[:, 6], "k-", label="kinematic analysis")
piston.plot(degrees[some], exact[some], "kx", label="closed form")
piston.set_ylabel("acceleration of the piston (m/s²)")
draw_curve(driving, degrees, torque, "motor", unique=found.unique("motor"), place=2)
driving.plot(degrees[some], balance[some], "kx", label="balance of power")
driving.set_ylabel("driving torque (N m)")
for place, name in enumerate(("A", "B", "C")):
    draw_force(pins, degrees, found.wrench(name), name, place=place)
pins.set_ylabel("force in the pins, unique (N)")
draw_curve(guided, degrees, both, "D1 + D2, unique", unique=guides.subset_unique[0], place=0)
draw_force(guided, degrees, found.wrench("D1"), "D1, minimum norm", component=1, place=1)
draw_force(guided, degrees, one_guide.wrench("D1"), "D1, without D2", component=1, place=2)
guided.set_ylabel("force on the piston along y (N)")
for axes in panels.flat:
    axes.set_xticks(range(0, 361, 90))
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8, handlelength=3.5)
for axes in panels[1]:
    axes.set_xlabel("angle of the crank (deg)")
figure.savefig("10_inverse_dynamics.png", dpi=130)
