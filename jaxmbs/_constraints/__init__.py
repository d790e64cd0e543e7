from ._curves import Cam as Cam, PointOnCurve as PointOnCurve
from ._distance import Distance as Distance
from ._driver import Driver as Driver, Servo as Servo, ServoConstraint as ServoConstraint
from ._motions import (
    AbstractMotion as AbstractMotion,
    Linear as Linear,
    Polynomial as Polynomial,
    Sine as Sine,
    Step as Step,
    Table as Table,
)
from ._primitives import (
    Driven as Driven,
    OwnCoordinate as OwnCoordinate,
    SpatialRotation as SpatialRotation,
)
from ._switched import opens as opens, Switched as Switched, switched as switched
from ._user import (
    AbstractConstraint as AbstractConstraint,
    AccelerationCondition as AccelerationCondition,
    AccelerationConstraint as AccelerationConstraint,
    Condition as Condition,
    Geometric as Geometric,
    one_or_all as one_or_all,
    own_coordinates as own_coordinates,
    Pfaffian as Pfaffian,
    PfaffianConstraint as PfaffianConstraint,
    PositionConstraint as PositionConstraint,
    RateCondition as RateCondition,
    Velocity as Velocity,
    VelocityConstraint as VelocityConstraint,
)
from .base import (
    AbstractAccelerationPrimitive as AbstractAccelerationPrimitive,
    AbstractCoordinate as AbstractCoordinate,
    AbstractGeometricPrimitive as AbstractGeometricPrimitive,
    AbstractJoint as AbstractJoint,
    AbstractPrimitive as AbstractPrimitive,
    Frames as Frames,
    OneSided as OneSided,
    Release as Release,
    Row as Row,
    RowKind as RowKind,
    Twists as Twists,
)
