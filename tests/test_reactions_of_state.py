"""Reactions of one state in one call: a pendulum in closed form, formulations, refusals."""

import functools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbs as jm
from jaxmbs import planar


MASS, INERTIA, LENGTH, G = 2.0, 0.1, 0.5, 9.81


def body(name="arm", **place):
    return planar.Body(name, mass=MASS, inertia=INERTIA, **place)


def hinge(name="pin"):
    return planar.Revolute(name, ("ground", "arm"), (0.0, 0.0))


@functools.cache
def pendulum():
    """An arm whose axis x points from the pin to the centre of mass."""
    return jm.MultibodySystem([body(position=(LENGTH, 0.0))], [hinge()], gravity=(0.0, -G))


@functools.cache
def twice():
    """The same on two pins in one place, of which neither force is unique."""
    pins = [hinge("left"), hinge("right")]
    return jm.MultibodySystem([body(position=(LENGTH, 0.0))], pins, gravity=(0.0, -G))


def at(angle):
    return jnp.stack([LENGTH * jnp.cos(angle), LENGTH * jnp.sin(angle), angle])


def turning(angle, rate):
    return rate * jnp.stack([-LENGTH * jnp.sin(angle), LENGTH * jnp.cos(angle), 1.0])


def pin_force(angle, rate):
    """On the arm: m (a - g), with the angular acceleration -m g l cos / (I + m l^2)."""
    turn = -MASS * G * LENGTH * jnp.cos(angle) / (INERTIA + MASS * LENGTH**2)
    along, across = jnp.stack([jnp.cos(angle), jnp.sin(angle)]), turning(angle, 1.0)[:2]
    a = turn * across - rate**2 * LENGTH * along
    return MASS * (a + jnp.asarray([0.0, G]))


ANGLES, RATES = jnp.asarray([-1.5, -0.3, 0.7]), jnp.asarray([2.0, -1.0, 0.5])


def asked(angle, rate, system=pendulum, **options):
    return jm.reactions(system(), at(angle), turning(angle, rate), 0.0, **options)


@functools.cache
def mapped():
    return eqx.filter_jit(jax.vmap(asked))(ANGLES, RATES)


def test_a_pendulum_in_closed_form():
    found = asked(ANGLES[0], RATES[0])
    assert bool(found.unique("pin"))
    np.testing.assert_allclose(
        found.wrench("pin").force, pin_force(ANGLES[0], RATES[0]), rtol=1e-12, atol=1e-11
    )


@pytest.mark.thorough
def test_many_states_in_one_program():
    expected = jax.vmap(pin_force)(ANGLES, RATES)
    assert bool(mapped().unique("pin").all())
    np.testing.assert_allclose(mapped().wrench("pin").force, expected, rtol=1e-12, atol=1e-11)


def test_derivatives_in_closed_form():
    state = jnp.stack([ANGLES[1], RATES[1]])

    @jax.jit
    def both(state):
        """The Jacobian, forward and in reverse, in one program."""
        _, push = jax.linearize(lambda x: asked(*x).wrench("pin").force, state)
        pull = jax.linear_transpose(push, state)
        return jax.lax.map(push, jnp.eye(2)).T, jax.lax.map(lambda w: pull(w)[0], jnp.eye(2))

    expected = jax.jacfwd(lambda x: pin_force(*x))(state)
    for found in both(state):
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)


def test_at_rest_without_velocities():
    found = jm.reactions(pendulum(), at(ANGLES[2]))
    np.testing.assert_allclose(
        found.wrench("pin").force, pin_force(ANGLES[2], 0.0), rtol=1e-12, atol=1e-11
    )


def test_the_formulation_chooses_what_is_not_unique():
    whole = pin_force(ANGLES[0], RATES[0])
    shared = asked(ANGLES[0], RATES[0], system=twice)
    assert not bool(shared.unique("left"))
    for name in ("left", "right"):
        np.testing.assert_allclose(shared.wrench(name).force, whole / 2, rtol=1e-9, atol=1e-9)
    one = asked(
        ANGLES[0], RATES[0], twice, formulation=jm.formulations.Elimination(("left.x", "left.y"))
    )
    np.testing.assert_allclose(one.wrench("left").force, 0.0, atol=1e-11)
    np.testing.assert_allclose(one.wrench("right").force, whole, rtol=1e-9, atol=1e-9)


def test_multipliers_that_are_known_stay_as_they_are():
    found = asked(ANGLES[0], RATES[0], multipliers=jnp.asarray([3.0, -4.0]))
    np.testing.assert_array_equal(found.multipliers, [3.0, -4.0])


