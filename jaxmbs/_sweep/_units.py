"""Units of the numbers that can be swept, for the store."""

from collections.abc import Mapping
from types import MappingProxyType


# By the word with which a part is made ...
_UNITS: Mapping[str, str] = MappingProxyType(
    {
        "mass": "kg",
        "inertia": "kg m2",
        "position": "m",
        "angle": "rad",
        "orientation": "1",
        "velocity": "m/s",
        "angular_velocity": "rad/s",
        "gravity": "m/s2",
        "at": "m",
        "points": "m",
        "length": "m",
        "radius": "m",
        "pitch": "m",
        "axis": "1",
        "axes": "1",
        "direction": "1",
        "ratio": "1",
        "coefficient": "1",
        "force": "N",
        "torque": "N m",
        "rotation": "rad",
        "translation": "m",
        "frequency": "Hz",
        "phase": "rad",
        "times": "s",
        "time": "s",
    }
)

# ... or where that depends on the kind of part.
_OF_KIND: Mapping[tuple[str, str], str] = MappingProxyType(
    {
        ("spring_damper", "stiffness"): "N/m",
        ("spring_damper", "damping"): "N s/m",
        ("torsion_spring", "stiffness"): "N m/rad",
        ("torsion_spring", "damping"): "N m s/rad",
        ("torsion_spring", "rest"): "rad",
    }
)

# Words of motions that are values of the driven coordinate.
_VALUES = ("amplitude", "offset", "values")


def unit_of(word: str, kind: str = "") -> str:
    """The unit of a number of a part of that kind; empty where it has none of its own."""
    return _OF_KIND.get((kind, word), _UNITS.get(word, ""))


def unit_of_motion(word: str, unit: str) -> str:
    """The unit of a number of the motion of a driver along a coordinate of that unit."""
    if word in _VALUES:
        return unit
    return f"{unit}/s" if word == "rate" else unit_of(word)
