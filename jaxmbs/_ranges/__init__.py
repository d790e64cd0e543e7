from ._bounds import (
    AbstractBound as AbstractBound,
    AtLeast as AtLeast,
    AtMost as AtMost,
    Between as Between,
    FrictionCone as FrictionCone,
    Inequalities as Inequalities,
    Inequality as Inequality,
    Limit as Limit,
    PullsOnly as PullsOnly,
    PushesOnly as PushesOnly,
    ResultantLimit as ResultantLimit,
)
from ._ranges import (
    check_question as check_question,
    given_bounds as given_bounds,
    ranges as ranges,
    ranges_along as ranges_along,
)
from ._report import Range as Range, Ranges as Ranges, words as words, WrenchRange as WrenchRange
