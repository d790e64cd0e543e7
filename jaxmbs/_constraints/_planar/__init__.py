from typing import TYPE_CHECKING as _TYPE_CHECKING

from ..._loading import load_late as _load_late


if _TYPE_CHECKING:
    from ._gear import Gear as Gear
    from ._knife_edge import KnifeEdge as KnifeEdge
    from ._pairs import (
        Fixed as Fixed,
        PointOnLine as PointOnLine,
        Revolute as Revolute,
        Translational as Translational,
    )
else:
    _NAMES = {
        "_gear": ("Gear",),
        "_knife_edge": ("KnifeEdge",),
        "_pairs": ("Fixed", "PointOnLine", "Revolute", "Translational"),
    }
    _load_late(__name__, _NAMES)
