"""Maps over a workspace."""

from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm, Normalize
from matplotlib.figure import Figure

from .._errors import ModelError
from .._sweep import Sweep, Workspace


# Larger gaps are equivalent; without a dropped pivot the gap is infinite.
_LARGEST_GAP = 1e16

# Brightness alone encodes the value, so that maps are readable in grey: light is good in all four.
_COLORS = ("cividis", "cividis", "cividis", "cividis_r")


def draw_map(found: Sweep, x: str, y: str) -> Figure:
    """A workspace as four maps: how many reactions are unique, how clearly the rank is decided
    (the last kept pivot against the first, and against the first that is dropped), and the largest
    force that is unique. Light is good in all of them; cases that failed are
    crosses.

    **Arguments:** `found`: a sweep of the question `workspace` over a grid of two names
    (`Cases.grid`); `x`, `y`: these names, as in `found.cases.names`.

    **Returns:** a matplotlib figure; the caller saves and closes it.

    **Raises:** `ModelError` (a `ValueError`) for another name or question, or where the cases are
    not a grid.
    """
    answers = found.answers()
    if not isinstance(answers, Workspace):
        raise ModelError("a map needs a sweep of the question jaxmbs.sweeps.workspace.")
    across, up, places = _grid(found, x, y)
    good = found.result == 0
    count = answers.reaction_unique.shape[1]
    gap = np.clip(answers.rank_gap, 1.0, _LARGEST_GAP)
    maps = (
        (
            answers.reaction_unique.unique.sum(axis=1),
            f"unique reactions (of {count})",
            Normalize(0, count),
        ),
        (answers.margin, "last kept pivot over the first", LogNorm(*_range(answers.margin[good]))),
        (gap, "rank gap (1e16: none dropped)", LogNorm(1.0, _LARGEST_GAP)),
        (answers.force, "largest unique force (N)", LogNorm(*_range(answers.force[good]))),
    )
    figure, panels = plt.subplots(
        2, 2, figsize=(9.0, 7.2), sharex=True, sharey=True, layout="constrained"
    )
    for k, (axes, (values, label, norm)) in enumerate(zip(panels.flat, maps, strict=True)):
        shown = np.full((len(up), len(across)), np.nan)
        shown[places] = np.where(good, values, np.nan)
        picture = axes.pcolormesh(across, up, shown, cmap=_COLORS[k], norm=norm, shading="nearest")
        figure.colorbar(picture, ax=axes, label=label)
        _failures(axes, found, x, y, ~good)
    for lowest, leftmost in zip(panels[1], panels[:, 0], strict=True):
        lowest.set_xlabel(_label(found, x))
        leftmost.set_ylabel(_label(found, y))
    return figure


def _range(values: Any) -> tuple[float, float]:
    """The range from the smallest nonzero number to the largest; a default where there is none."""
    nonzero = values[values > 0]
    if nonzero.size == 0:
        return 1.0, 10.0
    # Numbers equal up to rounding have one colour.
    return float(nonzero.min()) * (1 - 1e-6), float(nonzero.max()) * (1 + 1e-6)


def _grid(found: Sweep, x: str, y: str) -> tuple[np.ndarray, np.ndarray, tuple[Any, Any]]:
    """The values of both names, and where in the grid each case is."""
    across, column = np.unique(_values(found, x), return_inverse=True)
    up, row = np.unique(_values(found, y), return_inverse=True)
    if len(np.unique(row * len(across) + column)) != len(across) * len(up):
        raise ModelError(f"the cases are no grid of {x!r} and {y!r}; make them by Cases.grid.")
    return across, up, (row, column)


def _values(found: Sweep, name: str) -> np.ndarray:
    if name not in found.cases.names:
        raise ModelError(f"{name!r} is not varied; the names are {', '.join(found.cases.names)}.")
    return found.cases.values[found.cases.names.index(name)]


def _label(found: Sweep, name: str) -> str:
    units = {v.name: v.attributes.get("units", "") for v in found.layout.variables}
    return f"{name} ({units[name]})" if units.get(name) else name


def _failures(axes: Axes, found: Sweep, x: str, y: str, failed: np.ndarray) -> None:
    axes.plot(_values(found, x)[failed], _values(found, y)[failed], "kx", ms=3)
