"""Mass matrices that are only positive semidefinite: the motion is that of the same mechanism in
proper coordinates, what nothing determines is named, and what needs M^-1 refuses."""

import functools

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import oracle_formulations as slow
import pytest
from derivative_checks import difference, NODES, slopes
from scipy.integrate import solve_ivp

import jaxmbs as jm
from jaxmbs import generalized, planar
from jaxmbs._dynamics._projection import project_velocity


solve = eqx.filter_jit(jm.runs.solve_with_friction)


G = 9.81
SEMIDEFINITE = jm.formulations.UdwadiaKalaba(semidefinite=True)


class Wheel(eqx.Module):
    """Mass (kg), radius (m) and moment of inertia (kg m^2), on an incline of 0.3 rad. All kinetic
    energy is written with the angle, which leaves the way without mass."""

    mass: jax.Array
    radius: jax.Array
    inertia: jax.Array

    def __call__(self, q):
        return jnp.diag(jnp.stack([0.0, self.mass * self.radius**2 + self.inertia]))


class Weight(eqx.Module):
    """Along the incline."""

    mass: jax.Array

    def __call__(self, q, v, t):
        return jnp.stack([self.mass * G * np.sin(0.3), 0.0])


class Rolls(eqx.Module):
    """Without slipping."""

    radius: jax.Array

    def __call__(self, q, v, t):
        return v[0] - self.radius * v[1]


def rolling_wheel(numbers):
    """Rolling down an incline (after Udwadia & Phohomsiri 2006)."""
    mass, radius, inertia = numbers
    return jm.GeneralizedSystem(
        ("way", "angle"),
        mass_matrix=Wheel(mass, radius, inertia),
        force=Weight(mass),
        constraints={"rolling": jm.generalized.VelocityConstraint(Rolls(radius))},
        lengths=("way",),
        semidefinite=True,
    )


@functools.cache
def rolled():
    """A run of one second as a function of the wheel's numbers: where it ends, and derivatives in
    both modes."""

    def end(numbers):
        mass, radius, inertia = numbers
        motion = jm.simulate(
            rolling_wheel((mass, radius, inertia)),
            jnp.zeros(2),
            jnp.stack([0.5, 0.5 / radius]),
            1.0,
            monitor=False,
            max_steps=4,
            first_step=0.25,
            solver=diffrax.Midpoint(),
            controller=diffrax.ConstantStepSize(),
            adjoint=diffrax.DirectAdjoint(),
            throw=False,
        )
        return jnp.concatenate([motion.q[-1], motion.v[-1], motion.multipliers[-1]])

    direction, weight = jnp.array([0.3, -0.2, 0.4]), jnp.array([1.0, 0.3, -0.5, 0.2, 0.7])
    return direction, weight, lambda numbers: slopes(end, numbers, direction, weight)


class TestWheel:
    """Constant accelerations: steps are exact up to rounding."""

    numbers = jnp.array([3.0, 0.4, 0.3])

    def closed_form(self, numbers):
        mass, radius, inertia = np.asarray(numbers)
        a = G * np.sin(0.3) / (1 + inertia / (mass * radius**2))
        way, speed = 0.5 + a / 2, 0.5 + a
        # Through the contact goes what turns the wheel: C^T lambda = F - M dv/dt.
        return np.array([way, way / radius, speed, speed / radius, mass * G * np.sin(0.3)])

    @pytest.mark.thorough
    def test_it_rolls_as_the_wheel_in_one_coordinate_does(self):
        found = rolled()[2](self.numbers)
        np.testing.assert_allclose(found.value, self.closed_form(self.numbers), rtol=1e-12)

    @pytest.mark.thorough
    def test_derivatives_forward_and_reverse(self):
        direction, weight, at = rolled()
        found, step = at(self.numbers), 1e-3
        expected = difference(
            [self.closed_form(self.numbers + x * step * direction) for x in NODES], step
        )
        # Truncation of the differences, of fourth order.
        np.testing.assert_allclose(found.pushed, expected, atol=1e-9)
        assert float(found.pulled @ direction) == pytest.approx(
            float(found.pushed @ weight), rel=1e-12
        )


