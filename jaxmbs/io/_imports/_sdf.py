"""SDFormat (`.sdf`, `.world`), whose links may have several parents: closed loops.

It is read here, from the XML alone. Its own library, libsdformat, is on the package index only
as bindings of single versions of Python or of the library, built by others than its authors, and
together with half of Gazebo; packages that are pure Python stop at versions before frames (1.7).
What a mechanism needs of the format is small: frames, links, joints.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple
from xml.etree.ElementTree import Element, SubElement

import numpy as np

from ..._checks import listed, PATH, shown
from ..._errors import ModelError
from ._description import (
    CoordinateCoupling,
    CoordinateRange,
    Description,
    Dynamics,
    GROUND,
    Joint,
    JointCoordinate,
    Link,
    Look,
    Matrix,
    matrix_of_angles,
    matrix_of_quaternion,
    moved_inertia,
    Omission,
    rotation_vector,
    round_moments,
    Slip,
    State,
    Vector,
    Wrench,
)
from ._looks import colour_of_sdf, geometry_of_sdf, visuals_of_link
from ._masses import slip_of, URDF_ORDER
from ._xml import checked_path, read_xml


# --------------------------------------------------------------------------------------------------
# Poses of a model in SDF: a graph of named frames, each given in another.
# --------------------------------------------------------------------------------------------------


MODEL = "__model__"
WORLD = "world"
# Behind the name of a nested model: where its pose puts it, by whichever frame of it.
PLACED = "__placed__"


class Pose(NamedTuple):
    """Origin and axes of a frame in another one."""

    origin: Vector
    axes: Matrix

    def after(self, outer: "Pose") -> "Pose":
        """The same frame relative to the frame in which `outer` is given."""
        return Pose(outer.origin + outer.axes @ self.origin, outer.axes @ self.axes)

    def inverse(self) -> "Pose":
        """The outer frame as seen from this one."""
        return Pose(-self.axes.T @ self.origin, self.axes.T)


IDENTITY = Pose(np.zeros(3), np.eye(3))


def numbers(text: str | None, count: int, said: str) -> np.ndarray:
    """The given count of finite numbers.

    **Raises:** `ModelError` for another text.
    """
    try:
        found = np.array([float(word) for word in (text or "").split()])
    except ValueError:
        found = np.zeros(0)
    if found.shape != (count,) or not np.all(np.isfinite(found)):
        raise ModelError(f"{said} must be {count} finite numbers, got {shown(text)}.")
    return found


def number(element: Element, tag: str, default: float, said: str) -> float:
    """The number in an element's child, or its default."""
    child = element.find(tag)
    if child is None:
        return default
    return float(numbers(child.text, 1, f"{said}, <{tag}>,")[0])


def pose_of(element: Element | None, said: str) -> Pose:
    """The pose that a `<pose>` states, in whichever frame."""
    if element is None or not (element.text or "").strip():
        return IDENTITY
    said = f"{said}, <pose>,"
    if element.get("rotation_format") == "quat_xyzw":
        found = numbers(element.text, 7, said)
        if not np.any(found[3:]):
            raise ModelError(f"{said} holds a quaternion of zeros.")
        return Pose(found[:3], matrix_of_quaternion(found[[6, 3, 4, 5]]))
    found = numbers(element.text, 6, said)
    degrees = element.get("degrees", "").lower() in ("true", "1")
    angles = np.radians(found[3:]) if degrees else found[3:]
    return Pose(found[:3], matrix_of_angles(angles))


