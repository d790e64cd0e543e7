"""Example 51: how machines look.

A toggle press. Its crank, coupler and levers have no shapes: bars and a plate through their joints
are drawn, the ram as a block on its guide. Frame, ram and flywheel are given shapes, which no
equation knows: they are parts of the model and not of its system. The picture shows the press by
what follows from its joints alone, and with its shapes at two positions of the crank.

    python examples/51_shapes.py
"""

import jax
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg

import jaxmbs as jm
from jaxmbs import planar, shapes
from jaxmbs.plot import draw_mechanism


jax.config.update("jax_enable_x64", True)

# Points of the press (m): crank pin, knee, and the ends of both levers.
SHAFT, PIN, KNEE = np.array([-0.55, 0.75]), np.array([-0.47, 0.81]), np.array([-0.09, 0.5])
TOP, RAM = np.array([0.0, 0.9]), np.array([0.0, 0.1])


def bar(name, first, last):
    """A body whose centre of mass is in the middle of two points."""
    return planar.Body(name, mass=10.0, inertia=0.2, position=(first + last) / 2)


bodies = [
    planar.Body("crank", mass=20.0, inertia=0.5, position=SHAFT),
    bar("coupler", PIN, KNEE),
    bar("upper lever", TOP, KNEE),
    bar("lower lever", KNEE, RAM),
    planar.Body("ram", mass=40.0, inertia=1.0, position=RAM - (0.0, 0.1)),
]
joints = [
    planar.Revolute("shaft", ("ground", "crank"), at=SHAFT),
    planar.Revolute("pin", ("crank", "coupler"), at=PIN),
    planar.Revolute("knee", ("coupler", "upper lever"), at=KNEE),
    planar.Revolute("elbow", ("upper lever", "lower lever"), at=KNEE),
    planar.Revolute("crown", ("ground", "upper lever"), at=TOP),
    planar.Revolute("wrist", ("lower lever", "ram"), at=RAM),
    planar.Translational("guide", ("ground", "ram"), at=RAM - (0.0, 0.1), axis=(0.0, 1.0)),
]
drive = jm.Driver("drive", "shaft", "rotation", jm.motions.Linear(rate=1.0))
frame = [[-0.3, -0.5], [0.45, -0.5], [0.45, 1.05], [-0.75, 1.05], [-0.75, 0.95], [0.3, 0.95],
         [0.3, -0.32], [-0.3, -0.32]]  # fmt: skip
looks = [
    shapes.VisualPolygon("ground", frame, 0.05, color="lightgray"),
    shapes.VisualBox("ground", (0.08, 0.25, 0.05), at=(-0.55, 0.84), color="lightgray"),
    shapes.VisualBox("ground", (0.2, 0.08, 0.1), at=(0.0, -0.28), color="gray"),
    shapes.VisualCylinder("crank", 0.16, 0.02, color="steelblue"),
    shapes.VisualBox("ram", (0.3, 0.2, 0.1), at=(0.0, 0.01), color="gold"),
    shapes.VisualBox("ram", (0.12, 0.06, 0.1), at=(0.0, -0.11), color="darkgray"),
]


def press(visuals):
    """The press with these visual shapes."""
    parts = {"bodies": bodies, "joints": joints, "drivers": [drive], "gravity": (0.0, -9.81)}
    return jm.Model("toggle press", 2, visuals=visuals, **parts)


plain, shown = press([]), press(looks)
system = shown.system()
turns = np.linspace(0.0, 2 * np.pi, 121)
motion = jm.inverse_dynamics(system, system.reference_q, turns)
print(motion)
heights = np.asarray(motion.q)[:, system.structure.bodies[4].coordinates[1]]
lowest = int(np.argmin(heights))
print(f"stroke {np.ptp(heights):.3f} m, lowest at {np.degrees(turns[lowest]):.0f} deg of the crank")

figure, panels = plt.subplots(1, 3, figsize=(12.0, 5.6), layout="constrained")
for panel, model, k, title in (
    (panels[0], plain, 0, "from its joints alone"),
    (panels[1], shown, 0, "with shapes"),
    (panels[2], shown, lowest, "ram at its lowest"),
):
    q = motion.q[k]
    own = draw_mechanism(model, system, jm.analyze(system, q, t=turns[k]), q)
    own.set_size_inches(6.0, 8.0)
    canvas = FigureCanvasAgg(own)
    canvas.draw()
    panel.imshow(np.asarray(canvas.buffer_rgba()))
    plt.close(own)
    panel.set_axis_off()
    panel.set_title(title)
figure.savefig("51_shapes.png", dpi=130)
