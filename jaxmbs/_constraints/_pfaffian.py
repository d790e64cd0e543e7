from collections.abc import Sequence
from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from .. import _checks
from .._custom_types import Numbers
from ._primitives import ConstantCoefficients
from .base import AbstractJoint, AbstractPrimitive, Frames


class Pfaffian(AbstractJoint):
    """Rows of constant coefficients on the velocities of the named bodies (nonholonomic):
    rows `.1 .2 ...`.

    **Arguments:** `bodies`: names, without the ground; `coefficients`: one row, or several, of
    3 numbers for each planar and 6 for each spatial body, in the order of `bodies`: linear
    (world axes), then angular (body axes).
    """

    kind: ClassVar[str] = "pfaffian"
    located: ClassVar[bool] = False
    name: str = eqx.field(static=True)
    bodies: tuple[str, ...] = eqx.field(static=True)
    coefficients: Float[Array, "rows velocities"]

    def __init__(self, name: str, bodies: Sequence[str], *, coefficients: Numbers):
        self.name = _checks.name(name, "a joint")
        self.bodies = _checks.body_names(bodies, None)
        if "ground" in self.bodies:
            raise ValueError("bodies names the ground, which has no velocity; leave it out.")
        shape = _rectangle(coefficients)
        rows = _checks.real(coefficients, shape, "coefficients")
        self.coefficients = jnp.atleast_2d(rows)

    def placements(self, references: Frames) -> Frames:
        width = len(references) * (3 if references[0].origin.shape == (2,) else 6)
        if self.coefficients.shape[1] != width:
            raise ValueError(
                f"coefficients must hold {width} numbers in each row (for "
                f"{_checks.listed(map(repr, self.bodies))}), got {self.coefficients.shape[1]}."
            )
        return references

    def primitives(self) -> tuple[AbstractPrimitive, ...]:
        return (ConstantCoefficients(self.coefficients),)


def _rectangle(coefficients: Numbers) -> tuple[int, ...]:
    shape = _checks.shape_of(coefficients)
    if len(shape) not in (1, 2) or 0 in shape:
        raise ValueError(
            "coefficients must be one row of numbers, or several rows of equal length."
        )
    return shape
