"""Example 34: between which values lies a reaction that is not unique?

The mobile robot steers to the right and straight again. How its wheels share the force that turns
it is not determined by rigid bodies. But a tyre carries only so much: with at most 6 N
across each of the wheels 3 and 4 and 40 N across the steered ones, each reaction has a least and a
greatest value at every moment. With tyres that are worse there are moments in which no reactions
carry the loads: the robot would slide, whatever its stiffness is.
"""

import jax
import matplotlib.pyplot as plt
import numpy as np

import jaxmbs as jm


jax.config.update("jax_enable_x64", True)

system = jm.mechanisms.get("mobile-robot").system()
motion = jm.simulate(system, system.reference_q, system.initial_v, 2.5, every=0.02)
good = ["|W1| <= 40", "|W2| <= 40", "|W3| <= 6", "|W4| <= 6"]
found = jm.ranges_along(motion, bounds=good, combinations=["W3 + W4"])
print(found)
worse = ["|W1| <= 6", "|W2| <= 6", "|W3| <= 3", "|W4| <= 3"]
slippery = jm.ranges_along(motion, bounds=worse)
print(slippery.refusal())

figure, panels = plt.subplots(3, 1, figsize=(8.0, 9.0), sharex=True, layout="constrained")
time = np.asarray(motion.times)
stuck = ~np.asarray(slippery.feasible)
for panel, name in zip(panels, ("W1", "W2", "A.y"), strict=True):
    own, bad = found.of(name), slippery.of(name)
    across = {"transform": panel.get_xaxis_transform(), "linewidth": 0, "zorder": 0}
    panel.fill_between(
        time,
        0,
        1,
        where=stuck,
        facecolor="none",
        hatch="xx",
        edgecolor="0.7",
        label="no answer",
        **across,
    )
    panel.fill_between(time, own.low, own.high, color="0.85", label="range, good tyres")
    panel.fill_between(time, bad.low, bad.high, color="0.5", label="range, worse tyres")
    panel.plot(time, own.low, "k-", linewidth=1.5, label="ends (unique: the value)")
    panel.plot(time, own.high, "k-", linewidth=1.5)
    unique = bool(np.all(np.asarray(own.unique)))
    panel.set_ylabel(f"{name} (N), {'unique' if unique else 'not unique'}")
    panel.grid(alpha=0.3)
panels[0].set_title("a robot on tyres that carry so much and no more")
panels[-1].set_xlabel("time (s)")
handles, labels = panels[0].get_legend_handles_labels()
labels[0] = "worse tyres: no reactions carry the loads"
figure.legend(handles, labels, loc="outside lower center", ncols=2)
figure.savefig("34_ranges.png", dpi=130)
