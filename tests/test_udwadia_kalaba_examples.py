"""The examples of the review of Zhao et al. (2018, section 8): spiral, swarm and manipulator,
against closed forms and against the printed equations, integrated by SciPy."""

import functools
from typing import Any, NamedTuple

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from derivative_checks import check
from refusing import assert_says, refusal
from scipy.integrate import solve_ivp
from test_command_line import document_of, run

import jaxmbs as jm
from jaxmbs import generalized, mechanisms
from jaxmbs.plot import draw_mechanism


GRAVITY = 9.81
# Steps of an integration by each of both programs, far below what is compared.
STEPS = {"rtol": 1e-12, "atol": 1e-12}
EXACT = {"rtol": 1e-13, "atol": 1e-13, "method": "DOP853"}


def moved(
    model: jm.Model, times: np.ndarray, *, push: Any = 0.0, **how: Any
) -> jm.results.Trajectory:
    """The motion from the model's start, with a velocity added to that of each coordinate."""
    system = model.system()
    v = system.initial_v + push
    how = STEPS | {"times": times, "monitor": False} | how
    return jm.simulate(system, system.reference_q, v, times[-1], **how)


def accelerations(system: jm.AbstractSystem, found: jm.results.Trajectory) -> np.ndarray:
    """What the system alone says of M dv/dt = F at the states of a motion."""
    states = (found.q, found.v, found.times)
    force = jax.vmap(system.force)(*states)
    return np.asarray(jax.vmap(jnp.linalg.solve)(jax.vmap(system.mass_matrix)(found.q), force))


# ---------------------------------------------------------------------------------------------
# The spiral (section 8.1)
# ---------------------------------------------------------------------------------------------

WHOLE = np.linspace(0.0, 30.0, 61)


@functools.cache
def spiral(*, acceleration_level: bool) -> jm.results.Trajectory:
    model = mechanisms.spiral(acceleration_level=acceleration_level)
    # With these steps the drift is that of the integration, not rounding.
    return moved(model, WHOLE, **({"rtol": 1e-8, "atol": 1e-10} if acceleration_level else {}))


def errors(found: jm.results.Trajectory) -> np.ndarray:
    """epsilon_1 and epsilon_2 (eqs. 58 and 59)."""
    (r, theta), (dr, dtheta), t = found.q.T, found.v.T, found.times
    grown = np.exp(0.1 * theta)
    first = np.hypot(r - grown, theta + t - 30)
    return np.stack([first, np.hypot(dr - 0.1 * grown * dtheta, dtheta + 1)])


