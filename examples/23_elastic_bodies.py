"""Example 23: a mechanism whose bodies are all elastic by finite elements.

Six links hold a platform that needs five: rigid bodies leave open what the four lower ones carry.
Here nothing is rigid (Wojtyra & Fraczek 2012, section 5): links are tubes and the platform is a
plate of finite elements, each reduced to a floating frame of reference with Craig-Bampton modes.
After the start, from rest and undeformed, has died away, the forces are those that four elastic
rods would have along the motion of the rigid mechanism.

    python examples/23_elastic_bodies.py         # few modes, 0.2 s
    python examples/23_elastic_bodies.py full    # 20 modes of a link, 30 of the platform, 1 s

Nearly all of the time of the first is compilation.
"""

import sys
from typing import Any

import jax
import matplotlib.pyplot as plt
import numpy as np
from scipy.interpolate import RectBivariateSpline

import jaxmbs as jm
from jaxmbs import elastic, finite_elements as fem, spatial


jax.config.update("jax_enable_x64", True)

full = sys.argv[1:] == ["full"]
link_modes, platform_modes, end = (20, 30, 1.0) if full else (2, 4, 0.2)
names = ("AB", "CD", "EF", "GH", "KL", "MN")

# In proportion to the stiffness, so that fast modes die away first; what the start excites has
# done so after 30 ms.
damping = fem.StiffnessDamping(5e-4)
tube, plate = fem.parallelogram_link(), fem.parallelogram_platform()
link = fem.reduce(*tube, modes=link_modes, damping=damping)
platform = fem.reduce(*plate, modes=platform_modes, damping=damping)
model = jm.mechanisms.modal_parallelogram(link, platform)
system = model.system()
print(f"{system.structure.nv} velocities, {len(system.structure.rows)} constraint rows")

# The same masses, rigid; links are rods of the reduced link's stiffness.
joints: Any = model.joints
modal: Any = model.bodies
points = {joint.name: joint.at[0] for joint in joints}
stiffness = fem.axial_stiffness(link, ("base", "platform"))
rods = [
    elastic.Rod(n, f"link {n}", points=[points[k] for k in n], stiffness=stiffness) for n in names
]
bodies = [
    spatial.Body(
        body.name,
        mass=body.reduced.mass,
        inertia=body.reduced.inertia,
        position=body.position,
        orientation=body.orientation,
    )
    for body in modal
]
rigid = jm.MultibodySystem(
    bodies, model.joints, forces=model.forces, compliances=rods, gravity=model.gravity
)


def axial(run):
    """Mean of what the joints at both ends press each link with (n, 6), N."""
    found, columns = run.reactions(), []
    for base, top in names:
        line = found.wrench(top).point - found.wrench(base).point
        line = np.asarray(line) / np.linalg.norm(line, axis=-1, keepdims=True)
        pushed = found.wrench(base).force + found.wrench(top).force
        columns.append(np.sum(np.asarray(pushed) * line, axis=-1) / 2)
    return np.stack(columns, axis=-1)


times = np.linspace(0.0, end, round(end / 2e-3) + 1)
solver = jm.runs.GeneralizedAlpha(step=1e-3)
moving = jm.simulate(
    system, system.reference_q, system.initial_v, end, times=times, solver=solver, monitor=False
)
along = jm.simulate(
    rigid,
    rigid.reference_q,
    rigid.initial_v,
    end,
    times=times,
    formulation=jm.formulations.ElasticResolution(),
    monitor=False,
)
forces, resolved = axial(moving), axial(along)
later = times >= 0.1
error = np.max(np.abs(forces - resolved)[later]) / np.max(np.abs(resolved))
print(f"from 0.1 s on the forces differ by {100 * error:.2f} % of the largest, at most")

