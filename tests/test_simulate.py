"""Motions against exact laws, and runs that must end with a message."""

import diffrax
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from exact_motions import angle_of_chain
from scipy.integrate import solve_ivp

import jaxmbs as jm
from jaxmbs import motions, planar


def test_chain_stays_on_its_branch_and_reports_the_passages():
    system = jm.mechanisms.get("four-bar-chain:2").system()
    run = jm.simulate(
        system, system.reference_q, system.initial_v, 10.0, every=0.5, rtol=1e-9, atol=1e-11
    )
    theta = run.q[0, 2] - run.q[:, 2]
    np.testing.assert_allclose(theta, angle_of_chain(2, np.asarray(run.times)), atol=1e-6)
    assert float(jnp.max(run.position_error)) < 1e-12
    assert float(jnp.max(run.velocity_error)) < 1e-11
    fine = np.linspace(0.0, 10.0, 20001)
    level = np.cos(angle_of_chain(2, fine))
    before = np.flatnonzero(level[:-1] * level[1:] < 0)
    share = level[before] / (level[before] - level[before + 1])
    passages = np.asarray(run.passages)
    np.testing.assert_allclose(
        passages[np.isfinite(passages)], fine[before] + share * fine[1], rtol=0, atol=1e-5
    )
    assert "singular" in str(run)


def pendulum(**more):
    body = planar.Body("rod", mass=2.0, inertia=0.1, position=(0.5, 0.0))
    return jm.MultibodySystem(
        [body], [planar.Revolute("pin", ("ground", "rod"), (0.0, 0.0))], **more
    )


@pytest.mark.defaults
def test_pendulum_keeps_its_energy_and_its_progress_is_shown(capfd):
    system = pendulum(gravity=(0.0, -9.81))
    meter = diffrax.TextProgressMeter()
    run = jm.simulate(system, system.reference_q, system.initial_v, 1.0, progress=meter)
    jax.effects_barrier()
    shown = capfd.readouterr().out.split()
    assert shown[0] == "0.00%"
    assert shown[-1] == "100.00%"
    assert len(shown) > 5
    kinetic, potential = system.energy(run.q[-1], run.v[-1], run.times[-1])
    assert abs(float(kinetic + potential)) < 1e-6


def angle_of_pendulum(end: float, mass: float = 2.0) -> float:
    """(J + m l^2) angle'' = -m g l cos(angle), l = 0.5 m, from rest at 0."""
    return solve_ivp(
        lambda _, y: [y[1], -9.81 * 0.5 * mass * np.cos(y[0]) / (0.1 + 0.25 * mass)],
        (0.0, end),
        [0.0, 0.0],
        method="DOP853",
        rtol=1e-13,
        atol=1e-14,
    ).y[0, -1]


@pytest.mark.thorough
def test_implicit_solver():
    """Its root finder takes the tolerances of the step sizes."""
    system = pendulum(gravity=(0.0, -9.81))
    start = system.reference_q, system.initial_v, 1.0
    angle = angle_of_pendulum(1.0)
    exact = [0.5 * np.cos(angle), 0.5 * np.sin(angle), angle]
    solver = diffrax.Kvaerno5()
    run = jm.simulate(system, *start, solver=solver, rtol=1e-5, atol=1e-7, monitor=False)
    np.testing.assert_allclose(run.q[-1], exact, atol=1e-5)
    assert float(run.position_error[-1]) < 1e-15


def test_event_stops_where_the_function_crosses_zero():
    system = pendulum(gravity=(0.0, -9.81))

    def level(system, q, v, t):
        return q[2] + 0.5

    def never(system, q, v, t):
        return q[2] + 100.0

    events = [jm.runs.StopWhen(function) for function in (never, level)]
    run = jm.simulate(system, system.reference_q, system.initial_v, 3.0, events=events)
    assert bool(run.stopped)
    assert abs(float(run.q[-1, 2]) + 0.5) < 1e-6
    assert run.message.startswith(f"The run was stopped at {float(run.times[-1]):.9g} s: 'level'")
    assert run.message in str(run)
    whole = jm.simulate(system, system.reference_q, system.initial_v, 0.01, events=events)
    assert (bool(whole.stopped), whole.message) == (False, "")


