from typing import Any

from ... import _settings
from ._null_space import QR
from .base import AbstractCriterion


def chosen_criterion(criterion: Any) -> AbstractCriterion:
    """The criterion that a user gave, `QR()` for None.

    **Raises:** `TypeError` for what is none.
    """
    given = QR() if criterion is None else criterion
    such_as = "QR(), SVD() or RankComparison()"
    return _settings.instance(given, AbstractCriterion, "criterion", such_as)
