"""Visual shapes of bodies as solids in the frames of their bodies."""

import functools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import trimesh
from jaxtyping import Float

from .._bodies import (
    AbstractAxialVisual,
    AbstractTurnedVisual,
    AbstractVisual,
    VisualBox,
    VisualCapsule,
    VisualCylinder,
    VisualMesh,
    VisualPolygon,
    VisualSphere,
    VisualTube,
)
from .._errors import optional
from ._moving import GROUND
from ._solids import axes_along, ball, box, capsule, Colour, cylinder, prism, Solid, tube


# Corners of the circles of declared shapes.
_ROUND = 32


def visual_solid(visual: AbstractVisual, colour: Colour) -> Solid:
    """The shape in its body's frame. `colour`: of one that has none.

    **Raises:** `ValueError` for a file that contains no mesh.
    """
    made = _about_origin(visual, visual.colour or colour)
    origin = np.zeros(3)
    if visual.at is not None:
        given = np.asarray(visual.at, float)
        origin[: len(given)] = given
    return made.placed(origin, _axes(visual))


@functools.singledispatch
def _axes(visual: AbstractVisual) -> Float[np.ndarray, "3 3"]:
    """The shape's axes in the body's frame, as columns."""
    del visual
    return np.eye(3)


@_axes.register
def _(visual: AbstractAxialVisual) -> Float[np.ndarray, "3 3"]:
    if visual.axis is None:
        return np.eye(3)
    axis = np.asarray(visual.axis, float)
    return axes_along(axis / np.linalg.norm(axis))


@_axes.register
def _(visual: AbstractTurnedVisual) -> Float[np.ndarray, "3 3"]:
    if visual.angle is not None:
        c, s = np.cos(float(visual.angle)), np.sin(float(visual.angle))
        return np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])
    if visual.orientation is None:
        return np.eye(3)
    w, x, y, z = np.asarray(visual.orientation, float) / np.linalg.norm(visual.orientation)
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ]
    )


@functools.singledispatch
def _about_origin(visual: Any, colour: Colour) -> Solid:
    """The shape about its own origin, along its own axes."""
    raise TypeError(f"{type(visual).__name__} cannot be drawn.")


@_about_origin.register
def _(visual: VisualBox, colour: Colour) -> Solid:
    return box([float(x) for x in np.asarray(visual.size)], colour)


@_about_origin.register
def _(visual: VisualCylinder, colour: Colour) -> Solid:
    return cylinder(float(visual.radius), float(visual.length), colour, _ROUND)


@_about_origin.register
def _(visual: VisualCapsule, colour: Colour) -> Solid:
    return capsule(float(visual.radius), float(visual.length), colour)


@_about_origin.register
def _(visual: VisualSphere, colour: Colour) -> Solid:
    return ball(float(visual.radius), colour, 3)


@_about_origin.register
def _(visual: VisualTube, colour: Colour) -> Solid:
    sizes = (float(visual.radius), float(visual.inner_radius), float(visual.length))
    return tube(*sizes, colour, _ROUND)


@_about_origin.register
def _(visual: VisualPolygon, colour: Colour) -> Solid:
    half = float(visual.height) / 2
    return prism(np.asarray(visual.outline, float), -half, half, colour)


@_about_origin.register
def _(visual: VisualMesh, colour: Colour) -> Solid:
    changed = Path(visual.file).stat().st_mtime_ns if Path(visual.file).is_file() else 0
    vertices, faces, own = _mesh(visual.file, changed)
    scale = np.ones(3) if visual.scale is None else np.asarray(visual.scale, float)
    if np.prod(scale) < 0:
        # A reflection turns surfaces inside out.
        faces = faces[:, ::-1]
    shown = own if visual.color is None and own is not None else colour
    return Solid(vertices * scale, faces, shown)


@functools.lru_cache(maxsize=256)
def _mesh(path: str, changed: int) -> tuple[np.ndarray, np.ndarray, Colour | None]:
    """Vertices, faces, and the colour that the file has for them. `changed`: its time, so that a
    file that is written anew is read anew.

    **Raises:** `ValueError` that names the file, and the extra to install where its format needs
    one.
    """
    del changed
    try:
        if Path(path).suffix.lower() == ".dae":
            # Trimesh reads it by another package.
            optional("collada", "import")
        made: Any = trimesh.load(path, force="mesh")
        vertices, faces = np.array(made.vertices, float), np.array(made.faces, int)
    # (Readers of meshes raise whatever their format's library does.)
    except Exception as error:
        raise ValueError(f"the mesh {path!r} cannot be read: {error}.") from None
    if not len(faces) or not np.all(np.isfinite(vertices)):
        raise ValueError(f"the mesh {path!r} contains no triangles.")
    return vertices, faces, _main_colour(made)


def _main_colour(mesh: Any) -> Colour | None:
    """The colour of most of a mesh; None where its file has none."""
    try:
        if not mesh.visual.defined:
            return None
        red, green, blue = (
            float(x) / 255 for x in np.asarray(mesh.visual.to_color().main_color)[:3]
        )
    except Exception:
        # Textures whose pictures are missing.
        return None
    return red, green, blue


def solids_of(
    visuals: Sequence[AbstractVisual], colours: dict[str, Colour]
) -> dict[str, list[Solid]]:
    """The solids of visual shapes by the names of their bodies.

    **Raises:** `ValueError` for a mesh that cannot be read.
    """
    found: dict[str, list[Solid]] = {}
    for visual in visuals:
        colour = colours.get(visual.body, (0.7, 0.72, 0.75))
        made = visual_solid(visual, colour)
        # What has a colour of its own is not hidden under the pattern of the ground.
        plain = visual.color is None and not isinstance(visual, VisualMesh)
        hatched = visual.body == GROUND and plain
        found.setdefault(visual.body, []).append(made._replace(hatched=hatched))
    return found
