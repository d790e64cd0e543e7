from ._acceleration import (
    AccelerationCondition as AccelerationCondition,
    AccelerationConstraint as AccelerationConstraint,
)
from ._distance import Distance as Distance
from ._driver import Driver as Driver
from ._generalized import (
    AbstractConstraint as AbstractConstraint,
    Condition as Condition,
    one_or_all as one_or_all,
    own_coordinates as own_coordinates,
    PfaffianConstraint as PfaffianConstraint,
    PositionConstraint as PositionConstraint,
    RateCondition as RateCondition,
    VelocityConstraint as VelocityConstraint,
)
from ._motions import (
    AbstractMotion as AbstractMotion,
    Linear as Linear,
    Polynomial as Polynomial,
    Sine as Sine,
    Step as Step,
    Table as Table,
)
from ._pfaffian import Pfaffian as Pfaffian
from ._primitives import Driven as Driven, OwnCoordinate as OwnCoordinate
from ._servo import Servo as Servo, ServoConstraint as ServoConstraint
from ._user import Geometric as Geometric, Velocity as Velocity
from .base import (
    AbstractAccelerationPrimitive as AbstractAccelerationPrimitive,
    AbstractCoordinate as AbstractCoordinate,
    AbstractJoint as AbstractJoint,
    AbstractPrimitive as AbstractPrimitive,
    Frames as Frames,
    Release as Release,
    Row as Row,
    RowKind as RowKind,
    Twists as Twists,
)
