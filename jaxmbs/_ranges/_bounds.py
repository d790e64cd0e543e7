"""Bounds of reactions: of one row, of linear expressions, of resultants, within friction cones,
and as text.
"""

import abc
import itertools
import re
from typing import Any, NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .. import _checks, _settings
from .._checks import listed, shown
from .._custom_types import Numbers, Setting
from ._report import Variables


class Inequalities(NamedTuple):
    """`matrix` x <= `limit` for the variables x (`Variables`)."""

    matrix: Float[Array, "n variables"]
    limit: Float[Array, " n"]


class AbstractBound(eqx.Module):
    """Prior knowledge of reactions: inequalities, linear in multipliers and components of wrenches,
    that the forces of the real mechanism satisfy.

    Numbers in it are array leaves; what it is about is static.
    """

    @abc.abstractmethod
    def inequalities(self, variables: Variables) -> Inequalities:
        """The bound as inequalities in the variables of a system.

        **Raises:** `ValueError` for a name that the system does not have.
        """

    @abc.abstractmethod
    def words(self) -> str:
        """The bound in one line, as it is named where loads cannot be carried."""


# --------------------------------------------------------------------------------------------------
# Bounds of linear expressions: on one side, or on both.
# --------------------------------------------------------------------------------------------------


_SUCH_AS = "'W1', 'B.force.x' or 'W1 + W2'"


class AtLeast(AbstractBound):
    """`expression` >= `value`.

    **Arguments:** `expression`: linear in row names (multipliers) and components of wrenches, such
    as `"W1 + W2"` or `"B.force.y"`; `value`: N or N m, as the expression is.
    """

    expression: str = eqx.field(static=True)
    value: Float[Array, ""]

    def __init__(self, expression: Setting[str], value: Setting[Numbers]):
        self.expression = _settings.text(expression, "expression", _SUCH_AS)
        self.value = _settings.between(value, "value")

    def inequalities(self, variables: Variables) -> Inequalities:
        constant, coefficients = variables.linear(self.expression)
        return Inequalities(-jnp.asarray(coefficients)[None], (constant - self.value)[None])

    def words(self) -> str:
        return f"{self.expression} >= {_shown(self.value)}"


class AtMost(AbstractBound):
    """`expression` <= `value`; arguments as of `AtLeast`."""

    expression: str = eqx.field(static=True)
    value: Float[Array, ""]

    def __init__(self, expression: Setting[str], value: Setting[Numbers]):
        self.expression = _settings.text(expression, "expression", _SUCH_AS)
        self.value = _settings.between(value, "value")

    def inequalities(self, variables: Variables) -> Inequalities:
        constant, coefficients = variables.linear(self.expression)
        return Inequalities(jnp.asarray(coefficients)[None], (self.value - constant)[None])

    def words(self) -> str:
        return f"{self.expression} <= {_shown(self.value)}"


class Between(AbstractBound):
    """`low` <= `expression` <= `high`; arguments as of `AtLeast`."""

    expression: str = eqx.field(static=True)
    low: Float[Array, ""]
    high: Float[Array, ""]

    def __init__(self, expression: Setting[str], low: Setting[Numbers], high: Setting[Numbers]):
        self.expression = _settings.text(expression, "expression", _SUCH_AS)
        self.low = _settings.between(low, "low")
        self.high = _settings.between(high, "high")
        ends = [_checks.concrete(x) for x in (low, high)]
        if ends[0] is not None and ends[1] is not None and ends[0] > ends[1]:
            raise ValueError(f"low must not be greater than high, got {low} and {high}.")

    def inequalities(self, variables: Variables) -> Inequalities:
        constant, coefficients = variables.linear(self.expression)
        row = jnp.asarray(coefficients)
        limits = jnp.stack([self.high - constant, constant - self.low])
        return Inequalities(jnp.stack([row, -row]), limits)

    def words(self) -> str:
        return f"{_shown(self.low)} <= {self.expression} <= {_shown(self.high)}"


def _shown(value: Float[Array, ""]) -> str:
    known = _checks.concrete(value)
    return "a traced number" if known is None else f"{float(known):.6g}"


