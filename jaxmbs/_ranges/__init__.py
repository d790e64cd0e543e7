from typing import TYPE_CHECKING as _TYPE_CHECKING

from .._loading import load_late as _load_late


if _TYPE_CHECKING:
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
    from ._report import (
        Range as Range,
        Ranges as Ranges,
        words as words,
        WrenchRange as WrenchRange,
    )
else:
    _NAMES = {
        "_bounds": (
            "AbstractBound",
            "AtLeast",
            "AtMost",
            "Between",
            "FrictionCone",
            "Inequalities",
            "Inequality",
            "Limit",
            "PullsOnly",
            "PushesOnly",
            "ResultantLimit",
        ),
        "_ranges": ("check_question", "given_bounds", "ranges", "ranges_along"),
        "_report": ("Range", "Ranges", "words", "WrenchRange"),
    }
    _load_late(__name__, _NAMES)
