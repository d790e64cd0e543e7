from typing import ClassVar

import equinox as eqx
from jaxtyping import Array, Float

from .. import _checks
from .._constraints import AbstractJoint, Frames
from .._constraints.base import AbstractCoordinate
from .._custom_types import Scalar
from .._fields import number
from ._elastic import AbstractElasticLoad
from ._fields import FORCE_NAME, JOINT
from .base import AbstractJointForce


class TorsionLoad(AbstractElasticLoad):
    """A moment about a joint's axis that depends on the joint's angle."""

    coordinate: AbstractCoordinate
    rest: Scalar
    stiffness: Float[Array, "1 1"]
    damping: Float[Array, "1 1"]
    preload: Float[Array, "1"]

    def deformation(self, frames: Frames) -> Float[Array, " n"]:
        return self.coordinate.excess(frames, self.rest)[None]


class TorsionSpring(AbstractJointForce):
    """A spring, a damper and a constant torque about the axis of a revolute or cylindrical joint:

        moment on its second body = -stiffness (angle - rest) - damping rate + torque,

    and the opposite on the first. The angle is that which a driver would prescribe: of the
    second body against the first, zero in the reference configuration. In the plane it is
    continuous and counts full turns. In space frames do not count them: the angle is known up
    to 2 pi, so that angle - rest is taken between -pi and pi, and the moment of the spring
    jumps half a turn away from `rest`.

    **Arguments:** `joint`: its name; `stiffness`: N m/rad; `damping`: N m s/rad; `rest`: rad;
    `torque`: N m. The potential energy is that of the spring; the torque is a motor's.
    """

    kind: ClassVar[str] = "torsion_spring"
    name: str = eqx.field(static=True, converter=FORCE_NAME)
    joint: str = eqx.field(static=True, converter=JOINT)
    stiffness: Scalar = eqx.field(
        default=0.0, kw_only=True, converter=number("stiffness", "N m/rad", "of the spring")
    )
    damping: Scalar = eqx.field(
        default=0.0, kw_only=True, converter=number("damping", "N m s/rad", "of the damper")
    )
    rest: Scalar = eqx.field(
        default=0.0, kw_only=True, converter=number("rest", "rad", "angle without moment")
    )
    torque: Scalar = eqx.field(
        default=0.0, kw_only=True, converter=number("torque", "N m", "on the second body")
    )

    def load_on(self, joint: AbstractJoint) -> TorsionLoad:
        coordinates = joint.coordinates()
        if "rotation" not in coordinates:
            raise ValueError(
                f"joint {_checks.shown(joint.name)} ({joint.kind}) has no rotation; a torsion "
                "spring acts about a revolute or cylindrical joint."
            )
        return TorsionLoad(
            coordinate=coordinates["rotation"],
            rest=self.rest,
            stiffness=self.stiffness[None, None],
            damping=self.damping[None, None],
            preload=self.torque[None],
        )
