"""Joints of SDF."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple
from xml.etree.ElementTree import Element

import numpy as np

from ..._checks import listed, shown
from ..._errors import ModelError
from ._description import (
    CoordinateCoupling,
    Dynamics,
    GROUND,
    Joint,
    JointCoordinate,
    Link,
    Omission,
    Vector,
)
from ._geometry import rotation_vector
from ._sdf_frames import Frames, MODEL, number, numbers


# Frames, and axes at a right angle, that are as a file says differ by no more (m or rad).
_ELSEWHERE = 1e-6


class JointParts(NamedTuple):
    """The parts that one joint of a file becomes."""

    links: tuple[Link, ...] = ()
    joints: tuple[Joint, ...] = ()
    couplings: tuple[CoordinateCoupling, ...] = ()
    omissions: tuple[Omission, ...] = ()


class _Given(NamedTuple):
    """A joint of a file: its element, its scoped name and links, its point in the world, and how
    messages call it."""

    element: Element
    name: str
    parent: str
    child: str
    point: Vector
    frames: Frames
    prefix: str
    said: str
    version: tuple[int, ...]

    @property
    def points(self) -> np.ndarray:
        """The joint's points on both links."""
        return np.stack([self.point, self.point])


def joint_parts(
    joint: Element, frames: Frames, prefix: str, said: str, version: tuple[int, ...]
) -> JointParts:
    """The parts of one joint of a model.

    **Raises:** `ModelError` for an unknown type, a link that is not there, or a wrong number.
    """
    name, kind = joint.get("name", ""), joint.get("type", "")
    said = f"{said}, joint {shown(name)}"
    if kind not in _KINDS:
        raise ModelError(f"{said}: type {shown(kind)} is unknown; there are {listed(_KINDS)}.")
    ends = []
    for tag in ("parent", "child"):
        link = frames.link((joint.findtext(tag) or "").strip())
        ends.append(link if link == GROUND else prefix + link)
    if ends[0] == ends[1]:
        raise ModelError(f"{said} joins {shown(ends[0])} with itself.")
    point = frames.pose(name).origin
    given = _Given(joint, prefix + name, ends[0], ends[1], point, frames, prefix, said, version)
    found = _KINDS[kind](given)
    omissions = (*found.omissions, *_elsewhere(given), *_omissions(given))
    return found._replace(omissions=omissions)


def _elsewhere(given: _Given) -> Iterator[Omission]:
    """A joint has one frame, by which the child is held. One of the parent that it names lies there
    too, if it is meant as the other half of the joint."""
    parent = (given.element.findtext("parent") or "").strip()
    if given.frames.is_link(parent):
        return
    own, other = given.frames.pose(given.element.get("name", "")), given.frames.pose(parent)
    away = own.origin - other.origin
    distance, turn = float(np.linalg.norm(away)), _angle(other.axes.T @ own.axes)
    if max(distance, turn) > _ELSEWHERE:
        why = (
            f"its frame, which the child has, lies {distance:.6g} m away from the parent's frame "
            f"{parent!r} ({', '.join(f'{x:.6g}' for x in away)}) and is turned against it by "
            f"{turn:.6g} rad; the joint is where its own frame is"
        )
        yield Omission("joint", given.name, why)


def _angle(turn: np.ndarray) -> float:
    return float(np.linalg.norm(rotation_vector(turn)))


def _axis(given: _Given, tag: str) -> Vector:
    """A direction in the world."""
    element = given.element.find(tag)
    xyz = None if element is None else element.find("xyz")
    direction = np.array([0.0, 0.0, 1.0])
    if xyz is not None:
        direction = numbers(xyz.text, 3, f"{given.said}, <xyz> of <{tag}>,")
    if not np.any(direction):
        raise ModelError(f"{given.said}: <xyz> of <{tag}> has zero length.")
    frame = given.element.get("name", "")
    if xyz is not None and xyz.get("expressed_in"):
        frame = xyz.get("expressed_in", "")
    in_model = None if element is None else element.findtext("use_parent_model_frame")
    # Until version 1.4 all axes were those of the model.
    if given.version < (1, 5) or (in_model or "").strip().lower() in ("true", "1"):
        frame = MODEL
    return given.frames.pose(frame).axes @ direction


def _dynamics(given: _Given, tag: str, word: str) -> Dynamics:
    element = given.element.find(f"{tag}/dynamics")
    if element is None:
        return Dynamics(word)
    said = f"{given.said}, <dynamics>"
    return Dynamics(
        word,
        stiffness=number(element, "spring_stiffness", 0.0, said),
        damping=number(element, "damping", 0.0, said),
        rest=number(element, "spring_reference", 0.0, said),
    )


def _of_one_axis(kind: str, word: str) -> Callable[[_Given], JointParts]:
    def made(given: _Given) -> JointParts:
        axis, own = _axis(given, "axis"), _dynamics(given, "axis", word)
        ends = given.parent, given.child
        return JointParts(
            joints=(Joint(given.name, kind, *ends, given.points, (axis,), dynamics=(own,)),)
        )

    return made


def _fixed(given: _Given) -> JointParts:
    ends = given.parent, given.child
    return JointParts(joints=(Joint(given.name, "fixed", *ends, given.points, welds=True),))


def _ball(given: _Given) -> JointParts:
    """Springs and dampers of an axis are not those of a ball, which has none."""
    left = [own for own in given.element.iter("dynamics") if len(own)]
    why = "a ball has no axis, so that its dynamics are not carried"
    return JointParts(
        joints=(Joint(given.name, "spherical", given.parent, given.child, given.points),),
        omissions=tuple(Omission("dynamics", given.name, why) for _ in left),
    )


