"""Extensions of USD physics by other programs: couplings, armature, springs, dampers and actuators
of PhysX, Newton and MuJoCo.

Their schemas need not be registered: applied schemas are in the metadata of a prim, and the type of
a prim is the text that was authored. Whatever of it is not read here is listed by its name.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.polynomial import Polynomial

from ..._checks import listed, shown
from ..._errors import ModelError
from ._description import CoordinateCoupling, Dynamics, Joint, JointCoordinate, Omission


# Of USD physics, read elsewhere.
_PHYSICS = (
    "PhysicsRigidBodyAPI",
    "PhysicsMassAPI",
    "PhysicsCollisionAPI",
    "PhysicsMeshCollisionAPI",
    "PhysicsArticulationRootAPI",
    "PhysicsDriveAPI",
    "PhysicsLimitAPI",
)

# Of pictures and of the composition of files.
_PICTURES = (
    "AssetPreviewsAPI",
    "CollectionAPI",
    "ConnectableAPI",
    "CoordSysAPI",
    "GeomModelAPI",
    "LightAPI",
    "LightListAPI",
    "MaterialBindingAPI",
    "MeshLightAPI",
    "ModelAPI",
    "MotionAPI",
    "NodeDefAPI",
    "PrimvarsAPI",
    "ShadowAPI",
    "ShapingAPI",
    "VisibilityAPI",
    "XformCommonAPI",
)

_MIMIC, _NEWTON_MIMIC, _EQUALITY = "PhysxMimicJointAPI", "NewtonMimicAPI", "MjcEqualityJointAPI"
_PHYSX, _NEWTON, _MUJOCO = "PhysxJointAPI", "NewtonJointAPI", "MjcJointAPI"
_GEAR, _RACK, _ACTUATOR = "PhysxPhysicsGearJoint", "PhysxPhysicsRackAndPinionJoint", "MjcActuator"


class Coordinate(NamedTuple):
    """A joint of one coordinate: the prim's path, the joint, the coordinate's name, its value in
    the file's configuration (rad, m), and the file's unit (rad or m)."""

    path: str
    joint: Joint
    word: str
    here: float
    unit: float

    @property
    def name(self) -> str:
        return self.joint.name

    @property
    def of_model(self) -> JointCoordinate:
        own = self.joint
        return JointCoordinate(self.word, own.parent, own.child, own.points[1], own.axes[0])


class Extensions(NamedTuple):
    """Forces in each joint, by its name, couplings of joints, and omissions."""

    in_joints: Mapping[str, tuple[Dynamics, ...]]
    couplings: tuple[CoordinateCoupling, ...]
    omissions: tuple[Omission, ...]


class _Reader:
    """Collects what is found. `known`: coordinates by the paths of joints."""

    def __init__(self, read: Any, known: Mapping[str, Coordinate], controls: Mapping[str, float]):
        self.read, self.known, self.controls = read, known, controls
        self.in_joints: dict[str, tuple[Dynamics, ...]] = {}
        self.couplings: list[CoordinateCoupling] = []
        self.omissions: list[Omission] = []

    def torque(self, own: Coordinate) -> float:
        """A force or torque of one file unit, in N or N m."""
        return self.read.mass * self.read.length ** (2 if own.word == "rotation" else 1)

    def inertia(self, own: Coordinate) -> float:
        """An inertia along the coordinate of one file unit, in kg or kg m^2."""
        return self.read.mass * self.read.length ** (2 if own.word == "rotation" else 0)

    def of(self, prim: Any) -> Coordinate | None:
        return self.known.get(str(prim.GetPath()))

    def target(self, prim: Any, relation: str) -> Coordinate | None:
        """The joint that a relationship names."""
        found = prim.GetRelationship(relation)
        targets = found.GetTargets() if found else []
        return self.known.get(str(targets[0])) if targets else None

    def add(self, own: Coordinate, dynamics: Dynamics) -> None:
        self.in_joints[own.name] = (*self.in_joints.get(own.name, ()), dynamics)

    def couple(
        self, name: str, first: Coordinate | None, second: Coordinate | None, law: Polynomial
    ) -> bool:
        """`first` as that polynomial of `second`, both from the file's configuration on."""
        if first is None or second is None or first.path == second.path:
            return False
        coefficients = tuple(map(float, law.coef))
        self.couplings.append(
            CoordinateCoupling(name, first.of_model, second.of_model, (*coefficients, 0.0)[:2])
            if len(coefficients) < 3
            else CoordinateCoupling(name, first.of_model, second.of_model, coefficients)
        )
        return True


