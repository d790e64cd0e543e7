import math
from collections.abc import Callable
from typing import Any

import equinox as eqx

from ..._custom_types import Matrix3, Scalar, Vector3
from ..._fields import positive
from .base import (
    AbstractShape,
    axial_inertia,
    AXIS,
    DENSITY,
    known_less,
    LENGTH,
    RADIUS,
    SHAPE_MASS,
)


_INNER_RADIUS: Callable[[Any], Scalar] = positive("inner_radius", "m", "of the bore")


class Tube(AbstractShape):
    """A circular tube with a bore: m (r^2 + r_i^2) / 2 about its axis,
    m (3 r^2 + 3 r_i^2 + l^2) / 12 across it.

    **Arguments:** `radius` of the outside, `inner_radius`, `length` (m); `axis`: in body axes,
    default z; `density` (kg/m^3) or `mass` (kg).

    **Raises:** `ValueError` for lengths that are not positive, a bore that is not smaller than the
    outside, an axis of no length, and for none or both of density and mass.
    """

    radius: Scalar = eqx.field(converter=RADIUS)
    inner_radius: Scalar = eqx.field(converter=_INNER_RADIUS)
    length: Scalar = eqx.field(converter=LENGTH)
    axis: Vector3 = eqx.field(default=(0.0, 0.0, 1.0), kw_only=True, converter=AXIS)
    density: Scalar | None = eqx.field(default=None, kw_only=True, converter=DENSITY)
    mass: Scalar | None = eqx.field(default=None, kw_only=True, converter=SHAPE_MASS)

    def __check_init__(self):
        """It has a wall."""
        known_less(
            self.inner_radius,
            self.radius,
            "inner_radius {inner:g} must be less than radius {outer:g}.",
        )

    def volume(self) -> Scalar:
        wall = self.radius * self.radius - self.inner_radius * self.inner_radius
        return math.pi * wall * self.length

    def inertia_per_mass(self) -> Matrix3:
        squares = self.radius * self.radius + self.inner_radius * self.inner_radius
        across = (3.0 * squares + self.length * self.length) / 12.0
        return axial_inertia(self.axis, squares / 2.0, across)