figure = plt.figure(figsize=(9.0, 8.0), layout="constrained")
parts: Any = figure.subfigures(2, 1, height_ratios=(1.4, 1.0))
upper, lower = parts
axes = upper.subplots()
styles = ("-", "--", "-.", ":", (0, (6, 1, 1, 1, 1, 1)), (0, (2, 1)))
for k, (name, style) in enumerate(zip(names, styles, strict=True)):
    axes.plot(times, forces[:, k] / 1000, color="k", linestyle=style, linewidth=1.2, label=name)
    shown = slice(k, None, max(1, len(times) // 20))
    axes.plot(times[shown], resolved[shown, k] / 1000, "o", color="0.45", markersize=4, mfc="none")
axes.plot([], [], "o", color="0.45", markersize=4, mfc="none", label="rods, rigid motion")
axes.set_xlim(0.0, end)
axes.set_ylim(1.15 * np.min(resolved) / 1000, 1.35 * np.max(resolved) / 1000)
axes.set_xlabel("time (s)")
axes.set_ylabel("mean axial force (kN), compression positive")
axes.set_title("Links and platform elastic by finite elements (lines)", fontsize=11)
axes.grid(alpha=0.3)
axes.legend(ncols=4, fontsize=9, loc="upper center")

lower.suptitle(
    "First modes of vibration: nothing moves on thick lines, dots are attachments", fontsize=11
)
panels = lower.subplots(1, 4, width_ratios=(1.15, 1.0, 1.0, 1.0))
elements, attachments = tube
shapes = np.asarray(fem.mode_shapes(elements, attachments, modes=20))
hertz = np.asarray(fem.frequencies(fem.reduce(elements, attachments, modes=20)))
heights, ring = np.unique(elements.points[:, 2].round(9), return_inverse=True)
# Of a pair that bends alike along x and y, one.
for k, style in zip((0, 2), ("-", "--"), strict=True):
    middle = np.stack([shapes[ring == i, :2, k].mean(axis=0) for i in range(len(heights))])
    bent = middle @ np.linalg.svd(middle, full_matrices=False)[2][0]
    panels[0].plot(
        bent / np.max(np.abs(bent)), heights, "k", linestyle=style, label=f"{hertz[k]:.0f} Hz"
    )
panels[0].axvline(0.0, color="0.6", linewidth=0.8)
panels[0].set_title("link bends at", fontsize=10)
panels[0].set_xlabel("displacement / largest")
panels[0].set_ylabel("along the link (m)")
panels[0].set_ylim(-0.36, 0.62)
panels[0].legend(fontsize=9, loc="upper center")

elements, attachments = plate
shapes = np.asarray(fem.mode_shapes(elements, attachments, modes=30))
hertz = np.asarray(fem.frequencies(fem.reduce(elements, attachments, modes=30)))
middle = np.flatnonzero(np.abs(elements.points[:, 2]) < 1e-9)
x, y, _ = elements.points[middle].T.round(9)
middle = middle[np.lexsort((x, y))]
across = np.unique(x)
fine = np.linspace(-0.25, 0.25, 201)
for k, panel in enumerate(panels[1:]):
    out = shapes[middle, 2, k].reshape(len(across), len(across))
    out = out / out.flat[np.argmax(np.abs(out))]
    # A mesh has corners where the lines between its nodes are drawn straight.
    out = RectBivariateSpline(across, across, out)(fine, fine)
    panel.contourf(fine, fine, out, levels=np.linspace(-1, 1, 9), cmap="gray", alpha=0.6)
    panel.contour(fine, fine, out, levels=[0.0], colors="k", linewidths=1.8)
    panel.plot(*np.asarray(platform.points)[:, :2].T, "ko", markersize=3.5, clip_on=False)
    panel.set_title(f"platform, {hertz[k]:.0f} Hz", fontsize=10)
    panel.set_xlabel("x (m)")
    panel.set_xticks((-0.25, 0.0, 0.25))
    panel.set_yticks((-0.25, 0.0, 0.25))
    panel.set_aspect("equal")
panels[1].set_ylabel("y (m)")
figure.savefig("23_elastic_bodies.png", dpi=130)
