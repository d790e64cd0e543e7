from ..base import AbstractRule
from ._arbitrary_loop import ArbitraryLoop
from ._beyond_elastic_theory import BeyondElasticTheory
from ._contradicting_rows import ContradictingRows
from ._first_order_mobility import FirstOrderMobility
from ._idle_force import IdleForce
from ._impossible_body import ImpossibleBody
from ._inconsistent_velocity import InconsistentVelocity
from ._inertia_out_of_scale import InertiaOutOfScale
from ._island import Island
from ._mass_ratio import MassRatio
from ._misplaced import DistantCentre, DistantJoint, GravityOutOfScale
from ._nearly_redundant import NearlyRedundant
from ._never_closes import NeverCloses
from ._open_joint import OpenJoint
from ._release import Release
from ._resting_driver import RestingDriver
from ._shared_load import SharedLoad
from ._singular_configuration import SingularConfiguration
from ._unused_body import UnusedBody


# By code.
RULES: tuple[AbstractRule, ...] = (
    ArbitraryLoop(),
    SharedLoad(),
    NearlyRedundant(),
    SingularConfiguration(),
    FirstOrderMobility(),
    ContradictingRows(),
    NeverCloses(),
    OpenJoint(),
    InconsistentVelocity(),
    ImpossibleBody(),
    MassRatio(),
    InertiaOutOfScale(),
    DistantJoint(),
    DistantCentre(),
    GravityOutOfScale(),
    BeyondElasticTheory(),
    UnusedBody(),
    IdleForce(),
    RestingDriver(),
    Island(),
    Release(),
)
