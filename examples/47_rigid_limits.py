"""Example 47: rigid limits: a follower in flight, and a door that bounces.

An elliptic cam turns so fast that its knife-edged follower lifts off: the run goes on with its
flight, the impact in which it comes back, and the contact after that. A door falls shut against a
stop with restitution 0.6: its impacts follow each other ever faster, and it comes to rest.

    python examples/47_rigid_limits.py
"""

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np

import jaxmbs as jm
from jaxmbs import forces, motions, planar


jax.config.update("jax_enable_x64", True)

RATE, LOW, HIGH = 19.0, 0.04, 0.06

turn = 2 * np.pi * np.arange(60) / 60
outline = np.stack([HIGH * np.cos(turn), LOW * np.sin(turn)], axis=1)
bodies = [
    planar.Body("cam", mass=1.0, inertia=1e-3, position=(0.0, 0.0), angular_velocity=RATE),
    planar.Body("follower", mass=0.5, inertia=1e-4, position=(0.0, LOW)),
]
joints = [
    planar.Revolute("shaft", ("ground", "cam"), at=(0.0, 0.0)),
    planar.Translational("guide", ("ground", "follower"), at=(0.0, LOW), axis=(0.0, 1.0)),
    planar.Cam("edge", ("cam", "follower"), at=(0.0, LOW), profile=outline),
]
drive = jm.Driver("drive", "shaft", "rotation", motions.Linear(rate=RATE))
model = jm.Model("cam", 2, bodies=bodies, joints=joints, drivers=[drive], gravity=(0.0, -9.81))
system = model.system()
cam = jm.simulate(system, system.reference_q, system.initial_v, 0.5, every=0.001, limits="rigid")
print(cam.limits)

# Height of the outline above the shaft at the same times.
angle = np.pi / 2 - RATE * np.asarray(cam.times)
below = 1 / np.hypot(np.cos(angle) / HIGH, np.sin(angle) / LOW)


OPENED = 0.9


def door(restitution):
    """A door whose hinge is inclined, so that its weight shuts it."""
    width, mass = 0.8, 20.0
    # From the lowest position of its weight, 0.3 rad behind the frame.
    place = width / 2 * np.array([np.sin(OPENED + 0.3), np.cos(OPENED + 0.3)])
    body = planar.Body("door", mass=mass, inertia=mass * width**2 / 12, position=place)
    hinge = planar.Revolute("hinge", ("ground", "door"), at=(0.0, 0.0))
    frame = forces.JointStop(
        "frame", "hinge", upper=OPENED, stiffness=1e6, restitution=restitution, impact_speed=1.0
    )
    # What an inclination of 3 degrees leaves of gravity in the plane of the motion.
    field = (0.0, 9.81 * np.sin(np.radians(3.0)))
    return jm.Model("door", 2, bodies=[body], joints=[hinge], forces=[frame], gravity=field)


swing = door(0.6).system()
shut = jm.simulate(swing, swing.reference_q, swing.initial_v, 14.0, every=0.02, limits="rigid")
print(shut.limits)
print(shut.at(jnp.array([-1])).reactions().state(0))

assert cam.limits is not None
assert shut.limits is not None
figure, (top, middle, right) = plt.subplots(1, 3, figsize=(13.5, 4.0), layout="constrained")
top.plot(cam.times, 1e3 * below, color="0.6", lw=3, label="outline of the cam")
top.plot(cam.times, 1e3 * np.asarray(cam.q)[:, 4], "k", lw=1.2, label="follower")
edge = cam.limits.of("edge")
heights = np.asarray(1e3 * np.interp(edge.times, cam.times, np.asarray(cam.q)[:, 4]))
for kind, mark in (("release", "^"), ("rest", "v")):
    own = np.array([k == kind for k in edge.kinds])
    word = "lifts off" if kind == "release" else "is back"
    top.plot(np.asarray(edge.times)[own], heights[own], mark, color="C3", ms=8, label=word)
top.set_xlabel("time (s)")
top.set_ylabel("height above the shaft (mm)")
top.set_ylim(35, 82)
top.legend(loc="upper left", ncols=2, fontsize=9)
top.grid(alpha=0.3)

middle.plot(cam.times, cam.reactions().one_sided_force("edge"), "k", lw=1.2)
middle.set_xlabel("time (s)")
middle.set_ylabel("contact force (N)")
middle.grid(alpha=0.3)

opening = np.degrees(OPENED - np.asarray(shut.q)[:, 2])
right.plot(shut.times, opening, "k", lw=1.2, label="restitution 0.6")
hits = np.asarray(shut.limits.times)
right.plot(hits, np.zeros(len(hits)), "v", color="C3", ms=6, mfc="none", label="impacts")
right.axvline(hits[-1], color="0.5", ls="--", lw=1)
right.text(hits[-1] + 0.2, 30, "at rest", fontsize=10)
right.set_xlabel("time (s)")
right.set_ylabel("opening of the door (deg)")
right.legend(loc="upper right", fontsize=9)
right.grid(alpha=0.3)
figure.savefig("47_rigid_limits.png", dpi=130)