class Limit(AbstractBound):
    """|`expression`| <= `value`: what a part can carry, in both directions.

    **Arguments:** `expression`: as of `AtLeast`, or the name of a joint of several rows: then each
    component of its force along the world's axes (the magnitude: `ResultantLimit`); `value`: N or
    N m.
    """

    expression: str = eqx.field(static=True)
    value: Float[Array, ""]

    def __init__(self, expression: Setting[str], value: Setting[Numbers]):
        self.expression = _settings.text(expression, "expression", _SUCH_AS)
        self.value = _settings.between(value, "value", least=0)

    def inequalities(self, variables: Variables) -> Inequalities:
        if self.expression in variables.names or not variables.has_wrench(self.expression):
            constant, coefficients = variables.linear(self.expression)
            rows = jnp.asarray(coefficients)[None]
        else:
            constant = 0.0
            rows = jnp.asarray(variables.unit_vectors(variables.force(self.expression)))
        high = jnp.broadcast_to(self.value, rows.shape[:1])
        matrix = jnp.concatenate([rows, -rows])
        return Inequalities(matrix, jnp.concatenate([high - constant, high + constant]))

    def words(self) -> str:
        return f"|{self.expression}| <= {_shown(self.value)}"


# --------------------------------------------------------------------------------------------------
# Contacts and cables: rows that carry force in one direction alone.
# --------------------------------------------------------------------------------------------------


class PushesOnly(AbstractBound):
    """A stop, a leg or a wheel that can push and not pull: its force acts so as to increase what
    its row keeps at zero.

    A point on a plane pushes its first body along the plane's normal, a distance pushes its points
    apart, a knife edge pushes its body along the direction of its row, a rolling disk's row `.z`
    pushes it off the ground: a row is the gap that the force would open, lambda <= 0.

    **Arguments:** `name`: of a row, or of a joint that has one.
    """

    name: str = eqx.field(static=True)

    def __init__(self, name: Setting[str]):
        self.name = _settings.text(name, "name", "'leg1' or 'disk.z'")

    def inequalities(self, variables: Variables) -> Inequalities:
        return _signed(variables, self.name, 1.0)

    def words(self) -> str:
        return f"{self.name} pushes only"


class PullsOnly(AbstractBound):
    """A cable or a hook: the opposite of `PushesOnly`, lambda >= 0.

    **Arguments:** as of `PushesOnly`.
    """

    name: str = eqx.field(static=True)

    def __init__(self, name: Setting[str]):
        self.name = _settings.text(name, "name", "'cable' or 'disk.z'")

    def inequalities(self, variables: Variables) -> Inequalities:
        return _signed(variables, self.name, -1.0)

    def words(self) -> str:
        return f"{self.name} pulls only"


def _signed(variables: Variables, name: str, sign: float) -> Inequalities:
    row = variables.unit_vectors((variables.row(name),))
    return Inequalities(jnp.asarray(sign * row), jnp.zeros(1))


# --------------------------------------------------------------------------------------------------
# Discs and balls as polyhedra: directions u_k and the factor of u_k . x <= factor * radius.
# --------------------------------------------------------------------------------------------------


class Directions(NamedTuple):
    """Unit vectors (n, dim), and the ratio of the radii of the inscribed and the circumscribed ball
    of the polyhedron u_k . x <= 1."""

    vectors: np.ndarray
    inner: float


