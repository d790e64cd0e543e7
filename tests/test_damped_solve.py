"""One solve with S + mu D at many states, against dense matrices."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxmbs import mechanisms


def dense(mass, rows, right, mu):
    schur = rows @ np.linalg.solve(mass, rows.T)
    diagonal = np.diagonal(schur)
    shifted = schur + mu * np.diag(np.where(diagonal > 0, diagonal, 1.0))
    multipliers = np.linalg.solve(shifted, right)
    return multipliers, np.linalg.solve(mass, rows.T @ multipliers)


# Joints in the plane with rows of velocities, spherical ones in space.
@pytest.mark.parametrize("name", ["mobile-robot", "parallelogram"])
def test_against_dense_matrices(name):
    system = mechanisms.get(name).system()
    structure, rng = system.structure, np.random.default_rng(2)
    steps = 0.3 * rng.normal(size=(3, structure.nv)) * np.asarray(system.column_scale())
    right = rng.normal(size=(3, len(structure.rows)))
    mu = np.array([1e-2, 1e-4, 1.0])

    def solve(step, right, mu):
        q = system.retract(system.reference_q, step)
        descriptor = system.descriptor(q, jnp.zeros(structure.nv), 0.0)
        known = descriptor.mass_matrix(), descriptor.constraint_matrix()
        return descriptor.damped_inverse(mu)(right), known

    given = jnp.asarray(steps), jnp.asarray(right), jnp.asarray(mu)
    together, known = jax.jit(jax.vmap(solve))(*given)
    alone, _ = jax.jit(solve)(*(x[1] for x in given))
    for k in range(3):
        mass, rows = (np.asarray(x[k]) for x in known)
        expected = dense(mass, rows, right[k], mu[k])
        for found, wanted in zip(together, expected, strict=True):
            scale = np.max(np.abs(wanted))
            np.testing.assert_allclose(found[k], wanted, rtol=0, atol=1e-9 * scale)
    for found, one in zip(together, alone, strict=True):
        np.testing.assert_allclose(found[1], one, rtol=0, atol=1e-11 * np.max(np.abs(one)))