def test_stop_at_the_first_singular_configuration():
    system = jm.mechanisms.get("four-bar-chain:1").system()
    q, v, event = system.reference_q, system.initial_v, jm.runs.StopAtSingular()
    with pytest.raises(ValueError, match="monitor=True"):
        jm.simulate(system, q, v, 3.0, events=[event], monitor=False)
    run = jm.simulate(system, q, v, 3.0, events=[event])
    assert bool(run.stopped)
    # The bars lie flat within the last step.
    assert 1.57 < float(run.q[0, 2] - run.q[-1, 2]) < 2.0
    fine = np.linspace(0.0, 3.0, 30001)
    flat = fine[np.argmax(angle_of_chain(1, fine) > np.pi / 2)]
    np.testing.assert_allclose(run.passages[0], flat, rtol=0, atol=2e-4)
    assert f"stopped at {float(run.times[-1]):.9g} s" in run.message
    assert f"singular configuration at {float(run.passages[0]):.6g} s" in run.message
    assert "leave StopAtSingular out" in run.message


def test_velocities_that_break_the_constraints():
    system = pendulum()
    v = jnp.array([1.0, 0.0, 0.0])
    with pytest.raises(ValueError, match="'pin'"):
        jm.simulate(system, system.reference_q, v, 1.0)
    run = jm.simulate(
        system, system.reference_q, v + jnp.array([0.0, 1.0, 0.0]), 1.0, consistent=True
    )
    rolling = np.array([0.0, 0.5, 1.0]) * float(run.v[0, 2])
    np.testing.assert_allclose(run.v[0], rolling, atol=1e-12)


@pytest.mark.parametrize("end", [0.4, 50.0])
def test_driver_that_leaves_the_range_of_the_mechanism(end):
    """A slider is pulled farther than its rod reaches: to where crank and rod lie in one line.
    Runs do not creep there, however far away their end is."""
    model = jm.mechanisms.get("slider-crank")
    driver = jm.Driver("pull", "D", "translation", motions.Linear(rate=0.2))
    system = jm.MultibodySystem(model.bodies, model.joints, [driver])
    v = jm.consistent_state(system, system.reference_q, jnp.zeros(9)).v
    with pytest.raises(jm.SimulationError) as caught:
        jm.simulate(system, system.reference_q, v, end, times=[*np.arange(0.0, 0.35, 0.05), end])
    reached = caught.value.trajectory
    assert int(reached.statistics.steps) < 500
    assert len(reached.times) == 8
    dead_point = (np.sqrt(0.02) + np.sqrt(0.05) - 0.3) / 0.2
    assert dead_point - 1e-6 < float(reached.times[-1]) <= dead_point
    assert float(jnp.max(reached.position_error)) < 1e-8
    for said in (f"ended at {float(reached.times[-1]):.9g} s", "open", "a driver (pull) asks for"):
        assert said in reached.message


@pytest.mark.thorough
def test_a_driver_beyond_its_table():
    table = motions.Table(times=[0.0, 0.5, 1.0], values=[0.0, 0.1, 0.3])
    motor = jm.Driver("motor", "pin", "rotation", table)
    system = pendulum(drivers=[motor])
    q = system.reference_q
    v = jm.consistent_state(system, q, system.initial_v).v
    with pytest.raises(jm.SimulationError, match="'motor' is not defined") as caught:
        jm.simulate(system, q, v, 2.0)
    assert float(caught.value.trajectory.times[-1]) == pytest.approx(1.0, abs=1e-9)
    assert "nan" not in str(caught.value)
    with pytest.raises(jm.results.KinematicsError, match=r"At 1\.25 s .* 'motor' is not defined"):
        jm.kinematics(system, q, [0.0, 1.0, 1.25])
    with pytest.raises(RuntimeError, match="'motor' is not defined: keep to the times"):
        jm.assemble(system, q, 1.25)
    with pytest.raises(ValueError, match="'motor' is not defined"):
        jm.simulate(system, q, v, 2.0, start=1.25)


@pytest.mark.thorough
def test_derivative_of_an_end_angle():
    def end_angle(mass):
        body = planar.Body("rod", mass=mass, inertia=0.1, position=(0.5, 0.0))
        pin = planar.Revolute("pin", ("ground", "rod"), (0.0, 0.0))
        system = jm.MultibodySystem([body], [pin], gravity=(0.0, -9.81))
        run = jm.simulate(
            system,
            system.reference_q,
            system.initial_v,
            0.5,
            adjoint=diffrax.ForwardMode(),
            monitor=False,
        )
        return run.q[-1, 2]

    forward = jax.jit(jax.jacfwd(end_angle))(2.0)
    central = (angle_of_pendulum(0.5, 2.0 + 1e-4) - angle_of_pendulum(0.5, 2.0 - 1e-4)) / 2e-4
    np.testing.assert_allclose(forward, central, rtol=1e-5)
