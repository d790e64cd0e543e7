"""Random numbers of mechanisms."""

from typing import Any

import numpy as np


class Draw:
    """Random numbers of a mechanism of half side `size` (m) about `origin` (m).

    Equal seeds give the same mechanism, larger or smaller, here or there.
    """

    def __init__(self, seed: int, dimension: int, size: float, origin: float):
        self.rng = np.random.default_rng(seed)
        self.dimension, self.size, self.origin = dimension, size, origin

    def number(self, low: float, high: float) -> float:
        return float(self.rng.uniform(low, high))

    def length(self, low: float = 0.5, high: float = 1.5) -> float:
        return self.size * self.number(low, high)

    def point(self) -> np.ndarray:
        return self.origin + self.size * self.rng.uniform(-1, 1, self.dimension)

    def points(self) -> np.ndarray:
        return np.stack([self.point(), self.point()])

    def direction(self) -> np.ndarray:
        return self.rng.normal(size=self.dimension) * self.number(0.5, 2.0)

    def body(self, name: str, turned: bool) -> dict[str, Any]:
        table = {"name": name, "mass": self.number(0.5, 2.0), "position": self.point()}
        moments = self.size**2 * self.rng.uniform(1.0, 1.9, size=3)
        if self.dimension == 2:
            return {**table, "inertia": moments[0], "angle": self.number(-3, 3) * turned}
        quaternion = self.rng.normal(size=4)
        orientation = quaternion / np.linalg.norm(quaternion) if turned else np.eye(4)[0]
        return {**table, "inertia": moments, "orientation": orientation}
