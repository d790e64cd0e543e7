"""Bodies that are given by a Lagrangian or a kinetic energy, and conditions on the coordinates of
rigid bodies."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from derivative_checks import difference, NODES, slopes

import jaxmbs as jm
from jaxmbs import forces, generalized, planar, spatial


G = 9.81
# A few products of numbers of order ten, derivatives exact.
ROUNDING = 1e-12


def place(q):
    """The bob on a rope that is 1.5 m long and hangs on a cart."""
    return jnp.stack([q[0] + 1.5 * jnp.sin(q[1]), -1.5 * jnp.cos(q[1])])


def kinetic(q, v):
    velocity = jax.jvp(place, (q,), (v,))[1]
    return v[0] ** 2 + 0.4 * velocity @ velocity


def potential(q):
    return 0.8 * G * place(q)[1]


def bead(q, v, t):
    """A bead (2 kg) on a hoop (0.5 m) that turns about the vertical with the angle 3 t + t^2 / 2
    and rises by 0.1 t^2: L has terms of first order and of none in v, and depends on time."""
    turn, rise = 3.0 + t, 0.2 * t
    vertical = rise + 0.5 * jnp.sin(q[0]) * v[0]
    around = 0.5 * jnp.sin(q[0]) * turn
    height = 0.1 * t**2 - 0.5 * jnp.cos(q[0])
    return (0.25 * v[0] ** 2 * jnp.cos(q[0]) ** 2 + vertical**2 + around**2) - 2.0 * G * height


class TestLagrangian:
    Q, V = jnp.array([0.3, 0.8]), jnp.array([-0.4, 1.7])

    def systems(self):
        names, more = ("x", "angle"), {"constraints": {}, "lengths": ("x",)}
        pull = np.array([1.0, 0.5])
        return (
            jm.GeneralizedSystem(
                names, kinetic_energy=kinetic, energy=potential, force=pull, **more
            ),
            jm.GeneralizedSystem(
                names,
                lagrangian=lambda q, v: kinetic(q, v) - potential(q),
                force=lambda q, v, t: jnp.asarray(pull),
                **more,
            ),
        )

    def test_by_hand(self):
        """2 kg on the rail, 0.8 kg on the rope of 1.5 m."""
        c, s = np.cos(0.8), np.sin(0.8)
        M = np.array([[2.8, 1.2 * c], [1.2 * c, 1.8]])
        F = np.array([1.2 * s * 1.7**2 + 1.0, -1.2 * G * s + 0.5])
        for system in self.systems():
            np.testing.assert_allclose(system.mass_matrix(self.Q), M, atol=ROUNDING)
            np.testing.assert_allclose(system.force(self.Q, self.V, 0.0), F, atol=ROUNDING)
        energies = self.systems()[0].energy(self.Q, self.V, 0.0)
        v = np.array(self.V)
        np.testing.assert_allclose(energies, [v @ M @ v / 2, -1.2 * G * c], atol=ROUNDING)

    def test_a_moving_frame(self):
        """theta'' = (W^2 cos - (g + h'') / R) sin, with h'' = 0.2; the terms of second order are
        R^2 theta'^2 whatever the parts that they come from."""
        system = jm.GeneralizedSystem(("theta",), lagrangian=bead, constraints={})
        for angle, rate, t in ((0.7, -1.2, 0.4), (2.5, 0.3, 0.0), (0.0, 2.0, 1.0)):
            q, v = jnp.array([angle]), jnp.array([rate])
            np.testing.assert_allclose(system.mass_matrix(q, t), [[0.5]], atol=ROUNDING)
            found = float(system.free_acceleration(q, v, t)[0])
            expected = ((3 + t) ** 2 * np.cos(angle) - (G + 0.2) / 0.5) * np.sin(angle)
            np.testing.assert_allclose(found, expected, atol=1e-11)
        with pytest.raises(ValueError, match="mass of this system depends on time"):
            system.mass_matrix(jnp.array([0.7]))

    def test_derivatives(self):
        """Of accelerations and multipliers, forward, reverse and by differences."""
        system = jm.GeneralizedSystem(
            ("x", "angle"),
            kinetic_energy=kinetic,
            energy=potential,
            constraints={"rail": jm.generalized.PositionConstraint(lambda q, t: q[0] - q[1] ** 2)},
            lengths=("x",),
        )

        def solved(start):
            found = jm.formulations.MinimumNorm().solve(system.equations(start[:2], start[2:], 0.0))
            return jnp.concatenate([found.acceleration, found.multipliers])

        start = jnp.concatenate([self.Q, self.V])
        direction = jnp.array([1.0, 0.4, -0.7, 0.2])
        found = slopes(solved, start, direction, jnp.ones(3))
        near = [start + 2e-3 * node * direction for node in NODES]
        values = [slopes(solved, x, direction, jnp.ones(3)).value for x in near]
        np.testing.assert_allclose(found.pushed, difference(values, 2e-3), rtol=1e-8)
        np.testing.assert_allclose(found.pulled @ direction, found.pushed.sum(), rtol=1e-9)

    @pytest.mark.thorough
    def test_energy_along_a_motion(self):
        system = self.systems()[0]
        motion = jm.simulate(
            system, self.Q, self.V, 2.0, every=0.5, rtol=1e-10, atol=1e-11, monitor=False
        )
        # The pull of 1 N along x and 0.5 N m about the angle does work besides.
        energy = jax.vmap(lambda q, v: sum(system.energy(q, v, 0.0)) - q @ np.array([1.0, 0.5]))
        values = np.array(energy(motion.q, motion.v))
        np.testing.assert_allclose(values, values[0], atol=1e-8)

    @pytest.mark.parametrize(
        ("given", "words"),
        [
            ({"mass_matrix": [[1.0]], "lagrangian": lambda q, v: v @ v}, "give one of them"),
            ({"lagrangian": lambda q, v: v[0] ** 4}, "must be quadratic in the velocities"),
            ({"kinetic_energy": lambda q, v, t: v @ v * jnp.exp(v[0])}, "kinetic_energy must be"),
            ({"lagrangian": lambda q, v: v}, "must return one number"),
            ({"lagrangian": lambda q: 1.0}, "lagrangian must be a function of q and v, or of"),
            ({"mass_matrix": [[1.0, 2.0]]}, r"mass_matrix must be an array of shape \[1, 1\]"),
            ({"mass_matrix": [[1.0]], "force": [1.0, 2.0]}, "force must be a vector of 1 numbers"),
            ({}, "body 'system' has no mass"),
        ],
    )
    def test_refusals(self, given, words):
        with pytest.raises((TypeError, ValueError), match=words):
            jm.GeneralizedSystem(("x",), constraints={}, **given)

    def test_a_body_says_what_moves_it_once(self):
        with pytest.raises(ValueError, match="complete=True says that force holds"):
            generalized.Body("b", ("x",), kinetic_energy=lambda q, v: v @ v, complete=True)


