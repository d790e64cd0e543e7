"""Bounds as text, such as `leg1 <= 0`, `-500 <= B.y <= 500`, `|B| <= 500`."""

import itertools
import re

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from ... import _settings
from ..._checks import shown
from ..._custom_types import Setting
from .._variables import Variables
from ._polyhedra import directions
from .base import AbstractBound, Inequalities


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
