from collections.abc import Callable
from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from .. import _checks
from .._custom_types import Numbers
from .._fields import body_names, Field, Moves
from ._fields import JOINT_NAME
from ._primitives import ConstantCoefficients
from .base import AbstractJoint, AbstractPrimitive, Frames


def _rows(value: Numbers, what: str) -> Float[Array, "rows velocities"]:
    shape = _checks.shape_of(value)
    if len(shape) not in (1, 2) or 0 in shape:
        raise ValueError(f"{what} must be one row of numbers, or several rows of equal length.")
    return jnp.atleast_2d(_checks.real(value, shape, what))


_COEFFICIENTS: Callable[[Numbers], Float[Array, "rows velocities"]] = Field(
    "coefficients",
    "",
    "of each body's velocities: linear (m/s, world axes), then angular (rad/s, body axes)",
    list[float] | list[list[float]],
    "a row of 3 (in space 6) numbers for each body, or several rows",
    _rows,
    moves=Moves.coefficients,
)


class Pfaffian(AbstractJoint):
    """Rows of constant coefficients on the velocities of the named bodies (nonholonomic):
    rows `.1 .2 ...`.

    **Arguments:** `bodies`: names, without the ground; `coefficients`: one row, or several, of
    3 numbers for each planar and 6 for each spatial body, in the order of `bodies`: linear
    (world axes), then angular (body axes).
    """

    kind: ClassVar[str] = "pfaffian"
    located: ClassVar[bool] = False
    name: str = eqx.field(static=True, converter=JOINT_NAME)
    bodies: tuple[str, ...] = eqx.field(static=True, converter=body_names(None))
    coefficients: Float[Array, "rows velocities"] = eqx.field(kw_only=True, converter=_COEFFICIENTS)

    def __check_init__(self):
        """Bodies that have velocities."""
        if "ground" in self.bodies:
            raise ValueError("bodies names the ground, which has no velocity; leave it out.")

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
