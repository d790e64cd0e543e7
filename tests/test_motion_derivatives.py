"""Derivatives through `simulate` of a redundant mechanism, by each adjoint of Diffrax.

A beam on three parallel links of one length, of which two would do, and a tail on it that a driver
swings and a spring pulls. The links stay on one side of the ground.
"""

import functools
from typing import Any, NamedTuple

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from derivative_checks import difference, NODES
from representatives import representatives

import jaxmbs as jm
from jaxmbs import design, forces, motions, planar
from jaxmbs._design._study import slopes


# Weight (or mass), place of the upper ends of all links, stiffness, amplitude of the driver, how
# far the start is from the drawing, in configuration (closed, as its projection has a derivative
# there) and in velocity.
POINT = jnp.array([2.0, 0.4, 40.0, 0.3, 0.0, 0.1])
# Off the constraints the third link is no longer redundant: how the start goes back onto them
# changes within millimetres.
SIZES = np.array([2.0, 0.4, 40.0, 0.3, 0.01, 0.5])
END = 0.2


def parallel_links(across):
    """From the ground to the beam, their upper ends that far across."""

    def point(x, y):
        return jnp.stack([jnp.asarray(x, float), jnp.asarray(y, float)])

    return [
        planar.Distance(
            f"D{k}",
            ("ground", "beam"),
            points=jnp.stack([point(0.5 * k, 0.0), point(0.5 * k + across, 0.5)]),
        )
        for k in range(3)
    ]


def braced(x, by_mass=False):
    """The first number weighs the beam, or is its mass: where that is traced, programs are ready
    for parts that are light beside others, and larger."""
    first, across, stiffness, amplitude = x[:4]
    mass, gravity = (first, 9.81) if by_mass else (2.0, 9.81 / 2 * first)

    bodies = [
        planar.Body("beam", mass=mass, inertia=0.3, position=(0.6, 0.5)),
        planar.Body("tail", mass=0.5, inertia=0.02, position=(1.4, 0.5)),
    ]
    driver = jm.Driver("motor", "T", "rotation", motions.Sine(amplitude=amplitude, frequency=2.0))
    spring = forces.SpringDamper(
        "spring", ("tail", "ground"), points=[(1.6, 0.5), (1.6, 0.0)], stiffness=stiffness
    )
    return jm.MultibodySystem(
        bodies,
        [*parallel_links(across), planar.Revolute("T", ("beam", "tail"), (1.2, 0.5))],
        [driver],
        forces=[spring],
        gravity=jnp.array([0.0, -1.0]) * gravity,
    )


DIRECTIONS = jnp.asarray(np.random.default_rng(0).normal(size=(2, 6)))


def ends(x, adjoint, how, *, by_mass=False, monitor=False):
    """The last state, of a start that is moved onto the constraints, and what it passed."""
    system = braced(x, by_mass)
    q = system.retract(system.reference_q, x[4] * DIRECTIONS[0])
    v = system.initial_v + x[5] * DIRECTIONS[1]
    run = jm.simulate(
        system, q, v, END, consistent=True, adjoint=adjoint, monitor=monitor, max_steps=256, **how
    )
    return jnp.concatenate([run.q[-1], run.v[-1]]), run.passages


# Steps of one length: which are taken does not depend on the numbers.
EVEN = {"controller": diffrax.ConstantStepSize(), "first_step": 0.01}


class Pushed(NamedTuple):
    value: Any
    pushed: Any
    passages: Any


class Pulled(NamedTuple):
    value: Any
    pulled: Any


@eqx.filter_jit
def pushed(x, direction, by_mass=False):
    """Also what a motion of its own, without derivative, would say: one program is enough."""

    def function(x):
        return ends(x, diffrax.ForwardMode(), EVEN, by_mass=by_mass, monitor=True)

    return Pushed(*jax.jvp(function, (x,), (direction,), has_aux=True))


@eqx.filter_jit
def pulled(x, weight, adjoint, how, by_mass=False):
    value, pull = jax.vjp(lambda x: ends(x, adjoint, how, by_mass=by_mass)[0], x)
    return Pulled(value, pull(weight)[0])


@eqx.filter_jit
def both(x, direction, weight):
    value, push = jax.linearize(lambda x: ends(x, diffrax.DirectAdjoint(), EVEN)[0], x)
    return value, push(direction), jax.linear_transpose(push, x)(weight)[0]


WEIGHT = jnp.asarray(np.random.default_rng(1).normal(size=12))


@functools.cache
def jacobian(by_mass=False):
    """Along each parameter (6, 12)."""
    directions = jnp.asarray(np.diag(SIZES))
    return np.stack([pushed(POINT, direction, by_mass).pushed for direction in directions])


