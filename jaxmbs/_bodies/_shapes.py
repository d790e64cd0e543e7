"""Shapes of homogeneous bodies, from which mass and moments of inertia follow."""

import abc
import math
from collections.abc import Callable
from typing import Any, cast

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .. import _checks
from .._custom_types import Matrix3, Scalar, Vector3
from .._fields import AbstractDeclared, direction, Field, optional, positive


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


def _edges(value: Any, what: str) -> Float[Array, "3"]:
    edges = _checks.real(value, (3,), what)
    known = _checks.concrete(edges)
    if known is not None:
        for length in known:
            _checks.positive(length, f"an edge in {what}")
    return edges


_SIZE: Callable[[Any], Vector3] = Field(
    "size",
    "m",
    "edges along the body's x, y and z",
    list[float],
    "3 numbers > 0",
    _edges,
    shape=(3,),
)


class Box(AbstractShape):
    """A solid box along the body's axes: m (b^2 + c^2) / 12 about the edge a.

    **Arguments:** `size`: its three edges (m), in the plane the last one is across it; `density`
    (kg/m^3) or `mass` (kg).

    **Raises:** `ValueError` for sizes that are not positive, and for none or both of density and
    mass.
    """

    size: Vector3 = eqx.field(converter=_SIZE)
    density: Scalar | None = eqx.field(default=None, kw_only=True, converter=DENSITY)
    mass: Scalar | None = eqx.field(default=None, kw_only=True, converter=SHAPE_MASS)

    def volume(self) -> Scalar:
        return self.size[0] * self.size[1] * self.size[2]

    def inertia_per_mass(self) -> Matrix3:
        squares = self.size * self.size
        # About each axis the squares of the two others.
        others = 1.0 - np.eye(3, dtype=squares.dtype)
        return jnp.diag((others * squares[None]).sum(axis=1)) / 12.0


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
