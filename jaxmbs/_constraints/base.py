"""Joints, and the primitives that they are composed of.

A primitive is a textbook condition on marker frames (points coincide, a direction stays
perpendicular to another ...) and supplies one function: a geometric primitive
`position(frames, t)`, a velocity primitive `velocity(frames, twists, t)`, an acceleration
primitive `acceleration(frames, rates, accelerations, t)`. The constraint matrix C, b and Gamma
follow by differentiation; no primitive writes any of them down.

A joint is a name, the bodies it acts on, where its markers lie in the reference configuration,
and an ordered tuple of primitives. All joints of one class between the same kinds of body are
evaluated together, so nothing of a primitive but its numbers may differ between two of them.
"""

import abc
import enum
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, NamedTuple, TypeAlias

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._custom_types import RealScalarLike, Scalar
from .._fields import AbstractDeclared
from .._geometry import Quantity


# One PlanarFrame (or SpatialFrame) for each marker, and one PlanarTwist (or SpatialTwist). A
# primitive is written for one of the two, and a system holds only parts of one dimension.
Frames: TypeAlias = tuple[Any, ...]
Twists: TypeAlias = tuple[Any, ...]


class RowKind(enum.Enum):
    """The level at which a scalar row restricts the motion: `position`, a residual Phi(q, t) = 0
    whose derivative is the row of C (geometric rows); `velocity`, a residual g(q, v, t) = 0;
    `acceleration`, a residual A(q, v, t) dv/dt - b(q, v, t) = 0 alone, so that no state is
    projected back onto it."""

    position = "position"
    velocity = "velocity"
    acceleration = "acceleration"


class OneSided(NamedTuple):
    """The mark of a row that acts one way only, as a rope pulls and a contact pushes.

    `sign` (+1 or -1) times the multiplier is the `force` ("tension", "contact force"), positive as
    long as the part can exert it; otherwise the part acts no longer, which `lost` says ("the rope
    would be slack"). The equations and the verdicts hold the row both ways: the mark is read where
    reactions are told.

    `opens`: motions with rigid limits (`_dynamics/_rigid_limits.py`) release the row where its
    force would change its sign, and take it up again where its gap, -sign times the residual,
    closes.
    """

    sign: int
    force: str
    lost: str
    opens: bool = False


class Row(NamedTuple):
    """One scalar row: its suffix in the joint's row names, what its residual measures (of a
    velocity row: what it is the rate of), and its mark if it acts one way only."""

    suffix: str
    quantity: Quantity
    one_sided: OneSided | None = None


class AbstractPrimitive(eqx.Module):
    """A condition on the marker frames of one joint, whose rows are all of one kind."""

    row_kind: ClassVar[RowKind]
    # Is C the same for all velocities? Of a user's function its program says (`_linearity.py`).
    linear_in_rates: ClassVar[bool] = True

    @property
    @abc.abstractmethod
    def rows(self) -> tuple[Row, ...]:
        """The rows, in order. Must be known without the values of any array."""

    @abc.abstractmethod
    def position(self, frames: Frames, t: RealScalarLike) -> Float[Array, " geometric"]:
        """Residual of the geometric rows; empty for a primitive that has none."""

    @abc.abstractmethod
    def velocity(
        self, frames: Frames, twists: Twists, t: RealScalarLike
    ) -> Float[Array, " velocity"]:
        """Residual of the velocity rows; empty for a primitive that has none."""

    @abc.abstractmethod
    def acceleration(
        self, frames: Frames, rates: Frames, accelerations: Frames, t: RealScalarLike
    ) -> Float[Array, " acceleration"]:
        """Residual of the rows that are given at acceleration level, affine in `accelerations`;
        empty for a primitive that has none. `rates`, `accelerations`: how the numbers of the frames
        change (1/s), and how these changes do (1/s^2)."""

    @abc.abstractmethod
    def lever_arm(self) -> Scalar:
        """Distance (m) of the joint's point beyond its marker (a rolling disk's radius)."""

    def unambiguous(self) -> Float[Array, " rows"]:
        """The largest residual of each row that is not taken for another one."""
        return jnp.full((len(self.rows),), jnp.inf)

    def wound(self, frames: Frames) -> Float[Array, " rows"]:
        """For each row the least angle (rad) by which a rope is wound around a pulley, negative
        where it would have left it; infinite for rows without pulleys."""
        return jnp.full((len(self.rows),), jnp.inf, frames[0].dtype)


