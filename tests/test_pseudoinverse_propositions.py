"""What Zhao et al. 2018, section 4, say of the Moore-Penrose inverse, of the library's own: Lemma 2
(the conditions of Penrose, which determine it) and Propositions 1 to 5, at many shapes, ranks and
sizes. (Proposition 3 as printed, a^+ = a^T / (a^T a), is what holds of a column.)"""

import jax
import jax.numpy as jnp
import lineax as lx
import numpy as np
import pytest
from representatives import representatives

from jaxmbs._linalg import ProximalCholesky
from jaxmbs._linalg._solvers import PivotedQR, Pseudoinverse


SHAPES = representatives(((1, 1), (1, 5), (5, 1), (4, 4), (6, 4), (4, 7)), (6, 4), (4, 7))
SCALES = (1e-6, 1e-3, 1.0, 1e3, 1e6)
CONDITION = 1e3
# Relative: rounding of a decomposition of at most 7 x 7, amplified by the condition.
TOLERANCE = 20 * float(np.finfo(float).eps) * CONDITION


def matrices(rows, columns, rng):
    """Of each rank above zero and each size, with singular values between 1 and 1 / CONDITION; and
    their ranks."""
    found, ranks = [], []
    for rank in range(1, min(rows, columns) + 1):
        for scale in SCALES:
            left, _ = np.linalg.qr(rng.normal(size=(rows, rank)))
            right, _ = np.linalg.qr(rng.normal(size=(columns, rank)))
            values = np.geomspace(1.0, 1 / CONDITION, rank) if rank > 1 else np.ones(1)
            found.append(scale * left * values @ right.T)
            ranks.append(rank)
    return np.stack(found), np.array(ranks)


@jax.jit
@jax.vmap
def inverses(matrix):
    """A^+, once by its columns and once by lineax; (A^T)^+ from the same decomposition."""
    rows, columns = matrix.shape
    inverse = Pseudoinverse(matrix)
    operator = lx.MatrixLinearOperator(matrix)

    def solved(b):
        return lx.linear_solve(operator, b, PivotedQR()).value

    return (
        inverse.apply_columns(jnp.eye(rows)),
        jax.vmap(solved, out_axes=1)(jnp.eye(rows)),
        jax.vmap(inverse.apply_transposed, out_axes=1)(jnp.eye(columns)),
        inverse.rank,
    )


@jax.jit
@jax.vmap
def proximal_inverse(matrix, onto_range):
    """S^+ by the proximal iteration, which asks for right-hand sides in the range of S: S^+ times a
    projector onto it."""
    operator = lx.MatrixLinearOperator(matrix, lx.positive_semidefinite_tag)

    def solved(b):
        return lx.linear_solve(operator, b, ProximalCholesky()).value

    return jax.vmap(solved, in_axes=1, out_axes=1)(onto_range)


def semidefinite_inverses(matrix, metric):
    """Of S in the metric of the diagonal, D^-1/2 (D^-1/2 S D^-1/2)^+ D^-1/2: by the library, and by
    NumPy; and how exact S S^+ can be, by the largest condition of a matrix of unit diagonal: that
    amplifies the error of S^+, which it has amplified."""
    root = np.sqrt(metric)
    unit = matrix / root[:, :, None] / root[:, None, :]
    inverse = np.linalg.pinv(unit, rcond=1e-9, hermitian=True)
    expected = inverse / root[:, :, None] / root[:, None, :]
    found = proximal_inverse(jnp.asarray(matrix), jnp.asarray(matrix @ expected))
    sizes = np.linalg.norm(unit, 2, axis=(1, 2)) * np.linalg.norm(inverse, 2, axis=(1, 2))
    size = np.max(sizes)
    return np.asarray(found), expected, (100 + size) * size * np.finfo(float).eps


@jax.jit
def by_columns(matrix):
    return Pseudoinverse(matrix).apply_columns(jnp.eye(matrix.shape[0]))


def pseudoinverse(matrix):
    """Of one."""
    return np.asarray(by_columns(jnp.asarray(matrix)))


def apart(found, expected):
    """Of each matrix, relative to its largest entry."""
    size = np.max(np.abs(expected), axis=(-2, -1))
    return np.max(np.abs(np.asarray(found) - expected), axis=(-2, -1)) / size


def assert_penrose(w, w0, tolerance=TOLERANCE, metric=None):
    """Lemma 2, of a batch. With a metric d of a square W its products are symmetric in that:
    W W0 d and d W0 W."""
    assert np.max(apart(w @ w0 @ w, w)) < tolerance
    assert np.max(apart(w0 @ w @ w0, w0)) < tolerance
    left, right = w @ w0, w0 @ w
    if metric is not None:
        left, right = left * metric[:, None, :], metric[:, :, None] * right
    for product in (left, right):
        assert np.max(apart(np.swapaxes(product, 1, 2), product)) < tolerance


