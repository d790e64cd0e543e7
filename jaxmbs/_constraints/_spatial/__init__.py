from ._axial import (
    Cylindrical as Cylindrical,
    Planar as Planar,
    PointOnLine as PointOnLine,
    PointOnPlane as PointOnPlane,
    Revolute as Revolute,
    Screw as Screw,
    Translational as Translational,
)
from ._coupling import Coupling as Coupling
from ._directions import (
    ParallelAxes as ParallelAxes,
    PerpendicularAxes as PerpendicularAxes,
    Universal as Universal,
)
from ._located import Fixed as Fixed, Spherical as Spherical
from ._rolling_disk import RollingDisk as RollingDisk
