"""Diffrax's implicit solvers with the projection, on a stiff elastic model."""

import diffrax
import jax.numpy as jnp
import numpy as np
import optimistix

import jaxmbs as jm


STIFFNESS, DAMPING = 1e7, 1e3


def masses(q):
    del q
    return jnp.eye(3)


def springs(q, v, t):
    """A soft one holds the first mass, a stiff one with a damper ties the second to it."""
    del t
    tension = STIFFNESS * (q[1] - q[0]) + DAMPING * (v[1] - v[0])
    return jnp.stack([tension - 12.0 * q[0], -tension, jnp.zeros(())])


def test_three_masses_by_kvaerno():
    """The third is tied to the first by a constraint; all move as one of 3 kg on a spring of
    12 N/m, but for a stretch of some m a / k = 4e-7. An explicit method needs more than a thousand
    steps, each of a few times 1 / 4000 s. The root finder has tolerances of its own."""
    tie = jm.generalized.PositionConstraint(lambda q, t: q[2] - q[0])
    system = jm.GeneralizedSystem(
        ["a", "b", "c"],
        mass_matrix=masses,
        force=springs,
        constraints={"tie": tie},
        lengths=["a", "b", "c"],
    )
    finder = optimistix.Chord(rtol=1e-6, atol=1e-8, norm=optimistix.max_norm)
    found = jm.simulate(
        system,
        jnp.ones(3),
        jnp.zeros(3),
        2.0,
        solver=diffrax.Kvaerno5(root_finder=finder),
        rtol=1e-7,
        atol=1e-9,
        monitor=False,
    )
    np.testing.assert_allclose(found.q[-1], np.cos(4.0), rtol=0, atol=5e-6)
    np.testing.assert_allclose(found.v[-1], -2 * np.sin(4.0), rtol=0, atol=1e-5)
    assert int(found.statistics.steps) < 300
    assert float(found.position_error[-1]) < 1e-14
