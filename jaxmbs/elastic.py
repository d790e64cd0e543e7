"""Elasticity of bodies and joints: compliances, which decide reactions along the rigid motion, and
which of them are enough; elastic bodies made of rigid ones and springs."""

from typing import TYPE_CHECKING as _TYPE_CHECKING

from ._loading import load_late as _load_late


if _TYPE_CHECKING:
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
else:
    _NAMES = {
        "_compliances": ("BodyCompliance", "JointCompliance", "Rod"),
        "_elastic": (
            "AbstractStart",
            "Flexibility",
            "flexibility",
            "split_rod",
            "split_rods",
            "SplitRod",
            "StaticStart",
            "SubsetAnswer",
            "SuddenStart",
        ),
    }
    _load_late(__name__, _NAMES)
