"""Reduced bodies made of point masses, whose integrals are sums, and beams by quadrature."""

from typing import Any

import jax.numpy as jnp
import numpy as np

from jaxmbs import spatial


GRAVITY = np.array([0.4, -0.3, -9.81])


def turned(q, vectors):
    """Vectors (n, 3) along body axes, in the world: by the quaternion's products in NumPy."""
    w, u = q[3], q[4:7]
    return vectors + 2 * np.cross(u, w * vectors + np.cross(u, vectors))


class Cloud:
    """Point masses (n,) at points (n, 3), displaced by shapes (n, 3, modes); nodes by name, each a
    point, its shapes (3, modes) and its turns (3, modes). `twist`: moment of inertia about x of
    what lies on a line (kg m^2), beside that of the points. `second`: displacements of second order
    of the points (n, 3, modes, modes), and by name of the nodes, each with turns."""

    def __init__(
        self, masses, points, shapes, stiffness, nodes, *, damping=0.0, twist=0.0, second=None
    ):
        self.masses, self.points, self.shapes, self.second = masses, points, shapes, second
        self.stiffness, self.damping, self.nodes = stiffness, damping * stiffness, nodes
        self.twist = np.diag([twist, 0.0, 0.0])

    def reduced(self, scale=1.0):
        """The sums over the points, of modes that are `scale` times as large."""
        m, p, phi = self.masses, self.points, scale * self.shapes
        second = np.einsum("n,na,nb->ab", m, p, p)
        points, shapes, turns = (np.array(x) for x in zip(*self.nodes.values(), strict=True))
        return spatial.ReducedBody(
            mass=jnp.asarray(m.sum()),
            first_moment=jnp.asarray(m @ p),
            inertia=jnp.asarray(np.trace(second) * np.eye(3) - second + self.twist),
            mode_first_moment=jnp.asarray(np.einsum("n,nak->ak", m, phi)),
            mode_second_moment=jnp.asarray(np.einsum("n,na,nbk->abk", m, p, phi)),
            mode_products=jnp.asarray(np.einsum("n,nai,nbj->abij", m, phi, phi)),
            stiffness=jnp.asarray(scale**2 * self.stiffness),
            damping=jnp.asarray(scale**2 * self.damping),
            points=jnp.asarray(points),
            translations=jnp.asarray(scale * shapes),
            rotations=jnp.asarray(scale * turns),
            nodes=tuple(self.nodes),
            second_order=self._second_order(scale),
        )

    def _second_order(self, scale):
        if self.second is None:
            return None
        m, p, gamma = self.masses, self.points, scale**2 * self.second[0]
        nodes = [np.array(x) for x in zip(*(self.second[1][k] for k in self.nodes), strict=True)]
        return spatial.SecondOrder(
            first_moment=jnp.asarray(np.einsum("n,naij->aij", m, gamma)),
            second_moment=jnp.asarray(np.einsum("n,na,nbij->abij", m, p, gamma)),
            translations=jnp.asarray(scale**2 * nodes[0]),
            rotations=jnp.asarray(scale**2 * nodes[1]),
        )

    def in_units(self, unit):
        """The same body where `unit` of its lengths are one metre (displacements by modes too)."""
        nodes = {name: (unit * p, phi, psi / unit) for name, (p, phi, psi) in self.nodes.items()}
        same = Cloud(self.masses, unit * self.points, self.shapes, self.stiffness, nodes)
        same.twist = unit**2 * self.twist
        return same

    def scale(self):
        """Root mean square displacement of the mass by each mode."""
        squares = np.einsum("n,nak->k", self.masses, self.shapes**2)
        return np.sqrt(squares / self.masses.sum())

    def places(self, q):
        """Of the points in the world (n, 3); the modal coordinates of q are measured by `scale`."""
        return q[:3] + turned(q, self.points + self.shapes @ (q[7:] / self.scale()))

    def moves(self, q):
        """By how much each velocity moves each point (n, 3, nv), along the retraction."""
        along = np.eye(q.size - 1)
        return np.stack([first_difference(self.places, q, e) for e in along], axis=2)

    def accelerations(self, q, v):
        """Of each point (n, 3), with v constant."""
        weights = {1: 3 / 2, 2: -3 / 20, 3: 1 / 90}
        ends = {k: self.places(retracted(q, k * STEP * v)) for k in range(-3, 4)}
        bend = sum(w * (ends[k] - 2 * ends[0] + ends[-k]) for k, w in weights.items())
        return bend / STEP**2


# Of central differences of sixth order: truncation and rounding are below 1e-11, of second ones
# below 1e-9.
STEP = 4e-3


def first_difference(function, q, v):
    """The change of a function of q (NumPy) along v."""
    weights = {1: 3 / 4, 2: -3 / 20, 3: 1 / 60}
    pairs = [
        (w, retracted(q, k * STEP * v), retracted(q, -k * STEP * v)) for k, w in weights.items()
    ]
    return sum(w * (function(ahead) - function(behind)) for w, ahead, behind in pairs) / STEP


def retracted(q, step):
    """q moved by a finite step: place and modes add up, the body turns by the step about its own
    axes."""
    angle = np.linalg.norm(step[3:6])
    w, u = np.cos(angle / 2), 0.5 * np.sinc(angle / (2 * np.pi)) * step[3:6]
    scalar, vector = q[3], q[4:7]
    turn = [scalar * w - vector @ u, *(scalar * u + w * vector + np.cross(vector, u))]
    return np.concatenate([q[:3] + step[:3], turn, q[7:] + step[6:]])


