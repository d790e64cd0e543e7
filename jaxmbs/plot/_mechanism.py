"""A mechanism drawn to scale, its joints marked by verdict."""

import textwrap
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure
from matplotlib.patheffects import withStroke
from matplotlib.transforms import Bbox, BboxBase
from mpl_toolkits.mplot3d import proj3d

from .._drawing import DrawnBody, GROUND, Scene, scene
from .._drawing._solids import ball
from .._solvability import Solvability
from .._system import Model, MultibodySystem
from ._marks import draw_legend, MANY, Mark, MARKS, marks_of
from ._shapes import draw_gravity, PlanarPicture, set_limits, SpatialPicture


class _Place(NamedTuple):
    """Joints and drivers that share one point."""

    point: np.ndarray
    names: list[str]


# Radius of the dot of a frame over the diagonal of the picture, and its colour.
_DOT, _DOT_COLOUR = 0.008, (0.36, 0.40, 0.47)

# The marks of joints, as indices into `MARKS`.
_Marked = Mapping[str, int]


def draw_mechanism(model: Model, system: MultibodySystem, report: Solvability, q: Any) -> Figure:
    """The mechanism at q, to scale; joints marked unique, not unique, or in doubt.

    In doubt is what is not decided, and what counts as unique where the rank is marginal.

    Bodies have their visual shapes (`Model.visuals`), or those that follow from their joints;
    joints are drawn by their symbols, the ground is hatched.

    **Arguments:** `model` and its `system`; `report` of `analyze` at `q` (nq,).

    **Returns:** a matplotlib figure; the caller saves and closes it.

    **Raises:** `ValueError` for a mechanism without positions, for a mesh that cannot be read, and
    for a visual shape of a frame that has no place.
    """
    drawn = _with_frames(scene(system, None, np.asarray(q)[None], model.visuals), model, q)
    if not drawn.drawable:
        raise ValueError(
            f"nothing of {model.name!r} has a place that could be drawn: its bodies have "
            "coordinates of their own, and no frames; give them frames=..."
        )
    marked = _marked(report)
    figure = plt.figure(figsize=(9.0, _height(drawn)), layout="constrained")
    axes = figure.add_subplot(projection=None if drawn.planar else "3d")
    picture = PlanarPicture(axes, drawn) if drawn.planar else SpatialPicture(axes, drawn)
    picture.show(0)
    places = _places(drawn, report.structure.constraint_names)
    _draw_joints(axes, places, marked)
    _finish(figure, axes, model, report, drawn)
    shown = [_mark(place, marked) for place in places]
    draw_legend(figure, "outside upper center", shown)
    arrow = draw_gravity(axes, drawn)
    _name_loose_bodies(axes, drawn, model)
    _label_joints(figure, axes, places, marked, picture.points(0), arrow)
    return figure


def _with_frames(drawn: Scene, model: Model, q: Any) -> Scene:
    """The scene with a dot for each frame of a body that nothing else shows."""
    found, start = {}, 0
    for body in model.bodies:
        kind = body.inertia_properties().coordinates
        state = jnp.asarray(q[start : start + kind.nq])
        start += kind.nq
        if not kind.posed:
            for name, site in body.sites().items():
                frame: Any = site.marker(site.reference).body_frame(state)
                if frame.dimension is not None:
                    origin = np.asarray(frame.origin)
                    found[name] = np.pad(origin, (0, 3 - len(origin)))
    shown = {own.name for own in drawn.bodies}
    shown |= {name for joint in model.joints if joint.located for name in joint.bodies}
    found = {name: place for name, place in found.items() if name not in shown}
    if not found:
        return drawn
    places = np.array(list(found.values()))
    low, high = places.min(axis=0), places.max(axis=0)
    if drawn.drawable:
        low, high = np.minimum(low, drawn.low), np.maximum(high, drawn.high)
    if model.dimension == 2:
        # Of points on a line the frame would be as narrow as these lie.
        middle, half = (low + high) / 2, (high - low) / 2
        half[:2] = np.maximum(half[:2], 0.4 * np.max(half))
        low, high = middle - half, middle + half
    whole = drawn._replace(low=low, high=high, planar=model.dimension == 2)
    dot = (ball(_DOT * whole.size, _DOT_COLOUR),)
    still = np.eye(3)[None]
    dots = tuple(DrawnBody(name, place[None], still, dot) for name, place in found.items())
    return whole._replace(bodies=(*drawn.bodies, *dots), unit=drawn.unit or _DOT * whole.size)


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


def _draw_joints(axes: Any, places: list[_Place], marked: _Marked) -> None:
    for place in places:
        mark = _mark(place, marked)
        axes.plot(
            *place.point[:, None],
            marker=mark.marker,
            markersize=mark.size,
            markerfacecolor=mark.colour,
            markeredgecolor="black",
            linestyle="none",
            zorder=4,
        )


def _mark(place: _Place, marked: _Marked) -> Mark:
    """The worst of those at one point."""
    return MARKS[max(marked[name] for name in place.names)]


def _marked(report: Solvability) -> _Marked:
    """The mark of everything that a joint exerts: the whole reaction, and force and torque on each
    body."""
    told = [[own] for own in report.reaction_unique.numbers()]
    for (constraint, _), own in zip(report.layout.pairs, report.body_unique.numbers(), strict=True):
        told[constraint] += list(own)
    doubtful = np.asarray(report.doubtful)
    names = report.structure.constraint_names
    marks = [int(np.max(marks_of(np.array(own), doubtful))) for own in told]
    return dict(zip(names, marks, strict=True))


def _label_joints(
    figure: Figure,
    axes: Any,
    places: list[_Place],
    marked: _Marked,
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
        bold = _mark(places[i], marked) is MANY
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
    if model.remark:
        figure.supxlabel("\n".join(textwrap.wrap(model.remark, 120)), fontsize=8, color="#444444")
