from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import equinox as eqx

from .. import _checks
from .._custom_types import Scalar
from .._fields import AbstractDeclared, Field, optional, part_name, positive, reference, word
from ._motions import AbstractMotion
from ._primitives import Driven
from ._servo import ServoRows
from .base import AbstractCoordinate


def _motion(value: AbstractMotion, what: str) -> AbstractMotion:
    if not isinstance(value, AbstractMotion):
        raise TypeError(
            f"{what} must be a motion, such as jaxmbs.motions.Linear(rate=1.0), got "
            f"{_checks.shown(value)}."
        )
    return value


_MOTION: Callable[[AbstractMotion], AbstractMotion] = Field(
    "motion", "", "of the coordinate over time", dict[str, Any], "a table", _motion
)


class Driver(AbstractDeclared):
    """A rheonomic constraint on one relative coordinate of a joint, or on one coordinate of a
    generalized body: one row.

    **Arguments:** `joint`: its name, or the body's; `coordinate`: "translation" (translational,
    cylindrical) or "rotation" (revolute, cylindrical), of the joint's SECOND body against its
    first, zero in the reference configuration, or the name of the body's coordinate, as it counts;
    `motion`: its value over time (m or rad). `time_constant` (s): if given, the driver is a servo:
    a coordinate that deviates from the motion approaches it with that time constant (`Servo`), in
    space an angle by at most 3/8 of a turn. `limit` (N or N m): the largest size of a servo's
    force, reported where more is needed.

    The driver acts at its joint's markers, on both bodies of the joint.

    **Raises:** `TypeError` for a motion that is none.
    """

    kind: ClassVar[str] = "driver"
    name: str = eqx.field(static=True, converter=part_name("a driver"))
    joint: str = eqx.field(static=True, converter=reference("joint", "that it drives"))
    coordinate: str = eqx.field(
        static=True, converter=word("coordinate", "of the joint", "translation or rotation")
    )
    motion: AbstractMotion = eqx.field(converter=_MOTION)
    time_constant: Scalar | None = eqx.field(
        default=None,
        kw_only=True,
        converter=optional(
            positive("time_constant", "s", "in which the error of a servo decays"), "no servo"
        ),
    )
    limit: Scalar | None = eqx.field(
        default=None,
        kw_only=True,
        converter=optional(
            positive("limit", "N or N m", "largest size of a servo's force, to be reported"), "none"
        ),
    )

    def __check_init__(self):
        """Limits are those of servos."""
        if self.limit is not None and not self.servo:
            raise ValueError(
                "limit is that of a servo; give time_constant too, or leave it out (the reactions "
                "of a driver tell its force)."
            )

    @property
    def servo(self) -> bool:
        """Is the coordinate taken to the motion by and by, and not held to it?"""
        return self.time_constant is not None

    def primitive(
        self, said: str, coordinates: Mapping[str, AbstractCoordinate]
    ) -> Driven | ServoRows:
        """The row that the driver adds to what has these coordinates and is called so.

        **Raises:** `ValueError` for an unknown coordinate.
        """
        if self.coordinate not in coordinates:
            offer = " or ".join(map(repr, coordinates)) or "none that can be driven"
            raise ValueError(
                f"{said} has no coordinate {_checks.shown(self.coordinate)}; it has {offer}."
            )
        driven = Driven(coordinates[self.coordinate], self.motion)
        return ServoRows((driven,), self.time_constant, self.limit) if self.servo else driven
