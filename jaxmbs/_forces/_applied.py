"""Constant forces and torques on one body."""

from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from .. import _checks
from .._constraints import Frames, Twists
from .._constraints._placing import unturned_frame
from .._custom_types import Numbers, RealScalarLike
from .._fields import Field, Moves, optional, point, vector
from ._fields import FORCE_NAME, ONE_BODY
from .base import AbstractBodyForce, AbstractExternalLoad


def _torque(value: Numbers, what: str) -> Float[Array, " ..."]:
    """A number in the plane, a vector in space."""
    return _checks.real(value, () if _checks.shape_of(value) == () else (3,), what)


_AT = optional(point("at", "in the world, reference configuration"), "the centre of mass")
_FORCE = optional(vector("force", "N", "along the axes that it follows"), "zero")
_TORQUE = optional(
    Field(
        "torque",
        "N m",
        "about `at`, in the same axes",
        float | list[float],
        "a number, 3 numbers in space",
        _torque,
        moves=Moves.vector,
    ),
    "zero",
)


class WorldWrench(AbstractExternalLoad):
    """Constant force (N) and torque (N m) in world axes."""

    force: Float[Array, " dim"]
    torque: Float[Array, " ..."]

    def wrenches(self, frames: Frames, twists: Twists, t: RealScalarLike) -> Twists:
        del twists, t
        (frame,) = frames
        return (frame.wrench(self.force, self.torque),)


class FollowingWrench(AbstractExternalLoad):
    """Constant force (N) and torque (N m) in the axes of the marker, which turns."""

    force: Float[Array, " dim"]
    torque: Float[Array, " ..."]

    def wrenches(self, frames: Frames, twists: Twists, t: RealScalarLike) -> Twists:
        del twists, t
        (frame,) = frames
        # A planar torque is normal to the plane whatever the angle.
        moment = frame.rotation @ self.torque if self.torque.ndim else self.torque
        return (frame.wrench(frame.rotation @ self.force, moment),)


class AbstractAppliedWrench(AbstractBodyForce):
    """A force and torque on one body at one point."""

    force: eqx.AbstractVar[Float[Array, " dim"] | None]
    torque: eqx.AbstractVar[Float[Array, " ..."] | None]
    at: eqx.AbstractVar[Float[Array, " dim"] | None]

    def __check_init__(self):
        """Force, torque and point are of one dimension."""
        if self.force is None and self.torque is None:
            raise ValueError("an applied force needs `force`, `torque` or both.")
        force, moment = self.wrench()
        planar = force.shape == (2,)
        if moment.shape != (() if planar else (3,)):
            wanted = "a number" if planar else "a vector of 3 numbers"
            raise ValueError(
                f"torque must be {wanted} where force has {force.shape[0]} numbers, got shape "
                f"{list(moment.shape)}."
            )
        if self.at is not None:
            _checks.real(self.at, force.shape, "at")

    def wrench(self) -> tuple[Float[Array, " dim"], Float[Array, " ..."]]:
        """Force (N) and torque (N m), zero where they were left out."""
        given = [x for x in (self.force, self.torque) if x is not None]
        planar = given[0].shape in ((), (2,))
        force = jnp.zeros(2 if planar else 3) if self.force is None else self.force
        moment = jnp.zeros(() if planar else 3) if self.torque is None else self.torque
        return force, moment

    def placements(self, references: Frames) -> Frames:
        (body,) = references
        if self.at is not None:
            return unturned_frame(self.at)
        dimension = self.wrench()[0].shape[0]
        if body.origin.shape != (dimension,):
            raise ValueError(
                f"it is of dimension {dimension} and the bodies are of dimension "
                f"{body.origin.shape[0]}."
            )
        return unturned_frame(body.origin)


class Applied(AbstractAppliedWrench):
    """A constant force and torque on one body, in world axes.

    **Arguments:** `bodies`: the name of one body; `force`: N, two or three numbers; `torque`:
    N m, a number in the plane, a vector in space; either is zero if left out; `at`: world point
    (m) in the reference configuration where the force acts and to which the torque refers
    (default: the centre of mass).
    """

    kind: ClassVar[str] = "applied"
    strengths: ClassVar[tuple[str, ...]] = ("force", "torque")
    name: str = eqx.field(static=True, converter=FORCE_NAME)
    bodies: tuple[str, ...] = eqx.field(static=True, converter=ONE_BODY)
    at: Float[Array, " dim"] | None = eqx.field(default=None, kw_only=True, converter=_AT)
    force: Float[Array, " dim"] | None = eqx.field(default=None, kw_only=True, converter=_FORCE)
    torque: Float[Array, " ..."] | None = eqx.field(default=None, kw_only=True, converter=_TORQUE)

    def load(self) -> WorldWrench:
        return WorldWrench(*self.wrench())


class Following(AbstractAppliedWrench):
    """As `Applied`, in axes that are the world's in the reference configuration and turn with
    the body from there on."""

    kind: ClassVar[str] = "applied"
    strengths: ClassVar[tuple[str, ...]] = ("force", "torque")
    name: str = eqx.field(static=True, converter=FORCE_NAME)
    bodies: tuple[str, ...] = eqx.field(static=True, converter=ONE_BODY)
    at: Float[Array, " dim"] | None = eqx.field(default=None, kw_only=True, converter=_AT)
    force: Float[Array, " dim"] | None = eqx.field(default=None, kw_only=True, converter=_FORCE)
    torque: Float[Array, " ..."] | None = eqx.field(default=None, kw_only=True, converter=_TORQUE)

    def load(self) -> FollowingWrench:
        return FollowingWrench(*self.wrench())
