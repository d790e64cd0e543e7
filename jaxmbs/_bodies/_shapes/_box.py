from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ... import _checks
from ..._custom_types import Matrix3, Scalar, Vector3
from ..._fields import Field
from .base import AbstractShape, DENSITY, SHAPE_MASS


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
