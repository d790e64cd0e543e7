"""Example 37: a mobility that is no mobility.

The mobility that a rank counts holds to first order. Two bars in line, pinned to the coupler of a
four-bar, allow a velocity across, and move with the coupler alone: rank and mobility say two
motions in every configuration, and there is one. Where the four-bar lies flat, two motions to first
order are two branches, of which a motion takes one. `jm.mobility` asks what redundant rows say
beyond first order, by which order it is decided, and in which directions the branches leave. The
picture shows the linkage with its arch, and all configurations of the flat four-bar, solved by
hand, with the directions that were found.
"""

import jax
import matplotlib.pyplot as plt
import numpy as np

import jaxmbs as jm
from jaxmbs import planar


jax.config.update("jax_enable_x64", True)


def linkage(points, bars):
    """Bars between named points, and pins where they meet: of each pin the two bodies."""
    bodies = [
        planar.Body(
            name, mass=1.0, inertia=0.1, position=np.mean([points[p] for p in ends], axis=0)
        )
        for name, ends in bars.items()
    ]
    pairs = {p: [name for name, ends in bars.items() if p in ends] for p in points}
    joints = [
        planar.Revolute(p, tuple(own) if len(own) == 2 else ("ground", *own), points[p])
        for p, own in pairs.items()
    ]
    return jm.Model("linkage", 2, bodies=bodies, joints=joints)


frame = {"A": (0.0, 0.0), "B": (0.1, 0.5), "C": (1.1, 0.8), "D": (0.9, 0.0)}
arch = {"E": (0.3, 0.7), "F": (0.6, 0.95), "G": (0.9, 1.2)}
bars = {"crank": "AB", "coupler": "BCEG", "rocker": "CD", "left bar": "EF", "right bar": "FG"}
shaky = linkage(frame | arch, bars).system()
print(jm.mobility(shaky, shaky.reference_q))
print()

lengths = np.array([1.0, 2.0, -1.2])  # m, along the line: crank, coupler, rocker
ends = np.concatenate([[0.0], np.cumsum(lengths)])
flat = linkage(
    {name: (x, 0.0) for name, x in zip("ABCD", ends, strict=True)},
    {"crank": "AB", "coupler": "BC", "rocker": "CD"},
).system()
crossing = jm.mobility(flat, flat.reference_q)
print(crossing)

# At each angle of the crank the coupler's end is on two circles.
crank = np.linspace(-1.2, 1.2, 801)
pin = lengths[0] * np.stack([np.cos(crank), np.sin(crank)])
to = np.array([[ends[3]], [0.0]]) - pin
distance = np.linalg.norm(to, axis=0)
along = (lengths[1] ** 2 - lengths[2] ** 2 + distance**2) / (2 * distance)
with np.errstate(invalid="ignore"):
    height = np.sqrt(lengths[1] ** 2 - along**2)
coupler = np.stack([np.arctan2(to[1], to[0]) + s * np.arctan2(height, along) for s in (1, -1)])

figure, (left, right) = plt.subplots(1, 2, figsize=(9.0, 3.8), layout="constrained")
for name, own in bars.items():
    at = np.array([(frame | arch)[p] for p in own[:2]])
    left.plot(*at.T, "-", lw=4, alpha=0.5, color="C1" if "bar" in name else "C0")
left.plot(*np.array([frame[p] for p in "BC"] + [arch["G"], arch["E"], frame["B"]]).T, "C0-", lw=1)
left.plot(*np.array(list((frame | arch).values())).T, "ko", ms=5)
for name, point in (frame | arch).items():
    left.annotate(name, point, xytext=(5, -12), textcoords="offset points")
normal = np.array([-0.25, 0.3]) / 2
left.annotate(
    "a velocity,\nand no motion",
    np.array(arch["F"]) + normal,
    xytext=(0.02, 1.15),
    color="C3",
)
left.annotate(
    "", np.array(arch["F"]) + normal, xytext=arch["F"], arrowprops={"color": "C3", "width": 1.5}
)
left.set(xlabel="x (m)", ylabel="y (m)", xlim=(-0.15, 1.35), ylim=(-0.15, 1.45))
left.set_aspect("equal")

for k, angles in enumerate(coupler):
    right.plot(
        np.degrees(crank), np.degrees(angles), "k.", ms=2, label="closed" if k == 0 else None
    )
for k, branch in enumerate(crossing.branches, start=1):
    turns = branch.tangent[[2, 5], 0]
    turns = 18 * turns / np.abs(turns[0])
    right.plot(*np.outer(turns, [-1, 1]), f"C{k}" + ("-", "--")[k - 1], lw=2.5, label=f"branch {k}")
right.set(xlabel="crank (deg)", ylabel="coupler (deg)", xlim=(-60, 60), ylim=(-60, 60))
right.legend(loc="lower left")
right.grid(alpha=0.3)
figure.savefig("37_mobility.png", dpi=130)