def extensions_of(
    read: Any,
    prims: Sequence[Any],
    known: Mapping[str, Coordinate],
    controls: Mapping[str, float],
) -> Extensions:
    """The extensions of all prims of a stage.

    **Raises:** `ModelError` for a control input of an actuator that there is none of.
    """
    actuators = [prim.GetName() for prim in prims if str(prim.GetTypeName()) == _ACTUATOR]
    for name in controls:
        if name not in actuators:
            raise ModelError(f"there is no actuator {shown(name)}; there are {listed(actuators)}.")
    found = _Reader(read, known, controls)
    for prim in prims:
        kind = str(prim.GetTypeName())
        carried = TYPES[kind](found, prim) if kind in TYPES else _is_registered(read, kind)
        if not carried:
            found.omissions.append(Omission("prim", prim.GetName(), f"{kind} is not carried"))
        schemas = applied_schemas(prim)
        for schema in schemas:
            first, _, instance = schema.partition(":")
            if first in _PHYSICS or first in _PICTURES:
                continue
            # A coupling of MuJoCo is written as one of Newton as well.
            if first == _NEWTON_MIMIC and _EQUALITY in schemas and _has(prim, "mjc:target"):
                continue
            if first not in _SCHEMAS or not _SCHEMAS[first](found, prim, instance):
                why = f"{schema} is not carried"
                found.omissions.append(Omission("schema", prim.GetName(), why))
    return Extensions(found.in_joints, tuple(found.couplings), tuple(found.omissions))


def applied_schemas(prim: Any) -> list[str]:
    """All applied schemas, with or without their plugins."""
    listed_ones = prim.GetMetadata("apiSchemas")
    names = [] if listed_ones is None else list(map(str, listed_ones.GetAppliedItems()))
    return list(dict.fromkeys([*names, *map(str, prim.GetAppliedSchemas())]))


def _is_registered(read: Any, kind: str) -> bool:
    """Is the type of a prim one of USD's own, whose omissions are reported elsewhere?"""
    if not kind:
        return True
    found = read.usd.Usd.SchemaRegistry.GetTypeFromName(kind)
    foreign = kind.startswith(("Physx", "Mjc", "Newton"))
    return bool(found) and not found.isUnknown and not foreign and kind != "PhysicsCollisionGroup"


def _has(prim: Any, name: str) -> bool:
    relation = prim.GetRelationship(name)
    return bool(relation) and bool(relation.GetTargets())


def _number(prim: Any, name: str, default: float = 0.0) -> float:
    """An attribute, finite or not."""
    attribute = prim.GetAttribute(name)
    value = attribute.Get() if attribute else None
    return default if value is None else float(value)


def _numbers(prim: Any, name: str, count: int, default: float = 0.0) -> np.ndarray:
    """The first ones of an array."""
    attribute = prim.GetAttribute(name)
    value = attribute.Get() if attribute else None
    given = [] if value is None else list(value)[:count]
    return np.array([*map(float, given), *[default] * (count - len(given))])


def _word(prim: Any, name: str, default: str) -> str:
    attribute = prim.GetAttribute(name)
    value = attribute.Get() if attribute else None
    return default if value is None else str(value)


# ---------------------------------------------------------------------------------------------
# Couplings
# ---------------------------------------------------------------------------------------------


def _from_here(first: Coordinate, second: Coordinate, law: Polynomial) -> Polynomial:
    """y = law(x), in the file's units, as the change of y over that of x (rad, m)."""
    scaled = first.unit * law(Polynomial([second.here / second.unit, 1 / second.unit]))
    return scaled - first.here


def _linear(
    found: _Reader, prim: Any, name: str, second: Coordinate | None, law: Polynomial
) -> bool:
    first = found.of(prim)
    if first is None or second is None:
        return False
    return found.couple(name, first, second, _from_here(first, second, law))


def _physx_mimic(found: _Reader, prim: Any, instance: str) -> bool:
    """q + gearing q_reference + offset = 0, in degrees and lengths of the stage."""
    space = f"physxMimicJoint:{instance}"
    gearing, offset = _number(prim, f"{space}:gearing", 1.0), _number(prim, f"{space}:offset")
    second = found.target(prim, f"{space}:referenceJoint")
    if not _along_its_axis(found.of(prim), instance):
        return False
    named = f"{prim.GetName()} mimic"
    if not _linear(found, prim, named, second, Polynomial([-offset, -gearing])):
        return False
    if _number(prim, f"{space}:naturalFrequency", 0.0) > 0:
        why = "is held exactly, where the file has a spring of its naturalFrequency"
        found.omissions.append(Omission("coupling", named, why))
    return True


