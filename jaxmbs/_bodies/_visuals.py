"""Visual shapes of bodies. They are not part of the system: they have neither mass nor contact, and
changing them recompiles nothing.

A shape has a place in the frame of its body (of a rigid body: centre of mass, body axes), so that
it stays where it is when the model is put elsewhere.
"""

import os
import re
from collections.abc import Callable
from pathlib import Path
from types import MappingProxyType
from typing import Any, cast, ClassVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .. import _checks
from .._custom_types import Numbers, Scalar, Vector3
from .._fields import (
    AbstractDeclared,
    direction,
    Field,
    Moves,
    number,
    optional,
    positive,
    reference,
    vector,
)
from ._shapes import known_less
from .base import ORIENTATION


# --------------------------------------------------------------------------------------------------
# Colours.
# --------------------------------------------------------------------------------------------------


COLOURS = MappingProxyType(
    {
        "black": "#000000",
        "blue": "#1f77b4",
        "brown": "#8c564b",
        "cyan": "#17becf",
        "darkgray": "#555555",
        "gold": "#d4a72c",
        "gray": "#8a8f98",
        "green": "#2ca02c",
        "lightgray": "#c9ced6",
        "navy": "#1b2a49",
        "orange": "#ff7f0e",
        "pink": "#e377c2",
        "purple": "#9467bd",
        "red": "#d62728",
        "silver": "#b0b7c0",
        "steelblue": "#4682b4",
        "teal": "#008080",
        "white": "#ffffff",
        "yellow": "#f2c500",
    }
)
_HEX = re.compile(r"#[0-9a-fA-F]{6}")


def _colour(value: Any, what: str) -> str:
    """A colour as `#rrggbb`."""
    if isinstance(value, str):
        found = COLOURS.get(value, value)
        if not _HEX.fullmatch(found):
            raise ValueError(
                f"{what} must be one of {', '.join(COLOURS)}, or red, green and blue as "
                f"'#rrggbb', got {_checks.shown(value)}."
            )
        return found.lower()
    parts = np.asarray(_checks.real(value, (3,), what))
    if np.any((parts < 0) | (parts > 1)):
        raise ValueError(
            f"{what} must have red, green and blue from 0 to 1, got {_checks.shown(value)}."
        )
    return "#" + "".join(f"{round(255 * float(x)):02x}" for x in parts)


_BODY = reference("body", "that looks like this, or `ground`")
_COLOUR: Callable[[Any], str | None] = Field(
    "color",
    "",
    "of its surface",
    str,
    "a colour's name, or `#rrggbb`",
    _colour,
    left_out="one of the picture's own",
)
_AT = optional(
    vector("at", "m", "of its middle, in the body's frame", None, Moves.nothing),
    "the body's own point",
)
_LIES = "in the body's frame"
_TURNED = ORIENTATION._replace(
    meaning="in space, from its axes to the body's",
    left_out="the body's axes",
    others=(),
    exclusive=False,
    split=None,
    moves=Moves.nothing,
)
_ANGLE = optional(
    number("angle", "rad", "in the plane, of its axes against the body's"), "the body's axes"
)
_AXIS: Callable[[Any], Vector3 | None] = cast(Field, direction("axis", _LIES, 3))._replace(
    left_out="[0, 0, 1]", moves=Moves.nothing
)
_RADIUS = positive("radius", "m", "of the outside")
_LENGTH = positive("length", "m", "along the axis")


class AbstractVisual(AbstractDeclared):
    """A visual shape of a body. `kind`: its name in model files."""

    kind: ClassVar[str]
    body: eqx.AbstractVar[str]
    at: eqx.AbstractVar[Float[Array, " dim"] | None]
    color: eqx.AbstractVar[str | None]

    @property
    def colour(self) -> tuple[float, float, float] | None:
        """Red, green and blue from 0 to 1; None where none is given."""
        if self.color is None:
            return None
        red, green, blue = (int(self.color[k : k + 2], 16) / 255 for k in (1, 3, 5))
        return red, green, blue


