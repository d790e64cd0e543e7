from ._guard import Guard as Guard, guard as guard
from ._objective import (
    evaluate as evaluate,
    Evaluation as Evaluation,
    Gradient as Gradient,
    gradient as gradient,
    Objective as Objective,
    require_gradient as require_gradient,
)
from ._path import rank_changes as rank_changes, RankChange as RankChange
from ._quantities import (
    AbstractQuantity as AbstractQuantity,
    Combination as Combination,
    Final as Final,
    Force as Force,
    MeanSquare as MeanSquare,
    Peak as Peak,
)
from ._refusal import DesignError as DesignError
from ._runs import (
    AbstractRun as AbstractRun,
    AtState as AtState,
    Driven as Driven,
    Motion as Motion,
)
from ._study import Study as Study
