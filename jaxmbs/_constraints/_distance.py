from collections.abc import Sequence
from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .. import _checks
from .._custom_types import Numbers, Scalar
from .._naming import left_out
from ._placing import unturned_frames
from ._primitives import Apart
from .base import AbstractJoint, AbstractPrimitive, Frames


class Distance(AbstractJoint):
    """The distance of two points stays `length`, in the plane or in space: one row.

    **Arguments:** `bodies`: two names; `points`: one world point (m) on each body, reference
    configuration; `length`: m, > 0; the reference distance if left out.
    """

    kind: ClassVar[str] = "distance"
    name: str = eqx.field(static=True)
    bodies: tuple[str, ...] = eqx.field(static=True)
    points: Float[Array, "2 dim"]
    length: Scalar | None = eqx.field(metadata=left_out(lambda rod: rod.reference_distance()))

    def __init__(
        self,
        name: str,
        bodies: Sequence[str],
        *,
        points: Numbers,
        length: Numbers | None = None,
    ):
        self.name = _checks.name(name, "a joint")
        self.bodies = _checks.body_names(bodies, 2)
        dimension = 2 if _checks.shape_of(points)[-1:] == (2,) else 3
        self.points = _checks.real(points, (2, dimension), "points")
        known = _checks.concrete(self.points[0] - self.points[1])
        if known is not None and np.max(np.abs(known)) < _checks.SMALLEST:
            raise ValueError(
                "the two points coincide, so the distance has no direction; use a revolute or "
                "spherical joint to keep points together."
            )
        self.length = None if length is None else _checks.positive(length, "length")

    def placements(self, references: Frames) -> Frames:
        del references
        return unturned_frames(self.points)

    def primitives(self) -> tuple[AbstractPrimitive, ...]:
        return (Apart(self.reference_distance() if self.length is None else self.length),)

    def reference_distance(self) -> Scalar:
        """Of the two points (m)."""
        return jnp.linalg.norm(self.points[0] - self.points[1])
