"""Bodies, joints and forces of space (`io/REFERENCE.md`, dimension 3)."""

from ._bodies import (
    ModalBody as ModalBody,
    ReducedBody as ReducedBody,
    SpatialBody as Body,
    SpatialParticle as Particle,
)
from ._constraints import (
    Distance as Distance,
    Geometric as Geometric,
    Pfaffian as Pfaffian,
    Velocity as Velocity,
)
from ._constraints._spatial import (
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


__all__ = [
    "Body",
    "Cylindrical",
    "Distance",
    "Fixed",
    "Geometric",
    "ModalBody",
    "ParallelAxes",
    "Particle",
    "PerpendicularAxes",
    "Pfaffian",
    "Planar",
    "PointOnLine",
    "PointOnPlane",
    "ReducedBody",
    "Revolute",
    "RollingDisk",
    "Screw",
    "Spherical",
    "Translational",
    "Universal",
    "Velocity",
]