@functools.cache
def spherical():
    """A bob of 2 kg on a string whose length is a coordinate without mass, given by time."""
    return jm.GeneralizedSystem(
        ("x", "y", "z", "length"),
        mass_matrix=lambda q: jnp.diag(jnp.array([2.0, 2.0, 2.0, 0.0])),
        force=lambda q, v, t: jnp.array([0.0, 0.0, -2.0 * G, 0.0]),
        constraints={
            "string": jm.generalized.PositionConstraint(
                lambda q, t: (q[:3] @ q[:3] - q[3] ** 2) / 2, quantity=generalized.LENGTH
            ),
            "winch": jm.generalized.PositionConstraint(
                lambda q, t: q[3] - 1.0 - 0.2 * jnp.sin(t), quantity=generalized.LENGTH
            ),
        },
        lengths=("x", "y", "z", "length"),
        semidefinite=True,
    )


def proper(direction, v, times):
    """The same in Cartesian coordinates on the sphere of that radius, by Lagrange's equations of
    the first kind with the multiplier in closed form."""

    def rate(t, y):
        p, u = y[:3], y[3:]
        r, dr, ddr = 1 + 0.2 * np.sin(t), 0.2 * np.cos(t), -0.2 * np.sin(t)
        free = np.array([0.0, 0.0, -G])
        # p.p = r^2 twice differentiated.
        factor = (dr**2 + r * ddr - u @ u - p @ free) / (p @ p)
        return np.concatenate([u, free + factor * p])

    start = np.concatenate([direction, v])
    return solve_ivp(rate, (0.0, times[-1]), start, "DOP853", times, rtol=1e-13, atol=1e-13).y.T


class TestSphericalPendulum:
    times = np.linspace(0.0, 3.0, 7)

    @functools.cached_property
    def starts(self):
        directions = np.array([[0.6, 0.0, -0.8], [0.0, 0.28, -0.96], [-0.36, 0.48, -0.8]])
        across = np.array([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.8, 0.6, 0.0]])
        q = np.column_stack([directions, np.ones(3)])
        # Along the string with it, and across.
        return q, np.column_stack([0.2 * directions + across, np.full(3, 0.2)])

    @pytest.mark.thorough
    def test_a_batch_moves_as_in_proper_coordinates(self):
        q, v = self.starts
        system = spherical()
        found = eqx.filter_vmap(
            lambda q, v: jm.simulate(
                system, q, v, 3.0, times=self.times, rtol=1e-12, atol=1e-12, throw=False
            )
        )(*map(jnp.asarray, (q, v)))
        assert bool(jnp.all(found.result == jm.results.RESULTS.successful))
        for k in range(3):
            expected = proper(q[k, :3], v[k, :3], self.times)
            np.testing.assert_allclose(found.q[k, :, :3], expected[:, :3], atol=1e-9)
            np.testing.assert_allclose(found.v[k, :, :3], expected[:, 3:], atol=1e-9)
        np.testing.assert_allclose(found.q[:, :, 3], [1 + 0.2 * np.sin(self.times)] * 3, atol=1e-11)
        # The winch pulls as the string does: (string's row of the length) + (winch's) = 0.
        pull = -found.q[:, :, 3] * found.multipliers[:, :, 0] + found.multipliers[:, :, 1]
        np.testing.assert_allclose(pull, 0.0, atol=1e-9)


@functools.cache
def crank():
    """A bob on a massless arm, which is a body in a coordinate of its own."""
    bob = planar.Body(
        "bob",
        mass=2.0,
        inertia=0.1,
        position=(0.5, 0.0),
        velocity=(0.0, 1.0),
        angular_velocity=2.0,
    )
    arm = generalized.Body(
        "arm",
        ["angle"],
        semidefinite=True,
        frames={"tip": tip},
        first_moment=nothing,
        velocity=[2.0],
    )
    weld = planar.Fixed("weld", ("arm.tip", "bob"), (0.5, 0.0))
    return jm.MultibodySystem([arm, bob], [weld], gravity=(0.0, -G))


