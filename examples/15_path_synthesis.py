"""Example 15: a four-bar linkage whose coupler point follows a straight line.

While the crank turns by 90 degrees a point of the coupler should move along 0.5 m of a straight
line, evenly. Ten numbers may change: four pivots and the coupler point. 1,024 random linkages are
improved side by side in one compiled program; those that do not close or lock on the way are
recorded and stop no other. The best one is then finished by SLSQP.
"""

import time

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np

import jaxmbs as jm
from jaxmbs import design, planar


jax.config.update("jax_enable_x64", True)

pivots = {"A": (0.0, 0.0), "B": (-0.14, 0.14), "C": (0.2, 0.5), "D": (0.4, 0.0)}  # m
places = {"crank": (-0.07, 0.07), "coupler": (0.6, 0.8), "rocker": (0.3, 0.25)}
bodies = [planar.Body(n, mass=1.0, inertia=0.1, position=x) for n, x in places.items()]
pairs = {
    "A": ("ground", "crank"),
    "B": ("crank", "coupler"),
    "C": ("coupler", "rocker"),
    "D": ("ground", "rocker"),
}
joints = [planar.Revolute(name, pairs[name], at) for name, at in pivots.items()]
motor = jm.Driver("motor", "A", "rotation", jm.motions.Linear(rate=np.pi / 2))
model = jm.Model("four-bar", 2, bodies=bodies, joints=joints, drivers=[motor])

# The coupler point is the coupler's centre of mass: masses mean nothing here.
reach = 0.12
bounds = {
    f"joints.{name}.at.{axis}": (x - reach, x + reach)
    for name, at in pivots.items()
    for axis, x in zip("xy", at, strict=True)
}
bounds |= {
    f"bodies.coupler.position.{axis}": (x - reach, x + reach)
    for axis, x in zip("xy", places["coupler"], strict=True)
}
times = np.linspace(0.0, 1.0, 6)
study = design.Study(model, list(bounds), run=design.Driven(times))
line = np.stack([np.linspace(0.65, 0.15, times.size), np.full(times.size, 0.9)], axis=1)


def point(response):
    """The coupler point at every time (n, 2), m."""
    return response.q[:, 3:5]


def distance(response):
    """Mean square of what is left to the points of the line (m^2)."""
    return jnp.mean(jnp.sum((point(response) - line) ** 2, axis=1))


began = time.perf_counter()
starts = jm.Cases.uniform(bounds, 1024, seed=0)
many = design.multistart(
    distance, study, bounds, starts, optimiser=design.Descent(steps=19, rate=0.06, every=20)
)
print(many)
print(f"1,024 starts in {time.perf_counter() - began:.1f} s, with compiling")
best = design.minimise(
    distance, study, bounds, start=many.best.design, optimiser=design.SLSQP(steps=60)
)
print(best)
error = [float(np.sqrt(x)) for x in (many.values.min(), best.value)]
print(f"root mean square distance: {1e3 * error[0]:.2f} mm, finished {1e3 * error[1]:.3f} mm")

figure, (curves, counts) = plt.subplots(1, 2, figsize=(9.5, 4.4), layout="constrained")
curves.plot(*line.T, "o", color="0.6", ms=11, label="wanted")
for found, style, label in ((many.best, "k--", "best of 1,024"), (best, "k-", "finished")):
    curves.plot(*np.asarray(point(found.response)).T, style, marker=".", label=label)
at = {name: np.array([best.design[f"joints.{name}.at.{axis}"] for axis in "xy"]) for name in "ABCD"}
tip = np.array([best.design[f"bodies.coupler.position.{axis}"] for axis in "xy"])
linkage = np.array([at["A"], at["B"], tip, at["C"], at["B"], at["C"], at["D"]])
curves.plot(*linkage.T, "-", color="0.45", lw=2.5, zorder=0)
for name, place in at.items():
    curves.annotate(name, place, xytext=(5, -12), textcoords="offset points")
    curves.plot(*place, "o", color="0.45", mfc="w", zorder=1)
curves.margins(0.12)
curves.set_aspect("equal")
curves.set_xlabel("x (m)")
curves.set_ylabel("y (m)")
good = many.values[many.codes == 0]
edges = np.geomspace(good.min(), max(good.max(), 2 * good.min()), 25)
counts.hist(1e3 * np.sqrt(good), bins=1e3 * np.sqrt(edges), color="0.6", edgecolor="k", lw=0.6)
counts.axvline(1e3 * error[1], color="k", ls="--", label="finished")
counts.set_xscale("log")
counts.set_xlabel("root mean square distance (mm)")
counts.set_ylabel(f"starts ({(many.codes != 0).sum()} of 1,024 failed)")
curves.legend(fontsize=8, loc="center right")
counts.legend(fontsize=8, loc="upper center")
for axes in (curves, counts):
    axes.grid(alpha=0.3)
figure.savefig("15_path_synthesis.png", dpi=130)
