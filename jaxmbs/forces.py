"""Forces on bodies and in joints, and the actuators and controllers of motors."""

from ._forces import (
    Applied as Applied,
    AxialSpring as AxialSpring,
    BallSpring as BallSpring,
    Bushing as Bushing,
    CoulombFriction as CoulombFriction,
    DCMotor as DCMotor,
    ElasticRope as ElasticRope,
    Following as Following,
    IdealActuator as IdealActuator,
    JointFriction as JointFriction,
    JointStop as JointStop,
    Motor as Motor,
    PID as PID,
    SpringDamper as SpringDamper,
    StatefulForce as StatefulForce,
    TorqueSpeed as TorqueSpeed,
    TorsionSpring as TorsionSpring,
    UserForce as UserForce,
)


__all__ = [
    "PID",
    "Applied",
    "AxialSpring",
    "BallSpring",
    "Bushing",
    "CoulombFriction",
    "DCMotor",
    "ElasticRope",
    "Following",
    "IdealActuator",
    "JointFriction",
    "JointStop",
    "Motor",
    "SpringDamper",
    "StatefulForce",
    "TorqueSpeed",
    "TorsionSpring",
    "UserForce",
]
