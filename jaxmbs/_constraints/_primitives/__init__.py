from ._across import (
    Apart as Apart,
    OnLine as OnLine,
    OnPlanarLine as OnPlanarLine,
    OnPlane as OnPlane,
)
from ._coincide import Coincide as Coincide
from ._coordinates import (
    Advance as Advance,
    Coupled as Coupled,
    Driven as Driven,
    OwnCoordinate as OwnCoordinate,
    PlanarRotation as PlanarRotation,
    PlanarTranslation as PlanarTranslation,
    SpatialRotation as SpatialRotation,
    SpatialTranslation as SpatialTranslation,
)
from ._directions import (
    AnglesInRatio as AnglesInRatio,
    AxesParallel as AxesParallel,
    AxesPerpendicular as AxesPerpendicular,
    SameAngle as SameAngle,
    SameRotation as SameRotation,
)
from ._user import (
    PositionCondition as PositionCondition,
    VelocityCondition as VelocityCondition,
)
from ._velocity import (
    ConstantCoefficients as ConstantCoefficients,
    NoSlip as NoSlip,
    NoVelocityAcross as NoVelocityAcross,
    Touches as Touches,
)
