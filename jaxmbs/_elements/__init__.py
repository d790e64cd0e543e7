from ._reflected_inertia import (
    BallInertia as BallInertia,
    ReflectedInertia as ReflectedInertia,
    ReflectedMass as ReflectedMass,
)
