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


class AxialLoad(AbstractElasticLoad):
    """A force along a joint's axis that depends on the joint's translation."""

    coordinate: AbstractCoordinate
    rest: Scalar
    stiffness: Float[Array, "1 1"]
    damping: Float[Array, "1 1"]
    preload: Float[Array, "1"]

    def deformation(self, frames: Frames) -> Float[Array, " n"]:
        return self.coordinate.excess(frames, self.rest)[None]


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

    def load_on(self, joint: AbstractJoint) -> AxialLoad:
        coordinates = joint.coordinates()
        if "translation" not in coordinates:
            raise ValueError(
                f"joint {_checks.shown(joint.name)} ({joint.kind}) has no translation; an axial "
                "spring acts along a translational or cylindrical joint."
            )
        return AxialLoad(
            coordinate=coordinates["translation"],
            rest=self.rest,
            stiffness=self.stiffness[None, None],
            damping=self.damping[None, None],
            preload=self.force[None],
        )