class AbstractGeometricPrimitive(AbstractPrimitive):
    """Supplies `position` alone."""

    row_kind: ClassVar[RowKind] = RowKind.position

    def velocity(
        self, frames: Frames, twists: Twists, t: RealScalarLike
    ) -> Float[Array, " velocity"]:
        del twists, t
        return jnp.zeros((0,), frames[0].dtype)

    def acceleration(
        self, frames: Frames, rates: Frames, accelerations: Frames, t: RealScalarLike
    ) -> Float[Array, " acceleration"]:
        del rates, accelerations, t
        return jnp.zeros((0,), frames[0].dtype)

    def lever_arm(self) -> Scalar:
        return jnp.asarray(0.0)


class AbstractVelocityPrimitive(AbstractPrimitive):
    """Supplies `velocity` alone (and `lever_arm`)."""

    row_kind: ClassVar[RowKind] = RowKind.velocity

    def position(self, frames: Frames, t: RealScalarLike) -> Float[Array, " geometric"]:
        del t
        return jnp.zeros((0,), frames[0].dtype)

    def acceleration(
        self, frames: Frames, rates: Frames, accelerations: Frames, t: RealScalarLike
    ) -> Float[Array, " acceleration"]:
        del rates, accelerations, t
        return jnp.zeros((0,), frames[0].dtype)


class AbstractAccelerationPrimitive(AbstractPrimitive):
    """Supplies `acceleration` and, of a servo constraint, its `servo_error`."""

    row_kind: ClassVar[RowKind] = RowKind.acceleration

    @abc.abstractmethod
    def servo_error(
        self, frames: Frames, rates: Frames, t: RealScalarLike
    ) -> Float[Array, " acceleration"]:
        """The servo error of the motion, beta (1/s times the rows' quantities); zero where
        velocities are not controlled."""

    @abc.abstractmethod
    def force_limits(self) -> Float[Array, " acceleration"]:
        """The largest magnitude of each row's multiplier that its actuator can provide; infinite
        where no limit is given."""

    def position(self, frames: Frames, t: RealScalarLike) -> Float[Array, " geometric"]:
        del t
        return jnp.zeros((0,), frames[0].dtype)

    def velocity(
        self, frames: Frames, twists: Twists, t: RealScalarLike
    ) -> Float[Array, " velocity"]:
        del twists, t
        return jnp.zeros((0,), frames[0].dtype)

    def lever_arm(self) -> Scalar:
        return jnp.asarray(0.0)


class AbstractCoordinate(eqx.Module):
    """A relative coordinate of a joint: of its SECOND body against its first, zero in the
    reference configuration. Drivers prescribe it."""

    quantity: eqx.AbstractVar[Quantity]

    @abc.abstractmethod
    def excess(self, frames: Frames, value: Scalar) -> Scalar:
        """The coordinate minus `value`, for angles without the full turns where the frames do
        not count them."""


class Release(NamedTuple):
    """A joint of fewer rows that may replace another at the same place.

    `turns` rotates the axes of each of the old joint's markers (None: leave as they are).
    `axis`: the column of the last turned marker that is the direction to report, if any.
    """

    kind: str
    primitives: tuple[AbstractPrimitive, ...]
    turns: tuple[np.ndarray, ...] | None = None
    axis: int | None = None


class AbstractJoint(AbstractDeclared):
    """A named joint as the user writes it, in the reference configuration.

    `kind` is its name in model files and reports. `located`: it has a point, which counts in
    the characteristic length. `constrains`: it has rows; a tendon has none, and is a coordinate
    for forces and drivers.
    """

    kind: ClassVar[str]
    located: ClassVar[bool] = True
    constrains: ClassVar[bool] = True
    name: eqx.AbstractVar[str]
    bodies: eqx.AbstractVar[tuple[str, ...]]

    @abc.abstractmethod
    def placements(self, references: Frames) -> Frames:
        """The world frame of each marker in the reference configuration, one per body.

        `references`: the frames of the bodies themselves (centre of mass, body axes) then.
        """

    @abc.abstractmethod
    def primitives(self) -> tuple[AbstractPrimitive, ...]:
        """The primitives that make up the joint, in row order."""

    def coordinates(self) -> Mapping[str, AbstractCoordinate]:
        """The relative coordinates that a driver may prescribe, by name."""
        return {}

    @classmethod
    def releases(cls) -> tuple[Release, ...]:
        """Joints of fewer rows that may take its place (one-row joints may always go)."""
        return ()


PositionFunction: TypeAlias = Callable[[Frames, RealScalarLike], Float[Array, " rows"]]
VelocityFunction: TypeAlias = Callable[[Frames, Twists, RealScalarLike], Float[Array, " rows"]]
