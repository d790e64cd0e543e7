"""Example 38: a beam that is spun up faster than it vibrates.

A slender beam on a driven hinge reaches 6 rad/s within 15 s (Kane, Ryan & Banerjee 1987; with the
numbers of Simo & Vu-Quoc 1986), where at rest its first frequency is 3.8 rad/s. Centrifugal force
stiffens it: the end falls behind by 0.574 m and comes back. `reduce` computes how the beam becomes
shorter where it bends, by which forces along it act on its bending. Without that the run says from
when on its numbers are none.

    python examples/38_spin_up.py
"""

from typing import Any

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np

import jaxmbs as jm
from jaxmbs import finite_elements as fem, motions, spatial


jax.config.update("jax_enable_x64", True)

LENGTH, MASS, BENDING, AXIAL, ROTARY = 10.0, 1.2, 1.4e4, 2.8e7, 6e-4
ELEMENTS, RATE, RISE = 10, 6.0, 15.0


def beam() -> fem.FiniteElements:
    """Two-node elements with six degrees of freedom at each node: cubic bending, linear stretch
    and twist."""
    h = LENGTH / ELEMENTS
    unit = np.diag([1.0, h, 1.0, h])
    bend_mass = [[156, 22, 54, -13], [22, 4, 13, -3], [54, 13, 156, -22], [-13, -3, -22, 4]]
    bend = [[12, 6, -12, 6], [6, 4, -6, 2], [-12, -6, 12, -6], [6, 2, -6, 4]]
    line_mass, line = h / 6 * np.array([[2, 1], [1, 2]]), np.array([[1, -1], [-1, 1]]) / h
    # Across y, where the slope is the rotation about z, and across z, where it is minus that
    # about y.
    flip = np.diag([1.0, -1.0, 1.0, -1.0])
    blocks: list[tuple[list[int], Any, Any]] = [
        ([0, 6], MASS * line_mass, AXIAL * line),
        ([3, 9], 2 * ROTARY * line_mass, BENDING * line),
        (
            [1, 5, 7, 11],
            MASS * h / 420 * unit @ bend_mass @ unit,
            BENDING / h**3 * unit @ bend @ unit,
        ),
    ]
    _, across_mass, across = blocks[2]
    blocks.append(([2, 4, 8, 10], flip @ across_mass @ flip, flip @ across @ flip))
    size = 6 * (ELEMENTS + 1)
    mass, stiffness = np.zeros((size, size)), np.zeros((size, size))
    for k in range(ELEMENTS):
        for rows, own_mass, own_stiffness in blocks:
            places = np.ix_(6 * k + np.array(rows), 6 * k + np.array(rows))
            mass[places] += own_mass
            stiffness[places] += own_stiffness
    points = np.zeros((ELEMENTS + 1, 3))
    points[:, 0] = np.linspace(0.0, LENGTH, ELEMENTS + 1)
    names = ["A", *[""] * (ELEMENTS - 1), "B"]
    return fem.FiniteElements(mass, stiffness, points, names=names)


ends = [fem.Attachment(name, nodes=fem.NodesNamed([name])) for name in "AB"]
reduced = fem.reduce(beam(), ends, modes=4)

# omega = RATE / RISE (t - RISE / (2 pi) sin(2 pi t / RISE)); a table of its integral.
grid = np.linspace(0.0, RISE, 301)
part = RISE / (2 * np.pi)
angles = RATE / RISE * (grid**2 / 2 + part**2 * (np.cos(grid / part) - 1))
times = np.linspace(0.0, RISE, 151)


def spin_up(stiffening: bool) -> Any:
    """The motion, and by how much the end falls behind (m)."""
    body = spatial.ModalBody(
        "beam", reduced, position=(LENGTH / 2, 0.0, 0.0), stiffening=stiffening
    )
    hinge = spatial.Revolute("hinge", ("ground", "beam.A"), (0.0, 0.0, 0.0), axis=(0.0, 0.0, 1.0))
    motor = jm.Driver("motor", "hinge", "rotation", motions.Table(times=grid, values=angles))
    system = jm.MultibodySystem([body], [hinge], [motor])
    motion = jm.simulate(
        system,
        system.reference_q,
        system.initial_v,
        RISE,
        times=times,
        solver=jm.GeneralizedAlpha(step=1e-2),
        consistent=True,
        monitor=False,
    )
    site = body.sites()["beam.B"]
    marker: Any = site.marker(site.reference)
    place = jax.vmap(lambda q: marker.frame(q).origin)(motion.q)
    turned = np.interp(times, grid, angles)
    behind = jnp.cos(turned) * place[:, 1] - jnp.sin(turned) * place[:, 0]
    return motion, np.asarray(behind)


_, with_forces = spin_up(True)
linear, without = spin_up(False)
print(f"least deflection {np.min(with_forces):.3f} m, at 12.5 s {with_forces[125]:.3f} m")
print(f"without geometric stiffening {np.min(without):.3f} m: {linear.message}")

figure, axes = plt.subplots(figsize=(7.0, 4.0), layout="constrained")
axes.plot(times, with_forces, "k-", linewidth=1.5, label="with displacements of second order")
axes.plot(times, without, "k:", linewidth=1.2, label="linear displacements alone")
axes.plot([6.8, 12.5], [-0.574, -0.113], "ko", mfc="none", label="published")
axes.set_xlim(0.0, RISE)
axes.set_xlabel("time (s)")
axes.set_ylabel("deflection of the end (m)")
axes.set_title("A beam spun up to 6 rad/s, first frequency 3.8 rad/s", fontsize=11)
axes.grid(alpha=0.3)
axes.legend(fontsize=9, loc="upper center")
figure.savefig("38_spin_up.png", dpi=130)
