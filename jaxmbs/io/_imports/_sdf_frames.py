"""Poses of a model in SDF: a graph of named frames, each given in another."""

from collections.abc import Mapping
from typing import NamedTuple
from xml.etree.ElementTree import Element

import numpy as np

from ..._checks import shown
from ..._errors import ModelError
from ._description import GROUND, Matrix, Vector
from ._geometry import matrix_of_angles, matrix_of_quaternion


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
