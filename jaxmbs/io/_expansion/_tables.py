"""The tables that are expanded into those of parts: what their keys are.

Declared as the fields of parts are, so that reader, reference and JSON Schema agree.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, cast

import equinox as eqx

from ... import _checks, shapes
from ..._bodies import AbstractShape
from ..._bodies.base import ORIENTATION
from ..._fields import (
    body_names,
    direction,
    Field,
    Moves,
    not_negative,
    number,
    optional,
    part_name,
    point,
    reference,
    two_points,
)


SHAPES: Mapping[str, type[AbstractShape]] = MappingProxyType(
    {
        "box": shapes.Box,
        "cylinder": shapes.Cylinder,
        "tube": shapes.Tube,
        "sphere": shapes.Sphere,
    }
)


def _given(value: Any, what: str) -> Any:
    del what
    return value


def _table(key: str, meaning: str, admits: str) -> Any:
    return optional(Field(key, "", meaning, dict[str, Any], admits, _given), "none")


def _names(key: str, meaning: str) -> Any:
    said = Field(key, "", meaning, list[str], "names", _checks.name_list)
    return optional(said, "none")


_USE = part_name("a use")
_ASSEMBLY = reference("assembly", "which is used")
_PLACE = "of the assembly's origin, in the axes of the file or of the assembly that uses it"
_BODIES = _table("bodies", "what its `outer` names stand for", "names of bodies by `outer` name")
_PARAMETERS = _table("parameters", "in place of those of the assembly", "numbers by parameter")


class PlanarUse(eqx.Module):
    """One `[[use]]` of an assembly in the plane."""

    name: str = eqx.field(converter=_USE)
    assembly: str = eqx.field(converter=_ASSEMBLY)
    position: Any = eqx.field(
        default=None, converter=optional(point("position", _PLACE, 2), "zero")
    )
    angle: Any = eqx.field(
        default=None,
        converter=optional(number("angle", "rad", "of its axes", Moves.angle), "zero"),
    )
    direction: Any = eqx.field(
        default=None,
        converter=optional(direction("direction", "of its x axis", 2), "`angle`"),
    )
    bodies: Any = eqx.field(default=None, converter=_BODIES)
    parameters: Any = eqx.field(default=None, converter=_PARAMETERS)


class SpatialUse(eqx.Module):
    """One `[[use]]` of an assembly in space."""

    name: str = eqx.field(converter=_USE)
    assembly: str = eqx.field(converter=_ASSEMBLY)
    position: Any = eqx.field(
        default=None, converter=optional(point("position", _PLACE, 3), "zero")
    )
    orientation: Any = eqx.field(default=None, converter=ORIENTATION)
    direction: Any = eqx.field(
        default=None,
        converter=optional(
            direction("direction", "of its z axis, turned there by the shortest rotation", 3),
            "`orientation`",
        ),
    )
    bodies: Any = eqx.field(default=None, converter=_BODIES)
    parameters: Any = eqx.field(default=None, converter=_PARAMETERS)


USES: Mapping[int, type[Any]] = MappingProxyType({2: PlanarUse, 3: SpatialUse})


class Assembly(eqx.Module):
    """An `[[assembly]]`: parts that are used several times. Besides these keys it has the tables of
    parts, of cylinders and of uses: `[[assembly.body]]` and so on."""

    name: str = eqx.field(converter=part_name("an assembly"))
    outer: Any = eqx.field(
        default=None, converter=_names("outer", "bodies outside of it, named by each use")
    )
    required: Any = eqx.field(
        default=None, converter=_names("required", "parameters that each use gives")
    )
    parameters: Any = eqx.field(
        default=None, converter=_table("parameters", "that a use may give", "numbers by name")
    )


_LINE = "on the first body, then on the second, in the reference configuration"
_SHAPE = "a cylinder or a tube, without `axis`"


class Cylinder(eqx.Module):
    """A `[[cylinder]]`: barrel and rod between two bodies, and what moves them."""

    name: str = eqx.field(converter=part_name("a cylinder"))
    bodies: Any = eqx.field(converter=body_names(2))
    points: Any = eqx.field(converter=two_points("points", _LINE))
    barrel: Any = eqx.field(
        converter=Field("barrel", "", "behind the first point", dict[str, Any], _SHAPE, _given)
    )
    rod: Any = eqx.field(
        converter=Field("rod", "", "before the second point", dict[str, Any], _SHAPE, _given)
    )
    ends: Any = eqx.field(
        default=None,
        converter=cast(Field, _names("ends", "joints at the two points"))._replace(
            admits="two types of joints, each `revolute` (2: alone), `universal`, `spherical`, "
            "`fixed` or `none`",
            left_out='["revolute", "revolute"], 3: ["universal", "spherical"]',
        ),
    )
    axis: Any = eqx.field(
        default=None,
        converter=optional(direction("axis", "of revolute ends, in space", 3), "no revolute end"),
    )
    motion: Any = eqx.field(
        default=None, converter=_table("motion", "of the rod against the barrel", "a motion")
    )
    force: Any = eqx.field(
        default=None,
        converter=optional(number("force", "N", "with which it pushes its ends apart"), "none"),
    )
    stiffness: Any = eqx.field(
        default=None, converter=optional(number("stiffness", "N/m", "of a spring inside"), "none")
    )
    damping: Any = eqx.field(
        default=None, converter=optional(number("damping", "N s/m", "of a damper inside"), "none")
    )
    length: Any = eqx.field(
        default=None,
        converter=optional(
            not_negative("length", "m", "natural length of the spring"), "the distance of points"
        ),
    )