class Frames:
    """The named frames of a model: links, joints and frames."""

    def __init__(self, model: Element, said: str, placed: Pose):
        self._said = said
        # Of each frame the one in which it is given by default, and its element.
        self._given: dict[str, tuple[str, Element]] = {}
        self._links = {link.get("name", "") for link in model.findall("link")}
        for link in model.findall("link"):
            self._add(link, MODEL)
        for nested in model.findall("model"):
            name = nested.get("name") or "model"
            if f"{name}::{PLACED}" in self._given:
                raise ModelError(f"{said}: two models are called {shown(name)}; rename one.")
            self._given[f"{name}::{PLACED}"] = (MODEL, nested)
            if not nested.get("placement_frame"):
                self._given[name] = (MODEL, nested)
        for frame in model.findall("frame"):
            self._add(frame, frame.get("attached_to") or MODEL)
        for joint in model.findall("joint"):
            self._add(joint, (joint.findtext("child") or "").strip())
        self._attached = {
            frame.get("name", ""): frame.get("attached_to") or self._first(model)
            for frame in model.findall("frame")
        } | {
            joint.get("name", ""): (joint.findtext("child") or "").strip()
            for joint in model.findall("joint")
        }
        self._poses: dict[str, Pose] = {MODEL: placed, "": placed, WORLD: IDENTITY}
        placement = model.get("placement_frame")
        if placement:
            inner = self.pose(placement).after(placed.inverse())
            self._poses = {MODEL: inner.inverse().after(placed), WORLD: IDENTITY}
            self._poses[""] = self._poses[MODEL]

    def pose(self, name: str, above: tuple[str, ...] = ()) -> Pose:
        """The pose of a frame in the world.

        **Raises:** `ModelError` for one that is not there, and for a ring of frames.
        """
        if name in self._poses:
            return self._poses[name]
        if name not in self._given:
            raise ModelError(f"{self._said}: there is no link, joint or frame {shown(name)}.")
        if name in above:
            raise ModelError(f"{self._said}: frame {shown(name)} is given in itself.")
        default, element = self._given[name]
        pose = element.find("pose")
        attributes: Mapping[str, str] = {} if pose is None else pose.attrib
        # Before version 1.7 the attribute was called `frame`.
        outer = attributes.get("relative_to") or attributes.get("frame") or default
        own = pose_of(pose, f"{self._said}, {element.tag} {shown(name)}")
        self._poses[name] = own.after(self.pose(outer, (*above, name)))
        return self._poses[name]

    def is_link(self, name: str) -> bool:
        """Is it a link or the world, not a frame?"""
        return name == WORLD or name in self._links

    def link(self, name: str) -> str:
        """The link, or the ground, to which a frame is attached.

        **Raises:** `ModelError` for one that is not there.
        """
        seen: set[str] = set()
        while name not in self._links:
            if name == WORLD:
                return GROUND
            if name not in self._attached or name in seen:
                raise ModelError(f"{self._said}: there is no link {shown(name)}.")
            seen.add(name)
            name = self._attached[name]
        return name

    def _add(self, element: Element, default: str) -> None:
        name = element.get("name", "")
        if not name:
            raise ModelError(f"{self._said}: a <{element.tag}> has no name.")
        if name in self._given:
            raise ModelError(f"{self._said}: the name {shown(name)} is used twice.")
        self._given[name] = (default, element)

    @staticmethod
    def _first(model: Element) -> str:
        """The link to which the model's own frame is attached."""
        link = model.find("link")
        return model.get("canonical_link") or (link.get("name", "") if link is not None else "")


# --------------------------------------------------------------------------------------------------
# Files that an SDF file includes: their models replace the `<include>` elements.
# --------------------------------------------------------------------------------------------------


# Of a model from another file: the version of that.
VERSION = "version of its file"

# Elements that an <include> may override.
_SAID = ("static", "pose")


def root_of(path: Path) -> tuple[Element, tuple[int, ...], list[Omission]]:
    """The root of an SDF file, the version of the format, and the omissions of the file.

    **Raises:** `ModelError` for another file.
    """
    root, loose = read_xml(path)
    if root.tag != "sdf":
        raise ModelError(f"{shown(str(path), PATH)} is no SDF file: its root element is not <sdf>.")
    given = root.get("version", "1.0")
    why = f"is no well-formed XML ({loose}); it was read as Gazebo's parser reads it"
    told = [Omission("file", path.name, why)] if loose else []
    try:
        return root, version_of(given, ()), told
    except ValueError:
        raise ModelError(f"{shown(str(path), PATH)}: version {shown(given)} is none.") from None


def version_of(text: str | None, default: tuple[int, ...]) -> tuple[int, ...]:
    """Its numbers."""
    return default if text is None else tuple(int(word) for word in text.split("."))


def with_includes(holder: Element, path: Path, outside: bool) -> list[Omission]:
    """Replace each `<include>` below a world or a model by the models of its file; returns their
    omissions.

    **Raises:** `ModelError` for a file that may not be read or is none.
    """
    told: list[Omission] = []
    _include(holder, path, _Reading(path.parent, outside, told), (path.resolve(),))
    return told


