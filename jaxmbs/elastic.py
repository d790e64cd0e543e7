"""Elasticity of bodies and joints: compliances, which decide reactions along the rigid motion, and
which of them are enough."""

from ._compliances import JointCompliance as JointCompliance, Rod as Rod
from ._elastic import (
    Flexibility as Flexibility,
    flexibility as flexibility,
    SubsetAnswer as SubsetAnswer,
)


__all__ = ["Flexibility", "JointCompliance", "Rod", "SubsetAnswer", "flexibility"]
