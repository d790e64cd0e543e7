"""Rotations of marker axes, for joints of fewer rows at the place of another."""

import numpy as np


def onto_axis(k: int) -> np.ndarray:
    """Rotation (3, 3) whose third column is the k-th of the old axes (0: x, 1: y, 2: z)."""
    return np.roll(np.eye(3), 2 - k, axis=1)


AS_IS = np.eye(3)