class _Reading(NamedTuple):
    """The folder of the first file, whether files outside of it may be read, and the omissions."""

    folder: Path
    outside: bool
    told: list[Omission]


# Models of Gazebo's library that worlds include by address, and that hold nothing that moves.
_STILL = ("sun", "ground_plane", "ground plane")


def _include(holder: Element, path: Path, reading: _Reading, above: tuple[Path, ...]) -> None:
    for model in holder.findall("model"):
        _include(model, path, reading, above)
    for include in holder.findall("include"):
        holder.remove(include)
        holder.extend(_models(include, path, reading, above))


def _models(
    include: Element, path: Path, reading: _Reading, above: tuple[Path, ...]
) -> list[Element]:
    """The models of another file, with the pose and name given here."""
    named = (include.findtext("uri") or "").strip()
    said = f"<include> in {shown(str(path), PATH)}"
    if (include.get("merge") or "").strip().lower() in ("true", "1"):
        raise ModelError(
            f"{said} merges {shown(named, PATH)} (merge='true'), which is not read; write its "
            "links and joints into the model, or leave the attribute out."
        )
    file = named.removeprefix("model://")
    beside = path.parent / file
    is_folder = "://" not in file and beside.is_dir()
    if (named != file and not is_folder) or "://" in file:
        if file.rstrip("/").rpartition("/")[2].lower() in _STILL:
            why = (
                "is not fetched; by its name it is a part of a scene, and holds nothing that moves"
            )
            reading.told.append(Omission("include", named, why))
            return []
        file = named
    file = f"{file}/model.sdf" if is_folder else file
    part = checked_path(file, path.parent, reading.folder, reading.outside, said)
    if part in above:
        raise ModelError(f"{shown(str(part), PATH)} includes itself.")
    root, _, told = root_of(part)
    reading.told.extend(told)
    models = root.findall("model")
    if not models:
        kinds = ", ".join(f"<{child.tag}>" for child in root) or "nothing"
        why = f"holds no <model> but {kinds}, and nothing that moves"
        reading.told.append(Omission("include", named, why))
    for model in models:
        _include(model, part, reading, (*above, part))
        model.set(VERSION, root.get("version", "1.0"))
        if include.find("name") is not None:
            model.set("name", (include.findtext("name") or "").strip())
        if include.find("placement_frame") is not None:
            model.set("placement_frame", (include.findtext("placement_frame") or "").strip())
        for tag in _SAID:
            given = include.find(tag)
            if given is not None:
                for old in model.findall(tag):
                    model.remove(old)
                model.append(given)
        # One without a pose of its own stays at the origin.
        if include.find("placement_frame") is not None and include.find("pose") is None:
            for old in model.findall("pose"):
                model.remove(old)
            SubElement(model, "pose")
    return models


# --------------------------------------------------------------------------------------------------
# Masses and inertias of links in SDF.
# --------------------------------------------------------------------------------------------------


class Inertial(NamedTuple):
    """Mass (kg), centre and the inertia about it in the axes of the link; the mass that the file
    gives in numbers, and where mass and inertia are from if not from there."""

    mass: float
    center: Vector
    inertia: Matrix
    stated: float | None
    derived: str = ""
    derived_inertia: str = ""
    slip: Slip | None = None


_DEFAULT = "the format's default of 1 kg, as the file gives none"
_FROM_SHAPES = (
    "from collision shapes, as the file says so (auto; 1000 kg/m3 unless a density is given)"
)
_IDENTITY = "is that of the format where a file gives none, 1 kg m2 about every axis"

# Water (kg/m3).
_DENSITY = 1000.0


def inertial_of(link: Element, frames: Frames, pose: Pose, said: str) -> Inertial:
    """The inertial data of a link by the rules of the format.

    **Raises:** `ModelError` for a number that is none, and for shapes that are not read.
    """
    own = link.find("inertial")
    if own is None:
        return Inertial(1.0, np.zeros(3), np.eye(3), None, _DEFAULT, _IDENTITY)
    mass = None
    if own.find("mass") is not None:
        mass = float(numbers(own.findtext("mass"), 1, f"{said}, <mass>,")[0])
    if own.get("auto", "").strip().lower() in ("true", "1"):
        return _of_shapes(link, own, frames, pose, mass, said)
    place = pose_of(own.find("pose"), f"{said}, inertial")
    matrix, assumed = _matrix(own.find("inertia"), said)
    kilograms = 1.0 if mass is None else mass
    slip = slip_of(kilograms, matrix, URDF_ORDER)
    turned = place.axes @ (matrix if slip is None else slip.inertia) @ place.axes.T
    derived = _DEFAULT if mass is None else ""
    return Inertial(kilograms, place.origin, turned, mass, derived, assumed, slip)


