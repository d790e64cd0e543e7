"""The pseudoinverse with its rank as data."""

import equinox as eqx
import jax
import jax.numpy as jnp
import lineax as lx
import numpy as np
import pytest
from helpers import dot_product_gap, forward_and_reverse
from representatives import representatives, representatives_at

from jaxmbs._linalg._solvers import PivotedQR, Pseudoinverse, reflect


# Rows, columns, rank.
SHAPES = ((6, 6, 4), (8, 5, 5), (5, 8, 5), (5, 8, 3), (9, 4, 1), (4, 4, 0), (0, 3, 0), (3, 0, 0))


def matrix_of(rows, columns, rank, rng):
    return rng.normal(size=(rows, rank)) @ rng.normal(size=(rank, columns))


@jax.jit
def reflected(matrix):
    return reflect(matrix, pivoting=True)


@eqx.filter_jit
def solution(matrix, right, rcond=1e-9):
    return Pseudoinverse(matrix, rcond).apply(right)


@jax.jit
def inverses(matrix):
    inverse = Pseudoinverse(matrix)
    rows, columns = matrix.shape
    transposed = jax.vmap(inverse.apply_transposed)(jnp.eye(columns))
    return inverse.apply_columns(jnp.eye(rows)), transposed, inverse.rank, inverse.null_space


@pytest.mark.parametrize(("rows", "columns", "rank"), representatives_at(SHAPES, 2, 3, 4, 5, 6, 7))
def test_it_is_the_pseudoinverse(rows, columns, rank, rng):
    matrix = matrix_of(rows, columns, rank, rng)
    found, transposed, found_rank, null_space = inverses(jnp.asarray(matrix))
    expected = np.linalg.pinv(matrix, rcond=1e-10) if matrix.size else matrix.T
    assert int(found_rank) == rank
    size = np.max(np.abs(expected), initial=1.0)
    np.testing.assert_allclose(found, expected, atol=1e-12 * size)
    np.testing.assert_allclose(transposed, expected, atol=1e-12 * size)
    np.testing.assert_array_equal(null_space[:, :rank], 0.0)
    basis = np.asarray(null_space[:, rank:])
    np.testing.assert_allclose(basis.T @ basis, np.eye(columns - rank), atol=1e-13)
    np.testing.assert_allclose(matrix @ basis, 0.0, atol=1e-12)


def test_reflections_are_a_pivoted_qr(rng):
    matrix = matrix_of(7, 9, 5, rng)
    found = reflected(jnp.asarray(matrix))
    np.testing.assert_allclose(found.q @ found.r, matrix[:, found.order], atol=1e-13)
    np.testing.assert_allclose(found.q.T @ found.q, np.eye(7), atol=1e-13)
    np.testing.assert_array_equal(np.sort(found.order), np.arange(9))
    pivots = np.abs(np.diagonal(found.r))
    assert np.all(pivots[1:] <= (1 + 1e-6) * pivots[:-1])
    np.testing.assert_array_equal(np.tril(found.r, -1), 0.0)


def test_the_first_of_equally_long_columns_is_taken(rng):
    """Whatever rounding says: so a choice of rows is the same at neighbouring states."""
    unit = rng.normal(size=(5, 4))
    unit /= np.linalg.norm(unit, axis=0)
    for scale in 1 + 1e-15 * rng.normal(size=(20, 4)):
        assert reflected(jnp.asarray(unit * scale)).order[0] == 0


def test_lineax_solves_least_squares_with_it(rng):
    matrix, right = jnp.asarray(matrix_of(8, 6, 3, rng)), jnp.asarray(rng.normal(size=8))
    operator = lx.MatrixLinearOperator(matrix)
    found = jax.jit(lambda b: lx.linear_solve(operator, b, PivotedQR()).value)(right)
    expected = np.linalg.lstsq(matrix, right, rcond=1e-10)[0]
    np.testing.assert_allclose(found, expected, atol=1e-12 * np.max(np.abs(expected)))
    assert not PivotedQR().assume_full_rank()


def test_rcond_decides_the_rank():
    matrix = np.diag([1.0, 1e-4, 1e-12])
    right = jnp.ones(3)
    for rcond, expected in ((1e-2, [1, 0, 0]), (1e-9, [1, 1e4, 0]), (1e-13, [1, 1e4, 1e12])):
        found = solution(jnp.asarray(matrix), right, rcond)
        np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_what_is_not_a_number_shows(rng):
    matrix = jnp.asarray(rng.normal(size=(4, 5))).at[1, 2].set(jnp.nan)
    assert np.any(np.isnan(solution(matrix, jnp.ones(4))))


@pytest.mark.parametrize(
    ("rows", "columns", "rank"), representatives([(8, 6, 3), (5, 7, 4)], (8, 6, 3))
)
def test_derivative_at_constant_rank(rows, columns, rank, rng):
    """Golub & Pereyra 1973, with a right-hand side outside the range, forward and reverse."""
    shapes = ((rows, rank), (rank, columns), (rows,))
    point = tuple(jnp.asarray(rng.normal(size=shape)) for shape in shapes)
    direction = tuple(jnp.asarray(rng.normal(size=shape)) for shape in shapes)

    def function(point):
        left, right, b = point
        return Pseudoinverse(left @ right).apply(b)

    weights = jnp.asarray(rng.normal(size=columns))
    pushed, pulled = forward_and_reverse(function, point, direction, weights)
    assert dot_product_gap(pushed, pulled, direction, weights) < 1e-11

    def exact(s):
        left, right, b = (np.asarray(x + s * d) for x, d in zip(point, direction, strict=True))
        return np.linalg.pinv(left @ right, rcond=1e-10) @ b

    h = 1e-4
    slope = (exact(-2 * h) - 8 * exact(-h) + 8 * exact(h) - exact(2 * h)) / (12 * h)
    np.testing.assert_allclose(pushed, slope, atol=1e-6 * np.max(np.abs(slope)))


@pytest.mark.parametrize(
    ("rows", "columns", "rank"), representatives([(5, 7, 3), (6, 3, 3), (4, 4, 4)], (5, 7, 3))
)
@pytest.mark.thorough
def test_second_derivatives_in_every_order_of_modes(rows, columns, rank, rng):
    left, right, b = (rng.normal(size=shape) for shape in ((rows, rank), (rank, columns), (rows,)))
    left, right, b = (np.stack([x, 0.1 * rng.normal(size=x.shape)]) for x in (left, right, b))

    def function(s):
        factors = (jnp.asarray(x[0]) + s * x[1] for x in (left, right))
        return Pseudoinverse(jnp.matmul(*factors)).apply(b[0] + s * b[1])

    def exact(s):
        matrix = (left[0] + s * left[1]) @ (right[0] + s * right[1])
        return np.linalg.pinv(matrix, rcond=1e-10) @ (b[0] + s * b[1])

    h = 1e-3
    values = np.stack([exact(k * h) for k in range(-3, 4)])
    weights = np.array([2, -27, 270, -490, 270, -27, 2]) / 180
    expected = weights @ values / h**2
    modes = (jax.jacfwd, jax.jacrev)
    found = [jax.jit(outer(inner(function)))(0.0) for outer in modes for inner in modes]
    for own in found:
        np.testing.assert_allclose(own, found[0], rtol=0, atol=1e-9 * np.max(np.abs(found[0])))
        np.testing.assert_allclose(own, expected, rtol=0, atol=1e-5 * np.max(np.abs(expected)))
