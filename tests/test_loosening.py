"""Redundancy that ends off the constraints: it is seen, and it does not disturb a motion."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from representatives import representatives_at

import jaxmbs as jm
from jaxmbs import _formulations as fo
from jaxmbs._dynamics._monitor import rank_increases_off_manifold


class Circle(eqx.Module):
    """(x^2 + y^2 - r^2) f / 2 with f = 1, or x / r where `moving`."""

    radius: jax.Array
    moving: bool = eqx.field(static=True)

    def __call__(self, q, t):
        closure = (q @ q - self.radius**2) / 2
        return closure * q[0] / self.radius if self.moving else 3 * closure


def mass_matrix(q):
    return 2.0 * jnp.eye(2)


def no_force(q, v, t):
    return jnp.zeros(2)


def on_circle(*, moving, radius=1.0):
    """A particle held on a circle twice. Both gradients have the direction (x, y), but off the
    circle that of a product with x / r has one more part, along x. All radii share a program."""
    radius = jnp.asarray(radius)
    constraints = {
        "circle": jm.generalized.PositionConstraint(Circle(radius, False)),
        "again": jm.generalized.PositionConstraint(Circle(radius, moving)),
    }
    return jm.GeneralizedSystem(
        ["x", "y"],
        mass_matrix=mass_matrix,
        force=no_force,
        constraints=constraints,
        lengths=["x", "y"],
        length=radius,
    )


def start(radius=1.0, angle=0.3, rate=2.0):
    q = radius * jnp.array([np.cos(angle), np.sin(angle)])
    return q, rate * jnp.array([-q[1], q[0]])


@pytest.mark.parametrize("radius", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("moving", [True, False])
def test_of_a_particle_on_a_circle(moving, radius):
    q, _ = start(radius)
    assert (
        bool(
            eqx.filter_jit(rank_increases_off_manifold)(
                on_circle(moving=moving, radius=radius), q, 0.0
            )
        )
        == moving
    )


def test_nothing_redundant_loosens_nothing():
    system = jm.GeneralizedSystem(
        ["x", "y"],
        mass_matrix=lambda q: jnp.eye(2),
        force=lambda q, v, t: jnp.zeros(2),
        constraints={"circle": jm.generalized.PositionConstraint(Circle(jnp.asarray(1.0), False))},
    )
    assert not bool(rank_increases_off_manifold(system, start()[0], 0.0))


def test_of_a_bennett_linkage():
    system = jm.mechanisms.get("bennett").system()
    q = jm.assemble(system, system.reference_q).q
    assert bool(eqx.filter_jit(rank_increases_off_manifold)(system, q, 0.0))


def test_of_the_mobile_robot():
    system = jm.mechanisms.get("mobile-robot").system()
    assert not bool(eqx.filter_jit(rank_increases_off_manifold)(system, system.reference_q, 0.0))


@pytest.mark.parametrize("theta", [-1.0, 0.1, 0.3, 0.6, 1.5])
def test_of_a_turned_parallelogram(theta):
    system = jm.mechanisms.parallelogram(theta).system()
    assert not bool(eqx.filter_jit(rank_increases_off_manifold)(system, system.reference_q, 0.0))


@pytest.mark.parametrize(
    "formulation",
    representatives_at([fo.MinimumNorm(), fo.NullSpace()], 0),
    ids=lambda f: f.word,
)
def test_particle_goes_round_at_constant_speed(formulation):
    """x = cos(angle), y = sin(angle), angle = 0.3 + 2 t. The monitor has no part in it."""
    q, v = start()
    times = np.linspace(0.0, 0.5, 6)
    system, watched = on_circle(moving=True), formulation.word == "minimum-norm"
    found = jm.simulate(
        system, q, v, 0.5, times=times, formulation=formulation, rtol=1e-9, monitor=watched
    )
    angle = 0.3 + 2.0 * times
    np.testing.assert_allclose(found.q[:, 0], np.cos(angle), atol=2e-9)
    np.testing.assert_allclose(found.q[:, 1], np.sin(angle), atol=2e-9)
    assert int(found.statistics.accepted) < 60


@pytest.mark.thorough
def test_bennett_keeps_its_energy():
    """Without gravity and springs; in a turn of several radians."""
    system = jm.mechanisms.get("bennett").system()
    q = jm.assemble(system, system.reference_q).q
    motion = np.random.default_rng(1).normal(size=system.structure.nv)
    found = jm.simulate(
        system, q, jnp.asarray(4.0 * motion), 1.0, every=0.1, consistent=True, monitor=False
    )
    q, v = np.asarray(found.q), np.asarray(found.v)
    energy = [
        rate @ np.asarray(system.mass_matrix(at)) @ rate for at, rate in zip(q, v, strict=True)
    ]
    np.testing.assert_allclose(energy, energy[0], rtol=2e-8)
    assert np.max(np.abs(q - q[:1])) > 0.1
    assert int(found.statistics.accepted) < 100