def _matrix(given: Element | None, said: str) -> tuple[Matrix, str]:
    """The inertia that is written, and which moments are not but are the format's."""
    if given is None:
        return np.eye(3), _IDENTITY
    matrix, left = np.eye(3), []
    for tag in ("ixx", "ixy", "ixz", "iyy", "iyz", "izz"):
        i, j = "xyz".index(tag[1]), "xyz".index(tag[2])
        if given.find(tag) is not None:
            value = float(numbers(given.findtext(tag), 1, f"{said}, <{tag}>,")[0])
            matrix[i, j] = matrix[j, i] = value
        elif i == j:
            left.append(tag)
    default = f"has, for want of {' and '.join(left)}, the format's default of 1 kg m2 there"
    return matrix, default if left else ""


class _Part(NamedTuple):
    """A shape: its mass (kg), its centre and its inertia about it, in the axes of the link."""

    mass: float
    center: Vector
    inertia: Matrix


def _of_shapes(
    link: Element, own: Element, frames: Frames, pose: Pose, mass: float | None, said: str
) -> Inertial:
    """The inertia of all collision shapes of a link; a given mass scales them."""
    # libsdformat from 15.2 on; until then the mass was ignored ("Migration guide", 15.1.1 to
    # 15.2.0, https://github.com/gazebosim/sdformat/pull/1528; its pull request 1513). The density
    # of a collision goes before that of <inertial> (specification 1.11, inertial.sdf; pull request
    # 1299), and <pose> and <inertia> of the link do not count ("Automatic Inertia Calculation",
    # https://gazebosim.org/api/sim/9/auto_inertia_calculation.html).
    density = number(own, "density", _DENSITY, said)
    parts = [
        _part(collision, density, frames, pose, said)
        for collision in link.findall("collision")
        if collision.find("geometry/empty") is None
    ]
    total = sum(part.mass for part in parts)
    if not total > 0:
        raise ModelError(
            f"{said} asks for its inertia from its shapes (auto) and has no collision shape with a "
            "volume; write mass and inertia out."
        )
    center = sum((part.mass * part.center for part in parts), np.zeros(3)) / total
    inertia = np.zeros((3, 3))
    for part in parts:
        inertia = inertia + moved_inertia(part.inertia, part.mass, part.center - center)
    if mass is None:
        return Inertial(float(total), center, inertia, None, _FROM_SHAPES)
    why = (
        "follows from its collision shapes and its mass (auto), as libsdformat 15.2 and later have "
        f"it; earlier ones ignore the mass and take that of the shapes, {total:.6g} kg"
    )
    return Inertial(mass, center, inertia * (mass / total), mass, "", why)


def _part(collision: Element, density: float, frames: Frames, pose: Pose, said: str) -> _Part:
    said = f"{said}, collision {collision.get('name', '')!r}"
    density = number(collision, "density", density, said)
    volume, moments = _moments(collision.find("geometry"), said)
    given = collision.find("pose")
    place = pose_of(given, said)
    outer = "" if given is None else given.get("relative_to") or given.get("frame") or ""
    if outer:
        place = place.after(frames.pose(outer)).after(pose.inverse())
    mass = density * volume
    return _Part(mass, place.origin, place.axes @ np.diag(mass * moments) @ place.axes.T)


