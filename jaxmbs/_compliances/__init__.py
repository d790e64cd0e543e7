from ._body_compliance import BodyCompliance as BodyCompliance
from ._joint_compliance import JointCompliance as JointCompliance
from ._rod import Rod as Rod
from .base import (
    AbstractBodyCompliance as AbstractBodyCompliance,
    AbstractCompliance as AbstractCompliance,
    AbstractDeformation as AbstractDeformation,
    AbstractJointCompliance as AbstractJointCompliance,
    Direction as Direction,
)
