from collections.abc import Sequence
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from ..._custom_types import Numbers, Scalar, Setting
from ..._linalg import rank_above, RankDecomposition, singular_values
from ..._linalg._concrete_rank import RANK_TOLERANCE
from .._questions import Questions
from .base import AbstractCriterion, rank_tolerance, threshold


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

    def __init__(self, tolerance: Setting[Numbers] = RANK_TOLERANCE):
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
