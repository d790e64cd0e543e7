"""Between which values that are not unique lie."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from .._dynamics import Trajectory
from .._reactions import Reactions


class Bands(NamedTuple):
    """The least and the greatest value of every component at every state: infinite where nothing
    bounds it, NaN where it is unique and where there is no answer, of which `notes` tell."""

    low: Float[np.ndarray, "n components"]
    high: Float[np.ndarray, "n components"]
    notes: tuple[str, ...]


def bands_of(
    trajectory: Trajectory,
    reactions: Reactions,
    components: Sequence[Any],
    verdicts: np.ndarray,
    bounds: Sequence[Any],
) -> Bands:
    """Without bounds, what is not unique may have any value."""
    open_ = verdicts == 0
    low, high = (np.where(open_, sign * np.inf, np.nan) for sign in (-1.0, 1.0))
    return Bands(low, high, ())


def read_bounds(system: Any, texts: Sequence[str]) -> tuple[Any, ...]:
    """Bounds as they are written on the command line."""
    del system
    return tuple(texts)