@pytest.mark.parametrize(("rows", "columns"), SHAPES)
def test_lemma_2(rows, columns, rng):
    matrix, ranks = matrices(rows, columns, rng)
    found, solved, transposed, found_ranks = (np.asarray(x) for x in inverses(jnp.asarray(matrix)))
    np.testing.assert_array_equal(found_ranks, ranks)
    for inverse in (found, solved, np.swapaxes(transposed, 1, 2)):
        assert_penrose(matrix, inverse)
    # The conditions leave one matrix.
    expected = np.linalg.pinv(matrix, rcond=1e-9)
    assert np.max(apart(found, expected)) < TOLERANCE
    # Others satisfy the first and the third, but neither the second nor the fourth.
    free = np.eye(columns) - expected @ matrix
    size = np.max(np.abs(expected), axis=(1, 2), keepdims=True)
    other = expected + size * (free @ rng.normal(size=(columns, rows)))
    assert np.max(apart(matrix @ other @ matrix, matrix)) < 10 * TOLERANCE
    for k in np.flatnonzero(ranks < columns):
        with pytest.raises(AssertionError):
            assert_penrose(matrix[k : k + 1], other[k : k + 1], 1e-3)


@pytest.mark.parametrize(("rows", "columns"), SHAPES)
def test_proposition_1(rows, columns, rng):
    """(l A)^+ = A^+ / l, to rounding of l alone if l is a power of two: nothing else changes."""
    matrix, _ = matrices(rows, columns, rng)
    found = np.asarray(inverses(jnp.asarray(matrix))[0])
    for factor in (-1e-6, 0.3, 1e6):
        scaled = np.asarray(inverses(jnp.asarray(factor * matrix))[0])
        assert np.max(apart(factor * scaled, found)) < TOLERANCE
    doubled = np.asarray(inverses(jnp.asarray(-(2.0**20) * matrix))[0])
    np.testing.assert_allclose(-(2.0**20) * doubled, found, rtol=1e-12, atol=0)


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("count", [1, 5])
def test_propositions_2_to_4(scale, count, rng):
    """A row a, a column a^T, and a^T a of rank one."""
    a = scale * rng.normal(size=(1, count))
    square = (a @ a.T).item()
    rounding = 50 * np.finfo(float).eps
    assert apart(pseudoinverse(a), a.T / square) < rounding
    assert apart(pseudoinverse(a.T), a / square) < rounding
    assert apart(pseudoinverse(a.T @ a), a.T @ a / square**2) < rounding
    # In the metric of its diagonal it is another matrix, but for entries of equal size.
    even = scale * np.sign(a)
    product = (even.T @ even)[None]
    metric = np.diagonal(product, axis1=1, axis2=2)
    found, _, tolerance = semidefinite_inverses(product, metric)
    assert apart(found, product / (even @ even.T).item() ** 2) < tolerance


@pytest.mark.parametrize("ratio", [1e-6, 1.0, 1e6])
def test_proposition_5(ratio, rng):
    """Blocks on the diagonal are inverted each by itself."""
    # Of rank three, and of rank one.
    first = rng.normal(size=(4, 3)) @ rng.normal(size=(3, 5))
    second = ratio * rng.normal(size=(4, 1)) * rng.normal(size=(1, 5))
    both = np.block([[first, np.zeros((4, 5))], [np.zeros((4, 5)), second]])
    found = pseudoinverse(both)
    # An error of the decomposition, relative to the largest entry, costs |A^+|^2 times as much.
    size = np.linalg.norm(both) * np.linalg.norm(found) ** 2
    expected = np.zeros_like(found)
    expected[:5, :4], expected[5:, 4:] = pseudoinverse(first), pseudoinverse(second)
    np.testing.assert_allclose(found, expected, rtol=0, atol=5 * np.finfo(float).eps * size)


def test_proposition_5_ends_at_the_tolerance():
    """A rank is known up to a tolerance: a block that is smaller by more than that counts as zero,
    and `rcond` says how much smaller it may be."""
    both = jnp.diag(jnp.array([1.0, 1e-12]))
    assert int(Pseudoinverse(both).rank) == 1
    kept = Pseudoinverse(both, 1e-14)
    assert int(kept.rank) == 2
    np.testing.assert_allclose(kept.apply(jnp.ones(2)), [1.0, 1e12], rtol=1e-14)


@pytest.mark.parametrize("scale", SCALES)
def test_lemma_2_of_the_proximal_iteration(scale, rng):
    """S = C C^T of each rank: the pseudoinverse in the metric of its diagonal, and the plain one
    where all rows of C have unit length."""
    rows = [rng.normal(size=(6, rank)) for rank in range(1, 7)]
    matrix = scale * np.stack([c @ c.T for c in rows])
    metric = np.diagonal(matrix, axis1=1, axis2=2)
    found, expected, tolerance = semidefinite_inverses(matrix, metric)
    assert_penrose(matrix, found, tolerance, metric)
    assert np.max(apart(found, expected)) < tolerance
    unit = [c / np.linalg.norm(c, axis=1)[:, None] for c in rows]
    matrix = scale * np.stack([c @ c.T for c in unit])
    found, _, tolerance = semidefinite_inverses(matrix, np.full((6, 6), scale))
    assert_penrose(matrix, found, tolerance)
    assert np.max(apart(found, np.linalg.pinv(matrix, rcond=1e-9))) < tolerance
