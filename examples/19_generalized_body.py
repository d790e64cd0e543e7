"""Example 19: a body in coordinates of its own.

Trolley, rope and hook of a crane are one body with three coordinates: the place of the trolley, the
angle of the rope and its length. Joints hold it at its hook like any other body, drivers move the
trolley and pay out the rope. Three slings carry a beam: one too many, so that their forces are not
unique, while those in the rope and on the trolley are.
"""

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np

import jaxmbs as jm
from jaxmbs import generalized, motions, planar
from jaxmbs.plot import draw_curve


jax.config.update("jax_enable_x64", True)

trolley, hook, beam = 300.0, 80.0, 900.0  # kg
start = jnp.array([0.0, 0.0, 3.0])  # m, rad, m


def place(q):
    x, angle, rope = q
    return jnp.stack([x + rope * jnp.sin(angle), -rope * jnp.cos(angle)])


def mass_matrix(q, t):
    turned = jax.jacobian(place)(q)
    return hook * turned.T @ turned + jnp.diag(jnp.array([trolley, 0.0, 0.0]))


crane = generalized.Body(
    "crane",
    ("trolley", "angle", "rope"),
    mass_matrix=mass_matrix,
    first_moment=lambda q: hook * place(q),
    frames={"hook": lambda q: generalized.PlanarFrame(place(q), q[1])},
    start=start,
    lengths=("trolley", "rope"),
)
top, ends = np.array([0.0, -3.0]), np.array([[-1.5, -4.5], [0.2, -4.5], [1.5, -4.5]])
load = planar.Body("beam", mass=beam, inertia=beam * 3.0**2 / 12, position=(0.0, -4.5))
slings = [
    planar.Distance(f"sling {k + 1}", ("crane.hook", "beam"), points=(top, end))
    for k, end in enumerate(ends)
]
drivers = [
    jm.Driver("travel", "crane", "trolley", motions.Step(times=(0.5, 3.5), values=(0.0, 4.0))),
    jm.Driver("winch", "crane", "rope", motions.Step(times=(1.0, 5.0), values=(3.0, 5.0))),
]
system = jm.MultibodySystem([crane, load], slings, drivers, gravity=(0.0, -9.81))

q, v = system.reference_q, system.initial_v
report = jm.analyze(system, q, v, 0.0)
print(report)

motion = jm.simulate(system, q, v, 8.0, every=0.02)
reactions = motion.reactions()
times, winch = np.asarray(motion.times), -np.asarray(reactions.driving("winch"))
hanging = np.asarray(motion.q[:, :3])
swing = np.degrees(np.asarray(motion.q[:, 5]))
print(f"largest swing of the beam: {np.max(np.abs(swing)):.2f} degrees")
print(f"rope force from {np.min(winch):.0f} to {np.max(winch):.0f} N (unique)")

figure, panels = plt.subplots(2, 2, figsize=(10.0, 6.5), layout="constrained")
(path, moved), (forces, shares) = panels
path.plot(motion.q[:, 3], motion.q[:, 4], "k-", label="centre of the beam")
hooks = np.asarray(jax.vmap(place)(motion.q[:, :3]))
path.plot(hooks[:, 0], hooks[:, 1], color="0.5", linestyle="dashed", label="hook")
path.set_xlabel("x (m)")
path.set_ylabel("y (m)")
path.axis("equal")
moved.plot(times, hanging[:, 0], "k-", label="trolley")
moved.plot(times, hanging[:, 2], color="0.5", linestyle="dashed", label="rope")
moved.plot([], [], "k:", label="swing of the beam (right)")
moved.set_ylabel("trolley, rope (m)")
swinging = moved.twinx()
swinging.plot(times, swing, "k:")
swinging.set_ylabel("swing of the beam (deg)")
draw_curve(forces, times, winch / 1000, "rope", unique=reactions.unique("winch").unique, place=0)
draw_curve(
    forces,
    times,
    np.asarray(reactions.driving("travel")) / 1000,
    "trolley",
    unique=reactions.unique("travel").unique,
    place=1,
)
forces.set_ylabel("force of the drives (kN), unique")
for k, sling in enumerate(slings):
    force = np.linalg.norm(np.asarray(reactions.wrench(sling.name).force), axis=1)
    unique = reactions.unique(sling.name).unique
    draw_curve(shares, times, force / 1000, f"{sling.name}, minimum norm", unique=unique, place=k)
shares.set_ylabel("force in the slings (kN), not unique")
shares.set_ylim(top=7.5)
for axes in (moved, forces, shares):
    axes.set_xlabel("time (s)")
for axes in panels.flat:
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8, handlelength=3.5)
moved.set_ylim(top=7.5)
swinging.set_ylim(top=60)
figure.savefig("19_generalized_body.png", dpi=130)
