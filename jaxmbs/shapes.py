"""Homogeneous solids, from which bodies have their mass and inertia; shapes in contact; visual
shapes, which are how bodies look.
"""

from ._bodies import (
    Box as Box,
    Cylinder as Cylinder,
    Sphere as Sphere,
    Tube as Tube,
    VisualBox as VisualBox,
    VisualCapsule as VisualCapsule,
    VisualCylinder as VisualCylinder,
    VisualMesh as VisualMesh,
    VisualPolygon as VisualPolygon,
    VisualSphere as VisualSphere,
    VisualTube as VisualTube,
)
from ._forces import (
    ContactBox as ContactBox,
    ContactCapsule as ContactCapsule,
    ContactHalfSpace as ContactHalfSpace,
    ContactPolytope as ContactPolytope,
    ContactSphere as ContactSphere,
)
