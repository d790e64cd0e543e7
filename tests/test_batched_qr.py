"""The batched pivoted QR against LAPACK's: the same ranks, null spaces and verdicts."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg as sl
from representatives import representatives

import jaxmbs as jm
from jaxmbs._linalg import pivoted_qr


# Rows, columns, rank; with no change of ways between 31, 32, 33 and 64 rows.
SHAPES = (
    (31, 36, 28),
    (32, 36, 28),
    (33, 36, 28),
    (64, 54, 50),
    (22, 21, 20),
    (7, 3, 3),
    (3, 7, 2),
    (1, 1, 1),
    (5, 4, 0),
)


def lapack_pivots(matrix) -> np.ndarray:
    upper: Any = sl.qr(matrix, mode="r", pivoting=True)
    return np.abs(np.diagonal(upper[0]))


def batch_of(rows, columns, rank, count, rng):
    left, right = rng.normal(size=(count, rows, rank)), rng.normal(size=(count, rank, columns))
    return left @ right


@eqx.filter_jit
def decomposed(matrices, method):
    return jax.vmap(lambda c: pivoted_qr(c, jnp.asarray(1e-9), method))(jnp.asarray(matrices))


# One compiled program for each shape.
one = eqx.filter_jit(jm.criteria.BatchedQR())
many = eqx.filter_jit(jax.vmap(jm.criteria.BatchedQR()))


@pytest.mark.parametrize(
    ("rows", "columns", "rank"), representatives(SHAPES, (33, 36, 28), *SHAPES[5:])
)
def test_it_is_lapacks(rows, columns, rank, rng):
    matrices = batch_of(rows, columns, rank, 8, rng)
    found = decomposed(matrices, jm.criteria.BatchedQR())
    for k, matrix in enumerate(matrices):
        assert found.rank[k] == rank
        expected = lapack_pivots(matrix)
        size = expected[0] or 1.0
        np.testing.assert_allclose(found.pivots[k], expected, atol=1e-12 * size)
        basis = np.asarray(found.null_space[k])
        assert np.all(basis[:, :rank] == 0)
        np.testing.assert_allclose(
            basis.T @ basis, np.diag(np.arange(rows) >= rank).astype(float), atol=1e-13
        )
        np.testing.assert_allclose(basis.T @ matrix, 0.0, atol=1e-12 * size)


def test_q_and_pivots_of_one_matrix_and_of_a_batch_are_the_same(rng):
    matrices = batch_of(12, 9, 9, 5, rng)
    pivots, q = many(jnp.asarray(matrices))
    for k, matrix in enumerate(matrices):
        alone = one(jnp.asarray(matrix))
        np.testing.assert_allclose(pivots[k], alone[0], rtol=1e-13)
        np.testing.assert_allclose(q[k], alone[1], atol=1e-13)
        np.testing.assert_allclose(q[k].T @ q[k], np.eye(12), atol=1e-14)


def test_nested_batches(rng):
    matrices = batch_of(6, 8, 4, 12, rng).reshape(3, 4, 6, 8)
    pivots, q = eqx.filter_jit(jax.vmap(jax.vmap(jm.criteria.BatchedQR())))(jnp.asarray(matrices))
    flat = many(jnp.asarray(matrices.reshape(12, 6, 8)))
    np.testing.assert_allclose(pivots.reshape(12, 6), flat[0], rtol=1e-13, atol=1e-14)
    np.testing.assert_allclose(q.reshape(12, 6, 6), flat[1], atol=1e-13)


def test_a_small_pivot_is_found_behind_columns_that_cancel():
    """What is left of column lengths by subtraction would be rounding here, and hide it."""
    rng = np.random.default_rng(3)
    basis = np.linalg.qr(rng.normal(size=(10, 10)))[0]
    matrix = basis[:, :4] @ rng.normal(size=(4, 9))
    matrix[:, 5] += 1e-8 * basis[:, 7]
    pivots, _ = one(jnp.asarray(matrix))
    upper = lapack_pivots(matrix)
    np.testing.assert_allclose(pivots[:5], upper[:5], rtol=1e-6)
    assert upper[4] > 1e-9 > 1e-14 > pivots[5]


def test_single_precision(rng):
    matrices = batch_of(8, 9, 5, 4, rng).astype(np.float32)
    pivots, q = many(jnp.asarray(matrices))
    assert pivots.dtype == q.dtype == jnp.float32
    np.testing.assert_array_equal(np.sum(np.asarray(pivots) > 1e-4, axis=1), 5)


@pytest.mark.parametrize(
    "name",
    representatives(["mobile-robot", "parallelogram", "four-bar-chain-spatial"], "mobile-robot"),
)
def test_every_verdict_of_a_mechanism_is_the_same(name, rng):
    """At configurations that close and at some that do not, where ranks differ."""
    system = jm.mechanisms.get(name).system()
    moves = np.concatenate([np.zeros((1, 1)), np.full((15, 1), 0.1)]) * rng.normal(
        size=(16, system.structure.nv)
    )
    qs = jax.vmap(lambda d: system.retract(system.reference_q, d))(jnp.asarray(moves))

    def analyzed(method):
        return lambda q: jm.analyze(system, q, criterion=jm.criteria.QR(method=method))

    own = eqx.filter_jit(jax.vmap(analyzed(jm.criteria.BatchedQR())))(qs)
    # One after the other, which is compiled sooner.
    lapack = eqx.filter_jit(lambda qs: jax.lax.map(analyzed(jm.criteria.LapackQR()), qs))(qs)
    for word in ("rank", "reaction_unique", "multiplier_unique", "body_unique"):
        np.testing.assert_array_equal(getattr(own, word), getattr(lapack, word))
    np.testing.assert_allclose(own.reaction_measure, lapack.reaction_measure, atol=1e-10)
    np.testing.assert_allclose(own.margin, lapack.margin, rtol=1e-6)


def test_the_platform_chooses():
    """On a CPU nothing but LAPACK's call is compiled."""
    matrix = jnp.zeros((6, 5))
    cpu = (
        jax.jit(jm.criteria.PlatformQR()).trace(matrix).lower(lowering_platforms=("cpu",)).as_text()
    )
    gpu = (
        jax.jit(jm.criteria.PlatformQR())
        .trace(matrix)
        .lower(lowering_platforms=("cuda",))
        .as_text()
    )
    assert "geqp3" in cpu
    assert "while" not in cpu
    assert "custom_call" not in gpu
    assert "while" in gpu


def test_the_criterion_takes_its_method_and_tolerance():
    system = jm.mechanisms.get("door").system()
    criterion = jm.criteria.QR(1e-8, method=jm.criteria.BatchedQR())
    report = jm.analyze(system, system.reference_q, criterion=criterion)
    assert int(report.redundancy) == 5
    assert report.layout.method == "qr"
