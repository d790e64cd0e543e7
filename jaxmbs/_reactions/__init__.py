from ._evaluate import reactions as reactions
from ._report import Axes as Axes, Reactions as Reactions
from ._wrench import Wrench as Wrench
