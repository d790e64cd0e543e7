from typing import TYPE_CHECKING as _TYPE_CHECKING

from .._loading import load_late as _load_late


if _TYPE_CHECKING:
    from ._actuators import (
        AbstractActuator as AbstractActuator,
        DCMotor as DCMotor,
        IdealActuator as IdealActuator,
        TorqueSpeed as TorqueSpeed,
    )
    from ._applied import (
        Applied as Applied,
        Following as Following,
        GeneralizedForce as GeneralizedForce,
        StatefulForce as StatefulForce,
        UserForce as UserForce,
    )
    from ._contact import (
        BristleContactLoad as BristleContactLoad,
        Contact as Contact,
        ContactInfo as ContactInfo,
        ContactLoad as ContactLoad,
        ContactState as ContactState,
    )
    from ._contact_shapes import (
        AbstractContactShape as AbstractContactShape,
        ContactBox as ContactBox,
        ContactCapsule as ContactCapsule,
        ContactHalfSpace as ContactHalfSpace,
        ContactPolytope as ContactPolytope,
        ContactSphere as ContactSphere,
    )
    from ._controllers import AbstractController as AbstractController, PID as PID
    from ._coulomb_friction import CoulombFriction as CoulombFriction
    from ._joint_friction import JointFriction as JointFriction
    from ._joint_patterns import (
        between_each_pair as between_each_pair,
        in_each_joint as in_each_joint,
        meant_by as meant_by,
    )
    from ._motors import (
        ControlledMotorLoad as ControlledMotorLoad,
        Motor as Motor,
        MotorInfo as MotorInfo,
        MotorLoad as MotorLoad,
        MotorState as MotorState,
    )
    from ._ropes import ElasticRope as ElasticRope
    from ._springs import (
        AxialSpring as AxialSpring,
        BallSpring as BallSpring,
        Bushing as Bushing,
        SpringDamper as SpringDamper,
        TorsionSpring as TorsionSpring,
    )
    from ._stops import (
        JointStop as JointStop,
        StopInfo as StopInfo,
        StopLoad as StopLoad,
        StopRows as StopRows,
        StopState as StopState,
        within_turn as within_turn,
    )
    from .base import (
        AbstractBodyForce as AbstractBodyForce,
        AbstractForce as AbstractForce,
        AbstractFrictionLaw as AbstractFrictionLaw,
        AbstractJointForce as AbstractJointForce,
        AbstractJointFriction as AbstractJointFriction,
        AbstractLoad as AbstractLoad,
        AbstractOneSidedLoad as AbstractOneSidedLoad,
        AbstractPatternForce as AbstractPatternForce,
        AbstractStatefulLoad as AbstractStatefulLoad,
        Clearance as Clearance,
        Exerted as Exerted,
        saturated as saturated,
        SMOOTHING as SMOOTHING,
        States as States,
    )
else:
    _NAMES = {
        "_applied": (
            "Applied",
            "Following",
            "GeneralizedForce",
            "StatefulForce",
            "UserForce",
        ),
        "_actuators": (
            "AbstractActuator",
            "DCMotor",
            "IdealActuator",
            "TorqueSpeed",
        ),
        "_contact": (
            "BristleContactLoad",
            "Contact",
            "ContactInfo",
            "ContactLoad",
            "ContactState",
        ),
        "_contact_shapes": (
            "AbstractContactShape",
            "ContactBox",
            "ContactCapsule",
            "ContactHalfSpace",
            "ContactPolytope",
            "ContactSphere",
        ),
        "_controllers": (
            "AbstractController",
            "PID",
        ),
        "_motors": (
            "ControlledMotorLoad",
            "Motor",
            "MotorInfo",
            "MotorLoad",
            "MotorState",
        ),
        "_ropes": ("ElasticRope",),
        "_springs": (
            "AxialSpring",
            "BallSpring",
            "Bushing",
            "SpringDamper",
            "TorsionSpring",
        ),
        "_coulomb_friction": ("CoulombFriction",),
        "_stops": (
            "JointStop",
            "StopInfo",
            "StopLoad",
            "StopRows",
            "StopState",
            "within_turn",
        ),
        "_joint_friction": ("JointFriction",),
        "_joint_patterns": (
            "between_each_pair",
            "in_each_joint",
            "meant_by",
        ),
        "base": (
            "AbstractBodyForce",
            "AbstractForce",
            "AbstractFrictionLaw",
            "AbstractJointForce",
            "AbstractJointFriction",
            "AbstractLoad",
            "AbstractOneSidedLoad",
            "AbstractPatternForce",
            "saturated",
            "SMOOTHING",
            "States",
            "AbstractStatefulLoad",
            "Clearance",
            "Exerted",
        ),
    }
    _load_late(__name__, _NAMES)
