"""Drivers: rheonomic constraints that prescribe a relative coordinate, and servo constraints, whose
force is the control.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .. import _checks, _settings
from .._custom_types import Numbers, RealScalarLike, Scalar, Setting
from .._fields import AbstractDeclared, Field, optional, part_name, positive, reference, word
from ._motions import AbstractMotion
from ._primitives import Driven
from ._user import AbstractConstraint
from .base import (
    AbstractAccelerationPrimitive,
    AbstractCoordinate,
    AbstractJoint,
    AbstractPrimitive,
    Frames,
    Row,
    RowKind,
)


# --------------------------------------------------------------------------------------------------
# Servo constraints: constraints as a wanted motion, whose force is the control.
# --------------------------------------------------------------------------------------------------


# A residual of this part of half a turn may be more on the other side, and the steps of a run must
# not pass over what is left of the turn.
_RANGE_FRACTION = 0.75

TimeConstant = Float[Array, ""] | Float[Array, " rows"] | Float[Array, "rows rows"]


class ServoRows(AbstractAccelerationPrimitive):
    """Primitives of a servo constraint, as rows at acceleration level whose error decays."""

    primitives: tuple[AbstractPrimitive, ...]
    time_constant: TimeConstant | None
    limit: Float[Array, ""] | Float[Array, " rows"] | None

    @property
    def rows(self) -> tuple[Row, ...]:
        return tuple(row for primitive in self.primitives for row in primitive.rows)

    def servo_error(
        self, frames: Frames, rates: Frames, t: RealScalarLike
    ) -> Float[Array, " acceleration"]:
        t = jnp.asarray(t, frames[0].dtype)
        gap, change = jax.jvp(self._position, (frames, t), (rates, jnp.ones_like(t)))
        twists = tuple(f.twist(rate) for f, rate in zip(frames, rates, strict=True))
        velocity = [
            p.velocity(frames, twists, t)
            if p.row_kind is RowKind.velocity
            else jnp.zeros(len(p.rows))
            for p in self.primitives
        ]
        # What is more is as likely to be less.
        known = jnp.abs(gap) < _RANGE_FRACTION * jnp.concatenate(
            [p.unambiguous() for p in self.primitives]
        )
        return jnp.where(known, change + jnp.concatenate(velocity) + self._decay(gap), jnp.nan)

    def acceleration(
        self, frames: Frames, rates: Frames, accelerations: Frames, t: RealScalarLike
    ) -> Float[Array, " acceleration"]:
        t = jnp.asarray(t, frames[0].dtype)
        error, change = jax.jvp(
            self.servo_error, (frames, rates, t), (rates, accelerations, jnp.ones_like(t))
        )
        return change + self._decay(error)

    def force_limits(self) -> Float[Array, " acceleration"]:
        limit = jnp.asarray(jnp.inf if self.limit is None else self.limit)
        return jnp.broadcast_to(limit, (len(self.rows),))

    def _position(self, frames: Frames, t: RealScalarLike) -> Float[Array, " acceleration"]:
        """Phi, zero in velocity rows."""
        return jnp.concatenate(
            [
                p.position(frames, t) if p.row_kind is RowKind.position else _zeros(p)
                for p in self.primitives
            ]
        )

    def _decay(self, error: Float[Array, " acceleration"]) -> Float[Array, " acceleration"]:
        """P^-1 of an error."""
        if self.time_constant is None:
            return jnp.zeros_like(error)
        if self.time_constant.ndim == 2:
            return jnp.linalg.solve(self.time_constant, error)
        return error / self.time_constant


class Servo(AbstractJoint):
    """A servo constraint: another constraint as the motion that is wanted, and its force as the
    control (Chen 2005, 2009).

    How far the motion is from the wanted one is beta, and it decays as

        d(beta)/dt = -P^-1 beta,

    beta = g(q, v, t) of the rows of a velocity constraint, dPhi/dt + P^-1 Phi of those of a
    geometric one, whose Phi then decays likewise. The force is the one of least size in the metric
    of M^-1 that does this, C^T lambda with C the rows of the constraint (Zhao et al. 2018, eq. 72,
    takes M A^T (A A^T)^-1 in the place of M^1/2 (A M^-1/2)^+ in front of P^-1 beta: a larger force
    to the same end). `ServoControl` has it carried by given actuators.

    A run may start from any state, and none is taken back onto the constraint. Angles in space and
    threads of screws are known up to full turns: an error of more than 3/8 of a turn (of a
    pitch) is not a number, and ends a run with `servo_error_unknown`.

    **Arguments:**

    - `constraint`: a joint, whose name, bodies and rows are those of the servo.
    - `time_constant`: P (s), symmetric positive definite (rows, rows), its diagonal (rows,), or one
      number for all. None: beta stays as it is, as with the force of an ideal constraint alone.
    - `limit`: the largest size of the force of each row (N or N m), one number or (rows,), default
      none. It is reported where more is needed (`controls`, and what a trajectory prints), and
      nothing is cut off. It counts for the ideal force: the actuators of a `ServoControl` have
      limits of their own.

    **Raises:** `TypeError` or `ValueError` that names what is wrong.
    """

    kind: ClassVar[str] = "servo"
    located: ClassVar[bool] = False
    constraint: AbstractJoint
    time_constant: TimeConstant | None
    limit: Float[Array, ""] | Float[Array, " rows"] | None

    def __init__(
        self,
        constraint: Setting[AbstractJoint],
        time_constant: Numbers | None = None,
        *,
        limit: Numbers | None = None,
    ):
        self.constraint = _settings.instance(
            constraint, AbstractJoint, "constraint", "a joint, such as generalized.RateCondition()"
        )
        kinds = {p.row_kind for p in constraint.primitives()}
        if RowKind.acceleration in kinds:
            raise ValueError(
                f"constraint {_checks.shown(constraint.name)} is given at acceleration level "
                "already; a servo wants one of positions or velocities."
            )
        if not constraint.constrains:
            raise ValueError(
                f"constraint {_checks.shown(constraint.name)} ({constraint.kind}) has no rows; a "
                "Driver with a time_constant is the servo of its translation."
            )
        rows = sum(len(p.rows) for p in constraint.primitives())
        self.time_constant = time_constant_of(time_constant, rows)
        self.limit = (
            None if limit is None else _checks.positive_numbers(limit, rows, "row", "limit")
        )

    @property
    def name(self) -> str:
        return self.constraint.name

    @property
    def bodies(self) -> tuple[str, ...]:
        return self.constraint.bodies

    def placements(self, references: Frames) -> Frames:
        return self.constraint.placements(references)

    def primitives(self) -> tuple[AbstractPrimitive, ...]:
        return (ServoRows(self.constraint.primitives(), self.time_constant, self.limit),)


class ServoConstraint(AbstractConstraint):
    """A constraint on coordinates as the motion that is wanted: that of a `Servo`.

    **Arguments:** `constraint`: a `PositionConstraint`, `VelocityConstraint` or
    `PfaffianConstraint`; `time_constant`, `limit`: as for `Servo`.
    """

    constraint: AbstractConstraint
    time_constant: TimeConstant | None
    limit: Float[Array, ""] | Float[Array, " rows"] | None

    def __init__(
        self,
        constraint: Setting[AbstractConstraint],
        time_constant: Numbers | None = None,
        *,
        limit: Numbers | None = None,
    ):
        self.constraint = _settings.instance(
            constraint,
            AbstractConstraint,
            "constraint",
            "a constraint, such as VelocityConstraint()",
        )
        servo = Servo(self.constraint.on("servo", "body"), time_constant, limit=limit)
        self.time_constant, self.limit = servo.time_constant, servo.limit

    def on(self, name: str, bodies: str | Sequence[str]) -> Servo:
        return Servo(self.constraint.on(name, bodies), self.time_constant, limit=self.limit)


def _zeros(primitive: AbstractPrimitive) -> Float[Array, " rows"]:
    return jnp.zeros((len(primitive.rows),))


def time_constant_of(value: Numbers | None, rows: int) -> TimeConstant | None:
    """P of so many rows.

    **Raises:** `ValueError` for what is not positive (definite), not symmetric, or has another
    number of rows.
    """
    if value is None:
        return None
    shape = _checks.shape_of(value)
    if shape not in ((), (rows,), (rows, rows)):
        raise ValueError(
            f"time_constant must be one number (s), {rows} of them (one for each row), or a matrix "
            f"of {rows} rows and columns, got an array of shape {list(shape)}."
        )
    found = _checks.real(value, shape, "time_constant")
    known = _checks.concrete(found)
    if known is None:
        return found
    known = np.asarray(known)
    if known.ndim < 2:
        definite = bool(np.all(known > 0))
    else:
        definite = np.allclose(known, known.T, rtol=1e-9, atol=0) and bool(
            np.all(np.linalg.eigvalsh(known) > 0)
        )
    if not definite:
        raise ValueError(
            f"time_constant must be greater than zero (s), as a matrix symmetric and positive "
            f"definite, got {known.tolist()}; None leaves errors as they are."
        )
    return found


def _motion(value: AbstractMotion, what: str) -> AbstractMotion:
    if not isinstance(value, AbstractMotion):
        raise TypeError(
            f"{what} must be a motion, such as jaxmbs.motions.Linear(rate=1.0), got "
            f"{_checks.shown(value)}."
        )
    return value


_MOTION: Callable[[AbstractMotion], AbstractMotion] = Field(
    "motion", "", "of the coordinate over time", dict[str, Any], "a table", _motion, holds="motion"
)


class Driver(AbstractDeclared):
    """A rheonomic constraint on one relative coordinate of a joint, or on one coordinate of a
    generalized body: one row.

    **Arguments:** `joint`: its name, or the body's; `coordinate`: "translation" (translational,
    cylindrical) or "rotation" (revolute, cylindrical), of the joint's SECOND body against its
    first, zero in the reference configuration, or the name of the body's coordinate, as it counts;
    `motion`: its value over time (m or rad). `time_constant` (s): if given, the driver is a servo:
    a coordinate that deviates from the motion approaches it with that time constant (`Servo`), in
    space an angle by at most 3/8 of a turn. `limit` (N or N m): the largest size of a servo's
    force, reported where more is needed.

    The driver acts at its joint's markers, on both bodies of the joint.

    **Raises:** `TypeError` for a motion that is none.
    """

    kind: ClassVar[str] = "driver"
    name: str = eqx.field(static=True, converter=part_name("a driver"))
    joint: str = eqx.field(static=True, converter=reference("joint", "that it drives"))
    coordinate: str = eqx.field(
        static=True, converter=word("coordinate", "of the joint", "translation or rotation")
    )
    motion: AbstractMotion = eqx.field(converter=_MOTION)
    time_constant: Scalar | None = eqx.field(
        default=None,
        kw_only=True,
        converter=optional(
            positive("time_constant", "s", "in which the error of a servo decays"), "no servo"
        ),
    )
    limit: Scalar | None = eqx.field(
        default=None,
        kw_only=True,
        converter=optional(
            positive("limit", "N or N m", "largest size of a servo's force, to be reported"), "none"
        ),
    )

    def __check_init__(self):
        """Limits are those of servos."""
        if self.limit is not None and not self.servo:
            raise ValueError(
                "limit is that of a servo; give time_constant too, or leave it out (the reactions "
                "of a driver tell its force)."
            )

    @property
    def servo(self) -> bool:
        """Is the coordinate taken to the motion by and by, and not held to it?"""
        return self.time_constant is not None

    def primitive(
        self, said: str, coordinates: Mapping[str, AbstractCoordinate]
    ) -> Driven | ServoRows:
        """The row that the driver adds to what has these coordinates and is called so.

        **Raises:** `ValueError` for an unknown coordinate.
        """
        if self.coordinate not in coordinates:
            offer = " or ".join(map(repr, coordinates)) or "none that can be driven"
            raise ValueError(
                f"{said} has no coordinate {_checks.shown(self.coordinate)}; it has {offer}."
            )
        driven = Driven(coordinates[self.coordinate], self.motion)
        return ServoRows((driven,), self.time_constant, self.limit) if self.servo else driven
