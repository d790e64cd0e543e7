"""Example 39: where a barrier comes to rest, from thousands of starts.

The boom of a barrier hangs on two hinges, which is redundant, and a damper brakes it. From some
angle it is let go at some rate: how many turns does it make before it comes to rest?
`simulate_many` makes the motions side by side, and a finished one is replaced by the next. Dashed:
above that line a boom without a damper would go round for ever.

    python examples/39_many_starts.py
"""

import time

import jax
import matplotlib.pyplot as plt
import numpy as np

import jaxmbs as jm


jax.config.update("jax_enable_x64", True)

MASS, LENGTH, DAMPING, GRAVITY = 5.0, 2.0, 3.0, 9.81  # kg, m, N m s/rad, m/s^2
INERTIA = MASS * LENGTH**2 / 12
END, SIDE = 20.0, 48  # s, starts along each axis

boom = jm.planar.Body("boom", mass=MASS, inertia=INERTIA, position=(0.0, -LENGTH / 2))
hinges = [jm.planar.Revolute(name, ("ground", "boom"), (0.0, 0.0)) for name in ("front", "back")]
damper = jm.forces.TorsionSpring("damper", "front", stiffness=0.0, damping=DAMPING)
model = jm.Model(
    "barrier", 2, bodies=[boom], joints=hinges, forces=[damper], gravity=(0.0, -GRAVITY)
)
system = model.system()

angles, rates = np.meshgrid(np.linspace(-np.pi, np.pi, SIDE), np.linspace(-16.0, 16.0, SIDE))
angle, rate = angles.ravel(), rates.ravel()
q = np.stack([LENGTH / 2 * np.sin(angle), -LENGTH / 2 * np.cos(angle), angle], axis=1)
v = rate[:, None] * np.stack([-q[:, 1], q[:, 0], np.ones_like(angle)], axis=1)

begun = time.perf_counter()
motions = jm.simulate_many(system, q, v, END, rtol=1e-6, atol=1e-8, monitor=False)
seconds = time.perf_counter() - begun
turns = np.rint(np.asarray(motions.q)[:, -1, 2] / (2 * np.pi)).astype(int)
steps = np.asarray(motions.statistics.accepted)
print(f"{motions}\nin {seconds:.1f} s with compiling, each in {steps.min()} to {steps.max()} steps")
left = np.abs(np.asarray(motions.v)[:, -1, 2]).max()
print(f"up to {np.abs(turns).max()} turns; the fastest still moves at {left:.2f} rad/s")
print(motions.run(0).reactions())

figure, axes = plt.subplots(figsize=(7.0, 5.4), layout="constrained")
most = int(np.abs(turns).max())
levels = np.arange(-most - 0.5, most + 1.0)
shown = axes.contourf(
    np.degrees(angles), rates, turns.reshape(SIDE, SIDE), levels=levels, cmap="gray"
)
figure.colorbar(shown, ax=axes, ticks=np.arange(-most, most + 1), label="turns until it hangs")
whole = np.linspace(-np.pi, np.pi, 200)
lever = MASS * GRAVITY * LENGTH / 2
speed = np.sqrt(2 * lever * (1 + np.cos(whole)) / (INERTIA + MASS * LENGTH**2 / 4))
for sign in (1.0, -1.0):
    axes.plot(np.degrees(whole), sign * speed, "w", linewidth=4.0)
    axes.plot(np.degrees(whole), sign * speed, "k", linestyle="dashed")
axes.set_xlabel("angle at the start (degrees from hanging)")
axes.set_ylabel("rate at the start (rad/s)")
axes.set_title(f"{SIDE * SIDE:,} motions of {END:g} s")
figure.savefig("39_many_starts.png", dpi=130)
