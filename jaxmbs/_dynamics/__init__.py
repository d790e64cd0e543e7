from ._certificate import Certificate as Certificate, certify as certify
from ._controls import Controls as Controls, controls as controls
from ._elastic_theory import limits_left_by_motion as limits_left_by_motion
from ._equilibrium import Equilibrium as Equilibrium, equilibrium as equilibrium
from ._events import (
    AbstractEvent as AbstractEvent,
    StopAtSingular as StopAtSingular,
    StopWhen as StopWhen,
)
from ._failures import (
    SimulationError as SimulationError,
    SimulationInterrupted as SimulationInterrupted,
)
from ._floquet import Floquet as Floquet, floquet as floquet
from ._friction import solve_with_friction as solve_with_friction
from ._generalized_alpha import GeneralizedAlpha as GeneralizedAlpha
from ._initial import consistent_state as consistent_state, ConsistentState as ConsistentState
from ._inverse import inverse_dynamics as inverse_dynamics
from ._kinematics import (
    Kinematics as Kinematics,
    kinematics as kinematics,
    KinematicsError as KinematicsError,
)
from ._linearise import Linearisation as Linearisation, linearise as linearise
from ._reactions_of_state import reactions as reactions
from ._simulate import resume as resume, simulate as simulate
from ._stabilisation import Baumgarte as Baumgarte, Projection as Projection
from ._trajectory import Statistics as Statistics, Trajectory as Trajectory
from ._undetermined import (
    undetermined_accelerations as undetermined_accelerations,
    UndeterminedAccelerations as UndeterminedAccelerations,
)