def tip(q):
    return generalized.PlanarFrame(0.5 * jnp.stack([jnp.cos(q[0]), jnp.sin(q[0])]), q[0])


def nothing(q):
    return 0.0 * q[:1] * jnp.ones(2)


class TestMasslessArm:
    """A body without mass beside a rigid one."""

    def test_what_moves_and_what_holds(self):
        system = crank()
        q, v = system.reference_q, system.initial_v
        found = solve(system, q, v, 0.0)
        # A physical pendulum that passes the horizontal at 2 rad/s.
        turning = -2.0 * G * 0.5 / (0.1 + 2.0 * 0.5**2)
        expected = [turning, -0.5 * 2.0**2, 0.5 * turning, turning]
        np.testing.assert_allclose(found.acceleration, expected, atol=1e-12)
        # The weld carries the force that keeps the bob on its circle, and the torque that turns
        # it; the arm, which has no mass, needs none.
        held = system.constraint_matrix(q, v, 0.0).T @ found.multipliers
        needed = np.array([0.0, 2.0, 2.0, 0.1]) * expected - [0.0, 0.0, -2.0 * G, 0.0]
        np.testing.assert_allclose(-held, needed, atol=1e-12)

    def test_verdicts_know_nothing_of_mass(self):
        system = crank()
        q, v = system.reference_q, system.initial_v
        found = jm.analyze(system, q, v)
        assert bool(found.reaction_unique.unique[0])
        assert int(found.mobility) == 1

    @pytest.mark.thorough
    def test_consistent_velocities_stay_and_others_are_moved_onto_the_constraints(self):
        system = crank()
        q, v = system.reference_q, system.initial_v
        # An admissible velocity has no way to go, in whatever metric.
        np.testing.assert_allclose(project_velocity(system, q, v, 0.0).v, v, atol=1e-12)
        other = jnp.array([1.0, 0.3, 0.2, -0.5])
        moved = jm.consistent_state(system, q, other)
        np.testing.assert_allclose(system.velocity_residual(moved.q, moved.v, 0.0), 0.0, atol=1e-12)
        # M + m U^-2 with U the characteristic length and m the mean of the diagonal of U M U: the
        # nearest velocity in that metric, and so its derivative in both modes.
        unit = np.asarray(system.column_scale())
        mass = np.diag([0.0, 2.0, 2.0, 0.1])
        mass[0, 0] = np.mean(np.diag(mass) * unit**2) / unit[0] ** 2
        C = np.asarray(system.constraint_matrix(q, v, 0.0))
        inverse = np.linalg.inv(mass)
        projector = np.eye(4) - inverse @ C.T @ np.linalg.pinv(C @ inverse @ C.T) @ C
        np.testing.assert_allclose(moved.v, projector @ other, atol=1e-9)
        found = slopes(
            lambda x: project_velocity(system, q, x, 0.0).v, other, other, jnp.arange(4.0)
        )
        np.testing.assert_allclose(found.pushed, projector @ other, atol=1e-9)
        np.testing.assert_allclose(found.pulled, projector.T @ np.arange(4.0), atol=1e-9)

    def test_the_metric_is_a_pair_of_inverses_and_m_stays_singular(self):
        system = crank()
        equations = system.equations(system.reference_q, system.initial_v, 0.0)
        descriptor = equations.descriptor
        np.testing.assert_array_equal(np.diag(descriptor.mass_matrix()), [0.0, 2.0, 2.0, 0.1])
        metric, x = descriptor.metric(), jnp.arange(1.0, 5.0)
        np.testing.assert_allclose(metric.inverse_mass(metric.mass(x)), x, rtol=1e-14)
        assert descriptor.semidefinite
        assert not metric.semidefinite
        assert np.linalg.eigvalsh(metric.mass_matrix())[0] > 0


