"""Example 31: a ring that rubs.

A bead slides on a horizontal ring. What the ring does to it is not only across its way: it rubs,
by a friction of mu times the force across. That is work of the constraint, given as a force of the
state; the bead slows down by v = v0 / (1 + mu v0 t / R), and the energy that it loses is the work
of the constraint force.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
from jaxtyping import Array

import jaxmbs as jm
from jaxmbs import generalized


jax.config.update("jax_enable_x64", True)

mass, radius, speed = 0.2, 0.5, 4.0  # kg, m, m/s


class Rubbing(eqx.Module):
    """-mu N along the velocity, N = m v^2 / R."""

    mu: Array

    def __call__(self, q, v, t):
        return -self.mu * mass / radius * jnp.linalg.norm(v) * v


system = jm.GeneralizedSystem(
    ("x", "y"),
    mass_matrix=lambda q: mass * jnp.eye(2),
    force=lambda q, v, t: jnp.zeros(2),
    constraints={
        "ring": jm.generalized.PositionConstraint(
            lambda q, t: (q @ q - radius**2) / (2 * radius), quantity=generalized.LENGTH
        )
    },
    lengths=("x", "y"),
)
q, v, times = jnp.array([radius, 0.0]), jnp.array([0.0, speed]), np.linspace(0.0, 2.0, 201)

figure, (left, right) = plt.subplots(1, 2, figsize=(9.0, 4.0), layout="constrained")
for mu, line in ((0.0, ":"), (0.1, "--"), (0.3, "-")):
    formulation = jm.formulations.NonIdeal(jm.formulations.MinimumNorm(), Rubbing(jnp.asarray(mu)))
    motion = jm.simulate(system, q, v, times[-1], times=times, formulation=formulation)
    speeds = np.linalg.norm(motion.v, axis=1)
    exact = speed / (1 + mu * speed * times / radius)
    print(f"mu = {mu}: speed off by at most {np.max(np.abs(speeds - exact)):.1e} m/s")
    left.plot(times, speeds, "k" + line, label=f"mu = {mu}")
    left.plot(times[::25], exact[::25], "ko", fillstyle="none")

# Of the last one: what the constraint does, in its two parts.
equations = jax.vmap(system.equations)(motion.q, motion.v, motion.times)
forces = jax.vmap(formulation.constraint_force)(equations)
print(f"at first, ideal part {forces.ideal[0]} N, the part that works {forces.non_ideal[0]} N")
power = np.sum(np.asarray(forces.total) * np.asarray(motion.v), axis=1)
work = np.concatenate([[0.0], np.cumsum(0.5 * (power[1:] + power[:-1]) * np.diff(times))])
lost = mass / 2 * (speeds**2 - speed**2)
print(f"work of the ring {work[-1]:.4f} J by trapezoids, change of energy {lost[-1]:.4f} J")

left.plot([], [], "ko", fillstyle="none", label="closed form")
left.set_xlabel("time (s)")
left.set_ylabel("speed (m/s)")
left.set_ylim(0.0, 4.5)
left.legend()
right.plot(times, np.linalg.norm(forces.ideal, axis=1), "k-", label="ideal part: across")
right.plot(times, np.linalg.norm(forces.non_ideal, axis=1), "k--", label="part that works: along")
right.set_xlabel("time (s)")
right.set_ylabel("force of the ring, mu = 0.3 (N)")
right.legend()
figure.savefig("31_non_ideal_constraints.png", dpi=130)
