"""Solids of which drawings are made: surfaces of triangles, as vertices (v, 3) and faces (f, 3)
that are counter-clockwise from outside.
"""

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

import mapbox_earcut
import numpy as np
import trimesh
from jaxtyping import Float, Int


Colour: TypeAlias = tuple[float, float, float]

# Corners of circles that are drawn.
SECTIONS = 16

# Points nearer to each other than this, over their extent, are the same.
_FLAT = 1e-6

# Points whose spread across a line or a plane is less than this, over that along it, are drawn as a
# bar or a plate: a thinner one could not be told from it in a picture.
_LINE, _PLANE = 1e-3, 1e-2


class Solid(NamedTuple):
    """A visual shape: a surface of triangles in the frame of its body or joint.

    - `vertices` (v, 3) in m, `faces` (f, 3): indices of vertices, counter-clockwise from outside.
    - `colour`: red, green and blue, from 0 to 1.
    - `hatched`: of the ground, which is hatched in pictures of the plane.
    """

    vertices: Float[np.ndarray, "v 3"]
    faces: Int[np.ndarray, "f 3"]
    colour: Colour
    hatched: bool = False

    def placed(self, origin: Float[np.ndarray, "3"], rotation: Float[np.ndarray, "3 3"]) -> "Solid":
        """The solid moved by a frame: its own axes become the columns of `rotation`."""
        return self._replace(vertices=self.vertices @ rotation.T + origin)


def _solid(mesh: trimesh.Trimesh, colour: Colour) -> Solid:
    return Solid(np.array(mesh.vertices, float), np.array(mesh.faces, int), colour)


# --------------------------------------------------------------------------------------------------
# Solids about their own centres; axes along z.
# --------------------------------------------------------------------------------------------------


def box(size: Sequence[float], colour: Colour) -> Solid:
    """A box with these edges."""
    return _solid(trimesh.creation.box(extents=size), colour)


def cylinder(radius: float, length: float, colour: Colour, sections: int = SECTIONS) -> Solid:
    """A cylinder."""
    made = trimesh.creation.cylinder(radius=radius, height=length, sections=sections)
    return _solid(made, colour)


def tube(
    radius: float, inner: float, length: float, colour: Colour, sections: int = SECTIONS
) -> Solid:
    """A cylinder with a bore."""
    made = trimesh.creation.annulus(r_min=inner, r_max=radius, height=length, sections=sections)
    return _solid(made, colour)


def capsule(radius: float, length: float, colour: Colour) -> Solid:
    """All points within `radius` of a segment of that length."""
    made = trimesh.creation.capsule(height=length, radius=radius, count=[12, 8])
    return _solid(made, colour)


def ball(radius: float, colour: Colour, subdivisions: int = 2) -> Solid:
    """A ball."""
    return _solid(trimesh.creation.icosphere(subdivisions=subdivisions, radius=radius), colour)


def cone(radius: float, length: float, colour: Colour) -> Solid:
    """A cone whose base lies in z = 0."""
    made = trimesh.creation.cone(radius=radius, height=length, sections=SECTIONS)
    return _solid(made, colour)


def arc(ring: float, radius: float, turn: float, colour: Colour) -> Solid:
    """A bar that is bent to a part of a ring about z, from the x axis on by `turn` (rad)."""
    angles = np.linspace(0.0, turn, 2 * SECTIONS + 1)
    around = np.linspace(0.0, 2 * np.pi, 8, endpoint=False)
    across = ring + radius * np.cos(around)
    points = np.stack(
        [
            np.cos(angles)[:, None] * across,
            np.sin(angles)[:, None] * across,
            np.broadcast_to(radius * np.sin(around), (len(angles), 8)),
        ],
        axis=-1,
    ).reshape(-1, 3)
    faces = []
    for k in range(len(angles) - 1):
        for j in range(8):
            a, b = 8 * k + j, 8 * k + (j + 1) % 8
            faces += [[a, a + 8, b], [b, a + 8, b + 8]]
    last = 8 * (len(angles) - 1)
    faces += [[0, j, j + 1] for j in range(1, 7)]
    faces += [[last, last + j + 1, last + j] for j in range(1, 7)]
    return Solid(points, np.array(faces), colour)


