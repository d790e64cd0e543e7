from typing import ClassVar

import equinox as eqx

from .._constraints import AbstractJoint
from .._custom_types import Scalar
from .._fields import number
from ._coordinate_load import coordinate_load, CoordinateLoad
from ._fields import FORCE_NAME, JOINT
from .base import AbstractJointForce


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
    strengths: ClassVar[tuple[str, ...]] = ("stiffness", "damping", "torque")
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

    def load_on(self, joint: AbstractJoint) -> CoordinateLoad:
        return coordinate_load(
            joint,
            "rotation",
            "a torsion spring acts about a revolute or cylindrical joint",
            rest=self.rest,
            stiffness=self.stiffness,
            damping=self.damping,
            preload=self.torque,
        )
