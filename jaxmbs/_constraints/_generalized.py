"""Conditions on the own coordinates of bodies that have such."""

import abc
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, TypeAlias

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from .. import _checks
from .._custom_types import Numbers, RealScalarLike, Scalar
from .._geometry import ANGLE, CoordinateFrame, Quantity
from . import _fields
from ._linear_rows import LinearRows
from .base import (
    AbstractGeometricPrimitive,
    AbstractJoint,
    AbstractPrimitive,
    AbstractVelocityPrimitive,
    Frames,
    Row,
    Twists,
)


# Of one body q is an array (n,), of several a tuple of such; likewise v.
ConditionFunction: TypeAlias = Callable[[Any, RealScalarLike], Float[Array, " ..."]]
VelocityConditionFunction: TypeAlias = Callable[[Any, Any, RealScalarLike], Float[Array, " ..."]]


class AbstractConstraint(eqx.Module):
    """Rows on coordinates, without a name and without the bodies whose coordinates are meant."""

    @abc.abstractmethod
    def on(self, name: str, bodies: str | Sequence[str]) -> AbstractJoint:
        """The joint of that name that holds these bodies by the same rows."""


class PositionConstraint(AbstractGeometricPrimitive, AbstractConstraint):
    """Rows `function(q, t) = 0` (rows,). `rows`: their number, or their suffixes; `quantity`: what
    the residual measures."""

    function: ConditionFunction
    labels: tuple[Row, ...] = eqx.field(static=True)

    def __init__(
        self,
        function: ConditionFunction,
        rows: int | Sequence[str] = 1,
        *,
        quantity: Quantity = ANGLE,
    ):
        self.function = _checks.function(function, "function", "q, t")
        self.labels = _fields.labels_of(rows, quantity)

    @property
    def rows(self) -> tuple[Row, ...]:
        return self.labels

    def position(self, frames: Frames, t: RealScalarLike) -> Float[Array, " geometric"]:
        result = self.function(one_or_all([f.values for f in frames]), t)
        return _checks.rows_of_function(result, len(self.labels), "a constraint function")

    def on(self, name: str, bodies: str | Sequence[str]) -> "Condition":
        rows, quantity = [row.suffix for row in self.labels], self.labels[0].quantity
        return Condition(name, bodies, self.function, rows=rows, quantity=quantity)


class VelocityConstraint(AbstractVelocityPrimitive, AbstractConstraint):
    """Rows `function(q, v, t) = 0` (rows,), linear or not in v. `rows`, `quantity`: as for
    `PositionConstraint`."""

    linear_in_rates: ClassVar[bool] = False
    function: VelocityConditionFunction
    labels: tuple[Row, ...] = eqx.field(static=True)

    def __init__(
        self,
        function: VelocityConditionFunction,
        rows: int | Sequence[str] = 1,
        *,
        quantity: Quantity = ANGLE,
    ):
        self.function = _checks.function(function, "function", "q, v, t")
        self.labels = _fields.labels_of(rows, quantity)

    @property
    def rows(self) -> tuple[Row, ...]:
        return self.labels

    def velocity(
        self, frames: Frames, twists: Twists, t: RealScalarLike
    ) -> Float[Array, " velocity"]:
        q, v = one_or_all([f.values for f in frames]), one_or_all([w.rates for w in twists])
        result = self.function(q, v, t)
        return _checks.rows_of_function(result, len(self.labels), "a constraint function")

    def lever_arm(self) -> Scalar:
        return jnp.asarray(0.0)

    def on(self, name: str, bodies: str | Sequence[str]) -> "RateCondition":
        rows = [row.suffix for row in self.labels]
        return RateCondition(
            name, bodies, self.function, rows=rows, quantity=self.labels[0].quantity
        )


class _AffineRates(eqx.Module):
    """A(q, t) v + c(q, t)."""

    rows: LinearRows

    def __call__(self, q: Any, v: Any, t: RealScalarLike) -> Float[Array, " rows"]:
        velocities = jnp.concatenate(v) if isinstance(v, tuple) else v
        matrix, offset = self.rows(q, t, columns=velocities.shape[0])
        return matrix @ velocities + offset


