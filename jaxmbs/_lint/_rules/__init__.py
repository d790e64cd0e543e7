from ..base import AbstractRule
from ._bodies import (
    BeyondElasticTheory,
    DistantCentre,
    DistantJoint,
    GravityOutOfScale,
    ImpossibleBody,
    InertiaOutOfScale,
    MassRatio,
)
from ._constraints import (
    ArbitraryLoop,
    ContradictingRows,
    FirstOrderMobility,
    NearlyRedundant,
    NeverCloses,
    Release,
    SharedLoad,
    SingularConfiguration,
)
from ._setup import (
    IdleForce,
    IdleMotor,
    IdleTendon,
    InconsistentVelocity,
    Island,
    OpenJoint,
    OverlappingContact,
    PressedStop,
    RestingDriver,
    UnusedBody,
)


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
    IdleMotor(),
    PressedStop(),
    OverlappingContact(),
    IdleTendon(),
    Release(),
)
