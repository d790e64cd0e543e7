"""Example 43: a block and tackle.

A load of 100 kg hangs on four parts of one rope, which runs from the beam around two sheaves of a
block and over two at the beam to a hand that moves up and down. The rope slides over the sheaves
without friction, so that its tension is one multiplier: a fourth of the weight at rest, while the
hand moves four times as far as the load. Where the hand follows faster than the load falls the
tension would be negative. The equations hold the rope both ways; the answers say that it would be
slack there.

    python examples/43_tackle.py
"""

import jax
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.patches import Circle, Rectangle

import jaxmbs as jm
from jaxmbs import planar


jax.config.update("jax_enable_x64", True)

G, LOAD, STROKE, BLOCK, HAND = 9.81, 100.0, 0.5, -1.9, -1.1

# The way of the rope: body, point, radius, and 1 where it runs counterclockwise around a sheave.
way = [
    ("ground", (-0.15, -0.15), 0.0, 0),
    ("load", (0.0, BLOCK), 0.15, 1),
    ("ground", (0.3, 0.0), 0.15, -1),
    ("load", (0.6, BLOCK), 0.15, 1),
    ("ground", (0.9, 0.0), 0.15, -1),
    ("hand", (1.05, HAND), 0.0, 0),
]
names, points, radii, senses = zip(*way, strict=True)
rope = planar.Rope("rope", names, points=points, radii=radii, senses=senses)
bodies = [
    planar.Body("load", mass=LOAD, inertia=5.0, position=(0.3, BLOCK)),
    planar.Body("hand", mass=1.0, inertia=0.01, position=(1.05, HAND)),
]
joints = [
    rope,
    planar.Translational("guide", ("ground", "load"), at=(0.3, BLOCK), axis=(0.0, 1.0)),
    planar.Translational("rail", ("ground", "hand"), at=(1.05, HAND), axis=(0.0, 1.0)),
]


def pulled(frequency):
    """The hand moves down and up again, by `STROKE` (m) each way."""
    motion = jm.motions.Sine(amplitude=STROKE, frequency=frequency)
    driver = jm.Driver("pull", "rail", "translation", motion)
    system = jm.MultibodySystem(bodies, joints, [driver], gravity=(0.0, -G))
    times = np.linspace(0.0, 1.0, 201)
    return jm.inverse_dynamics(system, system.reference_q, times)


calm, fast = pulled(1.0), pulled(1.5)
times = np.asarray(calm.times)
print(calm.reactions())
print(fast)

figure, (picture, curves) = plt.subplots(
    1, 2, figsize=(8.0, 4.6), width_ratios=[1.0, 1.7], layout="constrained"
)
picture.add_patch(Rectangle((-0.3, 0.28), 1.5, 0.1, facecolor="0.75", edgecolor="k", hatch="////"))
picture.plot([-0.15, -0.15], [-0.15, 0.28], "-", color="0.5", linewidth=3, zorder=0)
for name, (x, y), radius, _ in way:
    if radius:
        picture.plot([x, x], [y, 0.28 if name == "ground" else BLOCK - 0.3], "-", color="0.5", lw=3)
        picture.add_patch(Circle((x, y), radius, facecolor="0.9", edgecolor="k"))
        picture.plot(x, y, "k.", markersize=4)
line = rope.outline()
picture.plot(line[:, 0], line[:, 1], "k-", linewidth=2)
picture.plot([0.0, 0.6], [BLOCK - 0.3] * 2, "-", color="0.5", linewidth=4)
picture.add_patch(Rectangle((0.0, BLOCK - 0.8), 0.6, 0.5, facecolor="0.6", edgecolor="k"))
picture.text(0.3, BLOCK - 0.55, "100 kg", ha="center", va="center")
arrow = {"width": 0.02, "head_width": 0.12, "length_includes_head": True, "color": "k"}
picture.arrow(1.05, HAND, 0.0, -0.5, **arrow)
picture.text(1.05, HAND - 0.6, "hand", ha="center", va="top")
picture.set_aspect("equal")
picture.set_xlim(-0.4, 1.4)
picture.set_ylim(-2.85, 0.5)
picture.set_xlabel("x (m)")
picture.set_ylabel("y (m)")

for run, style, label in ((calm, "-", "1.0 Hz"), (fast, "--", "1.5 Hz")):
    tension = np.asarray(run.reactions().one_sided_force("rope"))
    curves.plot(times, tension, f"k{style}", linewidth=1.5, label=f"hand at {label}")
curves.axhline(LOAD * G / 4, color="0.4", linewidth=1, linestyle=":", label="weight / 4")
low, high = -80.0, 640.0
curves.axhspan(low, 0.0, color="0.87", linewidth=0)
curves.text(0.02, low * 0.55, "the rope would be slack", va="center", fontsize=9)
curves.set_ylim(low, high)
curves.set_xlim(0.0, 1.0)
curves.set_xlabel("time (s)")
curves.set_ylabel("tension of the rope (N)")
curves.grid(alpha=0.3)
curves.legend(fontsize=9, loc="upper center", ncols=3)
figure.suptitle("A load on four parts of a rope", fontsize=11)
figure.savefig("43_tackle.png", dpi=130)
