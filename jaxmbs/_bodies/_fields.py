"""Declarations that bodies share."""

from .._fields import positive, vector


MASS = positive("mass", "kg", "of the body")
_IN_REFERENCE = "of the centre of mass in the world, reference configuration"
_AT_START = "of the centre of mass, initial, world axes"
PLANAR_POSITION = vector("position", "m", _IN_REFERENCE, 2)
SPATIAL_POSITION = vector("position", "m", _IN_REFERENCE, 3)
PLANAR_VELOCITY = vector("velocity", "m/s", _AT_START, 2)
SPATIAL_VELOCITY = vector("velocity", "m/s", _AT_START, 3)
