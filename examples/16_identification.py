"""Example 16: masses and a stiffness from a noisy measurement.

A cart on a spring is pushed by a known force and carries a pendulum. Its position and the
pendulum's angle are measured for three seconds, with noise. Which two masses and which stiffness
explain the measurement best? Gradients go through the whole simulation; how much the motion
changes with each number says how well it is known.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np

import jaxmbs as jm
from jaxmbs import design, planar


jax.config.update("jax_enable_x64", True)

cart = planar.Body("cart", mass=3.0, inertia=0.1, position=(0.0, 0.0))
bob = planar.Body("bob", mass=1.5, inertia=0.01, position=(0.3, -0.4))
joints = [
    planar.Translational("rail", ("ground", "cart"), (0.0, 0.0), (1.0, 0.0)),
    planar.Revolute("pin", ("cart", "bob"), (0.0, 0.0)),
]
spring = jm.forces.SpringDamper(
    "spring", ("ground", "cart"), points=[(-1.0, 0.0), (0.0, 0.0)], stiffness=60.0
)
push = jm.forces.Applied("push", "cart", force=(15.0, 0.0))
model = jm.Model(
    "cart", 2, bodies=[cart, bob], joints=joints, forces=[spring, push], gravity=(0.0, -9.81)
)
true = {"bodies.cart.mass": 2.0, "bodies.bob.mass": 1.0, "forces.spring.stiffness": 90.0}
bounds = {
    "bodies.cart.mass": (1.0, 5.0),
    "bodies.bob.mass": (0.4, 3.0),
    "forces.spring.stiffness": (40.0, 150.0),
}
run = design.Motion(3.0, count=61, rtol=1e-7, atol=1e-9, monitor=False)
study = design.Study(model, list(bounds), run=run)
noise = np.array([0.01, 0.02])  # m, rad


def seen(response):
    """Position of the cart and angle of the pendulum (n, 2), in units of the noise."""
    return jnp.stack([response.q[:, 0], response.q[:, 5]], axis=1) / noise[None]


def measured(x):
    return seen(design.responded(study, x))


class Misfit(eqx.Module):
    """Half the sum of squares of what is left."""

    data: jax.Array

    def __call__(self, response):
        return jnp.sum((seen(response) - self.data) ** 2) / 2


exact = measured(study.values(true))
data = exact + np.random.default_rng(0).normal(size=exact.shape)
found = design.minimise(Misfit(data), study, bounds, optimiser=design.SLSQP(steps=60))
print(found)

x = study.values(found.design)
steps = 1e-4 * np.diag(np.asarray(x))
slopes = np.stack([(measured(x + h) - measured(x - h)).ravel() / (2 * h.sum()) for h in steps])
deviation = np.sqrt(np.diag(np.linalg.inv(slopes @ slopes.T)))
for name, own in zip(study.names, deviation, strict=True):
    off = (found.design[name] - true[name]) / own
    print(f"{name}: {found.design[name]:.4f} +- {own:.4f}, true {true[name]} ({off:+.1f} sigma)")

figure, panels = plt.subplots(2, 1, figsize=(7.5, 5.5), sharex=True, layout="constrained")
times = np.linspace(0.0, 3.0, 61)
before, after = measured(study.design), measured(x)
words = ("position of the cart (m)", "angle of the pendulum (rad)")
for k, (axes, word) in enumerate(zip(panels, words, strict=True)):
    axes.plot(times, noise[k] * data[:, k], "o", color="0.55", ms=3.5, label="measured")
    axes.plot(times, noise[k] * before[:, k], "k--", lw=1.0, label="first guess")
    axes.plot(times, noise[k] * after[:, k], "k-", lw=1.6, label="found")
    axes.set_ylabel(word)
    axes.grid(alpha=0.3)
panels[0].legend(fontsize=8, ncols=3, loc="upper center", bbox_to_anchor=(0.5, 1.18), frameon=False)
panels[1].set_xlabel("time (s)")
figure.savefig("16_identification.png", dpi=130)
