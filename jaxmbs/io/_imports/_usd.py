"""Rigid bodies and joints of USD physics (`.usd`, `.usda`, `.usdc`).

Read through `usd-core`, Pixar's own build of OpenUSD: it resolves layers, references, variants,
instances and units as every other program does, and its `UsdPhysics` schemas are what USD
physics is. Other packages for Python are viewers on top of it.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.polynomial import Polynomial

from ..._checks import listed, PATH, shortened, shown
from ..._errors import ModelError, optional
from ._description import (
    CoordinateCoupling,
    CoordinateRange,
    Description,
    Dynamics,
    GROUND,
    Joint,
    JointCoordinate,
    Link,
    Matrix,
    matrix_of_quaternion,
    Omission,
    rotation_vector,
    round_moments,
    State,
    Vector,
)
from ._looks import looks_of_stage
from ._xml import checked_path


# --------------------------------------------------------------------------------------------------
# Masses of bodies in USD physics.
# --------------------------------------------------------------------------------------------------


class BodyMass(NamedTuple):
    """Mass (kg), its centre in the world (m) and the inertia about that along the prim's axes; the
    mass that the body gives in numbers, and where its mass and its inertia are from if not from
    there. `unknown`: the reason why neither its numbers nor its shapes define its mass."""

    mass: float
    center: Vector
    inertia: Matrix
    stated: float | None = None
    derived: str = ""
    derived_inertia: str = ""
    unknown: str = ""


def mass_of(read: Any, prim: Any) -> BodyMass:
    """The mass of a body.

    Values of the body itself take precedence. What it leaves out follows, by the rules of USD
    physics, from densities and shapes below it: boxes, spheres, cylinders and capsules.
    """
    own = read.usd.UsdPhysics.MassAPI(prim)
    mass = given = float(own.GetMassAttr().Get() or 0.0)
    moments = np.array(own.GetDiagonalInertiaAttr().Get() or (0.0, 0.0, 0.0), float)
    center = np.array(own.GetCenterOfMassAttr().Get() or (0.0, 0.0, 0.0), float)
    turn = own.GetPrincipalAxesAttr().Get()
    whole = mass > 0 and np.all(moments > 0) and np.all(np.isfinite(center))
    unknown = ""
    if not whole:
        mass, moments, center, turn, other = _of_shapes(read, prim)
        if other:
            unknown = f"has its mass from {shown(other)}, which is no {_SHAPES}; {_ADVICE}"
        elif not (mass > 0 and np.all(moments > 0)):
            unknown = f"does not tell its mass; {_ADVICE}, as meshes are not read"
    if unknown:
        return BodyMass(0.0, read.frame(prim)[0], np.zeros((3, 3)), unknown=unknown)
    quaternion = np.array([1.0, 0.0, 0.0, 0.0])
    if turn is not None and turn.GetLength() > 0:
        quaternion = np.array([turn.GetReal(), *turn.GetImaginary()], float)
    axes = matrix_of_quaternion(quaternion)
    inertia = axes @ np.diag(moments) @ axes.T * read.mass * read.length**2
    return BodyMass(
        mass * read.mass,
        read.point(prim, center),
        inertia,
        stated=given * read.mass if given > 0 else None,
        derived="" if given > 0 else _FROM_SHAPES,
        derived_inertia="follows from its shapes and its mass" if given > 0 and not whole else "",
    )


_SHAPES = "box, sphere, cylinder or capsule"
_ADVICE = "give it mass, diagonalInertia and centerOfMass (PhysicsMassAPI)"

_FROM_SHAPES = (
    "from shapes, as the body gives no physics:mass (1000 kg/m3 unless a density or a mass of "
    "theirs says)"
)


def _of_shapes(read: Any, prim: Any) -> tuple[float, np.ndarray, np.ndarray, Any, str]:
    """Mass of the shapes by the library's own rules, in single precision; and the path of a shape
    of another kind."""
    unknown: list[str] = []

    def information(shape: Any) -> Any:
        found = read.usd.UsdPhysics.RigidBodyAPI.MassInformation()
        volume, moments = _volume(read, shape)
        if not volume:
            unknown.append(str(shape.GetPath()))
        found.volume = volume
        found.inertia = read.usd.Gf.Matrix3f(*(float(x) for x in np.diag(moments * volume).ravel()))
        found.centerOfMass = read.usd.Gf.Vec3f(0.0)
        place, axes = _within(read, shape, prim)
        found.localPos = read.usd.Gf.Vec3f(*map(float, place))
        found.localRot = axes
        return found

    body = read.usd.UsdPhysics.RigidBodyAPI(prim)
    mass, moments, center, turn = body.ComputeMassProperties(information)
    other = unknown[0] if unknown else ""
    return float(mass), np.array(moments, float), np.array(center, float), turn, other


def _within(read: Any, shape: Any, prim: Any) -> tuple[np.ndarray, Any]:
    """Place and orientation of a shape in a body's prim."""
    cache, gf = read.usd.UsdGeom.XformCache(), read.usd.Gf
    inner = cache.GetLocalToWorldTransform(shape)
    outer = cache.GetLocalToWorldTransform(prim).RemoveScaleShear()
    between = inner.RemoveScaleShear() * outer.GetInverse()
    return np.array(between.ExtractTranslation()), gf.Quatf(between.ExtractRotationQuat())


