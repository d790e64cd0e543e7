"""SDFormat (`.sdf`, `.world`), whose links may have several parents: closed loops.

It is read here, from the XML alone. Its own library, libsdformat, is on the package index only as
bindings of single versions of Python or of the library, built by others than its authors, and
together with half of Gazebo; packages that are pure Python stop at versions before frames (1.7).
What a mechanism needs of the format is small: frames, links, joints.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple
from xml.etree.ElementTree import Element

import numpy as np

from ..._checks import PATH, shown
from ..._errors import ModelError
from ._description import (
    CoordinateCoupling,
    Description,
    GROUND,
    Joint,
    Link,
    Omission,
    Wrench,
)
from ._sdf_frames import Frames, IDENTITY, numbers, PLACED, Pose
from ._sdf_includes import root_of, VERSION, version_of, with_includes
from ._sdf_inertias import Inertial, inertial_of
from ._sdf_joints import joint_parts, mimics
from ._state import State


# SDF's default where a world does not give one.
_GRAVITY = (0.0, 0.0, -9.8)

# Elements of a model that are carried; all others are reported.
_CARRIED = {"link", "joint", "frame", "model", "include", "pose", "static", "self_collide"}
_CARRIED_OF_LINK = {"inertial", "pose", "gravity", "self_collide"}


class _Parts(NamedTuple):
    """The parts of a file read so far."""

    links: list[Link]
    joints: list[Joint]
    couplings: list[CoordinateCoupling]
    wrenches: list[Wrench]
    omissions: list[Omission]


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
    parts = _Parts([], [], [], [], told)
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
        parts.omissions.extend(own._replace(name=prefix + own.name) for own in omissions)
    for joint in model.findall("joint"):
        _add_joint(joint, _Scope(prefix, version, frames), parts, said)
    parts.couplings.extend(mimics(model, parts.joints, prefix, said))
    parts.omissions.extend(_others(model, _CARRIED, prefix + name))
    inner = _Scope(prefix, version, frames, still)
    for nested in model.findall("model"):
        _read_model(nested, inner, parts, gravity, scoped=True)


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
    "visual": "pictures are not carried",
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
