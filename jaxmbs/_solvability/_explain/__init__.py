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
