"""Distributions of misfits and reactions of parts with tolerances."""

import math
from collections.abc import Sequence

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from .. import _settings
from .._custom_types import Setting
from .._errors import ModelError
from .._sweep import Component, spread, Sweep
from ._history import NOT_UNIQUE


_FILL, _MANY = "#2a6f97", "#f4a261"


def draw_spread(
    found: Sweep, joints: Setting[Sequence[str] | None] = None, *, bins: Setting[int] = 40
) -> Figure:
    """Histograms of misfits, and of the components of reactions, with the mean (line) and the 5th
    and 95th percentile (dotted). A reaction that is not unique is hatched and labelled so.

    **Arguments:**

    - `found`: a sweep of the question `Misfit`. `bins`: of each histogram, at least 1.
    - `joints`: whose reactions are shown; default all components that are unique.

    **Returns:** a matplotlib figure; the caller saves and closes it.

    **Raises:** `ModelError` (a `ValueError`) for another question, names that are none, or where
    there is nothing to show.
    """
    bins = _settings.whole_number(bins, "bins", least=1)
    if joints is not None:
        joints = _settings.names(joints, "joints", '["A", "B"]')
    components = spread(found).components
    misfits = [c for c in components if c.what.startswith("misfit")]
    reactions = [c for c in components if c not in misfits]
    known = found.layout.attributes["constraints"]
    for name in joints or ():
        if name not in known:
            raise ModelError(f"there is no joint or driver {name!r}; there are {', '.join(known)}.")
    if joints is None:
        shown = [c for c in reactions if c.unique]
    else:
        shown = [c for name in joints for c in reactions if c.name == name]
    chosen = [*misfits, *shown]
    if not chosen:
        raise ModelError("there is nothing to show: no contradiction and no reaction but zero.")
    columns = min(3, len(chosen))
    rows = math.ceil(len(chosen) / columns)
    figure, panels = plt.subplots(
        rows, columns, figsize=(1.0 + 3.4 * columns, 0.6 + 2.4 * rows), squeeze=False,
        layout="constrained",
    )  # fmt: skip
    for left_over in panels.flat[len(chosen) :]:
        left_over.remove()
    for axes, component in zip(panels.flat, chosen, strict=False):
        _histogram(axes, component, bins)
    for first in panels[:, 0]:
        first.set_ylabel("cases")
    return figure


def _histogram(axes: Axes, component: Component, bins: int) -> None:
    verdict = "" if component.unique else f", {NOT_UNIQUE}"
    axes.hist(
        component.values,
        bins=bins,
        color=_FILL if component.unique else _MANY,
        hatch=None if component.unique else "///",
        edgecolor="white" if component.unique else "black",
        linewidth=0.3,
    )
    axes.axvline(component.mean, color="black", lw=1.2)
    for percentile in component.percentiles[[0, -1]]:
        axes.axvline(percentile, color="black", lw=1.0, ls=":")
    axes.set_title(f"{component.name}{verdict}", fontweight="bold" if verdict else "normal")
    axes.set_xlabel(f"{component.what} ({component.unit})")
    axes.ticklabel_format(axis="x", style="sci", scilimits=(-3, 4), useMathText=True)
    axes.locator_params(axis="x", nbins=5)
    axes.grid(alpha=0.3)
    # Values that differ by rounding alone are one.
    spread_out = np.ptp(component.values) > 1e-9 * np.max(np.abs(component.values))
    if not spread_out:
        axes.set_xlim(component.mean - 1.0, component.mean + 1.0)
