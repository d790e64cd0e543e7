"""Marks of verdicts in pictures. Their shapes and brightness differ as well as their colours: they
are readable in grey.
"""

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from .._verdict import NOT_UNIQUE, UNIQUE


class Mark(NamedTuple):
    """Marker of a verdict and its label in the legend; `size` in points."""

    label: str
    marker: str
    colour: str
    size: float


GOOD = Mark("reaction unique", "o", "#8ecae6", 8.0)
IN_DOUBT = Mark("in doubt", "^", "#808080", 9.0)
MANY = Mark("reaction not unique", "X", "#b3261e", 10.0)

# From the best to the worst.
MARKS = (GOOD, IN_DOUBT, MANY)


def marks_of(verdicts: np.ndarray, doubtful: np.ndarray) -> np.ndarray:
    """Indices into `MARKS`: in doubt is what is not decided, and what counts as unique at a state
    whose ranks are marginal (`doubtful`)."""
    unsure = np.where(verdicts == UNIQUE, doubtful, True)
    return np.where(verdicts == NOT_UNIQUE, MARKS.index(MANY), unsure.astype(int))


def draw_legend(figure: Figure, place: Any, occurring: Iterable[Mark], scale: float = 1.0) -> None:
    """The legend at a `place` as of Matplotlib: the third mark only where it occurs."""
    shown = [mark for mark in MARKS if mark is not IN_DOUBT or mark in occurring]
    handles = [
        Line2D(
            *([], []),
            linestyle="none",
            marker=mark.marker,
            markersize=scale * mark.size,
            markerfacecolor=mark.colour,
            markeredgecolor="black",
            label=mark.label,
        )
        for mark in shown
    ]
    figure.legend(handles=handles, loc=place, ncols=len(shown), frameon=False)
