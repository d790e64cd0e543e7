"""Linear functionals of multipliers, and expressions for them: `(W1 + W2) * 0.91 + W3 + W4`."""

import math
import re
from collections.abc import Sequence
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._linalg import normalise_rows
from .._system import Structure


# --------------------------------------------------------------------------------------------------
# Linear functionals G lambda of a few multipliers, whose uniqueness can be decided.
#
# A joint's generalized reaction C_X^T lambda_X, the resultant of several joints on one body
# H_i C_X^T lambda_X, one multiplier, and a user's combination c^T lambda are all of this form:
# coefficients on some rows. The answer is unique iff G N = 0 (Wojtyra & Fraczek 2013, eq. 27;
# Wojtyra & Pekal, eq. 5).
# --------------------------------------------------------------------------------------------------


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


# --------------------------------------------------------------------------------------------------
# Linear expressions in multipliers, such as `(W1 + W2) * 0.91 + W3 + W4`.
# --------------------------------------------------------------------------------------------------


_NUMBER = re.compile(r"(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")


def parse_combination(expression: str, row_names: Sequence[str]) -> np.ndarray:
    """Coefficients (rows,) of a linear expression in row names.

    Names may contain spaces and signs (the longest name that fits is taken) and may be quoted;
    numbers, `+ - * /` and parentheses work as usual, and a number before a name or a
    parenthesis multiplies it.

    **Raises:** `ValueError` that shows where the expression stops making sense.
    """
    value = _parse(expression, row_names)
    if value[0] != 0:
        raise ValueError(
            f"combination {expression!r} has the constant term {value[0]:g}; only multiples "
            "of row names can be asked for."
        )
    if not np.any(value[1:]):
        raise ValueError(f"combination {expression!r} is zero; every coefficient cancels.")
    return value[1:]


def parse_linear(expression: str, names: Sequence[str], hint: str = "") -> tuple[float, np.ndarray]:
    """The constant and the coefficients (names,) of a linear expression, as `parse_combination`
    reads it; a constant alone is one. `hint`: text of a message in place of all names.

    **Raises:** as `parse_combination`.
    """
    value = _parse(expression, names, hint)
    return float(value[0]), value[1:]


def _parse(expression: str, names: Sequence[str], hint: str = "") -> np.ndarray:
    if not isinstance(expression, str):
        raise ValueError(f"a combination must be a text such as 'W1 - W2', got {expression!r}.")
    parser = _Parser(expression, names, hint)
    try:
        value = parser.sum()
    except RecursionError:
        raise ValueError("a combination nests parentheses or signs too deeply.") from None
    if parser.rest():
        raise parser.error("an operator is missing or too much")
    return value


class _Parser:
    """Recursive descent; a value is (constant, coefficient of each row)."""

    def __init__(self, text: str, row_names: Sequence[str], hint: str):
        self._text = text
        self._hint = hint or f"The rows are {', '.join(row_names)}."
        self._at = 0
        self._rows = {name: i for i, name in enumerate(row_names)}
        self._longest_first = sorted(row_names, key=len, reverse=True)

    def rest(self) -> str:
        while self._at < len(self._text) and self._text[self._at].isspace():
            self._at += 1
        return self._text[self._at :]

    def error(self, why: str) -> ValueError:
        rest = self.rest()
        where = f"at {rest!r}" if rest else "at its end"
        return ValueError(f"combination {self._text!r} cannot be read {where}: {why}. {self._hint}")

    def sum(self) -> np.ndarray:
        value = self._product()
        while (operator := self.rest()[:1]) in ("+", "-") and operator:
            self._at += 1
            term = self._product()
            with np.errstate(over="ignore", invalid="ignore"):
                value = self._finite(value + term if operator == "+" else value - term)
        return value

    def _product(self) -> np.ndarray:
        value = self._signed()
        while rest := self.rest():
            if rest[0] in "+-)":
                break
            operator = rest[0] if rest[0] in "*/" else ""
            self._at += len(operator)
            factor = self._signed() if operator else self._factor()
            value = self._combine(value, factor, operator)
        return value

    def _combine(self, left: np.ndarray, right: np.ndarray, operator: str) -> np.ndarray:
        if operator == "/":
            if np.any(right[1:]) or right[0] == 0:
                raise self.error("the divisor must be a number other than zero")
            with np.errstate(over="ignore"):
                return self._finite(left / right[0])
        if np.any(left[1:]) and np.any(right[1:]):
            raise self.error("the product of two multipliers is not linear")
        with np.errstate(over="ignore"):
            return self._finite(left * right[0] if np.any(left[1:]) else right * left[0])

    def _finite(self, value: np.ndarray) -> np.ndarray:
        if not np.all(np.isfinite(value)):
            raise self.error("the number is not finite")
        return value

    def _signed(self) -> np.ndarray:
        rest = self.rest()
        # A row may be called "-x" or "2": names win over signs and numbers.
        if rest[:1] in ("+", "-") and rest and self._name(rest) is None:
            self._at += 1
            value = self._signed()
            return -value if rest[0] == "-" else value
        return self._factor()

    def _factor(self) -> np.ndarray:
        rest = self.rest()
        value = np.zeros(len(self._rows) + 1)
        found = self._name(rest)
        if found is not None:
            name, length = found
            value[1 + self._rows[name]] = 1.0
            self._at += length
        elif number := _NUMBER.match(rest):
            value[0] = float(number.group())
            if not math.isfinite(value[0]):
                raise self.error("the number is not finite")
            self._at += number.end()
        elif rest.startswith("("):
            self._at += 1
            value = self.sum()
            if not self.rest().startswith(")"):
                raise self.error("a closing parenthesis is missing")
            self._at += 1
        else:
            raise self.error("expected a row name, a number or a parenthesis")
        return value

    def _name(self, rest: str) -> tuple[str, int] | None:
        """The row name at the head of `rest`, and how many characters it takes."""
        quote = rest[:1]
        if quote and quote in "'\"":
            end = rest.find(quote, 1)
            name = rest[1:end] if end > 0 else ""
            if name not in self._rows:
                raise self.error("the quoted text is not the name of a row")
            return name, end + 1
        for name in self._longest_first:
            if rest.startswith(name):
                following = rest[len(name) : len(name) + 1]
                # "W10" is not "W1" followed by 0.
                cut_short = following.isalnum() or following in tuple("_.")
                if not (name[-1].isalnum() and cut_short):
                    return name, len(name)
        return None
