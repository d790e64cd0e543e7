"""The generalized-alpha scheme of Arnold & Bruels (2007, eqs. 3-5), written down once more for a
rod on a pin in the plane: NumPy, dense, a full Newton's method with differences for its matrix."""

import numpy as np


class PinnedRod:
    """q = (x, y, angle) of its centre, which is `length` from the pin in the origin."""

    def __init__(self, mass, inertia, length, g):
        self.mass = np.diag([mass, mass, inertia])
        self.force = np.array([0.0, -mass * g, 0.0])
        self.length = length

    def closure(self, q):
        """The point of the rod that is pinned."""
        return q[:2] + self.length * np.array([-np.sin(q[2]), np.cos(q[2])])

    def matrix(self, q):
        c, s = np.cos(q[2]), np.sin(q[2])
        return np.array([[1.0, 0.0, -self.length * c], [0.0, 1.0, -self.length * s]])

    def acceleration(self, q, v):
        """At a state on the constraints, and the multipliers."""
        c, s = np.cos(q[2]), np.sin(q[2])
        gamma = -self.length * v[2] ** 2 * np.array([s, -c])
        rows = self.matrix(q)
        left = np.block([[self.mass, rows.T], [rows, np.zeros((2, 2))]])
        found = np.linalg.solve(left, np.concatenate([self.force, gamma]))
        return found[:3], found[3:]

    def on_constraints(self, q, v):
        """The velocity next to v, in the mass metric, that the pin allows."""
        rows, inverse = self.matrix(q), np.linalg.inv(self.mass)
        across = inverse @ rows.T
        return v - across @ np.linalg.solve(rows @ across, rows @ v)


def coefficients(rho):
    """alpha_m, alpha_f, beta and gamma of Chung & Hulbert (1993)."""
    alpha_m, alpha_f = (2 * rho - 1) / (rho + 1), rho / (rho + 1)
    return alpha_m, alpha_f, (1 - alpha_m + alpha_f) ** 2 / 4, 0.5 - alpha_m + alpha_f


def motion(rod, q, v, h, steps, rho):
    """q and v at the end of each step; velocities as the scheme has them."""
    alpha_m, alpha_f, beta, gamma = coefficients(rho)
    acceleration, multipliers = rod.acceleration(q, v)
    auxiliary, found = acceleration, []

    def end(x):
        new = ((1 - alpha_f) * x[:3] + alpha_f * acceleration - alpha_m * auxiliary) / (1 - alpha_m)
        place = q + h * v + h**2 * ((0.5 - beta) * auxiliary + beta * new)
        return place, v + h * ((1 - gamma) * auxiliary + gamma * new), new

    def residual(x):
        place, _, _ = end(x)
        force = rod.mass @ x[:3] + rod.matrix(place).T @ x[3:] - rod.force
        return np.concatenate([force, rod.closure(place) / h**2])

    for _ in range(steps):
        x = np.concatenate([acceleration, multipliers])
        for _ in range(10):
            slopes = [(residual(x + d) - residual(x - d)) / 2e-4 for d in 1e-4 * np.eye(5)]
            x = x - np.linalg.solve(np.stack(slopes, axis=1), residual(x))
        q, v, auxiliary = end(x)
        acceleration, multipliers = x[:3], x[3:]
        found.append((q, v))
    return found


def amplification(rho, frequency):
    """Of x'' = -w^2 x in a step of length 1: from (x, x', a) to the next (ibid., eq. 12)."""
    alpha_m, alpha_f, beta, gamma = coefficients(rho)
    square = frequency**2
    # Unknowns x1, v1, a1: x1 = x + v + (1/2 - beta) a + beta a1, v1 = v + (1 - gamma) a + gamma a1,
    # (1 - alpha_m) a1 + alpha_m a = -w^2 ((1 - alpha_f) x1 + alpha_f x).
    after = np.array([[1, 0, -beta], [0, 1, -gamma], [square * (1 - alpha_f), 0, 1 - alpha_m]])
    before = np.array([[1, 1, 0.5 - beta], [0, 1, 1 - gamma], [-square * alpha_f, 0, -alpha_m]])
    return np.linalg.solve(after, before)
