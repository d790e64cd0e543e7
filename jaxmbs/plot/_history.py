"""Curves over time, by choice of elastic parts, along a design study, and distributions of many
cases.
"""

import math
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from .. import _settings
from .._checks import listed
from .._constraints import Driver
from .._custom_types import Setting
from .._design import Optimum
from .._dynamics import Trajectory
from .._elastic import Flexibility
from .._errors import ModelError
from .._geometry import LENGTH
from .._reactions import Reactions, Wrench
from .._sweep import Component, spread, Sweep


# --------------------------------------------------------------------------------------------------
# Curves over time; a reaction that is not unique is dashed and labelled so.
# --------------------------------------------------------------------------------------------------


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


def draw_driving(trajectory: Trajectory, drivers: Sequence[Driver]) -> Figure:
    """The force or torque of each driver over the coordinate that it prescribes, angles in
    degrees; over time where that coordinate does not change. One that is not unique is dashed and
    labelled so.

    **Arguments:** `trajectory`: of `inverse_dynamics` or `simulate`; `drivers`: those of its
    system that are drawn, such as `model.drivers`.

    **Returns:** a matplotlib figure; the caller saves and closes it.

    **Raises:** `ModelError` if there is no driver.
    """
    if not drivers:
        raise ModelError("there is no driver whose force or torque could be drawn.")
    figure, panels = _panels(len(drivers), sharex=False)
    reactions, times = trajectory.reactions(), np.asarray(trajectory.times)
    for axes, driver in zip(panels, drivers, strict=True):
        values = np.asarray([float(driver.motion(t)) for t in times])
        turns = driver.coordinate == "rotation"
        label, over = "coordinate (m)", values
        if turns:
            label, over = "angle (deg)", np.degrees(values)
        if np.ptp(values) == 0:
            label, over = "time (s)", times
        unique = np.broadcast_to(np.asarray(reactions.unique(driver.name).unique), times.shape)
        force = np.asarray(reactions.driving(driver.name))
        draw_curve(axes, over, force, driver.name, unique=unique, place=1)
        verdict = "" if unique.all() else f", {NOT_UNIQUE}"
        axes.set_title(f"{driver.name}{verdict}", fontweight="bold" if verdict else "normal")
        axes.set_ylabel("torque (N m)" if turns else "force (N)")
        axes.set_xlabel(label)
        axes.axhline(0.0, color="0.6", linewidth=0.8, zorder=0)
    return figure


def _force(wrench: Wrench) -> tuple[np.ndarray, np.ndarray]:
    return np.linalg.norm(np.asarray(wrench.force), axis=1), np.asarray(wrench.determined.unique)


def _torque(wrench: Wrench) -> tuple[np.ndarray, np.ndarray]:
    torque = np.asarray(wrench.torque).reshape(len(wrench.unique), -1)
    return np.linalg.norm(torque, axis=1), np.asarray(wrench.determined.unique)


def _panels(count: int, sharex: bool = True) -> tuple[Figure, list[Axes]]:
    # Four panels make a square.
    columns = 2 if count in (2, 4) else min(3, max(count, 1))
    rows = max(1, -(-count // columns))
    figure, grid = plt.subplots(
        rows,
        columns,
        figsize=(1.5 + 3.3 * columns, 1.0 + 2.3 * rows),
        sharex=sharex,
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


# --------------------------------------------------------------------------------------------------
# Forces by choice of elastic parts.
# --------------------------------------------------------------------------------------------------


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


# --------------------------------------------------------------------------------------------------
# Distributions of misfits and reactions of parts with tolerances.
# --------------------------------------------------------------------------------------------------


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


# --------------------------------------------------------------------------------------------------
# The way of a design study.
# --------------------------------------------------------------------------------------------------


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