def _two_hinges(given: _Given) -> JointParts:
    """About two axes, with a link without mass between them, so that each keeps its dynamics."""
    cross = f"{given.name} cross"
    none = np.zeros(3)
    link = Link(
        cross, given.point, np.eye(3), None, given.point, np.zeros((3, 3)), none, none, between=True
    )
    axes = [_axis(given, "axis"), _axis(given, "axis2")]
    chain = (given.parent, cross, given.child)
    joints = []
    for k, tag in enumerate(("axis", "axis2")):
        own = _dynamics(given, tag, "rotation")
        name = f"{given.name} {tag}"
        ends = chain[k], chain[k + 1]
        joint = Joint(name, "revolute", *ends, given.points, (axes[k],), dynamics=(own,))
        joints.append(joint)
    off = np.pi / 2 - _between(*axes)
    omissions = ()
    if given.element.get("type") == "universal" and abs(off) > _ELSEWHERE:
        why = f"its two axes are {abs(off):.6g} rad off a right angle, and are kept so"
        omissions = (Omission("joint", given.name, why),)
    return JointParts(links=(link,), joints=tuple(joints), omissions=omissions)


def _between(first: Vector, second: Vector) -> float:
    return float(np.arctan2(np.linalg.norm(np.cross(first, second)), first @ second))


def _screw(given: _Given) -> JointParts:
    """The pitch is metres in a turn, or, by its older name, radians over metres and left-handed."""
    element, said = given.element, given.said
    pitch = number(element, "screw_thread_pitch", 0.0, said)
    if not pitch:
        old = number(element, "thread_pitch", 0.0, said)
        if not old:
            raise ModelError(f"{said} has no <screw_thread_pitch> (m per turn).")
        pitch = -2 * np.pi / old
    axis = (_axis(given, "axis"),)
    ends = given.parent, given.child
    return JointParts(joints=(Joint(given.name, "screw", *ends, given.points, axis, float(pitch)),))


def _gearbox(given: _Given) -> JointParts:
    """theta_2 = -ratio theta_1, with the angles of parent and child against a third link."""
    reference = (given.element.findtext("gearbox_reference_body") or "").strip()
    link = given.frames.link(reference)
    carrier = link if link == GROUND else given.prefix + link
    ratio = number(given.element, "gearbox_ratio", 1.0, given.said)
    first, second = (
        JointCoordinate("rotation", carrier, own, given.point, _axis(given, tag))
        for own, tag in ((given.parent, "axis"), (given.child, "axis2"))
    )
    return JointParts(couplings=(CoordinateCoupling(given.name, second, first, (0.0, -ratio)),))


_KINDS: Mapping[str, Callable[[_Given], JointParts]] = MappingProxyType(
    {
        "revolute": _of_one_axis("revolute", "rotation"),
        "continuous": _of_one_axis("revolute", "rotation"),
        "prismatic": _of_one_axis("translational", "translation"),
        "ball": _ball,
        "fixed": _fixed,
        "universal": _two_hinges,
        "revolute2": _two_hinges,
        "screw": _screw,
        "gearbox": _gearbox,
    }
)


def _omissions(given: _Given) -> Iterator[Omission]:
    for tag in ("axis", "axis2"):
        limit = given.element.find(f"{tag}/limit")
        if limit is not None:
            ends = [(limit.findtext(end) or "").strip() for end in ("lower", "upper")]
            why = f"its range {ends[0] or '-inf'} to {ends[1] or 'inf'} is not kept"
            yield Omission("limit", given.name, why)
        if given.element.find(f"{tag}/initial_position") is not None:
            why = "the model starts from the poses of the links"
            yield Omission("initial_position", given.name, why)
        dynamics = given.element.find(f"{tag}/dynamics")
        if dynamics is not None and number(dynamics, "friction", 0.0, given.said):
            yield Omission("friction", given.name, "dry friction is not carried")
    for child in given.element:
        if child.tag in ("sensor", "physics", "plugin"):
            name = child.get("name") or f"{child.tag} of {given.name}"
            yield Omission(child.tag, name, "is not carried")


def mimics(
    model: Element, joints: Sequence[Joint], prefix: str, said: str
) -> Iterator[CoordinateCoupling]:
    """Joints that follow others: position = multiplier (position of the other - reference) +
    offset."""
    known = {joint.name: joint for joint in joints}
    for joint in model.findall("joint"):
        follower = prefix + joint.get("name", "")
        mimic = joint.find("axis/mimic")
        if mimic is None:
            continue
        leader = prefix + mimic.get("joint", "")
        said_mimic = f"{said}, joint {shown(follower)}, <mimic>,"
        first = _coordinate(known, follower, said_mimic)
        second = _coordinate(known, leader, said_mimic)
        values = [
            number(mimic, tag, one, said)
            for tag, one in (("multiplier", 1.0), ("offset", 0.0), ("reference", 0.0))
        ]
        multiplier, offset, reference = values
        coefficients = (offset - multiplier * reference, multiplier)
        yield CoordinateCoupling(f"{follower} mimic", first, second, coefficients)


def _coordinate(known: Mapping[str, Joint], name: str, said: str) -> JointCoordinate:
    joint = known.get(name)
    words = {"revolute": "rotation", "translational": "translation"}
    if joint is None or joint.kind not in words:
        raise ModelError(f"{said} names {shown(name)}, which is no joint of one axis.")
    word = words[joint.kind]
    return JointCoordinate(word, joint.parent, joint.child, joint.points[1], joint.axes[0])
