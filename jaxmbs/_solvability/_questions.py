"""Linear functionals G lambda of a few multipliers, whose uniqueness can be decided.

A joint's generalized reaction C_X^T lambda_X, the resultant of several joints on one body
H_i C_X^T lambda_X, one multiplier, and a user's combination c^T lambda are all of this form:
coefficients on some rows. The answer is unique iff G N = 0 (Wojtyra & Fraczek 2013, eq. 27;
Wojtyra & Pekal, eq. 5).
"""

from collections.abc import Sequence
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._linalg import normalise_rows
from .._system import Structure


# Rows of scaled C have unit length: what is left of one that is shorter is rounding.
_DEPENDENT = 1e-12

# Functionals of as many rows as this or more keep their components: the program would be long.
_MOST = 12


class Questions(NamedTuple):
    """A batch of functionals: `coefficients[i]` (components, selected) on the multipliers
    `rows[i]` (selected,); entries that only pad have coefficient 0 and row `m`."""

    coefficients: Float[Array, "batch components selected"]
    rows: np.ndarray

    def applied_to(self, null_space: Float[Array, "m m"]) -> Float[Array, "batch components m"]:
        """G N for each functional."""
        zero = jnp.zeros((1, null_space.shape[1]), null_space.dtype)
        padded = jnp.concatenate([null_space, zero])
        return self.coefficients @ padded[self.rows]

    def dense(self, m: int) -> Float[Array, "batch components m"]:
        """The functionals as matrices on all m multipliers."""
        batch, components, _ = self.coefficients.shape
        full = jnp.zeros((batch, components, m + 1), self.coefficients.dtype)
        index = np.arange(batch)[:, None]
        full = full.at[index, :, self.rows].add(jnp.swapaxes(self.coefficients, 1, 2))
        return full[:, :, :m]


def generalized_reactions(
    matrix: Float[Array, "m nv"],
    selections: Sequence[tuple[Sequence[int], Sequence[int]]],
) -> Questions:
    """C_X^T lambda_X for each (rows of X, required columns).

    Columns that a selection does not name must be zero in its rows, or not be required.
    """
    m, n = matrix.shape
    rows = _pad([rows for rows, _ in selections], m)
    columns = _pad([columns for _, columns in selections], n)
    padded = jnp.pad(matrix, ((0, 1), (0, 1)))
    return Questions(padded[rows[:, None, :], columns[:, :, None]], rows)


def with_fewest_components(questions: Questions) -> Questions:
    """R of G = Q R: functionals with no more components than they have rows, of the same singular
    values. Modified Gram-Schmidt, in which a column that depends on those before it has no
    direction."""
    _, components, selected = questions.coefficients.shape
    if min(components, _MOST) <= selected:
        return questions
    rest, rows = questions.coefficients, []
    for k in range(selected):
        size = jnp.linalg.norm(rest[:, :, k], axis=1)[:, None]
        independent = size > _DEPENDENT
        direction = jnp.where(independent, rest[:, :, k] / jnp.where(independent, size, 1.0), 0.0)
        row = jnp.sum(direction[:, :, None] * rest, axis=1)
        rest = rest - direction[:, :, None] * row[:, None, :]
        rows.append(row)
    return Questions(jnp.stack(rows, axis=1), questions.rows)


def single_multipliers(structure: Structure, dtype: jnp.dtype) -> Questions:
    """Each single multiplier."""
    m = len(structure.rows)
    return Questions(jnp.ones((m, 1, 1), dtype), np.arange(m)[:, None])


def combinations(coefficients: Float[Array, "batch m"]) -> Questions:
    """c^T lambda for each row of coefficients, made of unit length."""
    batch, m = coefficients.shape
    unit, _ = normalise_rows(coefficients)
    return Questions(unit[:, None, :], np.broadcast_to(np.arange(m), (batch, m)))


def _pad(lists: Sequence[Sequence[int]], fill: int) -> np.ndarray:
    width = max((len(entries) for entries in lists), default=0)
    padded = np.full((len(lists), width), fill, dtype=int)
    for i, entries in enumerate(lists):
        padded[i, : len(entries)] = entries
    return padded
