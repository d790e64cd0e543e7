"""Example 27: a servo constraint, how fast its error decays, and who carries its force.

The third example of the review of the Udwadia-Kalaba equation (Zhao et al. 2018, section 8.3, Figs.
10 and 11): two links that motors move through springs; the rates of both link angles are to have
the sum zero, and start at 0.9 rad/s. A servo constraint lets that error decay as exp(-t / P). Its
force acts on the links, whose inertia it is made of: on both in the least way, or on the second
alone. Motors alone cannot give it, since between them and the links are springs: that is told.
"""

import jax
import matplotlib.pyplot as plt
import numpy as np

import jaxmbs as jm
from jaxmbs.plot import draw_curve


jax.config.update("jax_enable_x64", True)

end, constants = 4.0, (0.2, 0.5, 1.0)  # s


def run(constant):
    """The motion with this time constant."""
    system = jm.mechanisms.flexible_joint_manipulator(constant).system()
    q, v = system.reference_q, system.initial_v
    return jm.simulate(system, q, v, end, every=0.02, rtol=1e-10, monitor=False)


found = {constant: run(constant) for constant in constants}
motion = found[0.5]
system = jm.mechanisms.flexible_joint_manipulator().system()
motors = jm.formulations.ServoControl(["manipulator.motor 1", "manipulator.motor 2"])
start = (system.reference_q, system.initial_v, 0.0)
solved = jax.jit(lambda: motors.solve(system.equations(*start)))()
print(f"motors alone, {jm.results.RESULTS[solved.result]}")

figure, panels = plt.subplots(2, 2, figsize=(10.5, 7.5), layout="constrained")
(error, rates), (both, carried) = panels
for k, (constant, own) in enumerate(found.items()):
    times, beta = np.asarray(own.times), np.asarray(own.v[:, :2]).sum(axis=1)
    gap = np.max(np.abs(beta - 0.9 * np.exp(-times / constant)))
    print(f"P = {constant:g} s: beta is 0.9 exp(-t/P) within {gap:.1e} rad/s")
    draw_curve(error, times, beta, f"P = {constant:g} s", place=k)
    moment = np.asarray(jm.controls(own).of("level"))
    draw_curve(both, times, moment, f"P = {constant:g} s", place=k)
error.set_ylabel("beta (rad/s)")
error.set_title("error of the constraint (Fig. 10)", fontsize=10)
both.set_ylabel("moment on each of both links (N m)")
both.set_title("control on both links, ideal", fontsize=10)
times = np.asarray(motion.times)
for k, name in enumerate(("link 1", "link 2")):
    draw_curve(rates, times, np.asarray(motion.v[:, k]), name, place=k)
rates.set_ylabel("rate of the link angle (rad/s)")
rates.set_title("P = 0.5 s, control on both links (Fig. 11)", fontsize=10)
# With force on link 2 alone the motion would be another one; asked here is what that takes in the
# states of this one.
ideal = np.asarray(jm.controls(motion).of("level"))
second = jm.controls(motion, jm.formulations.ServoControl(["manipulator.link 2"]))
single = np.asarray(second.values[:, 0])
draw_curve(carried, times, ideal, "on both, each", place=0)
draw_curve(carried, times, single, "on link 2 alone", place=1)
carried.set_ylabel("moment (N m)")
carried.set_title("P = 0.5 s: who carries the control", fontsize=10)
print(f"largest moment: {np.abs(ideal).max():.3f} N m on each link, or")
print(f"{np.abs(single).max():.3f} N m on link 2 alone")
for axes in panels.flat:
    axes.set_xlabel("time (s)")
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8, handlelength=3.5)
figure.savefig("27_flexible_joint_manipulator.png", dpi=130)