def test_the_mechanism_is_redundant_and_meets_nothing_singular():
    system = braced(POINT)
    run = pushed(POINT, POINT)
    end = run.value[: system.structure.nq]
    assert jm.analyze(system, end).rank == 5 < len(system.structure.rows)
    assert run.passages.size
    assert not np.isfinite(np.asarray(run.passages)).any()


@pytest.mark.parametrize("by_mass", representatives([False, True], False))
def test_forward_mode_against_differences(by_mass):
    step = 1e-3
    for size, own in zip(np.diag(SIZES), jacobian(by_mass), strict=True):
        values = [pushed(POINT + n * step * size, jnp.asarray(size), by_mass).value for n in NODES]
        slope = difference(values, step)
        assert np.max(np.abs(own)) > 1e-3
        np.testing.assert_allclose(own, slope, rtol=0, atol=1e-6 * np.max(np.abs(slope)))


def assert_transposed(found, tolerance, by_mass=False):
    exact = jacobian(by_mass) @ np.asarray(WEIGHT)
    np.testing.assert_allclose(found * SIZES, exact, rtol=0, atol=tolerance * np.max(np.abs(exact)))


@pytest.mark.thorough
@pytest.mark.parametrize("by_mass", [False, True])
def test_checkpoints_in_reverse_mode(by_mass):
    value, found = pulled(POINT, WEIGHT, diffrax.RecursiveCheckpointAdjoint(), EVEN, by_mass)
    np.testing.assert_allclose(value, pushed(POINT, POINT, by_mass).value, rtol=0, atol=1e-12)
    assert_transposed(np.asarray(found), 1e-10, by_mass)


@pytest.mark.thorough
def test_one_adjoint_in_both_modes():
    _, along, found = both(POINT, jnp.asarray(SIZES), WEIGHT)
    np.testing.assert_allclose(along, jacobian().sum(axis=0), rtol=1e-10, atol=1e-10)
    assert_transposed(np.asarray(found), 1e-10)


@pytest.mark.thorough
def test_the_continuous_adjoint_is_as_exact_as_the_tolerance():
    for rtol in (1e-4, 1e-6, 1e-8):
        how = {"rtol": jnp.asarray(rtol), "atol": jnp.asarray(rtol / 100)}
        _, found = pulled(POINT, WEIGHT, diffrax.BacksolveAdjoint(), how)
        assert_transposed(np.asarray(found), rtol)


def test_many_parameters_are_differentiated_in_reverse():
    """More than six for one objective; forward mode is taken where it is asked for."""
    calls = []

    def function(x, forward):
        calls.append(forward)
        return jnp.sum(x**2)[None], None

    for count, forward in ((8, False), (8, True), (6, False)):
        _, slope, _ = slopes(design.Motion(0.2), function, jnp.ones(count), 1, forward=forward)
        np.testing.assert_array_equal(slope, np.full((1, count), 2.0))
    assert calls == [False, True, True]


@pytest.mark.thorough
def test_the_motion_of_a_study_is_differentiated_in_both_modes():
    model = jm.Model(
        "pendulum",
        2,
        bodies=[planar.Body("bob", mass=2.0, inertia=0.3, position=(0.4, 0.0))],
        joints=[planar.Revolute("pivot", ("ground", "bob"), (0.0, 0.0))],
        gravity=(0.0, -9.81),
    )
    names = [f"bodies.bob.{name}" for name in ("mass", "inertia", "position.x", "position.y")]
    names += ["joints.pivot.at.x", "joints.pivot.at.y", "gravity.x", "gravity.y"]
    study = design.Study(model, names, run=design.Motion(0.2, count=3, monitor=False))
    calls = []

    def objective(response):
        return jnp.mean(response.multipliers**2)

    def function(x, forward):
        calls.append(forward)
        response = study.respond(x, forward=forward)
        return objective(response)[None], response.times

    # What each gives is compared above; here nothing has to run.
    for forward in (False, True):
        gradient = functools.partial(slopes, study.run, function, count=1, forward=forward)
        jax.eval_shape(lambda x, gradient=gradient: gradient(x=x)[1], study.design)
    assert calls == [False, True]


def test_adjoints_that_do_not_fit_are_refused():
    system = braced(POINT)
    q, v = system.reference_q, system.initial_v
    stop = jm.runs.StopWhen(lambda system, q, v, t: q[0])
    with pytest.raises(ValueError, match="BacksolveAdjoint knows no events; use Recursive"):
        jm.simulate(system, q, v, END, adjoint=diffrax.BacksolveAdjoint(), events=[stop])
    with pytest.raises(ValueError, match="ImplicitAdjoint differentiates states of rest"):
        jm.simulate(system, q, v, END, adjoint=diffrax.ImplicitAdjoint())
