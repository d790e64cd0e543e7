from typing import TYPE_CHECKING as _TYPE_CHECKING

from .._loading import load_late as _load_late


if _TYPE_CHECKING:
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
else:
    _NAMES = {
        "_coordinate_marker": ("CoordinateMarker", "PoseMarker"),
        "_element": ("Element",),
        "_generalized_body": ("GeneralizedBody",),
        "_modal_body": ("ModalBody",),
        "_modal_marker": ("ModalMarker",),
        "_particle": ("PlanarParticle", "SpatialParticle"),
        "_planar_body": ("PlanarBody", "PlanarMarker"),
        "_reduced_body": ("ReducedBody", "SecondOrder"),
        "_shapes": ("AbstractShape", "Box", "Cylinder", "Sphere", "Tube"),
        "_spatial_body": ("MasslessBody", "SlenderBody", "SpatialBody", "SpatialMarker"),
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
