"""Prior knowledge of reactions, for `jaxmbs.ranges`."""

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
