"""Criteria of unique reactions."""

import abc
from collections.abc import Sequence
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float

from .. import _settings
from .._custom_types import Numbers, Scalar, Setting
from .._limits import EXACT, RANK
from .._linalg import (
    AbstractQRMethod,
    pivoted_qr,
    PlatformQR,
    rank_above,
    RankDecomposition,
    singular_values,
)
from .._system import AbstractSystem
from ._expression import Questions


def rank_tolerance(value: Any) -> Scalar:
    """The part of the first pivot below which a pivot is zero.

    **Raises:** `TypeError` for a value that is not a number, `ValueError` for one out of the range.
    """
    return _settings.between(value, "tolerance", RANK)


def threshold(tolerance: Scalar, precision: Scalar | None) -> Scalar:
    """The part of the first pivot below which a pivot counts as zero."""
    return tolerance if precision is None else jnp.maximum(tolerance, precision)


class AbstractCriterion(eqx.Module):
    """A way to decide which functionals of the multipliers are unique.

    `word` is its name in reports. `tolerance` is relative to the first pivot of the scaled C.
    """

    word: ClassVar[str]
    tolerance: eqx.AbstractVar[Scalar]
    # Of data that are not exact: a pivot below this part of the first is zero within them.
    precision: eqx.AbstractVar[Scalar | None]

    @abc.abstractmethod
    def within(self, precision: Scalar) -> "AbstractCriterion":
        """The same criterion for a matrix whose rows of unit length are known to `precision`.
        Its verdicts call unique what is so for every matrix within that."""

    @abc.abstractmethod
    def decompose(self, matrix: Float[Array, "m n"]) -> RankDecomposition:
        """Rank and left null space of the scaled constraint matrix."""

    @abc.abstractmethod
    def measure(
        self,
        decomposition: RankDecomposition,
        matrix: Float[Array, "m n"],
        questions: Sequence[Questions],
    ) -> list[Float[Array, " _batch"]]:
        """Distance of each functional of each batch from uniqueness; 0 if it is unique.

        All batches come at once, so that a criterion makes one call to LAPACK for all of them.
        Two independent calls in one compiled function may run at the same time, and on a CPU
        of two cores they then wait for each other for ever (jaxlib 0.10).
        """

    @abc.abstractmethod
    def unique(self, measure: Float[Array, " batch"]) -> Bool[Array, " batch"]:
        """The verdict for a measure."""

    @abc.abstractmethod
    def near_threshold(self, measure: Float[Array, " batch"]) -> Bool[Array, " batch"]:
        """Would a slightly other measure have the other verdict?"""


# --------------------------------------------------------------------------------------------------
# Criteria based on a basis N of the left null space: unique iff G N = 0.
# --------------------------------------------------------------------------------------------------


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
        return measure <= EXACT.unique_within(self.precision)

    def near_threshold(self, measure: Float[Array, " batch"]) -> Bool[Array, " batch"]:
        low, high = EXACT.doubtful_measures
        if self.precision is None:
            return (measure > low) & (measure < high)
        below = EXACT.unique_within(self.precision)
        return (measure > below) & (measure < jnp.maximum(high, 10 * below))


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
        tolerance: Setting[Numbers] = EXACT.rank,
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

    def __init__(self, tolerance: Setting[Numbers] = EXACT.rank):
        self.tolerance = rank_tolerance(tolerance)
        self.precision = None

    def within(self, precision: Scalar) -> "SVD":
        return eqx.tree_at(lambda c: c.precision, self, precision, is_leaf=lambda x: x is None)

    def decompose(self, matrix: Float[Array, "m n"]) -> RankDecomposition:
        return singular_values(matrix, threshold(self.tolerance, self.precision))


class RankComparison(AbstractCriterion):
    """Ranks alone: G lambda is unique iff the rows of G lie in the row space of C^T, that is
    rank [C^T; G] = rank C.

    For a joint's reaction G = C_X^T, and the left side is rank C_X + rank C_Y (Wojtyra 2009).
    The slow reference among the criteria: one singular value decomposition per question.

    **Arguments:** `tolerance`: as of `QR`.
    """

    word: ClassVar[str] = "rank"
    tolerance: Scalar
    precision: Scalar | None

    def __init__(self, tolerance: Setting[Numbers] = EXACT.rank):
        self.tolerance = rank_tolerance(tolerance)
        self.precision = None

    def within(self, precision: Scalar) -> "RankComparison":
        return eqx.tree_at(lambda c: c.precision, self, precision, is_leaf=lambda x: x is None)

    def decompose(self, matrix: Float[Array, "m n"]) -> RankDecomposition:
        return singular_values(matrix, threshold(self.tolerance, self.precision))

    def measure(
        self,
        decomposition: RankDecomposition,
        matrix: Float[Array, "m n"],
        questions: Sequence[Questions],
    ) -> list[Float[Array, " _batch"]]:
        def excess(functional: Float[Array, "components m"]) -> Float[Array, ""]:
            together = jnp.concatenate([matrix.T, functional])
            rank = rank_above(together, decomposition.threshold)
            return (rank - decomposition.rank).astype(matrix.dtype)

        # Nothing of this may start before the decomposition has ended.
        matrix, _ = jax.lax.optimization_barrier((matrix, decomposition.threshold))
        dense = [q.dense(matrix.shape[0]) for q in questions]
        size = max(d.shape[1] for d in dense)
        # Rows of zeros change no rank.
        padded = [jnp.pad(d, ((0, 0), (0, size - d.shape[1]), (0, 0))) for d in dense]
        measures = jax.lax.map(excess, jnp.concatenate(padded))
        return jnp.split(measures, np.cumsum([d.shape[0] for d in dense])[:-1])

    def unique(self, measure: Float[Array, " batch"]) -> Bool[Array, " batch"]:
        return measure <= 0.5

    def near_threshold(self, measure: Float[Array, " batch"]) -> Bool[Array, " batch"]:
        # Whole numbers are near to nothing.
        return jnp.zeros(measure.shape, bool)


def chosen_criterion(criterion: Any, system: AbstractSystem | None = None) -> AbstractCriterion:
    """The criterion that a user gave, `QR()` for None; with a system, within the precision of its
    numbers.

    **Raises:** `TypeError` for a value that is not a criterion.
    """
    given = QR() if criterion is None else criterion
    such_as = "QR(), SVD() or RankComparison()"
    chosen = _settings.instance(given, AbstractCriterion, "criterion", such_as)
    if system is None or system.precision is None or not system.structure.has_loops:
        return chosen
    return chosen.within(lax.stop_gradient(system.tolerances.rows))
