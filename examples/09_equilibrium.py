"""Example 9: a place of rest, what holds it there, and small motions around it.

A vibrating conveyor: a trough on three parallel links, one more than it needs, stands on a frame
on two rubber mounts; a spring drives the stroke and a sprung flap hangs from the trough. The
reactions at rest carry their verdicts (the flap's hinge H is unique, the pins of the links are
not), and redundancy disturbs neither the equilibrium nor the five modes about it.
"""

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np

import jaxmbs as jm
from jaxmbs import forces, planar


jax.config.update("jax_enable_x64", True)

feet = {k: np.array([x, 0.3]) for k, x in (("1", 0.2), ("2", 0.8), ("3", 1.5))}  # m
lean = np.array([-0.15, 0.4])
heads = {k: foot + lean for k, foot in feet.items()}
mounts, hinge, tip = [(0.1, 0.0), (1.6, 0.0)], np.array([-0.3, 0.75]), np.array([-0.3, 0.35])
spring = np.array([[1.3, 0.3], [1.0, 0.7]])
bodies = [
    planar.Body("frame", mass=60.0, inertia=8.0, position=(0.85, 0.2)),
    planar.Body("trough", mass=25.0, inertia=4.0, position=(0.6, 0.75)),
    *(planar.Body(f"link {k}", mass=1.0, inertia=0.02, position=feet[k] + lean / 2) for k in feet),
    planar.Body("flap", mass=3.0, inertia=0.04, position=(hinge + tip) / 2),
]
joints = [
    *(planar.Revolute(f"F{k}", ("frame", f"link {k}"), feet[k]) for k in feet),
    *(planar.Revolute(f"T{k}", (f"link {k}", "trough"), heads[k]) for k in feet),
    planar.Revolute("H", ("trough", "flap"), hinge),
]
loads = [
    *(
        forces.Bushing(
            f"mount {k}",
            ("ground", "frame"),
            at=at,
            stiffness=(1e5, 2e5, 1e3),
            damping=(200.0, 400.0, 0.0),
        )
        for k, at in enumerate(mounts)
    ),
    forces.SpringDamper("drive", ("frame", "trough"), points=spring, stiffness=4e4, damping=150.0),
    forces.TorsionSpring("flap spring", "H", stiffness=60.0, damping=0.3),
]
system = jm.MultibodySystem(bodies, joints, forces=loads, gravity=(0.0, -9.81))

rest = jm.equilibrium(system, system.reference_q)
found = rest.reactions()
print(found)
small = jm.linearise(system, rest.q)
print(small)

outlines = {  # m, in the reference configuration
    0: [mounts[0], feet["1"], feet["2"], spring[0], feet["3"], mounts[1]],
    1: [hinge, heads["1"], heads["2"], spring[1], heads["3"], (1.6, 0.75)],
    **{2 + i: [feet[k], heads[k]] for i, k in enumerate(feet)},
    5: [hinge, tip],
}
reference = np.asarray(system.reference_q).reshape(-1, 3)


def points(q, body):
    """The outline of a body at q (m)."""
    x, y, angle = np.asarray(q).reshape(-1, 3)[body]
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    return (np.array(outlines[body]) - reference[body, :2]) @ turn.T + (x, y)


def draw(axes, q, **style):
    for body in outlines:
        axes.plot(*points(q, body).T, **style)
    axes.plot(*np.stack([points(q, 0)[3], points(q, 1)[3]]).T, **style | {"linestyle": ":"})


figure, panels = plt.subplots(
    2, 3, figsize=(11.0, 5.5), sharex=True, sharey=True, layout="constrained"
)
first, *others = panels.flat
draw(first, rest.q, color="0.4", linewidth=2)
first.plot(*np.array(mounts).T, "k^", markersize=9, linestyle="none", label="mount")
frames = system.marker_frames(rest.q)
for unique, style, label in ((True, "ko", "unique"), (False, "kX", "not unique")):
    places = [frames[name][1].origin for name in found.names if bool(found.unique(name)) == unique]
    first.plot(*np.array(places).T, style, markersize=8, label=f"reaction {label}")
first.set_title("at rest", fontsize=10)
figure.legend(loc="outside upper center", ncols=3, frameon=False)

modes = np.flatnonzero(np.imag(small.eigenvalues) > 0)
for k, (axes, mode) in enumerate(zip(others, modes, strict=True), start=1):
    value = complex(small.eigenvalues[mode])
    shape = np.real(small.modes[:, mode]).reshape(-1, 3)
    # So that no centre of mass moves by more than 0.15 m and no body turns by more than 0.5 rad.
    size = 1 / max(np.max(np.abs(shape[:, :2])) / 0.15, np.max(np.abs(shape[:, 2])) / 0.5)
    draw(axes, rest.q, color="0.75", linewidth=1)
    draw(axes, system.retract(rest.q, jnp.asarray(size * shape.ravel())), color="k", linewidth=2)
    damping = -value.real / abs(value)
    frequency = float(small.frequencies[mode])
    axes.set_title(f"mode {k}: {frequency:.2f} Hz, damping ratio {damping:.3f}", fontsize=10)
for axes in panels.flat:
    axes.set_aspect("equal")
    axes.set_ylim(-0.35, 1.1)
    axes.set_xticks((0.0, 0.5, 1.0, 1.5))
for axes in panels[:, 0]:
    axes.set_ylabel("y (m)")
for axes in panels[-1]:
    axes.set_xlabel("x (m)")
figure.savefig("09_equilibrium.png", dpi=130)
