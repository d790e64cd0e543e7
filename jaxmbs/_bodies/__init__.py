from ._particle import PlanarParticle as PlanarParticle, SpatialParticle as SpatialParticle
from ._planar_body import PlanarBody as PlanarBody, PlanarMarker as PlanarMarker
from ._spatial_body import SpatialBody as SpatialBody, SpatialMarker as SpatialMarker
from .base import (
    AbstractBody as AbstractBody,
    AbstractInertia as AbstractInertia,
    AbstractMarker as AbstractMarker,
    differentiated as differentiated,
    MarkerKinematics as MarkerKinematics,
)
