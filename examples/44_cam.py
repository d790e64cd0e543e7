"""Example 44: a cam whose follower lifts off.

A disc cam lifts a roller follower by 12 mm in 120 degrees, holds it, lets it return in 120 degrees,
and rests. A spring presses the follower on the cam. The cam is given by the path of the roller's
centre, so that the follower moves as designed; the contact force follows from its multiplier. Above
some speed it would have to pull: the follower lifts off, where the cam decelerates it.

    python examples/44_cam.py
"""

import jax
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.patches import Circle

import jaxmbs as jm
from jaxmbs import forces, motions, planar


jax.config.update("jax_enable_x64", True)

BASE, ROLLER, LIFT = 0.040, 0.012, 0.012
MASS, STIFFNESS, PRELOAD = 0.4, 6000.0, 60.0
SPEEDS = (600.0, 1200.0, 1500.0)


def lift(degrees: np.ndarray) -> np.ndarray:
    """Rise over the cam's angle by the polynomial 10 x^3 - 15 x^4 + 6 x^5, and return."""
    rise = np.clip(degrees / 120.0, 0.0, 1.0)
    back = np.clip((degrees - 150.0) / 120.0, 0.0, 1.0)
    x = np.where(degrees < 150.0, rise, 1.0 - back)
    return LIFT * x**3 * (10 - 15 * x + 6 * x**2)


# The cam turns clockwise under the follower, so that its path passes counter-clockwise there.
angles = np.arange(0.0, 360.0, 1.5)
start = BASE + ROLLER
radii = start + lift(angles)

bodies = [
    planar.Body("cam", mass=1.5, inertia=1.5e-3, position=(0.0, 0.0)),
    planar.Body("follower", mass=MASS, inertia=1e-4, position=(start, 0.0)),
]
cam = planar.Cam(
    "contact",
    ("cam", "follower"),
    at=(start, 0.0),
    radii=radii,
    centre=(0.0, 0.0),
    radius=ROLLER,
    pitch_curve=True,
)
joints = [
    planar.Revolute("shaft", ("ground", "cam"), at=(0.0, 0.0)),
    planar.Translational("guide", ("ground", "follower"), at=(start, 0.0), axis=(1.0, 0.0)),
    cam,
]
spring = forces.SpringDamper(
    "spring",
    ("ground", "follower"),
    points=[(start + 0.06, 0.0), (start, 0.0)],
    stiffness=STIFFNESS,
    damping=0.0,
    length=0.06 + PRELOAD / STIFFNESS,
)

figure, (profile, force) = plt.subplots(
    1, 2, figsize=(9.0, 4.0), width_ratios=(1.0, 1.6), layout="constrained"
)
turned = np.linspace(0.0, 360.0, 241)
for speed, style in zip(SPEEDS, ("-", "--", "-."), strict=True):
    rate = speed * 2 * np.pi / 60
    drive = jm.Driver("drive", "shaft", "rotation", motions.Linear(rate=-rate))
    model = jm.Model("cam", 2, bodies=bodies, joints=joints, drivers=[drive], forces=[spring])
    system = model.system()
    times = np.radians(turned) / rate
    motion = jm.inverse_dynamics(system, system.reference_q, times)
    print(motion)
    contact = np.asarray(motion.reactions().one_sided_force("contact"))
    print(f"{speed:.0f} rpm: contact force {contact.min():.1f} N to {contact.max():.1f} N")
    force.plot(turned, contact, "k" + style, linewidth=1.4, label=f"{speed:.0f} rpm")

path = np.asarray(cam.along(720))
ring = np.vstack([path, path[:1]]) * 1e3
# The profile lies inside of the path by the roller's radius.
tangent = np.gradient(path, axis=0)
tangent[[0, -1]] = (path[1] - path[-1]), (path[0] - path[-2])
normal = np.stack([-tangent[:, 1], tangent[:, 0]], axis=1)
outline = path + ROLLER * normal / np.linalg.norm(normal, axis=1)[:, None]
outline = np.vstack([outline, outline[:1]]) * 1e3
profile.fill(*outline.T, facecolor="0.85", edgecolor="k", linewidth=1.5, label="cam")
profile.plot(*ring.T, "k--", linewidth=1.0, label="path of the roller's centre")
profile.add_patch(Circle((start * 1e3, 0.0), ROLLER * 1e3, fill=False, linewidth=1.2))
profile.plot([0.0], [0.0], "k+", markersize=9)
profile.set_aspect("equal")
profile.set_xlabel("x (mm)")
profile.set_ylabel("y (mm)")
profile.set_title("The cam at its start", fontsize=11)
profile.set_ylim(-75.0, 95.0)
profile.legend(fontsize=8, loc="upper left")
force.axhline(0.0, color="0.5", linewidth=0.8)
low = force.get_ylim()[0]
force.axhspan(low, 0.0, color="0.92", linewidth=0)
force.text(352.0, low * 0.5, "lifted off", fontsize=9, ha="right", va="center")
force.set_ylim(low, None)
force.set_xlim(0.0, 360.0)
force.set_xticks(np.arange(0, 361, 60))
force.set_xlabel("angle of the cam (deg)")
force.set_ylabel("contact force (N)")
force.set_title("Contact force at three speeds", fontsize=11)
force.grid(alpha=0.3)
force.legend(fontsize=9, loc="upper right")
figure.savefig("44_cam.png", dpi=130)