def PfaffianConstraint(
    matrix: ConditionFunction | Numbers,
    offset: ConditionFunction | Numbers = 0.0,
    rows: int | Sequence[str] = 1,
    *,
    quantity: Quantity = ANGLE,
) -> VelocityConstraint:
    """The `VelocityConstraint` of rows `matrix(q, t) v + offset(q, t) = 0` (Zhao et al. 2018,
    eq. 22).

    **Arguments:** `matrix`: A (rows, n), `offset`: c (rows,), functions or arrays; of one row (n,)
    and a number. With several bodies, the columns of A are their concatenated velocities. `rows`,
    `quantity`: as for `PositionConstraint`.
    """
    count = len(_fields.suffixes_of(rows))
    return VelocityConstraint(
        _AffineRates(LinearRows(matrix, offset, count, "q, t")), rows, quantity=quantity
    )


class Condition(AbstractJoint):
    """Rows on the coordinates of a body, or of several: of generalized bodies, rigid ones, or both.

    **Arguments:**

    - `bodies`: their names, or one. `function(q, t)`: residual (rows,), zero when satisfied; q is
      the body's array (nq,), of several bodies a tuple of these, of a planar body (x, y, angle), of
      a spatial one its position and unit quaternion, scalar first. An `eqx.Module` with array
      fields makes them parameters of the system.
    - `rows`: how many, or their suffixes. `quantity`: what the residual measures.
    """

    kind: ClassVar[str] = "geometric"
    located: ClassVar[bool] = False
    name: str = eqx.field(static=True, converter=_fields.JOINT_NAME)
    bodies: tuple[str, ...] = eqx.field(static=True, converter=_fields.SOME_BODIES)
    function: ConditionFunction = eqx.field(converter=_fields.function_of("q, t"))
    rows: tuple[str, ...] = eqx.field(
        default=("1",), static=True, kw_only=True, converter=_fields.suffixes_of
    )
    quantity: Quantity = eqx.field(
        default=ANGLE, static=True, kw_only=True, converter=_fields.quantity
    )

    def placements(self, references: Frames) -> Frames:
        return own_coordinates(self.bodies, references)

    def primitives(self) -> tuple[AbstractPrimitive, ...]:
        return (PositionConstraint(self.function, self.rows, quantity=self.quantity),)


class RateCondition(AbstractJoint):
    """Rows on the velocities of a body, or of several.

    **Arguments:** as `Condition`, with `function(q, v, t)`, linear, affine or nonlinear in v; of a
    spatial body v is linear (m/s, world axes), then angular (rad/s, body axes).
    """

    kind: ClassVar[str] = "velocity"
    located: ClassVar[bool] = False
    name: str = eqx.field(static=True, converter=_fields.JOINT_NAME)
    bodies: tuple[str, ...] = eqx.field(static=True, converter=_fields.SOME_BODIES)
    function: VelocityConditionFunction = eqx.field(converter=_fields.function_of("q, v, t"))
    rows: tuple[str, ...] = eqx.field(
        default=("1",), static=True, kw_only=True, converter=_fields.suffixes_of
    )
    quantity: Quantity = eqx.field(
        default=ANGLE, static=True, kw_only=True, converter=_fields.quantity
    )

    def placements(self, references: Frames) -> Frames:
        return own_coordinates(self.bodies, references)

    def primitives(self) -> tuple[AbstractPrimitive, ...]:
        return (VelocityConstraint(self.function, self.rows, quantity=self.quantity),)


def one_or_all(arrays: Sequence[Any]) -> Any:
    """The array of one body, those of several."""
    return arrays[0] if len(arrays) == 1 else tuple(arrays)


def own_coordinates(bodies: Sequence[str], references: Frames) -> Frames:
    """The coordinates of each of the bodies, in place of frames."""
    del bodies
    return tuple(
        reference if reference.dimension is None else CoordinateFrame(jnp.zeros(0))
        for reference in references
    )
