"""Scenes in Matplotlib: outlines of solids in the plane, shaded triangles in space, and lines.

What is costly (outlines, triangles of huge meshes) is found once; a state then only moves it.
"""

import itertools
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.offsetbox import AnchoredOffsetbox, DrawingArea, HPacker, TextArea
from matplotlib.patches import FancyArrowPatch, PathPatch, Polygon
from matplotlib.path import Path
from matplotlib.transforms import Affine2D
from mpl_toolkits.mplot3d import proj3d
from mpl_toolkits.mplot3d.art3d import Poly3DCollection

from .._drawing import DrawnBody, GROUND, Scene, Solid, Strand, Symbol


EDGE = "#3c4650"

# Lines by their kind: colour, width, and order above what is below.
_LINES: dict[str, tuple[str, float, float]] = {
    "rope": ("black", 1.2, 3.0),
    "pulley": ("#5c677d", 0.8, 2.5),
    "spring": ("#22577a", 1.2, 3.0),
    "curve": ("black", 1.0, 2.6),
    "rod": ("#5c677d", 2.5, 2.4),
    "body": ("#5c677d", 2.5, 2.4),
}

# Of a mesh no more triangles are drawn in space: its corners are drawn together on a grid.
_MOST_FACES = 1500
_GRIDS = (32, 24, 16, 10, 6)

# Edges of triangles that are drawn in one piece, over the size of the scene, and how often longer
# ones are halved.
_LONGEST = 0.07
_MOST_CUTS = 4

# Unit vector towards the light, in axes of the figure.
_LIGHT = np.array([0.35, -0.45, 0.82]) / np.linalg.norm([0.35, -0.45, 0.82])


class _Moving(NamedTuple):
    """A solid of a body or a symbol in a picture."""

    part: DrawnBody | Symbol
    solid: Solid


def _solids(scene: Scene) -> list[_Moving]:
    return [
        _Moving(part, solid)
        for parts in (scene.bodies, scene.symbols)
        for part in parts
        for solid in part.solids
    ]


# --------------------------------------------------------------------------------------------------
# In the plane.
# --------------------------------------------------------------------------------------------------


def outline(solid: Solid) -> Path:
    """The outline of a solid that is seen from +z, with its holes: the edges between what is turned
    to the viewer and what is not."""
    corners = solid.vertices[:, :2]
    faces = solid.faces
    a, b, c = (corners[faces[:, k]] for k in range(3))
    area = (b - a)[:, 0] * (c - a)[:, 1] - (b - a)[:, 1] * (c - a)[:, 0]
    size = float(np.max(np.ptp(corners, axis=0), initial=0.0))
    seen = faces[area > 1e-9 * size * size]
    # Corners of the same place are one, as meshes of files have several.
    _, place = np.unique(np.round(corners / max(1e-9 * size, 1e-300)), axis=0, return_inverse=True)
    where = np.zeros((int(np.max(place, initial=0)) + 1, 2))
    where[place.ravel()] = corners
    seen = place.ravel()[seen]
    sides = np.concatenate([np.roll(seen, -k, 1)[:, :2] for k in range(3)])
    edges = {(int(i), int(j)) for i, j in sides}
    after: dict[int, list[int]] = {}
    for i, j in edges:
        if (j, i) not in edges and i != j:
            after.setdefault(i, []).append(j)
    points: list[np.ndarray] = []
    codes: list[Any] = []
    while after:
        start = next(iter(after))
        loop, here = [start], _next(after, start)
        while here != start and here in after:
            loop.append(here)
            here = _next(after, here)
        points += [where[k] for k in loop] + [where[loop[0]]]
        codes += [Path.MOVETO, *[Path.LINETO] * (len(loop) - 1), Path.CLOSEPOLY]
    if not points:
        return Path(np.zeros((0, 2)))
    return Path(np.array(points), codes)


def _next(after: dict[int, list[int]], here: int) -> int:
    found = after[here].pop()
    if not after[here]:
        del after[here]
    return found


