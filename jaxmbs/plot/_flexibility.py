"""Forces by choice of elastic parts."""

from collections.abc import Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from .. import _settings
from .._checks import listed
from .._custom_types import Setting
from .._elastic import Flexibility
from .._errors import ModelError
from .._geometry import LENGTH


# Brightness and pattern, so that bars can be distinguished in grey.
_BARS = (("0.15", ""), ("0.55", ""), ("0.85", ""), ("1.0", "////"), ("0.7", "...."), ("1.0", "xx"))

# Number of choices next to each other.
_MOST = 24


def draw_flexibility(found: Flexibility, parts: Setting[Sequence[str] | None] = None) -> Figure:
    """The generalized force of parts (of a rod its mean axial force, compression positive), one bar
    for each part, grouped by which parts are elastic: subsets that leave the requested reactions
    undecided are omitted, the line behind each bar is the force with everything elastic.

    **Arguments:** `found`: what `jaxmbs.elastic.flexibility` returns; `parts`: whose forces are
    shown, entries of `found.deformations`; default those of the candidates, at most six.

    **Returns:** a matplotlib figure; the caller saves and closes it.

    **Raises:** `ModelError` (a `ValueError`) for parts that are none, too many, or of different
    units, or where no subset decides.
    """
    chosen = _parts(found, parts)
    answers = [own for own in found.answers if own.decides][:_MOST]
    if not answers:
        raise ModelError("no subset decides the reactions asked for, so there is nothing to draw.")
    places = [found.deformations.index(name) for name in chosen]
    figure, axes = plt.subplots(
        figsize=(max(6.4, 1.6 + 0.62 * len(answers)), 4.8), layout="constrained"
    )
    width = 0.84 / len(chosen)
    for k, (name, place) in enumerate(zip(chosen, places, strict=True)):
        color, hatch = _BARS[k]
        at = np.arange(len(answers)) + (k - (len(chosen) - 1) / 2) * width
        values = [own.deformation_forces[place] for own in answers]
        axes.bar(at, values, width, color=color, hatch=hatch, edgecolor="k", lw=0.6, label=name)
        if found.everything.decides:
            whole = np.full(len(at), found.everything.deformation_forces[place])
            axes.hlines(whole, at - width / 2, at + width / 2, color="k", lw=1.6)
    axes.axhline(0.0, color="k", lw=0.8)
    axes.set_xticks(range(len(answers)), [_title(own.elastic) for own in answers], fontsize=8)
    axes.set_xlabel("elastic parts (bold line: everything elastic)")
    axes.set_ylabel(f"generalized force of the part ({_unit(found, places)})")
    axes.grid(axis="y", alpha=0.3)
    axes.set_axisbelow(True)
    axes.legend(ncols=len(chosen), fontsize=8, loc="upper center", bbox_to_anchor=(0.5, 1.12))
    return figure


def _title(elastic: Sequence[str]) -> str:
    """One name in a line."""
    return "\n".join(elastic) or "none"


def _parts(found: Flexibility, parts: Any) -> tuple[str, ...]:
    if parts is not None:
        parts = _settings.names(parts, "parts", '["AB", "CD"]')
    names = found.deformations
    if parts is None:
        own = [name for name in names if name.partition(".")[0] in found.candidates]
        chosen = tuple(own or names)[: len(_BARS)]
    else:
        chosen = tuple(dict.fromkeys(parts))
    for name in chosen:
        if name not in names:
            raise ModelError(f"parts: there is no {name!r}; there are {listed(names)}.")
    if not 0 < len(chosen) <= len(_BARS):
        raise ModelError(f"parts must be 1 to {len(_BARS)} names, got {len(chosen)}.")
    return chosen


def _unit(found: Flexibility, places: Sequence[int]) -> str:
    """Unit of the forces that do work on these deformations."""
    directions = [own for part in found.structure.compliances for own in part.directions]
    units = {"N" if directions[k].quantity == LENGTH else "N m" for k in places}
    if len(units) > 1:
        raise ModelError("parts: forces and torques do not stand on one axis; name either.")
    return units.pop()
