"""Formulations: ways to solve the equations of motion when rows of C depend on each other."""

from typing import TYPE_CHECKING as _TYPE_CHECKING

from ._loading import load_late as _load_late


if _TYPE_CHECKING:
    from ._dynamics import (
        undetermined_accelerations as undetermined_accelerations,
    )
    from ._formulations import (
        AbstractFormulation as AbstractFormulation,
        Accelerations as Accelerations,
        AugmentedLagrangian as AugmentedLagrangian,
        ConstraintForce as ConstraintForce,
        CoordinatePartitioning as CoordinatePartitioning,
        ElasticResolution as ElasticResolution,
        Elimination as Elimination,
        MinimumNorm as MinimumNorm,
        NonIdeal as NonIdeal,
        NullSpace as NullSpace,
        ServoControl as ServoControl,
        UdwadiaKalaba as UdwadiaKalaba,
    )
else:
    _NAMES = {
        "_dynamics": ("undetermined_accelerations",),
        "_formulations": (
            "AbstractFormulation",
            "Accelerations",
            "AugmentedLagrangian",
            "ConstraintForce",
            "CoordinatePartitioning",
            "ElasticResolution",
            "Elimination",
            "MinimumNorm",
            "NonIdeal",
            "NullSpace",
            "ServoControl",
            "UdwadiaKalaba",
        ),
    }
    _load_late(__name__, _NAMES)
