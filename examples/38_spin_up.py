"""Example 38: a beam that is spun up faster than it vibrates.

A slender beam on a driven hinge reaches 6 rad/s within 15 s (Kane, Ryan & Banerjee 1987; with the
numbers of Simo & Vu-Quoc 1986), where at rest its first frequency is 3.8 rad/s. Centrifugal force
stiffens it: the end falls behind by 0.574 m and comes back. `reduce` computes how the beam becomes
shorter where it bends, by which forces along it act on its bending. A second beam, without that, is
spun up beside it, and the run says from when on its numbers are none.

    python examples/38_spin_up.py
"""

import math
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

# omega = RATE / RISE (t - RISE / (2 pi) sin(2 pi t / RISE)): powers of t of its integral.
part = RISE / (2 * np.pi)
powers = np.zeros(31)
for k in range(4, len(powers), 2):
    powers[k] = (-1) ** (k // 2) * RATE / RISE * part ** (2 - k) / math.factorial(k)
rotation = motions.Polynomial(coefficients=powers)

bodies, hinges, motors = [], [], []
for name, stiffening, height in (("beam", True, 0.0), ("linear", False, 1.0)):
    at = (0.0, 0.0, height)
    bodies.append(
        spatial.ModalBody(name, reduced, position=(LENGTH / 2, 0.0, height), stiffening=stiffening)
    )
    hinges.append(
        spatial.Revolute(f"hinge of {name}", ("ground", f"{name}.A"), at, axis=(0.0, 0.0, 1.0))
    )
    motors.append(jm.Driver(f"motor of {name}", f"hinge of {name}", "rotation", rotation))
system = jm.MultibodySystem(bodies, hinges, motors)

times = np.linspace(0.0, RISE, 151)
motion = jm.simulate(
    system, system.reference_q, system.initial_v, RISE, times=times, rtol=1e-5, monitor=False
)
turned = np.asarray(jax.vmap(rotation)(jnp.asarray(times)))


def behind(body: spatial.ModalBody, q: Any) -> np.ndarray:
    """By how much the end falls behind (m)."""
    site = body.sites()[f"{body.name}.B"]
    marker: Any = site.marker(site.reference)
    place = np.asarray(jax.vmap(lambda q: marker.frame(q).origin)(q))
    return np.cos(turned) * place[:, 1] - np.sin(turned) * place[:, 0]


# Both have as many coordinates.
halves = jnp.split(motion.q, 2, axis=1)
with_forces, without = (behind(body, q) for body, q in zip(bodies, halves, strict=True))
print(f"least deflection {np.min(with_forces):.3f} m, at 12.5 s {with_forces[125]:.3f} m")
print(f"without geometric stiffening {np.min(without):.3f} m: {motion.message}")

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
