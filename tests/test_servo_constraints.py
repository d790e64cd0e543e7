"""Constraints at acceleration level and servo constraints: rows by hand, decay of errors in closed
form, forces of actuators by dense algebra."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import oracle_formulations as slow
import pytest
from derivative_checks import difference, NODES, slopes
from formulation_cases import MEMBERS
from representatives import representatives, representatives_at
from scipy.linalg import expm

import jaxmbs as jm
from jaxmbs import generalized, motions, planar, spatial


# Sums of some ten products of numbers of order ten.
ROUNDING = 1e-12
TIGHT: dict[str, Any] = {"rtol": 1e-11, "atol": 1e-12}
ANY: Any = jm
NONE = jnp.zeros(2)
P = np.array([[0.6, 0.2], [0.2, 0.4]])


def wanted(q, v, t):
    """Two velocities, wanted by a function that is not linear in v."""
    return jnp.stack([v[0] * q[1] - jnp.sin(t), v[2] ** 2 + v[1] - q[0] * t])


def wanted_position(q, t):
    return q[2] ** 2 + q[0] - t


def matrix(q, v, t):
    return jnp.stack([q[0] * v[1] + t, q[1], v[2]])


def offset(q, v, t):
    return v[0] * v[2] - t * q[1]


def every_kind():
    """Rows of all kinds, servo rows among the others."""
    servo = jm.generalized.ServoConstraint
    return jm.GeneralizedSystem(
        ("x", "y", "z"),
        mass_matrix=np.array([[2.0, 0.3, 0.0], [0.3, 1.0, 0.2], [0.0, 0.2, 1.5]]),
        force=lambda q, v, t: jnp.stack([q[1] - v[0], t * q[2], v[1] * v[2]]),
        constraints={
            "acceleration": jm.generalized.AccelerationConstraint(matrix, offset),
            "position": jm.generalized.PositionConstraint(lambda q, t: q[0] * q[1] - t),
            "velocities": servo(jm.generalized.VelocityConstraint(wanted, 2), P),
            "pfaffian": jm.generalized.PfaffianConstraint(
                lambda q, t: jnp.stack([q[2], t, 1.0]), -2.0
            ),
            "place": servo(jm.generalized.PositionConstraint(wanted_position), 0.3),
        },
        lengths=("x", "y", "z"),
    )


class TestRows:
    Q, V, T = np.array([0.7, -1.2, 0.4]), np.array([0.9, 0.3, -0.8]), 1.1

    def by_hand(self):
        """C, C v + b, Gamma and beta, derivatives written down."""
        (x, y, z), (u, v, w), t = self.Q, self.V, self.T
        C = np.array(
            [
                [x * v + t, y, w],
                [y, x, 0],
                [y, 0, 0],
                [0, 1, 2 * w],
                [z, t, 1],
                [1, 0, 2 * z],
            ]
        )
        rate = np.array([0, y * u + x * v - 1, 0, 0, z * u + t * v + w - 2, 0])
        beta = np.array([u * y - np.sin(t), w**2 + v - x * t])
        change = np.array([u * v - np.cos(t), -u * t - x])
        phi, slope = z**2 + x - t, 2 * z * w + u - 1
        place = slope + phi / 0.3
        Gamma = np.array(
            [
                u * w - t * y,
                -2 * u * v,
                *(-change - np.linalg.solve(P, beta)),
                -(w * u + v),
                -(2 * w**2) - slope / 0.3 - place / 0.3,
            ]
        )
        return C, rate, Gamma, np.array([0, 0, *beta, 0, place])

    def test_against_hand_written_derivatives(self):
        system = every_kind()
        state = (jnp.asarray(self.Q), jnp.asarray(self.V), self.T)
        C, rate, Gamma, beta = self.by_hand()
        for found, expected in (
            (system.constraint_matrix(*state), C),
            (system.velocity_residual(*state), rate),
            (system.acceleration_offset(*state), Gamma),
            (system.servo_error(*state), beta),
            (system.position_residual(state[0], self.T), [-0.84 - 1.1]),
        ):
            np.testing.assert_allclose(found, expected, atol=ROUNDING)
        said = system.evaluation(*state)
        np.testing.assert_allclose(said.rate, rate, atol=ROUNDING)
        np.testing.assert_allclose(said.gap, [0, -1.94, 0, 0, 0, 0], atol=ROUNDING)
        np.testing.assert_allclose(said.equations.offset, Gamma, atol=ROUNDING)
        np.testing.assert_allclose(said.equations.descriptor.constraint_matrix(), C, atol=ROUNDING)
        structure = system.structure
        np.testing.assert_array_equal(structure.velocity_level, [0, 1, 0, 0, 1, 0])
        np.testing.assert_array_equal(structure.servo, [0, 0, 1, 1, 0, 1])
        assert not structure.holonomic

    def test_of_two_bodies_one_of_them_rigid(self):
        """Velocities side by side: of a spatial body linear, then along its own axes."""
        body = spatial.Body("body", mass=2.0, inertia=(1.0, 2.0, 3.0), position=(0.1, 0.2, 0.3))
        slider = generalized.Body("slider", ("s",), mass_matrix=[[4.0]], lengths=("s",))
        A = np.arange(14.0).reshape(2, 7) - 5.0
        condition = generalized.AccelerationCondition(
            "c",
            ("slider", "body"),
            lambda q, v, t: A * (1 + q[0][0]) + t,
            lambda q, v, t: v[1][1:3],
            rows=2,
        )
        system = jm.MultibodySystem([body, slider], [condition])
        q = system.retract(system.reference_q, jnp.linspace(-0.5, 0.6, 7))
        v = jnp.linspace(1.0, 2.0, 7)
        right = A * (1 + q[7]) + 0.5
        expected = np.concatenate([right[:, 1:], right[:, :1]], axis=1)
        np.testing.assert_allclose(system.constraint_matrix(q, v, 0.5), expected, atol=ROUNDING)
        np.testing.assert_allclose(system.acceleration_offset(q, v, 0.5), v[1:3], atol=ROUNDING)

    @pytest.mark.parametrize(
        "name", representatives([name for name, _, _ in MEMBERS], "minimum-norm")
    )
    def test_accelerations(self, name):
        """That of the oracle: rows count alike, whatever their kind (Zhao et al. 2018, eq. 36)."""
        system = every_kind()
        # Without two of the six rows, which three coordinates cannot meet.
        equations = system.equations(jnp.asarray(self.Q), jnp.asarray(self.V), self.T)
        C, F, Gamma = (
            np.array(equations.descriptor.constraint_matrix()),
            np.array(equations.force),
            np.array(equations.offset),
        )
        kept = np.array([1, 0, 1, 0, 0, 0], bool)
        reduced = eqx.tree_at(
            lambda e: (e.descriptor, e.offset),
            equations,
            (equations.descriptor.mask_rows(kept), jnp.where(kept, equations.offset, 0.0)),
        )
        M = np.array(system.mass_matrix(jnp.asarray(self.Q)))
        a, _ = slow.solve(M, C[kept], F, Gamma[kept])
        member, tolerance = next((m, tol) for other, m, tol in MEMBERS if other == name)
        found = member.solve(reduced)
        assert bool(found.result == jm.results.RESULTS.successful)
        np.testing.assert_allclose(found.acceleration, a, atol=10 * tolerance)


def free(constraints, n=2, force=None):
    """A particle that only these constraints hold."""
    return jm.GeneralizedSystem(
        tuple("xyzuw"[:n]),
        mass_matrix=np.eye(n) * 2.0,
        force=np.zeros(n) if force is None else force,
        constraints=constraints,
        lengths=tuple("xyzuw"[:n]),
    )


class TestDecay:
    def test_closed_forms(self):
        """Of velocities beta' = -P^-1 beta, P a matrix; None leaves beta as it is; of positions
        Phi = (Phi_0 + (Phi_0' + Phi_0 / P) t) exp(-t / P)."""

        def row(q, v, t):
            return v[:2] - jnp.stack([jnp.cos(t) + q[1], q[0] * t])

        servo, constants = jm.generalized.ServoConstraint, np.array([0.2, 0.5])
        system = free(
            {
                "rates": servo(jm.generalized.VelocityConstraint(row, 2), P),
                "kept": servo(
                    jm.generalized.VelocityConstraint(lambda q, v, t: v[2] * (1 + q[2] ** 2) - t)
                ),
                "places": servo(
                    jm.generalized.PositionConstraint(
                        lambda q, t: q[3:] - jnp.stack([t**2, 1.0]), 2
                    ),
                    constants,
                ),
            },
            n=5,
            force=lambda q, v, t: -30.0 * q,
        )
        start, speed = np.array([0.3, -0.4, 0.2, 0.3, -0.4]), np.array([0.0, 0.5, 0.7, 2.0, 1.0])
        q, v = jnp.asarray(start), jnp.asarray(speed)
        motion = jm.simulate(system, q, v, 1.5, every=0.25, **TIGHT)
        errors = np.array(jax.vmap(system.servo_error)(motion.q, motion.v, motion.times))
        decay = -np.linalg.inv(P)
        expected = [expm(decay * t) @ errors[0, :2] for t in np.array(motion.times)]
        # The tolerance of the steps, added up over some thirty of them.
        np.testing.assert_allclose(errors[:, :2], expected, atol=1e-9)
        np.testing.assert_allclose(errors[:, 2], errors[0, 2], atol=1e-9)
        assert np.all(np.abs(errors[0]) > 0.3)
        t = np.array(motion.times)[:, None]
        gap = start[3:] - np.array([0.0, 1.0])
        expected = (gap + (speed[3:] + gap / constants) * t) * np.exp(-t / constants)
        left = np.array(motion.q)[:, 3:] - np.concatenate([t**2, np.ones_like(t)], axis=1)
        np.testing.assert_allclose(left, expected, atol=1e-9)

    def test_beside_redundant_joints(self):
        """Two hinges hold the door on its axis to rounding while the servo's error decays; its rows
        are never taken for a constraint of velocities."""
        door = spatial.Body("door", mass=20.0, inertia=(5.0, 2.0, 3.0), position=(0.4, 0.0, 1.0))
        hinges = [
            spatial.Revolute(name, ("ground", "door"), (0.0, 0.0, z), (0.0, 0.0, 1.0))
            for name, z in (("top", 1.8), ("bottom", 0.2))
        ]
        motor = jm.Driver("motor", "top", "rotation", motions.Linear(rate=0.4), time_constant=0.2)
        # The same row as one of the hinges, given at acceleration level: redundant there.
        twin = generalized.AccelerationCondition("twin", "door", np.eye(6)[2], 0.0)
        system = jm.MultibodySystem([door], [*hinges, twin], [motor], gravity=(0.0, 0.0, -9.81))
        q = system.reference_q
        motion = jm.simulate(system, q, jnp.zeros(6), 1.5, every=0.1, **TIGHT)
        assert float(motion.position_error.max()) < 1e-13
        assert float(motion.velocity_error.max()) < 1e-12
        angle = 2 * np.arctan2(np.array(motion.q[:, 6]), np.array(motion.q[:, 3]))
        t = np.array(motion.times)
        expected = 0.4 * t - 0.4 * t * np.exp(-t / 0.2)
        np.testing.assert_allclose(angle, expected, atol=1e-9)
        report = jm.analyze(system, q)
        assert (int(report.redundancy), int(report.mobility)) == (6, 0)
        assert "velocity and acceleration" in str(report)
        assert bool(report.reaction_unique[-1])
        assert not bool(report.reaction_unique[0])

    def test_a_rate_that_decays_is_an_eigenvalue(self):
        servo = jm.generalized.ServoConstraint(
            jm.generalized.VelocityConstraint(lambda q, v, t: v[0] + q[0]), 0.25
        )
        system = free({"servo": servo}, force=lambda q, v, t: jnp.stack([5.0 * q[1], -8.0 * q[1]]))
        found = jm.linearise(system, jnp.zeros(2))
        # x: v + x = beta with beta' = -4 beta; y: 2 y'' = -8 y.
        np.testing.assert_allclose(
            np.sort_complex(np.array(found.eigenvalues)), [-4, -1, -2j, 2j], atol=1e-9
        )


def arm():
    """Three links in the plane on a hinge that is there twice; its tip is to be led, and its first
    hinges have motors."""
    links = [
        planar.Body(f"link {k}", mass=1.0 + k, inertia=0.1, position=(0.5 + k, 0.0))
        for k in range(3)
    ]
    hinges = [
        planar.Revolute(
            f"hinge {k}", ("ground" if k == 0 else f"link {k - 1}", f"link {k}"), (k, 0.0)
        )
        for k in range(3)
    ]
    twin = planar.Revolute("twin", ("ground", "link 0"), (0.0, 0.0))
    tip = planar.Velocity(
        "tip",
        lambda frames, twists, t: twists[0].linear - jnp.stack([0.2 * jnp.cos(t), 0.3 * t]),
        [("link 2", (3.0, 0.0))],
        rows=2,
    )
    servo = jm.Servo(tip, time_constant=0.3, limit=0.5)
    return jm.MultibodySystem(links, [*hinges, twin, servo], gravity=(0.0, -9.81))


def torques(q, v, t):
    """Torques in the three hinges, on both links of each."""
    del q, v, t
    return (
        jnp.zeros((9, 3))
        .at[2, 0]
        .set(1.0)
        .at[jnp.array([5, 2]), 1]
        .set(jnp.array([1.0, -1.0]))
        .at[jnp.array([8, 5]), 2]
        .set(jnp.array([1.0, -1.0]))
    )


def by_dense_algebra(system, B, q, v, t):
    """dv/dt and u of all that satisfy the equations, with B u least in the metric of M^-1."""
    equations = system.equations(q, v, t)
    C, F, Gamma = (
        np.array(x)
        for x in (equations.descriptor.constraint_matrix(), equations.force, equations.offset)
    )
    M, servo = np.array(system.mass_matrix(q)), system.structure.servo
    L = np.linalg.cholesky(M)
    passive = np.linalg.solve(L, C[~servo].T).T
    projector = np.eye(len(M)) - np.linalg.pinv(passive, rcond=1e-10) @ passive
    a0, _ = slow.solve(M, C[~servo], F, Gamma[~servo])
    half = np.linalg.solve(L, B)
    # u = U z with U an orthonormal basis of forces.
    U, s, Vt = np.linalg.svd(half, full_matrices=False)
    U, Vt = U[:, s > 1e-10 * s[0]], Vt[s > 1e-10 * s[0]] / s[s > 1e-10 * s[0], None]
    weighed = np.linalg.solve(L, C[servo].T).T
    z = np.linalg.pinv(weighed @ projector @ U, rcond=1e-10) @ (Gamma[servo] - C[servo] @ a0)
    return a0 + np.linalg.solve(L.T, projector @ U @ z), Vt.T @ z


@eqx.filter_jit
def controlled(formulation, equations):
    return formulation.solve(equations), formulation.control(equations)


class TestActuators:
    def state(self, system):
        rng = np.random.default_rng(3)
        q = system.retract(system.reference_q, jnp.asarray(rng.normal(size=9)))
        q = jm.assemble(system, q).q
        return *jm.consistent_state(system, q, jnp.asarray(rng.normal(size=9))), 0.7

    @pytest.mark.parametrize(
        "motors", representatives_at([[0, 1, 2], [1, 2], [0, 2], "all", "twice"], 1, 4)
    )
    def test_against_dense_algebra(self, motors):
        system = arm()
        q, v, t = self.state(system)
        B = np.array(torques(q, v, t))
        if motors == "all":
            B = np.eye(9)
        elif motors == "twice":
            B = np.concatenate([B, 3.0 * B[:, :2]], axis=1)
        else:
            B = B[:, motors]
        equations = system.equations(q, v, t)
        a, u = by_dense_algebra(system, B, q, v, t)
        # One program for all: an actuator more that can do nothing does nothing.
        padded = np.pad(B, ((0, 0), (0, 9 - B.shape[1])))
        found, control = controlled(jm.formulations.ServoControl(padded), equations)
        assert bool(found.result == jm.results.RESULTS.successful)
        np.testing.assert_allclose(found.acceleration, a, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(control.values[: len(u)], u, rtol=1e-8, atol=1e-8)
        np.testing.assert_allclose(control.values[len(u) :], 0.0, atol=1e-12)
        # Newton's equations, with what the actuators do beside the forces.
        C = np.array(equations.descriptor.constraint_matrix())
        M = np.array(system.mass_matrix(q))
        left = equations.force + B @ u - M @ a - C.T @ np.array(found.multipliers)
        np.testing.assert_allclose(left, 0.0, atol=1e-8)
        np.testing.assert_array_equal(found.multipliers[-2:], 0.0)
        if motors == "all":
            ideal = jm.formulations.MinimumNorm().solve(equations)
            np.testing.assert_allclose(ideal.acceleration, found.acceleration, atol=1e-8)
            # The same force, but for what the hinges would carry of it.
            more = B @ u + C[-2:].T @ np.array(ideal.multipliers[-2:])
            carried = np.linalg.lstsq(C[:-2].T, more, rcond=None)[0]
            np.testing.assert_allclose(C[:-2].T @ carried, more, atol=1e-8)

    def test_names(self):
        system = arm()
        q, v, t = self.state(system)
        equations = system.equations(q, v, t)
        by_name = jm.formulations.ServoControl(("link 0.angular_velocity", "link 2"))
        columns = np.eye(9)[:, [2, 6, 7, 8]]
        np.testing.assert_array_equal(by_name._matrix(equations), columns)
        assert jm.formulations.ServoControl(columns).actuated(system.structure) == ()
        names = [info.name for info in by_name.actuated(system.structure)]
        assert names[0] == "link 0.angular_velocity"
        assert names[1:] == [
            f"link 2.{x}" for x in ("velocity.x", "velocity.y", "angular_velocity")
        ]

    def test_that_cannot_do_it(self):
        """One motor cannot lead a tip along two directions, nor can a force at a hinge."""
        system = arm()
        q, v, t = self.state(system)
        equations = system.equations(q, v, t)
        one = jnp.pad(torques(q, v, t)[:, :1], ((0, 0), (0, 8)))
        found, _ = controlled(jm.formulations.ServoControl(one), equations)
        assert bool(found.result == jm.results.RESULTS.servo_not_attainable)

    @pytest.mark.thorough
    def test_along_a_motion(self):
        system = arm()
        q = jm.assemble(system, system.reference_q.at[jnp.array([2, 5, 8])].set([0.8, -0.3, 0.5])).q
        formulation = jm.formulations.ServoControl(torques, limits=[60.0, 1e3, 1e3])
        motion = jm.simulate(
            system, q, jnp.zeros(9), 0.4, every=0.05, formulation=formulation, **TIGHT
        )
        errors = np.array(jax.vmap(system.servo_error)(motion.q, motion.v, motion.times))[:, -2:]
        expected = errors[0] * np.exp(-np.array(motion.times) / 0.3)[:, None]
        np.testing.assert_allclose(errors, expected, atol=1e-9)
        found = jm.controls(motion, formulation)
        for k in (0, 4, 8):
            state = motion.q[k], motion.v[k], motion.times[k]
            a, u = by_dense_algebra(system, np.array(torques(*state)), *state)
            np.testing.assert_allclose(found.values[k], u, rtol=1e-8)
            np.testing.assert_allclose(motion.acceleration[k], a, atol=1e-8)
        assert found.names == ("1", "2", "3")
        np.testing.assert_array_equal(found.exceeded[:, 1:], False)
        assert bool(found.exceeded[:, 0].any())
        assert "more than its limit of 60 in" in str(found)
        np.testing.assert_array_equal(found.of("2"), found.values[:, 1])
        # Whoever asks with the ideal force is told that this motion had another.
        with pytest.raises(ValueError, match="made by actuators"):
            jm.controls(motion)
        assert bool(jnp.isnan(eqx.filter_jit(lambda m: jm.controls(m).values)(motion)).all())


class TestContradictions:
    @pytest.mark.thorough
    def test_of_a_servo_and_a_joint(self):
        """What a joint forbids cannot be wanted; that no formulation meets it is told, by name."""
        want = jm.generalized.ServoConstraint(
            jm.generalized.VelocityConstraint(lambda q, v, t: v[0] - 1.0), 0.1
        )
        hold = jm.generalized.PositionConstraint(lambda q, t: q[0])
        system = free({"hold": hold, "want": want})
        assert not bool(
            jm.formulations.ServoControl(("x",)).control(system.equations(NONE, NONE, 0.0)).attained
        )
        with pytest.raises(jm.SimulationError, match=r"they contradict .* asked for: 'want'"):
            jm.simulate(system, NONE, NONE, 1.0)
        # The same joint lets it pass where the servo wants what it does anyway.
        still = jm.generalized.ServoConstraint(
            jm.generalized.VelocityConstraint(lambda q, v, t: v[0]), 0.1
        )
        system = free({"hold": hold, "want": still}, force=np.array([3.0, 1.0]))
        found = jm.runs.solve_with_friction(
            system, NONE, NONE, 0.0, formulation=jm.formulations.MinimumNorm()
        )
        assert bool(found.result == jm.results.RESULTS.successful)
        np.testing.assert_allclose(found.acceleration, [0.0, 0.5], atol=1e-12)

    def test_a_direction_that_a_motor_has_not(self):
        """The tip of an arm that lies along x cannot be pulled along x about its hinge; rounding of
        sine and cosine is no way to do it."""
        body = planar.Body("arm", mass=2.0, inertia=0.1, position=(0.5, 0.1), angle=0.3)
        pin = planar.Revolute("pin", ("ground", "arm"), (0.0, 0.1))
        tip = planar.Velocity(
            "tip", lambda f, w, t: w[0].linear[:1] - 0.2, [("arm", (1.0, 0.1 + 1e-16))]
        )
        system = jm.MultibodySystem([body], [pin, jm.Servo(tip, 0.1)])
        motor = jm.formulations.ServoControl(("arm.angular_velocity",))
        control = jax.jit(lambda q, v: motor.control(system.equations(q, v, 0.0)))
        found = control(system.reference_q, jnp.zeros(3))
        assert not bool(found.attained)
        np.testing.assert_allclose(found.values, 0.0, atol=1e-12)


class Solved(eqx.Module):
    """Accelerations and controls as a function of P and of masses."""

    formulation: jm.formulations.AbstractFormulation

    def __call__(self, numbers):
        constant, mass = numbers
        rate = generalized.RateCondition("r", "b", lambda q, v, t: 0.3 * v[0] * v[1] + v[0] - 1.0)
        body = generalized.Body(
            "b",
            ("x", "y"),
            mass_matrix=mass * jnp.array([[2.0, 0.3], [0.3, 1.0]]),
            force=lambda q, v, t: jnp.stack([q[1], -5.0 * q[0]]),
        )
        system = jm.MultibodySystem([body], [jm.Servo(rate, constant)])
        state = jnp.array([0.1, 0.2]), jnp.array([0.3, 0.1]), 0.0
        found = self.formulation.solve(system.equations(*state))
        return jnp.concatenate([found.acceleration, found.multipliers])


@pytest.mark.thorough
def test_derivatives():
    """Forward, reverse and by differences, in P and in masses; a batch is one program."""
    solved, at = Solved(jm.formulations.ServoControl(("b.x",))), jnp.array([0.3, 1.2])
    direction, weight = jnp.array([1.0, 0.7]), jnp.array([0.4, -1.0, 0.6])
    found = slopes(solved, at, direction, weight)
    values = eqx.filter_vmap(solved)(at[None] + 2e-3 * np.outer(NODES, direction))
    np.testing.assert_allclose(found.pushed, difference(values, 2e-3), rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(found.pulled @ direction, weight @ found.pushed, rtol=1e-9)
