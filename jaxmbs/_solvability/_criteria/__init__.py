from ._chosen import chosen_criterion as chosen_criterion, PRECISION_FACTOR as PRECISION_FACTOR
from ._null_space import (
    QR as QR,
    SVD as SVD,
    UNIQUE_BELOW as UNIQUE_BELOW,
    unique_below as unique_below,
)
from ._rank_comparison import RankComparison as RankComparison
from .base import AbstractCriterion as AbstractCriterion
