"""Names of classes in model files. A new joint, motion, force or compliance is one
line here: its keys are what its fields declare (`_fields.py`)."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from .. import forces, motions, planar, spatial
from .._compliances import JointCompliance, Rod


BODIES: Mapping[int, type[Any]] = MappingProxyType({2: planar.Body, 3: spatial.Body})
JOINTS: Mapping[int, Mapping[str, type[Any]]] = MappingProxyType(
    {
        2: {
            "revolute": planar.Revolute,
            "translational": planar.Translational,
            "fixed": planar.Fixed,
            "point_on_line": planar.PointOnLine,
            "distance": planar.Distance,
            "gear": planar.Gear,
            "knife_edge": planar.KnifeEdge,
            "pfaffian": planar.Pfaffian,
        },
        3: {
            "revolute": spatial.Revolute,
            "translational": spatial.Translational,
            "fixed": spatial.Fixed,
            "spherical": spatial.Spherical,
            "coupling": spatial.Coupling,
            "cylindrical": spatial.Cylindrical,
            "universal": spatial.Universal,
            "planar": spatial.Planar,
            "screw": spatial.Screw,
            "point_on_line": spatial.PointOnLine,
            "point_on_plane": spatial.PointOnPlane,
            "parallel_axes": spatial.ParallelAxes,
            "perpendicular_axes": spatial.PerpendicularAxes,
            "distance": spatial.Distance,
            "rolling_disk": spatial.RollingDisk,
            "pfaffian": spatial.Pfaffian,
        },
    }
)
# Words for the same thing.
SYNONYMS: Mapping[str, str] = MappingProxyType({"prismatic": "translational"})
MOTIONS: Mapping[str, type[Any]] = MappingProxyType(
    {
        "sine": motions.Sine,
        "linear": motions.Linear,
        "polynomial": motions.Polynomial,
        "table": motions.Table,
        "step": motions.Step,
    }
)
FORCES: Mapping[str, type[Any]] = MappingProxyType(
    {
        "applied": forces.Applied,
        "axial_spring": forces.AxialSpring,
        "ball_spring": forces.BallSpring,
        "bushing": forces.Bushing,
        "spring_damper": forces.SpringDamper,
        "torsion_spring": forces.TorsionSpring,
        "coulomb_friction": forces.CoulombFriction,
    }
)
COMPLIANCES: Mapping[str, type[Any]] = MappingProxyType({"rod": Rod, "joint": JointCompliance})
# Bodies of a type of their own; others have none.
TYPED_BODIES: Mapping[int, Mapping[str, type[Any]]] = MappingProxyType(
    {2: {}, 3: {"massless": spatial.MasslessBody, "slender": spatial.SlenderBody}}
)
ELEMENTS: Mapping[int, Mapping[str, type[Any]]] = MappingProxyType(
    {
        2: {},
        3: {
            "reflected_inertia": spatial.ReflectedInertia,
            "reflected_mass": spatial.ReflectedMass,
            "ball_inertia": spatial.BallInertia,
        },
    }
)
# What an applied force follows, the default first: one class each, of the same keys.
FOLLOWS: Mapping[str, type[Any]] = MappingProxyType(
    {"world": forces.Applied, "body": forces.Following}
)


def word_of(part: Any, classes: Mapping[str, type[Any]]) -> str | None:
    """The name of a part's type among these classes; None for parts without one."""
    cls = FORCES["applied"] if type(part) in FOLLOWS.values() else type(part)
    return next((word for word, known in classes.items() if known is cls), None)


def followed(part: Any) -> dict[str, str]:
    """The key for the frame that an applied force follows; none for other parts."""
    words = [word for word, cls in FOLLOWS.items() if type(part) is cls]
    return {"follows": words[0]} if words else {}
