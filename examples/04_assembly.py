"""Example 4: assembly, and its derivative.

The mobile robot is assembled at fifty positions of its steering rack at once, and the steering
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


angles_and_slopes = jax.jit(jax.vmap(jax.value_and_grad(steering_angle)))
racks, step = jnp.linspace(-0.9, 1.0, 50), 1e-5
angles, slopes = angles_and_slopes(racks)
ahead, behind = (angles_and_slopes(racks + h)[0] for h in (step, -step))
differences = (ahead - behind) / (2 * step)
print(f"largest difference: {float(jnp.max(jnp.abs(slopes - differences))):.1e} rad per a")

figure, (above, below) = plt.subplots(2, 1, figsize=(6.5, 5.0), sharex=True, layout="constrained")
above.plot(racks, np.degrees(angles), "k-")
above.set_ylabel("steering angle (deg)")
below.plot(racks, slopes, "k-", label="through the assembly")
below.plot(racks[::5], differences[::5], "kx", label="central differences")
below.set_ylabel("slope (rad per a)")
below.set_xlabel("rack displacement (a = 50 mm)")
below.legend()
for axes in (above, below):
    axes.grid(alpha=0.3)
figure.savefig("04_assembly.png", dpi=130)
