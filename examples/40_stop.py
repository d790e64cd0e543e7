"""Example 40: a cart at a buffer, and a door that bounces.

A cart runs into a buffer, a stop at the end of its rail. The coefficient of restitution is exact at
the speed of the impact, whatever mass and stiffness are: the area that force and depth enclose is
the energy that the buffer takes. A door falls shut on hinges that lean by ten degrees, bounces off
its frame again and again; a run with `StopAtLimit` tells when it meets the frame first.

    python examples/40_stop.py
"""

import jax
import matplotlib.pyplot as plt
import numpy as np

import jaxmbs as jm
from jaxmbs import forces, planar, spatial
from jaxmbs.runs import stop_contacts, StopAtLimit


jax.config.update("jax_enable_x64", True)

RESTITUTIONS = {0.9: "-", 0.6: "--", 0.3: ":"}
SPEED, MASS = 2.0, 500.0


def cart(restitution: float) -> jm.Model:
    """A cart of half a tonne, half a metre before a buffer."""
    body = planar.Body("cart", mass=MASS, inertia=100.0, position=(0.0, 0.0), velocity=(SPEED, 0.0))
    rail = planar.Translational("rail", ("ground", "cart"), (0.0, 0.0), axis=(1.0, 0.0))
    buffer = forces.JointStop(
        "buffer",
        "rail",
        "translation",
        upper=0.5,
        stiffness=2e5,
        exponent=1.5,
        restitution=restitution,
        impact_speed=SPEED,
    )
    return jm.Model("cart", 2, bodies=[body], joints=[rail], forces=[buffer])


WIDTH, OPEN, LEAN = 0.8, np.radians(60.0), np.radians(10.0)


def door(restitution: float) -> jm.Model:
    """A door, opened by 60 degrees, whose hinge leans so that it falls shut."""
    toward = np.array([np.cos(OPEN), np.sin(OPEN), 0.0])
    turn = [np.cos(OPEN / 2), 0.0, 0.0, np.sin(OPEN / 2)]
    leaf = spatial.Body(
        "leaf",
        mass=20.0,
        inertia=(6.7, 7.8, 1.1),
        position=0.5 * WIDTH * toward,
        orientation=turn,
    )
    hinge = spatial.Revolute("hinge", ("ground", "leaf"), (0.0, 0.0, 0.0), (0.0, 0.0, 1.0))
    # The angle counts from the open door.
    frame = forces.JointStop(
        "frame",
        "hinge",
        lower=-OPEN,
        stiffness=2e4,
        restitution=restitution,
        impact_speed=1.5,
    )
    down = 9.81 * np.array([np.sin(LEAN), 0.0, -np.cos(LEAN)])
    return jm.Model("door", 3, bodies=[leaf], joints=[hinge], forces=[frame], gravity=down)


figure, (loop, angle) = plt.subplots(1, 2, figsize=(9.0, 3.8), layout="constrained")

for restitution, line in RESTITUTIONS.items():
    system = cart(restitution).system()
    run = jm.simulate(system, system.reference_q, system.initial_v, 0.8, every=5e-4)
    found = stop_contacts(run)
    if restitution == 0.6:
        print(run)
        print(found)
    lost = 0.5 * MASS * SPEED**2 * (1 - restitution**2)
    print(
        f"restitution {float(-run.v[-1, 0]) / SPEED:.6f}, energy taken "
        f"{float(found.dissipated_energy[0]):.2f} J of {lost:.2f} J"
    )
    depth, force = np.asarray(found.states.depths)[:, 0, 1], -np.asarray(found.states.force)[:, 0]
    touching = depth > 0
    loop.plot(
        1e3 * depth[touching],
        1e-3 * force[touching],
        f"k{line}",
        label=f"restitution {restitution:g}",
    )
loop.set_xlabel("depth of the buffer (mm)")
loop.set_ylabel("force (kN)")
loop.set_title("cart at a buffer")

for restitution, line in RESTITUTIONS.items():
    system = door(restitution).system()
    run = jm.simulate(system, system.reference_q, system.initial_v, 6.0, every=0.01)
    opened = np.degrees(
        np.asarray(jax.vmap(system.stop_states, (0, 0, None))(run.q, run.v, 0.0).value)
    )
    angle.plot(
        run.times, np.degrees(OPEN) + opened[:, 0], f"k{line}", label=f"restitution {restitution:g}"
    )

system = door(0.3).system()
first = jm.simulate(system, system.reference_q, system.initial_v, 6.0, events=[StopAtLimit()])
print(first.message)
angle.axhline(0.0, color="0.6", linewidth=0.8)
angle.set_ylim(-5.0, 82.0)
angle.set_xlabel("time (s)")
angle.set_ylabel("opening of the door (deg)")
angle.set_title("door that falls shut")
for axes in (loop, angle):
    axes.grid(alpha=0.3)
    axes.legend()
figure.savefig("40_stop.png", dpi=130)