class PlanarPicture:
    """The scene of a planar mechanism in axes, of which `show` draws a state."""

    def __init__(self, axes: Axes, scene: Scene):
        self._axes, self._scene = axes, scene
        self._patches: list[tuple[_Moving, PathPatch]] = []
        moving = _solids(scene)
        heights = sorted({_top(own) for own in moving})
        for own in moving:
            path = outline(own.solid)
            if not len(np.asarray(path.vertices)):
                continue
            # By the layer of a body, from behind to the front.
            order = 1.0 + heights.index(_top(own)) / max(len(heights), 1)
            patch = PathPatch(path, **_look(own), lw=0.9, zorder=order)
            axes.add_patch(patch)
            self._patches.append((own, patch))
        self._lines = [(strand, _line(axes, strand)) for strand in scene.strands]
        pulleys = [strand for strand in scene.strands if strand.kind == "pulley"]
        self._pulleys = [(strand, _disc(axes)) for strand in pulleys]

    def show(self, k: int) -> None:
        """State k."""
        for strand, disc in self._pulleys:
            disc.set_xy(strand.points[k, :, :2])
        for own, patch in self._patches:
            turned, at = own.part.rotation[k], own.part.position[k]
            matrix = np.eye(3)
            matrix[:2, :2], matrix[:2, 2] = turned[:2, :2], at[:2]
            known = bool(np.all(np.isfinite(matrix)))
            patch.set_visible(known)
            if known:
                patch.set_transform(Affine2D(matrix) + self._axes.transData)
        for strand, line in self._lines:
            line.set_data(*strand.points[k, :, :2].T)

    def points(self, k: int) -> list[np.ndarray]:
        """Points along what is drawn, which labels leave free."""
        found: list[np.ndarray] = []
        for own, patch in self._patches:
            if isinstance(own.part, Symbol) or own.part.name == GROUND:
                vertices = patch.get_path().vertices
                moved = vertices @ own.part.rotation[k][:2, :2].T + own.part.position[k][:2]
                found += list(moved)
        return found + along(self._scene.strands, k, 2)


def _disc(axes: Axes) -> Polygon:
    disc = Polygon(np.zeros((1, 2)), facecolor="#dfe4e9", edgecolor="none", zorder=0.9)
    axes.add_patch(disc)
    return disc


def _top(own: _Moving) -> float:
    symbol = isinstance(own.part, Symbol)
    return round(float(np.max(own.solid.vertices[:, 2])), 9) + (1e6 if symbol else 0.0)


def _look(own: _Moving) -> dict[str, Any]:
    if own.solid.hatched:
        return {"facecolor": "#f4f2ee", "edgecolor": "#6b6459", "hatch": "//////"}
    return {"facecolor": own.solid.colour, "edgecolor": EDGE}


def _line(axes: Any, strand: Strand) -> Any:
    colour, width, order = _LINES[strand.kind]
    empty = [[]] * (3 if axes.name == "3d" else 2)
    return axes.plot(*empty, color=colour, lw=width, zorder=order)[0]


def along(strands: Iterable[Strand], k: int, dimension: int) -> list[np.ndarray]:
    """Points along lines."""
    found: list[np.ndarray] = []
    steps = np.linspace(0.0, 1.0, 9)[:, None]
    for strand in strands:
        drawn = strand.points[k, :, :dimension]
        drawn = drawn[np.all(np.isfinite(drawn), axis=1)]
        long = 0.1 * float(np.max(np.ptp(drawn, axis=0), initial=0.0))
        for first, last in itertools.pairwise(drawn):
            if np.linalg.norm(last - first) > long:
                found += list(first + steps * (last - first))
        found += list(drawn[::4])
    return found


# --------------------------------------------------------------------------------------------------
# In space.
# --------------------------------------------------------------------------------------------------