class TestQuestions:
    """Those that know M only as a metric are right, and those that need M^-1 refuse."""

    def test_equilibrium(self):
        system = crank()
        found = jm.equilibrium(system, system.retract(system.reference_q, -0.9 * ahead()))
        np.testing.assert_allclose(found.q, [-np.pi / 2, 0.0, -0.5, -np.pi / 2], atol=1e-9)
        np.testing.assert_allclose(found.residual, 0.0, atol=1e-9)

    @pytest.mark.thorough
    def test_generalized_alpha_is_of_second_order(self):
        q, v = (jnp.asarray(x[0]) for x in TestSphericalPendulum().starts)
        expected = proper(q[:3], v[:3], np.array([0.0, 0.5]))[-1]
        errors = []
        for step in (1e-2, 5e-3):
            end = jm.simulate(
                spherical(),
                q,
                v,
                0.5,
                solver=jm.runs.GeneralizedAlpha(),
                monitor=False,
                first_step=step,
            )
            errors.append(np.max(np.abs(end.q[-1, :3] - expected[:3])))
        assert errors[1] < 1e-4
        assert np.log2(errors[0] / errors[1]) == pytest.approx(2.0, abs=0.2)

    def test_comparing_takes_the_formulation_that_can(self):
        system = crank()
        found = jm.compare(system, system.reference_q, system.initial_v)
        assert found.formulations == (SEMIDEFINITE,)
        assert found.succeeded() == (True,)
        assert found.contradictions() == ()

    @pytest.mark.parametrize(
        "formulation", [jm.formulations.MinimumNorm(), jm.formulations.AugmentedLagrangian()]
    )
    def test_formulations_that_invert_refuse(self, formulation):
        system = crank()
        q, v = system.reference_q, system.initial_v
        said = f"{type(formulation).__name__} needs a positive definite .* arm.angle need only be"
        for ask in (
            lambda: jm.simulate(system, q, v, 1.0, formulation=formulation),
            lambda: jm.runs.solve_with_friction(system, q, v, 0.0, formulation=formulation),
            lambda: jm.inverse_dynamics(system, q, [0.0, 1.0], formulation=formulation),
            lambda: formulation.solve(system.equations(q, v, 0.0)),
            lambda: jm.compare(system, q, v, 0.0, [formulation]),
            lambda: jm.simulate(
                system, q, v, 1.0, formulation=jm.formulations.NonIdeal(formulation, jnp.zeros(4))
            ),
        ):
            with pytest.raises(ValueError, match=r"needs a positive definite .* arm.angle"):
                ask()
        with pytest.raises(ValueError, match=said):
            formulation.solve(system.equations(q, v, 0.0))

    def test_those_that_factor_m_fail_at_run_time(self):
        system = crank()
        equations = system.equations(system.reference_q, system.initial_v, 0.0)
        for formulation in (
            jm.formulations.Elimination(),
            jm.formulations.NullSpace(),
        ):
            found = eqx.filter_jit(formulation.solve)(equations)
            assert bool(found.result == jm.results.RESULTS.mass_matrix_not_definite)

    def test_small_motions_and_free_ones_refuse(self):
        system = crank()
        q, v = system.reference_q, system.initial_v
        with pytest.raises(ValueError, match=r"linearise needs a positive definite .* arm.angle"):
            jm.linearise(system, q, v)
        with pytest.raises(ValueError, match="floquet needs a positive definite"):
            jm.floquet(system, q, v, 1.0)
        with pytest.raises(ValueError, match="free_acceleration needs a positive definite"):
            system.free_acceleration(q, v, 0.0)

    def test_a_body_without_mass_has_to_say_so(self):
        arm = generalized.Body("arm", ["angle"])
        with pytest.raises(ValueError, match="or say semidefinite=True"):
            jm.MultibodySystem([arm])


