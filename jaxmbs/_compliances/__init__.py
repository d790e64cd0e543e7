from ._compliances import (
    BodyCompliance as BodyCompliance,
    JointCompliance as JointCompliance,
    Rod as Rod,
)
from .base import (
    AbstractBodyCompliance as AbstractBodyCompliance,
    AbstractCompliance as AbstractCompliance,
    AbstractDeformation as AbstractDeformation,
    AbstractJointCompliance as AbstractJointCompliance,
    Direction as Direction,
)
