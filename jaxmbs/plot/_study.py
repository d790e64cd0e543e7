"""The way of a design study."""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from .._design import Optimum


def draw_study(found: Optimum) -> Figure:
    """The objective at every iterate, and each parameter's way between its bounds: from its start
    (open circle) to its end (full circle).

    **Returns:** a matplotlib figure; the caller saves and closes it.
    """
    count = len(found.design)
    figure, (way, places) = plt.subplots(
        1, 2, figsize=(9.5, max(3.2, 1.6 + 0.35 * count)), layout="constrained"
    )
    values = found.values
    way.plot(np.arange(values.size), np.where(np.isfinite(values), values, np.nan), "k.-", ms=4)
    way.set_xlabel("iterate")
    way.set_ylabel("objective" + (f" ({found.unit})" if found.unit else ""))
    way.grid(alpha=0.3)
    first = found.history[0].design
    for k, (name, value) in enumerate(found.design.items()):
        low, high = found.bounds[name]
        begin, end = ((x - low) / (high - low) for x in (first[name], value))
        places.plot([0.0, 1.0], [k, k], color="0.8", lw=1.0, zorder=1)
        places.plot([begin, end], [k, k], color="0.3", lw=2.0, zorder=2)
        places.plot(begin, k, "o", color="0.3", mfc="w", ms=7, zorder=3)
        places.plot(end, k, "o", color="k", ms=7, zorder=4)
        unit = found.study.subject.unit(name)
        places.annotate(
            f"{first[name]:.4g} → {value:.4g} {unit}".rstrip(),
            (0.5, k),
            xytext=(0, 6),
            textcoords="offset points",
            ha="center",
            fontsize=8,
        )
    places.set_yticks(range(count), list(found.design), fontsize=8)
    places.set_ylim(count - 0.5, -0.8)
    places.set_xlabel("between the bounds (0: lowest, 1: highest)")
    return figure
