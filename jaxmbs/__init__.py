"""Differentiable simulator of rigid and flexible multibody systems in JAX."""

from types import ModuleType as _ModuleType
from typing import TYPE_CHECKING as _TYPE_CHECKING

from . import (
    bounds as bounds,
    design as design,
    elastic as elastic,
    forces as forces,
    generalized as generalized,
    mechanisms as mechanisms,
    motions as motions,
    planar as planar,
    shapes as shapes,
    spatial as spatial,
)
from ._constraints import (
    AccelerationConstraint as AccelerationConstraint,
    Driver as Driver,
    PfaffianConstraint as PfaffianConstraint,
    PositionConstraint as PositionConstraint,
    Servo as Servo,
    ServoConstraint as ServoConstraint,
    VelocityConstraint as VelocityConstraint,
)
from ._dynamics import (
    Baumgarte as Baumgarte,
    Certificate as Certificate,
    certify as certify,
    consistent_state as consistent_state,
    ConsistentState as ConsistentState,
    Controls as Controls,
    controls as controls,
    Equilibrium as Equilibrium,
    equilibrium as equilibrium,
    Floquet as Floquet,
    floquet as floquet,
    GeneralizedAlpha as GeneralizedAlpha,
    inverse_dynamics as inverse_dynamics,
    Kinematics as Kinematics,
    kinematics as kinematics,
    KinematicsError as KinematicsError,
    Linearisation as Linearisation,
    linearise as linearise,
    Projection as Projection,
    reactions as reactions,
    resume as resume,
    simulate as simulate,
    SimulationError as SimulationError,
    SimulationInterrupted as SimulationInterrupted,
    solve_with_friction as solve_with_friction,
    StopAtSingular as StopAtSingular,
    StopWhen as StopWhen,
    Trajectory as Trajectory,
    undetermined_accelerations as undetermined_accelerations,
    UndeterminedAccelerations as UndeterminedAccelerations,
)
from ._extras import optional as _optional
from ._formulations import (
    AbstractFormulation as AbstractFormulation,
    Accelerations as Accelerations,
    AugmentedLagrangian as AugmentedLagrangian,
    compare as compare,
    Comparison as Comparison,
    ConstraintForce as ConstraintForce,
    CoordinatePartitioning as CoordinatePartitioning,
    ElasticResolution as ElasticResolution,
    Elimination as Elimination,
    MinimumNorm as MinimumNorm,
    NonIdeal as NonIdeal,
    NullSpace as NullSpace,
    ServoControl as ServoControl,
    UdwadiaKalaba as UdwadiaKalaba,
)
from ._holonomy import Holonomy as Holonomy, holonomy as holonomy
from ._kinematics import assemble as assemble, Assembly as Assembly
from ._linalg import BatchedQR as BatchedQR, LapackQR as LapackQR, PlatformQR as PlatformQR
from ._lint import Finding as Finding, Findings as Findings, lint as lint
from ._mobility import Branch as Branch, Mobility as Mobility, mobility as mobility
from ._programs import keep_programs as keep_programs
from ._ranges import (
    Range as Range,
    Ranges as Ranges,
    ranges as ranges,
    ranges_along as ranges_along,
    WrenchRange as WrenchRange,
)
from ._reactions import Reactions as Reactions, Wrench as Wrench
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
    screen as screen,
    Screening as Screening,
    Singularity as Singularity,
    singularity as singularity,
    Solvability as Solvability,
    SVD as SVD,
    verdicts as verdicts,
)
from ._sweep import (
    AbstractQuestion as AbstractQuestion,
    AbstractSecondLook as AbstractSecondLook,
    Case as Case,
    Cases as Cases,
    Certification as Certification,
    Fit as Fit,
    Misfit as Misfit,
    Spread as Spread,
    spread as spread,
    Sweep as Sweep,
    sweep as sweep,
    tolerances as tolerances,
    vary as vary,
    Verdicts as Verdicts,
    Workspace as Workspace,
    workspace as workspace,
)
from ._system import (
    AbstractSystem as AbstractSystem,
    GeneralizedSystem as GeneralizedSystem,
    Model as Model,
    MultibodySystem as MultibodySystem,
)
from ._verdict import Verdict as Verdict
from ._version import __version__ as __version__


if _TYPE_CHECKING:
    from . import finite_elements as finite_elements, io as io, plot as plot, report as report


# Modules that need an extra, loaded on first use, like `jaxmbs.io`.
_WITH_EXTRAS = {"finite_elements": "elastic", "io": "cli", "plot": "cli", "report": "report"}


def __getattr__(name: str) -> _ModuleType:
    if name not in _WITH_EXTRAS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return _optional(f"{__name__}.{name}", _WITH_EXTRAS[name])


def __dir__() -> list[str]:
    return sorted({*globals(), *_WITH_EXTRAS})
