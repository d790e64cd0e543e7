"""Redundant mechanisms in space whose bodies form a ring, turned so that no number is short."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

import jaxmbs as jm
from jaxmbs import spatial


class Ring(NamedTuple):
    """Bodies in a ring from the ground to the ground: each joint's point and axis; which joint
    closes it; and the rank that is meant."""

    points: np.ndarray
    axes: np.ndarray
    rank: Mapping[str, int]


def oblique(vectors: Any) -> np.ndarray:
    """Turned about an oblique axis, so that no number is short."""
    axis, angle = np.array([1.0, 2.0, 2.0]) / 3, 0.7
    cross = np.array([[0, -axis[2], axis[1]], [axis[2], 0, -axis[0]], [-axis[1], axis[0], 0]])
    turn = np.eye(3) + np.sin(angle) * cross + (1 - np.cos(angle)) * cross @ cross
    return np.array(vectors, float) @ turn.T


def four_bar() -> Ring:
    """Hinges that are parallel: closed by one, three rows are redundant, by a ball one."""
    corners = [[0, 0, 0], [0.2, 0.5, 0], [0.9, 0.6, 0], [1.1, 0, 0]]
    return Ring(oblique(corners), oblique([[0, 0, 1]] * 4), {"revolute": 17, "spherical": 17})


def star() -> Ring:
    """Hinges whose axes meet in one point, of a spherical linkage."""
    axes = np.array([[0, 0, 1], [0.5, 0, 1], [0.7, 0.6, 1], [0.1, 0.9, 1]])
    axes /= np.linalg.norm(axes, axis=1)[:, None]
    places = axes * np.array([[1.0], [1.2], [0.9], [1.1]])
    return Ring(oblique(places), oblique(axes), {"revolute": 17})


def door() -> Ring:
    """One body on two hinges."""
    points, axes = oblique([[0, 0, 0], [0, 0, 0.7]]), oblique([[0, 0, 1]] * 2)
    return Ring(points, axes, {"revolute": 5, "spherical": 5})


RINGS = MappingProxyType({"four-bar": four_bar(), "star": star(), "door": door()})


def model(ring: Ring) -> jm.Model:
    """All joints are hinges."""
    count = len(ring.points) - 1
    bodies = [
        spatial.Body(f"b{k}", mass=1.0, inertia=[0.1] * 3, position=ring.points[k])
        for k in range(count)
    ]
    names = ["ground", *(own.name for own in bodies), "ground"]
    joints = [
        spatial.Revolute(f"j{k}", (names[k], names[k + 1]), at=point, axis=axis)
        for k, (point, axis) in enumerate(zip(ring.points, ring.axes, strict=True))
    ]
    return jm.Model("ring", 3, bodies=bodies, joints=joints)
