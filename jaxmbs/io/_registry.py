"""Names of classes in model files. A new joint, motion, force or compliance is one line here:
its keys are what its fields declare. The tables of a file (`REFERENCE.md`) are validated by
pydantic.
"""

import functools
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, final, Literal, TYPE_CHECKING, TypeVar

from pydantic import BaseModel, ConfigDict, create_model, ValidationError

from .._checks import shown
from .._errors import ModelError
from .._fields import keys_of
from .._loading import late


if TYPE_CHECKING:
    from .. import _compliances, forces, motions, planar, spatial
else:
    _compliances, forces, motions, planar, spatial = (
        late(f"{__name__.split('.')[0]}.{name}")
        for name in ("_compliances", "forces", "motions", "planar", "spatial")
    )


# --------------------------------------------------------------------------------------------------
# Names of classes in model files. A new joint, motion, force or compliance is one
# line here: its keys are what its fields declare (`_fields.py`).
# --------------------------------------------------------------------------------------------------


Key = TypeVar("Key")


@final
class _Kinds(Mapping[Key, type[Any]]):
    """Classes by their names, each loaded where it is asked for: a model holds a few of them."""

    def __init__(self, kinds: Mapping[Key, Callable[[], type[Any]]]):
        self._kinds = kinds

    def __getitem__(self, key: Key) -> type[Any]:
        return self._kinds[key]()

    def __contains__(self, key: object) -> bool:
        return key in self._kinds

    def __iter__(self) -> Iterator[Key]:
        return iter(self._kinds)

    def __len__(self) -> int:
        return len(self._kinds)


BODIES: Mapping[int, type[Any]] = _Kinds({2: lambda: planar.Body, 3: lambda: spatial.Body})
JOINTS: Mapping[int, Mapping[str, type[Any]]] = MappingProxyType(
    {
        2: _Kinds(
            {
                "revolute": lambda: planar.Revolute,
                "translational": lambda: planar.Translational,
                "fixed": lambda: planar.Fixed,
                "point_on_line": lambda: planar.PointOnLine,
                "distance": lambda: planar.Distance,
                "gear": lambda: planar.Gear,
                "knife_edge": lambda: planar.KnifeEdge,
                "pfaffian": lambda: planar.Pfaffian,
            }
        ),
        3: _Kinds(
            {
                "revolute": lambda: spatial.Revolute,
                "translational": lambda: spatial.Translational,
                "fixed": lambda: spatial.Fixed,
                "spherical": lambda: spatial.Spherical,
                "coupling": lambda: spatial.Coupling,
                "cylindrical": lambda: spatial.Cylindrical,
                "universal": lambda: spatial.Universal,
                "planar": lambda: spatial.Planar,
                "screw": lambda: spatial.Screw,
                "point_on_line": lambda: spatial.PointOnLine,
                "point_on_plane": lambda: spatial.PointOnPlane,
                "parallel_axes": lambda: spatial.ParallelAxes,
                "perpendicular_axes": lambda: spatial.PerpendicularAxes,
                "distance": lambda: spatial.Distance,
                "rolling_disk": lambda: spatial.RollingDisk,
                "pfaffian": lambda: spatial.Pfaffian,
            }
        ),
    }
)
# Words for the same thing.
SYNONYMS: Mapping[str, str] = MappingProxyType({"prismatic": "translational"})
MOTIONS: Mapping[str, type[Any]] = _Kinds(
    {
        "sine": lambda: motions.Sine,
        "linear": lambda: motions.Linear,
        "polynomial": lambda: motions.Polynomial,
        "table": lambda: motions.Table,
        "step": lambda: motions.Step,
    }
)
FORCES: Mapping[str, type[Any]] = _Kinds(
    {
        "applied": lambda: forces.Applied,
        "axial_spring": lambda: forces.AxialSpring,
        "ball_spring": lambda: forces.BallSpring,
        "bushing": lambda: forces.Bushing,
        "spring_damper": lambda: forces.SpringDamper,
        "torsion_spring": lambda: forces.TorsionSpring,
        "coulomb_friction": lambda: forces.CoulombFriction,
    }
)
COMPLIANCES: Mapping[str, type[Any]] = _Kinds(
    {"rod": lambda: _compliances.Rod, "joint": lambda: _compliances.JointCompliance}
)
# Bodies of a type of their own; others have none.
TYPED_BODIES: Mapping[int, Mapping[str, type[Any]]] = MappingProxyType(
    {
        2: {},
        3: _Kinds(
            {"massless": lambda: spatial.MasslessBody, "slender": lambda: spatial.SlenderBody}
        ),
    }
)
ELEMENTS: Mapping[int, Mapping[str, type[Any]]] = MappingProxyType(
    {
        2: {},
        3: _Kinds(
            {
                "reflected_inertia": lambda: spatial.ReflectedInertia,
                "reflected_mass": lambda: spatial.ReflectedMass,
                "ball_inertia": lambda: spatial.BallInertia,
            }
        ),
    }
)
# What an applied force follows, the default first: one class each, of the same keys.
FOLLOWS: Mapping[str, type[Any]] = _Kinds(
    {"world": lambda: forces.Applied, "body": lambda: forces.Following}
)


