"""Example 25: a motion that is wholly prescribed, in polar coordinates.

The first example of the review of the Udwadia-Kalaba equation (Zhao et al. 2018, section 8.1, Figs.
2 to 5): a particle under gravity has to follow r = exp(0.1 theta) with theta = 30 - t. The motion
is known beforehand; what the equation finds is the force. Given as positions the constraints are
projected after each step and hold to rounding. Given as the equation itself works with them,
A dv/dt = b, they drift by the error of the steps, as in the source's Fig. 5.
"""

import jax
import matplotlib.pyplot as plt
import numpy as np

import jaxmbs as jm


jax.config.update("jax_enable_x64", True)


def errors(motion):
    """epsilon_1 and epsilon_2 (eqs. 58 and 59)."""
    (r, theta), (dr, dtheta), t = motion.q.T, motion.v.T, motion.times
    grown = np.exp(0.1 * theta)
    first = np.hypot(r - grown, theta + t - 30)
    return first, np.hypot(dr - 0.1 * grown * dtheta, dtheta + 1)


motions = {}
for name, flat in (("projected", False), ("A dv/dt = b", True)):
    system = jm.mechanisms.spiral(acceleration_level=flat).system()
    q, v = system.reference_q, system.initial_v
    motions[name] = jm.simulate(system, q, v, 30.0, every=0.05, monitor=False)

motion = motions["projected"]
times, (r, theta) = np.asarray(motion.times), np.asarray(motion.q).T
reactions = motion.reactions()
force = -np.asarray(reactions.generalized("path") + reactions.generalized("drive"))
for name, found in motions.items():
    first, second = (float(np.max(x)) for x in errors(found))
    print(f"{name}: errors up to {first:.1e} (position) and {second:.1e} (velocity)")
print(f"constraint force at the start: {force[0, 0]:.3f} N along r, {force[0, 1]:.3f} N m on theta")
print(f"with M = diag(m, m), as printed, the second is {force[0, 1] / r[0] ** 2:.5f}")

figure, panels = plt.subplots(2, 2, figsize=(10.0, 8.0), layout="constrained")
(relation, histories), (path, error) = panels
relation.plot(theta, r, "k-")
relation.plot(theta[0], r[0], "ko", label="start")
relation.set_xlabel("theta (rad)")
relation.set_ylabel("r (m)")
relation.set_title("r over theta (Fig. 2)", fontsize=10)
histories.plot(times, r, "k-", label="r (m)")
histories.plot(times, theta, color="0.5", linestyle="dashed", label="theta (rad)")
histories.set_xlabel("time (s)")
histories.set_ylabel("r (m), theta (rad)")
histories.set_title("histories (Fig. 3)", fontsize=10)
path.plot(r * np.cos(theta), r * np.sin(theta), "k-")
path.plot(r[0] * np.cos(theta[0]), r[0] * np.sin(theta[0]), "ko", label="start, G")
path.set_xlabel("x (m)")
path.set_ylabel("y (m)")
path.axis("equal")
path.set_title("path (Fig. 4)", fontsize=10)
for (name, found), style in zip(motions.items(), ("none", "solid"), strict=True):
    for k, values in enumerate(errors(found)):
        # What is zero has no place on a logarithmic axis.
        seen = np.where(values > 0, values, np.nan)
        look = {"color": ("k", "0.55")[k], "linestyle": style, "label": f"epsilon {k + 1}, {name}"}
        error.plot(times, seen, marker="." if style == "none" else "", markersize=3, **look)
error.set_yscale("log")
error.set_ylim(1e-17, 1e-3)
error.set_xlabel("time (s)")
error.set_ylabel("error (m and rad; m/s and rad/s)")
error.set_title("errors (Fig. 5)", fontsize=10)
for axes in panels.flat:
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8, handlelength=3.5)
error.legend(fontsize=8, handlelength=3.5, ncols=2, loc="upper center")
figure.savefig("25_spiral.png", dpi=130)
