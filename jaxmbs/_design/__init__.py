from typing import TYPE_CHECKING as _TYPE_CHECKING

from .._loading import load_late as _load_late


if _TYPE_CHECKING:
    from ._descent import Descent as Descent
    from ._guard import (
        Guard as Guard,
        guard as guard,
        rank_changes as rank_changes,
        RankChange as RankChange,
    )
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
        BFGS as BFGS,
        SLSQP as SLSQP,
        TrustRegion as TrustRegion,
    )
    from ._problem import (
        AtMost as AtMost,
        Optimum as Optimum,
        Progress as Progress,
        Starts as Starts,
        Visit as Visit,
    )
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
    from ._sensitivity import (
        Change as Change,
        Sensitivity as Sensitivity,
        sensitivity as sensitivity,
    )
    from ._study import (
        AbstractRun as AbstractRun,
        AtState as AtState,
        DesignError as DesignError,
        Driven as Driven,
        Motion as Motion,
        responded as responded,
        Study as Study,
    )
else:
    _NAMES = {
        "_optimisers": (
            "AbstractOptimiser",
            "BFGS",
            "SLSQP",
            "TrustRegion",
        ),
        "_descent": ("Descent",),
        "_guard": (
            "Guard",
            "guard",
            "rank_changes",
            "RankChange",
        ),
        "_problem": (
            "AtMost",
            "Optimum",
            "Progress",
            "Starts",
            "Visit",
        ),
        "_minimise": (
            "minimise",
            "multistart",
        ),
        "_objective": (
            "evaluate",
            "Evaluation",
            "gradient",
            "Gradient",
            "hessian_vector",
            "Objective",
            "require_gradient",
        ),
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
        "_study": (
            "AbstractRun",
            "AtState",
            "DesignError",
            "Driven",
            "Motion",
            "responded",
            "Study",
        ),
        "_sensitivity": (
            "Change",
            "sensitivity",
            "Sensitivity",
        ),
    }
    _load_late(__name__, _NAMES)