def bodies():
    return [
        planar.Body(name, mass=m, inertia=0.3, position=(x, 0.2))
        for name, m, x in (("a", 1.0, 0.0), ("b", 2.0, 1.0))
    ]


def pins():
    return [
        planar.Revolute(n.upper(), ("ground", n), (x, 0.0)) for n, x in (("a", 0.0), ("b", 1.0))
    ]


class TestMixed:
    """The same constraint or force, said of frames and said of coordinates."""

    def assert_same(self, one, other, seed=0):
        rng = np.random.default_rng(seed)
        q = one.retract(one.reference_q, jnp.asarray(rng.normal(size=one.structure.nv)))
        v, t = jnp.asarray(rng.normal(size=one.structure.nv)), 0.4
        for name in (
            "constraint_matrix",
            "velocity_residual",
            "acceleration_offset",
            "force",
        ):
            found, expected = (getattr(system, name)(q, v, t) for system in (one, other))
            np.testing.assert_allclose(found, expected, atol=ROUNDING)
        np.testing.assert_allclose(
            one.position_residual(q, t), other.position_residual(q, t), atol=ROUNDING
        )
        return q, v, t

    @pytest.mark.thorough
    def test_in_the_plane(self):
        gear = planar.Gear("gear", ("ground", "a", "b"), ratio=-2.0)
        by_frames = jm.MultibodySystem(
            bodies(),
            [*pins(), gear, planar.Pfaffian("row", ("a", "b"), coefficients=[0, 1, 2, 0, 0, 3])],
        )
        scale = by_frames.constraint_matrix(by_frames.reference_q, jnp.zeros(6), 0.0)[4]
        by_coordinates = jm.MultibodySystem(
            bodies(),
            [
                *pins(),
                generalized.Condition(
                    "gear", ("a", "b"), lambda q, t: scale[2] * q[0][2] + scale[5] * q[1][2]
                ),
                generalized.RateCondition(
                    "row", ("b", "a"), lambda q, v, t: 3 * v[0][2] + v[1][1] + 2 * v[1][2]
                ),
            ],
        )
        state = self.assert_same(by_frames, by_coordinates)
        one, other = (jm.analyze(system, *state) for system in (by_frames, by_coordinates))
        np.testing.assert_allclose(one.reaction_measure, other.reaction_measure, atol=1e-12)
        np.testing.assert_array_equal(
            np.asarray(one.reaction_unique), np.asarray(other.reaction_unique)
        )

    def in_space(self):
        body = spatial.Body(
            "top",
            mass=2.0,
            inertia=(0.3, 0.4, 0.5),
            position=(0.1, -0.2, 1.0),
            angular_velocity=(0.2, 0.1, 3.0),
        )

        def height(frames, t):
            return frames[0].origin[2] - 0.3 * frames[0].rotation[2, 2] - t

        def height_of(q, t):
            return q[2] - 0.3 * (1 - 2 * (q[4] ** 2 + q[5] ** 2)) - t

        def spin(frames, twists, t):
            axis = frames[0].rotation[:, 2]
            across = frames[0].rotation[:, 0]
            return jnp.stack([axis @ twists[0].angular - 3.0, twists[0].linear @ across])

        def spin_of(q, v, t):
            w, x, y, z = q[3:]
            across = jnp.stack([1 - 2 * (y**2 + z**2), 2 * (x * y + w * z), 2 * (x * z - w * y)])
            return jnp.stack([v[5] - 3.0, v[:3] @ across])

        markers = [("top", (0.1, -0.2, 1.0))]
        by_frames = jm.MultibodySystem(
            [body],
            [
                spatial.Geometric("height", height, markers),
                spatial.Velocity("spin", spin, markers, rows=2),
            ],
            forces=[forces.Applied("push", "top", force=(1.0, 2.0, 3.0))],
        )
        by_coordinates = jm.MultibodySystem(
            [body],
            [
                generalized.Condition("height", "top", height_of, quantity=generalized.LENGTH),
                generalized.RateCondition(
                    "spin", "top", spin_of, rows=2, quantity=generalized.LENGTH
                ),
            ],
            forces=[
                generalized.Force(
                    "push", "top", lambda q, v, t: jnp.array([1.0, 2.0, 3.0, 0.0, 0.0, 0.0])
                )
            ],
        )
        return by_frames, by_coordinates

    def test_in_space(self):
        self.assert_same(*self.in_space())

    @pytest.mark.thorough
    def test_a_motion_in_space(self):
        """The quaternion is kept at unit length, and the motion on the rows, of both systems."""
        by_frames, by_coordinates = self.in_space()
        start = by_frames.reference_q.at[2].set(0.3)
        q, v = jm.consistent_state(by_frames, start, by_frames.initial_v)
        motion = jm.simulate(
            by_coordinates, q, v, 0.3, every=0.1, rtol=1e-10, atol=1e-11, monitor=False
        )
        last = motion.q[-1], motion.v[-1], motion.times[-1]
        np.testing.assert_allclose(by_frames.position_residual(last[0], last[2]), 0.0, atol=1e-12)
        np.testing.assert_allclose(by_frames.velocity_residual(*last), 0.0, atol=1e-11)
        expected = jm.formulations.MinimumNorm().solve(by_frames.equations(*last))
        np.testing.assert_allclose(motion.acceleration[-1], expected.acceleration, atol=1e-8)
        np.testing.assert_allclose(motion.multipliers[-1], expected.multipliers, atol=1e-7)

    @pytest.mark.parametrize(
        ("bodies_named", "words"),
        [
            (("a", "ground"), "'ground' has no coordinates of its own; name a moving body"),
            (("a", "w"), "body 'w' was never declared"),
        ],
    )
    def test_refusals(self, bodies_named, words):
        condition = generalized.Condition("c", bodies_named, lambda q, t: q[0][:1])
        with pytest.raises(ValueError, match=words):
            jm.MultibodySystem(bodies(), [condition])