class AbstractTurnedVisual(AbstractVisual):
    """A visual shape that has an orientation."""

    orientation: eqx.AbstractVar[Float[Array, "4"] | None]
    angle: eqx.AbstractVar[Scalar | None]

    def __check_init__(self):
        """It is turned in the plane or in space."""
        if self.orientation is not None and self.angle is not None:
            raise ValueError("give `angle` in the plane or `orientation` in space, one of the two.")


class AbstractAxialVisual(AbstractVisual):
    """A visual shape about an axis."""

    axis: eqx.AbstractVar[Vector3 | None]


# --------------------------------------------------------------------------------------------------
# Shapes.
# --------------------------------------------------------------------------------------------------


def _edges(value: Any, what: str) -> Float[Array, "3"]:
    edges = _checks.real(value, (3,), what)
    known = _checks.concrete(edges)
    for length in () if known is None else known:
        _checks.positive(length, f"an edge in {what}")
    return edges


_SIZE: Callable[[Any], Vector3] = Field(
    "size",
    "m",
    "edges along its x, y and z",
    list[float],
    "3 numbers > 0",
    _edges,
    shape=(3,),
)


class VisualBox(AbstractTurnedVisual):
    """A box that is drawn for a body.

    **Arguments:** `body`: name of the body, or "ground"; `size`: three edges (m), in the plane the
    last one is across it; `at`: its middle in the body's frame (m), default the body's own point
    (the centre of mass of a rigid body); `orientation`: in space, quaternion from its axes to the
    body's; `angle`: in the plane (rad); `color`: a colour's name, "#rrggbb", or red, green and blue
    from 0 to 1.

    **Raises:** `ValueError` for edges that are not positive and for an invalid colour.
    """

    kind: ClassVar[str] = "box"
    body: str = eqx.field(static=True, converter=_BODY)
    size: Vector3 = eqx.field(converter=_SIZE)
    at: Float[Array, " dim"] | None = eqx.field(default=None, kw_only=True, converter=_AT)
    orientation: Float[Array, "4"] | None = eqx.field(default=None, kw_only=True, converter=_TURNED)
    angle: Scalar | None = eqx.field(default=None, kw_only=True, converter=_ANGLE)
    color: str | None = eqx.field(static=True, default=None, kw_only=True, converter=_COLOUR)


class VisualCylinder(AbstractAxialVisual):
    """A circular cylinder that is drawn for a body.

    **Arguments:** `body`, `at`, `color` as of a `VisualBox`; `radius`, `length` (m); `axis`: in the
    body's frame, default z.

    **Raises:** `ValueError` for lengths that are not positive.
    """

    kind: ClassVar[str] = "cylinder"
    body: str = eqx.field(static=True, converter=_BODY)
    radius: Scalar = eqx.field(converter=_RADIUS)
    length: Scalar = eqx.field(converter=_LENGTH)
    at: Float[Array, " dim"] | None = eqx.field(default=None, kw_only=True, converter=_AT)
    axis: Vector3 | None = eqx.field(default=None, kw_only=True, converter=_AXIS)
    color: str | None = eqx.field(static=True, default=None, kw_only=True, converter=_COLOUR)


class VisualCapsule(AbstractAxialVisual):
    """A cylinder with hemispherical ends that is drawn for a body.

    **Arguments:** `body`, `at`, `color` as of a `VisualBox`; `radius` (m); `length` (m) between the
    centres of its ends; `axis`: in the body's frame, default z.

    **Raises:** `ValueError` for lengths that are not positive.
    """

    kind: ClassVar[str] = "capsule"
    body: str = eqx.field(static=True, converter=_BODY)
    radius: Scalar = eqx.field(converter=_RADIUS)
    length: Scalar = eqx.field(converter=positive("length", "m", "between the centres of its ends"))
    at: Float[Array, " dim"] | None = eqx.field(default=None, kw_only=True, converter=_AT)
    axis: Vector3 | None = eqx.field(default=None, kw_only=True, converter=_AXIS)
    color: str | None = eqx.field(static=True, default=None, kw_only=True, converter=_COLOUR)


