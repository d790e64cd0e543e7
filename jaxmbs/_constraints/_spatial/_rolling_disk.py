from collections.abc import Sequence
from typing import ClassVar

import equinox as eqx
import numpy as np

from ... import _checks
from ..._custom_types import Numbers, Scalar, Vector3
from ..._geometry import SpatialFrame
from .._placing import triad
from .._primitives import NoSlip, Touches
from ..base import AbstractJoint, AbstractPrimitive, Frames


class RollingDisk(AbstractJoint):
    """A thin disk rolls on the ground's plane z = 0 without slipping: rows `.x .y` (velocity
    of the point of contact, nonholonomic) and `.z` (its height).

    **Arguments:** `bodies`: one name, whose centre of mass is the disk's centre; `axis`:
    world direction of the spin axis, reference configuration, not vertical; `radius`: m.
    """

    kind: ClassVar[str] = "rolling_disk"
    name: str = eqx.field(static=True)
    bodies: tuple[str, ...] = eqx.field(static=True)
    axis: Vector3
    radius: Scalar

    def __init__(self, name: str, bodies: Sequence[str], *, axis: Numbers, radius: Numbers):
        self.name = _checks.name(name, "a joint")
        self.bodies = _checks.body_names(bodies, 1)
        self.axis = _checks.direction(axis, 3, "axis")
        self.radius = _checks.positive(radius, "radius")
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
