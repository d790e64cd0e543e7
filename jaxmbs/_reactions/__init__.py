from ._evaluate import (
    reactions as reactions,
    reactions_and_solvability as reactions_and_solvability,
)
from ._report import Axes as Axes, Reactions as Reactions
from ._text import NOT_UNIQUE as NOT_UNIQUE
from ._wrench import Wrench as Wrench
from ._wrench_maps import wrench_maps as wrench_maps