def _along_its_axis(own: Coordinate | None, instance: str) -> bool:
    """Does an instance (`rotX`, `transZ`, ...) mean the one coordinate that a joint has?"""
    kinds = {"rot": "rotation", "tra": "translation", "ang": "rotation", "lin": "translation"}
    return own is not None and kinds.get(instance[:3]) == own.word


def _newton_mimic(found: _Reader, prim: Any, instance: str) -> bool:
    """q = coef0 + coef1 q_leader, in degrees and lengths of the stage."""
    del instance
    enabled = prim.GetAttribute("newton:mimicEnabled")
    if enabled and enabled.Get() is False:
        return False
    law = Polynomial([_number(prim, "newton:mimicCoef0"), _number(prim, "newton:mimicCoef1", 1.0)])
    second = found.target(prim, "newton:mimicJoint")
    return _linear(found, prim, f"{prim.GetName()} mimic", second, law)


def _equality(found: _Reader, prim: Any, instance: str) -> bool:
    """A polynomial of the displacements from the file's configuration, in rad and m."""
    del instance
    first, second = found.of(prim), found.target(prim, "mjc:target")
    if first is None or second is None:
        return False
    names = [f"mjc:coef{k}" for k in range(5)]
    defaults = [_number(prim, "newton:mimicCoef0"), _number(prim, "newton:mimicCoef1", 1.0)]
    given = [
        _number(prim, name, default)
        for name, default in zip(names, [*defaults, 0.0, 0.0, 0.0], strict=True)
    ]
    scales = [found.read.length if own.word == "translation" else 1.0 for own in (first, second)]
    law = scales[0] * Polynomial(given)(Polynomial([0.0, 1 / scales[1]]))
    used = [j for j, c in enumerate(law.coef) if c != 0 or j == 1]
    return found.couple(
        f"{prim.GetName()} mimic", first, second, Polynomial(law.coef[: max(used) + 1])
    )


def _gear(found: _Reader, prim: Any) -> bool:
    """Two gears that mesh turn against each other: ratio theta_0 + theta_1 = 0."""
    first, second = found.target(prim, "physics:hinge0"), found.target(prim, "physics:hinge1")
    if first is None or second is None or {first.word, second.word} != {"rotation"}:
        return False
    ratio = _number(prim, "physics:gearRatio", 1.0)
    return found.couple(prim.GetName(), second, first, Polynomial([0.0, -ratio]))


def _rack(found: _Reader, prim: Any) -> bool:
    """The pinion turns by `ratio` degrees while the rack moves by one length of the stage."""
    hinge, slide = found.target(prim, "physics:hinge"), found.target(prim, "physics:prismatic")
    if hinge is None or slide is None or (hinge.word, slide.word) != ("rotation", "translation"):
        return False
    ratio = _number(prim, "physics:ratio", 1.0) * hinge.unit / slide.unit
    return found.couple(prim.GetName(), hinge, slide, Polynomial([0.0, ratio]))


# ---------------------------------------------------------------------------------------------
# What acts in joints
# ---------------------------------------------------------------------------------------------


def _friction(found: _Reader, own: Coordinate, amount: float) -> None:
    if amount:
        why = f"dry friction of {amount:g} is not carried"
        found.omissions.append(Omission("friction", own.name, why))


def _physx_joint(found: _Reader, prim: Any, instance: str) -> bool:
    del instance
    own = found.of(prim)
    armature = _number(prim, "physxJoint:armature")
    friction = _number(prim, "physxJoint:jointFriction")
    if own is None:
        return not armature and not friction
    _friction(found, own, friction)
    if armature:
        armature *= found.inertia(own)
        found.add(own, Dynamics(own.word, f"{own.name} armature", armature=armature))
    speed = _number(prim, "physxJoint:maxJointVelocity", np.inf)
    if prim.GetAttribute("physxJoint:maxJointVelocity").HasAuthoredValue() and speed < _FASTEST:
        why = f"its velocity is not held below {speed:g}"
        found.omissions.append(Omission("limit", own.name, why))
    return True


# The default of PhysX, which is not an intended limit.
_FASTEST = 1e6


def _newton_joint(found: _Reader, prim: Any, instance: str) -> bool:
    """Per degree and lengths of the stage, as drives of USD physics are."""
    del instance
    own = found.of(prim)
    armature, damping = _number(prim, "newton:armature"), _number(prim, "newton:damping")
    friction = _number(prim, "newton:friction")
    if own is None:
        return not armature and not damping and not friction
    _friction(found, own, friction)
    if armature or damping:
        found.add(
            own,
            Dynamics(
                own.word,
                f"{own.name} newton",
                damping=damping * found.torque(own) / own.unit,
                armature=armature * found.inertia(own),
            ),
        )
    return True


