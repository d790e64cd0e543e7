"""Example 46: Painleve's paradox: no acceleration, one, or two.

Two sliders of equal mass on parallel guides, one of them rough, are joined by a rod (Painleve and
Klein). Friction depends on the reaction, and the reaction on friction: beyond mu |tan(angle)| = 2
the rigid bodies have no acceleration for a push along the slip, and two for one against it.
`certify` proves that there is one for all loads, or counts them in the given state. Below: a drawer
whose guide of length L carries the couple of a push at a distance d jams at 2 mu d / L = 1.

    python examples/46_painleve.py
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import ListedColormap

import jaxmbs as jm
from jaxmbs import forces, planar


jax.config.update("jax_enable_x64", True)


def two_sliders(angle, mu, push, speed=1.0):
    """Sliders on parallel guides, the first rough, and a rod at this angle (rad) to them."""
    points = jnp.stack([jnp.zeros(2), jnp.stack([jnp.cos(angle), jnp.sin(angle)])])
    bodies = [
        planar.Body(name, mass=1.0, inertia=0.1, position=point, velocity=(speed, 0.0))
        for name, point in zip("ab", points, strict=True)
    ]
    guides = [
        planar.Translational(name.upper(), ("ground", name), at=point, axis=(1.0, 0.0))
        for name, point in zip("ab", points, strict=True)
    ]
    rod = planar.Distance("rod", ("a", "b"), points=points)
    rub = forces.CoulombFriction("rub", "A", coefficient=mu, velocity=1e-3)
    pushing = forces.Applied("push", "b", force=jnp.stack([push, 0.0 * push]))
    return jm.MultibodySystem(bodies, [*guides, rod], forces=[rub, pushing])


@eqx.filter_jit
def numbers(angles, coefficients, push):
    """The number of accelerations (1) of sliders that move along the guides, case by case."""

    def number(case):
        angle, coefficient = case
        system = two_sliders(angle, coefficient, push)
        return jm.certify(system, system.reference_q, system.initial_v).solutions

    return jax.lax.map(number, (angles, coefficients))


angles, coefficients = np.linspace(10.0, 80.0, 141), np.linspace(0.0, 4.0, 161)
grid = [jnp.asarray(x.ravel()) for x in np.meshgrid(np.radians(angles), coefficients)]
along = numbers(grid[0], grid[1], jnp.asarray(1.0))
against = numbers(grid[0], grid[1], jnp.asarray(-1.0))
for push, found in (("along", along), ("against", against)):
    each, times = np.unique(np.asarray(found), return_counts=True)
    told = ", ".join(f"{k} in {n}" for k, n in zip(each, times, strict=True))
    print(f"push {push} the slip: accelerations {told} states")

system = two_sliders(np.radians(60.0), 2.0, jnp.ones(()))
print(jm.certify(system, system.reference_q, system.initial_v))


# The drawer, in full slip and in the creep that the regularisation leaves where it jams.
LENGTH, ARM, MASS, PUSH = 0.2, 0.25, 2.0, 10.0


def drawer(mu):
    body = planar.Body("drawer", mass=MASS, inertia=0.1, position=(0.0, 0.0), velocity=(1.0, 0.0))
    guide = planar.Translational("guide", ("ground", "drawer"), at=(0.0, 0.0), axis=(1.0, 0.0))
    rub = forces.CoulombFriction("rub", "guide", coefficient=mu, velocity=1e-3, length=LENGTH)
    pushing = forces.Applied("push", "drawer", at=(0.0, ARM), force=(PUSH, 0.0))
    return jm.MultibodySystem([body], [guide], forces=[rub, pushing])


@eqx.filter_jit
@eqx.filter_vmap
def sliding(mu):
    """Acceleration (m/s^2) of the drawer while it slides."""
    system = drawer(mu)
    found = jm.runs.solve_with_friction(system, system.reference_q, system.initial_v, 0.0)
    return found.acceleration[0]


mus = np.linspace(0.0, 0.8, 17)
accelerations = sliding(jnp.asarray(mus))

figure, (left, middle, right) = plt.subplots(1, 3, figsize=(12.5, 4.2), layout="constrained")
shades = ListedColormap(["0.35", "0.95", "0.7"])
for axes, found, title in (
    (left, along, "push along the slip"),
    (middle, against, "push against the slip"),
):
    shown = np.asarray(found).reshape(coefficients.size, angles.size)
    axes.pcolormesh(angles, coefficients, shown, cmap=shades, vmin=-0.5, vmax=2.5, rasterized=True)
    axes.plot(angles, 2 / np.tan(np.radians(angles)), color="C3", lw=2, label="2 / tan(angle)")
    axes.set_ylim(coefficients[0], coefficients[-1])
    axes.set_xlabel("angle of the rod to the guides (deg)")
    axes.set_ylabel("coefficient of friction (1)")
    axes.set_title(title, fontsize=10)
    axes.text(24, 1.2, "one acceleration", fontsize=10)
    axes.legend(loc="lower left", fontsize=9)
left.text(58, 3.0, "none", fontsize=10, color="white")
middle.text(60, 3.0, "two", fontsize=10)

closed = PUSH / MASS * (1 - 2 * mus * ARM / LENGTH)
right.plot(mus, closed, color="C3", lw=2, label="P/m (1 - 2 μ d / L)")
right.plot(mus, accelerations, "ko", ms=5, mfc="none", label="computed")
right.axhline(0.0, color="0.5", lw=1)
right.axvline(LENGTH / (2 * ARM), color="0.5", lw=1, ls="--")
right.text(LENGTH / (2 * ARM) + 0.01, 3.6, "jams beyond", fontsize=10)
right.set_xlabel("coefficient of friction (1)")
right.set_ylabel("acceleration of the sliding drawer (m/s²)")
right.set_title("a drawer pushed at a distance d from its guide", fontsize=10)
right.legend(loc="lower left", fontsize=9)
right.grid(alpha=0.3)
figure.savefig("46_painleve.png", dpi=130)
