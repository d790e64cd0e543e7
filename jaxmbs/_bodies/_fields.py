"""Declarations that bodies share."""

import numpy as np

from .. import _checks
from .._custom_types import Matrix3, Numbers, Quaternion
from .._fields import Field, Moves, Naming, point, positive, vector
from .._geometry import quaternion_from_rotation


MASS = positive("mass", "kg", "of the body")
_IN_REFERENCE = "of the centre of mass in the world, reference configuration"
_AT_START = "of the centre of mass, initial, world axes"
PLANAR_POSITION = point("position", _IN_REFERENCE, 2)
SPATIAL_POSITION = point("position", _IN_REFERENCE, 3)
PLANAR_VELOCITY = vector("velocity", "m/s", _AT_START, 2)
SPATIAL_VELOCITY = vector("velocity", "m/s", _AT_START, 3)
# Of a body whose frame need not lie at its centre of mass.
FRAME_POSITION = vector(
    "position", "m", "of the frame's origin in the world, reference configuration", 3
)
FRAME_VELOCITY = vector("velocity", "m/s", "of the frame's origin, initial, world axes", 3)


def _quaternion(value: Numbers, what: str) -> Quaternion:
    quaternion = _checks.real(value, (4,), what)
    known = _checks.concrete(quaternion)
    if known is not None:
        _checks.nonzero(known, what, "give a quaternion [w, x, y, z], such as [1, 0, 0, 0]")
    return quaternion


def _rotation(value: Numbers, what: str) -> Matrix3:
    matrix = _checks.real(value, (3, 3), what)
    known = _checks.concrete(matrix)
    if known is not None:
        _check_rotation(known)
    return matrix


def _check_rotation(known: np.ndarray) -> None:
    defect = np.max(np.abs(known.T @ known - np.eye(3)))
    # In single precision rounding is the larger.
    if defect > max(1e-8, 10 * float(np.finfo(known.dtype).eps)):
        raise ValueError(
            "rotation is not orthogonal (its columns must be right-handed unit body axes in the "
            f"world; R^T R differs from 1 by {defect:.2g}, determinant "
            f"{np.linalg.det(known):.4g})."
        )
    if np.linalg.det(known) < 0:
        raise ValueError(
            "rotation is a reflection (its determinant is -1): its columns are left-handed; turn "
            "one of them round, or exchange two."
        )


_ROTATION = Field(
    "rotation",
    "1",
    "its columns are the body axes in the world, reference configuration",
    list[list[float]],
    "an orthogonal, right-handed 3 x 3 matrix",
    _rotation,
    moves=Moves.rotation,
    shape=(3, 3),
)
ORIENTATION = Field(
    "orientation",
    "1",
    "from body axes to the world's, reference configuration",
    list[float],
    "a quaternion [w, x, y, z], not zero",
    _quaternion,
    naming=Naming(("w", "x", "y", "z")),
    left_out="[1, 0, 0, 0]",
    moves=Moves.orientation,
    shape=(4,),
    others=(_ROTATION,),
    exclusive=True,
    split=lambda quaternion: {"orientation": quaternion},
)
ANGULAR_VELOCITY = vector("angular_velocity", "rad/s", "initial, world axes", 3)


def orientation_of(orientation: Numbers | None, rotation: Numbers | None) -> Quaternion:
    """The quaternion of what is given of the two."""
    if orientation is not None and rotation is not None:
        raise ValueError("give either orientation (a quaternion) or rotation (a matrix).")
    if rotation is not None:
        return quaternion_from_rotation(_ROTATION(rotation))
    return ORIENTATION([1.0, 0.0, 0.0, 0.0] if orientation is None else orientation)
