from typing import Any

from .. import _settings
from ._minimum_norm import MinimumNorm
from .base import AbstractFormulation


# What a message offers.
SUCH_AS = "MinimumNorm(), UdwadiaKalaba(), NullSpace() or another of the formulations"


def chosen_formulation(formulation: Any) -> AbstractFormulation:
    """The formulation that a user gave, `MinimumNorm()` for None.

    **Raises:** `TypeError` for what is none.
    """
    given = MinimumNorm() if formulation is None else formulation
    return _settings.instance(given, AbstractFormulation, "formulation", SUCH_AS)
