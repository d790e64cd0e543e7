from typing import ClassVar

import equinox as eqx

from ..._custom_types import Vector2
from ..._fields import direction, point
from ..._geometry import PlanarFrame
from .._fields import JOINT_NAME, ONE_BODY
from .._placing import line_angle
from .._primitives import NoVelocityAcross
from ..base import AbstractJoint, AbstractPrimitive, Frames


class KnifeEdge(AbstractJoint):
    """No velocity across an edge carried by one body (nonholonomic): one row, the velocity
    at the point along `direction` turned by +90 deg (Wojtyra & Fraczek 2013, eq. 30).

    **Arguments:** `bodies`: one name; `at`: world point (m); `direction`: world direction of
    the edge, reference configuration.
    """

    kind: ClassVar[str] = "knife_edge"
    name: str = eqx.field(static=True, converter=JOINT_NAME)
    bodies: tuple[str, ...] = eqx.field(static=True, converter=ONE_BODY)
    at: Vector2 = eqx.field(converter=point("at", "in the world, reference configuration", 2))
    direction: Vector2 = eqx.field(
        converter=direction("direction", "of the edge in the world, reference configuration", 2)
    )

    def placements(self, references: Frames) -> tuple[PlanarFrame, ...]:
        del references
        return (PlanarFrame(self.at, line_angle(self.direction)),)

    def primitives(self) -> tuple[AbstractPrimitive, ...]:
        return (NoVelocityAcross(),)
