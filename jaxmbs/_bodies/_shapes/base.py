import abc
from collections.abc import Callable
from typing import Any, cast

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ... import _checks
from ..._custom_types import Matrix3, Scalar, Vector3
from ..._fields import AbstractDeclared, direction, Field, optional, positive


DENSITY: Callable[[Any], Scalar | None] = optional(
    positive("density", "kg/m3", "of the material"), "`mass` is given"
)
SHAPE_MASS: Callable[[Any], Scalar | None] = optional(
    positive("mass", "kg", "of the body"), "`density` is given"
)
LENGTH = positive("length", "m", "along the axis")
RADIUS = positive("radius", "m", "of the outside")
AXIS: Callable[[Any], Vector3] = cast(
    Field, direction("axis", "of symmetry, in body axes", 3)
)._replace(left_out="[0, 0, 1]")


class AbstractShape(AbstractDeclared):
    """A homogeneous solid, whose centre is its centre of mass.

    Its mass is given, or that of its material.
    """

    density: eqx.AbstractVar[Scalar | None]
    mass: eqx.AbstractVar[Scalar | None]

    def __check_init__(self):
        """One of the two decides."""
        if (self.density is None) == (self.mass is None):
            raise ValueError("a shape needs `density` or `mass`, one of the two.")

    @abc.abstractmethod
    def volume(self) -> Scalar:
        """m^3."""

    @abc.abstractmethod
    def inertia_per_mass(self) -> Matrix3:
        """Inertia matrix about the centre in body axes over the mass, m^2."""

    def total_mass(self) -> Scalar:
        """The mass that is given, or density times volume (kg)."""
        if self.mass is not None:
            return self.mass
        return jnp.asarray(self.density) * self.volume()

    def inertia(self) -> Matrix3:
        """Inertia matrix about the centre in body axes (kg m^2). A planar body's inertia is its
        last entry, about z."""
        return self.total_mass() * self.inertia_per_mass()


def axial_inertia(axis: Vector3, along: Scalar, across: Scalar) -> Matrix3:
    """The matrix with one principal moment along an axis and two equal ones across it."""
    unit = axis / jnp.linalg.norm(axis)
    outer: Float[Array, "3 3"] = unit[:, None] * unit[None]
    return across * np.eye(3, dtype=unit.dtype) + (along - across) * outer


def known_less(inner: Scalar, outer: Scalar, message: str) -> None:
    """**Raises:** `ValueError` if both are known and the first is not less."""
    values = _checks.concrete(inner), _checks.concrete(outer)
    if values[0] is not None and values[1] is not None and not values[0] < values[1]:
        raise ValueError(message.format(inner=float(values[0]), outer=float(values[1])))
