"""Numbers given in the axes of something that has a pose: a body, or a sub-assembly in its place.

A pose is a position and, in the plane, an angle, in space a quaternion (scalar first); both are
numbers with names, so that what is given in a body's axes follows the body.
"""

import dataclasses
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from .._fields import Moves
from .._geometry import quaternion_from_rotation
from ._formula import AbstractFormula, FormulaError, known, Lookup, namespace


@dataclasses.dataclass(frozen=True)
class Pose:
    """The names of the two numbers of a pose: `position`, and `turn` (angle or quaternion)."""

    position: str
    turn: str


@dataclasses.dataclass(frozen=True)
class Moved(AbstractFormula):
    """A number given in the axes of a pose, as it is in the world's."""

    pose: Pose
    moves: Moves
    inner: AbstractFormula

    @property
    def needs(self) -> tuple[str, ...]:
        own = (self.pose.position, self.pose.turn)
        return tuple(dict.fromkeys((*own, *self.inner.needs)))

    def value(self, numbers: Lookup) -> Any:
        origin, turn = numbers(self.pose.position), numbers(self.pose.turn)
        # A wrong size is refused by the part, whose message states the expected size.
        return _MOVES[self.moves](origin, turn, self.inner.value(numbers))


@dataclasses.dataclass(frozen=True)
class QuaternionOf(AbstractFormula):
    """The quaternion of a rotation matrix."""

    inner: AbstractFormula

    @property
    def needs(self) -> tuple[str, ...]:
        return self.inner.needs

    def value(self, numbers: Lookup) -> Any:
        matrix = self.inner.value(numbers)
        if np.shape(matrix) != (3, 3):
            raise FormulaError("a rotation must be a 3 x 3 matrix")
        return known(quaternion_from_rotation(matrix))


def product(a: Any, b: Any) -> Any:
    """Product of quaternions; the rotation b is applied first."""
    xp = namespace(a, b)
    scalar = a[0] * b[0] - (a[1:] * b[1:]).sum()
    vector = a[0] * b[1:] + b[0] * a[1:] + xp.cross(a[1:], b[1:])
    return xp.concatenate([scalar[None], vector])


def rotation_of(turn: Any) -> Any:
    """The matrix whose columns are the turned axes."""
    xp = namespace(turn)
    if np.shape(turn) == ():
        c, s = xp.cos(turn), xp.sin(turn)
        return xp.stack([xp.stack([c, -s]), xp.stack([s, c])])
    w, u = turn[0], turn[1:]
    zero = 0.0 * w
    cross = xp.stack(
        [
            xp.stack([zero, -u[2], u[1]]),
            xp.stack([u[2], zero, -u[0]]),
            xp.stack([-u[1], u[0], zero]),
        ]
    )
    square = (u * u).sum()
    outer = u[:, None] * u[None]
    return np.eye(3) + 2.0 / (w * w + square) * (outer - square * np.eye(3) + w * cross)


def _vector(origin: Any, turn: Any, value: Any) -> Any:
    if np.shape(value)[-1:] != np.shape(origin):
        return value
    return value @ rotation_of(turn).T


def _point(origin: Any, turn: Any, value: Any) -> Any:
    if np.shape(value)[-1:] != np.shape(origin):
        return value
    rotated = value @ rotation_of(turn).T
    return rotated + namespace(origin, rotated).broadcast_to(origin, np.shape(rotated))


def _over_motions(origin: Any, turn: Any, value: Any) -> Any:
    size = 3 if np.shape(origin) == (2,) else 6
    if np.shape(value) not in ((size,), (size, size)):
        return value
    xp, linear = namespace(turn, value), rotation_of(turn)
    matrix = xp.diag(value) if np.ndim(value) == 1 else value
    angular = linear if size == 6 else np.eye(1)
    beside = np.zeros((linear.shape[0], angular.shape[0]))
    axes = xp.concatenate(
        [
            xp.concatenate([linear, beside], axis=1),
            xp.concatenate([beside.T, angular], axis=1),
        ]
    )
    return axes @ matrix @ axes.T


def _coefficients(origin: Any, turn: Any, value: Any) -> Any:
    dimension = np.shape(origin)[0]
    width = 3 if dimension == 2 else 6
    shape = np.shape(value)
    if not shape or shape[-1] % width:
        return value
    each = value.reshape(-1, width)
    linear = each[:, :dimension] @ rotation_of(turn).T
    together = namespace(turn, value).concatenate([linear, each[:, dimension:]], axis=1)
    return together.reshape(shape)


def _orientation(origin: Any, turn: Any, value: Any) -> Any:
    del origin
    return product(turn, value) if np.shape(value) == (4,) else value


def _rotation(origin: Any, turn: Any, value: Any) -> Any:
    del origin
    return rotation_of(turn) @ value if np.shape(value) == (3, 3) else value


def _angle(origin: Any, turn: Any, value: Any) -> Any:
    del origin
    return turn + value


def _nothing(origin: Any, turn: Any, value: Any) -> Any:
    del origin, turn
    return value


_MOVES: Mapping[Moves, Callable[[Any, Any, Any], Any]] = MappingProxyType(
    {
        Moves.nothing: _nothing,
        Moves.point: _point,
        Moves.vector: _vector,
        Moves.orientation: _orientation,
        Moves.rotation: _rotation,
        Moves.angle: _angle,
        Moves.over_motions: _over_motions,
        Moves.coefficients: _coefficients,
    }
)
