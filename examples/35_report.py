"""Example 35: a page to send.

A crane's beam lies between two fixed hinges, and a load swings below it. Each hinge can take the
whole horizontal load, so that a rigid-body model knows the sum of the two and not the shares; what
each hinge is made for bounds them. The report is one HTML file that works offline: verdicts, the
moving mechanism with arrows where forces are unique and bars where they are not, curves, and how
all that was computed. Beside it stand a moving picture and, here, the band of one of the hinges.
"""

import jax
import matplotlib.pyplot as plt
import numpy as np

import jaxmbs as jm
import jaxmbs.report
from jaxmbs import planar


jax.config.update("jax_enable_x64", True)

length, load, rope, angle = 4.0, 200.0, 1.5, 0.7  # m, kg, m, rad
swing = rope * np.array([np.sin(angle), -np.cos(angle)])
model = jm.Model(
    "crane beam",
    2,
    bodies=[
        planar.Body("beam", mass=80.0, inertia=110.0, position=(0.0, 0.0)),
        planar.Body("load", mass=load, inertia=4.0, position=swing, angle=angle),
    ],
    joints=[
        planar.Revolute("left", ("ground", "beam"), (-length / 2, 0.0)),
        planar.Revolute("right", ("ground", "beam"), (length / 2, 0.0)),
        planar.Revolute("hook", ("beam", "load"), (0.0, 0.0)),
    ],
    gravity=(0.0, -9.81),
)
system = model.system()
times = np.linspace(0.0, 3.0, 61)
motion = jm.simulate(system, system.reference_q, system.initial_v, times[-1], times=times)

# The left hinge may pull the beam with 400 N and push it with 900 N, the right one with 1200 N.
bounds = ["-400 <= left.force.x <= 900", "|right.force.x| <= 1200"]
print(jaxmbs.report.write(motion, "35_report.html", title="crane beam", bounds=bounds))
motion.animate("35_report.gif", rate=10, title="crane beam", dpi=80)

found = jm.ranges_along(motion, bounds=bounds)
left = found.wrench("left")
reactions = motion.reactions()
hook = reactions.wrench("hook")

figure, (below, bands) = plt.subplots(1, 2, figsize=(9.5, 3.8), layout="constrained")
below.plot(times, hook.force[:, 0], "k-", label="horizontal")
below.plot(times, hook.force[:, 1], "k--", label="vertical")
below.set_title("hook: unique")
bands.fill_between(
    times,
    left.force_low[:, 0],
    left.force_high[:, 0],
    facecolor="0.9",
    edgecolor="0.3",
    hatch="//",
    label="horizontal: not unique, anywhere in here",
)
bands.plot(times, reactions.wrench("left").force[:, 1], "k--", label="vertical: unique")
bands.set_title("left hinge: not unique within its bounds")
for axes in (below, bands):
    axes.set_xlabel("time (s)")
    axes.set_ylabel("force on the second body (N)")
    axes.grid(alpha=0.3)
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.18), ncols=2, frameon=False, fontsize=8)
figure.savefig("35_report.png", dpi=130)
