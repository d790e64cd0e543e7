from ._gear import Gear as Gear
from ._knife_edge import KnifeEdge as KnifeEdge
from ._pairs import (
    Fixed as Fixed,
    PointOnLine as PointOnLine,
    Revolute as Revolute,
    Translational as Translational,
)
