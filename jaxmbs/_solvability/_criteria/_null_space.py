"""Criteria that look at a basis N of the left null space: unique iff G N = 0."""

from typing import ClassVar

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from ..._custom_types import Numbers, Scalar
from ..._linalg import pivoted_qr, RankDecomposition, singular_values
from .._questions import Questions
from .base import AbstractCriterion


# A unique reaction measures about 1e-16, one that is not about 1e-1 (see MODEL.md section 3).
_UNIQUE_BELOW = 1e-6


class AbstractNullSpaceCriterion(AbstractCriterion):
    """Measures the largest singular value of G N, which no choice of basis changes."""

    def measure(
        self,
        decomposition: RankDecomposition,
        matrix: Float[Array, "m n"],
        questions: Questions,
    ) -> Float[Array, " batch"]:
        del matrix
        product = questions.applied_to(decomposition.null_space)
        if product.shape[1] == 0 or product.shape[2] == 0:
            return jnp.zeros(product.shape[:1], product.dtype)
        if product.shape[1] == 1:
            return jnp.linalg.norm(product[:, 0], axis=-1)
        # G N is wide and G has few components: its Gram matrix is small. What cancels in the
        # product has cancelled before squaring, so that nothing is lost to the square root.
        gram = product @ jnp.swapaxes(product, 1, 2)
        return jnp.sqrt(jnp.maximum(jnp.linalg.eigvalsh(gram)[:, -1], 0.0))

    def unique(self, measure: Float[Array, " batch"]) -> Bool[Array, " batch"]:
        return measure <= _UNIQUE_BELOW


class QR(AbstractNullSpaceCriterion):
    """Pivoted QR decomposition of C (Wojtyra & Fraczek 2013, eqs. 21-27): the default."""

    word: ClassVar[str] = "qr"
    tolerance: Scalar

    def __init__(self, tolerance: Numbers = 1e-9):
        self.tolerance = jnp.asarray(tolerance, dtype=float)

    def decompose(self, matrix: Float[Array, "m n"]) -> RankDecomposition:
        return pivoted_qr(matrix, self.tolerance)


class SVD(AbstractNullSpaceCriterion):
    """Singular value decomposition of C (Wojtyra 2009)."""

    word: ClassVar[str] = "svd"
    tolerance: Scalar

    def __init__(self, tolerance: Numbers = 1e-9):
        self.tolerance = jnp.asarray(tolerance, dtype=float)

    def decompose(self, matrix: Float[Array, "m n"]) -> RankDecomposition:
        return singular_values(matrix, self.tolerance)
