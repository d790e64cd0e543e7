"""Motions of `simulate` against exact laws, and how fast they converge to them."""

import itertools

import diffrax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import quad
from scipy.spatial.transform import Rotation
from scipy.special import ellipj

import jaxmbs as jm
from jaxmbs import forces, planar, spatial


G = 9.81
Z = np.array([0.0, 0.0, 1.0])
# One number of saved times, so that each mechanism is one program for all its cases.
SHARES = np.linspace(0.0, 1.0, 13)
# Steps have an error of at most 1e-11 (relative); some hundreds of them add up, and between steps
# motions are interpolated with one order less. Lengths over the size of the mechanism.
TOLERANCE = 2e-10
# Millimetres, metres and kilometres.
each_size = pytest.mark.parametrize("size", [1e-3, 1.0, 1e3])


def run(system, times, size=1.0):
    return jm.simulate(
        system,
        system.reference_q,
        system.initial_v,
        times[-1],
        times=times,
        rtol=1e-11,
        atol=1e-13 * size,
        monitor=False,
    )


def directions(angle):
    """Unit vectors along and across, at these angles."""
    c, s = np.cos(angle), np.sin(angle)
    return np.stack([c, s], axis=-1), np.stack([-s, c], axis=-1)


def assert_close(actual, expected, size=1.0):
    np.testing.assert_allclose(actual, expected, rtol=0, atol=TOLERANCE * size)


# ---------------------------------------------------------------------------------------------
# Knife edges
# ---------------------------------------------------------------------------------------------


def on_an_edge(at, angle, speed, spin, *, ahead, mass, inertia):
    """A body with its knife edge at `at`, and its centre of mass `ahead` of that."""
    along, across = directions(angle)
    body = planar.Body(
        "sledge",
        mass=mass,
        inertia=inertia,
        position=at + ahead * along,
        angle=angle,
        velocity=speed * along + ahead * spin * across,
        angular_velocity=spin,
    )
    return body, planar.KnifeEdge("edge", ("sledge",), at, along)


class Sleigh:
    """Chaplygin's sleigh. With v the speed of the edge along itself, w the spin, a the distance of
    the centre of mass and J = inertia + mass a^2:

        v' = a w^2,    J w' = -mass a v w,    w = W / cosh x,    v = V tanh x,

    x = k (t - turn), V = W sqrt(J / mass), k = a W^2 / V. It runs backwards until `turn`."""

    MASS, SPIN, HEADING = 2.0, 2.0, 0.6

    def __init__(self, ahead, turn, size):
        self.a, self.turn, self.inertia = ahead * size, turn, 0.4 * size**2
        self.start = size * np.array([0.7, -0.4])
        self.J = self.inertia + self.MASS * self.a**2
        self.top_speed = self.SPIN * np.sqrt(self.J / self.MASS)
        self.k = self.a * self.SPIN**2 / self.top_speed

    def rates(self, t):
        """v and w."""
        x = self.k * (t - self.turn)
        return self.top_speed * np.tanh(x), self.SPIN / np.cosh(x)

    def angle(self, t):
        def turned(t):
            return 2 * np.arctan(np.tanh(self.k * (t - self.turn) / 2))

        return self.HEADING + self.SPIN / self.k * (turned(t) - turned(0.0))

    def edge(self, times):
        """Its places, by quadrature of their rates."""

        def rate(t, i):
            return self.rates(t)[0] * directions(self.angle(t))[0][i]

        steps = [
            [quad(rate, t0, t1, args=(i,), epsabs=0, epsrel=1e-12)[0] for i in range(2)]
            for t0, t1 in itertools.pairwise(times)
        ]
        return self.start + np.cumsum([[0.0, 0.0], *steps], axis=0)

    def system(self):
        numbers = {"ahead": self.a, "mass": self.MASS, "inertia": self.inertia}
        body, edge = on_an_edge(self.start, self.HEADING, *self.rates(0.0), **numbers)
        return jm.MultibodySystem([body], [edge], gravity=(0.0, 0.0))


