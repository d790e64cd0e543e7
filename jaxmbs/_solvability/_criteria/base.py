import abc
from collections.abc import Sequence
from typing import Any, ClassVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from ... import _settings
from ..._custom_types import Scalar
from ..._linalg import RankDecomposition
from .._questions import Questions


def rank_tolerance(value: Any) -> Scalar:
    """The part of the first pivot below which a pivot is zero. Pivots carry rounding, so that with
    less than that every rank would be full; with all of the first pivot every rank would be none.

    **Raises:** `TypeError` for a value that is not a number, `ValueError` for one out of that
    range.
    """
    least = float(np.finfo(np.float64).eps)
    return _settings.between(value, "tolerance", least=least, below=1, advice="1e-9 is usual")


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
