"""Beams between nodes in the plane, made of elements that are written here."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from jaxmbs import generalized, planar


class Beam(eqx.Module):
    """An Euler-Bernoulli beam of length l (m), mass per length m (kg/m), bending stiffness EI
    (N m^2) and axial stiffness EA (N) that turns with the line between its nodes (x, y, angle):
    matrices of the linear beam in the axes of that line."""

    length: Float[Array, ""]
    mass: Float[Array, ""]
    bending: Float[Array, ""]
    axial: Float[Array, ""]

    def _line(self, q):
        (x, y, _), (u, w, _) = q
        return u - x, w - y

    def mass_matrix(self, q, t):
        del t
        dx, dy = self._line(q)
        size = jnp.hypot(dx, dy)
        c, s = dx / size, dy / size
        turn = jnp.array([[c, s, 0.0], [-s, c, 0.0], [0.0, 0.0, 1.0]])
        both = jnp.block([[turn, jnp.zeros((3, 3))], [jnp.zeros((3, 3)), turn]])
        return both.T @ self.local_mass() @ both

    def local_mass(self):
        scale = jnp.stack([1.0, self.length, 1.0, self.length])
        numbers = [[156, 22, 54, -13], [22, 4, 13, -3], [54, 13, 156, -22], [-13, -3, -22, 4]]
        bending = np.array(numbers) * jnp.outer(scale, scale)
        across, along = np.array([1, 2, 4, 5]), np.array([0, 3])
        matrix = jnp.zeros((6, 6)).at[across[:, None], across].set(bending / 420)
        axial = jnp.array([[1 / 3, 1 / 6], [1 / 6, 1 / 3]])
        return self.mass * self.length * matrix.at[along[:, None], along].set(axial)

    def energy(self, q):
        dx, dy = self._line(q)
        stretch = jnp.hypot(dx, dy) - self.length
        angle = jnp.arctan2(dy, dx)
        first, second = q[0][2] - angle, q[1][2] - angle
        bend = 2 * self.bending / self.length * (first**2 + first * second + second**2)
        return 0.5 * self.axial / self.length * stretch**2 + bend

    def first_moment(self, q):
        # Exact but for the bow of the line, whose mean is l (first - second) / 12 across it.
        (x, y, first), (u, w, second) = q
        across = jnp.array([-(w - y), u - x]) * (first - second) / 12
        return self.mass * self.length * (jnp.array([x + u, y + w]) / 2 + across)

    def element(self, name, bodies):
        return generalized.Element(
            name,
            bodies,
            mass_matrix=self.mass_matrix,
            energy=self.energy,
            first_moment=self.first_moment,
        )


def end(q):
    return generalized.PlanarFrame(q[:2], q[2])


def node(name, at):
    """A node without mass of its own."""
    return generalized.Body(
        name,
        ["x", "y", "angle"],
        frames={"end": end},
        start=[*at, 0.0],
        lengths=["x", "y"],
    )


def part_of(count, length=1.0, mass=0.7, bending=2.0, axial=500.0):
    """One of so many equal parts of a beam."""
    return Beam(*(jnp.asarray(x) for x in (length / count, mass, bending, axial)))


def beam_of(count, length=1.0, mass=0.7, bending=2.0, axial=500.0):
    """So many equal elements in a row along x, from the origin: nodes "0" to "n", elements."""
    part = part_of(count, length, mass, bending, axial)
    nodes = [node(str(k), (k * length / count, 0.0)) for k in range(count + 1)]
    elements = [part.element(f"e{k}", (str(k), str(k + 1))) for k in range(count)]
    return nodes, elements


def clamped(name, frame, at):
    return planar.Fixed(name, ("ground", frame), at)
