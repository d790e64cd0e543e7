import math

import equinox as eqx

from ..._custom_types import Matrix3, Scalar, Vector3
from .base import AbstractShape, axial_inertia, AXIS, DENSITY, LENGTH, RADIUS, SHAPE_MASS


class Cylinder(AbstractShape):
    """A solid circular cylinder: m r^2 / 2 about its axis, m (3 r^2 + l^2) / 12 across it.

    **Arguments:** `radius`, `length` (m); `axis`: in body axes, default z; `density` (kg/m^3) or
    `mass` (kg).

    **Raises:** `ValueError` for lengths that are not positive, an axis of no length, and for none
    or both of density and mass.
    """

    radius: Scalar = eqx.field(converter=RADIUS)
    length: Scalar = eqx.field(converter=LENGTH)
    axis: Vector3 = eqx.field(default=(0.0, 0.0, 1.0), kw_only=True, converter=AXIS)
    density: Scalar | None = eqx.field(default=None, kw_only=True, converter=DENSITY)
    mass: Scalar | None = eqx.field(default=None, kw_only=True, converter=SHAPE_MASS)

    def volume(self) -> Scalar:
        return math.pi * self.radius * self.radius * self.length

    def inertia_per_mass(self) -> Matrix3:
        square = self.radius * self.radius
        across = (3.0 * square + self.length * self.length) / 12.0
        return axial_inertia(self.axis, square / 2.0, across)
