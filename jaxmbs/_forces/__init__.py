from typing import TYPE_CHECKING as _TYPE_CHECKING

from .._loading import load_late as _load_late


if _TYPE_CHECKING:
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
else:
    _NAMES = {
        "_applied": ("Applied", "Following"),
        "_axial_spring": ("AxialSpring",),
        "_ball_spring": ("BallSpring",),
        "_bushing": ("Bushing",),
        "_coulomb_friction": ("CoulombFriction",),
        "_generalized_force": ("GeneralizedForce",),
        "_spring_damper": ("SpringDamper",),
        "_stateful_force": ("StatefulForce",),
        "_torsion_spring": ("TorsionSpring",),
        "_user_force": ("UserForce",),
        "base": (
            "AbstractBodyForce",
            "AbstractForce",
            "AbstractFrictionLaw",
            "AbstractJointForce",
            "AbstractJointFriction",
            "AbstractLoad",
            "AbstractStatefulLoad",
        ),
    }
    _load_late(__name__, _NAMES)
