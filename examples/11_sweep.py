"""Example 11: verdicts over a whole workspace.

The mobile robot is assembled and judged at 256 positions of its steering rack and angles
of its trolley, spread evenly by a Sobol sequence. Wherever it can be assembled at all, the same
reactions are unique: its redundancy is permanent. Where the rods are too short the case says so,
and the sweep goes on. The results stand in a Zarr store; in a folder that stays, a sweep that was
interrupted goes on from there when it is asked for again.
"""

import tempfile

import jax
import matplotlib.pyplot as plt
import numpy as np

import jaxmbs as jm


jax.config.update("jax_enable_x64", True)

a = 0.05  # m
model = jm.mechanisms.mobile_robot()
cases = jm.Cases.sobol(
    {"steering": (-1.7 * a, 1.8 * a), "joints.A.rotation": np.radians([-170.0, 170.0])},
    256,
    seed=0,
)
with tempfile.TemporaryDirectory() as folder:
    found = jm.sweep(jm.sweeps.Certification(), model, cases, store=f"{folder}/robot.zarr")
    print(found)
    data = found.dataset().load()

good = data["result"].values == 0
unique = data["reaction_unique"].values[good] == 1
print("the same verdicts everywhere:", bool((unique == unique[0]).all()))
for name, share in zip(data.attrs["constraints"], unique.mean(axis=0), strict=True):
    print(f"{name}: unique in {100 * share:.0f} % of the cases that assemble")

rack, angle = data["drivers.steering"].values / a, np.degrees(data["joints.A.rotation"].values)
steered = np.degrees(data["configuration"].values[:, 5] - data["configuration"].values[:, 2])
figure, (above, below) = plt.subplots(2, 1, figsize=(6.5, 6.0), sharex=True, layout="constrained")
above.plot(
    rack[good], angle[good], ".", color="0.6", ms=5, label="assembles: the same verdicts everywhere"
)
above.plot(rack[~good], angle[~good], "kx", ms=4, label="does not assemble")
above.set_ylabel("trolley angle (deg)")
above.legend(loc="lower center", framealpha=1.0)
below.plot(rack[good], steered[good], "k.", ms=3)
for limit, side in ((-1.456, "left"), (1.600, "right")):
    below.axvline(limit, color="0.5", ls="--")
    below.text(limit, 0.0, f" {limit:.3f} a ", ha=side)
below.set_ylabel("front wheel against platform (deg)")
below.set_xlabel("rack displacement (a = 50 mm)")
for axes in (above, below):
    axes.grid(alpha=0.3)
figure.savefig("11_sweep.png", dpi=130)
