"""Example 13: a slider-crank with the least peak force in its main bearing.

A slider-crank turns at 600 revolutions a minute. Where may the crank's centre of mass lie (a
counterweight), where the rod's, and how long may crank and rod be, so that the peak of the force
in bearing A over one turn is least? The stroke must stay at 100 mm or more, and the rod's force on
the crank pin B at no more than before. The gradient of the peak goes through assembly, motion and
reactions of every design; no closure is lost on the way, as every design is assembled.
"""

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np

import jaxmbs as jm
from jaxmbs import design, planar


jax.config.update("jax_enable_x64", True)

radius, length, rate = 0.05, 0.2, 600 * 2 * np.pi / 60  # m, m, rad/s
bodies = [
    planar.Body("crank", mass=0.8, inertia=5e-4, position=(0.01, 0.0)),
    planar.Body("rod", mass=0.5, inertia=2e-3, position=(radius + 0.1, 0.0)),
    planar.Body("piston", mass=0.4, inertia=1e-3, position=(radius + length, 0.0)),
]
joints = [
    planar.Revolute("A", ("ground", "crank"), (0.0, 0.0)),
    planar.Revolute("B", ("crank", "rod"), (radius, 0.0)),
    planar.Revolute("C", ("rod", "piston"), (radius + length, 0.0)),
    planar.Translational("D", ("ground", "piston"), (radius + length, 0.0), (1.0, 0.0)),
]
motor = jm.Driver("motor", "A", "rotation", jm.motions.Linear(rate=rate))
model = jm.Model(
    "slider-crank", 2, bodies=bodies, joints=joints, drivers=[motor], gravity=(0.0, -9.81)
)

bounds = {
    "bodies.crank.position.x": (-0.12, 0.03),
    "bodies.rod.position.x": (0.1, 0.2),
    "joints.B.at.x": (0.04, 0.07),
    "joints.C.at.x": (0.2, 0.3),
}
times = np.linspace(0.0, 2 * np.pi / rate, 37)
study = design.Study(model, list(bounds), run=design.Driven(times))
print(design.guard(study))


def stroke(response):
    """Of the piston (m)."""
    return jnp.max(response.q[:, 6]) - jnp.min(response.q[:, 6])


bearing, pin = design.Force("A"), design.Force("B")
before = design.responded(study, study.design)
limits = [
    design.AtMost(lambda response: -stroke(response), -0.1),
    design.AtMost(design.Peak(pin), float(design.Peak(pin)(before))),
]
found = design.minimise(design.Peak(bearing, exponent=30), study, bounds, constraints=limits)
print(found)
after = found.response
forces = [np.asarray(bearing(response)) for response in (before, after)]
print(f"peak force in A: {forces[0].max():.2f} N -> {forces[1].max():.2f} N")
print(f"stroke: {1e3 * stroke(before):.2f} mm -> {1e3 * stroke(after):.2f} mm")

figure, (over, way) = plt.subplots(1, 2, figsize=(9.5, 3.8), layout="constrained")
degrees = np.degrees(rate * times)
over.plot(degrees, forces[0], "--", color="0.45", lw=2.0, label="before")
over.plot(degrees, forces[1], "k-", lw=2.0, label="after")
over.set_xticks(range(0, 361, 90))
over.set_ylim(0.0, 1.15 * forces[0].max())
over.set_xlabel("angle of the crank (deg)")
over.set_ylabel("force in bearing A (N)")
over.legend(ncols=2, loc="upper center")
way.plot(found.values, "k.-")
way.set_xlabel("iterate")
way.set_ylabel("objective: smooth peak (N)")
for axes in (over, way):
    axes.grid(alpha=0.3)
figure.savefig("13_slider_crank_design.png", dpi=130)
