from collections.abc import Sequence
from typing import cast, ClassVar

import equinox as eqx
import numpy as np

from ... import _checks
from ..._checks import known_array
from ..._custom_types import Numbers, Scalar
from ..._fields import Field, number, reference
from ..._geometry import PlanarFrame
from .._fields import JOINT_NAME, TWO_BODIES
from .._placing import planar_frames, unturned
from .._primitives import AnglesInRatio
from ..base import AbstractJoint, AbstractPrimitive, Frames


_RATIO = number("ratio", "1", "angle of the first body over that of the second")
_CARRIER = cast(Field, reference("carrier", "against which both angles count"))
# The ground may be the carrier and one of the two.
_BODIES = cast(Field, TWO_BODIES)._replace(
    check=lambda names, _: tuple(names),
    others=(_CARRIER,),
    split=lambda names: {"bodies": names[:2], "carrier": names[2]},
)


class Gear(AbstractJoint):
    """Angle of the first body = ratio * angle of the second, each against the carrier and
    measured from the reference configuration: one row.

    **Arguments:** `bodies`: two names, or three, the carrier's last; `ratio`: a number;
    `carrier`: a body's name. The ground's angle is 0; it may be any of the bodies.
    """

    kind: ClassVar[str] = "gear"
    located: ClassVar[bool] = False
    name: str = eqx.field(static=True, converter=JOINT_NAME)
    bodies: tuple[str, ...] = eqx.field(static=True, converter=_BODIES)
    ratio: Scalar = eqx.field(converter=_RATIO)

    def __init__(
        self,
        name: str,
        bodies: Sequence[str],
        *,
        ratio: Numbers,
        carrier: str = "ground",
    ):
        self.name = name
        three = isinstance(bodies, Sequence) and not isinstance(bodies, str) and len(bodies) == 3
        if three and carrier == "ground":
            *bodies, carrier = bodies
        first, second = TWO_BODIES(bodies)
        _CARRIER(carrier)
        if carrier != "ground" and carrier in (first, second):
            raise ValueError(
                f"carrier {_checks.shown(carrier)} is one of the two geared bodies itself; name "
                "the body that carries both gears' axles, or leave carrier out for the ground."
            )
        self.bodies = (first, second, carrier)
        self.ratio = _RATIO(ratio)

    def placements(self, references: Frames) -> tuple[PlanarFrame, ...]:
        del references
        return planar_frames(known_array(np.zeros((3, 2))), unturned())

    def primitives(self) -> tuple[AbstractPrimitive, ...]:
        return (AnglesInRatio(self.ratio),)
