"""Decompositions of concrete matrices where LAPACK's does not converge."""

from typing import Any

import numpy as np
import pytest

from jaxmbs._linalg._concrete_rank import shortest_solutions, singular_values, thin_svd


@pytest.fixture
def matrices(rng: np.random.Generator) -> np.ndarray:
    """The last one without its full rank."""
    found = rng.normal(size=(4, 5, 7))
    found[3, 4] = found[3, 0] - 2 * found[3, 1]
    return found


@pytest.fixture
def stubborn(matrices: np.ndarray, monkeypatch: pytest.MonkeyPatch) -> None:
    """One of the matrices has no decomposition, its transpose has one."""
    usual: Any = np.linalg.svd

    def svd(given: np.ndarray, **settings: Any) -> Any:
        if given.shape[-2:] == (5, 7) and (given == matrices[2]).all(axis=(-2, -1)).any():
            raise np.linalg.LinAlgError("SVD did not converge")
        return usual(given, **settings)

    monkeypatch.setattr(np.linalg, "svd", svd)


def assert_decomposed(matrices: np.ndarray) -> None:
    left, values, right = thin_svd(matrices)
    assert (left.shape, values.shape, right.shape) == ((4, 5, 5), (4, 5), (4, 5, 7))
    assert (np.diff(values, axis=1) <= 0).all()
    np.testing.assert_allclose((left * values[:, None]) @ right, matrices, atol=1e-13)
    for own in (np.swapaxes(left, 1, 2) @ left, right @ np.swapaxes(right, 1, 2)):
        np.testing.assert_allclose(own, np.broadcast_to(np.eye(5), (4, 5, 5)), atol=1e-13)


def test_usually(matrices: np.ndarray):
    assert_decomposed(matrices)


def test_singular_values(matrices: np.ndarray):
    np.testing.assert_allclose(singular_values(matrices), thin_svd(matrices)[1], atol=1e-13)


@pytest.mark.usefixtures("stubborn")
def test_singular_values_by_the_transpose(matrices: np.ndarray):
    usual = np.sqrt(np.linalg.eigvalsh(matrices[2] @ matrices[2].T))[::-1]
    np.testing.assert_allclose(singular_values(matrices)[2], usual, atol=1e-13)


@pytest.mark.usefixtures("stubborn")
def test_by_the_transpose(matrices: np.ndarray):
    assert_decomposed(matrices)


def test_shortest_solutions(matrices: np.ndarray, rng: np.random.Generator):
    right = rng.normal(size=(4, 5))
    expected = [np.linalg.pinv(a, rcond=1e-9) @ b for a, b in zip(matrices, right, strict=True)]
    np.testing.assert_allclose(shortest_solutions(matrices, right), expected, atol=1e-12)


def test_numbers_that_are_not_finite(matrices: np.ndarray):
    matrices[1, 2, 3], matrices[2, 0, 0] = np.nan, np.inf
    found = shortest_solutions(matrices, np.ones((4, 5)))
    assert np.isfinite(found).all()
    assert not shortest_solutions(np.zeros((2, 3)), np.ones(2)).any()
