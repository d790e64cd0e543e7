"""Cylinders: a barrel and a rod between two bodies, and what moves them."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..._checks import shown
from ..._errors import ModelError
from ..._fields import Field, keys_of, Moves, two_points
from ..._parameters import AbstractFormula, InBarrel, Number
from ._assemblies import called, checked_name, tables_of
from ._collection import Collection, Place
from ._parts import add_part, check_keys, entry_text, shape_numbers
from ._scope import Scope
from ._tables import Cylinder


_ALONG = "points[1] - points[0]"
_UNIT = f"unit({_ALONG})"
# The axis of a shape has three numbers in the plane as well.
_SHAPE_AXIS = {
    2: ["points[1][0] - points[0][0]", "points[1][1] - points[0][1]", 0.0],
    3: _ALONG,
}
_ENDS = {2: ("revolute", "revolute"), 3: ("universal", "spherical")}
_KNOWN_ENDS = {
    2: ("revolute", "fixed", "none"),
    3: ("universal", "spherical", "revolute", "fixed", "none"),
}
_SHAPES = ("cylinder", "tube")


def add_cylinders(given: Any, scope: Scope, found: Collection) -> None:
    """Two bodies, the joints between them and at both ends, and a driver or forces."""
    for index, entry in enumerate(tables_of(given, "cylinder", "")):
        where = called("cylinder", entry, index, scope)
        check_keys(keys_of(Cylinder), entry, where)
        name = scope.called(checked_name(entry["name"], "a cylinder", where))
        bodies = _two_names(entry["bodies"], where)
        words = _numbers(entry, name, where, scope, found)
        # Its points are along the world's axes already, and its names are full ones.
        inner = Scope(scope.dimension, words)
        into: dict[str, Number] = {}
        for word, end in (("barrel", "points[0] + barrel_length / 2"), ("rod", "")):
            kind, numbers = _shape(entry, word, name, where, scope, found)
            inner = inner._replace(words={**inner.words, f"{word}_length": numbers["length"].name})
            middle = inner.plain(
                f"{end or 'points[1] - rod_length / 2'} * {_UNIT}", Place(where, word, None)
            )
            if into:
                middle = _in_barrel(middle, words["points"], into, numbers)
            into = numbers
            axis = inner.plain(_SHAPE_AXIS[scope.dimension], Place(where, word, None))
            shape = {"type": kind, **numbers, "axis": axis}
            body = {"name": f"{name} {word}", "position": middle, "shape": shape}
            add_part("body", body, index, inner, found)
        referred = [scope.referred(body) for body in bodies]
        for joint in _joints(entry, name, referred, where, inner):
            add_part("joint", joint, index, inner, found)
        if "motion" in entry:
            driver = {
                "name": f"{name} drive",
                "joint": f"{name} slide",
                "coordinate": "translation",
                "motion": entry["motion"],
            }
            add_part("driver", driver, index, scope._replace(prefix="", outer={}), found)
        for force in _forces(entry, name, where):
            add_part("force", force, index, inner, found)


def _two_names(bodies: Any, where: str) -> list[str]:
    right = isinstance(bodies, list) and len(bodies) == 2
    if not right or not all(isinstance(body, str) for body in bodies):
        raise ModelError(f"{where}: bodies must name 2 bodies, got {shown(bodies)}.")
    return bodies


def _numbers(
    entry: Mapping[str, Any], name: str, where: str, scope: Scope, found: Collection
) -> dict[str, str]:
    """The numbers of a cylinder, by the words that its parts use."""
    keys = {key: own.said for key, own in keys_of(Cylinder).items()}
    keys["points"] = _apart(two_points("points", keys["points"].meaning, scope.dimension))  # pyright: ignore[reportArgumentType]
    words = {}
    for key in ("points", "axis", "force", "stiffness", "damping", "length"):
        if key in entry:
            place = Place(where, key, entry_text(entry[key]))
            moves = {"points": Moves.point, "axis": Moves.vector}.get(key, Moves.nothing)
            formula = scope.in_axes(entry[key], moves, place)
            words[key] = found.define(f"cylinders.{name}.{key}", formula, place, keys[key])
    return words


def _apart(points: Field) -> Field:
    """Two points that define a direction."""

    def check(value: Any, what: str) -> Any:
        pair = points.check(value, what)
        if not np.any(pair[1] - pair[0]):
            raise ValueError(
                f"{what} are one place, {shown(np.asarray(pair[0]).tolist())}, so that there is no "
                "direction from one to the other; move one of them."
            )
        return pair

    return points._replace(check=check)


def _shape(
    entry: Mapping[str, Any],
    word: str,
    name: str,
    where: str,
    scope: Scope,
    found: Collection,
) -> tuple[str, dict[str, Number]]:
    """The type of a barrel's or a rod's shape, and its numbers."""
    table = entry[word]
    kind = table.get("type") if isinstance(table, dict) else None
    if kind not in _SHAPES or "axis" in table:
        raise ModelError(
            f"{where}: {word} must be a table with the type {' or '.join(_SHAPES)} and without an "
            f"axis, got {shown(table)}."
        )
    owner = f"cylinders.{name}.{word}"
    _, pairs = shape_numbers(table, f"{where}, {word}", owner, scope, found)
    return kind, {key: number for key, number in pairs if isinstance(number, Number)}


def _in_barrel(
    place: AbstractFormula, points: str, barrel: Mapping[str, Number], rod: Mapping[str, Number]
) -> InBarrel:
    """The place of the rod, if it goes into the barrel and reaches it."""
    bore = barrel.get("inner_radius", barrel["radius"])
    names = (barrel["length"], rod["length"], rod["radius"], bore)
    return InBarrel(place, points, *(own.name for own in names))


def _joints(
    entry: Mapping[str, Any],
    name: str,
    bodies: list[str],
    where: str,
    inner: Scope,
) -> list[dict[str, Any]]:
    """The joint between barrel and rod, and those at the ends."""
    ends = entry.get("ends", list(_ENDS[inner.dimension]))
    known = _KNOWN_ENDS[inner.dimension]
    if not isinstance(ends, list) or len(ends) != 2 or not all(end in known for end in ends):
        raise ModelError(f"{where}: ends must be two of {', '.join(known)}, got {shown(ends)}.")
    if inner.dimension == 3 and "revolute" in ends and "axis" not in entry:
        raise ModelError(f"{where}: a revolute end needs `axis`, the direction of its pin.")
    slide: dict[str, Any] = {
        "name": f"{name} slide",
        "type": "translational",
        "bodies": [f"{name} barrel", f"{name} rod"],
        "at": "points[0]",
        "axis": _ALONG,
    }
    pins = [
        _end(ends[0], f"{name} foot", [bodies[0], f"{name} barrel"], "points[0]", inner),
        _end(ends[1], f"{name} head", [f"{name} rod", bodies[1]], "points[1]", inner),
    ]
    return [slide, *(pin for pin in pins if pin is not None)]


def _end(kind: str, name: str, bodies: list[str], at: str, inner: Scope) -> dict[str, Any] | None:
    """The joint at one end; None where there is none."""
    if kind == "none":
        return None
    joint: dict[str, Any] = {"name": name, "type": kind, "bodies": bodies, "at": at}
    if kind == "universal":
        joint["axes"] = [f"across({_ALONG})", f"cross({_UNIT}, across({_ALONG}))"]
    if kind == "revolute" and inner.dimension == 3:
        joint["axis"] = "axis"
    return joint


def _forces(entry: Mapping[str, Any], name: str, where: str) -> list[dict[str, Any]]:
    """A push on both ends along the axis, and a spring and damper."""
    forces: list[dict[str, Any]] = []
    barrel, rod = f"{name} barrel", f"{name} rod"
    if "force" in entry and "motion" in entry:
        raise ModelError(
            f"{where}: give `motion` or `force`, one of the two; where the motion is prescribed, "
            "the drive exerts what it takes."
        )
    if "force" in entry:
        for body, at, sign in ((barrel, "points[0]", "-"), (rod, "points[1]", "")):
            forces.append(
                {
                    "name": f"{body} thrust",
                    "type": "applied",
                    "body": body,
                    "at": at,
                    "force": f"{sign}force * {_UNIT}",
                    "follows": "body",
                }
            )
    law = [key for key in ("stiffness", "damping", "length") if key in entry]
    if law:
        if law == ["length"]:
            raise ModelError(f"{where}: `length` is that of a spring; give `stiffness` as well.")
        spring = {"name": f"{name} spring", "type": "spring_damper", "bodies": [barrel, rod]}
        forces.append(spring | {"points": "points", "stiffness": 0.0} | {key: key for key in law})
    return forces
