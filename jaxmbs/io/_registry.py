"""Which word of a model file means which class, and which keys it takes.

A new joint, motion or force is one line here. Keys are the names of constructor arguments; the
key `at` also admits `points` (one world point on each body).
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from .. import forces, planar, spatial
from .._constraints import AbstractJoint, AbstractMotion, Linear, Polynomial, Sine, Step, Table
from .._forces import AbstractForce


class Entry(NamedTuple):
    """A class, and the keys that must and may stand in its table besides the common ones."""

    cls: type[Any]
    required: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()

    @property
    def paired(self) -> bool:
        """Does it take `at` for both bodies, or `points`, one for each?"""
        return "at" in self.required and "direction" not in self.required


_PLANAR_JOINTS: Mapping[str, Entry] = {
    "revolute": Entry(planar.Revolute, ("at",)),
    "translational": Entry(planar.Translational, ("at", "axis")),
    "fixed": Entry(planar.Fixed, ("at",)),
    "point_on_line": Entry(planar.PointOnLine, ("at", "axis")),
    "distance": Entry(planar.Distance, ("points",), ("length",)),
    "gear": Entry(planar.Gear, ("ratio",), ("carrier",)),
    "knife_edge": Entry(planar.KnifeEdge, ("at", "direction")),
    "pfaffian": Entry(planar.Pfaffian, ("coefficients",)),
}
_SPATIAL_JOINTS: Mapping[str, Entry] = {
    "revolute": Entry(spatial.Revolute, ("at", "axis")),
    "translational": Entry(spatial.Translational, ("at", "axis")),
    "fixed": Entry(spatial.Fixed, ("at",)),
    "spherical": Entry(spatial.Spherical, ("at",)),
    "cylindrical": Entry(spatial.Cylindrical, ("at", "axis")),
    "universal": Entry(spatial.Universal, ("at", "axes")),
    "planar": Entry(spatial.Planar, ("at", "axis")),
    "screw": Entry(spatial.Screw, ("at", "axis", "pitch")),
    "point_on_line": Entry(spatial.PointOnLine, ("at", "axis")),
    "point_on_plane": Entry(spatial.PointOnPlane, ("at", "axis")),
    "parallel_axes": Entry(spatial.ParallelAxes, ("axes",)),
    "perpendicular_axes": Entry(spatial.PerpendicularAxes, ("axes",)),
    "distance": Entry(spatial.Distance, ("points",), ("length",)),
    "rolling_disk": Entry(spatial.RollingDisk, ("axis", "radius")),
    "pfaffian": Entry(spatial.Pfaffian, ("coefficients",)),
}
JOINTS: Mapping[int, Mapping[str, Entry]] = MappingProxyType(
    {2: _PLANAR_JOINTS, 3: _SPATIAL_JOINTS}
)
# Words for the same thing.
SYNONYMS: Mapping[str, str] = MappingProxyType({"prismatic": "translational"})

MOTIONS: Mapping[str, Entry] = MappingProxyType(
    {
        "sine": Entry(Sine, ("amplitude", "frequency"), ("offset", "phase")),
        "linear": Entry(Linear, ("rate",), ("offset",)),
        "polynomial": Entry(Polynomial, ("coefficients",)),
        "table": Entry(Table, ("times", "values")),
        "step": Entry(Step, ("times", "values")),
    }
)


FORCES: Mapping[str, Entry] = MappingProxyType(
    {
        "applied": Entry(forces.Applied, ("body",), ("at", "force", "torque", "follows")),
        "bushing": Entry(forces.Bushing, ("bodies", "at", "stiffness"), ("damping",)),
        "spring_damper": Entry(
            forces.SpringDamper, ("bodies", "points", "stiffness"), ("damping", "length")
        ),
        "torsion_spring": Entry(
            forces.TorsionSpring, ("joint",), ("stiffness", "damping", "rest", "torque")
        ),
        "coulomb_friction": Entry(
            forces.CoulombFriction, ("joint", "coefficient", "velocity"), ("radius",)
        ),
    }
)
# What an applied force follows: one class each, of the same keys.
FOLLOWS: Mapping[str, type[AbstractForce]] = MappingProxyType(
    {"world": forces.Applied, "body": forces.Following}
)


def joint_entry(joint: AbstractJoint, dimension: int) -> Entry:
    """The entry that a joint is written with.

    **Raises:** `ValueError` for a joint that model files do not know (user-written functions).
    """
    entry = JOINTS[dimension].get(joint.kind)
    if entry is None or type(joint) is not entry.cls:
        raise ValueError(
            f"joint {joint.name!r} ({joint.kind}) is made of a Python function and cannot be "
            "written to a model file."
        )
    return entry


def motion_word(motion: AbstractMotion) -> str:
    """The word of a motion.

    **Raises:** `ValueError` for a motion that model files do not know.
    """
    for word, entry in MOTIONS.items():
        if type(motion) is entry.cls:
            return word
    raise ValueError(f"{type(motion).__name__} is no motion of a model file.")


def force_entry(force: AbstractForce) -> Entry:
    """The entry that a force is written with.

    **Raises:** `ValueError` for a force that model files do not know (user-written functions).
    """
    entry = FORCES.get(force.kind)
    if entry is None or type(force) not in (entry.cls, *FOLLOWS.values()):
        raise ValueError(
            f"force {force.name!r} ({force.kind}) is made of a Python function and cannot be "
            "written to a model file."
        )
    return entry


def follows(force: AbstractForce) -> str:
    """What an applied force follows, by its word."""
    return next(word for word, cls in FOLLOWS.items() if type(force) is cls)
