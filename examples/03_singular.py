"""Example 3: permanent redundancy, or a singular configuration?

The parallelogram has one redundant row everywhere. Where all its links lie in parallel planes, at
theta = +-90 deg, it loses one more: there no reaction is unique. Comparing the rank with that of
nearby assembled configurations tells the two apart. The picture shows the smallest pivot that
counts, over the angle, and how it vanishes at the singular configurations.
"""

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np

import jaxmbs as jm


jax.config.update("jax_enable_x64", True)

for degrees in (0.0, 90.0):
    system = jm.mechanisms.parallelogram(np.radians(degrees)).system()
    near = jm.singularity(system, system.reference_q, key=jax.random.key(0))
    word = "singular" if bool(near.singular) else "not singular"
    print(f"{degrees:5.1f} deg: rank {int(near.rank)}, nearby {int(near.generic_rank)}: {word}")

beside = np.array([0.1, 0.5, 2.0, 5.0, 10.0, 20.0, 30.0])  # of the singular ones
right = np.concatenate([90.0 - beside[::-1], [90.0], 90.0 + beside])
angles = np.radians(np.concatenate([-right[::-1], np.linspace(-45.0, 45.0, 7), right]))
systems = [jm.mechanisms.parallelogram(angle).system() for angle in angles]
stacked = jax.tree.map(lambda *x: jnp.stack(x), *systems)
pivots = jax.vmap(lambda s: jm.analyze(s, s.reference_q, criterion=jm.criteria.SVD()).pivots)(
    stacked
)

figure, axes = plt.subplots(figsize=(6.5, 3.5), layout="constrained")
axes.semilogy(np.degrees(angles), np.maximum(pivots[:, 34], 1e-17), "k-", label="35th")
axes.semilogy(np.degrees(angles), np.maximum(pivots[:, 35], 1e-17), "k:", label="36th")
axes.set_xlabel("theta (deg)")
axes.set_ylabel("singular value of the scaled C (1)")
axes.set_xticks(range(-120, 121, 30))
axes.legend(title="of 36", loc="center")
axes.grid(alpha=0.3)
figure.savefig("03_singular.png", dpi=130)
