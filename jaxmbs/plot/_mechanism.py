"""A mechanism drawn to scale, its joints marked by verdict."""

import itertools
import textwrap
from collections.abc import Mapping
from typing import Any, NamedTuple

import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patheffects import withStroke
from matplotlib.transforms import Bbox, BboxBase
from mpl_toolkits.mplot3d import proj3d

from .._bodies import Site
from .._constraints import Cam, PointOnCurve
from .._drawing import rope_lines
from .._geometry import AbstractCoordinates
from .._programs import Compiling, program
from .._solvability import Solvability
from .._system import Model, MultibodySystem


# Shapes and brightness differ as well as colours: the picture must be readable in grey.
_UNIQUE = {"marker": "o", "color": "#8ecae6", "size": 8.0}
_NOT_UNIQUE = {"marker": "X", "color": "#b3261e", "size": 10.0}
_BODY = "#5c677d"
_FILL = "#e9ecef"

# Points of a drawn curve.
_CURVE_POINTS = 400


class _Place(NamedTuple):
    """Joints and drivers that share one point."""

    point: np.ndarray
    names: list[str]


def draw_mechanism(model: Model, system: MultibodySystem, report: Solvability, q: Any) -> Figure:
    """The mechanism at q, to scale; joints marked unique or not unique.

    **Arguments:** `model` and its `system`; `report` of `analyze` at `q` (nq,).

    **Returns:** a matplotlib figure; the caller saves and closes it.

    **Raises:** `ValueError` for a mechanism without positions.
    """
    centres = _centres(model, q)
    if not centres:
        raise ValueError(
            f"nothing of {model.name!r} has a place that could be drawn: its bodies have "
            "coordinates of their own, and no frames; give them frames=..."
        )
    frames = _marker_frames(system, jnp.asarray(q))
    frames = {name: own for name, own in frames.items() if own[0].dimension is not None}
    points = {name: [np.asarray(f.origin) for f in fs] for name, fs in frames.items()}
    unique = {name: bool(report.unique(name)) for name in report.structure.constraint_names}
    located = {j.name for j in model.joints if j.located}
    located |= {d.name for d in model.drivers if d.joint in located}
    height = _height(points) if model.dimension == 2 else 7.5
    figure = plt.figure(figsize=(9.0, height), layout="constrained")
    axes = figure.add_subplot(projection="3d" if model.dimension == 3 else None)
    for name, centre in centres.items():
        _draw_site(axes, model, points, name, centre)
    strokes = [*_draw_edges(axes, model, frames), *_draw_curves(axes, model, frames)]
    strokes += _draw_ropes(axes, model, system, q)
    places = _places({name: points[name][0] for name in points if name in located})
    _draw_joints(axes, places, unique)
    _finish(figure, axes, model, report)
    if model.dimension == 2 and not places:
        # Of points alone the frame would be as narrow as these lie.
        axes.set_aspect("equal", adjustable="datalim")
    _label_joints(figure, axes, places, unique, strokes)
    return figure


@program(compiling=Compiling.ONCE)
def _marker_frames(system: MultibodySystem, q: Any) -> Any:
    """As one program; operation by operation they are twenty."""
    return system.marker_frames(q)


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


def _height(points: Mapping[str, list[np.ndarray]]) -> float:
    """Height of a planar figure (inches) whose width is nine."""
    everything = np.array([p for own in points.values() for p in own])
    width, height = np.ptp(everything, axis=0) if everything.size else (1.0, 1.0)
    return float(np.clip(2.5 + 7.5 * height / max(width, 1e-12), 4.0, 9.0))


def _centres(model: Model, q: Any) -> dict[str, np.ndarray]:
    """Positions of the frames of the bodies, by the names that joints use."""
    found, start = {}, 0
    for body in model.bodies:
        kind = body.inertia_properties().coordinates
        state = jnp.asarray(q[start : start + kind.nq])
        start += kind.nq
        for name, site in body.sites().items():
            centre = _centre(kind, site, state)
            if centre is not None:
                found[name] = centre
    return found


def _centre(kind: AbstractCoordinates, site: Site, state: Any) -> np.ndarray | None:
    """Origin of the frame by which a body is held at a site; None if it has none."""
    if kind.posed:
        return np.asarray(state[: kind.frame[0]])
    frame: Any = site.marker(site.reference).body_frame(state)
    return None if frame.dimension is None else np.asarray(frame.origin)