@each_size
@pytest.mark.parametrize(("ahead", "turn"), [(0.3, 0.8), (0.05, 2.5), (1.5, 0.2)])
def test_sleigh(ahead, turn, size):
    law, times = Sleigh(ahead, turn, size), 3.0 * SHARES
    found = run(law.system(), times, size)
    (v, w), angle = law.rates(times), law.angle(times)
    along, across = directions(angle)
    assert_close(found.q[:, :2], law.edge(times) + law.a * along, size)
    assert_close(found.q[:, 2], angle)
    assert_close(found.v[:, :2], v[:, None] * along + law.a * w[:, None] * across, 10 * size)
    assert_close(found.v[:, 2], w, 10)
    # The edge pushes mass and inertia sideways; what it exerts is minus the multiplier.
    side = law.MASS * v * w * law.inertia / law.J
    assert_close(-found.multipliers[:, 0], side, 100 * size)


class Skate:
    """A knife edge at the centre of mass, on an incline: it spins evenly, x = heading + spin t, and
    v' = -g sin x along the edge. So v = c + g cos x / spin, and the place is the integral of
    v (cos x, sin x): it slides down no farther than a cycloid."""

    MASS = 3.0

    def __init__(self, spin, heading, speed, g, size=1.0):
        self.spin, self.heading, self.g, self.size = spin, heading, g * size, size
        self.c = speed * size - self.g * np.cos(heading) / spin

    def place(self, times):
        x = self.heading + self.spin * np.asarray(times)
        c, g = self.c / self.spin, self.g / self.spin**2
        right = c * np.sin(x) + g * (x / 2 + np.sin(2 * x) / 4)
        up = -c * np.cos(x) - g * np.cos(2 * x) / 4
        return np.stack([right, up, x], axis=-1)

    def speed(self, times):
        return self.c + self.g * np.cos(self.heading + self.spin * times) / self.spin

    def velocity(self, times):
        along, _ = directions(self.heading + self.spin * times)
        linear = self.speed(times)[..., None] * along
        return np.concatenate([linear, np.full((*np.shape(times), 1), self.spin)], axis=-1)

    def side(self, times):
        """The force across the edge: m v x' and the weight across."""
        weight = self.g * np.cos(self.heading + self.spin * times)
        return self.MASS * (self.speed(times) * self.spin + weight)

    def parts(self):
        at, speed = self.place(0.0)[:2], self.speed(0.0)
        numbers = {"ahead": 0.0, "mass": self.MASS, "inertia": 0.2 * self.size**2}
        return on_an_edge(at, self.heading, speed, self.spin, **numbers)


@each_size
@pytest.mark.parametrize("spin", [1.3, -6.0])
def test_knife_edge_on_an_incline(spin, size):
    law, times = Skate(spin, 0.9, 0.4, G * np.sin(0.5), size), 3.0 * SHARES
    body, edge = law.parts()
    found = run(jm.MultibodySystem([body], [edge], gravity=(0.0, -law.g)), times, size)
    units = np.array([size, size, 1.0])
    assert_close(np.asarray(found.q) / units, law.place(times) / units)
    assert_close(np.asarray(found.v) / units, law.velocity(times) / units, 10)
    assert_close(-found.multipliers[:, 0], law.side(times), 100 * size)


# ---------------------------------------------------------------------------------------------
# In space
# ---------------------------------------------------------------------------------------------


def about_z(angles):
    return Rotation.from_rotvec(np.asarray(angles)[:, None] * Z)


def assert_turned(q, expected, size=1.0):
    found = Rotation.from_quat(np.asarray(q)[:, 3:7], scalar_first=True)
    assert_close((found.inv() * expected).magnitude(), 0.0, size)