def _mujoco_joint(found: _Reader, prim: Any, instance: str) -> bool:
    """In rad, and lengths of the stage; the file's configuration is that of `mjc:ref`."""
    del instance
    own = found.of(prim)
    names = ("armature", "damping", "stiffness", "frictionloss")
    armature, damping, stiffness, friction = (_number(prim, f"mjc:{name}") for name in names)
    if own is None:
        return not armature and not damping and not stiffness and not friction
    unit = found.read.length if own.word == "translation" else 1.0
    force = found.torque(own) / unit
    rest = (_number(prim, "mjc:springref") - _number(prim, "mjc:ref")) * unit
    _friction(found, own, friction)
    if armature or damping or stiffness:
        found.add(
            own,
            Dynamics(
                own.word,
                f"{own.name} mjc",
                stiffness=stiffness * force,
                damping=damping * force,
                rest=rest,
                armature=armature * found.inertia(own),
            ),
        )
    if np.any(_numbers(prim, "mjc:springdamper", 2)):
        why = "springdamper is not carried"
        found.omissions.append(Omission("spring", own.name, why))
    return True


def _mujoco_actuator(found: _Reader, prim: Any) -> bool:
    """A linear law of a joint's coordinate and velocity, at the given control input, or zero."""
    own = found.target(prim, "mjc:target")
    gain, bias = _word(prim, "mjc:gainType", "fixed"), _word(prim, "mjc:biasType", "none")
    still = _word(prim, "mjc:dynType", "none") == "none"
    if (
        own is None
        or not still
        or gain not in ("fixed", "affine")
        or bias not in ("none", "affine")
    ):
        return False
    control = float(found.controls.get(prim.GetName(), 0.0))
    fallback = 1.0 if not prim.GetAttribute("mjc:gainPrm") else 0.0
    terms = control * _numbers(prim, "mjc:gainPrm", 3)
    if fallback:
        terms = control * np.array([1.0, 0.0, 0.0])
    if gain == "fixed":
        terms[1:] = 0.0
    if bias == "affine":
        terms = terms + _numbers(prim, "mjc:biasPrm", 3)
    gear = _numbers(prim, "mjc:gear", 1, 1.0)[0]
    unit = found.read.length if own.word == "translation" else 1.0
    force = found.torque(own)
    stiffness = -terms[1] * gear**2 * force / unit
    start = _number(found.read.stage.GetPrimAtPath(own.path), "mjc:ref") * unit
    found.add(
        own,
        Dynamics(
            own.word,
            prim.GetName(),
            stiffness=float(stiffness),
            damping=float(-terms[2] * gear**2 * force / unit),
            effort=float(terms[0] * gear * force - stiffness * start),
        ),
    )
    for what in ("ctrlRange", "forceRange"):
        if _word(prim, f"mjc:{what}:min", "") or _word(prim, f"mjc:{what}:max", ""):
            why = f"its {what} is not kept"
            found.omissions.append(Omission("limit", prim.GetName(), why))
    return True


# Schemas of joints, and types of prims, that are read; each returns whether all of it is carried or
# reported.
_SCHEMAS: Mapping[str, Callable[[_Reader, Any, str], bool]] = {
    _MIMIC: _physx_mimic,
    _NEWTON_MIMIC: _newton_mimic,
    _EQUALITY: _equality,
    _PHYSX: _physx_joint,
    _NEWTON: _newton_joint,
    _MUJOCO: _mujoco_joint,
}

TYPES: Mapping[str, Callable[[_Reader, Any], bool]] = {
    _GEAR: _gear,
    _RACK: _rack,
    _ACTUATOR: _mujoco_actuator,
}


def limits_of_motions(read: Any, prim: Any, name: str) -> Iterator[Omission]:
    """Omitted limits of a generic joint: ranges that lock no motion."""
    for schema in applied_schemas(prim):
        kind, _, word = schema.partition(":")
        if kind != "PhysicsLimitAPI":
            continue
        limit = read.usd.UsdPhysics.LimitAPI.Get(prim, word)
        low, high = limit.GetLowAttr().Get(), limit.GetHighAttr().Get()
        if low < high and np.any(np.isfinite([low, high])):
            yield Omission("limit", name, f"its range of {word}, {low:g} to {high:g}, is not kept")
