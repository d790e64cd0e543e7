"""Example 7: every way to handle redundant constraints, side by side.

The mobile robot has two redundant rows. While it steers, eight formulations answer for one state,
three of them the same one with other rows dropped. They agree on the accelerations and on every
reaction that is unique, and differ in those that are not. Multipliers lambda + N z, with N a basis
of the left null space of C and z random, satisfy the same equations: they change exactly the
reactions that are not unique.
"""

import jax
import matplotlib.pyplot as plt
import numpy as np

import jaxmbs as jm


jax.config.update("jax_enable_x64", True)

t = 0.8  # s, in the first turn
system = jm.mechanisms.mobile_robot().system()
q, v = jm.consistent_state(system, system.reference_q, system.initial_v, t)
formulations = {
    "minimum norm": jm.formulations.MinimumNorm(),
    "elimination": jm.formulations.Elimination(),
    "without W1, W3": jm.formulations.Elimination(("W1", "W3")),
    "without C.y, W4": jm.formulations.Elimination(("C.y", "W4")),
    "Udwadia-Kalaba": jm.formulations.UdwadiaKalaba(),
    "null space": jm.formulations.NullSpace(),
    "partitioning": jm.formulations.CoordinatePartitioning(),
    "augm. Lagrangian": jm.formulations.AugmentedLagrangian(),
}
comparison = jm.compare(system, q, v, t, list(formulations.values()))
print(comparison)
print("verdicts that the formulations contradict:", comparison.contradictions() or "none")

floor = 1e-18  # zero has no place on a logarithmic axis
figure, (above, below) = plt.subplots(2, 1, figsize=(8.0, 6.5), layout="constrained")
differences = np.maximum(comparison.acceleration_difference, floor)
above.semilogy(list(formulations), differences, "ko", clip_on=False)
above.set_title("accelerations (zero is drawn at the lower edge)", fontsize=10)
above.set_ylabel("difference from the first (1)")
above.tick_params(axis="x", labelsize=7)

names = np.array(comparison.solvability.structure.constraint_names)
unique = np.asarray(comparison.solvability.reaction_unique)
series = (
    ("between formulations", comparison.between_runs.reactions, "black", -0.15),
    ("with lambda + N z", comparison.under_shaking.reactions, "white", 0.15),
)
for verdict, chosen, marker in (("unique", unique, "o"), ("not unique", ~unique, "X")):
    for label, values, face, shift in series:
        below.semilogy(
            np.flatnonzero(chosen) + shift,
            np.maximum(values[chosen], floor),
            linestyle="none",
            marker=marker,
            markersize=8,
            color="black",
            markerfacecolor=face,
            label=f"{verdict}, {label}",
        )
below.set_title("reactions", fontsize=10)
below.set_xticks(range(len(names)), names, fontsize=8)
below.set_xlabel("joint or driver")
below.set_ylabel("change / largest multiplier (1)")
below.legend(loc="center", bbox_to_anchor=(0.5, 0.42), ncols=2, fontsize=8)
for axes in (above, below):
    axes.axhline(1e-6, color="black", linestyle=":")
    axes.set_ylim(floor, 1e2)
    axes.text(0.01, 2e-6, "differs", transform=axes.get_yaxis_transform(), fontsize=8)
    axes.grid(alpha=0.3)
figure.savefig("07_formulations.png", dpi=130)
