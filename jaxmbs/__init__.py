"""Differentiable simulator of rigid and flexible multibody systems in JAX."""

from . import (
    forces as forces,
    mechanisms as mechanisms,
    motions as motions,
    planar as planar,
    spatial as spatial,
)
from ._constraints import Driver as Driver
from ._kinematics import assemble as assemble, Assembly as Assembly
from ._solution import RESULTS as RESULTS
from ._solvability import (
    analyze as analyze,
    complete_removal as complete_removal,
    dependent_sets as dependent_sets,
    DependentSets as DependentSets,
    QR as QR,
    RankComparison as RankComparison,
    Releases as Releases,
    releases as releases,
    removable_rows as removable_rows,
    Singularity as Singularity,
    singularity as singularity,
    Solvability as Solvability,
    SVD as SVD,
)
from ._system import (
    AbstractSystem as AbstractSystem,
    GeneralizedSystem as GeneralizedSystem,
    Model as Model,
    MultibodySystem as MultibodySystem,
    PositionConstraint as PositionConstraint,
    VelocityConstraint as VelocityConstraint,
)
from ._version import __version__ as __version__