def random_cloud(seed=3, modes=4, count=15, **keys):
    """Anything: points, shapes and turns drawn, two nodes."""
    rng = np.random.default_rng(seed)
    square = rng.normal(size=(modes, modes))
    nodes = {
        name: (
            rng.uniform(-1, 1, 3),
            0.4 * rng.normal(size=(3, modes)),
            0.6 * rng.normal(size=(3, modes)),
        )
        for name in "AB"
    }
    return Cloud(
        rng.uniform(0.1, 0.5, count),
        rng.uniform(-1, 1, (count, 3)),
        0.4 * rng.normal(size=(count, 3, modes)),
        40.0 * (square @ square.T + np.eye(modes)),
        nodes,
        **keys,
    )


def bent_cloud():
    """The random cloud with displacements of second order, drawn too."""
    rng, cloud = np.random.default_rng(8), random_cloud()

    def drawn(*shape):
        one = 0.2 * rng.normal(size=(*shape, 3, 4, 4))
        return one + one.swapaxes(-1, -2)

    cloud.second = drawn(15), {name: (drawn(), drawn()) for name in cloud.nodes}
    return cloud


# A beam along x from the frame's origin: length (m), mass per length (kg/m), EI (N m^2) against
# bending along y and along z, moment of inertia about its own line (kg m^2).
LENGTH, LINE, BENDING, TWIST = 1.5, 0.8, (20.0, 45.0), 2e-3


def beam(shape, slope, curvature, modes, *, damping=0.0):
    """A beam that bends along y and z by so many shapes each: functions of x (n,) to (n, modes).
    Nodes "A" and "B" at its ends. Integrals by Gauss-Legendre quadrature, exact for polynomials of
    degree 79."""
    x, weights = np.polynomial.legendre.leggauss(40)
    x, weights = LENGTH * (1 + x) / 2, LENGTH * weights / 2
    points = np.stack([x, 0 * x, 0 * x], axis=1)
    bent = curvature(x).T @ (weights[:, None] * curvature(x))
    stiffness = np.zeros((2 * modes, 2 * modes))
    for k, bending in enumerate(BENDING):
        own = slice(k * modes, (k + 1) * modes)
        stiffness[own, own] = bending * bent
    nodes = {
        name: (np.array([end, 0.0, 0.0]), _along(shape, end), _turns(slope, end))
        for name, end in (("A", 0.0), ("B", LENGTH))
    }
    shapes = np.stack([_along(shape, place) for place in x])
    masses = LINE * weights
    return Cloud(masses, points, shapes, stiffness, nodes, damping=damping, twist=TWIST)


def _along(shape, place):
    """Displacements (3, modes) at x = place: along y, then along z."""
    own = shape(np.array([place]))[0]
    none = 0 * own
    return np.array([[*none, *none], [*own, *none], [*none, *own]])


def _turns(slope, place):
    """Turns (3, modes) of the section there: about z by y', about -y by z'."""
    own = slope(np.array([place]))[0]
    none = 0 * own
    return np.array([[*none, *none], [*none, *-own], [*own, *none]])


def with_second_order(beam, slope, modes):
    """The same beam, clamped at x = 0, which becomes shorter where it bends: along x minus the
    integral of the product of slopes, by quadrature that is exact for polynomials."""

    def shortening(end):
        x, weights = np.polynomial.legendre.leggauss(40)
        x, weights = end * (1 + x) / 2, end * weights / 2
        one = slope(x).T @ (weights[:, None] * slope(x))
        both = np.zeros((3, 2 * modes, 2 * modes))
        both[0, :modes, :modes] = both[0, modes:, modes:] = -one
        return both

    points = np.stack([shortening(x) for x in beam.points[:, 0]])
    ends = {name: shortening(point[0]) for name, (point, *_) in beam.nodes.items()}
    beam.second = points, {name: (x, 0 * x) for name, x in ends.items()}
    return beam


def cantilever(modes=3, *, shortening=False, **keys):
    """Shapes x^2, x^3, ... , clamped at "A", of which the first three hold the deflection by a
    force at the end and by its own weight."""
    n = np.arange(2, 2 + modes)

    def shape(x):
        return (x[:, None] / LENGTH) ** n

    def slope(x):
        return n / LENGTH * (x[:, None] / LENGTH) ** (n - 1)

    def curvature(x):
        return n * (n - 1) / LENGTH**2 * (x[:, None] / LENGTH) ** (n - 2)

    made = beam(shape, slope, curvature, modes, **keys)
    return with_second_order(made, slope, modes) if shortening else made


# beta l of a free beam, roots of cosh x cos x = 1 (Blevins 2016, table 4.2).
FREE_ROOTS = np.array([4.730040744862704, 7.853204624095838])


def free_beam():
    """The first two vibrations of a free Euler-Bernoulli beam along y, and along z."""
    ratio = (np.cosh(FREE_ROOTS) - np.cos(FREE_ROOTS)) / (np.sinh(FREE_ROOTS) - np.sin(FREE_ROOTS))
    beta = FREE_ROOTS / LENGTH

    def functions(x):
        y = x[:, None] * beta
        return np.cosh(y), np.cos(y), np.sinh(y), np.sin(y)

    def shape(x):
        ch, c, sh, s = functions(x)
        return ch + c - ratio * (sh + s)

    def slope(x):
        ch, c, sh, s = functions(x)
        return beta * (sh - s - ratio * (ch + c))

    def curvature(x):
        ch, c, sh, s = functions(x)
        return beta**2 * (ch - c - ratio * (sh - s))

    return beam(shape, slope, curvature, 2)


ORIGIN = (0.0, 0.0, 0.0)


def body_of(cloud, name="link", scale=1.0, **keys: Any):
    keys = {"position": ORIGIN} | keys
    return spatial.ModalBody(name, cloud.reduced(scale), **keys)