class Surface(Poly3DCollection):
    """Triangles of which those of closed surfaces are left out that are turned away from the
    viewer: they are hidden, and an order by distances alone would show some of them."""

    def __init__(self) -> None:
        Poly3DCollection.__init__(self, [np.zeros((3, 3))], linewidths=0.4, zorder=1)
        self._scene_triangles = np.zeros((1, 3, 3))
        self._scene_colours, self._scene_closed = np.zeros((1, 3)), np.zeros(1, bool)

    def show(
        self,
        triangles: Float[np.ndarray, "n 3 3"],
        colours: Float[np.ndarray, "n 3"],
        closed: np.ndarray,
    ) -> None:
        """These triangles, of surfaces that are closed or not."""
        self._scene_triangles, self._scene_colours, self._scene_closed = triangles, colours, closed
        self.set_verts(list(triangles))

    @property
    def triangles(self) -> int:
        """Number of all triangles."""
        return len(self._scene_triangles)

    def do_3d_projection(self) -> float:
        """Called by Matplotlib before each drawing, with the view of then."""
        axes: Any = self.axes
        x, y, z = self._scene_triangles.reshape(-1, 3).T
        x, y, _ = proj3d.proj_transform(x, y, z, axes.get_proj())
        x, y = np.asarray(x).reshape(-1, 3), np.asarray(y).reshape(-1, 3)
        ahead, across = x[:, 1] - x[:, 0], y[:, 1] - y[:, 0]
        turned = ahead * (y[:, 2] - y[:, 0]) - across * (x[:, 2] - x[:, 0])
        seen = (turned > 0) | ~self._scene_closed
        if np.any(seen):
            self.set_verts(list(self._scene_triangles[seen]))
            self.set_facecolor(self._scene_colours[seen])
            self.set_edgecolor(self._scene_colours[seen])
        return Poly3DCollection.do_3d_projection(self)


def _is_closed(solid: Solid) -> bool:
    """Has each edge two sides?"""
    corners, place = np.unique(np.round(solid.vertices, 9), axis=0, return_inverse=True)
    del corners
    faces = place.ravel()[solid.faces]
    edges = np.concatenate([faces[:, [0, 1]], faces[:, [1, 2]], faces[:, [2, 0]]])
    ways, count = np.unique(edges, axis=0, return_counts=True)
    back = np.unique(edges[:, ::-1], axis=0)
    return bool(np.all(count == 1)) and np.array_equal(ways, back)


class SpatialPicture:
    """The scene of a spatial mechanism in axes of three dimensions, of which `show` draws a
    state."""

    def __init__(self, axes: Any, scene: Scene):
        self._scene = scene
        long = _LONGEST * scene.size
        self._parts = []
        for own in _solids(scene):
            vertices, faces = _fine(*_coarse(own.solid), long)
            colour, closed = np.array(to_rgb(own.solid.colour)), _is_closed(own.solid)
            self._parts.append((own.part, vertices, faces, colour, closed))
        # One collection, as only within one triangles hide each other by their distance.
        self._surface = Surface()
        axes.add_collection3d(self._surface)
        self._lines = [(strand, _line(axes, strand)) for strand in scene.strands]

    def show(self, k: int) -> None:
        """State k."""
        triangles, colours, closed = [], [], []
        for part, vertices, faces, colour, is_closed in self._parts:
            moved = vertices @ part.rotation[k].T + part.position[k]
            if not np.all(np.isfinite(moved)):
                continue
            corners = moved[faces]
            normal = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
            length = np.linalg.norm(normal, axis=1, keepdims=True)
            normal = normal / np.where(length > 0, length, 1.0)
            facing = normal @ _LIGHT
            # Of a surface that is not closed both sides are seen.
            facing = np.clip(facing, -0.6, 1.0) if is_closed else np.abs(facing)
            light = 0.62 + 0.38 * facing
            triangles.append(corners)
            colours.append(np.clip(light[:, None] * colour, 0.0, 1.0))
            closed.append(np.full(len(faces), is_closed))
        if triangles:
            self._surface.show(*map(np.concatenate, (triangles, colours, closed)))
        for strand, line in self._lines:
            line.set_data_3d(*strand.points[k].T)

    def points(self, k: int) -> list[np.ndarray]:
        """Points along lines, which labels leave free."""
        return along(self._scene.strands, k, 3)