@pytest.mark.thorough
def test_friction_counts():
    """A torque -mu r |F| turns the arm with the weight, and F = m (a - g) follows from both."""
    rub = jm.forces.CoulombFriction("rub", "pin", coefficient=0.2, velocity=0.01, radius=0.1)
    system = jm.MultibodySystem(
        [body(position=(LENGTH, 0.0))], [hinge()], forces=[rub], gravity=(0.0, -G)
    )
    angle, rate = ANGLES[1], 3.0
    force = np.asarray(jm.reactions(system, at(angle), turning(angle, rate)).wrench("pin").force)
    torque = -0.2 * 0.1 * np.linalg.norm(force)
    across = np.asarray(turning(angle, 1.0)[:2])
    change = MASS * across * torque / (INERTIA + MASS * LENGTH**2)
    np.testing.assert_allclose(force, pin_force(angle, rate) + change, rtol=1e-11, atol=1e-11)
    assert np.linalg.norm(change) > 0.1


def test_traced_numbers_that_are_no_state_have_no_reactions():
    found = eqx.filter_jit(asked)(jnp.asarray(jnp.nan), RATES[0])
    assert not bool(found.unique("pin").decided)
    assert np.isnan(found.wrench("pin").force).all()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (
            {"multipliers": jnp.zeros(2), "formulation": jm.formulations.NullSpace()},
            "leave one of the two out",
        ),
        ({"multipliers": jnp.zeros(3)}, r"shape \[2\]"),
        ({"elastic": True}, "nothing of this system gives way"),
        ({"formulation": jm.formulations.ElasticResolution()}, "needs something that gives way"),
    ],
)
def test_options_that_do_not_fit_are_refused(options, words):
    with pytest.raises(ValueError, match=words):
        asked(ANGLES[0], RATES[0], **options)


def test_rigid_multipliers_get_no_verdict_of_elastic_parts():
    system = jm.mechanisms.elastic_parallelogram().system()
    with pytest.raises(ValueError, match=r"formulation=NullSpace\(\).*ElasticResolution"):
        jm.reactions(
            system, system.reference_q, elastic=True, formulation=jm.formulations.NullSpace()
        )


def test_a_state_that_the_constraints_do_not_allow_is_refused():
    q, v = at(ANGLES[0]), turning(ANGLES[0], RATES[0])
    with pytest.raises(ValueError, match=r"'pin' is open by 0\.1 m; assemble it first"):
        jm.reactions(pendulum(), q + jnp.asarray([0.1, 0.0, 0.0]), v)
    with pytest.raises(ValueError, match=r"row 'pin\.x' of 'pin' by 1 m/s; consistent_state"):
        jm.reactions(pendulum(), q, v + jnp.asarray([1.0, 0.0, 0.0]))


def test_equations_without_a_solution_end_with_advice():
    system = jm.GeneralizedSystem(
        ("x",),
        mass_matrix=[[1.0]],
        constraints={
            "one": jm.generalized.AccelerationConstraint([1.0], 1.0),
            "two": jm.generalized.AccelerationConstraint([1.0], 2.0),
        },
    )
    with pytest.raises(RuntimeError, match="contradict other constraints"):
        jm.reactions(system, jnp.zeros(1))


def test_drivers_that_agree_in_all_but_accelerations():
    def driven(first, second):
        drivers = [
            jm.Driver(f"d{k}", "pin", "rotation", jm.motions.Polynomial(coefficients=[0.0, 0.0, x]))
            for k, x in enumerate((first, second))
        ]
        own = body(position=(LENGTH, 0.0))
        return jm.MultibodySystem([own], [hinge()], drivers, gravity=(0.0, -G))

    system = driven(1.0, 2.0)
    state = system.reference_q, system.initial_v
    with pytest.raises(RuntimeError, match="no accelerations satisfy what d0, d1 ask for"):
        jm.reactions(system, *state)
    traced = eqx.filter_jit(jm.reactions)(system, *state)
    assert bool(jnp.all(jnp.isnan(traced.wrench("pin").force)))
    agreed = jm.reactions(driven(1.0, 1.0), *state)
    # m l d^2(angle)/dt^2 = m (2 rad/s^2) l across, and the weight.
    np.testing.assert_allclose(
        agreed.wrench("pin").force, [0.0, MASS * (2 * LENGTH + G)], atol=1e-10
    )
