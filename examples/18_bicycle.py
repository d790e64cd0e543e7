"""Example 18: a bicycle that nobody steers, and the speeds at which it stays upright.

Whipple's bicycle with the benchmark's numbers (Meijaard, Papadopoulos, Ruina & Schwab 2007): four
bodies, three hinges, two wheels that roll without slipping. The straight course is steady along
axes that do not turn with the wheels, so `linearise` gives the eigenvalues of small motions at
every speed. Weave (lean and steer oscillate) dies out above one speed, capsize (a slow fall) grows
above another: between them the bicycle balances itself. The published speeds come out by root
finding on those eigenvalues.
"""

import jax
import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import root_scalar

import jaxmbs as jm


jax.config.update("jax_enable_x64", True)

model = jm.mechanisms.get("whipple-bicycle")
system = model.system()
straight = system.initial_v / system.initial_v[0]  # all velocities at 1 m/s


def eigenvalues(speed):
    """The four that are not zero: places, heading and speed may change for good."""
    values = np.asarray(jm.linearise(system, system.reference_q, speed * straight).eigenvalues)
    return values[np.argsort(-np.abs(values))[:4]]


def weave(speed):
    """Growth of the oscillation (1/s)."""
    values = eigenvalues(speed)
    return float(np.real(values[np.imag(values) > 1e-6][0]))


def capsize(speed):
    """The real eigenvalue of the slow fall (1/s)."""
    values = eigenvalues(speed)
    real = np.real(values[np.abs(np.imag(values)) < 1e-6])
    return float(real[np.argmin(np.abs(real))])


speeds = np.linspace(0.05, 10.0, 49)
found = np.array([eigenvalues(speed) for speed in speeds])
crossings = ((weave, (4.0, 4.6)), (capsize, (5.5, 6.5)))
lower, upper = (root_scalar(f, bracket=b, xtol=1e-13).root for f, b in crossings)
print(f"weave ends at {lower:.12f} m/s, capsize begins at {upper:.12f} m/s")
print("published     4.292382536341                    6.024262015388")

figure, axes = plt.subplots(figsize=(8.0, 5.0), layout="constrained")
axes.axvspan(lower, upper, color="0.88", label="stable: nobody needs to steer")
axes.axhline(0.0, color="0.5", linewidth=0.8)
times = np.repeat(speeds[:, None], 4, axis=1)
real, oscillating = np.abs(np.imag(found)) <= 1e-6, np.imag(found) > 1e-6
axes.plot(times[real], np.real(found)[real], "ko", markersize=3, label="real eigenvalue")
axes.plot(
    times[oscillating], np.real(found)[oscillating], "kx", markersize=5, label="real part of a pair"
)
axes.plot(
    times[oscillating],
    np.imag(found)[oscillating],
    "+",
    color="0.5",
    markersize=5,
    label="imaginary part of a pair (rad/s)",
)
for name, speed, side in (("weave", lower, "right"), ("capsize", upper, "left")):
    axes.plot(speed, 0.0, "ko", markersize=8, markerfacecolor="w")
    shift = -0.15 if side == "right" else 0.15
    axes.text(speed + shift, -8.0, f"{name}\n{speed:.3f} m/s", ha=side, va="center", fontsize=9)
axes.set_xlim(0.0, 10.0)
axes.set_ylim(-10.0, 13.0)
axes.set_xlabel("forward speed (m/s)")
axes.set_ylabel("eigenvalue (1/s)")
axes.set_title("Whipple's bicycle, straight ahead", fontsize=11)
axes.legend(loc="upper left", fontsize=8.5)
figure.savefig("18_bicycle.png", dpi=130)
