from typing import ClassVar

import equinox as eqx

from .._constraints import AbstractJoint
from .._custom_types import Scalar
from .._fields import number
from ._coordinate_load import coordinate_load, CoordinateLoad
from ._fields import FORCE_NAME, JOINT
from .base import AbstractJointForce


class AxialSpring(AbstractJointForce):
    """A spring, a damper and a constant force along the axis of a translational or cylindrical
    joint:

        force on its second body = -stiffness (translation - rest) - damping rate + force,

    and the opposite on the first. The translation is that which a driver would prescribe: of the
    second body against the first, zero in the reference configuration.

    **Arguments:** `joint`: its name; `stiffness`: N/m; `damping`: N s/m; `rest`: m; `force`: N.
    The potential energy is that of the spring; the force is a motor's.
    """

    kind: ClassVar[str] = "axial_spring"
    strengths: ClassVar[tuple[str, ...]] = ("stiffness", "damping", "force")
    name: str = eqx.field(static=True, converter=FORCE_NAME)
    joint: str = eqx.field(static=True, converter=JOINT)
    stiffness: Scalar = eqx.field(
        default=0.0, kw_only=True, converter=number("stiffness", "N/m", "of the spring")
    )
    damping: Scalar = eqx.field(
        default=0.0, kw_only=True, converter=number("damping", "N s/m", "of the damper")
    )
    rest: Scalar = eqx.field(
        default=0.0, kw_only=True, converter=number("rest", "m", "translation without force")
    )
    force: Scalar = eqx.field(
        default=0.0, kw_only=True, converter=number("force", "N", "on the second body")
    )

    def load_on(self, joint: AbstractJoint) -> CoordinateLoad:
        return coordinate_load(
            joint,
            "translation",
            "an axial spring acts along a translational or cylindrical joint",
            rest=self.rest,
            stiffness=self.stiffness,
            damping=self.damping,
            preload=self.force,
        )
