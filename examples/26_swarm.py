"""Example 26: five robots that swarm, by the printed law and by a servo law.

The second example of the review of the Udwadia-Kalaba equation (Zhao et al. 2018, section 8.2,
Figs. 7 and 8): each robot's velocity is prescribed by where the others are, and they start with
half of it. The constraint force as it is printed satisfies the derivative of that constraint, so
that the error beta stays what it was; the source's figure shows it decay. A servo law,
d(beta)/dt = -beta/P, does that. (The source's initial state is lost; this one is chosen.)
"""

import jax
import matplotlib.pyplot as plt
import numpy as np

import jaxmbs as jm


jax.config.update("jax_enable_x64", True)

end, constant = 4.0, 0.5  # s
motions = {}
for name, given in (("as printed", None), (f"servo, P = {constant:g} s", constant)):
    system = jm.mechanisms.swarm(given).system()
    q, v = system.reference_q, system.initial_v
    motions[name] = jm.simulate(system, q, v, end, every=0.02, monitor=False)

pairs = np.triu_indices(5, 1)
styles = dict(zip(motions, ("dashed", "solid"), strict=True))
figure, panels = plt.subplots(2, 2, figsize=(10.0, 9.0), layout="constrained")
for axes, (name, motion) in zip(panels[0], motions.items(), strict=True):
    places = np.asarray(motion.q).reshape(-1, 5, 2)
    for k in range(5):
        axes.plot(*places[:, k].T, color=f"{0.12 * k:.2f}", linewidth=1.5)
        axes.plot(*places[0, k], "o", color=f"{0.12 * k:.2f}")
        axes.plot(*places[-1, k], "s", color=f"{0.12 * k:.2f}", markerfacecolor="w")
        # Names stand behind the start, seen from the middle.
        outwards = places[0, k] * (1 + 0.2 / np.linalg.norm(places[0, k]))
        axes.text(*outwards, f"{k + 1}", ha="center", va="center", fontsize=9)
    axes.plot([], [], "ko", label="start")
    axes.plot([], [], "ks", markerfacecolor="w", label=f"after {end:g} s")
    axes.set_xlabel("x (m)")
    axes.set_ylabel("y (m)")
    axes.set_xlim(-2.6, 2.6)
    axes.set_ylim(-2.3, 2.3)
    axes.set_aspect("equal", adjustable="datalim")
    axes.set_title(f"{name} (Fig. 7)", fontsize=10)
size, apart = panels[1]
for name, motion in motions.items():
    times = np.asarray(motion.times)
    error = jax.vmap(motion.system.servo_error)(motion.q, motion.v, motion.times)
    norms = np.linalg.norm(np.asarray(error), axis=1)
    size.plot(times, norms, "k", linestyle=styles[name], label=name)
    places = np.asarray(motion.q).reshape(-1, 5, 2)
    distances = np.linalg.norm(places[:, pairs[0]] - places[:, pairs[1]], axis=-1)
    apart.plot(times, distances.min(axis=1), "k", linestyle=styles[name], label=name)
    forces = np.asarray(jm.controls(motion).values).reshape(-1, 5, 2)
    largest = np.linalg.norm(forces, axis=-1).max()
    print(
        f"{name}: |beta| from {norms[0]:.6f} to {norms[-1]:.6f} m/s; nearest robots "
        f"{distances.min():.3f} m apart; largest control {largest:.2f} N"
    )
size.set_yscale("log")
size.set_ylabel("|beta| (m/s)")
size.set_title("error (Fig. 8)", fontsize=10)
apart.set_ylim(bottom=0.0)
apart.set_ylabel("least distance of two robots (m)")
apart.set_title("they never meet", fontsize=10)
for axes in panels[1]:
    axes.set_xlabel("time (s)")
for axes in panels.flat:
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8, handlelength=3.5)
for axes in panels[0]:
    axes.legend(fontsize=8, loc="lower left")
figure.savefig("26_swarm.png", dpi=130)
