"""Motions that are known in closed form: sleigh, knife edge on an incline, rolling disk, pendulum,
oscillator; and the chain of four-bars, by an integral of its own."""

import dataclasses
import itertools

import numpy as np
from scipy.integrate import quad, solve_ivp
from scipy.spatial.transform import Rotation
from scipy.special import ellipj

import jaxmbs as jm
from jaxmbs import forces, planar, spatial


G = 9.81
Z = np.array([0.0, 0.0, 1.0])


def directions(angle):
    """Unit vectors along and across, at these angles."""
    c, s = np.cos(angle), np.sin(angle)
    return np.stack([c, s], axis=-1), np.stack([-s, c], axis=-1)


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


def about_z(angles):
    return Rotation.from_rotvec(np.asarray(angles)[:, None] * Z)


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

    def parts(self):
        """The disk and its contact."""
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
        return disk, spatial.RollingDisk("contact", ("disk",), axis=axis, radius=self.RADIUS)

    def system(self):
        disk, contact = self.parts()
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


def elastic_rod(rod: Pendulum, stiffness: float, damping: float = 0.0):
    """The pendulum, of two halves that slide on each other and a spring from the pin to the tip:
    bodies, joints and the spring."""
    body = rod.body()
    halves = [
        dataclasses.replace(body, name=name, mass=body.mass / 2, inertia=body.inertia / 2)
        for name in ("near", "far")
    ]
    pin = planar.Revolute("elastic pin", ("ground", "near"), (0.0, 0.0))
    slide = planar.Translational("slide", ("near", "far"), (0.0, -rod.length), (0.0, 1.0))
    spring = forces.SpringDamper(
        "spring",
        ("near", "far"),
        points=[(0.0, 0.0), (0.0, -2 * rod.length)],
        stiffness=stiffness,
        damping=damping,
    )
    return halves, [pin, slide], spring


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


def angle_of_chain(windows: int, times: np.ndarray) -> np.ndarray:
    """Of the vertical bars of `four-bar-chain`, which stay parallel (rad):
    theta'' = g ((N+1)/2 + N) / ((N+1)/3 + N) sin theta, theta from the vertical."""
    stiffness = 9.81 * ((windows + 1) / 2 + windows) / ((windows + 1) / 3 + windows)
    return solve_ivp(
        lambda _, y: [y[1], stiffness * np.sin(y[0])],
        (0.0, times[-1]),
        [0.0, 1.0],
        method="DOP853",
        rtol=1e-13,
        atol=1e-14,
        t_eval=times,
    ).y[0]