class RollingDisk:
    """Steady rolling of a tilted thin disk; A, C: its moments across and along the axis, r: radius.

    The axis u is `tilt` from the vertical z and precesses with the rate W about it. e is the
    horizontal direction of its tilt, f = z x e. With n = u . (angular velocity), the contact
    r (cos e - sin z) from the centre has no velocity, so that the centre has -r n f. Moments
    about the centre, with the force mass (g z + r n W e) at the contact, along f:

        W sin (C n - A W cos) = mass r (-g cos - r n W sin).
    """

    MASS, RADIUS, ACROSS, AXIAL = 1.3, 0.4, 0.06, 0.11

    def __init__(self, tilt, precession):
        self.W, self.sin, self.cos = precession, np.sin(tilt), np.cos(tilt)
        both = self.ACROSS * self.W**2 * self.sin - self.MASS * G * self.RADIUS
        rolling = self.AXIAL + self.MASS * self.RADIUS**2
        self.n = both * self.cos / (rolling * self.W * self.sin)
        axis, across = np.array([self.sin, 0, self.cos]), np.array([-self.cos, 0, self.sin])
        columns = np.stack([across, np.cross(axis, across), axis], axis=1)
        self.first = Rotation.from_matrix(columns)
        self.spin = self.n * axis + self.W * self.sin * across

    def system(self):
        disk = spatial.Body(
            "disk",
            mass=self.MASS,
            inertia=(self.ACROSS, self.ACROSS, self.AXIAL),
            position=self.places(np.zeros(1))[0],
            rotation=self.first.as_matrix(),
            velocity=(0.0, -self.RADIUS * self.n, 0.0),
            angular_velocity=self.spin,
        )
        axis = self.first.as_matrix()[:, 2]
        contact = spatial.RollingDisk("contact", ("disk",), axis=axis, radius=self.RADIUS)
        return jm.MultibodySystem([disk], [contact], gravity=-G * Z)

    def tilted(self, times):
        """e."""
        along, _ = directions(self.W * times)
        return np.pad(along, ((0, 0), (0, 1)))

    def places(self, times):
        """On a circle around the z axis, on which -r n f is the velocity."""
        r = self.RADIUS
        return -r * self.n / self.W * self.tilted(times) + r * self.sin * Z

    def turns(self, times):
        rolled = about_z((self.n - self.W * self.cos) * times)
        return about_z(self.W * times) * self.first * rolled

    def pushes(self, times):
        """The force at the contact."""
        inwards = self.RADIUS * self.n * self.W * self.tilted(times)
        return self.MASS * (G * Z + inwards)


@pytest.mark.parametrize(("tilt", "precession"), [(1.2, 0.7), (0.3, 9.0), (2.0, -3.0)])
def test_tilted_disk_rolls_in_a_circle(tilt, precession):
    law, times = RollingDisk(tilt, precession), 2.0 * SHARES
    found = run(law.system(), times)
    assert_close(found.q[:, :3], law.places(times), 10)
    assert_turned(found.q, law.turns(times), 10)
    assert_close(-found.multipliers, law.pushes(times), 100)


@pytest.mark.parametrize("far", [0.0, 1e4])
@pytest.mark.parametrize("moments", [(0.3, 0.3, 0.5), (0.3, 0.3, 0.02)])
def test_free_symmetric_top(moments, far):
    """The angular momentum H is constant. With A and C the moments across and along the axis and n
    the spin along it, the axis precesses about H at the rate |H| / A, while the body turns about
    the axis at the rate n (1 - C / A)."""
    first = Rotation.from_rotvec([0.3, -1.1, 0.7])
    spin, velocity = np.array([1.5, -0.8, 7.0]), np.array([0.5, -2.0, 1.0])
    body = spatial.Body(
        "top",
        mass=2.0,
        inertia=moments,
        position=far * np.ones(3),
        rotation=first.as_matrix(),
        velocity=velocity,
        angular_velocity=first.apply(spin),
    )
    times = 4.0 * SHARES
    found = run(jm.MultibodySystem([body]), times)
    A, _, C = moments
    momentum = first.apply(np.array(moments) * spin)
    precession = Rotation.from_rotvec(times[:, None] * momentum / A)
    turned = precession * first * about_z(spin[2] * (1 - C / A) * times)
    assert_turned(found.q, turned)
    assert_close(
        turned.apply(np.array(moments) * np.asarray(found.v[:, 3:])), np.tile(momentum, (13, 1)), 10
    )
    # Far away numbers have fewer digits.
    np.testing.assert_allclose(
        found.q[:, :3], far + times[:, None] * velocity, rtol=0, atol=1e-13 * (10 + far)
    )


# ---------------------------------------------------------------------------------------------
# Oscillators
# ---------------------------------------------------------------------------------------------


