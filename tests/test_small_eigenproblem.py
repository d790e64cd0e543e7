"""Small eigenproblems inside compiled loops, against LAPACK and by their definitions."""

import jax.numpy as jnp
import numpy as np
import pytest

from jaxmbs._linalg._small_eigenproblem import ascending, eigenvectors, orthonormal


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5])
def test_nearly_diagonal_matrices(size):
    """As they come from a step before."""
    random = np.random.default_rng(size)
    noise = random.normal(size=(size, size))
    matrix = np.diag(random.uniform(0.0, 3.0, size)) + 0.05 * (noise + noise.T)
    values, vectors = map(np.asarray, eigenvectors(jnp.asarray(matrix)))
    np.testing.assert_allclose(np.sort(values), np.linalg.eigvalsh(matrix), atol=1e-12)
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(size), atol=1e-13)
    np.testing.assert_allclose(matrix @ vectors, vectors * values, atol=1e-7)


def test_equal_eigenvalues():
    values, vectors = map(np.asarray, eigenvectors(2.0 * jnp.eye(4)))
    np.testing.assert_allclose(values, np.full(4, 2.0), atol=1e-15)
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(4), atol=1e-15)


def test_nearly_parallel_columns():
    """Gram and Schmidt once would leave them with half of their digits."""
    random = np.random.default_rng(0)
    first = random.normal(size=(30, 1))
    columns = first + 1e-7 * random.normal(size=(30, 4))
    basis = np.asarray(orthonormal(jnp.asarray(columns)))
    np.testing.assert_allclose(basis.T @ basis, np.eye(4), atol=1e-14)
    residual = columns - basis @ (basis.T @ columns)
    assert np.linalg.norm(residual) < 1e-13 * np.linalg.norm(columns)


def test_order_of_a_few_values():
    values = np.array([2.0, np.inf, 1.0, 2.0])
    np.testing.assert_array_equal(ascending(jnp.asarray(values)), [2, 0, 3, 1])
