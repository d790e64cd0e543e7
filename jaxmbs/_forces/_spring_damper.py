from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .. import _checks
from .._constraints import Frames, Twists
from .._constraints._placing import unturned_frames
from .._custom_types import RealScalarLike, Scalar
from .._fields import not_negative, number, optional, two_points
from ._fields import FORCE_NAME, TWO_BODIES
from .base import AbstractBodyForce, AbstractLoad


class SpringDamperLoad(AbstractLoad):
    """Tension along the line between two points.

    Where the points coincide the line has no direction: it is taken as none there, which leaves
    the force stiffness (P_2 - P_1), that of a spring without natural length, and its derivative.
    """

    stiffness: Scalar
    damping: Scalar
    length: Scalar

    def wrenches(self, frames: Frames, twists: Twists, t: RealScalarLike) -> Twists:
        del t
        between = frames[1].origin - frames[0].origin
        speed = twists[1].linear - twists[0].linear
        distance = _distance(between)
        apart = distance > 0
        along = jnp.where(apart, between, 0.0) / jnp.where(apart, distance, 1.0)
        # stiffness L along = stiffness (P_2 - P_1) is smooth, the rest is along the line.
        rest = self.damping * (along @ speed) - self.stiffness * self.length
        tension = self.stiffness * between + rest * along
        return tuple(
            frame.wrench(force, jnp.zeros_like(twist.angular))
            for frame, twist, force in zip(frames, twists, (tension, -tension), strict=True)
        )

    def potential(self, frames: Frames) -> Scalar:
        distance = _distance(frames[1].origin - frames[0].origin)
        return 0.5 * self.stiffness * (distance - self.length) ** 2


class SpringDamper(AbstractBodyForce):
    """A spring and a damper in parallel between two points:

        tension = stiffness (L - length) + damping dL/dt,

    with L the distance of the points. It pulls both together where it is positive.

    **Arguments:** `bodies`: two names; `points`: one world point (m) on each body, reference
    configuration; `stiffness`: N/m; `damping`: N s/m; `length`: the natural length (m), the
    reference distance if left out.
    """

    kind: ClassVar[str] = "spring_damper"
    strengths: ClassVar[tuple[str, ...]] = ("stiffness", "damping")
    name: str = eqx.field(static=True, converter=FORCE_NAME)
    bodies: tuple[str, ...] = eqx.field(static=True, converter=TWO_BODIES)
    points: Float[Array, "2 dim"] = eqx.field(
        kw_only=True, converter=two_points("points", "in the reference configuration")
    )
    stiffness: Scalar = eqx.field(
        kw_only=True, converter=number("stiffness", "N/m", "of the spring")
    )
    damping: Scalar = eqx.field(
        default=0.0, kw_only=True, converter=number("damping", "N s/m", "of the damper")
    )
    length: Scalar | None = eqx.field(
        default=None,
        kw_only=True,
        converter=optional(
            not_negative("length", "m", "natural length"),
            "the distance of the points",
            lambda spring: spring.natural_length(),
        ),
    )

    def __check_init__(self):
        """A spring that pushes needs a direction to push in."""
        if self.length is None:
            return
        known = _checks.concrete(self.points[1] - self.points[0])
        length = _checks.concrete(self.length)
        if known is not None and length is not None and length > 0 and not np.any(known):
            raise ValueError(
                f"the two points coincide, so a spring of natural length {length:g} has no "
                "direction to push in; move one, or give length = 0."
            )

    def placements(self, references: Frames) -> Frames:
        del references
        return unturned_frames(self.points)

    def load(self) -> SpringDamperLoad:
        length = self.natural_length() if self.length is None else self.length
        return SpringDamperLoad(self.stiffness, self.damping, length)

    def natural_length(self) -> Scalar:
        """Natural length of a spring without a given one (m)."""
        return _distance(self.points[1] - self.points[0])


def _distance(between: Float[Array, " dim"]) -> Scalar:
    """Length of a vector, of derivative zero where it vanishes."""
    square = between @ between
    apart = square > 0
    return jnp.where(apart, jnp.sqrt(jnp.where(apart, square, 1.0)), 0.0)
