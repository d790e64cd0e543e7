from ._evaluate import (
    explained_reactions as explained_reactions,
    ExplainedReactions as ExplainedReactions,
    reactions_of_multipliers as reactions_of_multipliers,
    wrench_maps as wrench_maps,
)
from ._one_sided import lines_of_multipliers as lines_of_multipliers
from ._report import (
    Axes as Axes,
    NOT_UNIQUE as NOT_UNIQUE,
    Reactions as Reactions,
    Wrench as Wrench,
)
