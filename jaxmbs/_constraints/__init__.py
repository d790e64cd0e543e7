from ._distance import Distance as Distance
from ._driver import Driver as Driver
from ._motions import (
    AbstractMotion as AbstractMotion,
    Linear as Linear,
    Polynomial as Polynomial,
    Sine as Sine,
    Step as Step,
    Table as Table,
)
from ._pfaffian import Pfaffian as Pfaffian
from ._primitives import Driven as Driven
from ._user import Geometric as Geometric, Velocity as Velocity
from .base import (
    AbstractJoint as AbstractJoint,
    AbstractPrimitive as AbstractPrimitive,
    Frames as Frames,
    Release as Release,
    Row as Row,
    Twists as Twists,
)
