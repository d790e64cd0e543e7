"""Names of classes in model files, and the form of a file's tables. A new joint, motion, force or
compliance is one line here: its keys are what its fields declare.
"""

import contextlib
import types
import typing
from collections.abc import Callable, Collection, Iterator, Mapping
from types import MappingProxyType
from typing import Any, final, TYPE_CHECKING, TypeVar

from .._checks import one_of, shown
from .._constraints import Driver
from .._errors import ModelError
from .._fields import Field, Key as PartKey, keys_of
from .._loading import late


if TYPE_CHECKING:
    from .. import _compliances, forces, motions, planar, shapes, spatial
else:
    _compliances, forces, motions, planar, shapes, spatial = (
        late(f"{__name__.split('.')[0]}.{name}")
        for name in ("_compliances", "forces", "motions", "planar", "shapes", "spatial")
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
                "point_on_curve": lambda: planar.PointOnCurve,
                "cam": lambda: planar.Cam,
                "point_on_line": lambda: planar.PointOnLine,
                "distance": lambda: planar.Distance,
                "gear": lambda: planar.Gear,
                "rope": lambda: planar.Rope,
                "belt": lambda: planar.Belt,
                "path_tendon": lambda: planar.PathTendon,
                "gear_pair": lambda: planar.GearPair,
                "rack_and_pinion": lambda: planar.RackAndPinion,
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
                "gear_pair": lambda: spatial.GearPair,
                "bevel_pair": lambda: spatial.BevelPair,
                "worm_pair": lambda: spatial.WormPair,
                "rack_and_pinion": lambda: spatial.RackAndPinion,
                "cylindrical": lambda: spatial.Cylindrical,
                "universal": lambda: spatial.Universal,
                "planar": lambda: spatial.Planar,
                "screw": lambda: spatial.Screw,
                "point_on_curve": lambda: spatial.PointOnCurve,
                "point_on_line": lambda: spatial.PointOnLine,
                "point_on_plane": lambda: spatial.PointOnPlane,
                "parallel_axes": lambda: spatial.ParallelAxes,
                "perpendicular_axes": lambda: spatial.PerpendicularAxes,
                "distance": lambda: spatial.Distance,
                "rope": lambda: spatial.Rope,
                "path_tendon": lambda: spatial.PathTendon,
                "joint_tendon": lambda: spatial.JointTendon,
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
        "elastic_rope": lambda: forces.ElasticRope,
        "torsion_spring": lambda: forces.TorsionSpring,
        "coulomb_friction": lambda: forces.CoulombFriction,
        "joint_friction": lambda: forces.JointFriction,
        "contact": lambda: forces.Contact,
        "motor": lambda: forces.Motor,
        "joint_stop": lambda: forces.JointStop,
    }
)
# Tables within that of a contact.
CONTACT_SHAPES: Mapping[str, type[Any]] = _Kinds(
    {
        "sphere": lambda: shapes.ContactSphere,
        "capsule": lambda: shapes.ContactCapsule,
        "box": lambda: shapes.ContactBox,
        "polytope": lambda: shapes.ContactPolytope,
        "half_space": lambda: shapes.ContactHalfSpace,
    }
)
# Tables within that of a motor.
ACTUATORS: Mapping[str, type[Any]] = _Kinds(
    {
        "ideal": lambda: forces.IdealActuator,
        "dc_motor": lambda: forces.DCMotor,
        "torque_speed": lambda: forces.TorqueSpeed,
    }
)
CONTROLLERS: Mapping[str, type[Any]] = _Kinds({"pid": lambda: forces.PID})
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
VISUALS: Mapping[str, type[Any]] = _Kinds(
    {
        "box": lambda: shapes.VisualBox,
        "cylinder": lambda: shapes.VisualCylinder,
        "capsule": lambda: shapes.VisualCapsule,
        "sphere": lambda: shapes.VisualSphere,
        "tube": lambda: shapes.VisualTube,
        "polygon": lambda: shapes.VisualPolygon,
        "mesh": lambda: shapes.VisualMesh,
    }
)
# What an applied force follows, the default first: one class each, of the same keys.
FOLLOWS: Mapping[str, type[Any]] = _Kinds(
    {"world": lambda: forces.Applied, "body": lambda: forces.Following}
)


# The types of each kind of table, by dimension.
TYPES: Mapping[str, Mapping[int, Mapping[str, type[Any]]]] = MappingProxyType(
    {
        "body": TYPED_BODIES,
        "joint": JOINTS,
        "force": {2: FORCES, 3: FORCES},
        "compliance": {2: COMPLIANCES, 3: COMPLIANCES},
        "element": ELEMENTS,
        "visual": {2: VISUALS, 3: VISUALS},
        "motion": {2: MOTIONS, 3: MOTIONS},
        "contact_shape": {2: CONTACT_SHAPES, 3: CONTACT_SHAPES},
        "actuator": {2: ACTUATORS, 3: ACTUATORS},
        "controller": {2: CONTROLLERS, 3: CONTROLLERS},
    }
)


def class_of(kind: str, entry: Mapping[str, Any], dimension: int) -> type[Any] | None:
    """The class of a part's table; None if its type is unknown."""
    if kind == "driver":
        return Driver
    # A body without a type has mass.
    if kind == "body" and not ("type" in entry and TYPED_BODIES[dimension]):
        return BODIES[dimension]
    word = entry.get("type")
    known = TYPES[kind][dimension]
    return known.get(SYNONYMS.get(word, word)) if isinstance(word, str) else None


