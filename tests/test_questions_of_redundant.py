"""Equilibrium, inverse dynamics and linearisation of redundant and of nonholonomic mechanisms."""

import jax.numpy as jnp
import numpy as np
import oracle_reactions as newton
import pytest
from helpers import configuration_of
from reaction_park import table_of, wrenches_of
from representatives import representatives

import jaxmbs as jm
from jaxmbs import forces, motions, planar


def balanced(table, q, v, acceleration, acting):
    """Newton and Euler for every body, with reactions of one state."""
    poses = configuration_of(table, np.asarray(q))
    gaps = newton.newton_euler_gap(
        table, poses, np.asarray(v), np.asarray(acceleration), [*acting.values()]
    )
    assert max(gaps) < 1e-10


@pytest.mark.thorough
def test_parallelogram_hangs_where_its_load_points():
    """1000 cos(theta) = 1500 sin(theta): there the platform stays, on six parallel links."""
    model = jm.mechanisms.get("parallelogram")
    system = model.system()
    found = jm.equilibrium(system, system.reference_q)
    theta = np.arctan2(1000.0, 1500.0)
    centre = np.asarray(found.q)[-7:-4]
    expected = [0.25 + 0.5 * np.sin(theta), 0.25 + 0.5 * np.cos(theta), 0.5]
    np.testing.assert_allclose(centre, expected, atol=1e-9)
    report, still = found.reactions(), np.zeros(system.structure.nv)
    balanced(table_of(model), found.q, still, still, wrenches_of(report))
    # As along the whole motion: the upper links alone.
    unique = {name for name in report.names if bool(report.unique(name))}
    assert unique == set("KLMN")


@pytest.mark.parametrize("name", representatives(["door", "three-crank-parallelogram"], "door"))
def test_torque_of_a_driven_mechanism(name):
    """A door on two hinges, and three parallel cranks that carry a platform: one too many, in
    space. The power of the motor is that of inertia."""
    model = jm.mechanisms.get(name)
    first = next(j for j in model.joints if "ground" in j.bodies)
    turn = motions.Polynomial(coefficients=[0.0, 1.0, 2.0])
    driven = jm.Model(
        model.name,
        3,
        bodies=model.bodies,
        joints=model.joints,
        drivers=[jm.Driver("motor", first.name, "rotation", turn)],
        gravity=(0.0, 0.0, -9.81),
    )
    system, table = driven.system(), table_of(driven)
    found = jm.inverse_dynamics(system, system.reference_q, np.array([0.0, 0.2, 0.5]))
    mass = np.asarray(system.mass_matrix(system.reference_q))
    weights = np.zeros(system.structure.nv)
    for k in range(len(model.bodies)):
        weights[6 * k + 2] = -9.81 * mass[6 * k, 6 * k]
    reports = found.reactions()
    for k, t in enumerate(np.asarray(found.times)):
        q, v, a = (np.asarray(x[k]) for x in (found.q, found.v, found.acceleration))
        balanced(table, q, v, a, wrenches_of(reports, k))
        power = v @ (mass @ a - weights)
        assert abs(power) > 0.1
        # The rate of the motor is 1 + 4 t.
        np.testing.assert_allclose(reports.driving("motor")[k] * (1 + 4 * t), power, rtol=1e-9)
        assert bool(reports.unique("motor")[k])
        assert not any(bool(reports.unique(joint.name)[k]) for joint in model.joints)


@pytest.mark.thorough
def test_small_motions_of_a_skate_between_springs():
    """It swings along its edge and turns; across it there is no motion and no force, so that its
    place there stays: an eigenvalue zero."""
    mass, inertia, stiffness, half = 2.0, 0.3, 80.0, 0.4
    body = planar.Body("skate", mass=mass, inertia=inertia, position=(0.0, 0.0))
    edge = planar.KnifeEdge("edge", ("skate",), (0.0, 0.0), (1.0, 0.0))
    springs = [
        forces.SpringDamper(
            name, ("ground", "skate"), points=[(-1.0, y), (0.0, y)], stiffness=stiffness / 2
        )
        for name, y in (("upper", half), ("lower", -half))
    ]
    system = jm.MultibodySystem([body], [edge], forces=springs)
    found = jm.linearise(system, system.reference_q)
    swings = np.sqrt(stiffness / mass), np.sqrt(stiffness * half**2 / inertia)
    actual = np.sort(np.imag(found.eigenvalues))
    expected = sorted([*swings, 0.0, *(-s for s in swings)])
    np.testing.assert_allclose(actual, expected, atol=1e-8)
    np.testing.assert_allclose(jnp.real(found.eigenvalues), 0.0, atol=1e-8)