def directions(dimension: int, sides: int) -> Directions:
    """Normals of a regular polygon of so many sides in the plane; in space, of a polyhedron with so
    many faces around its equator, and a face at each pole; on a line, both directions.

    With u_k . x <= r the polyhedron circumscribes the ball of radius r; with u_k . x <= inner * r
    its farthest vertex lies on it. In space a vertex of it is the pole of a face of the convex hull
    of the u_k, whose distance from the centre is one over the vertex's own.
    """
    if dimension == 1:
        return Directions(np.array([[1.0], [-1.0]]), 1.0)
    turn = 2 * np.pi * np.arange(sides) / sides
    circle = np.stack([np.cos(turn), np.sin(turn)], axis=1)
    if dimension == 2:
        return Directions(circle, float(np.cos(np.pi / sides)))
    heights = np.pi * np.arange(sides // 2 + 1) / (sides // 2) - np.pi / 2
    rings = [
        np.concatenate([np.cos(b) * circle, np.full((sides, 1), np.sin(b))], axis=1)
        for b in heights[1:-1]
    ]
    poles = np.array([[0.0, 0.0, -1.0], [0.0, 0.0, 1.0]])
    # A face of the hull is a trapezium (at a pole a triangle) between two rings: in the plane
    # through its middle it is the line through the middles of its two edges.
    middle = np.cos(np.pi / sides) * np.cos(heights), np.sin(heights)
    (x0, x1), (z0, z1) = ((own[:-1], own[1:]) for own in middle)
    distance = np.abs(x0 * z1 - x1 * z0) / np.hypot(x1 - x0, z1 - z0)
    return Directions(np.concatenate([*rings, poles]), float(np.min(distance)))


# A polyhedron of fewer sides is hardly round.
_LEAST_SIDES = 4


class ResultantLimit(AbstractBound):
    """The magnitude of a joint's force, or of its torque, is at most so much.

    A ball is not a polyhedron. The polyhedron used circumscribes it, so that no range is narrower
    than with the ball; with `inside` it is inscribed, so that none is wider. In the plane a regular
    polygon (16 sides: 2 % around it), in space 16 faces around the equator and as fine towards the
    poles.

    **Arguments:** `name`: of a joint or driver; `force`: N, `torque`: N m about the joint's point,
    one of them or both; `sides`: even, at least 4; `inside`.
    """

    name: str = eqx.field(static=True)
    force: Float[Array, ""] | None
    torque: Float[Array, ""] | None
    sides: int = eqx.field(static=True)
    inside: bool = eqx.field(static=True)

    def __init__(
        self,
        name: Setting[str],
        *,
        force: Setting[Numbers | None] = None,
        torque: Setting[Numbers | None] = None,
        sides: Setting[int] = 16,
        inside: Setting[bool] = False,
    ):
        self.name = _settings.text(name, "name", "'B'")
        if force is None and torque is None:
            raise ValueError(
                "ResultantLimit needs a force (N) or a torque (N m); give one of them."
            )
        self.force = None if force is None else _settings.between(force, "force", least=0)
        self.torque = None if torque is None else _settings.between(torque, "torque", least=0)
        self.sides = even_sides(sides)
        self.inside = _settings.flag(inside, "inside")

    def inequalities(self, variables: Variables) -> Inequalities:
        matrices, limits = [], []
        asked = ((variables.force, self.force), (variables.torque, self.torque))
        for places_of, value in asked:
            if value is None:
                continue
            places = places_of(self.name)
            round_ = directions(len(places), self.sides)
            rows = round_.vectors @ variables.unit_vectors(places)
            matrices.append(jnp.asarray(rows))
            limits.append(jnp.full(len(rows), round_.inner if self.inside else 1.0) * value)
        return Inequalities(jnp.concatenate(matrices), jnp.concatenate(limits))

    def words(self) -> str:
        parts = [("force", self.force), ("torque", self.torque)]
        return " and ".join(
            f"|{self.name}.{what}| <= {_shown(value)}" for what, value in parts if value is not None
        )


def even_sides(sides: Any) -> int:
    """
    **Raises:** `TypeError` for no whole number, `ValueError` for an odd one or one that is too
    small.
    """
    count = _settings.whole_number(sides, "sides", least=_LEAST_SIDES, most=1000)
    if count % 2:
        raise ValueError(f"sides must be even, got {count}; 16 is usual.")
    return count


class FrictionCone(AbstractBound):
    """Coulomb's law for what sticks: the force pushes along the normal, and its part across is at
    most the coefficient times that along.

    In the plane these are two inequalities, and exact. In space the cone becomes a pyramid of
    `sides` faces around it, so that no range is narrower than with the cone; with `inside` the one
    within it, so that none is wider.

    **Arguments:** `name`: of a joint that acts at a point; `coefficient`: of friction, not
    negative; `normal`: the direction (world) in which the joint pushes `body`; `body`: default the
    joint's second body (its only one); `sides`: even, at least 4; `inside`.
    """

    name: str = eqx.field(static=True)
    coefficient: Float[Array, ""]
    normal: Float[Array, " dim"]
    body: str | None = eqx.field(static=True)
    sides: int = eqx.field(static=True)
    inside: bool = eqx.field(static=True)

    def __init__(
        self,
        name: Setting[str],
        coefficient: Setting[Numbers],
        normal: Setting[Numbers],
        *,
        body: Setting[str | None] = None,
        sides: Setting[int] = 16,
        inside: Setting[bool] = False,
    ):
        self.name = _settings.text(name, "name", "'foot'")
        self.coefficient = _settings.between(coefficient, "coefficient", least=0)
        self.normal = _settings.vector(normal, "normal")
        if self.normal.shape[0] not in (2, 3):
            raise ValueError(
                f"normal must be a direction of two or three components, got {shown(normal)}."
            )
        known = _checks.concrete(normal)
        if known is not None:
            _checks.nonzero(known, "normal", "give a direction such as (0, 0, 1)")
        self.body = None if body is None else _settings.text(body, "body", "'leg'")
        self.sides = even_sides(sides)
        self.inside = _settings.flag(inside, "inside")

    def inequalities(self, variables: Variables) -> Inequalities:
        places = variables.force(self.name)
        dimension = len(places)
        if self.normal.shape[0] != dimension:
            raise ValueError(
                f"normal of the friction cone of {shown(self.name)} must have {dimension} "
                f"components, got {self.normal.shape[0]}."
            )
        normal = self.normal / jnp.linalg.norm(self.normal)
        across = _tangents(normal)
        round_ = directions(dimension - 1, self.sides)
        coefficient = self.coefficient * (round_.inner if self.inside else 1.0)
        along = jnp.asarray(round_.vectors) @ across - coefficient * normal[None]
        # Where the coefficient is zero the faces alone would allow it to pull.
        faces = jnp.concatenate([along, -normal[None]])
        rows = self._sign(variables) * faces @ jnp.asarray(variables.unit_vectors(places))
        return Inequalities(rows, jnp.zeros(rows.shape[0]))

    def _sign(self, variables: Variables) -> float:
        """Sign of the force: that on the first of two bodies is opposite to that on the second."""
        second = variables.second_body(self.name)
        if self.body is None or self.body == second:
            return 1.0
        bodies = variables.bodies(self.name)
        named = [site for site, owner in bodies.items() if self.body in (site, owner)]
        if len(named) != 1 or (named != [second] and len(bodies) != 2):
            raise ValueError(
                f"the friction cone of {shown(self.name)} is about its force on "
                f"{shown(self.body)}; it may be that on {listed(bodies)}."
            )
        return 1.0 if named == [second] else -1.0

    def words(self) -> str:
        return f"friction cone of {self.name} (coefficient {_shown(self.coefficient)})"


def _tangents(normal: Float[Array, " dim"]) -> Float[Array, "_ dim"]:
    """Orthonormal directions across a normal, from the axis that is least aligned with it."""
    if normal.shape[0] == 2:
        return jnp.stack([-normal[1], normal[0]])[None]
    known = _checks.concrete(normal)
    axis = jnp.eye(3)[jnp.argmin(jnp.abs(normal)) if known is None else np.argmin(np.abs(known))]
    first = axis - (axis @ normal) * normal
    first = first / jnp.linalg.norm(first)
    return jnp.stack([first, jnp.cross(normal, first)])


# --------------------------------------------------------------------------------------------------
# Bounds as text, such as `leg1 <= 0`, `-500 <= B.y <= 500`, `|B| <= 500`.
# --------------------------------------------------------------------------------------------------


_RELATION = re.compile(r"<=|>=")
_MAGNITUDE = re.compile(r"\s*\|([^|]*)\|\s*")
_RESULTANT = re.compile(r"(.*)\.(force|torque)\s*$")
_SIDES = 16

# Numbers that differ by less than this are one.
_SAME = 1e-12


class Inequality(AbstractBound):
    """A bound as it is written on the command line.

    Linear expressions in row names (multipliers) and components of wrenches between `<=` or `>=`:
    `leg1 <= 0` (a multiplier that pushes is negative, see `PushesOnly`), `-500 <= B.y <= 500`,
    `foot.force.x <= 0.3 * foot.force.y`. `|...|` on the smaller side is the magnitude: of an
    expression (`|B.y| <= 500`, `|foot.force.x| <= 0.3 * foot.force.y`), or the resultant force of a
    joint of several rows, by a polyhedron of 16 sides around the ball (`|B| <= 500`, `|B.force| <=
    500`, `|B.torque| <= 20`).

    **Arguments:** `text`.
    """

    text: str = eqx.field(static=True)

    def __init__(self, text: Setting[str]):
        self.text = _settings.text(text, "text", "'leg1 <= 0'").strip()
        parts = _RELATION.split(self.text)
        if len(parts) not in (2, 3) or not all(part.strip() for part in parts):
            raise ValueError(
                f"text of a bound, {shown(self.text)}, cannot be read; write it as 'leg1 <= 0', "
                "'-500 <= B.y <= 500' or '|B| <= 500'."
            )
        relations = _RELATION.findall(self.text)
        if len(set(relations)) > 1:
            raise ValueError(
                f"text of a bound, {shown(self.text)}, mixes <= and >=; write the smallest side "
                "first and join all by <=."
            )

    def inequalities(self, variables: Variables) -> Inequalities:
        parts = _RELATION.split(self.text)
        if ">=" in self.text:
            parts = parts[::-1]
        pairs = [self._pair(variables, *pair) for pair in itertools.pairwise(parts)]
        matrix = np.concatenate([matrix for matrix, _ in pairs])
        limit = np.concatenate([limit for _, limit in pairs])
        if not np.any(matrix):
            raise ValueError("it is about no reaction; name a row in it.")
        self._must_leave_something(matrix, limit)
        return Inequalities(jnp.asarray(matrix), jnp.asarray(limit))

    def _must_leave_something(self, matrix: np.ndarray, limit: np.ndarray) -> None:
        """
        **Raises:** `ValueError` where two of the inequalities, on opposite sides of one expression,
        contradict each other: the bound is a mistake, whatever the loads are.
        """
        for row, own in zip(matrix, limit, strict=True):
            opposite = np.max(np.abs(matrix + row), axis=1) <= _SAME
            room = limit[opposite] + own
            if np.any(room < -_SAME * (np.abs(limit[opposite]) + abs(own))):
                raise ValueError(
                    "nothing satisfies it, whatever the reactions are; its smaller side must not "
                    "be greater than its larger one, and no magnitude is negative."
                )

    def words(self) -> str:
        return self.text

    def _pair(self, variables: Variables, smaller: str, larger: str):
        """Both sides as linear expressions; of a magnitude one for each direction."""
        if _MAGNITUDE.fullmatch(larger):
            raise ValueError(
                "it asks for a magnitude that is large, which is no bound on one side; write |...| "
                "on the smaller side."
            )
        high, high_coefficients = variables.linear(larger.strip())
        magnitude = _MAGNITUDE.fullmatch(smaller)
        if magnitude is None:
            low, coefficients = variables.linear(smaller.strip())
            lows, rows = np.array([low]), coefficients[None]
        else:
            lows, rows = _magnitude(variables, magnitude[1].strip())
        return rows - high_coefficients[None], high - lows


def _magnitude(variables: Variables, inside: str) -> tuple[np.ndarray, np.ndarray]:
    """Constants and coefficients of the expressions that are each at most |inside|."""
    resultant = _RESULTANT.fullmatch(inside)
    name, what = (resultant[1], resultant[2]) if resultant else (inside, "force")
    if inside not in variables.names and variables.has_wrench(name):
        places = variables.force(name) if what == "force" else variables.torque(name)
        vectors = directions(len(places), _SIDES).vectors
        return np.zeros(len(vectors)), vectors @ variables.unit_vectors(places)
    constant, coefficients = variables.linear(inside)
    return np.array([constant, -constant]), np.stack([coefficients, -coefficients])
