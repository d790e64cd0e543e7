"""Example 14: the mobile robot's trolley, hitched so that its wheel carries less.

The robot drives its manoeuvre; the lateral force on the trolley's wheel W5 is unique, those on
wheels W1 to W4 are not. Where may the hitch A lie, where the trolley's centre of mass and how
heavy may trolley and platform be, so that the peak of W5 is least? Only parameters that keep the
rank and the closure have derivatives: the guard says which, and why moving a single wheel has none.
"""

import jax
import matplotlib.pyplot as plt
import numpy as np

import jaxmbs as jm
from jaxmbs import design


jax.config.update("jax_enable_x64", True)

a = 0.05  # m
model = jm.mechanisms.mobile_robot()
steered = jm.mechanisms.mobile_robot(jm.motions.Polynomial(coefficients=[0.3 * a]))
asked = ["joints.A.at.x", "joints.B.at.x", "joints.W3.at.x", "joints.W3.at.y", "joints.W5.at.x"]
print(design.guard(design.Study(steered, asked)))

bounds = {
    "joints.A.at.x": (-10 * a, -6 * a),
    "bodies.trolley.position.x": (-14 * a, -9 * a),
    "bodies.trolley.mass": (4.0, 8.0),
    "bodies.platform.mass": (8.0, 14.0),
}
# No singular configuration is near: the study compares ranks at the saved states.
run = design.Motion(4.7712, count=64, rtol=1e-6, atol=1e-8, monitor=False)
study = design.Study(model, list(bounds), run=run)
wheel = design.Combination("W5")
found = design.minimise(
    design.Peak(wheel, exponent=12), study, bounds, optimiser=design.SLSQP(steps=9)
)
print(found)
before, after = found.start_response, found.response
forces = [np.asarray(wheel(response)) for response in (before, after)]
print(f"peak of W5: {np.abs(forces[0]).max():.3f} N -> {np.abs(forces[1]).max():.3f} N")

figure, (over, ground) = plt.subplots(1, 2, figsize=(9.5, 4.0), layout="constrained")
over.plot(before.times, forces[0], "--", color="0.45", lw=2.0, label="before")
over.plot(after.times, forces[1], "k-", lw=1.6, label="after")
over.set_xlabel("time (s)")
over.set_ylabel("lateral force on W5, unique (N)")
for response, style, label in ((before, "--", "before"), (after, "-", "after")):
    color = "0.45" if style == "--" else "k"
    ground.plot(response.q[:, 0], response.q[:, 1], style, color=color, lw=1.6, label=label)
ground.set_aspect("equal")
ground.set_xlabel("x of the platform (m)")
ground.set_ylabel("y of the platform (m)")
for axes in (over, ground):
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8)
figure.savefig("14_robot_design.png", dpi=130)
