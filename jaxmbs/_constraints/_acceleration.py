"""Constraints that are given as linear equations of accelerations."""

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, TypeAlias

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from .._custom_types import Numbers, RealScalarLike
from .._geometry import ANGLE, CoordinateFrame, Quantity
from . import _fields
from ._generalized import AbstractConstraint, one_or_all, own_coordinates
from ._linear_rows import LinearRows
from .base import AbstractAccelerationPrimitive, AbstractJoint, AbstractPrimitive, Frames, Row


# Of one body q and v are arrays, of several tuples of such.
StateFunction: TypeAlias = Callable[[Any, Any, RealScalarLike], Float[Array, " ..."]]


class AccelerationConstraint(AbstractAccelerationPrimitive, AbstractConstraint):
    """Rows `matrix(q, v, t) dv/dt = offset(q, v, t)`: the general form of Udwadia & Kalaba (1992;
    Zhao et al. 2018, eq. 18).

    No position or velocity is prescribed, so that a motion is never projected back onto them:
    errors of the start remain, and those of the integration accumulate.

    **Arguments:** `matrix`: A (rows, n), `offset`: b (rows,), functions or arrays; of one row (n,)
    and a number. With several bodies, the columns of A are their concatenated velocities. `rows`,
    `quantity`: as for `PositionConstraint`.
    """

    linear: LinearRows
    labels: tuple[Row, ...] = eqx.field(static=True)

    def __init__(
        self,
        matrix: StateFunction | Numbers,
        offset: StateFunction | Numbers = 0.0,
        rows: int | Sequence[str] = 1,
        *,
        quantity: Quantity = ANGLE,
    ):
        self.labels = _fields.labels_of(rows, quantity)
        self.linear = LinearRows(matrix, offset, len(self.labels), "q, v, t")

    @property
    def rows(self) -> tuple[Row, ...]:
        return self.labels

    def acceleration(
        self, frames: Frames, rates: Frames, accelerations: Frames, t: RealScalarLike
    ) -> Float[Array, " acceleration"]:
        moving = [
            jax.jvp(_velocities, (frame, rate), (rate, acceleration))
            for frame, rate, acceleration in zip(frames, rates, accelerations, strict=True)
        ]
        q = one_or_all([frame.values for frame in frames])
        v, changes = one_or_all([u for u, _ in moving]), jnp.concatenate([a for _, a in moving])
        matrix, offset = self.linear(q, v, t, columns=changes.shape[0])
        return matrix @ changes - offset

    def servo_error(
        self, frames: Frames, rates: Frames, t: RealScalarLike
    ) -> Float[Array, " acceleration"]:
        del rates, t
        return jnp.zeros((len(self.labels),), frames[0].dtype)

    def force_limits(self) -> Float[Array, " acceleration"]:
        return jnp.full((len(self.labels),), jnp.inf)

    def on(self, name: str, bodies: str | Sequence[str]) -> "AccelerationCondition":
        rows = [row.suffix for row in self.labels]
        return AccelerationCondition(
            name,
            bodies,
            self.linear.matrix,
            self.linear.offset,
            rows=rows,
            quantity=self.labels[0].quantity,
        )


class AccelerationCondition(AbstractJoint):
    """Rows on the accelerations of a body, or of several.

    **Arguments:** `bodies` as for `Condition`; the others as for `AccelerationConstraint`.
    """

    kind: ClassVar[str] = "acceleration"
    located: ClassVar[bool] = False
    name: str = eqx.field(static=True)
    bodies: tuple[str, ...] = eqx.field(static=True)
    matrix: StateFunction | Float[Array, "rows nv"]
    offset: StateFunction | Float[Array, " rows"]
    rows: tuple[str, ...] = eqx.field(static=True)
    quantity: Quantity = eqx.field(static=True)

    def __init__(
        self,
        name: str,
        bodies: str | Sequence[str],
        matrix: StateFunction | Numbers,
        offset: StateFunction | Numbers = 0.0,
        *,
        rows: int | Sequence[str] = 1,
        quantity: Quantity = ANGLE,
    ):
        self.name, self.bodies = _fields.JOINT_NAME(name), _fields.SOME_BODIES(bodies)
        self.rows, self.quantity = _fields.suffixes_of(rows), _fields.quantity(quantity)
        linear = LinearRows(matrix, offset, len(self.rows), "q, v, t")
        self.matrix, self.offset = linear.matrix, linear.offset

    def placements(self, references: Frames) -> Frames:
        return own_coordinates(self.bodies, references)

    def primitives(self) -> tuple[AbstractPrimitive, ...]:
        own = AccelerationConstraint(self.matrix, self.offset, self.rows, quantity=self.quantity)
        return (own,)


def _velocities(frame: CoordinateFrame, rate: CoordinateFrame) -> Float[Array, " nv"]:
    return frame.twist(rate).rates
