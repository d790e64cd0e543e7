"""Inertias of drives against closed forms: alone between a body and the ground, beside others that
couple bodies, and by every formulation."""

from typing import Any

import jax
import numpy as np
import pytest

import jaxmbs as jm
from jaxmbs import forces, spatial


def _body(name: str, x: float) -> spatial.Body:
    return spatial.Body(name, mass=1.0, inertia=[1.0, 1.0, 1.0], position=[x, 0.0, 0.0])


def _hinge(name: str, first: str, second: str, x: float) -> spatial.Revolute:
    return spatial.Revolute(name, (first, second), at=[x, 0.0, 0.0], axis=[0.0, 0.0, 1.0])


def _arms(coupled: bool) -> jm.MultibodySystem:
    """An arm of 1 kg m2 about its centre, 1 kg at 1 m from its hinge, with a rotor of 7 kg m2; a
    force of 1 N pushes it at its centre. Beside it two bodies without loads."""
    rotors = [spatial.ReflectedInertia("own", ("ground", "a"), axis=[0, 0, 1], inertia=7.0)]
    if coupled:
        rotors += [spatial.ReflectedInertia("both", ("b", "c"), axis=[0, 0, 1], inertia=3.0)]
    return jm.MultibodySystem(
        [_body("a", 1.0), _body("b", 2.0), _body("c", 3.0)],
        [
            _hinge("j", "ground", "a", 0.0),
            _hinge("k", "ground", "b", 1.0),
            _hinge("l", "b", "c", 2.5),
        ],
        forces=[forces.Applied("push", "a", at=[1.0, 0.0, 0.0], force=[0.0, 1.0, 0.0])],
        elements=rotors,
    )


COUPLED = pytest.mark.parametrize("coupled", [False, True], ids=["alone", "beside a coupling"])


@COUPLED
def test_a_rotor_against_the_ground_counts(coupled: bool):
    system = _arms(coupled)
    q, v = system.reference_q, system.initial_v
    mass = np.asarray(system.mass_matrix(q))
    np.testing.assert_allclose(np.diag(mass)[:6], [1, 1, 1, 1, 1, 8], rtol=1e-15)
    force = np.asarray(system.force(q, v, 0.0))
    free = np.asarray(system.free_acceleration(q, v, 0.0))
    np.testing.assert_allclose(free, np.linalg.solve(mass, force), rtol=0, atol=1e-14)


METHODS = (
    jm.formulations.MinimumNorm(),
    jm.formulations.UdwadiaKalaba(),
    jm.formulations.NullSpace(),
    jm.formulations.CoordinatePartitioning(),
    jm.formulations.AugmentedLagrangian(),
)


@COUPLED
@pytest.mark.parametrize(
    "methods",
    [METHODS[:1], pytest.param(METHODS[1:], marks=pytest.mark.thorough)],
    ids=["minimum norm", "all others"],
)
def test_it_counts_in_every_formulation(coupled: bool, methods: tuple[Any, ...]):
    system = _arms(coupled)
    q, v = system.reference_q, system.initial_v
    # One program of all of them.
    solved = jax.jit(
        lambda q, v: [own.solve(system.equations(q, v, 0.0)).acceleration for own in methods]
    )
    for method, found in zip(methods, solved(q, v), strict=True):
        expected = np.zeros(18)
        # 1 N at 1 m turns 1 + 1 + 7 kg m2.
        expected[[1, 5]] = 1.0 / 9.0
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9, err_msg=str(method))


def test_energy_counts_it():
    system = _arms(coupled=False)
    spin = np.zeros(18)
    spin[[1, 5]] = 0.5
    energy = float(system.kinetic_energy(system.reference_q, spin))
    assert energy == pytest.approx(0.5 * 9.0 * 0.25, rel=1e-14)
