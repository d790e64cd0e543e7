"""Differentiable simulator of rigid and flexible multibody systems in JAX.

Names are loaded with their first use: what a program does not touch costs it nothing. Type checkers
read the first branch below, `_NAMES` says the same at run time, and a test that they agree.
"""

from typing import TYPE_CHECKING as _TYPE_CHECKING

from ._loading import load_late as _load_late
from ._version import __version__ as __version__


if _TYPE_CHECKING:
    from . import (
        bounds as bounds,
        criteria as criteria,
        design as design,
        elastic as elastic,
        finite_elements as finite_elements,
        forces as forces,
        formulations as formulations,
        generalized as generalized,
        io as io,
        mechanisms as mechanisms,
        motions as motions,
        planar as planar,
        plot as plot,
        report as report,
        results as results,
        runs as runs,
        shapes as shapes,
        spatial as spatial,
        sweeps as sweeps,
        view as view,
    )
    from ._constraints import (
        Driver as Driver,
        Servo as Servo,
    )
    from ._dynamics import (
        certify as certify,
        consistent_state as consistent_state,
        controls as controls,
        equilibrium as equilibrium,
        floquet as floquet,
        inverse_dynamics as inverse_dynamics,
        kinematics as kinematics,
        linearise as linearise,
        reactions as reactions,
        resume as resume,
        simulate as simulate,
        SimulationError as SimulationError,
    )
    from ._errors import (
        AbstractError as AbstractError,
    )
    from ._formulations import (
        compare as compare,
    )
    from ._holonomy import (
        holonomy as holonomy,
    )
    from ._kinematics import (
        assemble as assemble,
    )
    from ._lint import (
        lint as lint,
    )
    from ._mobility import (
        mobility as mobility,
    )
    from ._programs import (
        jit as jit,
        keep_programs as keep_programs,
    )
    from ._ranges import (
        ranges as ranges,
        ranges_along as ranges_along,
    )
    from ._solvability import (
        analyze as analyze,
        dependent_sets as dependent_sets,
        releases as releases,
        screen as screen,
        singularity as singularity,
        verdicts as verdicts,
    )
    from ._sweep import (
        Cases as Cases,
        simulate_many as simulate_many,
        sweep as sweep,
        vary as vary,
    )
    from ._system import (
        AbstractSystem as AbstractSystem,
        GeneralizedSystem as GeneralizedSystem,
        Model as Model,
        MultibodySystem as MultibodySystem,
    )
    from ._verdict import (
        Verdict as Verdict,
    )
else:
    _MODULES = (
        "bounds",
        "criteria",
        "design",
        "elastic",
        "forces",
        "formulations",
        "generalized",
        "mechanisms",
        "motions",
        "planar",
        "results",
        "runs",
        "shapes",
        "spatial",
        "sweeps",
    )
    _WITH_EXTRAS = {
        "finite_elements": "elastic",
        "io": "cli",
        "plot": "cli",
        "report": "report",
        "view": "view",
    }
    _NAMES = {
        "_constraints": (
            "Driver",
            "Servo",
        ),
        "_dynamics": (
            "certify",
            "consistent_state",
            "controls",
            "equilibrium",
            "floquet",
            "inverse_dynamics",
            "kinematics",
            "linearise",
            "reactions",
            "resume",
            "simulate",
            "SimulationError",
        ),
        "_errors": ("AbstractError",),
        "_formulations": ("compare",),
        "_holonomy": ("holonomy",),
        "_kinematics": ("assemble",),
        "_lint": ("lint",),
        "_mobility": ("mobility",),
        "_programs": (
            "jit",
            "keep_programs",
        ),
        "_ranges": (
            "ranges",
            "ranges_along",
        ),
        "_solvability": (
            "analyze",
            "dependent_sets",
            "releases",
            "screen",
            "singularity",
            "verdicts",
        ),
        "_sweep": (
            "Cases",
            "simulate_many",
            "sweep",
            "vary",
        ),
        "_system": (
            "AbstractSystem",
            "GeneralizedSystem",
            "Model",
            "MultibodySystem",
        ),
        "_verdict": ("Verdict",),
    }
    # Names of version 0.1.0, and the namespaces where they stand now.
    _MOVED = {
        "formulations": (
            "AbstractFormulation",
            "Accelerations",
            "AugmentedLagrangian",
            "ConstraintForce",
            "CoordinatePartitioning",
            "ElasticResolution",
            "Elimination",
            "MinimumNorm",
            "NonIdeal",
            "NullSpace",
            "ServoControl",
            "UdwadiaKalaba",
            "undetermined_accelerations",
        ),
        "criteria": (
            "BatchedQR",
            "complete_removal",
            "LapackQR",
            "PlatformQR",
            "QR",
            "RankComparison",
            "removable_rows",
            "SVD",
        ),
        "runs": (
            "Baumgarte",
            "GeneralizedAlpha",
            "Projection",
            "SimulationInterrupted",
            "solve_with_friction",
            "StopAtSingular",
            "StopWhen",
        ),
        "sweeps": (
            "AbstractIteration",
            "AbstractQuestion",
            "AbstractSecondLook",
            "Case",
            "Certification",
            "Fit",
            "Misfit",
            "Simulation",
            "spread",
            "tolerances",
            "workspace",
        ),
        "results": (
            "Assembly",
            "Branch",
            "Certificate",
            "Comparison",
            "ConsistentState",
            "Controls",
            "DependentSets",
            "Equilibrium",
            "Finding",
            "Findings",
            "Floquet",
            "Holonomy",
            "Kinematics",
            "KinematicsError",
            "Linearisation",
            "Mobility",
            "Range",
            "Ranges",
            "Reactions",
            "Releases",
            "RESULTS",
            "Screening",
            "Singularity",
            "Solvability",
            "Spread",
            "Sweep",
            "Trajectory",
            "UndeterminedAccelerations",
            "Verdicts",
            "Workspace",
            "Wrench",
            "WrenchRange",
        ),
        "generalized": (
            "AccelerationConstraint",
            "PfaffianConstraint",
            "PositionConstraint",
            "ServoConstraint",
            "VelocityConstraint",
        ),
    }
    _load_late(__name__, _NAMES, _MODULES, extras=_WITH_EXTRAS, moved=_MOVED)
