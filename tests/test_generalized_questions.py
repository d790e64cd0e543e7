"""Every question asked of a model with a body in coordinates of its own."""

import equinox as eqx
import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
import pytest
import scipy.linalg
from test_generalized_body import (
    ANGLES,
    arm,
    CENTRE,
    G,
    INERTIA,
    LENGTH,
    LINKS,
    MASS,
    ROD,
    states,
    SWEEP,
    TIP,
)

import jaxmbs as jm
from jaxmbs import generalized, planar
from jaxmbs.io import load_trajectory, save_trajectory, write_model
from jaxmbs.plot import draw_mechanism


HINGE = planar.Revolute("T", ("arm.lower", "rod"), TIP)


def hanging():
    """Three links: two of them one body."""
    return jm.Model("three links", 2, bodies=(arm(), ROD), joints=(HINGE,), gravity=(0.0, -G))


def matrices():
    """M and the stiffness of three links that hang straight down, in their angles."""
    carried = [sum(MASS[j + 1 :]) for j in range(3)]
    m, k = np.zeros((3, 3)), np.zeros(3)
    for i in range(3):
        m[i, i] = INERTIA[i] + MASS[i] * CENTRE[i] ** 2 + carried[i] * LENGTH[i] ** 2
        k[i] = G * (MASS[i] * CENTRE[i] + carried[i] * LENGTH[i])
        for j in range(i + 1, 3):
            m[i, j] = m[j, i] = LENGTH[i] * (MASS[j] * CENTRE[j] + carried[j] * LENGTH[j])
    return m, np.diag(k)


@pytest.mark.thorough
def test_equilibrium_and_small_motions():
    system = hanging().system()
    found = jm.equilibrium(system, system.reference_q)
    np.testing.assert_allclose(found.q[:2], 0.0, atol=1e-8)
    np.testing.assert_allclose(found.q[4], 0.0, atol=1e-8)
    near = jm.linearise(system, found.q, jnp.zeros(system.structure.nv), 0.0)
    frequencies = np.sort(np.abs(jnp.imag(near.eigenvalues)))[::2]
    m, k = matrices()
    expected = np.sqrt(scipy.linalg.eigh(k, m, eigvals_only=True))
    np.testing.assert_allclose(frequencies, expected, rtol=1e-9)


TIMES = np.linspace(0.0, 1.0, 6)


@pytest.fixture(scope="module")
def driven():
    """Both angles driven: the system, its start and the forces behind its motion."""
    drivers = (
        jm.Driver("upper", "arm", "shoulder", SWEEP),
        jm.Driver("lower", "arm", "elbow", jm.motions.Linear(rate=0.8, offset=-0.2)),
    )
    system = jm.MultibodySystem((arm(),), (), drivers, gravity=(0.0, -G))
    start = jm.assemble(system, system.reference_q).q
    return system, start, jm.inverse_dynamics(system, start, TIMES)


def test_kinematics_and_inverse_dynamics(driven):
    """Torques are M a less what gravity and velocities do."""
    system, start, found = driven
    motion = jm.kinematics(system, start, TIMES)
    np.testing.assert_allclose(motion.q[:, 0], [SWEEP(t) for t in jnp.asarray(TIMES)], atol=1e-12)
    np.testing.assert_allclose(motion.q[:, 1], -0.2 + 0.8 * TIMES, atol=1e-12)

    @jax.jit
    def torques(states):
        return jax.lax.map(lambda state: torque(*state), states)

    def torque(q, v, a):
        def energy(q, v):
            return 0.5 * v @ LINKS.mass_matrix(q, 0.0) @ v

        momentum = jax.jvp(lambda q: jax.grad(energy, argnums=1)(q, v), (q,), (v,))[1]
        weight = jax.grad(lambda q: -G * LINKS.first_moment(q)[1])(q)
        inertia = LINKS.mass_matrix(q, 0.0) @ a + momentum - jax.grad(energy)(q, v)
        return inertia - weight

    expected = torques((motion.q, motion.v, motion.acceleration))
    reactions = found.reactions()
    for k, name in enumerate(("upper", "lower")):
        np.testing.assert_allclose(reactions.driving(name), expected[:, k], atol=1e-9)
        assert reactions.unique(name).unique.all()


