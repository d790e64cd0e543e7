from typing import ClassVar

import equinox as eqx

from .. import _checks
from ._motions import AbstractMotion
from ._primitives import Driven
from .base import AbstractJoint


# The words of the relative coordinates that joints have.
COORDINATES = ("rotation", "translation")


class Driver(eqx.Module):
    """A rheonomic constraint on one relative coordinate of a joint: one row.

    **Arguments:** `joint`: its name; `coordinate`: "translation" (translational, cylindrical)
    or "rotation" (revolute, cylindrical), of the joint's SECOND body against its first, zero
    in the reference configuration; `motion`: its value over time (m or rad).

    The driver acts at its joint's markers, on both bodies of the joint.

    **Raises:** `ValueError` for a coordinate that no joint has, `TypeError` for a motion that is
    none.
    """

    kind: ClassVar[str] = "driver"
    name: str = eqx.field(static=True)
    joint: str = eqx.field(static=True)
    coordinate: str = eqx.field(static=True)
    motion: AbstractMotion

    def __init__(self, name: str, joint: str, coordinate: str, motion: AbstractMotion):
        self.name = _checks.name(name, "a driver")
        self.joint = _checks.reference(joint, "joint")
        if coordinate not in COORDINATES:
            raise ValueError(
                f"coordinate must be {' or '.join(map(repr, COORDINATES))} of joint "
                f"{_checks.shown(joint)}, got {_checks.shown(coordinate)}."
            )
        if not isinstance(motion, AbstractMotion):
            raise TypeError(
                "motion must be a motion, such as jaxmbs.motions.Linear(rate=1.0), got "
                f"{_checks.shown(motion)}."
            )
        self.coordinate = coordinate
        self.motion = motion

    def primitive(self, joint: AbstractJoint) -> Driven:
        """The row that the driver adds to its joint.

        **Raises:** `ValueError` if the joint has no such coordinate.
        """
        coordinates = joint.coordinates()
        if self.coordinate not in coordinates:
            offer = " or ".join(f'"{c}"' for c in coordinates) or "none that can be driven"
            raise ValueError(
                f"joint {_checks.shown(joint.name)} ({joint.kind}) has no coordinate "
                f'"{self.coordinate}"; it has {offer}.'
            )
        return Driven(coordinates[self.coordinate], self.motion)
