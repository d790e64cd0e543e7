"""Shapes in contact as solids in the axes of their markers."""

import functools
from typing import Any, NamedTuple

import numpy as np
import trimesh
from jaxtyping import Float

from .._forces._contact_geometry import Ball, Block, Hull, Rod, Wall
from ._solids import (
    axes_along,
    ball,
    bar,
    box,
    Colour,
    convex_hull,
    cylinder,
    prism,
    rounded,
    Solid,
)
from ._symbols import GROUND_COLOUR


class ContactContext(NamedTuple):
    """Context in which a contact shape is drawn: plane or space, height of a body across the plane
    (m), colour; for half-spaces the extent (m) and the middle of the drawn part, in the axes of the
    marker."""

    planar: bool
    height: float
    colour: Colour
    extent: float
    middle: Float[np.ndarray, "3"]


@functools.singledispatch
def contact_solid(shape: Any, setting: ContactContext) -> Solid | None:
    """The solid of a shape; None of a point."""
    raise TypeError(f"{type(shape).__name__} cannot be drawn.")


@contact_solid.register
def _(shape: Ball, setting: ContactContext) -> Solid | None:
    radius = float(shape.radius)
    if radius == 0:
        return None
    if setting.planar:
        return cylinder(radius, setting.height, setting.colour, 32)
    return ball(radius, setting.colour)


@contact_solid.register
def _(shape: Rod, setting: ContactContext) -> Solid | None:
    half, radius = np.asarray(shape.half, float), float(shape.radius)
    ends = np.stack([-half, half])
    if setting.planar:
        return _flat(rounded(ends, radius), setting)
    return bar(ends[0], ends[1], radius, setting.colour)


@contact_solid.register
def _(shape: Block, setting: ContactContext) -> Solid | None:
    size = [float(2 * x) for x in np.asarray(shape.half)]
    return box([*size, setting.height][:3], setting.colour)


@contact_solid.register
def _(shape: Hull, setting: ContactContext) -> Solid | None:
    corners = np.asarray(shape.corners, float)
    if setting.planar:
        return _flat(convex_hull(corners), setting)
    made = trimesh.convex.convex_hull(corners)
    return Solid(np.array(made.vertices), np.array(made.faces), setting.colour)


@contact_solid.register
def _(shape: Wall, setting: ContactContext) -> Solid | None:
    """A thin plate below its surface."""
    normal = np.zeros(3)
    normal[: len(shape.normal)] = np.asarray(shape.normal, float)
    thick = 0.03 * setting.extent
    middle = setting.middle - (setting.middle @ normal) * normal - 0.5 * thick * normal
    if setting.planar:
        along = np.array([-normal[1], normal[0], 0.0])
        axes = np.stack([along, normal, np.cross(along, normal)], axis=1)
        size = (setting.extent, thick, setting.height)
        return box(size, GROUND_COLOUR).placed(middle, axes)
    size = (setting.extent, setting.extent, thick)
    return box(size, GROUND_COLOUR).placed(middle, axes_along(normal))


def _flat(outline: Float[np.ndarray, "n 2"], setting: ContactContext) -> Solid:
    return prism(outline, -setting.height / 2, setting.height / 2, setting.colour)
