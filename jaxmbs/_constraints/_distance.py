from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .. import _checks
from .._custom_types import Scalar
from .._fields import optional, positive, two_points
from ._fields import JOINT_NAME, TWO_BODIES, unturned_frames
from ._primitives import Apart
from .base import AbstractJoint, AbstractPrimitive, Frames


class Distance(AbstractJoint):
    """The distance of two points stays `length`, in the plane or in space: one row.

    **Arguments:** `bodies`: two names; `points`: one world point (m) on each body, reference
    configuration; `length`: m, > 0; the reference distance if left out.
    """

    kind: ClassVar[str] = "distance"
    name: str = eqx.field(static=True, converter=JOINT_NAME)
    bodies: tuple[str, ...] = eqx.field(static=True, converter=TWO_BODIES)
    points: Float[Array, "2 dim"] = eqx.field(
        kw_only=True, converter=two_points("points", "in the reference configuration")
    )
    length: Scalar | None = eqx.field(
        default=None,
        kw_only=True,
        converter=optional(
            positive("length", "m", "of the rod"),
            "the distance of the points",
            lambda rod: rod.reference_distance(),
        ),
    )

    def __check_init__(self):
        """Apart from each other."""
        known = _checks.concrete(self.points[0] - self.points[1])
        if known is not None and np.max(np.abs(known)) < _checks.SMALLEST:
            raise ValueError(
                "the two points coincide, so the distance has no direction; use a revolute or "
                "spherical joint to keep points together."
            )

    def placements(self, references: Frames) -> Frames:
        del references
        return unturned_frames(self.points)

    def primitives(self) -> tuple[AbstractPrimitive, ...]:
        return (Apart(self.reference_distance() if self.length is None else self.length),)

    def reference_distance(self) -> Scalar:
        """Distance between the two points (m)."""
        return jnp.linalg.norm(self.points[0] - self.points[1])
