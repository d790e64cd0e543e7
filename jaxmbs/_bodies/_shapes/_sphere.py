import math

import equinox as eqx
import numpy as np

from ..._custom_types import Matrix3, Scalar
from .base import AbstractShape, DENSITY, RADIUS, SHAPE_MASS


class Sphere(AbstractShape):
    """A solid sphere: 2 m r^2 / 5 about every axis.

    **Arguments:** `radius` (m); `density` (kg/m^3) or `mass` (kg).

    **Raises:** `ValueError` for a radius that is not positive, and for none or both of density and
    mass.
    """

    radius: Scalar = eqx.field(converter=RADIUS)
    density: Scalar | None = eqx.field(default=None, kw_only=True, converter=DENSITY)
    mass: Scalar | None = eqx.field(default=None, kw_only=True, converter=SHAPE_MASS)

    def volume(self) -> Scalar:
        return 4.0 / 3.0 * math.pi * self.radius**3

    def inertia_per_mass(self) -> Matrix3:
        return 0.4 * self.radius * self.radius * np.eye(3, dtype=self.radius.dtype)
