"""What stands between one step and the next changes no number and no derivative."""

import jax
import jax.numpy as jnp
import numpy as np

from jaxmbs._linalg._arrays import kept


def function(x):
    return jnp.sum(jnp.sin(kept(x[:, None] * x[None])) * kept(x)[:, None])


def plain(x):
    return jnp.sum(jnp.sin(x[:, None] * x[None]) * x[:, None])


def test_numbers_and_derivatives(rng):
    x = jnp.asarray(rng.normal(size=(4, 3)))
    for of in (lambda f: f, jax.grad, jax.jacfwd, jax.hessian):
        for mapped in (lambda f: lambda x: f(x[0]), jax.vmap):
            found = jax.jit(mapped(of(function)))(x)
            np.testing.assert_allclose(found, mapped(of(plain))(x), rtol=1e-13, atol=1e-13)


def test_a_gather_stands_there_for_many_states():
    """One state is kept apart by a barrier, which the compiler removes from batches."""
    one = jax.jit(kept).lower(jnp.ones((4, 3))).as_text()
    many = jax.jit(jax.vmap(kept)).lower(jnp.ones((4, 3))).as_text()
    assert "optimization_barrier" in one
    assert "gather" not in one
    assert "gather" in many


def test_states_wherever_they_stand(rng):
    x = jnp.asarray(rng.normal(size=(2, 3, 5)))
    for axis in range(3):
        found = jax.vmap(kept, axis, axis)(x)
        np.testing.assert_array_equal(found, x)
    np.testing.assert_array_equal(jax.vmap(jax.vmap(kept))(x), x)
    assert jax.vmap(kept)(jnp.zeros((3, 0))).shape == (3, 0)
