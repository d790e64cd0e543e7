"""Masses and inertias of links in SDF."""

from typing import NamedTuple
from xml.etree.ElementTree import Element

import numpy as np

from ..._errors import ModelError
from ._description import Matrix, Slip, Vector
from ._geometry import moved_inertia, round_moments
from ._sdf_frames import Frames, number, numbers, Pose, pose_of
from ._slips import slip_of, URDF_ORDER


class Inertial(NamedTuple):
    """Mass (kg), centre and the inertia about it in the axes of the link; the mass that the file
    gives in numbers, and where mass and inertia are from if not from there."""

    mass: float
    center: Vector
    inertia: Matrix
    stated: float | None
    derived: str = ""
    derived_inertia: str = ""
    slip: Slip | None = None


_DEFAULT = "the format's default of 1 kg, as the file gives none"
_FROM_SHAPES = (
    "from collision shapes, as the file says so (auto; 1000 kg/m3 unless a density is given)"
)
_IDENTITY = "is that of the format where a file gives none, 1 kg m2 about every axis"

# Water (kg/m3).
_DENSITY = 1000.0


def inertial_of(link: Element, frames: Frames, pose: Pose, said: str) -> Inertial:
    """The inertial data of a link by the rules of the format.

    **Raises:** `ModelError` for a number that is none, and for shapes that are not read.
    """
    own = link.find("inertial")
    if own is None:
        return Inertial(1.0, np.zeros(3), np.eye(3), None, _DEFAULT, _IDENTITY)
    mass = None
    if own.find("mass") is not None:
        mass = float(numbers(own.findtext("mass"), 1, f"{said}, <mass>,")[0])
    if own.get("auto", "").strip().lower() in ("true", "1"):
        return _of_shapes(link, own, frames, pose, mass, said)
    place = pose_of(own.find("pose"), f"{said}, inertial")
    matrix, assumed = _matrix(own.find("inertia"), said)
    kilograms = 1.0 if mass is None else mass
    slip = slip_of(kilograms, matrix, URDF_ORDER)
    turned = place.axes @ (matrix if slip is None else slip.inertia) @ place.axes.T
    derived = _DEFAULT if mass is None else ""
    return Inertial(kilograms, place.origin, turned, mass, derived, assumed, slip)


def _matrix(given: Element | None, said: str) -> tuple[Matrix, str]:
    """The inertia that is written, and which moments are not but are the format's."""
    if given is None:
        return np.eye(3), _IDENTITY
    matrix, left = np.eye(3), []
    for tag in ("ixx", "ixy", "ixz", "iyy", "iyz", "izz"):
        i, j = "xyz".index(tag[1]), "xyz".index(tag[2])
        if given.find(tag) is not None:
            value = float(numbers(given.findtext(tag), 1, f"{said}, <{tag}>,")[0])
            matrix[i, j] = matrix[j, i] = value
        elif i == j:
            left.append(tag)
    default = f"has, for want of {' and '.join(left)}, the format's default of 1 kg m2 there"
    return matrix, default if left else ""


class _Part(NamedTuple):
    """A shape: its mass (kg), its centre and its inertia about it, in the axes of the link."""

    mass: float
    center: Vector
    inertia: Matrix


def _of_shapes(
    link: Element, own: Element, frames: Frames, pose: Pose, mass: float | None, said: str
) -> Inertial:
    """The inertia of all collision shapes of a link; a given mass scales them."""
    # libsdformat from 15.2 on; until then the mass was ignored ("Migration guide", 15.1.1 to
    # 15.2.0, https://github.com/gazebosim/sdformat/pull/1528; its pull request 1513). The density
    # of a collision goes before that of <inertial> (specification 1.11, inertial.sdf; pull request
    # 1299), and <pose> and <inertia> of the link do not count ("Automatic Inertia Calculation",
    # https://gazebosim.org/api/sim/9/auto_inertia_calculation.html).
    density = number(own, "density", _DENSITY, said)
    parts = [
        _part(collision, density, frames, pose, said)
        for collision in link.findall("collision")
        if collision.find("geometry/empty") is None
    ]
    total = sum(part.mass for part in parts)
    if not total > 0:
        raise ModelError(
            f"{said} asks for its inertia from its shapes (auto) and has no collision shape with a "
            "volume; write mass and inertia out."
        )
    center = sum((part.mass * part.center for part in parts), np.zeros(3)) / total
    inertia = np.zeros((3, 3))
    for part in parts:
        inertia = inertia + moved_inertia(part.inertia, part.mass, part.center - center)
    if mass is None:
        return Inertial(float(total), center, inertia, None, _FROM_SHAPES)
    why = (
        "follows from its collision shapes and its mass (auto), as libsdformat 15.2 and later have "
        f"it; earlier ones ignore the mass and take that of the shapes, {total:.6g} kg"
    )
    return Inertial(mass, center, inertia * (mass / total), mass, "", why)


def _part(collision: Element, density: float, frames: Frames, pose: Pose, said: str) -> _Part:
    said = f"{said}, collision {collision.get('name', '')!r}"
    density = number(collision, "density", density, said)
    volume, moments = _moments(collision.find("geometry"), said)
    given = collision.find("pose")
    place = pose_of(given, said)
    outer = "" if given is None else given.get("relative_to") or given.get("frame") or ""
    if outer:
        place = place.after(frames.pose(outer)).after(pose.inverse())
    mass = density * volume
    return _Part(mass, place.origin, place.axes @ np.diag(mass * moments) @ place.axes.T)


def _moments(geometry: Element | None, said: str) -> tuple[float, np.ndarray]:
    """Volume, and moments of inertia for a mass of one."""
    shape = next(iter(geometry if geometry is not None else ()), None)
    tag = "" if shape is None else shape.tag
    if shape is not None and tag == "box":
        sides = numbers(shape.findtext("size"), 3, f"{said}, <size>,") ** 2
        return float(np.sqrt(np.prod(sides))), (sides.sum() - sides) / 12
    if shape is not None and tag in ("sphere", "ellipsoid"):
        if tag == "sphere":
            radii = np.full(3, number(shape, "radius", 1.0, said))
        else:
            radii = numbers(shape.findtext("radii"), 3, f"{said}, <radii>,")
        squares = radii**2
        return float(4 / 3 * np.pi * np.prod(radii)), (squares.sum() - squares) / 5
    if shape is not None and tag in ("cylinder", "capsule"):
        radius = number(shape, "radius", 0.5 if tag == "capsule" else 1.0, said)
        length = number(shape, "length", 1.0, said)
        return round_moments(radius, length, 2, ends=tag == "capsule")
    raise ModelError(
        f"{said} gives its link an inertia (auto) and is no box, sphere, ellipsoid, cylinder or "
        "capsule; write mass and inertia out, as other shapes are not read."
    )
