"""A mechanism drawn to scale, its joints marked by verdict."""

import textwrap
from collections.abc import Mapping
from typing import Any, NamedTuple

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from .._solvability import Solvability
from .._system import Model, MultibodySystem


# Shapes and brightness differ as well as colours: the picture must be readable in grey.
_UNIQUE = {"marker": "o", "color": "#8ecae6", "size": 8.0}
_NOT_UNIQUE = {"marker": "X", "color": "#b3261e", "size": 10.0}
_BODY = "#5c677d"
_FILL = "#e9ecef"


class _Place(NamedTuple):
    """Joints and drivers that share one point."""

    point: np.ndarray
    names: list[str]


def draw_mechanism(model: Model, system: MultibodySystem, report: Solvability, q: Any) -> Figure:
    """The mechanism at q, to scale; joints marked unique or not unique.

    **Arguments:** `model` and its `system`; `report` of `analyze` at `q` (nq,).

    **Returns:** a matplotlib figure; the caller saves and closes it.
    """
    frames = system.marker_frames(q)
    points = {name: [np.asarray(f.origin) for f in fs] for name, fs in frames.items()}
    unique = {name: bool(report.unique(name)) for name in report.structure.constraint_names}
    located = {j.name for j in model.joints if j.located}
    located |= {d.name for d in model.drivers if d.joint in located}
    figure = plt.figure(figsize=(9.0, 6.5), layout="constrained")
    axes = figure.add_subplot(projection="3d" if model.dimension == 3 else None)
    _draw_bodies(axes, model, points, q)
    _draw_edges(axes, model, frames)
    places = _places({name: points[name][0] for name in points if name in located})
    _draw_joints(axes, places, unique, _extent(points, located))
    _finish(figure, axes, model, report)
    return figure


def _places(points: Mapping[str, np.ndarray]) -> list[_Place]:
    places: list[_Place] = []
    for name, point in points.items():
        for place in places:
            if np.allclose(place.point, point, atol=1e-9):
                place.names.append(name)
                break
        else:
            places.append(_Place(point, [name]))
    return places


def _extent(points: Mapping[str, list[np.ndarray]], located: set[str]) -> float:
    everything = np.array([p for name in located for p in points[name]])
    return float(np.max(np.ptp(everything, axis=0))) if everything.size else 1.0


def _draw_bodies(axes: Any, model: Model, points: Mapping[str, list[np.ndarray]], q: Any) -> None:
    """Each body as the figure that its joint points span."""
    start = 0
    for body in model.bodies:
        centre = np.asarray(q[start : start + model.dimension])
        start += body.inertia_properties().coordinates.nq
        own = [
            points[joint.name][k]
            for joint in model.joints
            for k, name in enumerate(joint.bodies)
            if name == body.name and joint.located
        ]
        corners = np.unique(np.round(np.array(own or [centre]), 9), axis=0)
        if len(corners) == 1:
            corners = np.stack([corners[0], centre])
        if model.dimension == 2 and len(corners) > 2:
            _fill(axes, corners)
        elif len(corners) > 2:
            for corner in corners:
                axes.plot(*np.stack([centre, corner]).T, color=_BODY, lw=1.5, zorder=1)
        else:
            axes.plot(*corners.T, color=_BODY, lw=2.5, zorder=2, solid_capstyle="round")


def _fill(axes: Axes, corners: np.ndarray) -> None:
    spread = corners - corners.mean(axis=0)
    order = np.argsort(np.arctan2(spread[:, 1], spread[:, 0]))
    axes.fill(*corners[order].T, facecolor=_FILL, edgecolor=_BODY, lw=1.5, zorder=1)


def _draw_edges(axes: Any, model: Model, frames: Mapping[str, Any]) -> None:
    """Knife edges as short strokes along the direction in which they may move."""
    origins = [np.asarray(f.origin) for fs in frames.values() for f in fs]
    half = 0.03 * float(np.max(np.ptp(np.array(origins), axis=0))) if origins else 0.0
    for joint in model.joints:
        if joint.kind == "knife_edge":
            (frame,) = frames[joint.name]
            along = half * np.asarray(frame.rotation)[:, 0]
            stroke = np.stack([frame.origin - along, frame.origin + along])
            axes.plot(*stroke.T, color="black", lw=4, zorder=3, solid_capstyle="butt")


def _draw_joints(
    axes: Any, places: list[_Place], unique: Mapping[str, bool], extent: float
) -> None:
    centre = np.mean([place.point for place in places], axis=0) if places else np.zeros(2)
    for place in places:
        style = _UNIQUE if all(unique[name] for name in place.names) else _NOT_UNIQUE
        axes.plot(
            *place.point[:, None],
            marker=style["marker"],
            markersize=style["size"],
            markerfacecolor=style["color"],
            markeredgecolor="black",
            linestyle="none",
            zorder=4,
        )
        text = ", ".join(place.names)
        if len(place.point) == 3:
            axes.text(*(place.point + 0.02 * extent), text, fontsize=9, zorder=5)
            continue
        # Labels go outwards, away from the middle of the mechanism.
        away = np.sign(place.point - centre + 1e-12)
        axes.annotate(
            text,
            place.point,
            xytext=tuple(9 * away),
            textcoords="offset points",
            ha="left" if away[0] > 0 else "right",
            va="bottom" if away[1] > 0 else "top",
            fontsize=10,
            fontweight="normal" if style is _UNIQUE else "bold",
            zorder=5,
        )


def _finish(figure: Figure, axes: Any, model: Model, report: Solvability) -> None:
    axes.set_aspect("equal")
    for letter in "xyz"[: model.dimension]:
        getattr(axes, f"set_{letter}label")(f"{letter} (m)")
    if model.dimension == 2:
        axes.margins(0.12)
        axes.grid(alpha=0.25)
        axes.set_axisbelow(True)
    rows = len(report.structure.rows)
    axes.set_title(
        f"{model.name}: {rows} rows, rank {int(report.rank)}, "
        f"redundancy p = {int(report.redundancy)}"
    )
    handles = [
        Line2D(
            [],
            [],
            linestyle="none",
            marker=style["marker"],
            markersize=style["size"],
            markerfacecolor=style["color"],
            markeredgecolor="black",
            label=label,
        )
        for style, label in ((_UNIQUE, "reaction unique"), (_NOT_UNIQUE, "reaction not unique"))
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=2, frameon=False)
    if model.remark:
        figure.supxlabel("\n".join(textwrap.wrap(model.remark, 125)), fontsize=7, color="#444444")
