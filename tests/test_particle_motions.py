"""Particles whose motion is known in closed form: at a constant speed, which is a constraint not
linear in the velocity, and in polar coordinates, free and on a spiral."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from derivative_checks import slopes
from representatives import representatives_at

import jaxmbs as jm
from jaxmbs import generalized, planar


G, MASS = 9.81, 0.7
# Steps have an error of at most 1e-11 (relative); some hundreds of them add up.
TOLERANCE = 1e-9
TIMES = np.linspace(0.0, 1.5, 13)


def run(system, q, v, size=1.0):
    return jm.simulate(
        system,
        q,
        v,
        TIMES[-1],
        times=TIMES,
        rtol=1e-11,
        atol=1e-13 * size,
        monitor=False,
    )


@eqx.filter_jit
def solved(system, formulation, q, v, t):
    return formulation.solve(system.equations(q, v, t)), system.constraint_matrix(q, v, t)


# ---------------------------------------------------------------------------------------------
# |v| = c under gravity
# ---------------------------------------------------------------------------------------------


class ConstantSpeed:
    """A particle that keeps its speed c, v = c (cos a, sin a). What holds the speed acts along the
    velocity (Gauss's principle: a condition w(v) = 0 of any form pushes along dw/dv), so the weight
    alone turns it: c a' = -g cos a. With s = sin a that is s' = -(g / c) (1 - s^2):

        sin a = -tanh w,   cos a = +- 1 / cosh w,   w = g t / c + k,
        x' = +- c / cosh w,   y' = -c tanh w;   integrated, with gd w = 2 atan tanh (w / 2):
        x = +- (c^2 / g) (gd w - gd k),   y = -(c^2 / g) (log cosh w - log cosh k).

    Of (v v / c - c) / 2 = 0 the multiplier is the weight along the velocity, m g tanh w."""

    def __init__(self, angle, speed, size=1.0):
        self.angle, self.c, self.g = angle, speed * size, G * size
        self.k = -np.arctanh(np.sin(angle))
        self.side = np.sign(np.cos(angle))

    def w(self, times):
        return self.g * times / self.c + self.k

    def place(self, times):
        def turned(w):
            return 2 * np.arctan(np.tanh(w / 2))

        w, far = self.w(times), self.c**2 / self.g
        x = self.side * far * (turned(w) - turned(self.k))
        return np.stack([x, -far * np.log(np.cosh(w) / np.cosh(self.k))], axis=-1)

    def velocity(self, times):
        w = self.w(times)
        return self.c * np.stack([self.side / np.cosh(w), -np.tanh(w)], axis=-1)

    def acceleration(self, times):
        w = self.w(times)
        turning = np.stack([self.side * np.tanh(w), 1 / np.cosh(w)], axis=-1)
        return -self.g / np.cosh(w)[..., None] * turning

    def multiplier(self, times):
        return MASS * self.g * np.tanh(self.w(times))


class Keeps(eqx.Module):
    """The speed."""

    speed: jax.Array

    def __call__(self, q, v, t):
        return (v @ v / self.speed - self.speed) / 2


class Weight(eqx.Module):
    weight: jax.Array

    def __call__(self, q, v, t):
        return jnp.stack([0.0 * self.weight, -self.weight])


def mass_in_plane(q):
    return MASS * jnp.eye(2)


def in_coordinates(speed, g):
    """The particle, in (x, y)."""
    keeps = jm.generalized.VelocityConstraint(
        Keeps(jnp.asarray(speed)), quantity=generalized.LENGTH
    )
    return jm.GeneralizedSystem(
        ("x", "y"),
        mass_matrix=mass_in_plane,
        force=Weight(jnp.asarray(MASS * g)),
        constraints={"speed": keeps},
        lengths=("x", "y"),
    )


def as_particle(law):
    """The same in absolute coordinates."""
    keeps = Keeps(jnp.asarray(law.c))

    def speed(frames, twists, t):
        return keeps(None, twists[0].linear, t)

    return jm.MultibodySystem(
        [planar.Particle("p", mass=MASS, position=(0.0, 0.0))],
        [planar.Velocity("speed", speed, [("p", (0.0, 0.0))])],
        gravity=(0.0, -law.g),
    )


def assert_follows(found, law, size=1.0):
    scale = TOLERANCE * size
    np.testing.assert_allclose(found.q, law.place(TIMES), rtol=0, atol=scale)
    np.testing.assert_allclose(found.v, law.velocity(TIMES), rtol=0, atol=scale)
    expected = law.multiplier(TIMES)
    np.testing.assert_allclose(found.multipliers[:, 0], expected, rtol=0, atol=100 * scale)
    # Projected onto the constraint, which it is not by the equations of motion alone.
    speeds = np.linalg.norm(np.asarray(found.v), axis=1)
    np.testing.assert_allclose(speeds, law.c, rtol=1e-12)


class TestConstantSpeed:
    @pytest.mark.parametrize("size", [1e-3, 1.0, 1e3])
    # Upwards and down again, downwards, and to the left: it falls more and more steeply.
    @pytest.mark.parametrize(("angle", "speed"), [(1.2, 3.0), (-0.4, 8.0), (2.6, 5.0)])
    @pytest.mark.thorough
    def test_motion(self, angle, speed, size):
        law = ConstantSpeed(angle, speed, size)
        v = jnp.asarray(law.velocity(0.0))
        np.testing.assert_allclose(v, law.c * np.array([np.cos(angle), np.sin(angle)]), rtol=1e-14)
        assert_follows(run(in_coordinates(law.c, law.g), jnp.zeros(2), v, size), law, size)

    def test_a_particle_among_bodies(self):
        """The same row as of the coordinates, and what the closed form says."""
        law = ConstantSpeed(1.2, 3.0)
        system, own = as_particle(law), in_coordinates(law.c, law.g)
        for t in (0.0, 0.2, 1.1):
            q, v = jnp.asarray(law.place(t)), jnp.asarray(law.velocity(t))
            found, rows = solved(system, jm.formulations.MinimumNorm(), q, v, t)
            np.testing.assert_allclose(rows, own.constraint_matrix(q, v, t), atol=1e-15)
            np.testing.assert_allclose(found.acceleration, law.acceleration(t), atol=1e-11)
            np.testing.assert_allclose(found.multipliers[0], law.multiplier(t), atol=1e-11)

    @pytest.mark.parametrize(
        "formulation",
        representatives_at(
            [
                jm.formulations.MinimumNorm(),
                jm.formulations.UdwadiaKalaba(),
                jm.formulations.NullSpace(),
            ],
            1,
        ),
        ids=lambda x: x.word,
    )
    def test_accelerations(self, formulation):
        """And the condition does work: what the speed would gain in falling."""
        law = ConstantSpeed(1.2, 3.0)
        v = jnp.asarray(law.velocity(0.2))
        system = in_coordinates(law.c, law.g)
        found, rows = solved(system, formulation, jnp.zeros(2), v, 0.2)
        np.testing.assert_allclose(found.acceleration, law.acceleration(0.2), rtol=1e-12)
        np.testing.assert_allclose(found.multipliers, law.multiplier(0.2), rtol=1e-12)
        power = -found.multipliers @ rows @ v
        np.testing.assert_allclose(power, MASS * G * v[1], rtol=1e-12)

    def test_velocity_off_the_constraint_is_brought_back(self):
        """Along dw/dv, which is the velocity's own direction."""
        system = in_coordinates(3.0, G)
        v = jm.consistent_state(system, jnp.zeros(2), jnp.array([1.2, 1.6]), 0.0).v
        np.testing.assert_allclose(v, [1.8, 2.4], rtol=1e-12)

    def test_derivatives_by_the_direction(self):
        """Of a = g cos (sin, -cos) and of lambda = -m g sin, forward and reverse."""
        system, angle = in_coordinates(3.0, G), 1.2

        def answer(angle):
            v = 3.0 * jnp.stack([jnp.cos(angle), jnp.sin(angle)])
            found = jm.formulations.UdwadiaKalaba().solve(system.equations(jnp.zeros(2), v, 0.2))
            return jnp.concatenate([found.acceleration, found.multipliers])

        c, s = np.cos(angle), np.sin(angle)
        expected = [G * np.cos(2 * angle), G * np.sin(2 * angle), -MASS * G * c]
        weights = jnp.array([0.3, -1.1, 0.7])
        found = slopes(answer, jnp.asarray(angle), jnp.ones(()), weights)
        np.testing.assert_allclose(found.value, [G * s * c, -G * c * c, -MASS * G * s], rtol=1e-12)
        np.testing.assert_allclose(found.pushed, expected, rtol=1e-12)
        np.testing.assert_allclose(found.pulled, weights @ np.array(expected), rtol=1e-12)


# ---------------------------------------------------------------------------------------------
# Polar coordinates
# ---------------------------------------------------------------------------------------------


def mass_of_energy(q):
    """Of the kinetic energy m (r'^2 + r^2 angle'^2) / 2."""
    return MASS * jnp.diag(jnp.stack([jnp.ones(()), q[0] ** 2]))


def force_of_energy(q, v, t):
    r, angle = q
    return MASS * jnp.stack(
        [
            r * v[1] ** 2 - G * jnp.sin(angle),
            -2 * r * v[0] * v[1] - G * r * jnp.cos(angle),
        ]
    )


def mass_as_printed(q):
    """Zhao et al. 2018, eq. 9: the second equation divided by r^2."""
    return MASS * jnp.eye(2)


def force_as_printed(q, v, t):
    return force_of_energy(q, v, t) / jnp.stack([jnp.ones(()), q[0] ** 2])


PAIRS = {
    "of the energy": (mass_of_energy, force_of_energy),
    "as printed": (mass_as_printed, force_as_printed),
}
GROWTH = 0.3


def polar(name, constraints):
    mass, force = PAIRS[name]
    return jm.GeneralizedSystem(
        ("r", "angle"), mass_matrix=mass, force=force, constraints=constraints, lengths=("r",)
    )


def on_spiral(q, t):
    return q[0] - jnp.exp(GROWTH * q[1])


SPIRAL = {"spiral": jm.generalized.PositionConstraint(on_spiral, quantity=generalized.LENGTH)}
DRIVE = {"drive": jm.generalized.PositionConstraint(lambda q, t: q[1] - 1.3 + t)}


def answers(name, constraints, q, v):
    found, _ = solved(polar(name, constraints), jm.formulations.UdwadiaKalaba(), q, v, 0.0)
    return np.asarray(found.acceleration), np.asarray(found.multipliers)


class TestPolarCoordinates:
    @pytest.mark.thorough
    def test_projectile(self):
        """Zhao et al. 2018, example 1: the parabola, around the origin and below it."""
        start, velocity = np.array([1.0, 0.5]), np.array([-2.0, 6.0])
        r, angle = np.hypot(*start), np.arctan2(start[1], start[0])
        along = np.array([np.cos(angle), np.sin(angle)])
        across = np.array([-along[1], along[0]])
        v = jnp.array([velocity @ along, velocity @ across / r])
        found = run(polar("of the energy", {}), jnp.array([r, angle]), v)
        r, angle = np.asarray(found.q).T
        place = r[:, None] * np.stack([np.cos(angle), np.sin(angle)], axis=1)
        fall = np.outer(TIMES**2 / 2, [0.0, -G])
        np.testing.assert_allclose(
            place, start + np.outer(TIMES, velocity) + fall, atol=10 * TOLERANCE
        )

    def test_free_accelerations_of_both(self, rng):
        """Without rows M^-1 F is the same: the motion as well."""
        for q, v in rng.uniform(0.5, 2.0, (5, 2, 2)):
            own, printed = (
                np.linalg.solve(mass(jnp.asarray(q)), force(jnp.asarray(q), jnp.asarray(v), 0.0))
                for mass, force in PAIRS.values()
            )
            np.testing.assert_allclose(printed, own, rtol=1e-13)

    @pytest.mark.thorough
    def test_constraints_that_leave_no_freedom(self, rng):
        """Whatever M is, the rows decide the accelerations. The generalized forces that they take
        are others: the angle's is r^2 times the printed one."""
        q, v = jnp.asarray([np.exp(GROWTH * 1.3), 1.3]), jnp.asarray(rng.normal(size=2))
        both = SPIRAL | DRIVE
        (own, pushed), (printed, other) = (answers(name, both, q, v) for name in PAIRS)
        r = float(q[0])
        np.testing.assert_allclose(own, [GROWTH**2 * r * float(v[1]) ** 2, 0.0], atol=1e-12)
        np.testing.assert_allclose(printed, own, atol=1e-12)
        rows = np.asarray(polar("of the energy", both).constraint_matrix(q, v, 0.0))
        np.testing.assert_allclose(rows.T @ pushed, rows.T @ other * [1.0, r**2], atol=1e-12)

    @pytest.mark.parametrize(("angle", "rate"), [(-2.5, 1.0), (-1.2, 0.0), (1.7, -2.0), (2.9, 1.5)])
    def test_constraint_that_leaves_one(self, angle, rate):
        """On the wire r = exp(b angle) without friction the energy's M gives

            angle'' = -b angle'^2 - g (b sin + cos) / (r (1 + b^2)).

        The printed one is another metric, in which the reaction is not across the wire."""
        r = np.exp(GROWTH * angle)
        q, v = jnp.array([r, angle]), rate * jnp.array([GROWTH * r, 1.0])
        (own, pushed), (printed, other) = (answers(name, SPIRAL, q, v) for name in PAIRS)
        slope = (GROWTH * np.sin(angle) + np.cos(angle)) / (r * (1 + GROWTH**2))
        turning = -GROWTH * rate**2 - G * slope
        np.testing.assert_allclose(own[1], turning, rtol=1e-12)
        stretching = GROWTH * r * turning + GROWTH**2 * r * rate**2
        np.testing.assert_allclose(own[0], stretching, rtol=1e-11, atol=1e-12)
        # The force in the plane is (Q_r, Q_angle / r) and has no part along (b, 1).
        row = np.array([1.0, -GROWTH * r])
        np.testing.assert_allclose((pushed * row / [1.0, r]) @ [GROWTH, 1.0], 0.0, atol=1e-12)
        assert np.max(np.abs(printed - own)) > 1e-2 * np.max(np.abs(own))
        real = other * row * [1.0, r**2]
        assert abs((real / [1.0, r]) @ [GROWTH, 1.0]) > 1e-2 * np.linalg.norm(real)
