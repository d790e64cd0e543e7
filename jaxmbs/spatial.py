"""Bodies, joints and forces of space (`io/REFERENCE.md`, dimension 3)."""

from ._bodies import (
    MasslessBody as MasslessBody,
    ModalBody as ModalBody,
    ReducedBody as ReducedBody,
    SecondOrder as SecondOrder,
    SlenderBody as SlenderBody,
    SpatialBody as Body,
    SpatialParticle as Particle,
)
from ._constraints import (
    Distance as Distance,
    Geometric as Geometric,
    Pfaffian as Pfaffian,
    PointOnCurve as PointOnCurve,
    Velocity as Velocity,
)
from ._constraints._ropes import Rope as Rope
from ._constraints._spatial import (
    Coupling as Coupling,
    Cylindrical as Cylindrical,
    Fixed as Fixed,
    ParallelAxes as ParallelAxes,
    PerpendicularAxes as PerpendicularAxes,
    Planar as Planar,
    PointOnLine as PointOnLine,
    PointOnPlane as PointOnPlane,
    Revolute as Revolute,
    RollingDisk as RollingDisk,
    Screw as Screw,
    Spherical as Spherical,
    Translational as Translational,
    Universal as Universal,
)
from ._constraints._spatial_gears import (
    BevelPair as BevelPair,
    GearPair as GearPair,
    RackAndPinion as RackAndPinion,
    WormPair as WormPair,
)
from ._constraints._tendons import JointTendon as JointTendon, PathTendon as PathTendon
from ._elements import (
    BallInertia as BallInertia,
    ReflectedInertia as ReflectedInertia,
    ReflectedMass as ReflectedMass,
)


__all__ = [
    "BallInertia",
    "BevelPair",
    "Body",
    "Coupling",
    "Cylindrical",
    "Distance",
    "Fixed",
    "GearPair",
    "Geometric",
    "JointTendon",
    "MasslessBody",
    "ModalBody",
    "ParallelAxes",
    "Particle",
    "PathTendon",
    "PerpendicularAxes",
    "Pfaffian",
    "Planar",
    "PointOnCurve",
    "PointOnLine",
    "PointOnPlane",
    "RackAndPinion",
    "ReducedBody",
    "ReflectedInertia",
    "ReflectedMass",
    "Revolute",
    "RollingDisk",
    "Rope",
    "Screw",
    "SlenderBody",
    "Spherical",
    "Translational",
    "Universal",
    "Velocity",
    "WormPair",
]
