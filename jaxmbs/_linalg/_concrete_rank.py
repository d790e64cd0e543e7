"""Ranks and null spaces of concrete matrices, in NumPy, where an answer decides a message or which
program runs. In compiled programs: `_rank.py`.

One policy: what is above `EXACT.rank` times the largest singular value counts. The caller has
made lengths relative to the characteristic length, and rows of unit length where they differ.
"""

from typing import NamedTuple

import numpy as np

from .._limits import EXACT


class NullSpaces(NamedTuple):
    """Singular values (k,), descending, the rank, and orthonormal bases of the left null space
    (m, m - rank) and of the null space (n, n - rank)."""

    values: np.ndarray
    rank: int
    left: np.ndarray
    right: np.ndarray


def thin_svd(matrices: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Singular value decompositions U (..., m, k), s (..., k) and V^T (..., k, n) of finite
    matrices, as by `numpy.linalg.svd`, which now and then does not converge for a regular matrix
    (OpenBLAS, one of 242 x 243), but does for its transpose."""
    try:
        return np.linalg.svd(matrices, full_matrices=False)
    except np.linalg.LinAlgError:
        if matrices.ndim > 2:
            left, values, right = zip(*map(thin_svd, matrices), strict=True)
            return np.stack(left), np.stack(values), np.stack(right)
    left, values, right = np.linalg.svd(matrices.T, full_matrices=False)
    return right.T, values, left.T


def singular_values(matrices: np.ndarray) -> np.ndarray:
    """Singular values (..., k), descending, of finite matrices (..., m, n): a third of the time of
    a decomposition."""
    try:
        return np.linalg.svd(matrices, compute_uv=False)
    except np.linalg.LinAlgError:
        return thin_svd(matrices)[1]


def shortest_solutions(
    matrices: np.ndarray, right: np.ndarray, tolerance: float = EXACT.rank
) -> np.ndarray:
    """The pseudoinverses of matrices (..., m, n) times the right-hand sides (..., m). A number that
    is not finite counts as zero in the matrices."""
    u, values, vt = thin_svd(np.nan_to_num(matrices, posinf=0.0, neginf=0.0))
    kept = values > tolerance * np.max(values, axis=-1, keepdims=True, initial=0.0)
    parts = np.swapaxes(u, -1, -2) @ right[..., None]
    scaled = np.where(kept, 1.0, 0.0)[..., None] * parts / np.where(kept, values, 1.0)[..., None]
    return (np.swapaxes(vt, -1, -2) @ scaled)[..., 0]


def damped_solutions(matrices: np.ndarray, right: np.ndarray, damping: float) -> np.ndarray:
    """A^T (A A^T + damping d I)^-1 b for matrices A (..., m, n) and right-hand sides b (..., m), d
    the largest entry of the diagonal of A A^T: the shortest solutions but for singular values below
    the root of the damping, along which nothing is moved. A number that is not finite counts as
    zero in the matrices."""
    matrices = np.nan_to_num(matrices, posinf=0.0, neginf=0.0)
    squares = matrices @ np.swapaxes(matrices, -1, -2)
    largest = np.max(np.diagonal(squares, axis1=-2, axis2=-1), axis=-1, initial=0.0)
    shift = damping * np.where(largest > 0, largest, 1.0)
    squares = squares + shift[..., None, None] * np.eye(matrices.shape[-2])
    return (np.swapaxes(matrices, -1, -2) @ np.linalg.solve(squares, right[..., None]))[..., 0]


def null_spaces(matrix: np.ndarray, tolerance: float = EXACT.rank) -> NullSpaces:
    """Null spaces of one matrix (m, n)."""
    rows, columns = matrix.shape
    if 0 in matrix.shape:
        return NullSpaces(np.zeros(0), 0, np.eye(rows), np.eye(columns))
    left, values, right = np.linalg.svd(matrix)
    rank = int(np.sum(values > tolerance * values[0]))
    return NullSpaces(values, rank, left[:, rank:], right[rank:].T)


def values_and_rank(matrix: np.ndarray, tolerance: float = EXACT.rank) -> tuple[np.ndarray, int]:
    """Singular values (k,), descending, of one matrix (m, n), and its rank."""
    if 0 in matrix.shape:
        return np.zeros(0), 0
    values = np.linalg.svd(matrix, compute_uv=False)
    return values, int(np.sum(values > tolerance * values[0]))


def ranks(matrices: np.ndarray) -> np.ndarray:
    """Ranks of many matrices (..., m, n). A matrix that is not finite everywhere counts as zero."""
    if 0 in matrices.shape[-2:]:
        return np.zeros(matrices.shape[:-2], int)
    known = np.isfinite(matrices).all(axis=(-2, -1), keepdims=True)
    values = np.linalg.svd(np.where(known, matrices, 0.0), compute_uv=False)
    return np.sum(values > EXACT.rank * values[..., :1], axis=-1)
