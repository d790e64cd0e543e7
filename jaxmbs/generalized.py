"""Bodies in coordinates of their own, and what acts on these."""

from ._bodies import Element as Element, GeneralizedBody as Body
from ._constraints import (
    AccelerationCondition as AccelerationCondition,
    Condition as Condition,
    RateCondition as RateCondition,
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
    "Body",
    "Condition",
    "Element",
    "Force",
    "PlanarFrame",
    "Quantity",
    "RateCondition",
    "SpatialFrame",
]