def _coarse(solid: Solid) -> tuple[Float[np.ndarray, "v 3"], np.ndarray]:
    """Vertices and faces, of a huge mesh on a grid so coarse that few triangles are left."""
    vertices, faces = solid.vertices, solid.faces
    if len(faces) <= _MOST_FACES:
        return vertices, faces
    low, extent = vertices.min(axis=0), float(np.max(np.ptp(vertices, axis=0)))
    first, kept = np.arange(len(vertices)), faces
    for grid in _GRIDS:
        cells = np.round((vertices - low) / extent * grid)
        _, first, place = np.unique(cells, axis=0, return_index=True, return_inverse=True)
        moved = place.ravel()[faces]
        after = np.roll(moved, -1, axis=1)
        kept = moved[np.all(moved != after, axis=1)]
        kept = np.unique(np.array([np.roll(f, -int(np.argmin(f))) for f in kept]), axis=0)
        if len(kept) <= _MOST_FACES:
            return vertices[first], kept
    return vertices[first], kept


def _fine(
    vertices: Float[np.ndarray, "v 3"], faces: np.ndarray, long: float
) -> tuple[Float[np.ndarray, "v 3"], np.ndarray]:
    """The surface with its large triangles in pieces: which of two is in front is told by the
    distances of their middles."""
    for _ in range(_MOST_CUTS):
        corners = vertices[faces]
        sides = np.linalg.norm(corners - np.roll(corners, -1, axis=1), axis=2).max(axis=1)
        cut = sides > long
        if not np.any(cut) or np.count_nonzero(cut) > _MOST_FACES:
            break
        a, b, c = (corners[cut][:, k] for k in range(3))
        ab, bc, ca = (a + b) / 2, (b + c) / 2, (c + a) / 2
        pieces = [
            np.stack(x, axis=1) for x in ((a, ab, ca), (ab, b, bc), (ca, bc, c), (ab, bc, ca))
        ]
        added = np.concatenate(pieces)
        count = len(vertices)
        new = count + np.arange(3 * len(added)).reshape(-1, 3)
        vertices = np.concatenate([vertices, added.reshape(-1, 3)])
        faces = np.concatenate([faces[~cut], new])
    return vertices, faces


# --------------------------------------------------------------------------------------------------
# Around it.
# --------------------------------------------------------------------------------------------------


# Edges of a box of space over the longest one.
_NARROWEST = 0.4

# Of the arrow of gravity, in points.
_ARROW = 24.0


def draw_gravity(axes: Any, scene: Scene) -> Any:
    """The direction of gravity as an arrow in a corner of the axes; None without gravity, and where
    it points at the viewer."""
    size = float(np.linalg.norm(scene.gravity))
    if size == 0:
        return None
    way = scene.gravity[:2] / size
    if axes.name == "3d":
        middle = (scene.low + scene.high) / 2
        ends = np.stack([middle, middle + 0.1 * scene.size * scene.gravity / size])
        flat = [proj3d.proj_transform(x, y, z, axes.get_proj())[:2] for x, y, z in ends]
        way = np.array(flat[1]) - np.array(flat[0])
    length = float(np.linalg.norm(way))
    if length < 1e-12:
        return None
    half = 0.5 * _ARROW * way / length
    area = DrawingArea(_ARROW + 4, _ARROW + 4)
    middle = np.full(2, _ARROW / 2 + 2)
    ends = tuple(middle - half), tuple(middle + half)
    area.add_artist(FancyArrowPatch(*ends, arrowstyle="-|>", mutation_scale=10, color=EDGE, lw=1.2))
    packed = HPacker(children=[area, TextArea("g", textprops={"fontsize": 9})], align="center")
    box = AnchoredOffsetbox(loc="lower left", child=packed, frameon=False, pad=0.2)
    axes.add_artist(box)
    return box


def set_limits(axes: Any, scene: Scene, margin: float) -> None:
    """Limits of the axes around the scene at all states, and equal scales; `margin` relative to its
    size."""
    room = margin * scene.size
    letters = "xyz"[: 3 if axes.name == "3d" else 2]
    middle, half = (scene.low + scene.high) / 2, (scene.high - scene.low) / 2 + room
    if axes.name == "3d":
        # The ticks of a narrow box would lie on each other.
        half = np.maximum(half, _NARROWEST * np.max(half))
    for k, letter in enumerate(letters):
        getattr(axes, f"set_{letter}lim")(middle[k] - half[k], middle[k] + half[k])
        getattr(axes, f"set_{letter}label")(f"{letter} (m)")
    axes.set_aspect("equal")
