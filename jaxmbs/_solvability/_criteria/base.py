import abc
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
        questions: Questions,
    ) -> Float[Array, " batch"]:
        """How far each functional is from being unique; 0 when it is."""

    @abc.abstractmethod
    def unique(self, measure: Float[Array, " batch"]) -> Bool[Array, " batch"]:
        """The verdict for a measure."""
