"""Classes of answers, and of the error where there is none."""

from typing import TYPE_CHECKING as _TYPE_CHECKING

from ._loading import load_late as _load_late


if _TYPE_CHECKING:
    from ._dynamics import (
        Certificate as Certificate,
        ConsistentState as ConsistentState,
        ContactForces as ContactForces,
        Controls as Controls,
        Equilibrium as Equilibrium,
        Floquet as Floquet,
        Kinematics as Kinematics,
        KinematicsError as KinematicsError,
        LimitHistory as LimitHistory,
        Linearisation as Linearisation,
        MotorDuty as MotorDuty,
        StopContacts as StopContacts,
        Trajectory as Trajectory,
        UndeterminedAccelerations as UndeterminedAccelerations,
    )
    from ._errors import (
        AnalysisError as AnalysisError,
    )
    from ._formulations import (
        Comparison as Comparison,
    )
    from ._holonomy import (
        Holonomy as Holonomy,
    )
    from ._kinematics import (
        Assembly as Assembly,
    )
    from ._lint import (
        Finding as Finding,
        Findings as Findings,
    )
    from ._mobility import (
        Branch as Branch,
        Mobility as Mobility,
    )
    from ._ranges import (
        Range as Range,
        Ranges as Ranges,
        WrenchRange as WrenchRange,
    )
    from ._reactions import (
        Reactions as Reactions,
        Wrench as Wrench,
    )
    from ._solution import (
        RESULTS as RESULTS,
    )
    from ._solvability import (
        DependentSets as DependentSets,
        Releases as Releases,
        Screening as Screening,
        Singularity as Singularity,
        Solvability as Solvability,
    )
    from ._sweep import (
        Spread as Spread,
        Sweep as Sweep,
        Verdicts as Verdicts,
        Workspace as Workspace,
    )
else:
    _NAMES = {
        "_dynamics": (
            "Certificate",
            "ConsistentState",
            "Controls",
            "Equilibrium",
            "ContactForces",
            "Floquet",
            "Kinematics",
            "KinematicsError",
            "LimitHistory",
            "Linearisation",
            "MotorDuty",
            "StopContacts",
            "Trajectory",
            "UndeterminedAccelerations",
        ),
        "_errors": ("AnalysisError",),
        "_formulations": ("Comparison",),
        "_holonomy": ("Holonomy",),
        "_kinematics": ("Assembly",),
        "_lint": (
            "Finding",
            "Findings",
        ),
        "_mobility": (
            "Branch",
            "Mobility",
        ),
        "_ranges": (
            "Range",
            "Ranges",
            "WrenchRange",
        ),
        "_reactions": (
            "Reactions",
            "Wrench",
        ),
        "_solution": ("RESULTS",),
        "_solvability": (
            "DependentSets",
            "Releases",
            "Screening",
            "Singularity",
            "Solvability",
        ),
        "_sweep": (
            "Spread",
            "Sweep",
            "Verdicts",
            "Workspace",
        ),
    }
    _load_late(__name__, _NAMES)
