"""Homogeneous solids, from which bodies have their mass and inertia; shapes in contact."""

from ._bodies import (
    Box as Box,
    Cylinder as Cylinder,
    Sphere as Sphere,
    Tube as Tube,
)
from ._forces import (
    ContactBox as ContactBox,
    ContactCapsule as ContactCapsule,
    ContactHalfSpace as ContactHalfSpace,
    ContactPolytope as ContactPolytope,
    ContactSphere as ContactSphere,
)