class Pendulum:
    """A rod that is lowest at t = 0, with w^2 = mass g l / J and 2 k w its rate there. It swings or
    turns over:

        k < 1: sin(x / 2) = k sn(w t; k^2),    k > 1: x = 2 am(k w t; 1 / k^2)."""

    MASS, INERTIA, LENGTH = 2.0, 0.1, 0.5

    def __init__(self, k, size=1.0):
        self.k, self.length, self.inertia = k, self.LENGTH * size, self.INERTIA * size**2
        J = self.inertia + self.MASS * self.length**2
        self.w = np.sqrt(self.MASS * G * size * self.length / J)

    def body(self):
        rate = 2 * self.k * self.w
        return planar.Body(
            "rod",
            mass=self.MASS,
            inertia=self.inertia,
            position=(0.0, -self.length),
            velocity=(rate * self.length, 0.0),
            angular_velocity=rate,
        )

    def swing(self, times):
        """Angle and its rate."""
        if self.k < 1:
            sn, cn, _, _ = ellipj(self.w * times, self.k**2)
            return 2 * np.arcsin(self.k * sn), 2 * self.k * self.w * cn
        _, _, dn, am = ellipj(self.k * self.w * times, self.k**-2)
        return 2 * am, 2 * self.k * self.w * dn

    def state(self, time):
        """q and v of the rod."""
        angle, rate = self.swing(time)
        along, across = directions(angle - np.pi / 2)
        return np.append(self.length * along, angle), rate * np.append(self.length * across, 1.0)


class Oscillator:
    """A block on an incline, held by a spring and a damper along it. From where the spring carries
    the weight, with d = damping / (2 mass) and u^2 = stiffness / mass - d^2, imaginary where it
    creeps:

        x = exp(-d t) (X cos u t + (V + d X) sin(u t) / u)."""

    SLOPE, MASS, STIFFNESS, X, V = 0.6, 2.0, 300.0, 0.1, -2.0

    def __init__(self, damping, size):
        self.size, self.damping = size, damping
        self.along, _ = directions(self.SLOPE)
        self.d = damping / (2 * self.MASS)
        self.u = np.sqrt(self.STIFFNESS / self.MASS - self.d**2 + 0j)
        self.natural = 3.0 * size
        weight = self.MASS * G * size * self.along[1]
        self.middle = self.natural - weight / self.STIFFNESS

    def parts(self):
        start = (self.middle + self.X * self.size) * self.along
        block = planar.Body(
            "block",
            mass=self.MASS,
            inertia=0.1 * self.size**2,
            position=start,
            velocity=self.V * self.size * self.along,
        )
        slide = planar.Translational("slide", ("ground", "block"), start, self.along)
        spring = forces.SpringDamper(
            "spring",
            ("ground", "block"),
            points=(np.zeros(2), start),
            stiffness=self.STIFFNESS,
            damping=self.damping,
            length=self.natural,
        )
        return block, slide, spring

    def swing(self, times):
        """Distance from the foot of the spring, and its rate."""
        c, s = np.cos(self.u * times), np.sin(self.u * times) / self.u
        more, decay = self.V + self.d * self.X, self.size * np.exp(-self.d * times)
        x = self.X * c + more * s
        rate = more * c - self.X * self.u**2 * s - self.d * x
        return self.middle + (decay * x).real, (decay * rate).real


@each_size
@pytest.mark.parametrize(("k", "damping"), [(np.sin(1.55), 4.0), (1.0001, 120.0), (3.0, 0.0)])
def test_pendulum_and_oscillator(k, damping, size):
    """Swinging to 2.4 degrees from the top, turning over slowly, turning fast; damped less and more
    than critically, and not at all."""
    rod, spring = Pendulum(k, size), Oscillator(damping, size)
    block, slide, load = spring.parts()
    pin = planar.Revolute("pin", ("ground", "rod"), (0.0, 0.0))
    system = jm.MultibodySystem(
        [rod.body(), block], [pin, slide], forces=[load], gravity=(0.0, -G * size)
    )
    times = 3.0 * SHARES
    found = run(system, times, size)
    x, rate = spring.swing(times)
    assert_close(found.q[:, 3:5], x[:, None] * spring.along, size)
    assert_close(found.v[:, 3:5], rate[:, None] * spring.along, 10 * size)
    # On the way to the top and back errors grow by some hundreds.
    angle, rate = rod.swing(times)
    assert_close(found.q[:, 2], angle, 100)
    assert_close(found.v[:, 2], rate, 100)


# ---------------------------------------------------------------------------------------------
# Order of convergence: a rod on two pins, which are redundant, and a knife edge
# ---------------------------------------------------------------------------------------------

ROD, SKATE = Pendulum(np.sin(0.2)), Skate(8.0, 0.0, 4.2, G)
MASSES = np.array(
    [[ROD.MASS, ROD.MASS, ROD.INERTIA], [SKATE.MASS, SKATE.MASS, 0.2]],
)
FIFTH = diffrax.Dopri5()
# So weak that it does nothing: the motion without any stabilisation.
NONE = jm.Baumgarte(1e-9, 1e-9)
CRITICAL = jm.Baumgarte(10.0, 10.0)


