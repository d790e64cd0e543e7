"""Bodies in coordinates of their own, what acts on these, and constraints that are functions."""

from ._bodies import Element as Element, GeneralizedBody as Body
from ._constraints import (
    AccelerationCondition as AccelerationCondition,
    AccelerationConstraint as AccelerationConstraint,
    Condition as Condition,
    PfaffianConstraint as PfaffianConstraint,
    PositionConstraint as PositionConstraint,
    RateCondition as RateCondition,
    ServoConstraint as ServoConstraint,
    VelocityConstraint as VelocityConstraint,
)
from ._forces import GeneralizedForce as Force
from ._geometry import (
    ANGLE as ANGLE,
    LENGTH as LENGTH,
    NUMBER as NUMBER,
    PlanarFrame as PlanarFrame,
    Quantity as Quantity,
    SpatialFrame as SpatialFrame,
)


__all__ = [
    "ANGLE",
    "LENGTH",
    "NUMBER",
    "AccelerationCondition",
    "AccelerationConstraint",
    "Body",
    "Condition",
    "Element",
    "Force",
    "PfaffianConstraint",
    "PlanarFrame",
    "PositionConstraint",
    "Quantity",
    "RateCondition",
    "ServoConstraint",
    "SpatialFrame",
    "VelocityConstraint",
]