def word_of(part: Any, classes: Mapping[str, type[Any]]) -> str | None:
    """The name of a part's type among these classes; None for parts without one."""
    cls = FORCES["applied"] if type(part) in FOLLOWS.values() else type(part)
    return next((word for word, known in classes.items() if known is cls), None)


def followed(part: Any) -> dict[str, str]:
    """The key for the frame that an applied force follows; none for other parts."""
    words = [word for word, cls in FOLLOWS.items() if type(part) is cls]
    return {"follows": words[0]} if words else {}


# --------------------------------------------------------------------------------------------------
# The tables of a model file (`REFERENCE.md`), validated by pydantic.
#
# Only the shape of the file is checked here: keys, types, finite numbers. What the numbers must
# satisfy (a mass above zero, an axis with a direction) is checked where the parts are made.
# --------------------------------------------------------------------------------------------------


class AbstractTable(BaseModel):
    """A table with a fixed set of keys and finite numbers."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)


@functools.cache
def table(cls: type[Any], typed: bool) -> type[AbstractTable]:
    """The table of a class of parts: the keys that its fields declare, and those that select its
    class. `typed`: there are several classes of such parts."""
    own: dict[str, Any] = {
        name: (key.said.form, ... if key.needed and not key.instead else None)
        for name, key in keys_of(cls).items()
    }
    name = {key: own[key] for key in own if key == "name"}
    kind: dict[str, Any] = {"type": (str, ...)} if typed else {}
    if cls in FOLLOWS.values():
        own["follows"] = (Literal[tuple(FOLLOWS)], None)
    return create_model(f"{cls.__name__}Table", __base__=AbstractTable, **(name | kind | own))


def validate(known: type[AbstractTable], content: Any, where: str) -> dict[str, Any]:
    """The keys that are given, with their values checked.

    **Raises:** `ModelError` with one sentence about the first thing that is wrong.
    """
    if not isinstance(content, dict):
        raise ModelError(f"{where} must be a table of keys and values, got {shown(content)}.")
    try:
        model = known.model_validate(content)
    except ValidationError as error:
        raise ModelError(f"{where}: {_sentence(known, error)}") from None
    return {key: getattr(model, key) for key in model.model_fields_set}


def _sentence(table: type[AbstractTable], error: ValidationError) -> str:
    # Unknown and missing keys first: they explain the other errors. Where several forms are
    # admitted, the one that was followed deepest is the one that was meant.
    order = {"extra_forbidden": 0, "missing": 1}
    first = min(error.errors(), key=lambda e: (order.get(e["type"], 2), -len(e["loc"])))
    key, kind, value = str(first["loc"][0]), first["type"], first["input"]
    known = ", ".join(table.model_fields)
    if kind == "extra_forbidden":
        return f"unknown key {shown(key)}; the keys are {known}."
    if kind == "missing":
        return f"the key {key!r} is missing; the keys are {known}."
    place = key if key in table.model_fields else shown(key)
    for step in first["loc"][1:]:
        if isinstance(step, int):
            place += f", entry {step + 1}"
    if kind == "finite_number":
        return f"{place} must be a finite number, got {shown(value)}."
    return f"{place} {_expected(first)}, got {shown(value)}."


def _expected(error: Any) -> str:
    wanted = {
        "float_type": "must be a number",
        "int_type": "must be a whole number",
        "string_type": "must be a text",
        "list_type": "must be an array",
        "dict_type": "must be a table",
    }
    if error["type"] == "literal_error":
        return f"must be {error['ctx']['expected']}"
    return str(wanted.get(error["type"], error["msg"].lower()))
