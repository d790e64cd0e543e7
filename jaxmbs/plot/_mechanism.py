"""A mechanism drawn to scale, its joints marked by verdict."""

import textwrap
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patheffects import withStroke
from matplotlib.transforms import Bbox, BboxBase
from mpl_toolkits.mplot3d import proj3d

from .._drawing import GROUND, Scene, scene
from .._solvability import Solvability
from .._system import Model, MultibodySystem
from ._shapes import draw_gravity, PlanarPicture, set_limits, SpatialPicture


# Shapes and brightness differ as well as colours: the picture must be readable in grey.
_UNIQUE = {"marker": "o", "color": "#8ecae6", "size": 8.0}
_NOT_UNIQUE = {"marker": "X", "color": "#b3261e", "size": 10.0}


class _Place(NamedTuple):
    """Joints and drivers that share one point."""

    point: np.ndarray
    names: list[str]


def draw_mechanism(model: Model, system: MultibodySystem, report: Solvability, q: Any) -> Figure:
    """The mechanism at q, to scale; joints marked unique or not unique.

    Bodies have their visual shapes (`Model.visuals`), or those that follow from their joints;
    joints are drawn by their symbols, the ground is hatched.

    **Arguments:** `model` and its `system`; `report` of `analyze` at `q` (nq,).

    **Returns:** a matplotlib figure; the caller saves and closes it.

    **Raises:** `ValueError` for a mechanism without positions.
    """
    drawn = scene(system, None, np.asarray(q)[None], model.visuals)
    if not drawn.drawable:
        raise ValueError(
            f"nothing of {model.name!r} has a place that could be drawn: its bodies have "
            "coordinates of their own, and no frames; give them frames=..."
        )
    unique = {name: bool(report.unique(name)) for name in report.structure.constraint_names}
    figure = plt.figure(figsize=(9.0, _height(drawn)), layout="constrained")
    axes = figure.add_subplot(projection=None if drawn.planar else "3d")
    picture = PlanarPicture(axes, drawn) if drawn.planar else SpatialPicture(axes, drawn)
    picture.show(0)
    places = _places(drawn, report.structure.constraint_names)
    _draw_joints(axes, places, unique)
    _finish(figure, axes, model, report, drawn)
    arrow = draw_gravity(axes, drawn)
    _name_loose_bodies(axes, drawn, model)
    _label_joints(figure, axes, places, unique, picture.points(0), arrow)
    return figure


def _places(drawn: Scene, names: Sequence[str]) -> list[_Place]:
    dimension = 2 if drawn.planar else 3
    near = 1e-9 * drawn.size
    places: list[_Place] = []
    for symbol in drawn.symbols:
        own, point = [names[k] for k in symbol.constraints], symbol.position[0, :dimension]
        for place in places:
            if np.allclose(place.point, point, atol=near):
                place.names.extend(own)
                break
        else:
            places.append(_Place(point, own))
    order = {name: k for k, name in enumerate(names)}
    return [_Place(place.point, sorted(place.names, key=order.__getitem__)) for place in places]


def _height(drawn: Scene) -> float:
    """Height of a figure (inches) whose width is nine."""
    if not drawn.planar:
        return 7.5
    width, height = (drawn.high - drawn.low)[:2]
    return float(np.clip(2.5 + 7.5 * height / max(width, 1e-12), 4.0, 9.0))


def _name_loose_bodies(axes: Any, drawn: Scene, model: Model) -> None:
    """The names of bodies that no joint holds."""
    held = {name for joint in model.joints if joint.located for name in joint.bodies}
    for body in drawn.bodies:
        if body.name not in (*held, GROUND):
            place = body.position[0, : 2 if drawn.planar else 3]
            text = body.name
            axes.annotate(text, _on_paper(axes, place), xytext=(7, 7), textcoords="offset points")