def _volume(read: Any, shape: Any) -> tuple[float, np.ndarray]:
    """Volume, and moments of inertia for a volume of one, of a shape as large as it is in the
    world."""
    geometry = read.usd.UsdGeom
    whole = geometry.XformCache().GetLocalToWorldTransform(shape)
    scale = np.linalg.norm(np.array(whole)[:3, :3], axis=1)
    if shape.IsA(geometry.Cube):
        sides = scale * float(geometry.Cube(shape).GetSizeAttr().Get())
        squares = sides**2
        return float(np.prod(sides)), (squares.sum() - squares) / 12
    if shape.IsA(geometry.Sphere):
        radius = float(geometry.Sphere(shape).GetRadiusAttr().Get()) * scale[0]
        return 4 / 3 * np.pi * radius**3, np.full(3, 0.4 * radius**2)
    for kind, ends in ((geometry.Cylinder, False), (geometry.Capsule, True)):
        if shape.IsA(kind):
            own = kind(shape)
            axis = "XYZ".index(str(own.GetAxisAttr().Get()))
            radius = float(own.GetRadiusAttr().Get()) * scale[(axis + 1) % 3]
            height = float(own.GetHeightAttr().Get()) * scale[axis]
            return round_moments(radius, height, axis, ends=ends)
    return 0.0, np.zeros(3)


# --------------------------------------------------------------------------------------------------
# Extensions of USD physics by other programs: couplings, armature, springs, dampers and actuators
# of PhysX, Newton and MuJoCo.
#
# Their schemas need not be registered: applied schemas are in the metadata of a prim, and the type
# of a prim is the text that was authored. Whatever of it is not read here is listed by its name.
# --------------------------------------------------------------------------------------------------


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


