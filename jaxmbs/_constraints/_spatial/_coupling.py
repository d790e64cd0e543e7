from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast, ClassVar

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from ... import _checks
from ..._custom_types import NumberList, Numbers
from ..._fields import Field, numbers, two_points
from ..._geometry import SpatialFrame
from .._fields import JOINT_NAME, SOME_BODIES, TWO_AXES
from .._placing import triad
from .._primitives import Coupled, SpatialRotation, SpatialTranslation
from ..base import AbstractCoordinate, AbstractJoint, AbstractPrimitive, Frames


# Both markers of a pair lie at one point in the reference configuration.
_KINDS: Mapping[str, Callable[[], AbstractCoordinate]] = {
    "rotation": SpatialRotation,
    "translation": lambda: SpatialTranslation(jnp.zeros(())),
}


def _four_bodies(value: Any, what: str) -> tuple[str, ...]:
    names = tuple(value) if isinstance(value, list | tuple) else ()
    if len(names) != 4 or not all(isinstance(name, str) and name for name in names):
        raise ValueError(
            f"{what} must name four bodies, first and second of each of the two joints, got "
            f"{_checks.shown(value)}."
        )
    for first, second in (names[:2], names[2:]):
        _checks.body_names([first, second], 2)
    return names


def _two_measures(value: Any, what: str) -> tuple[str, ...]:
    names = tuple(value) if isinstance(value, list | tuple) else ()
    if len(names) != 2 or not all(name in _KINDS for name in names):
        raise ValueError(
            f"{what} must be two words, each 'rotation' or 'translation', got "
            f"{_checks.shown(value)}."
        )
    return names


_BODIES = cast(Field, SOME_BODIES)._replace(
    meaning="of the first coordinate two, then of the second",
    admits="4 names, of which some may be the same",
    check=_four_bodies,
)
_MEASURES = Field(
    "measures",
    "",
    "which move in each of the two pairs of bodies",
    list[str],
    "2 words, each `rotation` or `translation`",
    _two_measures,
)
_POINTS = two_points("points", "one on each axis, reference configuration", 3)
_COEFFICIENTS = numbers(
    "coefficients", "", "c0, c1, ... of the first coordinate as a polynomial of the second"
)


class Coupling(AbstractJoint):
    """The coordinate of one pair of bodies is a polynomial of that of another: a gear between two
    hinges, a rack, a finger that follows another. One row,

        s_1 - (c_0 + c_1 s_2 + c_2 s_2^2 + ...) = 0.

    Each coordinate is that of a revolute, cylindrical or translational joint between the two
    bodies of its pair, which is declared separately: of the SECOND body against the first, about or
    along the axis, zero in the reference configuration. Frames do not count turns: of angles the
    ones nearest to the condition are meant, but the second angle of a polynomial of more than first
    degree is between -pi and pi.

    **Arguments:** `bodies`: four names, first and second body of each pair; `measures`: two
    words, `rotation` or `translation`; `points` (m): one on each axis; `axes`: two world
    directions, both in the reference configuration; `coefficients`: at least one number.
    """

    kind: ClassVar[str] = "coupling"
    located: ClassVar[bool] = False
    name: str = eqx.field(static=True, converter=JOINT_NAME)
    bodies: tuple[str, ...] = eqx.field(static=True, converter=_BODIES)
    measures: tuple[str, ...] = eqx.field(static=True, converter=_MEASURES)
    points: Float[Array, "2 3"] = eqx.field(converter=_POINTS)
    axes: Float[Array, "2 3"] = eqx.field(converter=TWO_AXES)
    coefficients: Float[Array, " n"] = eqx.field(converter=_COEFFICIENTS)

    def __init__(
        self,
        name: str,
        bodies: Sequence[str],
        *,
        measures: Sequence[str],
        points: Numbers,
        axes: Numbers,
        coefficients: NumberList,
    ):
        self.name = name
        self.bodies = _BODIES(bodies)
        self.measures = _MEASURES(measures)
        self.points = _POINTS(points)
        self.axes = TWO_AXES(axes)
        self.coefficients = _COEFFICIENTS(coefficients)

    def placements(self, references: Frames) -> tuple[SpatialFrame, ...]:
        del references
        pairs = [SpatialFrame(self.points[k], triad(self.axes[k])) for k in range(2)]
        return (pairs[0], pairs[0], pairs[1], pairs[1])

    def primitives(self) -> tuple[AbstractPrimitive, ...]:
        first, second = (_KINDS[word]() for word in self.measures)
        return (Coupled(first, second, self.coefficients),)
