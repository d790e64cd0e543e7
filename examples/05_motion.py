"""Example 5: motion through singular configurations.

Four bars on five pins move as one: a chain of four-bar windows with its exact law of motion. In
space every window adds three redundant rows. Whenever all bars lie in one line the chain passes a
singular configuration, where a second branch of motions meets this one; the run stays on its
branch and reports each passage. The picture compares the first bar's angle with the exact law, and
shows that closure stays at the level of rounding.
"""

import jax
import matplotlib.pyplot as plt
import numpy as np
from scipy.integrate import solve_ivp

import jaxmbs as jm


jax.config.update("jax_enable_x64", True)

windows, end = 4, 5.0
system = jm.mechanisms.four_bar_chain(windows).system()
trajectory = jm.simulate(system, system.reference_q, system.initial_v, end, every=0.02)
print(trajectory)

# Angle from the vertical: (N + 1) bars turn about their ends and carry N bars on a circle.
inertia, weight = (windows + 1) / 3 + windows, (windows + 1) / 2 + windows
times = np.asarray(trajectory.times)
exact = solve_ivp(
    lambda t, y: (y[1], 9.81 * weight / inertia * np.sin(y[0])),
    (0.0, end),
    (0.0, 1.0),
    method="DOP853",
    t_eval=times,
    rtol=1e-12,
    atol=1e-12,
).y[0]
# Angles of bodies are anticlockwise and count from the start.
angle = -np.asarray(trajectory.q[:, 2] - trajectory.q[0, 2])
error = np.abs(angle - exact)
print(f"largest error of the angle: {error.max():.1e} rad")

figure, (above, below) = plt.subplots(2, 1, figsize=(7.0, 5.5), sharex=True, layout="constrained")
above.plot(times, np.degrees(exact), color="0.7", linewidth=4, label="exact")
above.plot(times, np.degrees(angle), "k-", linewidth=1, label="simulated")
passages = np.asarray(trajectory.passages)
for k, passage in enumerate(passages[np.isfinite(passages)]):
    label = "singular configuration" if k == 0 else None
    above.axvline(passage, color="#b3261e", linestyle=":", label=label)
above.set_ylabel("angle of the first bar (deg)")
above.legend(fontsize=9, framealpha=1.0)
floor = 1e-18  # zero has no place on a logarithmic axis
below.semilogy(times, np.maximum(error, floor), "k-", label="angle against the exact law (rad)")
below.semilogy(
    times,
    np.maximum(trajectory.position_error, floor),
    color="#2a6f97",
    linestyle="--",
    label="closure of the joints (m)",
)
below.set_xlabel("time (s)")
below.set_ylabel("error")
below.legend(fontsize=9)
for axes in (above, below):
    axes.grid(alpha=0.3)
figure.savefig("05_motion.png", dpi=130)
