from ._applied import Applied as Applied, Following as Following
from ._axial_spring import AxialSpring as AxialSpring
from ._ball_spring import BallSpring as BallSpring
from ._bushing import Bushing as Bushing
from ._coulomb_friction import CoulombFriction as CoulombFriction
from ._generalized_force import GeneralizedForce as GeneralizedForce
from ._spring_damper import SpringDamper as SpringDamper
from ._stateful_force import StatefulForce as StatefulForce
from ._torsion_spring import TorsionSpring as TorsionSpring
from ._user_force import UserForce as UserForce
from .base import (
    AbstractBodyForce as AbstractBodyForce,
    AbstractForce as AbstractForce,
    AbstractFrictionLaw as AbstractFrictionLaw,
    AbstractJointForce as AbstractJointForce,
    AbstractJointFriction as AbstractJointFriction,
    AbstractLoad as AbstractLoad,
    AbstractStatefulLoad as AbstractStatefulLoad,
)
