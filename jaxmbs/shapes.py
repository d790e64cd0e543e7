"""Homogeneous solids, from which bodies have their mass and inertia."""

from ._bodies import (
    Box as Box,
    Cylinder as Cylinder,
    Sphere as Sphere,
    Tube as Tube,
)