@pytest.fixture(scope="module")
def system():
    sledge, edge = SKATE.parts()
    pins = [planar.Revolute(name, ("ground", "rod"), (0.0, 0.0)) for name in ("pin", "twin")]
    return jm.MultibodySystem([ROD.body(), sledge], [*pins, edge], gravity=(0.0, -G))


def stepped(
    system,
    end,
    steps,
    solver: diffrax.AbstractSolver = FIFTH,
    stabilisation=None,
    times=None,
):
    """By steps of one length; the start and the end, or these times."""
    return jm.simulate(
        system,
        system.reference_q,
        system.initial_v,
        end,
        solver=solver,
        controller=diffrax.ConstantStepSize(),
        first_step=end / steps,
        stabilisation=stabilisation,
        times=times,
        monitor=False,
    )


def exact(time):
    """q and v of the rod (first row) and of the knife edge."""
    q, v = ROD.state(time)
    return np.stack([q, SKATE.place(time)]), np.stack([v, SKATE.velocity(time)])


def weighed(x):
    """Norm in the mass metric, of each of both."""
    return np.sqrt(np.sum(MASSES * x**2, axis=1))


def reached(found):
    return np.reshape(found.q[-1], (2, 3)), np.reshape(found.v[-1], (2, 3))


def errors(found):
    """Of the rod and of the knife edge at the end: places and velocities."""
    (q, v), (found_q, found_v) = exact(float(found.times[-1])), reached(found)
    return np.hypot(weighed(found_q - q), weighed(found_v - v))


def order(values, steps):
    """From the first to the last of the values."""
    return np.log(values[0] / values[-1]) / np.log(steps[-1] / steps[0])


@pytest.mark.parametrize(
    ("solver", "nominal", "off", "steps"),
    [
        (diffrax.Heun(), 2, 0.3, (200, 400)),
        (FIFTH, 5, 0.3, (200, 300)),
        # Its terms of the fifth order are so small that those of the sixth are still seen.
        (diffrax.Tsit5(), 5, 0.5, (300, 400)),
        (diffrax.Dopri8(), 8, 0.3, (24, 40)),
    ],
    ids=["heun", "dopri5", "tsit5", "dopri8"],
)
def test_order_of_the_error_with_projection(system, solver, nominal, off, steps):
    """Global errors after 2 s, all far above rounding."""
    runs = [stepped(system, 2.0, n, solver) for n in steps]
    found = np.array([errors(x) for x in runs])
    assert np.all(found > 1e-13)
    assert np.all(np.abs(order(found, steps) - nominal) < off)
    for x in runs:
        assert float(x.position_error[-1]) < 1e-15
        assert float(x.velocity_error[-1]) < 1e-14


def test_order_between_the_ends_of_steps(system):
    """Of Dopri8, whose steps have an error of ninth order in their length, and interpolants one of
    seventh. At steps of a fourth of a radian and more they are about as exact as ends, which
    collect the errors of all steps."""
    steps, ends, within = (24, 40), [], []
    for n in steps:
        before = np.array([2.0, 1.8, 1.5, 1.2, 1.0, 0.0])
        times = np.append(0.0, 2.0 - before * 2.0 / n)
        found = stepped(system, 2.0, n, diffrax.Dopri8(), times=times)
        off = np.array([errors(found.at(slice(k, k + 1))) for k in range(1, 7)])
        ends.append(np.max(off[[0, 4, 5]], axis=0))
        within.append(np.max(off[1:4], axis=0))
    assert np.all(np.min(within, axis=0) > 1e-13)
    assert np.all(order(within, steps) > 6.7)
    assert np.all(np.array(within) < 4 * np.array(ends))


def test_an_event_within_a_step(system):
    """When the rod first has the angle of a known time, but for the last digits of the
    tolerance."""
    time = 0.21
    angle, _ = ROD.swing(time)

    def reached(system, q, v, t):
        del system, v, t
        return q[2] - angle

    found = jm.simulate(
        system,
        system.reference_q,
        system.initial_v,
        2.0,
        rtol=1e-10,
        atol=1e-12,
        events=[jm.StopWhen(reached)],
        solver=diffrax.Dopri8(),
    )
    assert bool(found.stopped)
    assert abs(float(found.times[-1]) - time) < 1e-10


