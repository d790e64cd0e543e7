"""Curves over time; a reaction that is not unique is dashed and labelled so."""

import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from .. import _settings
from .._custom_types import Setting
from .._dynamics import Trajectory
from .._reactions import Reactions, Wrench


# Brightness and pattern differ as well as colours: the picture must be readable in grey. Later
# curves are thinner, so that equal ones show through each other.
_COLORS = ("#f4a261", "#2a6f97", "#111111", "#8d5a97")
_WIDTHS = (4.5, 2.6, 1.2, 1.0)
_DASHES = ((0, (6, 2)), (0, (2, 1.5)), (0, (8, 2, 1.5, 2)), (0, (1, 2)))

NOT_UNIQUE = "not unique"


def draw_curve(
    axes: Axes, times: Any, values: Any, label: str, *, unique: Any = True, place: Setting[int] = 0
) -> None:
    """One curve over time.

    **Arguments:** `times` (n,) s; `values` (n,); `label`; `unique` (n,) or (): the verdicts;
    where one of them is false the curve is dashed and labelled so. `place`: 0, 1, ... of
    this curve among those that are compared in these axes.
    """
    place = _settings.whole_number(place, "place", least=0)
    verdicts = np.broadcast_to(np.asarray(unique, bool), np.shape(times))
    k = place % len(_COLORS)
    style = "solid" if verdicts.all() else _DASHES[k]
    width = _WIDTHS[k] if verdicts.all() else 1.8
    if not verdicts.all():
        label = f"{label} ({NOT_UNIQUE}{' at some times' if verdicts.any() else ''})"
    axes.plot(times, values, color=_COLORS[k], linestyle=style, linewidth=width, label=label)


def draw_force(
    axes: Axes,
    times: Any,
    wrench: Wrench,
    label: str,
    *,
    component: Setting[int | None] = None,
    place: Setting[int] = 0,
) -> None:
    """The magnitude of a force over time, or one component of it (N), as `draw_curve`.

    **Arguments:** `wrench`: of n states; `component`: 0, 1 or 2 for x, y or z.
    """
    force, unique = np.asarray(wrench.force), np.asarray(wrench.force_unique.unique)
    if component is not None:
        last = force.shape[1] - 1
        component = _settings.whole_number(component, "component", least=0, most=last)
    if component is None:
        draw_curve(
            axes, times, np.linalg.norm(force, axis=1), label, unique=unique.all(1), place=place
        )
    else:
        draw_curve(
            axes, times, force[:, component], label, unique=unique[:, component], place=place
        )


def draw_reactions(
    trajectory: Trajectory,
    names: Setting[Sequence[str] | None] = None,
    *,
    compared: Mapping[str, Reactions] | None = None,
) -> Figure:
    """Magnitudes of joint forces (or, without a force, torques) over time, one joint in each
    panel; those that are not unique dashed and labelled so.

    **Arguments:**

    - `trajectory`. `names`: joints and drivers, default all that act at points.
    - `compared`: reactions at the same times by a label, such as a formulation's name; default
      those of the trajectory. Where a reaction is unique the curves lie on each other.

    **Returns:** a matplotlib figure; the caller saves and closes it.
    """
    given = {"": trajectory.reactions()} if compared is None else compared
    first = next(iter(given.values()))
    held = tuple(name for name in first.names if first.has_wrench(name))
    chosen = held if names is None else _settings.names(names, "names", '["A", "B"]')
    figure, panels = _panels(len(chosen))
    times = np.asarray(trajectory.times)
    for axes, name in zip(panels, chosen, strict=True):
        torque = not np.any(np.asarray(first.wrench(name).force))
        determined = True
        for place, (label, found) in enumerate(given.items()):
            wrench = found.wrench(name)
            sizes, unique = _torque(wrench) if torque else _force(wrench)
            draw_curve(axes, times, sizes, label, unique=unique, place=place)
            determined &= bool(unique.all())
        quantity = "torque (N m)" if torque else "force (N)"
        # Of the same verdicts as the dashes.
        verdict = "" if determined else f", {NOT_UNIQUE}"
        axes.set_title(f"{name}{verdict}", fontweight="bold" if verdict else "normal")
        axes.set_ylabel(quantity)
    if len(given) > 1 and panels:
        label_curves(figure, panels)
    return figure


def _force(wrench: Wrench) -> tuple[np.ndarray, np.ndarray]:
    return np.linalg.norm(np.asarray(wrench.force), axis=1), np.asarray(wrench.determined.unique)


def _torque(wrench: Wrench) -> tuple[np.ndarray, np.ndarray]:
    torque = np.asarray(wrench.torque).reshape(len(wrench.unique), -1)
    return np.linalg.norm(torque, axis=1), np.asarray(wrench.determined.unique)


def _panels(count: int) -> tuple[Figure, list[Axes]]:
    # Four panels make a square.
    columns = 2 if count in (2, 4) else min(3, max(count, 1))
    rows = max(1, -(-count // columns))
    figure, grid = plt.subplots(
        rows,
        columns,
        figsize=(1.5 + 3.3 * columns, 1.0 + 2.3 * rows),
        sharex=True,
        squeeze=False,
        layout="constrained",
    )
    panels = list(grid.flat)
    for left_over in panels[count:]:
        left_over.remove()
    for k, axes in enumerate(panels[:count]):
        axes.grid(alpha=0.3)
        if k + columns >= count:
            axes.set_xlabel("time (s)")
            axes.tick_params(labelbottom=True)
    return figure, panels[:count]


def label_curves(figure: Figure, panels: Sequence[Axes]) -> None:
    """One legend above all panels: a column for each curve, its solid and its dashed form."""
    forms: dict[str, dict[str, Any]] = {}
    for axes in panels:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            forms.setdefault(label.split(" (" + NOT_UNIQUE)[0], {}).setdefault(label, handle)
    tall = max(map(len, forms.values()))
    blank = Line2D([], [], linestyle="none")
    handles, labels = [], []
    for own in forms.values():
        padding = tall - len(own)
        handles += [*own.values(), *[blank] * padding]
        labels += [*own, *[""] * padding]
    figure.legend(
        handles,
        labels,
        loc="outside upper center",
        ncols=len(forms),
        frameon=False,
        handlelength=3.5,
    )


def remark(figure: Figure, text: str, width: int = 120) -> None:
    """A remark below the panels."""
    figure.supxlabel("\n".join(textwrap.wrap(text, width)), fontsize=8, color="#444444")
