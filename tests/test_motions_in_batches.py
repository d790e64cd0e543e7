"""Runs side by side (`jax.vmap`) are those that one gets one by one."""

import functools

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from test_passages import crank_at

import jaxmbs as jm
from jaxmbs import planar


# The other way of fusing takes twice as long to compile.
_OPTIONS = {"xla_cpu_use_fusion_emitters": False}


def compiled(function):
    return jax.jit(function, compiler_options=_OPTIONS)


def pendulum():
    body = planar.Body("link", mass=1.0, inertia=0.1, position=(0.5, 0.0))
    hinge = planar.Revolute("A", ("ground", "link"), (0.0, 0.0))
    return jm.Model("pendulum", 2, bodies=[body], joints=[hinge], gravity=(0.0, -9.81)).system()


def run(system, duration, gravity, adjoint=None):
    system = eqx.tree_at(lambda s: s.gravity, system, system.gravity * gravity)
    how = {} if adjoint is None else {"adjoint": adjoint}
    return jm.simulate(system, system.reference_q, system.initial_v, duration, throw=False, **how)


@pytest.mark.thorough
def test_a_redundant_mechanism_and_a_failed_lane():
    """The lane whose gravity is no number fails, and no other one knows of it."""
    system = jm.mechanisms.get("door").system()
    factors = jnp.array([0.8, jnp.nan, 1.0, 30.0])

    def of(factor):
        return run(system, 0.1, factor)

    together, alone = compiled(jax.vmap(of))(factors), compiled(of)
    assert [bool(x) for x in together.result == jm.results.RESULTS.successful] == [
        True,
        False,
        True,
        True,
    ]
    for k in (0, 2, 3):
        one = alone(factors[k])
        for name in ("q", "v", "acceleration", "multipliers"):
            found, wanted = getattr(together, name)[k], getattr(one, name)
            scale = 1 + jnp.max(jnp.abs(wanted))
            np.testing.assert_allclose(found / scale, wanted / scale, rtol=0, atol=1e-11)
        assert jnp.max(together.position_error[k]) <= 1e-12


@pytest.mark.thorough
def test_a_singular_configuration_is_passed_in_some_lanes():
    """Cranks with rods of their length stand at a right angle after some time, or do not."""
    rates = [20.0, 10.0, 1.0]
    systems = [crank_at((0.1, 0.1), 0.3, rate, driven=False) for rate in rates]

    def of(system):
        return run(system, 0.3, 0.0)

    together = compiled(jax.vmap(of))(jax.tree.map(lambda *x: jnp.stack(x), *systems))
    alone = compiled(of)
    counts = []
    for k, system in enumerate(systems):
        one = alone(system)
        counts.append(int(one.passage_count))
        assert int(together.passage_count[k]) == counts[-1]
        np.testing.assert_allclose(together.q[k], one.q, rtol=0, atol=1e-8)
    assert counts[0] != counts[2]


FACTORS, CHANGE = jnp.array([0.7, 1.0, 1.6]), jnp.array([1.0, -0.5, 2.0])


def ends(factors, adjoint=None):
    system = pendulum()
    return jax.vmap(lambda f: run(system, 0.3, f, adjoint).q[-1])(factors)


def slopes():
    """Central differences."""
    value, h = compiled(ends), 1e-4
    return (value(FACTORS + h * CHANGE) - value(FACTORS - h * CHANGE)) / (2 * h)


@pytest.mark.thorough
def test_forward_derivatives():
    forward = functools.partial(ends, adjoint=diffrax.ForwardMode())
    _, slope = compiled(lambda f: jax.jvp(forward, (f,), (CHANGE,)))(FACTORS)
    np.testing.assert_allclose(slope, slopes(), rtol=0, atol=1e-6)


@pytest.mark.thorough
def test_reverse_derivatives():
    weights = jnp.asarray(np.random.default_rng(0).normal(size=slopes().shape))
    back = compiled(lambda f: jax.vjp(ends, f)[1](weights)[0])(FACTORS)
    np.testing.assert_allclose(back @ CHANGE, jnp.sum(weights * slopes()), rtol=1e-6)


@pytest.mark.thorough
def test_functions_of_users_that_hold_traced_numbers():
    """One at a time, and many at once."""

    def of(push):
        def pushed(frames, twists, t):
            del frames, twists, t
            return [(jnp.stack([push, 0.0 * push]), 0.0)]

        body = planar.Body("link", mass=1.0, inertia=0.1, position=(0.5, 0.0))
        system = jm.MultibodySystem(
            [body],
            [planar.Revolute("A", ("ground", "link"), (0.0, 0.0))],
            forces=[jm.forces.UserForce("push", pushed, [("link", (1.0, 0.0))])],
            gravity=(0.0, -9.81),
        )
        run = jm.simulate(
            system, system.reference_q, system.initial_v, 0.3, throw=False, monitor=False
        )
        return run.q[-1]

    pushes = jnp.array([3.0, 4.0])
    alone, together = compiled(of), compiled(jax.vmap(of))(pushes)
    for own, push in zip(together, pushes, strict=True):
        np.testing.assert_allclose(own, alone(push), rtol=0, atol=1e-11)
    assert jnp.max(jnp.abs(together[0] - together[1])) > 1e-3