class VisualSphere(AbstractVisual):
    """A sphere that is drawn for a body.

    **Arguments:** `body`, `at`, `color` as of a `VisualBox`; `radius` (m).

    **Raises:** `ValueError` for a radius that is not positive.
    """

    kind: ClassVar[str] = "sphere"
    body: str = eqx.field(static=True, converter=_BODY)
    radius: Scalar = eqx.field(converter=_RADIUS)
    at: Float[Array, " dim"] | None = eqx.field(default=None, kw_only=True, converter=_AT)
    color: str | None = eqx.field(static=True, default=None, kw_only=True, converter=_COLOUR)


class VisualTube(AbstractAxialVisual):
    """A circular tube that is drawn for a body.

    **Arguments:** `body`, `at`, `color` as of a `VisualBox`; `radius` of the outside,
    `inner_radius`, `length` (m); `axis`: in the body's frame, default z.

    **Raises:** `ValueError` for lengths that are not positive, and a bore that is not smaller than
    the outside.
    """

    kind: ClassVar[str] = "tube"
    body: str = eqx.field(static=True, converter=_BODY)
    radius: Scalar = eqx.field(converter=_RADIUS)
    inner_radius: Scalar = eqx.field(converter=positive("inner_radius", "m", "of the bore"))
    length: Scalar = eqx.field(converter=_LENGTH)
    at: Float[Array, " dim"] | None = eqx.field(default=None, kw_only=True, converter=_AT)
    axis: Vector3 | None = eqx.field(default=None, kw_only=True, converter=_AXIS)
    color: str | None = eqx.field(static=True, default=None, kw_only=True, converter=_COLOUR)

    def __check_init__(self):
        """It has a wall."""
        known_less(
            self.inner_radius,
            self.radius,
            "inner_radius {inner:g} must be less than radius {outer:g}.",
        )


def _outline(value: Any, what: str) -> Float[Array, "n 2"]:
    shape = _checks.shape_of(value)
    if len(shape) != 2 or shape[1] != 2 or shape[0] < 3:
        raise ValueError(
            f"{what} must be at least three points of two numbers each, got {_checks.shown(value)}."
        )
    points = _checks.real(value, shape, what)
    known = _checks.concrete(points)
    if known is not None:
        _refuse_crossing(np.asarray(known, float), what)
    return points


def _refuse_crossing(points: Float[np.ndarray, "n 2"], what: str) -> None:
    """
    **Raises:** `ValueError` for an outline two of whose edges cross or touch, and for one without
    area.
    """
    count = len(points)
    after = np.roll(points, -1, axis=0)
    for i in range(count):
        for j in range(i + 1, count):
            if j == i + 1:
                _refuse_turning_back(points[i], after[i], after[j], what)
            elif i == 0 and j == count - 1:
                _refuse_turning_back(points[j], points[i], after[i], what)
            elif _meet(points[i], after[i], points[j], after[j]):
                raise ValueError(
                    f"{what} crosses itself: edge {i + 1} from {points[i].tolist()} meets edge "
                    f"{j + 1} from {points[j].tolist()}; list the corners in order around it."
                )


def _refuse_turning_back(
    before: np.ndarray, corner: np.ndarray, after: np.ndarray, what: str
) -> None:
    """
    **Raises:** `ValueError` for an edge that lies on the one before it.
    """
    if _turn(before, corner, after) == 0 and (before - corner) @ (after - corner) >= 0:
        raise ValueError(
            f"{what} turns back on itself at {corner.tolist()}; leave that corner out."
        )


def _turn(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> float:
    return float(np.sign((b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])))


def _meet(a: np.ndarray, b: np.ndarray, c: np.ndarray, d: np.ndarray) -> bool:
    """Do two segments have a point in common?"""
    if _turn(a, b, c) != _turn(a, b, d) and _turn(c, d, a) != _turn(c, d, b):
        return True
    return any(
        _turn(p, q, x) == 0 and bool(np.all((x >= np.minimum(p, q)) & (x <= np.maximum(p, q))))
        for p, q, x in ((a, b, c), (a, b, d), (c, d, a), (c, d, b))
    )


_OUTLINE: Callable[[Any], Float[Array, "n 2"]] = Field(
    "outline",
    "m",
    "corners in order, in its x-y plane",
    list[list[float]],
    "at least 3 points of 2 numbers, an outline that does not cross itself",
    _outline,
)


