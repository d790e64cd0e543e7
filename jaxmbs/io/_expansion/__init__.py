from ._assemblies import TURNS as TURNS
from ._expand import expand as expand, Expanded as Expanded, KEYS as KEYS
from ._parts import GROUPS as GROUPS
from ._scope import RELATIVE as RELATIVE
from ._tables import (
    Assembly as Assembly,
    Cylinder as Cylinder,
    PlanarUse as PlanarUse,
    SHAPES as SHAPES,
    SpatialUse as SpatialUse,
    USES as USES,
)
