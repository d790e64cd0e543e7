"""Example 20: a beam of elements on three supports.

A rigid beam on three supports has one support too many: its weight alone does not say what each of
them carries. Made of two elastic elements between three nodes, whose mass is that of the elements,
the same beam decides it: 3/8, 10/8 and 3/8 of the weight of a span, as the three-moment equation
says, and what changes if the middle support stands too low.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
from jaxtyping import Array

import jaxmbs as jm
from jaxmbs import generalized, planar
from jaxmbs.plot import draw_curve


jax.config.update("jax_enable_x64", True)

span, mass, bending, axial = 2.0, 12.0, 4.0e4, 8.0e7  # m, kg/m, N m^2, N
weight = mass * span * 9.81  # N, of one span


class BeamElement(eqx.Module):
    """A beam of Euler and Bernoulli that turns with the line between its nodes (x, y, angle)."""

    mass: Array
    bending: Array
    axial: Array

    def mass_matrix(self, q, t):
        """Consistent: the kinetic energy of the cubic between the nodes."""
        dx, dy = q[1][0] - q[0][0], q[1][1] - q[0][1]
        c, s = jnp.stack([dx, dy]) / jnp.hypot(dx, dy)
        turn = jnp.array([[c, s, 0.0], [-s, c, 0.0], [0.0, 0.0, span]])
        along = np.array([[140, 0, 0, 70, 0, 0], [70, 0, 0, 140, 0, 0]])
        across = np.array(
            [[156, 22, 54, -13], [22, 4, 13, -3], [54, 13, 156, -22], [-13, -3, -22, 4]]
        )
        both = np.zeros((6, 6))
        both[[0, 3]], both[np.ix_([1, 2, 4, 5], [1, 2, 4, 5])] = along, across
        turns = jax.scipy.linalg.block_diag(turn, turn)
        return self.mass * span / 420 * turns.T @ both @ turns

    def energy(self, q):
        """Of bending and stretching (J)."""
        dx, dy = q[1][0] - q[0][0], q[1][1] - q[0][1]
        line, stretch = jnp.arctan2(dy, dx), jnp.hypot(dx, dy) - span
        first, second = q[0][2] - line, q[1][2] - line
        bent = 2 * self.bending / span * (first**2 + first * second + second**2)
        return bent + self.axial / (2 * span) * stretch**2

    def first_moment(self, q):
        """Of the mass: that of the cubic lies beside the middle of the line (kg m)."""
        (x, y, first), (u, w, second) = q
        beside = jnp.stack([y - w, u - x]) * (first - second) / 12
        return self.mass * span * (jnp.stack([x + u, y + w]) / 2 + beside)


def end(q):
    """The frame of a node. (One function for all: another one would be compiled anew.)"""
    return generalized.PlanarFrame(q[:2], q[2])


def supports(bodies, low):
    """The middle one stands lower by so much (m)."""
    points = ((span, -low), (span, 0.0))
    return [
        planar.Revolute("left", ("ground", bodies[0]), (0.0, 0.0)),
        planar.PointOnLine("middle", ("ground", bodies[1]), points, axis=(1.0, 0.0)),
        planar.PointOnLine("right", ("ground", bodies[2]), (2 * span, 0.0), axis=(1.0, 0.0)),
    ]


def elastic(low):
    """The beam of two elements; the middle support is too low by so much (m)."""
    nodes = [
        generalized.Body(
            f"node {k}",
            ("x", "y", "angle"),
            frames={"end": end},
            start=(k * span, 0.0, 0.0),
            lengths=("x", "y"),
        )
        for k in range(3)
    ]
    part = BeamElement(*map(jnp.asarray, (mass, bending, axial)))
    elements = [
        generalized.Element(
            f"span {k + 1}",
            (f"node {k}", f"node {k + 1}"),
            mass_matrix=part.mass_matrix,
            energy=part.energy,
            first_moment=part.first_moment,
        )
        for k in range(2)
    ]
    held = supports([f"node {k}.end" for k in range(3)], low)
    return jm.MultibodySystem(nodes, held, elements=elements, gravity=(0.0, -9.81))


inertia = mass * (2 * span) ** 3 / 12
body = planar.Body("beam", mass=2 * span * mass, inertia=inertia, position=(span, 0.0))
rigid = jm.MultibodySystem([body], supports(["beam"] * 3, 0.0), gravity=(0.0, -9.81))
print("rigid:", jm.analyze(rigid, rigid.reference_q), sep="\n")
system = elastic(0.0)
report = jm.analyze(system, system.reference_q)
print("of elements:", report, sep="\n")

names, lowered = ("left", "middle", "right"), np.linspace(0.0, 0.012, 7)  # m
forces = []
for low in lowered:
    system = elastic(low)
    start = jm.assemble(system, system.reference_q).q
    found = jm.equilibrium(system, start).reactions()
    forces.append([found.wrench(name).force[1] for name in names])
shares = np.array(forces) / weight
print("shares of the weight of a span, support in line:", shares[0].round(6))

figure, axes = plt.subplots(figsize=(7.0, 4.2), layout="constrained")
for place, name in enumerate(names):
    unique = np.full(lowered.shape, bool(report.unique(name)))
    draw_curve(axes, 1000 * lowered, shares[:, place], name, unique=unique, place=place)
# Three-moment equation with a settlement of the middle support.
settled = 3 * bending * lowered / span**3 / weight
axes.plot(1000 * lowered, 3 / 8 + settled, "ko", fillstyle="none", label="three-moment equation")
axes.plot(1000 * lowered, 10 / 8 - 2 * settled, "ko", fillstyle="none")
axes.set_xlabel("middle support too low by (mm)")
axes.set_ylabel("force / weight of a span")
axes.grid(alpha=0.3)
axes.legend()
figure.savefig("20_beam_elements.png", dpi=130)
