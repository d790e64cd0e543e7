"""Example 49: a band brake, and a capstan that holds.

A rope that slips on a drum has tensions in the ratio exp(mu phi), phi the angle of its arc (Euler,
Eytelwein). Left: a band from an anchor over a drum to a weight W brakes the drum, with the torque
r W (exp(mu pi) - 1) where it turns towards the weight, and r W (1 - exp(-mu pi)) where it turns
away. Right: a hand of 10 N holds a load over half a turn, or lets it go; `presliding` lets the rope
stick to the post.

    python examples/49_capstan.py
"""

import jax
import matplotlib.pyplot as plt
import numpy as np

import jaxmbs as jm
from jaxmbs import forces, planar


jax.config.update("jax_enable_x64", True)

RADIUS, INERTIA, MU, GRAVITY = 0.1, 0.5, 0.3, 9.81


def weight(name, x, mass):
    """A weight below the post, in a vertical guide."""
    place = (x, -1.0)
    body = planar.Body(name, mass=mass, inertia=0.1, position=place)
    return body, planar.Translational(f"guide of {name}", ("ground", name), place, (0.0, 1.0))


def over(bodies, circle):
    """A rope from the left over a circle to the right."""
    return planar.Rope(
        "rope",
        (bodies[0], circle, bodies[1]),
        points=((-RADIUS, -1.0), (0.0, 0.0), (RADIUS, -1.0)),
        radii=(0.0, RADIUS, 0.0),
        senses=(0, -1, 0),
    )


def brake(spin, mass=4.0):
    body, guide = weight("weight", RADIUS, mass)
    drum = planar.Body(
        "drum", mass=20.0, inertia=INERTIA, position=(0.0, 0.0), angular_velocity=spin
    )
    axle = planar.Revolute("axle", ("ground", "drum"), (0.0, 0.0))
    rub = forces.CoulombFriction("rub", "rope", coefficient=MU, velocity=1e-3)
    joints = [axle, guide, over(("ground", "weight"), "drum")]
    return jm.MultibodySystem([drum, body], joints, forces=[rub], gravity=(0.0, -GRAVITY))


def capstan(load, hand=10.0):
    one, guide = weight("hand", -RADIUS, hand / GRAVITY)
    other, second = weight("load", RADIUS, load / GRAVITY)
    rub = forces.CoulombFriction(
        "rub", "rope", coefficient=MU, presliding=1e-4, relaxation_time=1e-2
    )
    joints = [guide, second, over(("hand", "load"), "ground")]
    return jm.MultibodySystem([one, other], joints, forces=[rub], gravity=(0.0, -GRAVITY))


figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.4), layout="constrained")
ratio, pull = np.exp(MU * np.pi), 4.0 * GRAVITY
for spin, name, style in ((-20.0, "towards the weight", "o"), (20.0, "away from the weight", "s")):
    system = brake(spin)
    run = jm.simulate(system, system.reference_q, system.initial_v, end=1.5, every=0.1)
    torque = RADIUS * pull * ((ratio - 1) if spin < 0 else (1 - 1 / ratio))
    closed = np.maximum(abs(spin) - torque / INERTIA * np.asarray(run.times), 0.0)
    speed = np.abs(np.asarray(run.v[:, 2]))
    left.plot(run.times, closed, "0.5")
    left.plot(run.times, speed, "k" + style, ms=5, mfc="none", label=name)
    print(f"{name}: within {np.max(np.abs(speed - closed)):.1e} rad/s of the closed form")
left.set_xlabel("time (s)")
left.set_ylabel("speed of the drum (rad/s)")
left.set_title("band brake; lines: closed form", fontsize=10)
left.legend(title="the drum turns", fontsize=9, loc="lower left")

for factor, style in ((0.95, "-"), (1.0, ":"), (1.05, "--")):
    load = 10.0 * np.exp(factor * MU * np.pi)
    system = capstan(load)
    run = jm.simulate(system, system.reference_q, system.initial_v, end=1.5, every=0.01)
    sunk = 1e3 * np.abs(np.asarray(run.q[:, 4]) + 1.0)
    right.semilogy(run.times[1:], sunk[1:], "k" + style, label=f"{load:.1f} N")
    print(f"a load of {load:.4g} N has sunk by {sunk[-1]:.4g} mm after 1.5 s")
right.set_xlabel("time (s)")
right.set_ylabel("the load has sunk by (mm)")
right.set_title(f"a hand of 10 N, exp(μπ) = {ratio:.3f}", fontsize=10)
right.legend(title="load", fontsize=9, loc="upper left")
for axes in (left, right):
    axes.grid(alpha=0.3)
figure.savefig("49_capstan.png", dpi=130)
