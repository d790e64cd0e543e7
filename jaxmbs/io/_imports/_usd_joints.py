"""Joints of USD physics, and the drives in them."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ._description import (
    CoordinateCoupling,
    Dynamics,
    GROUND,
    Joint,
    Link,
    Omission,
    Vector,
)
from ._geometry import matrix_of_quaternion, rotation_vector
from ._usd_schemas import applied_schemas, Coordinate, extensions_of, limits_of_motions, TYPES


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
            joints.append(piece.joint._replace(dynamics=acting))
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


def _limits(read: Any, prim: Any, name: str) -> Iterator[Omission]:
    for attribute in ("lowerLimit", "upperLimit"):
        given = prim.GetAttribute(f"physics:{attribute}")
        if given and _is_finite(value := given.Get()):
            said = ", ".join(f"{x:g}" for x in np.ravel(value))
            yield Omission("limit", name, f"its {attribute} {said} is not kept")
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