class TestFilesAndPictures:
    @pytest.mark.parametrize("ending", ["csv", "npz", "nc"])
    def test_a_driven_motion_comes_back(self, driven, ending, tmp_path):
        system, _, found = driven
        self.assert_comes_back(system, found, tmp_path / f"driven.{ending}")

    @pytest.mark.thorough
    @pytest.mark.parametrize("ending", ["csv", "npz", "nc"])
    def test_a_motion_comes_back(self, motion, ending, tmp_path):
        system, found = motion
        path = tmp_path / f"motion.{ending}"
        self.assert_comes_back(system, found, path)
        if ending == "csv":
            assert "rod.position.x" in path.read_text().splitlines()[0].split(",")

    def assert_comes_back(self, system, found, path):
        save_trajectory(found, path)
        back = load_trajectory(path, system)
        for name in ("q", "v", "acceleration", "multipliers"):
            np.testing.assert_allclose(getattr(back, name), getattr(found, name), rtol=1e-15)
        if path.suffix == ".csv":
            header = path.read_text().splitlines()[0].split(",")
            assert {"arm.shoulder", "arm.shoulder.rate", "arm.shoulder.acceleration"} < {*header}

    def test_picture(self):
        model = hanging()
        system = model.system()
        q = system.reference_q
        report = jm.analyze(system, q, system.initial_v, 0.0)
        figure = draw_mechanism(model, system, report, q)
        assert figure.axes
        plt.close(figure)

    def test_model_files_know_no_functions(self):
        with pytest.raises(ValueError, match="'arm' is given by functions, which model files do"):
            write_model(hanging())


@pytest.fixture(scope="module")
def motion():
    system = hanging().system()
    _, (q, v) = states(ANGLES, (0.0, 0.0, 0.0))
    return system, jm.simulate(system, q, v, 0.2, every=0.1, rtol=1e-9, atol=1e-9, monitor=False)


@pytest.mark.thorough
def test_a_sweep():
    model = hanging()

    def question(system, q, v, t):
        return jm.runs.solve_with_friction(
            system, q, v, t, formulation=jm.formulations.MinimumNorm()
        ).acceleration[:2]

    cases = jm.Cases({"bodies.rod.mass": np.array([0.3, 0.6, 1.2])})
    found = jm.sweep(question, model, cases, assemble=False, width=2).answers()
    for k, mass in enumerate((0.3, 0.6, 1.2)):
        rod = eqx.tree_at(lambda b: b.mass, ROD, jnp.asarray(mass))
        system = jm.MultibodySystem((arm(), rod), (HINGE,), gravity=(0.0, -G))
        q, v = system.reference_q, system.initial_v
        np.testing.assert_allclose(found[k], question(system, q, v, 0.0), rtol=1e-10)


def test_verdicts_by_both_ways():
    """An arm held twice at one coordinate, and pinned by a rod."""
    joints = (
        HINGE,
        planar.Revolute("pin", ("ground", "rod"), TIP + np.array([0.0, -0.7])),
        generalized.Condition("held", "arm", lambda q, t: q[0] - ANGLES[0]),
        generalized.Condition("held again", "arm", lambda q, t: 2 * q[0] - 2 * ANGLES[0]),
    )
    system = jm.MultibodySystem((arm(), ROD), joints, gravity=(0.0, -G))
    q, v = system.reference_q, system.initial_v
    report = jm.analyze(system, q, v, 0.0)
    names = system.structure.constraint_names
    assert {name: bool(report.unique(name)) for name in names} == {
        "T": True,
        "pin": True,
        "held": False,
        "held again": False,
    }
    screened = jm.screen(system, q, v, 0.0)
    assert np.array_equal(screened.reaction_unique.unique, report.reaction_unique.unique)