def word_of(part: Any, classes: Mapping[str, type[Any]]) -> str | None:
    """The name of a part's type among these classes; None for parts without one."""
    cls = FORCES["applied"] if type(part) in FOLLOWS.values() else type(part)
    return next((word for word, known in classes.items() if known is cls), None)


def followed(part: Any) -> dict[str, str]:
    """The key for the frame that an applied force follows; none for other parts."""
    words = [word for word, cls in FOLLOWS.items() if type(part) is cls]
    return {"follows": words[0]} if words else {}


# --------------------------------------------------------------------------------------------------
# The form of a file's tables: keys, and types of values.
#
# What the values must satisfy (a mass above zero, an axis with a direction) is checked where the
# parts are made; errors there are given the place in the file.
# --------------------------------------------------------------------------------------------------


# Longest name of an entry in a message.
NAME = 60


def check_head(content: Mapping[str, Any], keys: Collection[str]) -> None:
    """**Raises:** `ModelError` for keys that are unknown, or another version of the format."""
    check_keys(keys, content, "the file")
    if "schema" not in content:
        raise ModelError("the key 'schema' is missing at the head of the file; set it to 1.")
    if type(content["schema"]) is not int or content["schema"] != 1:
        raise ModelError(f"schema must be 1, got {shown(content['schema'])}.")


def tables_of(content: Mapping[str, Any], kind: str, where: str = "") -> list[dict[str, Any]]:
    """The tables of one kind; none where they are left out.

    **Raises:** `ModelError`.
    """
    given = content.get(kind, [])
    if not isinstance(given, list):
        raise ModelError(f"{where}[{kind}] must be written [[{kind}]], as there may be several.")
    for index, entry in enumerate(given):
        check_table(entry, f"{where}{kind} number {index + 1}")
    return given


def check_table(entry: Any, where: str) -> None:
    """**Raises:** `ModelError` for a value that is not a table."""
    if not isinstance(entry, dict):
        raise ModelError(f"{where} must be a table of keys and values, got {shown(entry)}.")


def called(kind: str, name: Any, index: int) -> str:
    """An entry in a message: by its name, or by its place if it has none."""
    return f"{kind} {shown(name, NAME) if isinstance(name, str) else f'number {index + 1}'}"


def check_keys(
    keys: Collection[str], table: Mapping[str, Any], where: str, needed: Collection[str] = ()
) -> None:
    """`needed`: the keys that must be given.

    **Raises:** `ModelError` for a key that is unknown or missing.
    """
    for key in table:
        if key not in keys:
            known = ", ".join(keys)
            raise ModelError(f"{where}: unknown key {shown(key)}; the keys are {known}.")
    for key in needed:
        if key not in table:
            known = ", ".join(keys)
            raise ModelError(f"{where}: the key {key!r} is missing; the keys are {known}.")


def check_keys_of(
    cls: type[Any], table: Mapping[str, Any], where: str, *others: str
) -> Mapping[str, PartKey]:
    """The keys that a class of parts declares. `others`: those that the table may have besides.

    **Raises:** `ModelError` for a key of the table that is unknown or missing.
    """
    keys = keys_of(cls)
    names = dict.fromkeys([*(key for key in keys if key == "name"), *others, *keys])
    needed = [key for key, own in keys.items() if own.needed and own.instead is None]
    check_keys(names, table, where, needed)
    return keys


def check_values(cls: type[Any], entry: Mapping[str, Any], where: str, typed: bool) -> None:
    """Check the keys of a part's table, and the types of their values. `typed`: there are several
    classes of such parts.

    **Raises:** `ModelError`.
    """
    others = [*(["type"] if typed else []), *(["follows"] if cls in FOLLOWS.values() else [])]
    keys = check_keys_of(cls, entry, where, *others)
    with placed(where):
        for key in (key for key in keys if key in entry):
            _check_form(keys[key].said, key, entry[key])
        if "follows" in entry:
            one_of(entry["follows"], FOLLOWS, "follows")


@contextlib.contextmanager
def placed(where: str) -> Iterator[None]:
    """Give errors in values the place in the file.

    **Raises:** `ModelError`.
    """
    try:
        yield
    except (TypeError, ValueError) as error:
        raise ModelError(f"{where}: {error}") from None


_WORDS = {
    str: "a text",
    bool: "true or false",
    float: "a number",
    list: "an array",
    dict: "a table",
}


def _check_form(said: Field, key: str, value: Any) -> None:
    """Python takes one name for a list of one, tuples for lists, and None for what is left out; a
    file says each in one way.

    **Raises:** `TypeError`.
    """
    forms = typing.get_args(said.form) if isinstance(said.form, types.UnionType) else (said.form,)
    kinds = tuple(dict.fromkeys(typing.get_origin(form) or form for form in forms))
    admitted = (*kinds, int) if float in kinds else kinds
    if (isinstance(value, bool) and bool not in kinds) or not isinstance(value, admitted):
        words = " or ".join(_WORDS[kind] for kind in kinds)
        raise TypeError(f"{key} must be {words}, got {shown(value)}.")
