"""Bodies, joints and forces of the plane (`io/REFERENCE.md`, dimension 2)."""

from ._bodies import PlanarBody as Body, PlanarParticle as Particle
from ._constraints import (
    Cam as Cam,
    Distance as Distance,
    Geometric as Geometric,
    Pfaffian as Pfaffian,
    PointOnCurve as PointOnCurve,
    Velocity as Velocity,
)
from ._constraints._gears import GearPair as GearPair, RackAndPinion as RackAndPinion
from ._constraints._planar import (
    Fixed as Fixed,
    Gear as Gear,
    KnifeEdge as KnifeEdge,
    PointOnLine as PointOnLine,
    Revolute as Revolute,
    Translational as Translational,
)
from ._constraints._ropes import Belt as Belt, Rope as Rope
from ._constraints._tendons import PathTendon as PathTendon


__all__ = [
    "Belt",
    "Body",
    "Cam",
    "Distance",
    "Fixed",
    "Gear",
    "GearPair",
    "Geometric",
    "KnifeEdge",
    "Particle",
    "PathTendon",
    "Pfaffian",
    "PointOnCurve",
    "PointOnLine",
    "RackAndPinion",
    "Revolute",
    "Rope",
    "Translational",
    "Velocity",
]
