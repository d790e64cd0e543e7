from typing import TYPE_CHECKING as _TYPE_CHECKING

from ..._loading import load_late as _load_late


if _TYPE_CHECKING:
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
else:
    _NAMES = {
        "_axial": (
            "Cylindrical",
            "Planar",
            "PointOnLine",
            "PointOnPlane",
            "Revolute",
            "Screw",
            "Translational",
        ),
        "_coupling": ("Coupling",),
        "_directions": ("ParallelAxes", "PerpendicularAxes", "Universal"),
        "_located": ("Fixed", "Spherical"),
        "_rolling_disk": ("RollingDisk",),
    }
    _load_late(__name__, _NAMES)
