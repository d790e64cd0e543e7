from typing import TYPE_CHECKING as _TYPE_CHECKING

from ..._loading import load_late as _load_late


if _TYPE_CHECKING:
    from ._dependent_sets import (
        dependent_sets as dependent_sets,
        DependentSets as DependentSets,
        sharing as sharing,
        sharing_dependent_sets as sharing_dependent_sets,
    )
    from ._reason import is_long as is_long, reason as reason
    from ._releases import Releases as Releases, releases as releases
    from ._rows import complete_removal as complete_removal, removable_rows as removable_rows
    from ._singularity import Singularity as Singularity, singularity as singularity
else:
    _NAMES = {
        "_dependent_sets": ("dependent_sets", "DependentSets", "sharing", "sharing_dependent_sets"),
        "_reason": ("is_long", "reason"),
        "_releases": ("Releases", "releases"),
        "_rows": ("complete_removal", "removable_rows"),
        "_singularity": ("Singularity", "singularity"),
    }
    _load_late(__name__, _NAMES)