def _moments(geometry: Element | None, said: str) -> tuple[float, np.ndarray]:
    """Volume, and moments of inertia for a mass of one."""
    shape = next(iter(geometry if geometry is not None else ()), None)
    tag = "" if shape is None else shape.tag
    if shape is not None and tag == "box":
        sides = numbers(shape.findtext("size"), 3, f"{said}, <size>,") ** 2
        return float(np.sqrt(np.prod(sides))), (sides.sum() - sides) / 12
    if shape is not None and tag in ("sphere", "ellipsoid"):
        if tag == "sphere":
            radii = np.full(3, number(shape, "radius", 1.0, said))
        else:
            radii = numbers(shape.findtext("radii"), 3, f"{said}, <radii>,")
        squares = radii**2
        return float(4 / 3 * np.pi * np.prod(radii)), (squares.sum() - squares) / 5
    if shape is not None and tag in ("cylinder", "capsule"):
        radius = number(shape, "radius", 0.5 if tag == "capsule" else 1.0, said)
        length = number(shape, "length", 1.0, said)
        return round_moments(radius, length, 2, ends=tag == "capsule")
    raise ModelError(
        f"{said} gives its link an inertia (auto) and is no box, sphere, ellipsoid, cylinder or "
        "capsule; write mass and inertia out, as other shapes are not read."
    )


# --------------------------------------------------------------------------------------------------
# Joints of SDF.
# --------------------------------------------------------------------------------------------------


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
        friction=number(element, "friction", 0.0, said),
    )


# The format's own number for no bound (rad or m).
_UNBOUNDED = 1e16


def _ranges(given: _Given, tag: str, word: str) -> tuple[CoordinateRange, ...]:
    """The range about or along an axis; its stiffness, where the file writes one."""
    limit = given.element.find(f"{tag}/limit")
    if limit is None:
        return ()
    low, high = (_bound(limit, end) for end in ("lower", "upper"))
    if low is None and high is None:
        return ()
    stiffness = _bound(limit, "stiffness")
    stiff = stiffness if stiffness is not None and stiffness > 0 else None
    return (CoordinateRange(word, low, high, stiff, (_range_told(given, tag),)),)


def _bound(limit: Element, tag: str) -> float | None:
    """A bound of a range; None where it is infinite or not a number."""
    try:
        found = float((limit.findtext(tag) or "").strip())
    except ValueError:
        return None
    return found if abs(found) < _UNBOUNDED else None


def _range_told(given: _Given, tag: str) -> Omission:
    """The omission of a range."""
    ends = [given.element.findtext(f"{tag}/limit/{end}") or "" for end in ("lower", "upper")]
    low, high = (end.strip() for end in ends)
    return Omission(
        "limit", given.name, f"its range {low or '-inf'} to {high or 'inf'} is not kept"
    )


def _of_one_axis(kind: str, word: str) -> Callable[[_Given], JointParts]:
    def made(given: _Given) -> JointParts:
        axis, own = _axis(given, "axis"), _dynamics(given, "axis", word)
        ends = given.parent, given.child
        ranges = _ranges(given, "axis", word)
        joint = Joint(
            given.name, kind, *ends, given.points, (axis,), dynamics=(own,), ranges=ranges
        )
        return JointParts(joints=(joint,))

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
        ranges = _ranges(given, tag, "rotation")
        joint = Joint(
            name, "revolute", *ends, given.points, (axes[k],), dynamics=(own,), ranges=ranges
        )
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


# Joints whose axes have springs, dampers and friction in the model.
_WITH_DYNAMICS = ("revolute", "continuous", "prismatic", "universal", "revolute2")


def _omissions(given: _Given) -> Iterator[Omission]:
    for tag in ("axis", "axis2"):
        if given.element.find(f"{tag}/limit") is not None:
            yield _range_told(given, tag)
        if given.element.find(f"{tag}/initial_position") is not None:
            why = "the model starts from the poses of the links"
            yield Omission("initial_position", given.name, why)
        dynamics = given.element.find(f"{tag}/dynamics")
        carried = given.element.get("type") in _WITH_DYNAMICS
        friction = dynamics is not None and number(dynamics, "friction", 0.0, given.said)
        if friction and not carried:
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


# SDF's default where a world does not give one.
_GRAVITY = (0.0, 0.0, -9.8)

# Elements of a model that are carried; all others are reported.
_CARRIED = {"link", "joint", "frame", "model", "include", "pose", "static", "self_collide"}
_CARRIED_OF_LINK = {"visual", "inertial", "pose", "gravity", "self_collide"}


class _Parts(NamedTuple):
    """The parts of a file read so far."""

    links: list[Link]
    joints: list[Joint]
    couplings: list[CoordinateCoupling]
    wrenches: list[Wrench]
    omissions: list[Omission]
    looks: list[Look]
    path: Path
    outside: bool


