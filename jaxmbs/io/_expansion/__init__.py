from ._expand import (
    expand as expand,
    Expanded as Expanded,
    GROUPS as GROUPS,
    KEYS as KEYS,
    TURNS as TURNS,
)
from ._scope import (
    Assembly as Assembly,
    Cylinder as Cylinder,
    PlanarUse as PlanarUse,
    RELATIVE as RELATIVE,
    SHAPES as SHAPES,
    SpatialUse as SpatialUse,
    USES as USES,
)
