"""Joints of USD physics, and the drives in them."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ._description import CoordinateCoupling, Dynamics, GROUND, Joint, Omission, Vector
from ._geometry import matrix_of_quaternion, rotation_vector
from ._usd_schemas import applied_schemas, Coordinate, extensions_of, limits_of_motions, TYPES


class UsdJoints(NamedTuple):
    """Joints, and what of them is not carried."""

    joints: tuple[Joint, ...]
    couplings: tuple[CoordinateCoupling, ...]
    omissions: tuple[Omission, ...]


class _Side(NamedTuple):
    """A joint's frame on one of its bodies, in the world."""

    link: str
    point: Vector
    axes: np.ndarray


def joints_of(read: Any, prims: Sequence[Any], controls: Mapping[str, float]) -> UsdJoints:
    """Of all joints of a stage, with what acts in them and couples them.

    **Raises:** `ModelError`, as `extensions_of`.
    """
    known: dict[str, Coordinate] = {}
    joints: list[Joint] = []
    omissions: list[Omission] = []
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
        first, second = _side(read, joint, 0), _side(read, joint, 1)
        kind, axis = _kind(read, prim)
        if kind is None or first.link == second.link:
            why = "is of a kind that is not carried" if kind is None else "holds one link alone"
            omissions.append(Omission("joint", name, why))
            continue
        drives = tuple(_drives(read, prim, name, kind, (first, second), axis, omissions))
        points = np.stack([first.point, second.point])
        axes = () if axis is None else (first.axes[:, axis],)
        ends = first.link, second.link
        welds = kind == "fixed"
        own = Joint(
            name,
            kind,
            *ends,
            points,
            axes,
            welds=welds,
            dynamics=drives,
            child_axes=() if axis is None else (second.axes[:, axis],),
            turned=_turned(first, second) if welds else 0.0,
        )
        joints.append(own)
        omissions.extend(_limits(read, prim, name))
        word = _WORDS.get(kind, ("", ""))[1]
        if word and axis is not None:
            unit = np.radians(1.0) if word == "rotation" else read.length
            here, path = _coordinate((first, second), axis, word), str(prim.GetPath())
            known[path] = Coordinate(path, own, word, here, unit)
    found = extensions_of(read, prims, known, controls)
    acting = tuple(
        own._replace(dynamics=(*own.dynamics, *found.in_joints.get(own.name, ()))) for own in joints
    )
    return UsdJoints(acting, found.couplings, (*omissions, *found.omissions))


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


def _kind(read: Any, prim: Any) -> tuple[str | None, int | None]:
    """The word of model files, and which axis of the joint's frames it has."""
    physics = read.usd.UsdPhysics
    for cls, kind in (
        (physics.RevoluteJoint, "revolute"),
        (physics.PrismaticJoint, "translational"),
    ):
        if prim.IsA(cls):
            return kind, "XYZ".index(str(cls(prim).GetAxisAttr().Get()))
    if prim.IsA(physics.SphericalJoint):
        return "spherical", None
    if prim.IsA(physics.FixedJoint):
        return "fixed", None
    return _of_free_motions(read, prim)


def _of_free_motions(read: Any, prim: Any) -> tuple[str | None, int | None]:
    """Of a joint in general, whose motions are free but for those that limits lock: low > high."""
    locked = {}
    for word in ("transX", "transY", "transZ", "rotX", "rotY", "rotZ"):
        limit = read.usd.UsdPhysics.LimitAPI.Get(prim, word)
        has = prim.HasAPI(read.usd.UsdPhysics.LimitAPI, word)
        locked[word] = has and limit.GetLowAttr().Get() > limit.GetHighAttr().Get()
    free = [word for word, is_locked in locked.items() if not is_locked]
    if prim.GetTypeName() != "PhysicsJoint":
        return None, None
    if not free:
        return "fixed", None
    if free == ["rotX", "rotY", "rotZ"]:
        return "spherical", None
    if len(free) == 1:
        kind = "revolute" if free[0].startswith("rot") else "translational"
        return kind, "XYZ".index(free[0][-1])
    return None, None


_WORDS = {"revolute": ("angular", "rotation"), "translational": ("linear", "translation")}


def _drives(
    read: Any,
    prim: Any,
    name: str,
    kind: str,
    sides: tuple[_Side, _Side],
    axis: int | None,
    omissions: list[Omission],
) -> Iterator[Dynamics]:
    """Springs and dampers towards a target; angles of USD are in degrees."""
    known, word = _WORDS.get(kind, ("", ""))
    for schema in applied_schemas(prim):
        if not schema.startswith("PhysicsDriveAPI:"):
            continue
        called = schema.partition(":")[2]
        drive = read.usd.UsdPhysics.DriveAPI.Get(prim, called)
        if called != known or str(drive.GetTypeAttr().Get()) != "force" or axis is None:
            why = "is no drive by force of the joint's own coordinate"
            omissions.append(Omission("drive", f"{name} {called}", why))
            continue
        unit = np.radians(1.0) if word == "rotation" else read.length
        force = read.mass * read.length ** (2 if word == "rotation" else 1)
        stiffness = float(drive.GetStiffnessAttr().Get() or 0.0) * force / unit
        damping = float(drive.GetDampingAttr().Get() or 0.0) * force / unit
        target = float(drive.GetTargetPositionAttr().Get() or 0.0) * unit
        speed = float(drive.GetTargetVelocityAttr().Get() or 0.0) * unit
        here = _coordinate(sides, axis, word)
        yield Dynamics(
            word,
            name=f"{name} drive",
            stiffness=stiffness,
            damping=damping,
            rest=target - here,
            effort=damping * speed,
        )
        if np.isfinite(float(drive.GetMaxForceAttr().Get())):
            omissions.append(Omission("limit", f"{name} {called}", "its force is not limited"))


def _coordinate(sides: tuple[_Side, _Side], axis: int, word: str) -> float:
    """Of the joint in the file's configuration."""
    first, second = sides
    if word == "translation":
        return float(first.axes[:, axis] @ (second.point - first.point))
    relative = first.axes.T @ second.axes
    i, j = (axis + 1) % 3, (axis + 2) % 3
    return float(np.arctan2(relative[j, i] - relative[i, j], relative[i, i] + relative[j, j]))


def _limits(read: Any, prim: Any, name: str) -> Iterator[Omission]:
    for attribute in ("lowerLimit", "upperLimit"):
        given = prim.GetAttribute(f"physics:{attribute}")
        if given and given.Get() is not None and np.isfinite(given.Get()):
            yield Omission("limit", name, f"its {attribute} {given.Get():g} is not kept")
    yield from limits_of_motions(read, prim, name)
    broken = read.usd.UsdPhysics.Joint(prim).GetBreakForceAttr().Get()
    if broken is not None and np.isfinite(broken):
        yield Omission("limit", name, f"it does not break at {broken:g}")