def _physx_joint(found: _Reader, prim: Any, instance: str) -> bool:
    del instance
    own = found.of(prim)
    armature = _number(prim, "physxJoint:armature")
    friction = _number(prim, "physxJoint:jointFriction")
    if own is None:
        return not armature and not friction
    if friction:
        # A coefficient of PhysX: of the sum of a force and a couple, which has no unit.
        why = (
            f"dry friction with the coefficient {friction:g}, of the sum of the joint's force and "
            "couple, is not carried"
        )
        found.omissions.append(Omission("friction", own.name, why))
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
    if armature or damping or friction:
        found.add(
            own,
            Dynamics(
                own.word,
                f"{own.name} newton",
                damping=damping * found.torque(own) / own.unit,
                friction=friction * found.torque(own),
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
    if armature or damping or stiffness or friction:
        found.add(
            own,
            Dynamics(
                own.word,
                f"{own.name} mjc",
                stiffness=stiffness * force,
                damping=damping * force,
                rest=rest,
                friction=friction * found.torque(own),
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
            yield _motion_told(name, word, low, high)


def _motion_told(name: str, word: str, low: float, high: float) -> Omission:
    """The omission of a range of a generic joint."""
    return Omission("limit", name, f"its range of {word}, {low:g} to {high:g}, is not kept")


# --------------------------------------------------------------------------------------------------
# Joints of USD physics, and the drives in them.
# --------------------------------------------------------------------------------------------------


class UsdJoints(NamedTuple):
    """Joints, the massless links between joints in series, and what is not carried."""

    joints: tuple[Joint, ...]
    links: tuple[Link, ...]
    couplings: tuple[CoordinateCoupling, ...]
    omissions: tuple[Omission, ...]


class _Side(NamedTuple):
    """A joint's frame on one of its bodies, in the world."""

    link: str
    point: Vector
    axes: np.ndarray


class _Motion(NamedTuple):
    """A motion that a joint leaves free, along or about an axis of its frames, and the instance
    name of a drive of it."""

    word: str
    axis: int
    drive: str


class _Given(NamedTuple):
    """A joint of the file. `motions`: None for a kind that is not carried."""

    prim: Any
    name: str
    sides: tuple[_Side, _Side]
    motions: tuple[_Motion, ...] | None


class _Piece(NamedTuple):
    """A joint of the model, with the motion whose drive acts in it and its coordinate in the
    file's configuration."""

    joint: Joint
    motion: _Motion | None = None
    here: float = 0.0


def joints_of(
    read: Any, prims: Sequence[Any], links: Sequence[Link], controls: Mapping[str, float]
) -> UsdJoints:
    """All joints of a stage, with what acts in them and couples them.

    **Raises:** `ModelError`, as `extensions_of`.
    """
    known: dict[str, Coordinate] = {}
    joints: list[Joint] = []
    between: list[Link] = []
    omissions: list[Omission] = []
    by_name = {link.name: link for link in links}
    given = list(_given(read, prims, omissions))
    ends = _in_series(given, by_name, between, omissions)
    for own in given:
        pieces = _pieces(own, ends.get(own.name), _driven(read, own.prim), by_name, between)
        drives = list(_drives(read, own, pieces, omissions))
        for piece in pieces:
            acting = tuple(drive for at, drive in drives if at is piece.motion)
            ranges = _ranges(read, own, piece)
            joints.append(piece.joint._replace(dynamics=acting, ranges=ranges))
        omissions.extend(_limits(read, own.prim, own.name))
        if len(pieces) == 1 and (motion := pieces[0].motion) is not None:
            unit = np.radians(1.0) if motion.word == "rotation" else read.length
            path = str(own.prim.GetPath())
            known[path] = Coordinate(path, joints[-1], motion.word, pieces[0].here, unit)
    found = extensions_of(read, prims, known, controls)
    acting = tuple(
        own._replace(dynamics=(*own.dynamics, *found.in_joints.get(own.name, ()))) for own in joints
    )
    return UsdJoints(acting, tuple(between), found.couplings, (*omissions, *found.omissions))


def _given(read: Any, prims: Sequence[Any], omissions: list[Omission]) -> Iterator[_Given]:
    """The joints that hold something."""
    names = [prim.GetName() for prim in prims if prim.IsA(read.usd.UsdPhysics.Joint)]
    for prim in prims:
        # Couplings are joints to those who wrote them.
        if not prim.IsA(read.usd.UsdPhysics.Joint) or str(prim.GetTypeName()) in TYPES:
            continue
        last = prim.GetName()
        name = last if names.count(last) == 1 else str(prim.GetPath()).strip("/")
        joint = read.usd.UsdPhysics.Joint(prim)
        if joint.GetJointEnabledAttr().Get() is False:
            omissions.append(Omission("joint", name, "is not enabled"))
            continue
        sides, motions = (_side(read, joint, 0), _side(read, joint, 1)), _motions(read, prim)
        if motions is None:
            omissions.append(Omission("joint", name, "is of a kind that is not carried"))
        elif sides[0].link == sides[1].link:
            omissions.append(Omission("joint", name, "holds one link alone"))
        elif len(motions) == 6:
            omissions.append(Omission("joint", name, "leaves all six motions free"))
            omissions.extend(_limits(read, prim, name))
        else:
            yield _Given(prim, name, sides, motions)


def _in_series(
    given: Sequence[_Given],
    links: Mapping[str, Link],
    between: list[Link],
    omissions: list[Omission],
) -> dict[str, tuple[str, str]]:
    """The links that joints of MuJoCo hold where several move one body: they are in series, in the
    order of the file (MuJoCo's XML reference, `body/joint`), while several joints of USD between
    two bodies would all hold at once."""
    groups: dict[tuple[str, str], list[_Given]] = {}
    for own in given:
        of_mujoco = "MjcJointAPI" in applied_schemas(own.prim)
        if of_mujoco and own.motions is not None and len(own.motions) == 1:
            groups.setdefault((own.sides[0].link, own.sides[1].link), []).append(own)
    ends = {}
    for (parent, child), group in groups.items():
        last = parent
        for own in group[:-1]:
            link = _massless(f"{child} {own.name}", own.sides[1].point, links.get(child))
            between.append(link)
            ends[own.name] = last, link.name
            last = link.name
        ends[group[-1].name] = last, child
        if len(group) > 1:
            names = ", ".join(own.name for own in group)
            why = "stand in series in this order, as joints of MuJoCo (MjcJointAPI) do"
            omissions.append(Omission("joint", names, why))
    return ends


def _massless(name: str, point: Vector, like: Link | None) -> Link:
    velocity, spin = np.zeros(3), np.zeros(3)
    if like is not None:
        spin = like.angular_velocity
        velocity = like.velocity + np.cross(spin, point - like.position)
    inertia = np.zeros((3, 3))
    return Link(name, point, np.eye(3), None, point, inertia, velocity, spin, between=True)


def _pieces(
    own: _Given,
    ends: tuple[str, str] | None,
    driven: frozenset[str],
    links: Mapping[str, Link],
    between: list[Link],
) -> list[_Piece]:
    """The joints of the model that leave these motions free: one where there is such a kind, else
    one for each motion, in series with massless links between them, translations first."""
    (first, second), motions = own.sides, own.motions
    assert motions is not None
    parent, child = ends or (first.link, second.link)
    kind = _kind(motions, driven)
    if kind is not None:
        axes = tuple(side.axes for side in (own.sides if kind == "universal" else own.sides[:1]))
        columns = [motion.axis for motion in motions][: 2 if kind == "universal" else 1]
        if kind in ("fixed", "spherical"):
            columns = []
        universal = kind == "universal"
        joint = Joint(
            own.name,
            kind,
            parent,
            child,
            np.stack([first.point, second.point]),
            tuple(turn[:, k] for turn, k in zip(axes, columns, strict=False)),
            welds=kind == "fixed",
            child_axes=() if universal else tuple(second.axes[:, k] for k in columns),
            turned=_turned(first, second) if kind == "fixed" else 0.0,
        )
        if len(motions) == 1:
            return [_Piece(joint, motions[0], _coordinate(own.sides, motions[0]))]
        return [_Piece(joint)]
    rotations = [motion.axis for motion in motions if motion.word == "rotation"]
    turns = iter(zip(*_turns(first.axes.T @ second.axes, rotations), strict=True))
    pieces, last, point = [], parent, first.point
    for motion in motions:
        name, is_last = f"{own.name} {motion.drive}", motion is motions[-1]
        if motion.word == "rotation":
            here, local = next(turns)
            axis, end = first.axes @ local, point
        else:
            here, axis = _coordinate(own.sides, motion), first.axes[:, motion.axis]
            end = point + here * axis
        link = child
        if not is_last:
            between.append(_massless(f"{second.link} {name}", end, links.get(second.link)))
            link = between[-1].name
        pieces.append(
            _Piece(
                Joint(
                    name,
                    _KINDS[motion.word],
                    last,
                    link,
                    np.stack([point, second.point if is_last else end]),
                    (axis,),
                    child_axes=(second.axes[:, motion.axis] if is_last else axis,),
                ),
                motion,
                here,
            )
        )
        last, point = link, end
    return pieces


def _kind(motions: tuple[_Motion, ...], driven: frozenset[str]) -> str | None:
    """The name in model files of a joint with these motions. Of the joints with several coordinates
    only the spherical one can have a drive."""
    words = [motion.word for motion in motions]
    if not motions:
        return "fixed"
    if len(motions) == 1:
        return _KINDS[words[0]]
    if words == ["rotation"] * 3:
        return "spherical"
    if driven & {motion.drive for motion in motions}:
        return None
    if words == ["rotation"] * 2:
        return "universal"
    if words == ["translation", "rotation"] and motions[0].axis == motions[1].axis:
        return "cylindrical"
    return None


def _turns(rotation: np.ndarray, order: Sequence[int]) -> tuple[list[float], list[np.ndarray]]:
    """The angles (rad) of turns about these axes (of 0, 1, 2; each carried along by those before
    it) that lead to a rotation, and the axes in the first frame."""
    angles, axes, done = [], [], np.eye(3)
    for k, axis in enumerate(order):
        left = done.T @ rotation
        # The axis that neither this turn nor the next one is about stays beside it.
        after = order[k + 1] if k + 1 < len(order) else (axis + 2) % 3
        other = 3 - axis - after
        sign = 1.0 if (axis + 1) % 3 == after else -1.0
        angle = float(np.arctan2(-sign * left[after, other], left[other, other]))
        angles.append(angle)
        axes.append(done[:, axis])
        done = done @ _turn_about(axis, angle)
    return angles, axes


def _turn_about(axis: int, angle: float) -> np.ndarray:
    half = angle / 2
    return matrix_of_quaternion(np.array([np.cos(half), *np.sin(half) * np.eye(3)[axis]]))


def _side(read: Any, joint: Any, k: int) -> _Side:
    relation = (joint.GetBody0Rel, joint.GetBody1Rel)[k]()
    place = (joint.GetLocalPos0Attr, joint.GetLocalPos1Attr)[k]().Get() or (0.0, 0.0, 0.0)
    turn = (joint.GetLocalRot0Attr, joint.GetLocalRot1Attr)[k]().Get()
    quaternion = np.array([1.0, 0.0, 0.0, 0.0])
    if turn is not None and turn.GetLength() > 0:
        quaternion = np.array([turn.GetReal(), *turn.GetImaginary()], float)
    axes = matrix_of_quaternion(quaternion)
    targets = relation.GetTargets()
    prim = read.stage.GetPrimAtPath(targets[0]) if targets else None
    if not prim:
        return _Side(GROUND, np.array(place, float) * read.length, axes)
    outer = read.frame(prim)[1]
    return _Side(read.link(prim), read.point(prim, place), outer @ axes)


def _turned(first: _Side, second: _Side) -> float:
    return float(np.linalg.norm(rotation_vector(first.axes.T @ second.axes)))


_WORDS = {"trans": "translation", "rot": "rotation"}
_KINDS = {"translation": "translational", "rotation": "revolute"}
_SIX = tuple(
    _Motion(word, axis, f"{start}{'XYZ'[axis]}")
    for start, word in _WORDS.items()
    for axis in range(3)
)


def _motions(read: Any, prim: Any) -> tuple[_Motion, ...] | None:
    """The free motions of a joint, translations first. In a generic joint, those that no limit
    locks."""
    physics = read.usd.UsdPhysics
    for cls, word, drive in (
        (physics.RevoluteJoint, "rotation", "angular"),
        (physics.PrismaticJoint, "translation", "linear"),
    ):
        if prim.IsA(cls):
            return (_Motion(word, "XYZ".index(str(cls(prim).GetAxisAttr().Get())), drive),)
    if prim.IsA(physics.SphericalJoint):
        return _SIX[3:]
    if prim.IsA(physics.FixedJoint):
        return ()
    if prim.GetTypeName() != "PhysicsJoint":
        return None
    return tuple(motion for motion in _SIX if not _is_locked(read, prim, motion.drive))


def _is_locked(read: Any, prim: Any, word: str) -> bool:
    """Is it locked? By the standard where low > high; a range of a single value locks as well."""
    limit = read.usd.UsdPhysics.LimitAPI.Get(prim, word)
    has = prim.HasAPI(read.usd.UsdPhysics.LimitAPI, word)
    return has and limit.GetLowAttr().Get() >= limit.GetHighAttr().Get()


_DRIVE = "PhysicsDriveAPI:"


def _driven(read: Any, prim: Any) -> frozenset[str]:
    """The instance names of a joint's drives by force."""
    names = [x.removeprefix(_DRIVE) for x in applied_schemas(prim) if x.startswith(_DRIVE)]
    drives = {name: read.usd.UsdPhysics.DriveAPI.Get(prim, name) for name in names}
    return frozenset(x for x, own in drives.items() if str(own.GetTypeAttr().Get()) == "force")


def _drives(
    read: Any, own: _Given, pieces: Sequence[_Piece], omissions: list[Omission]
) -> Iterator[tuple[_Motion, Dynamics]]:
    """Springs and dampers towards a target; angles of USD are in degrees."""
    by_name = {piece.motion.drive: piece for piece in pieces if piece.motion is not None}
    by_force = _driven(read, own.prim)
    for schema in applied_schemas(own.prim):
        if not schema.startswith(_DRIVE):
            continue
        called = schema.removeprefix(_DRIVE)
        piece = by_name.get(called)
        if called not in by_force or piece is None or piece.motion is None:
            why = "is no drive by force of the joint's own coordinate"
            omissions.append(Omission("drive", f"{own.name} {called}", why))
            continue
        drive, word = read.usd.UsdPhysics.DriveAPI.Get(own.prim, called), piece.motion.word
        unit = np.radians(1.0) if word == "rotation" else read.length
        force = read.mass * read.length ** (2 if word == "rotation" else 1)
        stiffness = float(drive.GetStiffnessAttr().Get() or 0.0) * force / unit
        damping = float(drive.GetDampingAttr().Get() or 0.0) * force / unit
        target = float(drive.GetTargetPositionAttr().Get() or 0.0) * unit
        speed = float(drive.GetTargetVelocityAttr().Get() or 0.0) * unit
        yield (
            piece.motion,
            Dynamics(
                word,
                name=f"{piece.joint.name} drive",
                stiffness=stiffness,
                damping=damping,
                rest=target - piece.here,
                effort=damping * speed,
            ),
        )
        if _is_finite(drive.GetMaxForceAttr().Get()):
            omissions.append(Omission("limit", f"{own.name} {called}", "its force is not limited"))


def _coordinate(sides: tuple[_Side, _Side], motion: _Motion) -> float:
    """The joint's coordinate in the file's configuration."""
    (first, second), axis = sides, motion.axis
    if motion.word == "translation":
        return float(first.axes[:, axis] @ (second.point - first.point))
    relative = first.axes.T @ second.axes
    i, j = (axis + 1) % 3, (axis + 2) % 3
    return float(np.arctan2(relative[j, i] - relative[i, j], relative[i, i] + relative[j, j]))


def _ranges(read: Any, own: _Given, piece: _Piece) -> tuple[CoordinateRange, ...]:
    """The range of a piece's motion; angles of USD are in degrees."""
    motion, prim, physics = piece.motion, own.prim, read.usd.UsdPhysics
    if motion is None:
        return ()
    if prim.IsA(physics.RevoluteJoint) or prim.IsA(physics.PrismaticJoint):
        words = ("lowerLimit", "upperLimit")
        ends = [prim.GetAttribute(f"physics:{word}").Get() for word in words]
        told = tuple(
            _limit_told(own.name, word, end)
            for word, end in zip(words, ends, strict=True)
            if _is_finite(end)
        )
    elif prim.HasAPI(physics.LimitAPI, motion.drive):
        limit = physics.LimitAPI.Get(prim, motion.drive)
        ends = [limit.GetLowAttr().Get(), limit.GetHighAttr().Get()]
        told = (_motion_told(own.name, motion.drive, *ends),)
    else:
        return ()
    unit = float(np.radians(1.0)) if motion.word == "rotation" else read.length
    low, high = (float(x) * unit - piece.here if _is_finite(x) else None for x in ends)
    if low is None and high is None:
        return ()
    # Of PhysX, where it is a spring and not a limit that is kept exactly.
    stiffness = _number(prim, f"physxLimit:{motion.drive}:stiffness")
    stiffness *= read.mass * read.length ** (2 if motion.word == "rotation" else 1) / unit
    return (CoordinateRange(motion.word, low, high, stiffness if stiffness > 0 else None, told),)


def _limit_told(name: str, attribute: str, value: Any) -> Omission:
    """The omission of an end of a range."""
    said = ", ".join(f"{x:g}" for x in np.ravel(value))
    return Omission("limit", name, f"its {attribute} {said} is not kept")


def _limits(read: Any, prim: Any, name: str) -> Iterator[Omission]:
    for attribute in ("lowerLimit", "upperLimit"):
        given = prim.GetAttribute(f"physics:{attribute}")
        if given and _is_finite(value := given.Get()):
            yield _limit_told(name, attribute, value)
    yield from limits_of_motions(read, prim, name)
    broken = read.usd.UsdPhysics.Joint(prim).GetBreakForceAttr().Get()
    for motion in _SIX:
        named = f"limit:{motion.drive}:physics:"
        written = [x for x in ("low", "high") if prim.HasAttribute(f"{named}{x}")]
        if written and not prim.HasAPI(read.usd.UsdPhysics.LimitAPI, motion.drive):
            why = f"does not count, as PhysicsLimitAPI:{motion.drive} is not applied"
            yield Omission("limit", f"{name} {motion.drive}", why)
    if _is_finite(broken):
        yield Omission("limit", name, f"it does not break at {broken:g}")


def _is_finite(value: Any) -> bool:
    """Is there a bound? Infinity means none, and is written as the largest number in single
    precision."""
    return value is not None and bool(np.any(np.abs(value) < np.finfo(np.float32).max))


class Stage(NamedTuple):
    """A stage, and what its numbers are in SI units: metres and kilograms of one of its own.
    `bodies`: the names of links by the paths of prims."""

    stage: Any
    usd: Any
    length: float
    mass: float
    bodies: dict[str, str]

    def frame(self, prim: Any) -> tuple[Vector, Matrix]:
        """Origin (m) and axes of a prim in the world."""
        whole = self.usd.UsdGeom.XformCache().GetLocalToWorldTransform(prim)
        # Rows of Gf are columns here, and a scale is not a rotation.
        if whole.GetDeterminant3() < 0:
            raise ModelError(
                f"{shown(str(prim.GetPath()))} is mirrored (a scale below zero), so that its axes "
                "are no rotation; apply the scale to its shapes."
            )
        axes = np.array(whole.RemoveScaleShear().ExtractRotationMatrix()).T
        return np.array(whole.ExtractTranslation()) * self.length, axes

    def point(self, prim: Any, local: Any) -> Vector:
        """A point of a prim in the world (m)."""
        whole = self.usd.UsdGeom.XformCache().GetLocalToWorldTransform(prim)
        place = whole.Transform(self.usd.Gf.Vec3d(*map(float, local)))
        return np.array(place) * self.length

    def link(self, prim: Any) -> str:
        """The link that a prim is a part of; the ground where it is none of any."""
        while prim and not prim.IsPseudoRoot():
            found = self.bodies.get(str(prim.GetPath()))
            if found is not None:
                return found
            prim = prim.GetParent()
        return GROUND


def read_usd(path: Path, state: State) -> Description:
    """The mechanism of a USD file.

    **Raises:** `ModelError` for a file that is not safe or that USD refuses.
    """
    pxr = optional("pxr", "import")
    for module in ("Gf", "Sdf", "Tf", "Usd", "UsdGeom", "UsdPhysics"):
        optional(f"pxr.{module}", "import")
    try:
        _check_layers(pxr, path, path.parent, state.outside, set())
        stage = pxr.Usd.Stage.Open(str(path))
    except pxr.Tf.ErrorException as error:
        said = shortened(str(error), 200)
        raise ModelError(f"USD refuses {shown(str(path), PATH)}: {said}.") from None
    prims = [prim for prim in _traversed(pxr, stage) if prim.IsActive()]
    bodies = [prim for prim in prims if _is_body(pxr, prim)]
    if not bodies:
        raise ModelError(
            f"{shown(str(path), PATH)} holds no rigid body (no prim with PhysicsRigidBodyAPI that "
            "is enabled)."
        )
    read = Stage(
        stage,
        pxr,
        float(pxr.UsdGeom.GetStageMetersPerUnit(stage)),
        float(pxr.UsdPhysics.GetStageKilogramsPerUnit(stage)),
        _names(bodies),
    )
    links, told = zip(*(_link(read, prim) for prim in bodies), strict=True)
    inertias = [own for each in told for own in each]
    found = joints_of(read, prims, links, state.controls)
    looks, not_shown = looks_of_stage(read, prims, links)
    return Description(
        name=path.stem,
        links=(*links, *found.links),
        joints=found.joints,
        couplings=found.couplings,
        gravity=_gravity(read, prims),
        omissions=(*inertias, *_omissions(pxr, prims), *not_shown, *found.omissions),
        looks=looks,
    )


def _check_layers(pxr: Any, path: Path, folder: Path, outside: bool, seen: set[Path]) -> None:
    """Check every layer of the stage before the stage is composed."""
    if path.resolve() in seen:
        return
    seen.add(path.resolve())
    if not path.is_file():
        raise ModelError(f"cannot read {shown(str(path), PATH)}: no such file.")
    layer = pxr.Sdf.Layer.FindOrOpen(str(path))
    if layer is None:
        raise ModelError(f"{shown(str(path), PATH)} is no USD file.")
    # What a layer takes from itself has no path.
    for named in filter(None, layer.GetCompositionAssetDependencies()):
        said = f"{shown(str(path), PATH)}"
        part = checked_path(named, path.parent, folder, outside, said)
        _check_layers(pxr, part, folder, outside, seen)


def _traversed(pxr: Any, stage: Any) -> Iterator[Any]:
    return iter(pxr.Usd.PrimRange.Stage(stage, pxr.Usd.TraverseInstanceProxies()))


def _is_body(pxr: Any, prim: Any) -> bool:
    """Does it move on its own?"""
    if not prim.HasAPI(pxr.UsdPhysics.RigidBodyAPI):
        return False
    body = pxr.UsdPhysics.RigidBodyAPI(prim)
    held = body.GetKinematicEnabledAttr().Get()
    return bool(body.GetRigidBodyEnabledAttr().Get()) and not held


def _names(prims: list[Any]) -> dict[str, str]:
    """The last words of paths, or the whole ones where these are not different."""
    last = [prim.GetName() for prim in prims]
    return {
        str(prim.GetPath()): name if last.count(name) == 1 else str(prim.GetPath()).strip("/")
        for prim, name in zip(prims, last, strict=True)
    }


def _link(read: Stage, prim: Any) -> tuple[Link, list[Omission]]:
    origin, axes = read.frame(prim)
    own = mass_of(read, prim)
    body = read.usd.UsdPhysics.RigidBodyAPI(prim)
    velocity = np.array(body.GetVelocityAttr().Get() or (0.0, 0.0, 0.0)) * read.length
    turning = np.radians(np.array(body.GetAngularVelocityAttr().Get() or (0.0, 0.0, 0.0)))
    # Both are in the space of the body's own prim, and the first is that of the centre of mass.
    velocity, turning = axes @ velocity, axes @ turning
    at_origin = velocity + np.cross(turning, origin - own.center)
    name = read.bodies[str(prim.GetPath())]
    mass = own.mass, own.center, own.inertia
    link = Link(
        name,
        origin,
        axes,
        *mass,
        at_origin,
        turning,
        own.stated,
        own.derived,
        unknown=own.unknown,
    )
    told = [Omission("inertia", name, own.derived_inertia)] if own.derived_inertia else []
    return link, told


def _gravity(read: Stage, prims: list[Any]) -> Vector:
    """Gravity of the first scene; without a scene, or where it is not given, 9.81 m/s^2
    downwards."""
    up = 2 if read.usd.UsdGeom.GetStageUpAxis(read.stage) == read.usd.UsdGeom.Tokens.z else 1
    direction, size = -np.eye(3)[up], 9.81
    for prim in prims:
        if prim.IsA(read.usd.UsdPhysics.Scene):
            scene = read.usd.UsdPhysics.Scene(prim)
            given = np.array(scene.GetGravityDirectionAttr().Get(), float)
            if np.any(given):
                direction = given / np.linalg.norm(given)
            magnitude = float(scene.GetGravityMagnitudeAttr().Get())
            # Minus infinity denotes that of the Earth.
            size = magnitude * read.length if np.isfinite(magnitude) and magnitude >= 0 else 9.81
            break
    return direction * size


def _omissions(pxr: Any, prims: list[Any]) -> Iterator[Omission]:
    physics, geometry = pxr.UsdPhysics, pxr.UsdGeom
    for prim in prims:
        name = prim.GetName()
        if prim.HasAPI(physics.RigidBodyAPI) and not _is_body(pxr, prim):
            yield Omission("body", name, "is kinematic or not enabled; it is part of the ground")
        if prim.HasAPI(physics.CollisionAPI):
            yield Omission("collision", name, "there is no contact")
        if prim.IsA(geometry.Camera):
            yield Omission("camera", name, "pictures are not carried")
