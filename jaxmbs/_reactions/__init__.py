from ._evaluate import (
    explained_reactions as explained_reactions,
    ExplainedReactions as ExplainedReactions,
    reactions_of_multipliers as reactions_of_multipliers,
)
from ._report import Axes as Axes, Reactions as Reactions
from ._text import NOT_UNIQUE as NOT_UNIQUE
from ._wrench import Wrench as Wrench
from ._wrench_maps import wrench_maps as wrench_maps
