"""Constraints that are given as functions or as linear equations: of positions, of velocities
(Pfaffian), of accelerations, and of the own coordinates of bodies.
"""

import abc
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Literal, TypeAlias

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from .. import _checks, _settings
from .._custom_types import Numbers, RealScalarLike, Scalar
from .._fields import body_names, Field, Moves
from .._geometry import ANGLE, CoordinateFrame, LENGTH, Quantity
from . import _fields
from ._fields import JOINT_NAME, unturned_frames
from ._primitives import ConstantCoefficients, PositionCondition, VelocityCondition
from .base import (
    AbstractAccelerationPrimitive,
    AbstractGeometricPrimitive,
    AbstractJoint,
    AbstractPrimitive,
    AbstractVelocityPrimitive,
    Frames,
    PositionFunction,
    Row,
    Twists,
    VelocityFunction,
)


class Geometric(AbstractJoint):
    """A geometric constraint written as a plain function of marker frames and time.

    **Arguments:**

    - `function(frames, t)`: residual (rows,), zero when satisfied; smooth. An `eqx.Module`
      with array fields makes them parameters of the system.
    - `markers`: pairs (body, world point in the reference configuration); a body may come more
      than once. The markers have the world's axes then.
    - `rows`: how many rows, or their suffixes. `quantity`: the residual's unit, "length" or
      "angle".
    """

    kind: ClassVar[str] = "geometric"
    name: str = eqx.field(static=True)
    bodies: tuple[str, ...] = eqx.field(static=True)
    at: Float[Array, "markers dim"] = eqx.field(converter=_fields.MARKER_POINTS)
    function: PositionFunction
    labels: tuple[Row, ...] = eqx.field(static=True)

    def __init__(
        self,
        name: str,
        function: PositionFunction,
        markers: Sequence[tuple[str, Numbers]],
        *,
        rows: int | Sequence[str] = 1,
        quantity: Literal["length", "angle"] = "length",
    ):
        self.name = _checks.name(name, "a joint")
        self.bodies, self.at = _fields.markers(markers)
        self.function = _settings.function(function, "function", arguments="frames, t")
        if quantity not in ("length", "angle"):
            raise ValueError(
                f"quantity must be 'length' or 'angle', got {_checks.shown(quantity)}."
            )
        self.labels = _fields.labels_of(rows, LENGTH if quantity == "length" else ANGLE)

    def placements(self, references: Frames) -> Frames:
        del references
        return unturned_frames(self.at)

    def primitives(self) -> tuple[AbstractPrimitive, ...]:
        return (PositionCondition(self.function, self.labels),)


class Velocity(AbstractJoint):
    """A velocity constraint written as a plain function of marker frames, twists and time.

    **Arguments:** as `Geometric`, with `function(frames, twists, t)`: residual (rows,), linear,
    affine or nonlinear in the twists.
    """

    kind: ClassVar[str] = "velocity"
    name: str = eqx.field(static=True)
    bodies: tuple[str, ...] = eqx.field(static=True)
    at: Float[Array, "markers dim"] = eqx.field(converter=_fields.MARKER_POINTS)
    function: VelocityFunction
    labels: tuple[Row, ...] = eqx.field(static=True)

    def __init__(
        self,
        name: str,
        function: VelocityFunction,
        markers: Sequence[tuple[str, Numbers]],
        *,
        rows: int | Sequence[str] = 1,
    ):
        self.name = _checks.name(name, "a joint")
        self.bodies, self.at = _fields.markers(markers)
        self.function = _settings.function(function, "function", arguments="frames, twists, t")
        self.labels = _fields.labels_of(rows, LENGTH)

    def placements(self, references: Frames) -> Frames:
        del references
        return unturned_frames(self.at)

    def primitives(self) -> tuple[AbstractPrimitive, ...]:
        return (VelocityCondition(self.function, self.labels),)


# --------------------------------------------------------------------------------------------------
# Rows that are linear in velocities or in accelerations.
# --------------------------------------------------------------------------------------------------


# Of the state: coordinates and what else the rows depend on.
RowsFunction: TypeAlias = Callable[..., Float[Array, " ..."]]


class LinearRows(eqx.Module):
    """`count` rows of a matrix and a constant term for each, functions of the state or arrays."""

    matrix: RowsFunction | Float[Array, "rows n"]
    offset: RowsFunction | Float[Array, " rows"]
    count: int = eqx.field(static=True)

    def __init__(self, matrix: Any, offset: Any, count: int, state: str):
        """`state`: the arguments of functions, "q, t"."""
        given: tuple[Any, Any] = matrix, offset
        self.count = count
        for value, what in zip(given, ("matrix", "offset"), strict=True):
            if callable(value):
                _settings.takes_arguments(value, what, state)
        self.matrix = given[0] if callable(matrix) else _array_of_rows(matrix, count)
        self.offset = given[1] if callable(offset) else _array_beside(offset, count)

    def __call__(
        self, *state: Any, columns: int
    ) -> tuple[Float[Array, "rows n"], Float[Array, " rows"]]:
        """The matrix with this number of columns, and the constant terms, at a state."""
        matrix, offset = (
            jnp.asarray(x(*state) if callable(x) else x, float) for x in (self.matrix, self.offset)
        )
        return _shaped_matrix(matrix, self.count, columns), _shaped_offset(offset, self.count)


def _array_of_rows(value: Any, count: int) -> Float[Array, "rows n"]:
    shape = _checks.shape_of(value)
    if 0 in shape or len(shape) not in ((1, 2) if count == 1 else (2,)):
        raise ValueError(
            f"matrix must be a function, or an array of {count} row(s) with a column for each "
            f"velocity, got {_checks.shown(value)}."
        )
    return _shaped_matrix(_checks.real(value, shape, "matrix"), count, shape[-1])


def _array_beside(value: Any, count: int) -> Float[Array, " rows"]:
    shape = (count,) if _checks.shape_of(value) == (count,) else ()
    return _shaped_offset(_checks.real(value, shape, "offset"), count)


def _shaped_matrix(value: Float[Array, " ..."], rows: int, columns: int) -> Float[Array, "rows n"]:
    """The matrix in the shape (rows, columns); a single row may be given as a vector."""
    if value.shape != (rows, columns) and not (rows == 1 and value.shape == (columns,)):
        raise ValueError(
            f"matrix must be of shape [{rows}, {columns}], got {list(value.shape)}; say rows=... "
            "if it has another number of rows."
        )
    return value.reshape(rows, columns)


def _shaped_offset(value: Float[Array, " ..."], rows: int) -> Float[Array, " rows"]:
    """One number counts for all rows."""
    if value.shape not in ((), (rows,)):
        raise ValueError(f"offset must be a vector of {rows} numbers, got {list(value.shape)}.")
    return jnp.broadcast_to(value, (rows,))


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


# --------------------------------------------------------------------------------------------------
# Conditions on the own coordinates of bodies that have such.
# --------------------------------------------------------------------------------------------------


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
        self.function = _settings.function(function, "function", arguments="q, t")
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
        self.function = _settings.function(function, "function", arguments="q, v, t")
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


# --------------------------------------------------------------------------------------------------
# Constraints that are given as linear equations of accelerations.
# --------------------------------------------------------------------------------------------------


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