class TestSpiral:
    def test_start_is_that_of_the_source(self):
        system = mechanisms.spiral().system()
        assert np.allclose(system.reference_q, [np.exp(3), 30], rtol=1e-15)
        assert np.allclose(system.initial_v, [-0.1 * np.exp(3), -1], rtol=1e-15)

    def test_free_motion_is_the_printed_one(self, rng):
        """Eq. 52 divides the second equation of M = diag(m, m r^2) by m r^2."""
        system = mechanisms.spiral(mass=2.5).system()
        (r, theta), (dr, dtheta) = q, v = rng.uniform(1.0, 3.0, (2, 2))
        free = [
            r * dtheta**2 - GRAVITY * np.sin(theta),
            (-2 * dr * dtheta - GRAVITY * np.cos(theta)) / r,
        ]
        mass = system.mass_matrix(jnp.asarray(q))
        assert np.allclose(mass, 2.5 * np.diag([1, r**2]), rtol=1e-15)
        force = system.force(jnp.asarray(q), jnp.asarray(v), 0.0)
        assert np.allclose(mass @ np.asarray(free), force, rtol=1e-13)

    def test_motion_is_the_exact_one(self):
        found = spiral(acceleration_level=False)
        exact = 30 - WHOLE
        places = np.stack([np.exp(0.1 * exact), exact], axis=1)
        rates = np.stack([-0.1 * places[:, 0], np.full(61, -1.0)], axis=1)
        assert np.max(np.abs(found.q - places)) < 1e-9
        assert np.max(np.abs(found.v - rates)) < 1e-9
        assert np.max(errors(found)) < 1e-12

    @pytest.mark.thorough
    def test_without_projection_it_drifts(self):
        """By the steps' tolerance of 1e-8, of numbers up to thirty, where projection leaves
        rounding."""
        drift = np.max(errors(spiral(acceleration_level=True)))
        assert 100 * np.max(errors(spiral(acceleration_level=False))) < drift < 1e-7

    def test_both_forms_ask_for_the_same(self, rng):
        """Eq. 55 is the second derivative of eq. 53, also off the spiral."""
        q, v = jnp.asarray(rng.uniform(1.0, 3.0, (2, 2)))
        rows = []
        for flat in (False, True):
            system = mechanisms.spiral(0.2, acceleration_level=flat).system()
            matrix = system.constraint_matrix(q, v, 0.7)
            rows.append(np.column_stack([matrix, system.acceleration_offset(q, v, 0.7)]))
        assert np.allclose(rows[0], rows[1], rtol=1e-13, atol=1e-15)

    def test_generalized_constraint_force(self):
        """Q = M dv/dt - F on the exact motion; the printed one, of M = diag(m, m), is M^-1 of
        it, as A is square (eq. 56)."""
        found = spiral(acceleration_level=False)
        theta = 30 - WHOLE
        r = np.exp(0.1 * theta)
        dr, ddr = -0.1 * r, 0.01 * r
        radial = ddr - r + GRAVITY * np.sin(theta)
        moment = -2 * r * dr + GRAVITY * r * np.cos(theta)
        reactions = found.reactions()
        total = -sum(np.asarray(reactions.generalized(name)) for name in ("path", "drive"))
        # Of twenty metres' weight: rounding, and errors of the state of 1e-12.
        assert np.allclose(total, np.stack([radial, moment], axis=1), rtol=0, atol=1e-9)
        assert np.allclose(
            found.acceleration - accelerations(found.system, found),
            np.stack([radial, moment / r**2], axis=1),
            rtol=0,
            atol=1e-9,
        )
        matrix = np.stack([np.ones(61), -0.1 * r], axis=1)
        # Only the path has a share along r.
        assert np.allclose(reactions.generalized("path"), -radial[:, None] * matrix, atol=1e-9)
        assert np.asarray(reactions.unique("drive")).all()

    def test_new_numbers_are_no_new_program(self):
        traces = []

        @eqx.filter_jit
        def offset(system):
            traces.append(1)
            return system.acceleration_offset(system.reference_q, system.initial_v, 0.0)

        for growth, speed, mass in ((0.1, 1.0, 1.0), (0.2, 3.0, 4.0)):
            gamma = offset(mechanisms.spiral(growth, speed, mass).system())
            assert np.isclose(gamma[0], growth**2 * np.exp(30 * growth) * speed**2, rtol=1e-13)
        assert len(traces) == 1


# ---------------------------------------------------------------------------------------------
# The swarm (section 8.2)
# ---------------------------------------------------------------------------------------------

TIME_CONSTANT = 0.5
LATER = np.linspace(0.0, 4.0, 81)
# As the sum of the wanted velocities is zero, and so that of the chosen start, the sum of the
# positions would not move.
PUSH = np.array([0.3, -0.2])


@functools.cache
def swarm(time_constant: float | None) -> jm.results.Trajectory:
    return moved(mechanisms.swarm(time_constant), LATER, push=np.tile(PUSH, 5))