class _Scope(NamedTuple):
    """Scope of a model: the prefix of its names, the version of the format, the frames, and whether
    the model that contains it is static."""

    prefix: str
    version: tuple[int, ...]
    frames: Frames
    still: bool = False


def read_sdf(path: Path, state: State) -> Description:
    """The mechanism of an SDF file: all its models.

    **Raises:** `ModelError` for a file that is not safe, or not valid.
    """
    root, version, told = root_of(path)
    world = root.find("world")
    holder = root if world is None else world
    told = [*told, *with_includes(holder, path, state.outside)]
    models = holder.findall("model")
    if not models:
        raise ModelError(f"{shown(str(path), PATH)} holds no <model>.")
    gravity = np.array(_GRAVITY)
    if world is not None and world.find("gravity") is not None:
        gravity = numbers(world.findtext("gravity"), 3, "<gravity> of the world")
    parts = _Parts([], [], [], [], told, [], path, state.outside)
    scope = _Scope("", version, Frames(_flat(holder), "the world", IDENTITY))
    between = [] if world is None else world.findall("joint")
    alone = len(models) == 1 and models[0].get(VERSION) is None and not between
    for model in models:
        _read_model(model, scope, parts, gravity, scoped=not alone)
    for joint in between:
        _add_joint(joint, scope, parts, "the world")
    if world is not None:
        parts.couplings.extend(mimics(world, parts.joints, "", "the world"))
        parts.omissions.extend(_others(world, {"model", "frame", "gravity", "joint"}, "the world"))
    name = models[0].get("name") if alone else (holder.get("name") or path.stem)
    return Description(
        name or path.stem,
        tuple(parts.links),
        tuple(parts.joints),
        tuple(parts.couplings),
        tuple(parts.wrenches),
        gravity,
        tuple(parts.omissions),
        looks=tuple(parts.looks),
    )


def _read_model(
    model: Element, scope: _Scope, parts: _Parts, gravity: np.ndarray, *, scoped: bool
) -> None:
    name = model.get("name") or "model"
    said = f"model {shown(scope.prefix + name)}"
    prefix = f"{scope.prefix}{name}::" if scoped else scope.prefix
    frames = Frames(_flat(model), said, scope.frames.pose(f"{name}::{PLACED}"))
    version = version_of(model.get(VERSION), scope.version)
    still = scope.still or (model.findtext("static") or "").strip() in ("true", "1")
    for link in model.findall("link"):
        own, omissions = _link(link, frames, said, still=still)
        if still:
            parts.joints.append(_weld(own, prefix))
        if _false(link.findtext("gravity")):
            parts.wrenches.append(_carrying(own, prefix, gravity))
        parts.links.append(own._replace(name=prefix + own.name))
        _add_looks(link, frames, prefix, parts, said)
        parts.omissions.extend(own._replace(name=prefix + own.name) for own in omissions)
    for joint in model.findall("joint"):
        _add_joint(joint, _Scope(prefix, version, frames), parts, said)
    parts.couplings.extend(mimics(model, parts.joints, prefix, said))
    parts.omissions.extend(_others(model, _CARRIED, prefix + name))
    inner = _Scope(prefix, version, frames, still)
    for nested in model.findall("model"):
        _read_model(nested, inner, parts, gravity, scoped=True)


def _add_looks(link: Element, frames: Frames, prefix: str, parts: _Parts, said: str) -> None:
    """How a link looks; shapes that are not shown are listed."""
    name = link.get("name", "")
    for own, visual in visuals_of_link(link):
        found, why = geometry_of_sdf(visual, parts.path, parts.outside)
        if found is None:
            parts.omissions.append(Omission("visual", own, why))
            continue
        given = visual.find("pose")
        place = pose_of(given, f"{said}, visual {own!r}")
        outer = "" if given is None else given.get("relative_to") or given.get("frame") or ""
        if outer:
            place = place.after(frames.pose(outer)).after(frames.pose(name).inverse())
        kind, size, file = found
        pose = (place.origin, place.axes)
        parts.looks.append(Look(prefix + name, kind, size, file, *pose, colour_of_sdf(visual)))


