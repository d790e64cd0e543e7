from typing import TYPE_CHECKING as _TYPE_CHECKING

from .._loading import load_late as _load_late


if _TYPE_CHECKING:
    from ._choices import (
        AbstractEvent as AbstractEvent,
        StopAtLimit as StopAtLimit,
        StopAtSingular as StopAtSingular,
        StopWhen as StopWhen,
    )
    from ._contact_forces import (
        contact_forces as contact_forces,
        ContactForces as ContactForces,
        overlap_sentences as overlap_sentences,
    )
    from ._elastic_theory import limits_left_by_motion as limits_left_by_motion
    from ._equilibrium import Equilibrium as Equilibrium, equilibrium as equilibrium
    from ._failures import (
        SimulationError as SimulationError,
        SimulationInterrupted as SimulationInterrupted,
        undetermined_accelerations as undetermined_accelerations,
        UndeterminedAccelerations as UndeterminedAccelerations,
    )
    from ._floquet import Floquet as Floquet, floquet as floquet
    from ._friction import (
        Certificate as Certificate,
        certify as certify,
        solve_with_friction as solve_with_friction,
    )
    from ._generalized_alpha import GeneralizedAlpha as GeneralizedAlpha
    from ._initial import consistent_state as consistent_state, ConsistentState as ConsistentState
    from ._kinematics import (
        inverse_dynamics as inverse_dynamics,
        Kinematics as Kinematics,
        kinematics as kinematics,
        KinematicsError as KinematicsError,
    )
    from ._linearise import Linearisation as Linearisation, linearise as linearise
    from ._motor_duty import (
        feed_forward as feed_forward,
        motor_duty as motor_duty,
        MotorDuty as MotorDuty,
    )
    from ._reactions_of_state import reactions as reactions
    from ._rigid_limits import RigidLimits as RigidLimits
    from ._simulate import resume as resume, simulate as simulate
    from ._state_evaluation import Baumgarte as Baumgarte, Projection as Projection
    from ._stop_contacts import stop_contacts as stop_contacts, StopContacts as StopContacts
    from ._trajectory import (
        Controls as Controls,
        controls as controls,
        LimitHistory as LimitHistory,
        Statistics as Statistics,
        Trajectory as Trajectory,
    )
else:
    _NAMES = {
        "_friction": (
            "Certificate",
            "certify",
            "solve_with_friction",
        ),
        "_trajectory": (
            "Controls",
            "controls",
            "LimitHistory",
            "Statistics",
            "Trajectory",
        ),
        "_elastic_theory": ("limits_left_by_motion",),
        "_equilibrium": (
            "Equilibrium",
            "equilibrium",
        ),
        "_choices": (
            "AbstractEvent",
            "StopAtLimit",
            "StopAtSingular",
            "StopWhen",
        ),
        "_failures": (
            "SimulationError",
            "SimulationInterrupted",
            "undetermined_accelerations",
            "UndeterminedAccelerations",
        ),
        "_floquet": (
            "floquet",
            "Floquet",
        ),
        "_generalized_alpha": ("GeneralizedAlpha",),
        "_initial": (
            "consistent_state",
            "ConsistentState",
        ),
        "_kinematics": (
            "inverse_dynamics",
            "Kinematics",
            "kinematics",
            "KinematicsError",
        ),
        "_linearise": (
            "Linearisation",
            "linearise",
        ),
        "_stop_contacts": (
            "stop_contacts",
            "StopContacts",
        ),
        "_contact_forces": (
            "contact_forces",
            "ContactForces",
            "overlap_sentences",
        ),
        "_motor_duty": (
            "feed_forward",
            "motor_duty",
            "MotorDuty",
        ),
        "_reactions_of_state": ("reactions",),
        "_rigid_limits": ("RigidLimits",),
        "_simulate": (
            "resume",
            "simulate",
        ),
        "_state_evaluation": (
            "Baumgarte",
            "Projection",
        ),
    }
    _load_late(__name__, _NAMES)
