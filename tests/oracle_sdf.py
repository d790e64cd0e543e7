"""Constraint matrix of an SDF model from its XML, and verdicts, dense and in NumPy alone.

Velocities are those of the centres of mass and angular ones, all along world axes, body by body.
"""

from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

import numpy as np
from scipy.spatial.transform import Rotation


class Dense(NamedTuple):
    """Rows of each joint by name, in units of `length`."""

    names: tuple[str, ...]
    rows: dict[str, np.ndarray]

    @property
    def matrix(self) -> np.ndarray:
        return np.concatenate([self.rows[name] for name in self.names])


def decomposed(dense: Dense) -> tuple[int, dict[str, bool]]:
    """The rank of all rows at unit length, by singular values, and which joints' reactions are
    unique: those whose part of every combination of rows that vanishes does so itself."""
    matrix = dense.matrix / np.linalg.norm(dense.matrix, axis=1, keepdims=True)
    left, values, _ = np.linalg.svd(matrix, full_matrices=True)
    rank = int(np.sum(values > 1e-9 * values[0]))
    vanishing = left[:, rank:]
    found, start = {}, 0
    for name in dense.names:
        own = slice(start, start + len(dense.rows[name]))
        start = own.stop
        share = matrix[own].T @ vanishing[own]
        found[name] = share.size == 0 or float(np.max(np.abs(share))) < 1e-6
    return rank, found


def pose(element: Element | None) -> tuple[np.ndarray, np.ndarray]:
    text = "0 0 0 0 0 0" if element is None or not element.text else element.text
    numbers = np.array(list(map(float, text.split())))
    return numbers[:3], Rotation.from_euler("xyz", numbers[3:]).as_matrix()


class _Reader:
    def __init__(self, model: Element, length: float):
        self.length = length
        self.frames, self.centers = {}, {}
        for link in model.findall("link"):
            place, axes = self.frames[link.get("name")] = pose(link.find("pose"))
            self.centers[link.get("name")] = place + axes @ pose(link.find("inertial/pose"))[0]
        self.columns = {name: 6 * k for k, name in enumerate(self.frames)}

    def speed(self, link: str, point: np.ndarray) -> np.ndarray:
        """Rows of the velocity of a point of a link over the unit of length."""
        found = np.zeros((3, 6 * len(self.columns)))
        if link != "world":
            k, arm = self.columns[link], (point - self.centers[link]) / self.length
            found[:, k : k + 3] = np.eye(3)
            x, y, z = arm
            found[:, k + 3 : k + 6] = -np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
        return found

    def spin(self, link: str) -> np.ndarray:
        found = np.zeros((3, 6 * len(self.columns)))
        if link != "world":
            k = self.columns[link]
            found[:, k + 3 : k + 6] = np.eye(3)
        return found

    def axis(self, joint: Element, tag: str) -> np.ndarray:
        child = (joint.findtext("child") or "").strip()
        own = pose(joint.find("pose"))[1]
        in_model = (joint.findtext(f"{tag}/use_parent_model_frame") or "0").strip() == "1"
        axes = np.eye(3) if in_model else self.frames[child][1] @ own
        axis = axes @ np.array(list(map(float, (joint.findtext(f"{tag}/xyz") or "").split())))
        return axis / np.linalg.norm(axis)

    def rows(self, joint: Element) -> np.ndarray:
        kind = joint.get("type")
        parent, child = ((joint.findtext(end) or "").strip() for end in ("parent", "child"))
        place, axes = self.frames[child]
        point = place + axes @ pose(joint.find("pose"))[0]
        gap = self.speed(child, point) - self.speed(parent, point)
        turn = self.spin(child) - self.spin(parent)
        if kind == "ball":
            return gap
        axis = self.axis(joint, "axis")
        across = np.linalg.svd(axis[None])[2][1:]
        if kind == "revolute":
            return np.concatenate([gap, across @ turn])
        if kind == "prismatic":
            return np.concatenate([across @ gap, turn])
        assert kind == "gearbox"
        carrier = self.spin((joint.findtext("gearbox_reference_body") or "").strip())
        ratio = float(joint.findtext("gearbox_ratio") or 1)
        driving = axis @ (self.spin(parent) - carrier)
        return (self.axis(joint, "axis2") @ (self.spin(child) - carrier) + ratio * driving)[None]


def dense_rows(path: Path, length: float) -> Dense:
    """Of the one model of a file of version 1.6."""
    model = ElementTree.parse(path).getroot().find("model")
    assert model is not None
    reader = _Reader(model, length)
    rows = {joint.get("name", ""): reader.rows(joint) for joint in model.findall("joint")}
    return Dense(tuple(rows), rows)
