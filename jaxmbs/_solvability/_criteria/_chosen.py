from typing import Any

from jax import lax

from ... import _settings
from ..._system import AbstractSystem
from ._null_space import QR
from .base import AbstractCriterion


# A row of C of unit length follows from a point or a direction on each of two bodies, each of three
# numbers that may be off: 2 sqrt(3).
PRECISION_FACTOR = 4.0


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
    return chosen.within(PRECISION_FACTOR * lax.stop_gradient(system.precision))
