"""Forces on bodies and in joints."""

from ._forces import (
    Applied as Applied,
    AxialSpring as AxialSpring,
    BallSpring as BallSpring,
    Bushing as Bushing,
    CoulombFriction as CoulombFriction,
    Following as Following,
    SpringDamper as SpringDamper,
    StatefulForce as StatefulForce,
    TorsionSpring as TorsionSpring,
    UserForce as UserForce,
)


__all__ = [
    "Applied",
    "AxialSpring",
    "BallSpring",
    "Bushing",
    "CoulombFriction",
    "Following",
    "SpringDamper",
    "StatefulForce",
    "TorsionSpring",
    "UserForce",
]
