"""Example 12: a map of a workspace.

Two driven cranks carry two rods that meet (a five-bar linkage); a tool is pinned to one rod at two
points, which is one row too many. Over all angles of the cranks the map shows how many reactions
are unique, how clearly the rank is decided, and the largest force that is unique. Crosses: the
rods do not reach each other. Where they fall into one line the drivers cease to hold the tip:
there the last pivot vanishes, and forces grow without bound.
"""

import jax
import numpy as np

import jaxmbs as jm
from jaxmbs.plot import draw_map


jax.config.update("jax_enable_x64", True)

left, right = np.array([0.0, 0.0]), np.array([1.0, 0.0])  # m
up, tip = np.array([0.0, 0.5]), np.array([0.5, 1.1])
pins = [left + up + k * (tip - left - up) for k in (0.3, 0.7)]


def bar(name, start, end, mass):
    return jm.planar.Body(name, mass=mass, inertia=0.05 * mass, position=(start + end) / 2)


bodies = [
    bar("left crank", left, left + up, 1.0),
    bar("right crank", right, right + up, 1.0),
    bar("left rod", left + up, tip, 1.0),
    bar("right rod", right + up, tip, 1.0),
    bar("tool", pins[0], pins[1], 3.0),
]
joints = [
    jm.planar.Revolute("A", ("ground", "left crank"), left),
    jm.planar.Revolute("B", ("ground", "right crank"), right),
    jm.planar.Revolute("C", ("left crank", "left rod"), left + up),
    jm.planar.Revolute("D", ("right crank", "right rod"), right + up),
    jm.planar.Revolute("E", ("left rod", "right rod"), tip),
    jm.planar.Revolute("P", ("left rod", "tool"), pins[0]),
    jm.planar.Revolute("Q", ("left rod", "tool"), pins[1]),
]
hold = jm.motions.Linear(rate=0.0)
drivers = [jm.Driver("left", "A", "rotation", hold), jm.Driver("right", "B", "rotation", hold)]
model = jm.Model("five-bar", 2, bodies=bodies, joints=joints, drivers=drivers, gravity=(0.0, -9.81))

angles = np.radians(np.linspace(-100.0, 100.0, 31))
cases = jm.Cases.grid({"drivers.left": angles, "drivers.right": angles})
found = jm.sweep(jm.sweeps.workspace, model, cases)
print(found)
answers, good = found.answers(), found.result == 0
names = found.layout.attributes["constraints"]
for name, share in zip(names, answers.reaction_unique.unique[good].mean(axis=0), strict=True):
    print(f"{name}: unique in {100 * share:.0f} % of the configurations that close")
print(f"largest unique force: {answers.force[good].max():.4g} N")
figure = draw_map(found, "drivers.left", "drivers.right")
figure.savefig("12_workspace.png", dpi=130)
