"""Discs and balls as polyhedra: directions u_k and the factor of u_k . x <= factor * radius."""

from typing import NamedTuple

import numpy as np


class Directions(NamedTuple):
    """Unit vectors (n, dim), and the ratio of the radii of the inscribed and the circumscribed ball
    of the polyhedron u_k . x <= 1."""

    vectors: np.ndarray
    inner: float


def directions(dimension: int, sides: int) -> Directions:
    """Normals of a regular polygon of so many sides in the plane; in space, of a polyhedron with so
    many faces around its equator, and a face at each pole; on a line, both directions.

    With u_k . x <= r the polyhedron circumscribes the ball of radius r; with u_k . x <= inner * r
    its farthest vertex lies on it. In space a vertex of it is the pole of a face of the convex hull
    of the u_k, whose distance from the centre is one over the vertex's own.
    """
    if dimension == 1:
        return Directions(np.array([[1.0], [-1.0]]), 1.0)
    turn = 2 * np.pi * np.arange(sides) / sides
    circle = np.stack([np.cos(turn), np.sin(turn)], axis=1)
    if dimension == 2:
        return Directions(circle, float(np.cos(np.pi / sides)))
    heights = np.pi * np.arange(sides // 2 + 1) / (sides // 2) - np.pi / 2
    rings = [
        np.concatenate([np.cos(b) * circle, np.full((sides, 1), np.sin(b))], axis=1)
        for b in heights[1:-1]
    ]
    poles = np.array([[0.0, 0.0, -1.0], [0.0, 0.0, 1.0]])
    # A face of the hull is a trapezium (at a pole a triangle) between two rings: in the plane
    # through its middle it is the line through the middles of its two edges.
    middle = np.cos(np.pi / sides) * np.cos(heights), np.sin(heights)
    (x0, x1), (z0, z1) = ((own[:-1], own[1:]) for own in middle)
    distance = np.abs(x0 * z1 - x1 * z0) / np.hypot(x1 - x0, z1 - z0)
    return Directions(np.concatenate([*rings, poles]), float(np.min(distance)))
