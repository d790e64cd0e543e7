from typing import TYPE_CHECKING as _TYPE_CHECKING

from .._loading import load_late as _load_late


if _TYPE_CHECKING:
    from ._bfgs import BFGS as BFGS
    from ._descent import Descent as Descent
    from ._guard import Guard as Guard, guard as guard
    from ._logbook import Progress as Progress
    from ._minimise import minimise as minimise, multistart as multistart
    from ._objective import (
        evaluate as evaluate,
        Evaluation as Evaluation,
        Gradient as Gradient,
        gradient as gradient,
        hessian_vector as hessian_vector,
        Objective as Objective,
        require_gradient as require_gradient,
    )
    from ._optimisers import (
        AbstractOptimiser as AbstractOptimiser,
        SLSQP as SLSQP,
        TrustRegion as TrustRegion,
    )
    from ._optimum import Optimum as Optimum, Starts as Starts, Visit as Visit
    from ._path import rank_changes as rank_changes, RankChange as RankChange
    from ._problem import AtMost as AtMost
    from ._quantities import (
        AbstractObjective as AbstractObjective,
        AbstractQuantity as AbstractQuantity,
        Combination as Combination,
        Final as Final,
        Force as Force,
        MeanSquare as MeanSquare,
        Peak as Peak,
        Torque as Torque,
    )
    from ._refusal import DesignError as DesignError
    from ._runs import (
        AbstractRun as AbstractRun,
        AtState as AtState,
        Driven as Driven,
        Motion as Motion,
    )
    from ._sensitivity import (
        Change as Change,
        Sensitivity as Sensitivity,
        sensitivity as sensitivity,
    )
    from ._study import responded as responded, Study as Study
else:
    _NAMES = {
        "_bfgs": ("BFGS",),
        "_descent": ("Descent",),
        "_guard": ("Guard", "guard"),
        "_logbook": ("Progress",),
        "_minimise": ("minimise", "multistart"),
        "_objective": (
            "evaluate",
            "Evaluation",
            "Gradient",
            "gradient",
            "hessian_vector",
            "Objective",
            "require_gradient",
        ),
        "_optimisers": ("AbstractOptimiser", "SLSQP", "TrustRegion"),
        "_optimum": ("Optimum", "Starts", "Visit"),
        "_path": ("rank_changes", "RankChange"),
        "_problem": ("AtMost",),
        "_quantities": (
            "AbstractObjective",
            "AbstractQuantity",
            "Combination",
            "Final",
            "Force",
            "MeanSquare",
            "Peak",
            "Torque",
        ),
        "_refusal": ("DesignError",),
        "_runs": ("AbstractRun", "AtState", "Driven", "Motion"),
        "_sensitivity": ("Change", "Sensitivity", "sensitivity"),
        "_study": ("responded", "Study"),
    }
    _load_late(__name__, _NAMES)
