"""Elasticity of bodies and joints: compliances, which decide reactions along the rigid motion, and
which of them are enough; elastic bodies made of rigid ones and springs."""

from ._compliances import (
    BodyCompliance as BodyCompliance,
    JointCompliance as JointCompliance,
    Rod as Rod,
)
from ._elastic import (
    AbstractStart as AbstractStart,
    Flexibility as Flexibility,
    flexibility as flexibility,
    split_rod as split_rod,
    split_rods as split_rods,
    SplitRod as SplitRod,
    StaticStart as StaticStart,
    SubsetAnswer as SubsetAnswer,
    SuddenStart as SuddenStart,
)


__all__ = [
    "AbstractStart",
    "BodyCompliance",
    "Flexibility",
    "JointCompliance",
    "Rod",
    "SplitRod",
    "StaticStart",
    "SubsetAnswer",
    "SuddenStart",
    "flexibility",
    "split_rod",
    "split_rods",
]
