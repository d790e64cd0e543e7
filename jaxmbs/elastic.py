"""Elasticity of bodies and joints: compliances, which decide reactions along the rigid motion."""

from ._compliances import (
    BodyCompliance as BodyCompliance,
    JointCompliance as JointCompliance,
    Rod as Rod,
)


__all__ = ["BodyCompliance", "JointCompliance", "Rod"]