def _draw_site(
    axes: Any,
    model: Model,
    points: Mapping[str, list[np.ndarray]],
    site: str,
    centre: np.ndarray,
) -> None:
    """A body, or a frame of it, as the figure that its joint points span; named where it has
    none."""
    own = [
        points[joint.name][k]
        for joint in model.joints
        for k, name in enumerate(joint.bodies)
        if name == site and joint.located
    ]
    if not own:
        axes.plot(*centre[:, None], marker="o", markersize=8, color=_BODY, zorder=2)
        axes.annotate(site, _on_paper(axes, centre), xytext=(7, 7), textcoords="offset points")
        return
    corners = np.unique(np.round(np.array(own), 9), axis=0)
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
    hull = _convex_hull(corners)
    axes.fill(*hull.T, facecolor=_FILL, edgecolor=_BODY, lw=1.5, zorder=1)
    for corner in corners:
        inside = not np.any(np.all(np.isclose(hull, corner), axis=1))
        if inside:
            # A joint in the middle of the plate still visibly belongs to it.
            axes.plot(*corner[:, None], marker="o", markersize=14, color="#ced4da", zorder=1)


def _convex_hull(points: np.ndarray) -> np.ndarray:
    """Corners of the convex hull, counter-clockwise (Andrew's monotone chain)."""
    ordered = points[np.lexsort((points[:, 1], points[:, 0]))]

    def chain(sequence: np.ndarray) -> list[np.ndarray]:
        kept: list[np.ndarray] = []
        for point in sequence:
            while len(kept) > 1 and _turn(kept[-2], kept[-1], point) <= 1e-12:
                kept.pop()
            kept.append(point)
        return kept[:-1]

    return np.array(chain(ordered) + chain(ordered[::-1]))


def _turn(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> float:
    """Positive where the path a-b-c turns to the left."""
    return float((b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0]))


def _draw_edges(axes: Any, model: Model, frames: Mapping[str, Any]) -> list[np.ndarray]:
    """Knife edges as short strokes along the direction in which they may move; returns points
    along them."""
    strokes = []
    origins = [np.asarray(f.origin) for fs in frames.values() for f in fs]
    half = 0.03 * float(np.max(np.ptp(np.array(origins), axis=0))) if origins else 0.0
    for joint in model.joints:
        if joint.kind == "knife_edge":
            (frame,) = frames[joint.name]
            along = half * np.asarray(frame.rotation)[:, 0]
            stroke = np.stack([frame.origin - along, frame.origin + along])
            axes.plot(*stroke.T, color="black", lw=4, zorder=3, solid_capstyle="butt")
            strokes += list(np.linspace(stroke[0], stroke[1], 5))
    return strokes


def _draw_curves(axes: Any, model: Model, frames: Mapping[str, Any]) -> list[np.ndarray]:
    """Curves and outlines of cams where their bodies are; returns points along them."""
    found = []
    for joint in model.joints:
        if isinstance(joint, PointOnCurve | Cam):
            first = frames[joint.name][0]
            points = np.asarray(joint.along(_CURVE_POINTS)) - np.asarray(joint.at)
            points = points @ np.asarray(first.rotation).T + np.asarray(first.origin)
            closed = isinstance(joint, Cam) or joint.closed
            drawn = np.vstack([points, points[:1]]) if closed else points
            axes.plot(*drawn.T, color="black", lw=1.0, zorder=2)
            found += list(points[:: _CURVE_POINTS // 20])
    return found


def _draw_ropes(axes: Any, model: Model, system: MultibodySystem, q: Any) -> list[np.ndarray]:
    """Ropes, belts, tendons along which something acts, and their pulleys; returns points along
    them."""
    found = []
    ropes, pulleys = rope_lines(system, np.asarray(q)[None])
    for lines, width in ((pulleys, 0.8), (ropes, 1.2)):
        for line in lines:
            drawn = line[0, :, : model.dimension]
            color = _BODY if lines is pulleys else "black"
            axes.plot(*drawn.T, color=color, lw=width, zorder=2)
            steps = np.linspace(0.0, 1.0, 9)[:, None]
            long = 0.1 * float(np.max(np.ptp(drawn, axis=0)))
            for first, last in itertools.pairwise(drawn):
                if np.linalg.norm(last - first) > long:
                    found += list(first + steps * (last - first))
            found += list(drawn[::4])
    return found


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
) -> None:
    """Names next to the joints, each where it covers neither another name nor a joint."""
    figure.draw_without_rendering()
    flat = [_on_paper(axes, place.point) for place in places]
    pixels = np.array([axes.transData.transform(point) for point in flat]).reshape(-1, 2)
    middle = pixels.mean(axis=0) if len(pixels) else np.zeros(2)
    drawn = [axes.transData.transform(_on_paper(axes, point)) for point in strokes]
    taken = [Bbox.from_bounds(x - 6, y - 6, 12, 12) for x, y in (*pixels, *drawn)]
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


def _finish(figure: Figure, axes: Any, model: Model, report: Solvability) -> None:
    axes.set_aspect("equal")
    for letter in "xyz"[: model.dimension]:
        getattr(axes, f"set_{letter}label")(f"{letter} (m)")
    if model.dimension == 2:
        axes.margins(0.08, 0.2)
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