def prism(outline: Float[np.ndarray, "n 2"], low: float, high: float, colour: Colour) -> Solid:
    """A polygon that does not cross itself, from z = `low` to `high`."""
    outline = np.array(outline, float)
    x, y = outline.T
    if np.sum(x * np.roll(y, -1) - np.roll(x, -1) * y) < 0:
        outline = outline[::-1]
    count = len(outline)
    ends = np.array([count], np.uint32)
    caps = mapbox_earcut.triangulate_float64(np.ascontiguousarray(outline), ends)
    caps = _turned_left(outline, caps.reshape(-1, 3).astype(int))
    here = np.arange(count)
    after = np.roll(here, -1)
    sides = [
        np.stack([here, after, after + count], axis=1),
        np.stack([here, after + count, here + count], axis=1),
    ]
    faces = np.concatenate([caps[:, ::-1], caps + count, *sides])
    vertices = [np.column_stack([outline, np.full(count, z)]) for z in (low, high)]
    return Solid(np.concatenate(vertices), faces, colour)


def _turned_left(points: Float[np.ndarray, "n 2"], faces: np.ndarray) -> np.ndarray:
    """The triangles, all counter-clockwise."""
    a, b, c = (points[faces[:, k]] for k in range(3))
    area = (b - a)[:, 0] * (c - a)[:, 1] - (b - a)[:, 1] * (c - a)[:, 0]
    return np.where(area[:, None] < 0, faces[:, ::-1], faces)


# --------------------------------------------------------------------------------------------------
# Solids through points.
# --------------------------------------------------------------------------------------------------


def bar(first: np.ndarray, last: np.ndarray, radius: float, colour: Colour) -> Solid:
    """A capsule whose axis runs from a point to another."""
    along = last - first
    length = float(np.linalg.norm(along))
    made = capsule(radius, length, colour)
    return made.placed((first + last) / 2, axes_along(along / length))


def axes_along(z: np.ndarray) -> Float[np.ndarray, "3 3"]:
    """Right-handed axes (columns) with that z axis (of unit length)."""
    x = np.eye(3)[int(np.argmin(np.abs(z)))]
    x = x - (x @ z) * z
    x /= np.linalg.norm(x)
    return np.stack([x, np.cross(z, x), z], axis=1)


def distinct(points: Float[np.ndarray, "n 3"], size: float) -> Float[np.ndarray, "m 3"]:
    """The points, each once, to a small fraction of `size`."""
    kept: list[np.ndarray] = []
    for point in points:
        if all(np.max(np.abs(point - other)) > _FLAT * size for other in kept):
            kept.append(point)
    return np.array(kept).reshape(-1, 3)


def rounded(points: Float[np.ndarray, "n 2"], radius: float) -> Float[np.ndarray, "m 2"]:
    """The outline of all points within `radius` of the convex hull of points: of two a bar with
    round ends."""
    turns = np.linspace(0.0, 2 * np.pi, SECTIONS, endpoint=False)
    circle = radius * np.stack([np.cos(turns), np.sin(turns)], axis=1)
    return convex_hull((points[:, None] + circle).reshape(-1, 2))


def convex_hull(points: Float[np.ndarray, "n 2"]) -> Float[np.ndarray, "m 2"]:
    """Corners of the convex hull, counter-clockwise (Andrew's monotone chain)."""
    ordered = points[np.lexsort((points[:, 1], points[:, 0]))]
    small = 1e-12 * max(float(np.max(np.ptp(points, axis=0))), 1e-300) ** 2

    def chain(sequence: np.ndarray) -> list[np.ndarray]:
        kept: list[np.ndarray] = []
        for point in sequence:
            while len(kept) > 1 and _turn(kept[-2], kept[-1], point) <= small:
                kept.pop()
            kept.append(point)
        return kept[:-1]

    return np.array(chain(ordered) + chain(ordered[::-1]))


def _turn(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> float:
    """Positive where the path a-b-c turns to the left."""
    return float((b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0]))


def through(points: Float[np.ndarray, "n 3"], radius: float, colour: Colour) -> Solid:
    """The simplest solid through two or more points of space: a bar, a plate, or their hull."""
    centre = points.mean(axis=0)
    _, extents, axes = np.linalg.svd(points - centre)
    spread = np.append(extents, np.zeros(3))[:3]
    if spread[1] <= _LINE * spread[0]:
        along = (points - centre) @ axes[0]
        return bar(points[np.argmin(along)], points[np.argmax(along)], radius, colour)
    if spread[2] <= _PLANE * spread[0]:
        turned = np.stack([axes[0], axes[1], np.cross(axes[0], axes[1])], axis=1)
        outline = rounded((points - centre) @ turned[:, :2], radius)
        return prism(outline, -0.6 * radius, 0.6 * radius, colour).placed(centre, turned)
    # Around each point a small ball, so that its joint lies within.
    around = 0.8 * radius * trimesh.creation.icosphere(subdivisions=1).vertices
    made = trimesh.convex.convex_hull((points[:, None] + around).reshape(-1, 3))
    return _solid(made, colour)
