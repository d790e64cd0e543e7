"""Example 33: what is wrong with a model, before anything is simulated.

A door hangs on two hinges. Where they are aligned they share the load, and no rigid-body program
knows how. Where one is tilted the door is stuck, and where it is tilted by little the forces hang
on the last digits of the model: the check tells which misalignment would turn its verdict. It also
finds a spring that does nothing, an inertia in the wrong unit and a body that nothing holds.
"""

import jax
import matplotlib.pyplot as plt
import numpy as np

import jaxmbs as jm
from jaxmbs import spatial


jax.config.update("jax_enable_x64", True)


def door(tilt, inertia=(0.9, 0.8, 0.2), stiffness=5.0):
    """A door of 10 kg, 0.8 m wide, its upper hinge tilted (rad)."""
    axis = (np.sin(tilt), 0.0, np.cos(tilt))
    leaf = spatial.Body("leaf", mass=10.0, inertia=inertia, position=(0.4, 0.0, 1.0))
    knob = spatial.Body("knob", mass=0.1, inertia=(1e-4, 1e-4, 1e-4), position=(0.7, 0.0, 1.0))
    ends = [(0.4, 0.0, 1.9), (0.0, 0.4, 1.9)]
    closer = jm.forces.SpringDamper("closer", ("leaf", "ground"), points=ends, stiffness=stiffness)
    hinges = [
        spatial.Revolute("lower", ("ground", "leaf"), (0.0, 0.0, 0.3), (0.0, 0.0, 1.0)),
        spatial.Revolute("upper", ("ground", "leaf"), (0.0, 0.0, 1.7), axis),
    ]
    return jm.Model(
        f"door, tilt {tilt:g} rad",
        3,
        bodies=[leaf, knob],
        joints=hinges,
        forces=[closer],
        gravity=(0.0, 0.0, -9.81),
    )


# Inertias in kg cm2, and a spring of which nobody has set the stiffness.
print(jm.lint(door(0.0, inertia=(9e5, 8e5, 2e5), stiffness=0.0)))
print(jm.lint(door(1e-4), ignore=["JM501"]))

tilts = np.geomspace(1e-8, 0.5, 40)
measures = []
for tilt in tilts:
    near = jm.lint(door(tilt), ignore=["JM501", "JM601"]).of("JM103")
    measures.append(dict(near[0].numbers)["radians"] if near else np.nan)
measures = np.array(measures)

figure, axes = plt.subplots(figsize=(8.0, 5.0), layout="constrained")
axes.loglog(tilts, measures, "ko", markersize=4, label="found by JM103 (nearly redundant)")
axes.loglog(tilts, tilts, "-", color="0.6", label="the tilt itself")
known = np.isfinite(measures)
axes.axvspan(tilts[known].max(), tilts.max(), color="0.9", label="not near: JM103 finds nothing")
axes.set_xlim(tilts.min(), tilts.max())
axes.set_xlabel("tilt of the upper hinge (rad)")
axes.set_ylabel("misalignment that turns the verdict (rad)")
axes.set_title("a door on two hinges: how near is redundancy?")
axes.grid(alpha=0.3)
axes.legend(loc="upper left")
figure.savefig("33_lint.png", dpi=130)
