from typing import cast, ClassVar

import equinox as eqx
import numpy as np

from ... import _checks
from ..._custom_types import Scalar, Vector3
from ..._fields import Field, Moves, positive
from ..._geometry import SpatialFrame
from .._fields import JOINT_NAME, ONE_BODY, SPATIAL_AXIS
from .._placing import triad
from .._primitives import NoSlip, Touches
from ..base import AbstractJoint, AbstractPrimitive, Frames


_SPIN = cast(Field, SPATIAL_AXIS)._replace(moves=Moves.over_plane)


class RollingDisk(AbstractJoint):
    """A thin disk rolls on the ground's plane z = 0 without slipping: rows `.x .y` (velocity
    of the point of contact, nonholonomic) and `.z` (its height).

    **Arguments:** `bodies`: one name, whose centre of mass is the disk's centre; `axis`:
    world direction of the spin axis, reference configuration, not vertical; `radius`: m.
    """

    kind: ClassVar[str] = "rolling_disk"
    name: str = eqx.field(static=True, converter=JOINT_NAME)
    bodies: tuple[str, ...] = eqx.field(static=True, converter=ONE_BODY)
    axis: Vector3 = eqx.field(kw_only=True, converter=_SPIN)
    radius: Scalar = eqx.field(kw_only=True, converter=positive("radius", "m", "of the disk"))

    def __check_init__(self):
        """The disk touches the plane in one point."""
        known = _checks.concrete(self.axis)
        if known is not None and np.linalg.norm(known[:2]) < 1e-9 * np.linalg.norm(known):
            raise ValueError(
                "axis is vertical: the disk lies flat and has no single point of contact; tilt it."
            )

    def placements(self, references: Frames) -> tuple[SpatialFrame, ...]:
        (centre,) = references
        return (SpatialFrame(centre.origin, triad(self.axis)),)

    def primitives(self) -> tuple[AbstractPrimitive, ...]:
        return (NoSlip(self.radius), Touches(self.radius))
