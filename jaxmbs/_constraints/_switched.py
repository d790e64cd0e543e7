"""One-sided rows that are switched on and off: the active set of a motion with rigid limits."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from .._custom_types import RealScalarLike
from .base import AbstractGeometricPrimitive, AbstractPrimitive, Frames, Row


class Switched(AbstractGeometricPrimitive):
    """The rows of a geometric primitive, some of which are one-sided and may be off.

    A row that is off has a residual of zero, so that its part of C, its Gamma and its multiplier
    are zero. The active set is data: another one compiles nothing anew.

    `active` (rows,): 1 for rows that are on, 0 for others. `restitution` (rows,): speed after an
    impact over that before it.
    """

    primitive: AbstractPrimitive
    active: Float[Array, "*stacked rows"]
    restitution: Float[Array, "*stacked rows"]

    @property
    def rows(self) -> tuple[Row, ...]:
        return self.primitive.rows

    def position(self, frames: Frames, t: RealScalarLike) -> Float[Array, " geometric"]:
        return jnp.where(self.active > 0.5, self.primitive.position(frames, t), 0.0)

    def gaps(self, frames: Frames, t: RealScalarLike) -> Float[Array, " geometric"]:
        """The distance (m or rad) by which each row is open, whether it is on or off; infinite for
        rows that do not open."""
        signs = jnp.asarray([_sign(row) for row in self.rows])
        opens = jnp.asarray([_opens(row) for row in self.rows])
        return jnp.where(opens, -signs * self.primitive.position(frames, t), jnp.inf)

    def unambiguous(self) -> Float[Array, " rows"]:
        return self.primitive.unambiguous()

    def wound(self, frames: Frames) -> Float[Array, " rows"]:
        found = self.primitive.wound(frames)
        return jnp.where(self.active > 0.5, found, jnp.inf)


def _opens(row: Row) -> bool:
    return row.one_sided is not None and row.one_sided.opens


def _sign(row: Row) -> float:
    return 0.0 if row.one_sided is None else float(row.one_sided.sign)


def opens(primitive: AbstractPrimitive) -> bool:
    """Has it a row that motions with rigid limits may release?"""
    return any(_opens(row) for row in primitive.rows)


def switched(primitive: AbstractPrimitive, count: int) -> Switched:
    """The primitive of `count` joints, stacked, with its rows on and no restitution."""
    rows = (count, len(primitive.rows))
    return Switched(primitive, jnp.ones(rows), jnp.zeros(rows))