def _add_joint(joint: Element, scope: _Scope, parts: _Parts, said: str) -> None:
    found = joint_parts(joint, scope.frames, scope.prefix, said, scope.version)
    parts.links.extend(found.links)
    parts.joints.extend(found.joints)
    parts.couplings.extend(found.couplings)
    parts.omissions.extend(found.omissions)


def _flat(model: Element) -> Element:
    """The model with links and frames of models within it, by their scoped names, as its own."""
    nested = list(model.findall("model"))
    if not nested:
        return model
    flat = Element(model.tag, model.attrib)
    flat.extend(list(model))
    for inner in nested:
        name, inside = inner.get("name") or "model", _flat(inner)
        own = Frames(inside, f"model {shown(name)}", IDENTITY)
        for part in (*inside.findall("link"), *inside.findall("frame"), *inside.findall("joint")):
            called = part.get("name", "")
            copied = Element("frame", name=f"{name}::{called}")
            if part.tag == "link":
                copied.tag = "link"
            else:
                link = own.link((part.findtext("child") or "").strip() or called)
                if link == GROUND:
                    continue
                copied.set("attached_to", f"{name}::{link}")
            copied.append(_written(own.pose(called), f"{name}::{PLACED}"))
            flat.append(copied)
    return flat


def _written(pose: Pose, outer: str) -> Element:
    text = Element("pose", rotation_format="quat_xyzw", relative_to=outer)
    text.text = " ".join(map(repr, (*pose.origin.tolist(), *_quaternion(pose.axes))))
    return text


def _quaternion(axes: np.ndarray) -> list[float]:
    """x, y, z, w."""
    w = np.sqrt(max(0.0, 1 + np.trace(axes))) / 2
    if w > 1e-3:
        skew = (axes - axes.T) / (4 * w)
        return [float(skew[2, 1]), float(skew[0, 2]), float(skew[1, 0]), float(w)]
    values, vectors = np.linalg.eigh((axes + axes.T) / 2)
    return [*map(float, vectors[:, np.argmax(values)]), 0.0]


def _link(link: Element, frames: Frames, said: str, *, still: bool) -> tuple[Link, list[Omission]]:
    name = link.get("name", "")
    said = f"{said}, link {shown(name)}"
    pose = frames.pose(name)
    # A model that stands still has no use for them, says the format.
    none = Inertial(0.0, np.zeros(3), np.zeros((3, 3)), None)
    given = none if still else inertial_of(link, frames, pose, said)
    mass, center, inertia = given.mass, given.center, given.inertia
    omissions = []
    if given.derived_inertia:
        omissions.append(Omission("inertia", name, given.derived_inertia))
    for child in link:
        if child.tag not in _CARRIED_OF_LINK:
            own = child.get("name") or f"{child.tag} of {name}"
            omissions.append(Omission(child.tag, own, _WHY.get(child.tag, _OTHERS)))
    if link.find("inertial/fluid_added_mass") is not None:
        omissions.append(Omission("fluid_added_mass", name, _OTHERS))
    rest = np.zeros(3)
    place = pose.origin + pose.axes @ center
    mass = mass, place, inertia
    origins = given.stated, given.derived, given.slip
    found = Link(name, pose.origin, pose.axes, *mass, rest, rest, *origins)
    return found, omissions


_OTHERS = "is not carried"
_WHY = {
    "collision": "there is no contact",
    "sensor": "nothing is measured",
    "plugin": "no code of a plugin is run",
}


def _weld(link: Link, prefix: str) -> Joint:
    points = np.tile(link.position, (2, 1))
    return Joint(
        f"{prefix}{link.name} weld", "fixed", GROUND, prefix + link.name, points, welds=True
    )


def _carrying(link: Link, prefix: str, gravity: np.ndarray) -> Wrench:
    """The force that takes the weight from a link on which gravity does not act."""
    name, none = prefix + link.name, np.zeros(3)
    force = -(link.mass or 0.0) * gravity
    return Wrench(f"{name} without gravity", name, link.center, force, none, turns=False)


def _false(text: str | None) -> bool:
    return text is not None and text.strip().lower() in ("false", "0")


def _others(holder: Element, carried: set[str], name: str) -> Iterator[Omission]:
    for child in holder:
        if child.tag not in carried:
            own = child.get("name") or f"{child.tag} of {name}"
            yield Omission(child.tag, own, _WHY.get(child.tag, _OTHERS))