def printed(q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """phi_i (eq. 62) and beta_i (eq. 65), robot by robot."""
    phi, beta = np.zeros((5, 2)), np.array(v)
    for i in range(5):
        for j in range(5):
            if j == i:
                continue
            (x, y), (u, w) = q[i] - q[j], v[i] - v[j]
            distance = np.sqrt(x**2 + y**2)
            slope = 0.5 * distance**-3 * (x * u + y * w)
            phi[i] -= np.array([u, w]) * (1 - 0.5 / distance) + np.array([x, y]) * slope
            beta[i] += np.array([x, y]) * (1 - 0.5 / distance)
    return phi, beta


@functools.cache
def printed_motion(time_constant: float | None) -> np.ndarray:
    """Positions (81, 5, 2) by SciPy."""
    system = mechanisms.swarm().system()
    decay = 0.0 if time_constant is None else 1 / time_constant

    def slope(t, y):
        q, v = y.reshape(2, 5, 2)
        phi, beta = printed(q, v)
        return np.concatenate([v.ravel(), (phi - decay * beta).ravel()])

    start = np.concatenate([system.reference_q, system.initial_v + np.tile(PUSH, 5)])
    return solve_ivp(slope, (0, 4), start, t_eval=LATER, **EXACT).y[:10].T.reshape(-1, 5, 2)


def deviations(found: jm.results.Trajectory) -> np.ndarray:
    """beta (n, 10) of the printed formula."""
    pairs = zip(found.q.reshape(-1, 5, 2), found.v.reshape(-1, 5, 2), strict=True)
    return np.stack([printed(np.asarray(q), np.asarray(v))[1].ravel() for q, v in pairs])


def least_distance(places: np.ndarray) -> float:
    """Between any two robots, over a motion (n, 5, 2)."""
    i, j = np.triu_indices(5, 1)
    return float(np.min(np.linalg.norm(places[:, i] - places[:, j], axis=-1)))


class TestSwarm:
    def test_start_has_half_of_the_wanted_velocities(self):
        system = mechanisms.swarm().system()
        q, v = (np.asarray(x).reshape(5, 2) for x in (system.reference_q, system.initial_v))
        # beta = v - w with v = w / 2.
        assert np.allclose(printed(q, v)[1], -v, rtol=0, atol=1e-14)

    def test_error_is_the_printed_one(self, rng):
        system = mechanisms.swarm().system()
        q, v = rng.normal(size=(2, 10))
        beta = printed(q.reshape(5, 2), v.reshape(5, 2))[1].ravel()
        found = system.servo_error(jnp.asarray(q), jnp.asarray(v), 0.0)
        assert np.allclose(found, beta, rtol=0, atol=1e-13)

    def test_the_printed_law_keeps_the_error(self):
        beta = deviations(swarm(None))
        assert np.max(np.abs(beta[0])) > 1.0
        # Steps of 1e-12 of what is of order one, about a hundred of them.
        assert np.max(np.abs(beta - beta[0])) < 1e-10

    @pytest.mark.thorough
    def test_the_servo_law_lets_it_decay(self):
        beta = deviations(swarm(TIME_CONSTANT))
        wanted = np.exp(-LATER / TIME_CONSTANT)[:, None] * beta[0]
        assert np.max(np.abs(beta - wanted)) < 1e-10

    @pytest.mark.parametrize("time_constant", [None, TIME_CONSTANT])
    @pytest.mark.thorough
    def test_sum_of_positions(self, time_constant):
        """The wanted velocities of two robots towards each other are opposite: the sum of beta is
        that of the velocities, and obeys the law of the error."""
        found = np.asarray(swarm(time_constant).q).reshape(-1, 5, 2).sum(axis=1)
        rate = 5 * PUSH
        passed = LATER
        if time_constant is not None:
            passed = time_constant * (1 - np.exp(-LATER / time_constant))
        assert np.max(np.abs(found - found[0] - passed[:, None] * rate)) < 1e-10

    @pytest.mark.parametrize("time_constant", [None, TIME_CONSTANT])
    @pytest.mark.thorough
    def test_motion_of_the_printed_equations(self, time_constant):
        places = np.asarray(swarm(time_constant).q).reshape(-1, 5, 2)
        expected = printed_motion(time_constant)
        assert np.max(np.abs(places - expected)) < 1e-9
        assert np.isclose(least_distance(places), least_distance(expected), rtol=0, atol=1e-9)
        # No two robots meet.
        assert least_distance(expected) > 0.1

    def test_control_is_mass_times_acceleration(self):
        """Nothing else acts; each servo pushes its own robot alone."""
        found = swarm(TIME_CONSTANT)
        reactions = found.reactions()
        for k in range(5):
            own = slice(2 * k, 2 * k + 2)
            force = -np.asarray(reactions.generalized(f"control {k + 1}"))
            assert np.allclose(force[:, own], 2.0 * found.acceleration[:, own], atol=1e-10)
            assert np.max(np.abs(np.delete(force, own, axis=1))) == 0.0

    def test_new_numbers_are_no_new_program(self):
        traces = []

        @eqx.filter_jit
        def error(system):
            traces.append(1)
            return system.servo_error(system.reference_q, system.initial_v, 0.0)

        for numbers in ((0.5, 2.0, 1.0, 0.5), (1.5, 1.0, 2.0, 0.1)):
            constant, mass, attraction, repulsion = numbers
            system = mechanisms.swarm(
                constant, mass, attraction=attraction, repulsion=repulsion
            ).system()
            assert np.allclose(error(system), -system.initial_v, rtol=0, atol=1e-13)
        assert len(traces) == 1


# ---------------------------------------------------------------------------------------------
# The manipulator (section 8.3)
# ---------------------------------------------------------------------------------------------

CONSTANTS = (0.2, 0.5, 1.0)
TIMES = np.linspace(0.0, 4.0, 41)


@functools.cache
def manipulators() -> jm.results.Trajectory:
    """A batch of three motions."""

    @eqx.filter_jit
    def motions(constants):
        return jax.vmap(
            lambda p: moved(mechanisms.flexible_joint_manipulator(p), TIMES, throw=False)
        )(constants)

    found = motions(jnp.asarray(CONSTANTS))
    assert np.asarray(found.reached).all()
    return found


class Standard(NamedTuple):
    """The standard model, by hand: D, h = C v1 + G + K (q1 - q2), and K (q1 - q2)."""

    inertia: np.ndarray
    rest: np.ndarray
    springs: np.ndarray


def standard(q: np.ndarray, v: np.ndarray) -> Standard:
    m1 = m2 = l1 = i1 = i2 = stiffness = 1.0
    lc1 = lc2 = 0.5
    c, s = np.cos(q[1]), np.sin(q[1])
    d22 = m2 * lc2**2 + i2
    d12 = m2 * (lc2**2 + l1 * lc2 * c) + i2
    d11 = m2 * (l1**2 + lc2**2 + 2 * l1 * lc2 * c) + m1 * lc1**2 + i1 + i2
    # The text prints m1 in c11.
    c11 = -m2 * l1 * lc2 * s * v[1]
    c12 = -m2 * l1 * lc2 * s * (v[0] + v[1])
    c21 = m2 * l1 * lc2 * s * v[0]
    second = m2 * lc2 * GRAVITY * np.sin(q[0] + q[1])
    gravity = [(m1 * lc1 + m2 * l1) * GRAVITY * np.sin(q[0]) + second, second]
    springs = stiffness * (q[:2] - q[2:])
    rest = np.array([[c11, c12], [c21, 0.0]]) @ v[:2] + gravity + springs
    return Standard(np.array([[d11, d12], [d12, d22]]), rest, springs)


def control(q: np.ndarray, v: np.ndarray, constant: float, along: Any = (1.0, 1.0)) -> np.ndarray:
    """The force on the links, in this direction, with which d(beta)/dt = -beta / P."""
    model, row = standard(q, v), np.ones(2)
    inverse = np.linalg.inv(model.inertia)
    wanted = row @ inverse @ model.rest - (v[0] + v[1]) / constant
    return np.asarray(along) * wanted / (row @ inverse @ np.asarray(along))


SECOND = jm.formulations.ServoControl(["manipulator.link 2"])


@eqx.filter_jit
def acted(system: jm.MultibodySystem, chosen: jm.formulations.ServoControl, q: Any, v: Any) -> Any:
    """What the actuators do, and the accelerations."""
    equations = system.equations(q, v, 0.0)
    return chosen.control(equations), chosen.solve(equations)


@functools.cache
def by_hand(constant: float) -> np.ndarray:
    """(41, 9): q, v and the work of the control, by SciPy."""

    def slope(t, y):
        q, v = y[:4], y[4:8]
        model, force = standard(q, v), control(q, v, constant)
        links = np.linalg.solve(model.inertia, force - model.rest)
        return np.concatenate([v, links, model.springs, [force @ v[:2]]])

    start = [0, 0, 0, 0, 1.0, -0.1, 0, 0, 0]
    return solve_ivp(slope, (0, 4), start, t_eval=TIMES, **EXACT).y.T


class TestManipulator:
    def test_equations_are_the_standard_model(self, rng):
        system = mechanisms.flexible_joint_manipulator().system()
        q, v = rng.normal(size=(2, 4))
        model = standard(q, v)
        mass = system.mass_matrix(jnp.asarray(q))
        assert np.allclose(mass[:2, :2], model.inertia, rtol=1e-13)
        assert np.allclose(mass[2:], np.eye(4)[2:], rtol=0, atol=0)
        force = system.force(jnp.asarray(q), jnp.asarray(v), 0.0)
        assert np.allclose(force, np.concatenate([-model.rest, model.springs]), rtol=1e-12)

    @pytest.mark.parametrize("case", range(3))
    @pytest.mark.thorough
    def test_error_decays(self, case):
        beta = np.asarray(manipulators().v[case, :, :2]).sum(axis=1)
        assert np.max(np.abs(beta - 0.9 * np.exp(-TIMES / CONSTANTS[case]))) < 1e-10

    @pytest.mark.parametrize("case", range(3))
    def test_motion_of_the_equations_by_hand(self, case):
        found, expected = manipulators(), by_hand(CONSTANTS[case])
        assert np.max(np.abs(found.q[case] - expected[:, :4])) < 1e-8
        assert np.max(np.abs(found.v[case] - expected[:, 4:8])) < 1e-8
        # In less than two seconds, the source says of its own constant, which it leaves out.
        assert np.abs(expected[20, 4] + expected[20, 5]) < 0.13

    def test_power_of_the_control(self):
        """Its work is all that changes the energy: of the links, the motors, gravity and the
        springs."""
        found = manipulators()
        q, v = found.q[1], found.v[1]
        system = mechanisms.flexible_joint_manipulator().system()
        energy = np.sum(jax.vmap(lambda q, v: jnp.stack(system.energy(q, v, 0.0)))(q, v), axis=1)
        work = by_hand(CONSTANTS[1])[:, 8]
        assert np.max(np.abs(work)) > 0.1
        assert np.max(np.abs(energy - energy[0] - work)) < 1e-8

    @pytest.mark.parametrize(
        ("actuators", "along"),
        [
            (["manipulator.link 1", "manipulator.link 2"], (1.0, 1.0)),
            (np.eye(4)[:, [0, 2]], (1.0, 0.0)),
            (np.eye(4)[:, [1, 2]], (0.0, 1.0)),
            (np.array([[0.5, 0.0], [2.0, 0.0], [0.0, 1.0], [0.0, 1.0]]), (0.5, 2.0)),
        ],
    )
    def test_chosen_actuators(self, actuators, along):
        """That of both links is the ideal force; motors do not help."""
        system = mechanisms.flexible_joint_manipulator().system()
        q, v = np.array([0.3, -0.7, 0.2, 0.5]), np.array([0.4, 0.9, -0.3, 0.2])
        found, solved = acted(
            system, jm.formulations.ServoControl(actuators), jnp.asarray(q), jnp.asarray(v)
        )
        force = control(q, v, 0.5, along)
        assert np.allclose(found.force, [*force, 0, 0], rtol=1e-12, atol=1e-12)
        assert bool(found.attained)
        assert solved.result == jm.results.RESULTS.successful
        model = standard(q, v)
        links = np.linalg.solve(model.inertia, force - model.rest)
        assert np.allclose(solved.acceleration[:2], links, rtol=1e-11)
        assert np.isclose(links.sum(), -(0.4 + 0.9) / 0.5, rtol=1e-12)

    def test_motors_alone_cannot(self):
        """Between a motor and its link is a spring: no acceleration of a link depends on the force
        of a motor at that time."""
        system = mechanisms.flexible_joint_manipulator().system()
        q, v = system.reference_q, system.initial_v
        found, solved = acted(system, jm.formulations.ServoControl(np.eye(4)[:, 2:]), q, v)
        assert solved.result == jm.results.RESULTS.servo_not_attainable
        # What is left is all that is asked for, beta / P, as the start has no other acceleration of
        # the links; in units of the root of A D^-1 A^T.
        inverse = np.linalg.inv(standard(np.asarray(q), np.asarray(v)).inertia)
        assert np.isclose(abs(found.left[0]), 0.9 / 0.5 / np.sqrt(inverse.sum()), rtol=1e-12)

    def test_controls_along_the_motion(self):
        """Of the ideal force, and of what link 2 alone would have to do at the same states."""
        whole = manipulators()
        found = jax.tree.map(lambda x: x[1], eqx.filter(whole, eqx.is_array))
        found = eqx.combine(found, whole)
        pairs = list(zip(np.asarray(found.q), np.asarray(found.v), strict=True))
        for formulation, along in ((None, (1.0, 1.0)), (SECOND, (0.0, 1.0))):
            expected = [control(q, v, 0.5, along)[1] for q, v in pairs]
            values = jm.controls(found, formulation).values[:, 0]
            # Of the motion as it is, whose states are exact to 1e-9.
            assert np.allclose(values, expected, rtol=0, atol=1e-9)

    @pytest.mark.thorough
    def test_derivatives_of_the_end(self):
        """By P and both stiffnesses, of the state at the end and of beta, which has a closed
        form."""
        end = 0.5

        def state(x):
            system = mechanisms.flexible_joint_manipulator(x[0], x[1:]).system()
            found = jm.simulate(
                system,
                system.reference_q,
                system.initial_v,
                end,
                solver=diffrax.Tsit5(),
                controller=diffrax.ConstantStepSize(),
                first_step=0.05,
                adjoint=diffrax.DirectAdjoint(),
                max_steps=16,
                monitor=False,
                throw=False,
            )
            return jnp.concatenate([found.q[-1], found.v[-1], found.v[-1, :2].sum()[None]])

        slopes = check(state, np.array([0.5, 1.0, 1.5]), np.eye(3))
        # Of beta: 0.9 t / P^2 exp(-t / P) by P, and none by the stiffness. Tsit5's error of the
        # fifth order at steps of a tenth of P.
        expected = 0.9 * end / 0.5**2 * np.exp(-end / 0.5)
        assert np.allclose(slopes[:, 8], [expected, 0.0, 0.0], rtol=0, atol=1e-6)


# ---------------------------------------------------------------------------------------------
# What they refuse, and the command line
# ---------------------------------------------------------------------------------------------


class TestCommandLine:
    @pytest.mark.parametrize(
        ("name", "counts"),
        [
            ("spiral", [2, 2, 2, 0]),
            ("swarm", [10, 10, 10, 0]),
            ("flexible-joint-manipulator", [4, 1, 1, 3]),
        ],
    )
    def test_analyze(self, name, counts):
        found = document_of(run("analyze", name, "--json"))
        keys = ("coordinates", "constraints", "rank", "mobility")
        assert [found[key] for key in keys] == counts
        assert all(joint["unique"] for joint in found["joints"])
        assert found["remark"].startswith("Chosen")

    @pytest.mark.parametrize(
        ("name", "what"),
        [
            ("spiral", "'particle' is given by functions"),
            ("swarm", "'robot 1' is a particle"),
            ("flexible-joint-manipulator", "'manipulator' is given by functions"),
        ],
    )
    def test_they_are_no_model_files(self, name, what):
        sentence = refusal("export", name)
        assert_says(sentence, name, "cannot be written as a model file", what)

    @pytest.mark.thorough
    def test_simulate_on_coordinates(self):
        found = document_of(run("simulate", "flexible-joint-manipulator", "--end", "1", "--json"))
        assert list(found["bodies"]["manipulator"])[:2] == ["link 1", "link 1.rate"]
        expected = by_hand(0.5)[10]
        assert found["bodies"]["manipulator"]["motor 2"] == pytest.approx(expected[3], abs=1e-7)
        assert found["servo_error"]["initial"] == pytest.approx(0.9, abs=1e-15)
        assert found["servo_error"]["final"] == pytest.approx(0.9 * np.exp(-2), abs=1e-7)
        level = found["reactions"]["level"]
        force = control(expected[:4], expected[4:8], 0.5)[0]
        assert level["generalized"] == {
            "manipulator.link 1.rate": pytest.approx(-force, abs=1e-6),
            "manipulator.link 2.rate": pytest.approx(-force, abs=1e-6),
            "manipulator.motor 1.rate": 0.0,
            "manipulator.motor 2.rate": 0.0,
        }
        assert level["unique"] is True

    @pytest.mark.thorough
    def test_simulate_and_kinematics_in_words(self):
        text = run("simulate", "flexible-joint-manipulator", "--end", "1")
        assert_says(text, "motor 2", "coordinate", "unique", "servo error: 0.9 at the start")
        text = run("kinematics", "spiral", "--end", "1", "--every", "1")
        assert_says(text, "theta", "2.00855 at 0 s")

    def test_kinematics_needs_more_than_servos(self):
        sentence = refusal("kinematics", "swarm", "--end", "1", "--every", "1")
        assert_says(sentence, "'control 1'", "simulate")

    def test_pictures(self):
        for name, points in (("spiral", 1), ("swarm", 5), ("flexible-joint-manipulator", 2)):
            model = mechanisms.get(name)
            system = model.system()
            report = jm.analyze(system, system.reference_q, system.initial_v)
            figure = draw_mechanism(model, system, report, system.reference_q)
            assert len(figure.axes[0].texts) == points

    def test_what_has_no_place_is_not_drawn(self):
        body = generalized.Body("wheel", ("turn",), mass_matrix=[[1.0]])
        model = jm.Model("flywheel", 2, bodies=[body])
        other = mechanisms.spiral().system()
        report = jm.analyze(other, other.reference_q, other.initial_v)
        with pytest.raises(ValueError, match=r"nothing of 'flywheel' has a place.*frames="):
            draw_mechanism(model, model.system(), report, jnp.zeros(1))
