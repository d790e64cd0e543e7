from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from .. import _checks
from .._constraints import Frames, Twists
from .._custom_types import Numbers, RealScalarLike
from .._geometry import PlanarFrame, SpatialFrame
from .base import AbstractForce, AbstractLoad


class WorldWrench(AbstractLoad):
    """Constant force (N) and torque (N m) in world axes."""

    force: Float[Array, " dim"]
    torque: Float[Array, " ..."]

    def wrenches(self, frames: Frames, twists: Twists, t: RealScalarLike) -> Twists:
        del twists, t
        (frame,) = frames
        return (frame.wrench(self.force, self.torque),)


class FollowingWrench(AbstractLoad):
    """Constant force (N) and torque (N m) in the axes of the marker, which turns."""

    force: Float[Array, " dim"]
    torque: Float[Array, " ..."]

    def wrenches(self, frames: Frames, twists: Twists, t: RealScalarLike) -> Twists:
        del twists, t
        (frame,) = frames
        # A planar torque is normal to the plane whatever the angle.
        torque = frame.rotation @ self.torque if self.torque.ndim else self.torque
        return (frame.wrench(frame.rotation @ self.force, torque),)


class Applied(AbstractForce):
    """A constant force and torque on one body, in world axes.

    **Arguments:** `body`: a name; `force`: N, two or three numbers; `torque`: N m, a number in
    the plane, a vector in space (default none); `at`: world point (m) in the reference
    configuration where the force acts and to which the torque refers (default: the centre of
    mass).
    """

    kind: ClassVar[str] = "applied"
    name: str = eqx.field(static=True)
    bodies: tuple[str, ...] = eqx.field(static=True)
    force: Float[Array, " dim"]
    torque: Float[Array, " ..."]
    at: Float[Array, " dim"] | None

    def __init__(
        self,
        name: str,
        body: str,
        *,
        force: Numbers | None = None,
        torque: Numbers | None = None,
        at: Numbers | None = None,
    ):
        self.name = _checks.name(name, "a force")
        self.bodies = _checks.body_names(body, 1)
        self.force, self.torque, self.at = _wrench(force, torque, at)

    def placements(self, references: Frames) -> Frames:
        return _place(self.at, references)

    def load(self) -> WorldWrench:
        return WorldWrench(self.force, self.torque)


class Following(AbstractForce):
    """As `Applied`, in axes that are the world's in the reference configuration and turn with
    the body from there on."""

    kind: ClassVar[str] = "applied"
    name: str = eqx.field(static=True)
    bodies: tuple[str, ...] = eqx.field(static=True)
    force: Float[Array, " dim"]
    torque: Float[Array, " ..."]
    at: Float[Array, " dim"] | None

    def __init__(
        self,
        name: str,
        body: str,
        *,
        force: Numbers | None = None,
        torque: Numbers | None = None,
        at: Numbers | None = None,
    ):
        self.name = _checks.name(name, "a force")
        self.bodies = _checks.body_names(body, 1)
        self.force, self.torque, self.at = _wrench(force, torque, at)

    def placements(self, references: Frames) -> Frames:
        return _place(self.at, references)

    def load(self) -> FollowingWrench:
        return FollowingWrench(self.force, self.torque)


def _wrench(
    force: Numbers | None, torque: Numbers | None, at: Numbers | None
) -> tuple[Float[Array, " dim"], Float[Array, " ..."], Float[Array, " dim"] | None]:
    """Force, torque and point, of the dimension that the given ones agree on."""
    if force is None and torque is None:
        raise ValueError("an applied force needs `force`, `torque` or both.")
    planar = (
        _checks.shape_of(force) == (2,) if force is not None else _checks.shape_of(torque) == ()
    )
    dimension = 2 if planar else 3
    shape = () if planar else (3,)
    given_force = jnp.zeros(dimension) if force is None else force
    given_torque = jnp.zeros(shape) if torque is None else torque
    return (
        _checks.real(given_force, (dimension,), "force"),
        _checks.real(given_torque, shape, "torque"),
        None if at is None else _checks.real(at, (dimension,), "at"),
    )


def _place(at: Float[Array, " dim"] | None, references: Frames) -> Frames:
    (body,) = references
    point = body.origin if at is None else at
    if point.shape[0] == 2:
        return (PlanarFrame(point, jnp.asarray(0.0)),)
    return (SpatialFrame(point, jnp.eye(3)),)
