from typing import TYPE_CHECKING as _TYPE_CHECKING

from .._loading import load_late as _load_late


if _TYPE_CHECKING:
    from ._analyze import analyze as analyze
    from ._criteria import (
        AbstractCriterion as AbstractCriterion,
        chosen_criterion as chosen_criterion,
        QR as QR,
        RankComparison as RankComparison,
        SVD as SVD,
    )
    from ._explain import (
        complete_removal as complete_removal,
        dependent_sets as dependent_sets,
        DependentSets as DependentSets,
        is_long as is_long,
        reason as reason,
        Releases as Releases,
        releases as releases,
        removable_rows as removable_rows,
        sharing as sharing,
        sharing_dependent_sets as sharing_dependent_sets,
        Singularity as Singularity,
        singularity as singularity,
    )
    from ._expression import parse_combination as parse_combination, parse_linear as parse_linear
    from ._precision import (
        redundancy_at_precision as redundancy_at_precision,
        RedundancyAtPrecision as RedundancyAtPrecision,
        refuse_at_precision as refuse_at_precision,
        warn_at_precision as warn_at_precision,
    )
    from ._report import Solvability as Solvability
    from ._screening import screen as screen, Screening as Screening, verdicts as verdicts
else:
    _NAMES = {
        "_analyze": ("analyze",),
        "_criteria": (
            "AbstractCriterion",
            "chosen_criterion",
            "QR",
            "RankComparison",
            "SVD",
        ),
        "_explain": (
            "complete_removal",
            "dependent_sets",
            "DependentSets",
            "is_long",
            "reason",
            "Releases",
            "releases",
            "removable_rows",
            "sharing",
            "sharing_dependent_sets",
            "Singularity",
            "singularity",
        ),
        "_expression": ("parse_combination", "parse_linear"),
        "_precision": (
            "redundancy_at_precision",
            "RedundancyAtPrecision",
            "refuse_at_precision",
            "warn_at_precision",
        ),
        "_report": ("Solvability",),
        "_screening": ("screen", "Screening", "verdicts"),
    }
    _load_late(__name__, _NAMES)
