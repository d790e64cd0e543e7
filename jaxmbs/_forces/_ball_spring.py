from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from .._constraints import Frames, Twists
from .._constraints._placing import unturned_frames
from .._custom_types import Quaternion, RealScalarLike, Scalar
from .._fields import number, vector
from .._geometry import (
    quaternion_exponential,
    quaternion_from_rotation,
    quaternion_logarithm,
    quaternion_product,
    rotated,
)
from ._fields import FORCE_NAME, TWO_BODIES
from .base import AbstractBodyForce, AbstractLoad


_REST = vector("rest", "rad", "rotation vector without moment, world axes", 3)


class BallLoad(AbstractLoad):
    """A moment along the rotation vector x of the second frame against the first, measured from
    `rest`: the gradient of 1/2 stiffness |x|^2, as a turn changes |x| along x alone."""

    stiffness: Scalar
    damping: Scalar
    rest: Quaternion

    def wrenches(self, frames: Frames, twists: Twists, t: RealScalarLike) -> Twists:
        del t
        spin = twists[1].angular - twists[0].angular
        moment = -self.stiffness * rotated(frames[1].rotation, self._rotation(frames))
        moment = moment - self.damping * spin
        return tuple(
            frame.wrench(jnp.zeros_like(moment), own)
            for frame, own in zip(frames, (-moment, moment), strict=True)
        )

    def potential(self, frames: Frames) -> Scalar:
        x = self._rotation(frames)
        return 0.5 * self.stiffness * (x @ x)

    def _rotation(self, frames: Frames) -> Float[Array, "3"]:
        """x, along the second frame's axes."""
        turn = quaternion_from_rotation(frames[0].rotation.T @ frames[1].rotation)
        away = quaternion_product(self.rest * jnp.asarray([1.0, -1.0, -1.0, -1.0]), turn)
        # Both quaternions of a turn are the same turn; the shorter way is meant.
        return quaternion_logarithm(jnp.where(away[0] < 0, -away, away))


class BallSpring(AbstractBodyForce):
    """A spring and a damper against the turning of one body against another, the same about every
    axis:

        moment on the second body = -stiffness x - damping w,

    and the opposite on the first, with x the rotation vector (at most half a turn) that leads from
    the rest to the present orientation of the second body against the first, and w the angular
    velocity of the second against the first.

    **Arguments:** `bodies`: two names; `stiffness`: N m/rad; `damping`: N m s/rad; `rest`: the
    rotation vector, world axes, from the reference configuration to that without moment (rad).
    """

    kind: ClassVar[str] = "ball_spring"
    strengths: ClassVar[tuple[str, ...]] = ("stiffness", "damping")
    name: str = eqx.field(static=True, converter=FORCE_NAME)
    bodies: tuple[str, ...] = eqx.field(static=True, converter=TWO_BODIES)
    stiffness: Scalar = eqx.field(
        default=0.0, kw_only=True, converter=number("stiffness", "N m/rad", "of the spring")
    )
    damping: Scalar = eqx.field(
        default=0.0, kw_only=True, converter=number("damping", "N m s/rad", "of the damper")
    )
    rest: Float[Array, "3"] = eqx.field(default=(0.0, 0.0, 0.0), kw_only=True, converter=_REST)

    def placements(self, references: Frames) -> Frames:
        if any(frame.dimension != 3 for frame in references):
            raise ValueError(
                "it acts between bodies in space; in the plane a torsion spring in a revolute "
                "joint does the same."
            )
        return unturned_frames(jnp.stack([frame.origin for frame in references]))

    def load(self) -> BallLoad:
        return BallLoad(self.stiffness, self.damping, quaternion_exponential(self.rest))