def ahead():
    """Of the arm and the bob, along the motion at the start."""
    return jnp.array([1.0, 0.0, 0.5, 1.0])


class TestUndetermined:
    MASS = np.diag([2.0, 0.0, 0.0])

    def system(self, mass=MASS):
        return jm.GeneralizedSystem(
            ("x1", "gap", "x2"),
            mass_matrix=lambda q: jnp.asarray(mass),
            force=lambda q, v, t: jnp.array([1.0, 0.0, 0.0]),
            constraints={
                "distance": jm.generalized.PositionConstraint(lambda q, t: q[2] - q[0] - q[1])
            },
            lengths=("x1", "gap", "x2"),
            semidefinite=True,
        )

    def test_the_coordinates_are_named(self):
        system = self.system()
        found = jm.formulations.undetermined_accelerations(system, jnp.zeros(3), jnp.zeros(3))
        assert found.names == ("gap", "x2")
        assert len(found) == 1
        assert not found.indefinite
        C = system.constraint_matrix(jnp.zeros(3), jnp.zeros(3), 0.0)
        stacked = np.vstack([self.MASS, C])
        np.testing.assert_allclose(stacked @ found.directions, 0.0, atol=1e-14)
        assert "acceleration of 'gap', 'x2' in 1 combination" in str(found)
        solved = solve(system, jnp.zeros(3), jnp.zeros(3), 0.0)
        assert bool(solved.result == jm.results.RESULTS.acceleration_not_determined)
        assert "undetermined_accelerations" in jm.results.RESULTS[solved.result]

    def test_nothing_is_named_where_all_is_determined(self):
        system = self.system(np.diag([2.0, 0.0, 5.0]))
        found = jm.formulations.undetermined_accelerations(system, jnp.zeros(3), jnp.zeros(3))
        assert len(found) == 0
        assert found.names == ()
        assert 0.1 < float(found.singular_value) <= 1
        assert "All accelerations are determined" in str(found)

    def test_a_body_of_a_multibody_system(self):
        arm = generalized.Body("arm", ["angle"], semidefinite=True)
        bob = planar.Body("bob", mass=1.0, inertia=0.1, position=(0.0, 0.0))
        system = jm.MultibodySystem([arm, bob])
        found = jm.formulations.undetermined_accelerations(
            system, system.reference_q, system.initial_v
        )
        assert found.names == ("arm.angle",)

    def test_a_negative_mass_is_told_apart(self):
        system = self.system(np.diag([2.0, -1.0, 3.0]))
        found = jm.formulations.undetermined_accelerations(system, jnp.zeros(3), jnp.zeros(3))
        assert found.indefinite
        assert "negative eigenvalue" in str(found)

    def test_it_is_refused_for_traced_numbers(self):
        system = self.system()
        with pytest.raises(ValueError, match="call it outside of jit"):
            jax.jit(
                lambda q: (
                    jm.formulations.undetermined_accelerations(system, q, jnp.zeros(3)).directions
                )
            )(jnp.zeros(3))

    def test_a_run_that_loses_rank_on_the_way_names_what_is_lost(self):
        """x = sin s: at s = pi / 2 the row no longer holds s, which has no mass."""
        system = jm.GeneralizedSystem(
            ("x", "s"),
            mass_matrix=lambda q: jnp.diag(jnp.array([2.0, 0.0])),
            force=lambda q, v, t: jnp.array([1.0, 0.0]),
            constraints={
                "tie": jm.generalized.PositionConstraint(lambda q, t: q[0] - jnp.sin(q[1]))
            },
            lengths=("x",),
            semidefinite=True,
        )
        with pytest.raises(jm.SimulationError) as caught:
            jm.simulate(system, jnp.zeros(2), jnp.array([0.5, 0.5]), 4.0, every=0.5, monitor=False)
        motion = caught.value.trajectory
        # x = t / 2 + t^2 / 4 is 1 at sqrt(5) - 1.
        assert float(motion.times[-1]) == pytest.approx(np.sqrt(5) - 1, abs=1e-8)
        assert "Nothing determines the acceleration of 'x', 's'" in motion.message
        there, still = jnp.array([1.0, np.pi / 2]), jnp.zeros(2)
        assert jm.formulations.undetermined_accelerations(system, there, still).names == ("s",)
        ended = solve(system, there, still, 0.0)
        assert bool(ended.result == jm.results.RESULTS.acceleration_not_determined)