def test_projection_removes_its_part_of_the_local_error(system):
    """One step leaves the constraints by an error of one order more than the method has. The way
    back is square, in the mass metric, to what is left of the error: places of the rod, which has
    geometric constraints, and velocities of the knife edge, which has none."""
    lengths, moved, closure = np.array([0.05, 0.025]), [], []
    for h in lengths:
        raw = stepped(system, h, 1, stabilisation=NONE)
        q, v = jm.consistent_state(system, raw.q[-1], raw.v[-1], h)
        (raw_q, raw_v), (exact_q, exact_v) = reached(raw), exact(h)
        q, v = np.reshape(q, (2, 3)), np.reshape(v, (2, 3))
        parts = np.array([weighed(raw_q - q)[0], weighed(raw_v - v)[1]])
        left = np.array([weighed(q - exact_q)[0], weighed(v - exact_v)[1]])
        whole = np.array([weighed(raw_q - exact_q)[0], weighed(raw_v - exact_v)[1]])
        # The constraints turn by an angle of the order of the step's error.
        np.testing.assert_allclose(np.hypot(parts, left), whole, rtol=1e-3)
        moved.append(parts)
        closure.append(float(raw.position_error[-1]))
    # That of the knife edge, with an even spin, is even smaller.
    rod, edge = order(moved, 1 / lengths)
    assert abs(rod - 6) < 0.3
    assert edge > 5.7
    assert abs(order(closure, 1 / lengths) - 6) < 0.3


def test_projection_of_positions_is_shortest_in_the_mass_metric(system, rng):
    """To first order it leaves the part of a step that is tangent to the constraints, in the mass
    metric. What it leads to is on the constraints, and stays where it is."""
    start, zero = system.reference_q, jnp.zeros(6)
    direction, mass = rng.uniform(0.5, 1.0, 6), np.diag(MASSES.ravel())
    rows = np.asarray(system.constraint_matrix(start, zero, 0.0))[:4]
    inverse = np.linalg.inv(mass)
    normal = inverse @ rows.T @ np.linalg.pinv(rows @ inverse @ rows.T, rcond=1e-10) @ rows
    gaps, far = [], np.array([1e-2, 1e-3])
    for step in far:
        q = jm.consistent_state(system, start + step * direction, zero).q
        again = jm.consistent_state(system, q, zero).q
        np.testing.assert_allclose(again, q, rtol=0, atol=1e-15)
        np.testing.assert_allclose(system.position_residual(q, 0.0), 0.0, atol=1e-15)
        tangent = direction - normal @ direction
        gaps.append(np.linalg.norm(np.asarray(q - start) - step * tangent))
    assert abs(order(gaps, 1 / far) - 2) < 0.05


def test_projection_of_velocities_is_shortest_in_the_mass_metric(system, rng):
    """The change is M^-1 C^T times some multipliers, exactly, and what it leads to is allowed."""
    free = jnp.asarray(rng.normal(size=6))
    q, v = jm.consistent_state(system, system.reference_q, free)
    np.testing.assert_allclose(q, system.reference_q, rtol=0, atol=1e-15)
    matrix = np.asarray(system.constraint_matrix(q, v, 0.0))
    np.testing.assert_allclose(matrix @ v, 0.0, atol=1e-14)
    impulse = MASSES.ravel() * np.asarray(v - free)
    multipliers = np.linalg.lstsq(matrix.T, impulse, rcond=1e-10)[0]
    np.testing.assert_allclose(matrix.T @ multipliers, impulse, atol=1e-14)


def test_baumgarte_bounds_the_drift_and_is_less_accurate(system):
    """Without stabilisation the rod leaves its pin with the square of time. With it the drift stays
    where it is, far from zero, and errors are larger than with projection."""
    ends = (5.0, 20.0, 80.0)
    drift, bounded = (
        np.array(
            [float(stepped(system, t, int(20 * t), FIFTH, x).position_error[-1]) for t in ends]
        )
        for x in (NONE, CRITICAL)
    )
    assert np.all(drift[1:] > 8 * drift[:-1])
    assert np.all(bounded < 2e-6)
    assert np.all(bounded > 1e-8)
    loose, tight = (errors(stepped(system, 2.0, 100, FIFTH, x)) for x in (CRITICAL, None))
    assert np.all(loose > 5 * tight)
