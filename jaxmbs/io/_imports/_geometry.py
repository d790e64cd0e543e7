"""Rotations of files, in NumPy."""

import numpy as np
from jaxtyping import Float

from ._description import Matrix, Vector


# Radii of gyration (m) below which a moment is the rounding of zero.
POINT = 1e-7


def matrix_of_quaternion(quaternion: Float[np.ndarray, "4"]) -> Matrix:
    """The rotation matrix of a quaternion `[w, x, y, z]` of any nonzero length."""
    w, x, y, z = quaternion / np.linalg.norm(quaternion)
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ]
    )


def matrix_of_angles(angles: Float[np.ndarray, "3"]) -> Matrix:
    """The rotation matrix of roll, pitch and yaw (rad): rotations about the fixed x, y and z axes,
    in this order."""
    (cx, cy, cz), (sx, sy, sz) = np.cos(angles), np.sin(angles)
    about_x = np.array([[1, 0, 0], [0, cx, -sx], [0, sx, cx]])
    about_y = np.array([[cy, 0, sy], [0, 1, 0], [-sy, 0, cy]])
    about_z = np.array([[cz, -sz, 0], [sz, cz, 0], [0, 0, 1]])
    return about_z @ about_y @ about_x


def rotation_vector(rotation: Matrix) -> Vector:
    """Axis times angle (rad), of at most half a turn."""
    skew = np.array(
        [
            rotation[2, 1] - rotation[1, 2],
            rotation[0, 2] - rotation[2, 0],
            rotation[1, 0] - rotation[0, 1],
        ]
    )
    sine, cosine = np.linalg.norm(skew) / 2, (np.trace(rotation) - 1) / 2
    angle = np.arctan2(sine, cosine)
    if sine > 1e-9:
        return skew * (angle / (2 * sine))
    if cosine > 0:
        return skew / 2
    # Half a turn: the axis is the column of R + 1 that is longest.
    columns = rotation + np.eye(3)
    axis = columns[:, np.argmax(np.linalg.norm(columns, axis=0))]
    return axis * (angle / np.linalg.norm(axis))


def moved_inertia(inertia: Matrix, mass: float, offset: Vector) -> Matrix:
    """About a point at `offset` from the centre of mass, from that about the centre (Steiner)."""
    return inertia + mass * (offset @ offset * np.eye(3) - np.outer(offset, offset))


def is_physical(mass: float, inertia: Matrix) -> bool:
    """Can a body have this mass and this inertia about its centre?"""
    moments = np.linalg.eigvalsh((inertia + inertia.T) / 2)
    thin = moments[2] <= (moments[0] + moments[1]) * (1 + 1e-9)
    # An eigenvalue of the size of rounding counts as zero.
    return bool(mass > 0 and moments[0] > 1e-12 * moments[2] and thin)


def thin_or_point(inertia: Matrix) -> bool:
    """Is it that of a rod without thickness, or zero?"""
    moments = np.linalg.eigvalsh(inertia)
    zero = abs(moments[0]) <= 1e-12 * moments[2]
    # Moments that are equal up to the rounding of a file.
    return bool(zero and moments[2] - moments[1] <= 1e-9 * moments[2])


def round_moments(
    radius: float, height: float, axis: int, *, ends: bool
) -> tuple[float, np.ndarray]:
    """Volume, and moments of inertia for a mass of one, of a cylinder about an axis (0, 1 or 2),
    with half a ball on each end or not."""
    tube = np.pi * radius**2 * height
    along = tube * radius**2 / 2
    across = tube * (radius**2 / 4 + height**2 / 12)
    volume = tube
    if ends:
        ball = 4 / 3 * np.pi * radius**3
        along += ball * 0.4 * radius**2
        # Half balls, 3/8 of the radius from their flat sides to their centres.
        across += ball * (0.4 * radius**2 + height**2 / 4 + 3 / 8 * height * radius)
        volume += ball
    moments = np.full(3, across)
    moments[axis] = along
    return volume, moments / volume
