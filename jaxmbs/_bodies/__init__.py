from ._coordinate_marker import CoordinateMarker as CoordinateMarker, PoseMarker as PoseMarker
from ._element import Element as Element
from ._generalized_body import GeneralizedBody as GeneralizedBody
from ._modal_body import ModalBody as ModalBody
from ._modal_marker import ModalMarker as ModalMarker
from ._particle import PlanarParticle as PlanarParticle, SpatialParticle as SpatialParticle
from ._planar_body import PlanarBody as PlanarBody, PlanarMarker as PlanarMarker
from ._reduced_body import ReducedBody as ReducedBody, SecondOrder as SecondOrder
from ._shapes import (
    AbstractShape as AbstractShape,
    Box as Box,
    Cylinder as Cylinder,
    Sphere as Sphere,
    Tube as Tube,
)
from ._spatial_body import (
    MasslessBody as MasslessBody,
    SlenderBody as SlenderBody,
    SpatialBody as SpatialBody,
    SpatialMarker as SpatialMarker,
)
from .base import (
    AbstractBody as AbstractBody,
    AbstractBodyInertia as AbstractBodyInertia,
    AbstractElement as AbstractElement,
    AbstractFramedBody as AbstractFramedBody,
    AbstractInertia as AbstractInertia,
    AbstractMarker as AbstractMarker,
    differentiated as differentiated,
    Frame as Frame,
    lagrangian_inertia_force as lagrangian_inertia_force,
    MarkerKinematics as MarkerKinematics,
    ModalElasticity as ModalElasticity,
    Part as Part,
    Site as Site,
)
