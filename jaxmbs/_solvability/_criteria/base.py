import abc
from collections.abc import Sequence
from typing import ClassVar

import equinox as eqx
from jaxtyping import Array, Bool, Float

from ..._custom_types import Scalar
from ..._linalg import RankDecomposition
from .._questions import Questions


class AbstractCriterion(eqx.Module):
    """A way to decide which functionals of the multipliers are unique.

    `word` is its name in reports. `tolerance` is relative to the first pivot of the scaled C.
    """

    word: ClassVar[str]
    tolerance: eqx.AbstractVar[Scalar]

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
        """How far each functional of each batch is from being unique; 0 when it is.

        All batches come at once, so that a criterion makes one call to LAPACK for all of them.
        Two independent calls in one compiled function may run at the same time, and on a CPU
        of two cores they then wait for each other for ever (jaxlib 0.10).
        """

    @abc.abstractmethod
    def unique(self, measure: Float[Array, " batch"]) -> Bool[Array, " batch"]:
        """The verdict for a measure."""
