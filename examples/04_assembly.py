"""Example 4: assembly, and its derivative.

The mobile robot is assembled at a hundred positions of its steering rack at once, and the steering
angle's sensitivity to the rack follows by differentiating through the assembly, although two of the
robot's constraint rows are redundant. Crosses are central differences.
"""

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np

import jaxmbs as jm


jax.config.update("jax_enable_x64", True)

a = 0.05  # m
system = jm.mechanisms.mobile_robot(jm.motions.Linear(rate=a)).system()


def steering_angle(rack):
    """Front wheel against platform (rad), at a rack displacement in units of a."""
    q = jm.assemble(system, system.reference_q, rack, throw=False).q
    return q[5] - q[2]


racks = jnp.linspace(-0.9, 1.0, 100)
angles = jax.vmap(steering_angle)(racks)
slopes = jax.vmap(jax.grad(steering_angle))(racks)
step = 1e-5
some = racks[::9]
differences = jax.vmap(
    lambda x: (steering_angle(x + step) - steering_angle(x - step)) / (2 * step)
)(some)
print(f"largest difference: {float(jnp.max(jnp.abs(slopes[::9] - differences))):.1e} rad")

figure, (above, below) = plt.subplots(2, 1, figsize=(6.5, 5.0), sharex=True, layout="constrained")
above.plot(racks, np.degrees(angles), "k-")
above.set_ylabel("steering angle (deg)")
below.plot(racks, slopes, "k-", label="through the assembly")
below.plot(some, differences, "kx", label="central differences")
below.set_ylabel("slope (rad per a)")
below.set_xlabel("rack displacement (a = 50 mm)")
below.legend()
for axes in (above, below):
    axes.grid(alpha=0.3)
figure.savefig("04_assembly.png", dpi=130)
