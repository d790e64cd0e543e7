"""Example 2: which joints must be released?

A door on two hinges has five redundant rows. Every smallest set of replacements that makes both
reactions unique and keeps the mobility is listed; one of them, a ball joint below and a point on a
line above, is the way precise doors are hung. The picture compares how much of each hinge's
reaction is undetermined before and after.
"""

import jax
import matplotlib.pyplot as plt

import jaxmbs as jm
from jaxmbs import spatial


jax.config.update("jax_enable_x64", True)

model = jm.mechanisms.door()
system = model.system()
report = jm.analyze(system, system.reference_q)
found = jm.releases(system, system.reference_q, report=report)
print(found)

pair = ("ground", "door")
joints = [
    spatial.Spherical("lower", pair, (0.0, 0.0, 0.3)),
    spatial.PointOnLine("upper", pair, (0.0, 0.0, 1.7), (0.0, 0.0, 1.0)),
]
hung = jm.Model("door, well hung", 3, bodies=model.bodies, joints=joints)
repaired = jm.analyze(hung.system(), hung.system().reference_q)
print(repaired)

figure, axes = plt.subplots(figsize=(6.0, 3.5), layout="constrained")
names = ("lower", "upper")
floor = 1e-16  # what is zero shows as a bar of this height
for offset, (label, verdicts, shade) in enumerate(
    (("two hinges", report, "0.35"), ("ball and line", repaired, "0.85"))
):
    heights = [max(float(m), floor) for m in verdicts.reaction_measure]
    places = [k + 0.35 * offset for k in range(2)]
    axes.bar(places, heights, 0.33, label=label, color=shade, edgecolor="black")
axes.axhline(1e-6, color="black", linestyle=":", label="unique below")
axes.set_yscale("log")
axes.set_ylim(0.1 * floor, 1e3)
axes.set_xticks([0.175, 1.175], names)
axes.set_xlabel("joint")
axes.set_ylabel("undetermined part (1)")
axes.legend(ncols=3, fontsize=8)
figure.savefig("02_releases.png", dpi=130)
