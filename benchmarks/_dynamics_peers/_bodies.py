"""Numbers of the two mechanisms, as every peer's model takes them."""

import numpy as np

from .exact import GRAVITY


# A bar of 1 m and 1 kg: moment of inertia across, and about its own axis, which takes part in no
# motion but must not be zero.
ACROSS = 1 / 12
SLENDER = 1e-4

DOWN_Y = np.array([0.0, -GRAVITY, 0.0])
DOWN_Z = np.array([0.0, 0.0, -GRAVITY])

LINK_MASS = 0.34
LINK_MOMENTS = np.array([56e-3, 56e-3, 0.08e-3])
PLATFORM_MASS = 39.0
# About world axes: the plate stays horizontal, its normal is z.
PLATFORM_MOMENTS = np.array([3.25, 3.25, 6.5])
PLATFORM_CENTRE = np.array([0.25, 0.75, 0.5])
FORCE = np.array([2000.0, 3000.0, 3000.0])
TORQUE = np.array([300.0, 0.0, 500.0])

_BASE = {
    "AB": (0.0, 0.0, 0.0),
    "CD": (0.5, 0.0, 0.0),
    "EF": (0.5, 0.5, 0.0),
    "GH": (0.0, 0.5, 0.0),
    "KL": (0.0, 0.25, 1.0),
    "MN": (0.5, 0.25, 1.0),
}
_RISE = {"AB": 0.5, "CD": 0.5, "EF": 0.5, "GH": 0.5, "KL": -0.5, "MN": -0.5}


def links() -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Ends of each link of the parallelogram at the start: on the ground and at the platform."""
    ends = {}
    for name, base in _BASE.items():
        start = np.array(base)
        ends[name] = (start, start + np.array([0.0, 0.5, _RISE[name]]))
    return ends


def along(direction: np.ndarray) -> np.ndarray:
    """A rotation matrix whose z axis has the given direction, which is not that of x."""
    z = direction / np.linalg.norm(direction)
    x = np.array([1.0, 0.0, 0.0])
    return np.stack([x, np.cross(z, x), z], axis=1)


def link_inertia(direction: np.ndarray) -> np.ndarray:
    """Inertia matrix of a link about its centre of mass, in world axes (kg m^2)."""
    rotation = along(direction)
    return rotation @ np.diag(LINK_MOMENTS) @ rotation.T
