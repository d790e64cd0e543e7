"""Criteria based on a basis N of the left null space: unique iff G N = 0."""

from collections.abc import Sequence
from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from ... import _settings
from ..._checks import namespace
from ..._custom_types import Numbers, RealScalarLike, Scalar, Setting
from ..._linalg import (
    AbstractQRMethod,
    pivoted_qr,
    PlatformQR,
    RankDecomposition,
    singular_values,
)
from ..._linalg._concrete_rank import RANK_TOLERANCE
from .._questions import Questions
from .base import AbstractCriterion, rank_tolerance, threshold


# A unique reaction measures about 1e-16, one that is not about 1e-1 (see `unique`).
UNIQUE_BELOW = 1e-6

# Measures between these are doubtful. That of a unique reaction is rounding over the last kept
# pivot, below 1e-9 where that is not in doubt; above the second `screen` is sure as well.
_DOUBTFUL = (1e-8, 1e-3)


# The null space of a matrix that is known to a precision is known to that over the smallest kept
# pivot, and so is a measure.
_LEAK = 10.0


def unique_below(precision: RealScalarLike | None) -> RealScalarLike:
    """The largest measure of a unique reaction, for data of this precision."""
    if precision is None:
        return UNIQUE_BELOW
    return namespace(precision).maximum(UNIQUE_BELOW, _LEAK * precision)


class AbstractNullSpaceCriterion(AbstractCriterion):
    """Measures the largest singular value of G N, which no choice of basis changes."""

    def measure(
        self,
        decomposition: RankDecomposition,
        matrix: Float[Array, "m n"],
        questions: Sequence[Questions],
    ) -> list[Float[Array, " _batch"]]:
        del matrix
        products = [q.applied_to(decomposition.null_space) for q in questions]
        return _largest_singular_values(products)

    def unique(self, measure: Float[Array, " batch"]) -> Bool[Array, " batch"]:
        return measure <= unique_below(self.precision)

    def near_threshold(self, measure: Float[Array, " batch"]) -> Bool[Array, " batch"]:
        if self.precision is None:
            return (measure > _DOUBTFUL[0]) & (measure < _DOUBTFUL[1])
        below = unique_below(self.precision)
        return (measure > below) & (measure < jnp.maximum(_DOUBTFUL[1], 10 * below))


def _largest_singular_values(
    products: Sequence[Float[Array, "_batch _components m"]],
) -> list[Float[Array, " _batch"]]:
    """Largest singular value of each matrix of each batch."""
    # G N is wide and G has few components: its Gram matrix is small. What cancels in the
    # product has cancelled before squaring, so that nothing is lost to the square root.
    grams = [p @ jnp.swapaxes(p, 1, 2) for p in products]
    large = [i for i, g in enumerate(grams) if g.shape[1] > 3 and g.shape[0] > 0]
    squares = [jnp.zeros(g.shape[:1], g.dtype) for g in grams]
    for i, gram in enumerate(grams):
        if i not in large and 0 not in gram.shape:
            squares[i] = _largest_eigenvalue(_padded(gram, 3))
    if large:
        size = max(grams[i].shape[1] for i in large)
        together = jnp.concatenate([_padded(grams[i], size) for i in large])
        values = jnp.linalg.eigvalsh(together)[:, -1]
        ends = np.cumsum([grams[i].shape[0] for i in large])[:-1]
        for i, part in zip(large, jnp.split(values, ends), strict=True):
            squares[i] = part
    return [jnp.sqrt(jnp.maximum(square, 0.0)) for square in squares]


def _padded(gram: Float[Array, "batch c c"], size: int) -> Float[Array, "batch size size"]:
    more = size - gram.shape[1]
    return jnp.pad(gram, ((0, 0), (0, more), (0, more)))


def _largest_eigenvalue(gram: Float[Array, "batch 3 3"]) -> Float[Array, " batch"]:
    """The largest eigenvalue of symmetric 3 x 3 matrices, by Cardano's formula (Smith 1961, Comm.
    ACM 4)."""
    mean = jnp.trace(gram, axis1=1, axis2=2) / 3
    eye = jnp.eye(3, dtype=gram.dtype)[None]
    rest = gram - mean[:, None, None] * eye
    size = jnp.sqrt(jnp.sum(rest**2, axis=(1, 2)) / 6)
    positive = size > 0
    unit = rest / jnp.where(positive, size, 1.0)[:, None, None]
    first, second, third = unit[:, 0], unit[:, 1], unit[:, 2]
    half_determinant = jnp.sum(first * jnp.cross(second, third), axis=1) / 2
    angle = jnp.arccos(jnp.clip(half_determinant, -1.0, 1.0)) / 3
    return mean + jnp.where(positive, 2 * size * jnp.cos(angle), 0.0)


class QR(AbstractNullSpaceCriterion):
    """Pivoted QR decomposition of C (Wojtyra & Fraczek 2013, eqs. 21-27): the default.

    **Arguments:** `tolerance`: of the rank, relative to the first pivot, from 2.2e-16 (rounding) to
    less than 1; `method`: how it is computed, default as suits the platform
    (`PlatformQR`). No verdict depends on it.
    """

    word: ClassVar[str] = "qr"
    tolerance: Scalar
    precision: Scalar | None
    method: AbstractQRMethod

    def __init__(
        self,
        tolerance: Setting[Numbers] = RANK_TOLERANCE,
        method: Setting[AbstractQRMethod | None] = None,
    ):
        self.tolerance = rank_tolerance(tolerance)
        self.precision = None
        chosen = PlatformQR() if method is None else method
        self.method = _settings.instance(
            chosen, AbstractQRMethod, "method", "PlatformQR(), LapackQR() or BatchedQR()"
        )

    def within(self, precision: Scalar) -> "QR":
        return eqx.tree_at(lambda c: c.precision, self, precision, is_leaf=lambda x: x is None)

    def decompose(self, matrix: Float[Array, "m n"]) -> RankDecomposition:
        return pivoted_qr(matrix, threshold(self.tolerance, self.precision), self.method)


class SVD(AbstractNullSpaceCriterion):
    """Singular value decomposition of C (Wojtyra 2009).

    **Arguments:** `tolerance`: as of `QR`.
    """

    word: ClassVar[str] = "svd"
    tolerance: Scalar
    precision: Scalar | None

    def __init__(self, tolerance: Setting[Numbers] = RANK_TOLERANCE):
        self.tolerance = rank_tolerance(tolerance)
        self.precision = None

    def within(self, precision: Scalar) -> "SVD":
        return eqx.tree_at(lambda c: c.precision, self, precision, is_leaf=lambda x: x is None)

    def decompose(self, matrix: Float[Array, "m n"]) -> RankDecomposition:
        return singular_values(matrix, threshold(self.tolerance, self.precision))
