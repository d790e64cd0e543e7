"""Numbers given in the axes of something that has a pose, the rotation that a direction gives, mass
and moments of inertia from a shape, and the conditions under which such numbers exist.
"""

import dataclasses
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from .._bodies import AbstractShape
from .._fields import Moves
from .._geometry import quaternion_from_rotation
from ._formula import AbstractFormula, FormulaError, known, Lookup, namespace


# --------------------------------------------------------------------------------------------------
# Numbers given in the axes of something that has a pose: a body, or a sub-assembly in its place.
#
# A pose is a position and, in the plane, an angle, in space a quaternion (scalar first); both are
# numbers with names, so that what is given in a body's axes follows the body.
# --------------------------------------------------------------------------------------------------


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


# --------------------------------------------------------------------------------------------------
# The rotation that a direction gives.
# --------------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class TurnedTo(AbstractFormula):
    """The shortest rotation that turns the z axis (in the plane the x axis) to a direction, as a
    quaternion (an angle). To the opposite of z it is half a turn about x."""

    direction: AbstractFormula

    @property
    def needs(self) -> tuple[str, ...]:
        return self.direction.needs

    def value(self, numbers: Lookup) -> Any:
        direction = self.direction.value(numbers)
        xp = namespace(direction)
        if np.shape(direction) not in ((2,), (3,)):
            raise FormulaError("a direction must be a vector of 2 or 3 numbers")
        if xp is np and not np.any(direction):
            raise FormulaError("a direction of zero length")
        if np.shape(direction) == (2,):
            return xp.arctan2(direction[1], direction[0])
        x, y, z = direction / xp.sqrt((direction * direction).sum())
        # (1 + z, axis z cross d), and where both vanish half a turn about x.
        opposite = 1.0 + z < 1e-14
        zero = 0.0 * z
        quaternion = xp.stack(
            [
                xp.where(opposite, 0.0, 1.0 + z),
                xp.where(opposite, 1.0, -y),
                xp.where(opposite, 0.0, x),
                zero,
            ]
        )
        return quaternion / xp.sqrt((quaternion * quaternion).sum())


# --------------------------------------------------------------------------------------------------
# Numbers that exist under a condition on others. It is checked where these are known.
# --------------------------------------------------------------------------------------------------


# So far numbers may be off by round-off.
_ROUND_OFF = 1e-9


@dataclasses.dataclass(frozen=True)
class Upright(AbstractFormula):
    """A number of what happens on the world's plane z = 0, of a sub-assembly whose axes keep the
    direction of z. Where a traced turn takes it away there is none (NaN)."""

    turn: str
    inner: AbstractFormula

    @property
    def needs(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((self.turn, *self.inner.needs)))

    def value(self, numbers: Lookup) -> Any:
        value, up = self.inner.value(numbers), rotation_of(numbers(self.turn))[2, 2]
        if isinstance(up, Tracer):
            return jnp.where(up > 1.0 - _ROUND_OFF, value, jnp.nan)
        if up <= 1.0 - _ROUND_OFF:
            raise FormulaError(
                "it rolls on the world's plane z = 0, which does not turn with a sub-assembly; "
                "turn its use about z alone, or declare it outside of the assembly"
            )
        return value


@dataclasses.dataclass(frozen=True)
class InBarrel(AbstractFormula):
    """A number of the rod of a cylinder, which goes into the barrel and reaches it.

    The others are names: of two points, of both lengths, of the rod's radius and of that of what
    it goes into."""

    inner: AbstractFormula
    points: str
    barrel: str
    rod: str
    radius: str
    bore: str

    @property
    def needs(self) -> tuple[str, ...]:
        own = (self.points, self.barrel, self.rod, self.radius, self.bore)
        return tuple(dict.fromkeys((*own, *self.inner.needs)))

    def value(self, numbers: Lookup) -> Any:
        names = (self.points, self.barrel, self.rod, self.radius, self.bore)
        points, barrel, rod, radius, bore = given = [numbers(name) for name in names]
        # A value that is not a number, or of another size, is refused by its own declaration.
        if not any(isinstance(own, Tracer) for own in given) and np.ndim(points) == 2:
            if radius > bore * (1.0 + _ROUND_OFF):
                raise FormulaError(
                    f"the radius {radius:g} of the rod is larger than that of the barrel's "
                    f"inside, {bore:g}; the rod does not go in"
                )
            distance = np.linalg.norm(points[1] - points[0])
            if (barrel + rod) * (1.0 + _ROUND_OFF) < distance:
                raise FormulaError(
                    f"barrel ({barrel:g}) and rod ({rod:g}) together are shorter than the "
                    f"distance {distance:g} of the points; make one of them longer"
                )
        return self.inner.value(numbers)


# --------------------------------------------------------------------------------------------------
# Mass and moments of inertia that follow from a body's shape.
# --------------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class MassOf(AbstractFormula):
    """The mass of a shape: `numbers` are pairs of the words with which it is made and formulas."""

    shape: type[AbstractShape]
    numbers: tuple[tuple[str, AbstractFormula], ...]

    @property
    def needs(self) -> tuple[str, ...]:
        return _needs(self.numbers)

    def value(self, numbers: Lookup) -> Any:
        return known(_made(self.shape, self.numbers, numbers).total_mass())


@dataclasses.dataclass(frozen=True)
class MomentsOf(AbstractFormula):
    """The inertia of a shape about its centre: in space a matrix in body axes, in the plane the
    moment about its normal."""

    shape: type[AbstractShape]
    numbers: tuple[tuple[str, AbstractFormula], ...]
    dimension: int

    @property
    def needs(self) -> tuple[str, ...]:
        return _needs(self.numbers)

    def value(self, numbers: Lookup) -> Any:
        matrix = _made(self.shape, self.numbers, numbers).inertia()
        return known(matrix[2, 2] if self.dimension == 2 else matrix)


def _needs(pairs: tuple[tuple[str, AbstractFormula], ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for _, formula in pairs for name in formula.needs))


def _made(
    shape: type[AbstractShape], pairs: tuple[tuple[str, AbstractFormula], ...], numbers: Lookup
) -> AbstractShape:
    """**Raises:** `FormulaError` for numbers that it cannot have."""
    given = {word: jnp.asarray(formula.value(numbers), float) for word, formula in pairs}
    try:
        return shape(**given)
    except ValueError as error:
        raise FormulaError(str(error).rstrip(".")) from None
