"""Example 48: the efficiency of a worm, and a load that stays.

The teeth of a worm and its wheel slide along the thread, and rub with the coefficient mu. Driven by
the worm, the efficiency follows from mu and the lead angle; driven by the wheel it becomes negative
below tan(lead) = mu / cos(pressure angle): the worm locks itself. At rest, friction with
`presliding` holds the load of a hoist where it is. The same coefficient with `velocity` is zero at
rest, and the load sinks slowly; with less than what locks, it runs away.

    python examples/48_worm.py
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np

import jaxmbs as jm
from jaxmbs import forces, motions, spatial


jax.config.update("jax_enable_x64", True)

STARTS, TEETH, PRESSURE, DISTANCE, LOAD = 2, 40, np.radians(20.0), 0.1, 3.0


def hoist(mu, lead, load, rate=None, **law):
    """A worm about x under its wheel about y, a torque (N m) on the wheel."""
    bodies = [
        spatial.Body("worm", mass=1.0, inertia=(1e-2, 1e-2, 1e-2), position=(0, 0, 0)),
        spatial.Body("wheel", mass=5.0, inertia=(0.1, 0.1, 0.1), position=(0, 0, DISTANCE)),
    ]
    points, axes = ((0, 0, 0), (0, 0, DISTANCE)), ((1, 0, 0), (0, 1, 0))
    joints = [
        spatial.Revolute("bearing of the worm", ("ground", "worm"), at=points[0], axis=axes[0]),
        spatial.Revolute("bearing of the wheel", ("ground", "wheel"), at=points[1], axis=axes[1]),
        spatial.WormPair(
            "teeth",
            ("worm", "wheel"),
            points=points,
            axes=axes,
            teeth=(STARTS, TEETH),
            lead_angle=lead,
        ),
    ]
    rub = forces.CoulombFriction("rub", "teeth", coefficient=mu, **law)
    pull = forces.Applied("pull", "wheel", torque=jnp.stack([0.0 * load, load, 0.0 * load]))
    drive = []
    if rate is not None:
        drive = [jm.Driver("drive", "bearing of the worm", "rotation", motions.Linear(rate=rate))]
    return jm.MultibodySystem(bodies, joints, drive, forces=[rub, pull])


# In the sense of the worm that lifts.
started = hoist(0.1, 0.2, jnp.asarray(LOAD), 10.0, velocity=1e-6)
running = jm.consistent_state(started, started.reference_q, started.initial_v).v
LIFTING = -np.sign(LOAD * float(running[10]))


@eqx.filter_jit
@eqx.filter_vmap(in_axes=(None, 0, None))
def efficiency(mu, lead, sense):
    """Efficiency of the worm (sense 1), or of the wheel that drives it (-1), from the torque of
    the worm's driver."""
    system = hoist(mu, lead, jnp.asarray(LOAD), 10.0, velocity=1e-6)
    v = sense * LIFTING * running
    found = jm.runs.solve_with_friction(system, system.reference_q, v, 0.0)
    ideal = LOAD * STARTS / TEETH
    torque = jnp.abs(found.multipliers[-1])
    frictionless = hoist(0.0 * mu, lead, jnp.asarray(LOAD), 10.0, velocity=1e-6)
    way = jm.runs.solve_with_friction(frictionless, system.reference_q, v, 0.0).multipliers[-1]
    held = torque * jnp.sign(found.multipliers[-1] * way) / ideal
    return jnp.where(sense > 0, 1 / held, held)


leads = np.linspace(2.0, 60.0, 59)
computed = {
    (mu, sense): np.asarray(efficiency(jnp.asarray(mu), jnp.radians(leads), sense))
    for mu in (0.05, 0.15)
    for sense in (1.0, -1.0)
}


def closed(mu, sense):
    """The textbook's efficiencies."""
    c, t = np.cos(PRESSURE), np.tan(np.radians(leads))
    if sense > 0:
        return (c - mu * t) / (c + mu / t)
    return (c - mu / t) / (c + mu * t)


error = max(np.max(np.abs(found - closed(*key))) for key, found in computed.items())
print(f"efficiencies agree with the closed form within {error:.1e}")

# A load that is put on the wheel at rest.
LEAD = 0.1
LOCKS = np.tan(LEAD) * np.cos(PRESSURE)
STICKING = {"presliding": 1e-5, "relaxation_time": 3e-3}
cases = {
    "1.3 of what locks, sticks": (1.3, STICKING),
    "1.3 of what locks, regularised": (1.3, {"velocity": 1e-2}),
    "0.9 of what locks, sticks": (0.9, STICKING),
}
turned = {}
for name, (factor, law) in cases.items():
    system = hoist(factor * LOCKS, LEAD, jnp.asarray(LOAD), **law)
    run = jm.simulate(system, system.reference_q, system.initial_v, end=2.0, every=0.02)
    # The wheel's quaternion: the half of its angle about y.
    angle = 2 * np.arctan2(np.asarray(run.q[:, 12]), np.asarray(run.q[:, 10]))
    turned[name] = np.asarray(run.times), np.abs(np.unwrap(angle))
    print(f"{name}: the wheel turns by {1e3 * turned[name][1][-1]:.4g} mrad in 2 s")

figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.4), layout="constrained")
for mu, shade in ((0.05, "0.0"), (0.15, "0.55")):
    for sense, style in ((1.0, "-"), (-1.0, "--")):
        by = "worm drives" if sense > 0 else "wheel drives"
        left.plot(leads, closed(mu, sense), style, color=shade, label=f"{by}, μ = {mu}")
        marks = slice(1, None, 6)
        left.plot(leads[marks], computed[mu, sense][marks], "o", color=shade, ms=4, mfc="white")
left.axhline(0.0, color="0.5", lw=1)
left.text(11, -0.12, "below zero: locks itself", fontsize=9)
left.set_ylim(-0.5, 1.0)
left.set_xlabel("lead angle (deg)")
left.set_ylabel("efficiency (1)")
left.set_title("lines: closed form, circles: computed", fontsize=10)
left.legend(loc="lower right", fontsize=9)
for (name, (times, angle)), style in zip(turned.items(), ("-", "--", ":"), strict=True):
    right.semilogy(times[1:], 1e3 * np.maximum(angle[1:], 1e-9), "k" + style, label=name)
right.set_xlabel("time (s)")
right.set_ylabel("angle by which the load turns the wheel (mrad)")
right.set_title("a load on the wheel, worm free", fontsize=10)
right.legend(title="coefficient of friction", fontsize=9, loc="center right")
for axes in (left, right):
    axes.grid(alpha=0.3)
figure.savefig("48_worm.png", dpi=130)
