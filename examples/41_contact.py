"""Example 41: a rimless wheel walks down a slope.

Eight spokes without a rim, the simplest toy that walks: it falls from spoke to spoke, and each
impact takes what the slope gives. Each tip is a point in contact with the slope, with friction that
sticks. The speed after the impacts approaches that of rigid spokes and plastic impacts, which
McGeer (1990) gives in closed form; soft tips lose a little less.

    python examples/41_contact.py
"""

import jax
import matplotlib.pyplot as plt
import numpy as np

import jaxmbs as jm
from jaxmbs import forces, planar, shapes
from jaxmbs.runs import contact_forces


jax.config.update("jax_enable_x64", True)

SPOKES, LENGTH, MASS, INERTIA, SLOPE, GRAVITY = 8, 0.5, 5.0, 0.3, 0.08, 9.81
HALF = np.pi / SPOKES
DOWN = np.array([np.cos(SLOPE), -np.sin(SLOPE)])
NORMAL = np.array([np.sin(SLOPE), np.cos(SLOPE)])

# Two tips on the slope, from which the wheel begins to roll.
hub = LENGTH * np.cos(HALF) * NORMAL
start = 1.5
wheel = planar.Body(
    "wheel",
    mass=MASS,
    inertia=INERTIA,
    position=hub,
    angular_velocity=-start,
    velocity=start * LENGTH * (np.cos(HALF) * DOWN + np.sin(HALF) * NORMAL),
)
angles = np.arange(SPOKES) * 2 * HALF + HALF
tips = hub + LENGTH * (np.outer(np.cos(angles), -NORMAL) + np.outer(np.sin(angles), DOWN))
contacts = [
    forces.Contact(
        f"tip {k + 1}",
        ("wheel", "ground"),
        first=shapes.ContactSphere(0.0, at=tip),
        second=shapes.ContactHalfSpace(NORMAL),
        stiffness=2e6,
        restitution=0.05,
        impact_speed=0.5,
        friction=0.9,
        tangential_stiffness=5e5,
        tangential_damping=500.0,
    )
    for k, tip in enumerate(tips)
]
system = jm.MultibodySystem([wheel], forces=contacts, gravity=[0.0, -GRAVITY])

times = np.linspace(0.0, 4.0, 2001)
motion = jm.simulate(system, system.reference_q, system.initial_v, times[-1], times=times)
touching = contact_forces(motion)
print(touching)

# Angular momentum about the new tip before and after a plastic impact; energy from tip to tip.
about_tip = INERTIA + MASS * LENGTH**2
kept = (INERTIA + MASS * LENGTH**2 * np.cos(2 * HALF)) / about_tip
gained = 4 * MASS * GRAVITY * LENGTH * np.sin(HALF) * np.sin(SLOPE) / about_tip
after = np.sqrt(kept**2 * gained / (1 - kept**2))
before = after / kept
print(f"rigid spokes: {before:.3f} rad/s before an impact, {after:.3f} rad/s after it")

q, spin = np.asarray(motion.q), -np.asarray(motion.v[:, 2])
figure, (path, speed, load) = plt.subplots(
    3, 1, figsize=(7.0, 7.4), layout="constrained", height_ratios=(1.5, 1.0, 1.0)
)
shown = np.searchsorted(times, np.linspace(0.0, times[-1], 5))
for step, k in enumerate(shown):
    shade = str(0.75 - 0.75 * step / (len(shown) - 1))
    turned = angles - q[k, 2]
    ends = np.outer(np.cos(turned), -NORMAL) + np.outer(np.sin(turned), DOWN)
    for x, y in q[k, :2] + LENGTH * ends:
        path.plot([q[k, 0], x], [q[k, 1], y], color=shade, linewidth=1.0)
path.plot(q[:, 0], q[:, 1], "k-", linewidth=1.2)
ground = np.array([q[0, 0] - 0.6, q[-1, 0] + 0.6])
path.fill_between(ground, -np.tan(SLOPE) * ground, -np.tan(SLOPE) * ground - 0.15, color="0.85")
path.set_aspect("equal")
path.set_xlabel("x (m)")
path.set_ylabel("y (m)")
path.set_title("A rimless wheel on a slope of 0.08 rad, every second", fontsize=11)
speed.plot(times, spin, "k-", linewidth=1.2, label="soft tips")
speed.axhline(before, color="k", linestyle="--", linewidth=1.0, label="rigid, before an impact")
speed.axhline(after, color="k", linestyle=":", linewidth=1.4, label="rigid, after an impact")
speed.set_ylabel("angular speed (rad/s)")
speed.legend(fontsize=8, loc="lower right", ncols=3)
speed.set_ylim(0.0, 1.25 * before)
for k in range(SPOKES):
    pressing = np.asarray(touching.states.normal_force[:, k])
    load.semilogy(times, np.where(pressing > 0, pressing, np.nan), "k-", linewidth=0.9)
load.axhline(MASS * GRAVITY * np.cos(SLOPE), color="k", linestyle="--", linewidth=1.0)
load.annotate("weight", (0.9, MASS * GRAVITY * 1.2), fontsize=8)
load.set_ylim(8.0, 3e3)
load.set_ylabel("force of each tip (N)")
load.set_xlabel("time (s)")
for axes in (speed, load):
    axes.set_xlim(0.0, times[-1])
    axes.grid(alpha=0.3)
figure.savefig("41_contact.png", dpi=130)