def _draw_joints(axes: Any, places: list[_Place], unique: Mapping[str, bool]) -> None:
    for place in places:
        style = _style(place, unique)
        axes.plot(
            *place.point[:, None],
            marker=style["marker"],
            markersize=style["size"],
            markerfacecolor=style["color"],
            markeredgecolor="black",
            linestyle="none",
            zorder=4,
        )


def _style(place: _Place, unique: Mapping[str, bool]) -> dict[str, Any]:
    return _UNIQUE if all(unique[name] for name in place.names) else _NOT_UNIQUE


def _label_joints(
    figure: Figure,
    axes: Any,
    places: list[_Place],
    unique: Mapping[str, bool],
    strokes: list[np.ndarray],
    arrow: Any,
) -> None:
    """Names next to the joints, each where it covers neither another name nor a joint."""
    figure.draw_without_rendering()
    flat = [_on_paper(axes, place.point) for place in places]
    pixels = np.array([axes.transData.transform(point) for point in flat]).reshape(-1, 2)
    middle = pixels.mean(axis=0) if len(pixels) else np.zeros(2)
    drawn = [axes.transData.transform(_on_paper(axes, point)) for point in strokes]
    taken = [Bbox.from_bounds(x - 6, y - 6, 12, 12) for x, y in pixels]
    taken += [Bbox.from_bounds(x - 4, y - 4, 8, 8) for x, y in drawn]
    if arrow is not None:
        taken.append(arrow.get_window_extent())
    order = np.argsort(-np.linalg.norm(pixels - middle, axis=1)) if len(pixels) else []
    for i in order:
        bold = _style(places[i], unique) is _NOT_UNIQUE
        text = axes.annotate(
            ", ".join(places[i].names),
            flat[i],
            xytext=(9, 9),
            textcoords="offset points",
            fontsize=9,
            fontweight="bold" if bold else "normal",
            zorder=5,
            path_effects=[withStroke(linewidth=3, foreground="white")],
        )
        outwards = np.arctan2(*(pixels[i] - middle)[::-1])
        inside = axes.get_window_extent()
        taken.append(_settle(text, outwards, taken, inside))


def _settle(text: Any, outwards: float, taken: list[Bbox], inside: BboxBase) -> Bbox:
    """Move a label around its point, outwards first, until it is free and in the axes."""
    turns = np.deg2rad([0, 35, -35, 70, -70, 110, -110, 145, -145, 180])
    box = text.get_window_extent()
    for distance in (9, 14, 20, 28, 38):
        for turn in turns:
            direction = np.array([np.cos(outwards + turn), np.sin(outwards + turn)])
            text.set_position(tuple(distance * direction))
            text.set_horizontalalignment(("right", "center", "left")[_third(direction[0])])
            text.set_verticalalignment(("top", "center", "bottom")[_third(direction[1])])
            box = text.get_window_extent()
            contained = inside.containsx(box.x0) and inside.containsx(box.x1)
            contained = contained and inside.containsy(box.y0) and inside.containsy(box.y1)
            if contained and not any(box.overlaps(other) for other in taken):
                return box
    return box


def _third(x: float) -> int:
    return 1 + int(np.sign(x)) * int(abs(x) > 0.38)


def _on_paper(axes: Any, point: np.ndarray) -> tuple[float, float]:
    """Position of a drawn point, in the axes' own two coordinates."""
    if len(point) == 2:
        return float(point[0]), float(point[1])
    x, y, _ = proj3d.proj_transform(point[0], point[1], point[2], axes.get_proj())
    return float(x), float(y)


def _finish(figure: Figure, axes: Any, model: Model, report: Solvability, drawn: Scene) -> None:
    set_limits(axes, drawn, 0.08)
    if drawn.planar:
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
    figure.legend(handles=handles, loc="outside upper center", ncols=2, frameon=False)
    if model.remark:
        figure.supxlabel("\n".join(textwrap.wrap(model.remark, 120)), fontsize=8, color="#444444")