class VisualPolygon(AbstractTurnedVisual):
    """A plate of any outline that is drawn for a body.

    **Arguments:** `body`, `at`, `orientation`, `angle`, `color` as of a `VisualBox`; `outline`
    (n, 2): its corners in order, in its own x-y plane (m); `height`: along its z (m), half of it to
    either side of that plane.

    **Raises:** `ValueError` for an outline that crosses itself, or turns back on itself, and for a
    height that is not positive.
    """

    kind: ClassVar[str] = "polygon"
    body: str = eqx.field(static=True, converter=_BODY)
    outline: Float[Array, "n 2"] = eqx.field(converter=_OUTLINE)
    height: Scalar = eqx.field(converter=positive("height", "m", "along its z"))
    at: Float[Array, " dim"] | None = eqx.field(default=None, kw_only=True, converter=_AT)
    orientation: Float[Array, "4"] | None = eqx.field(default=None, kw_only=True, converter=_TURNED)
    angle: Scalar | None = eqx.field(default=None, kw_only=True, converter=_ANGLE)
    color: str | None = eqx.field(static=True, default=None, kw_only=True, converter=_COLOUR)


MESH_FILES = (".stl", ".obj", ".dae", ".ply")


def _file(value: Any, what: str) -> str:
    if not isinstance(value, str | os.PathLike) or not str(value):
        raise TypeError(f"{what} must be the path of a mesh, got {_checks.shown(value)}.")
    path = Path(value).absolute()
    if path.suffix.lower() not in MESH_FILES:
        raise ValueError(
            f"{what} {str(path)!r} must end in {', '.join(MESH_FILES[:-1])} or {MESH_FILES[-1]}."
        )
    if not path.is_file():
        raise ValueError(f"{what}: there is no file {str(path)!r}.")
    return str(path)


def _scale(value: Numbers, what: str) -> Float[Array, "3"]:
    if _checks.shape_of(value) == ():
        return jnp.full((3,), _checks.positive(value, what))
    scale = _checks.real(value, (3,), what)
    known = _checks.concrete(scale)
    if known is not None and np.any(np.asarray(known) == 0):
        raise ValueError(f"{what} must not be zero along an axis, got {_checks.shown(value)}.")
    return scale


_FILE: Callable[[Any], str] = Field(
    "file",
    "",
    "relative to the model file",
    str,
    "a path that ends in .stl, .obj, .dae, .ply",
    _file,
)
_SCALE: Callable[[Any], Float[Array, "3"] | None] = Field(
    "scale",
    "1",
    "m for each unit of the file, along its x, y and z",
    float | list[float],
    "a number > 0, or 3 numbers",
    _scale,
    left_out="1",
)


_ORIGIN: Callable[[Any], Any] = cast(Field, _AT)._replace(
    meaning="of its origin, in the body's frame"
)


class VisualMesh(AbstractTurnedVisual):
    """A mesh in a file that is drawn for a body.

    **Arguments:** `body`, `orientation`, `angle`, `color` as of a `VisualBox`; `at`: the origin of
    the mesh in the body's frame (m); `file`: a mesh of triangles (STL, OBJ, DAE, PLY), relative to
    the model file, in Python to the current folder; `scale`: m for each unit of the file, one
    number, or one for each of its axes, negative for a reflection.

    **Raises:** `ValueError` for a file that does not exist, with its whole path, or of another
    ending. A file that contains no mesh, or whose format needs a package that is not installed
    (DAE: the extra `import`), is refused where it is drawn.
    """

    kind: ClassVar[str] = "mesh"
    body: str = eqx.field(static=True, converter=_BODY)
    file: str = eqx.field(static=True, converter=_FILE)
    at: Float[Array, " dim"] | None = eqx.field(default=None, kw_only=True, converter=_ORIGIN)
    orientation: Float[Array, "4"] | None = eqx.field(default=None, kw_only=True, converter=_TURNED)
    angle: Scalar | None = eqx.field(default=None, kw_only=True, converter=_ANGLE)
    scale: Float[Array, "3"] | None = eqx.field(default=None, kw_only=True, converter=_SCALE)
    color: str | None = eqx.field(static=True, default=None, kw_only=True, converter=_COLOUR)
