from typing import TYPE_CHECKING as _TYPE_CHECKING

from .._loading import load_late as _load_late


if _TYPE_CHECKING:
    from ._generalized_body import (
        CoordinateMarker as CoordinateMarker,
        Element as Element,
        GeneralizedBody as GeneralizedBody,
        PoseMarker as PoseMarker,
    )
    from ._modal_body import ModalBody as ModalBody, ModalMarker as ModalMarker
    from ._modal_inertia import ReducedBody as ReducedBody, SecondOrder as SecondOrder
    from ._rigid_bodies import (
        MasslessBody as MasslessBody,
        PlanarBody as PlanarBody,
        PlanarMarker as PlanarMarker,
        PlanarParticle as PlanarParticle,
        SlenderBody as SlenderBody,
        SpatialBody as SpatialBody,
        SpatialMarker as SpatialMarker,
        SpatialParticle as SpatialParticle,
    )
    from ._shapes import (
        AbstractShape as AbstractShape,
        Box as Box,
        Cylinder as Cylinder,
        Sphere as Sphere,
        Tube as Tube,
    )
    from ._visuals import (
        AbstractAxialVisual as AbstractAxialVisual,
        AbstractTurnedVisual as AbstractTurnedVisual,
        AbstractVisual as AbstractVisual,
        VisualBox as VisualBox,
        VisualCapsule as VisualCapsule,
        VisualCylinder as VisualCylinder,
        VisualMesh as VisualMesh,
        VisualPolygon as VisualPolygon,
        VisualSphere as VisualSphere,
        VisualTube as VisualTube,
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
else:
    _NAMES = {
        "_generalized_body": (
            "CoordinateMarker",
            "Element",
            "GeneralizedBody",
            "PoseMarker",
        ),
        "_modal_body": (
            "ModalBody",
            "ModalMarker",
        ),
        "_rigid_bodies": (
            "MasslessBody",
            "PlanarBody",
            "PlanarMarker",
            "PlanarParticle",
            "SlenderBody",
            "SpatialBody",
            "SpatialMarker",
            "SpatialParticle",
        ),
        "_modal_inertia": (
            "ReducedBody",
            "SecondOrder",
        ),
        "_shapes": (
            "AbstractShape",
            "Box",
            "Cylinder",
            "Sphere",
            "Tube",
        ),
        "_visuals": (
            "AbstractAxialVisual",
            "AbstractTurnedVisual",
            "AbstractVisual",
            "VisualBox",
            "VisualCapsule",
            "VisualCylinder",
            "VisualMesh",
            "VisualPolygon",
            "VisualSphere",
            "VisualTube",
        ),
        "base": (
            "AbstractBody",
            "AbstractBodyInertia",
            "AbstractElement",
            "AbstractFramedBody",
            "AbstractInertia",
            "AbstractMarker",
            "differentiated",
            "Frame",
            "lagrangian_inertia_force",
            "MarkerKinematics",
            "ModalElasticity",
            "Part",
            "Site",
        ),
    }
    _load_late(__name__, _NAMES)