def test_nodes_whose_elements_leave_their_mass_singular():
    """A mass in the middle between two nodes: of their two coordinates their mean has mass alone.
    A row holds how far they are apart. Against dense algebra."""
    nodes = [
        generalized.Body(name, ["x"], lengths=["x"], semidefinite=True) for name in ("one", "two")
    ]
    middle = generalized.Element(
        "middle", ("one", "two"), mass_matrix=lambda q: 0.75 * jnp.ones((2, 2))
    )
    apart = generalized.Condition("apart", ("one", "two"), lambda q, t: q[1][0] - q[0][0] - t**2)
    push = generalized.Force("push", "one", lambda q, v, t: jnp.array([6.0]))
    system = jm.MultibodySystem(nodes, [apart], [], [push], elements=[middle])
    q, v = jnp.zeros(2), jnp.zeros(2)
    found = solve(system, q, v, 0.0)
    M, C = 0.75 * np.ones((2, 2)), np.array([[-1.0, 1.0]])
    expected = slow.semidefinite(M, C, np.array([6.0, 0.0]), np.array([2.0]))
    np.testing.assert_allclose(found.acceleration, expected, atol=1e-12)
    np.testing.assert_allclose(system.mass_matrix(q), M, atol=1e-15)
    metric = system.descriptor(q, v, 0.0).metric()
    x = jnp.array([0.3, -0.4])
    np.testing.assert_allclose(metric.inverse_mass(metric.mass(x)), x, rtol=1e-13)
    assert len(jm.formulations.undetermined_accelerations(system, q, v)) == 0


@pytest.mark.thorough
def test_friction_and_driving_forces_are_in_closed_form():
    """A wedge of no mass, in a coordinate of its own, which a motor moves to and fro, pushes a
    block over a rough floor."""
    wedge = generalized.Body(
        "wedge",
        ["way"],
        lengths=["way"],
        semidefinite=True,
        frames={"face": face},
        first_moment=nothing,
    )
    block = planar.Body("block", mass=2.0, inertia=0.1, position=(0.0, 0.0))
    slide = planar.Translational("slide", ("ground", "block"), (0.0, 0.0), (1.0, 0.0))
    push = planar.Translational("push", ("wedge.face", "block"), (0.0, 0.0), (0.0, 1.0))
    motor = jm.Driver("motor", "wedge", "way", jm.motions.Sine(amplitude=0.2, frequency=0.5))
    rub = jm.forces.CoulombFriction("rub", "slide", coefficient=0.3, velocity=0.01)
    system = jm.MultibodySystem([wedge, block], [slide, push], [motor], [rub], gravity=(0.0, -G))
    times = np.array([0.0, 0.2, 0.7])
    found = jm.inverse_dynamics(system, system.reference_q, times)
    assert bool(found.result == jm.results.RESULTS.successful)
    np.testing.assert_allclose(found.q[:, 0], 0.2 * np.sin(np.pi * times), atol=1e-12)
    # C^T lambda = F - M dv/dt along the way; it slides thirty times as fast as `velocity` and more.
    rubbing = -0.3 * 2.0 * G * np.sign(np.cos(np.pi * times))
    pull = rubbing + 2.0 * 0.2 * np.pi**2 * np.sin(np.pi * times)
    np.testing.assert_allclose(found.multipliers[:, -1], pull, atol=1e-9)


def face(q):
    return generalized.PlanarFrame(jnp.stack([q[0], 0.0 * q[0]]), 0.0 * q[0])
