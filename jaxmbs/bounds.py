"""Prior knowledge of reactions, for `jaxmbs.ranges`."""

from typing import TYPE_CHECKING as _TYPE_CHECKING

from ._loading import load_late as _load_late


if _TYPE_CHECKING:
    from ._ranges import (
        AbstractBound as AbstractBound,
        AtLeast as AtLeast,
        AtMost as AtMost,
        Between as Between,
        FrictionCone as FrictionCone,
        Inequality as Inequality,
        Limit as Limit,
        PullsOnly as PullsOnly,
        PushesOnly as PushesOnly,
        ResultantLimit as ResultantLimit,
    )
else:
    _NAMES = {
        "_ranges": (
            "AbstractBound",
            "AtLeast",
            "AtMost",
            "Between",
            "FrictionCone",
            "Inequality",
            "Limit",
            "PullsOnly",
            "PushesOnly",
            "ResultantLimit",
        ),
    }
    _load_late(__name__, _NAMES)
