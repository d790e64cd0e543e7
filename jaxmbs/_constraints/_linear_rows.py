"""Rows that are linear in velocities or in accelerations."""

from collections.abc import Callable
from typing import Any, TypeAlias

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from .. import _checks


# Of the state: coordinates and what else the rows depend on.
RowsFunction: TypeAlias = Callable[..., Float[Array, " ..."]]


class LinearRows(eqx.Module):
    """`count` rows of a matrix and a constant term for each, functions of the state or arrays."""

    matrix: RowsFunction | Float[Array, "rows n"]
    offset: RowsFunction | Float[Array, " rows"]
    count: int = eqx.field(static=True)

    def __init__(self, matrix: Any, offset: Any, count: int, state: str):
        """`state`: the arguments of functions, "q, t"."""
        given: tuple[Any, Any] = matrix, offset
        self.count = count
        for value, what in zip(given, ("matrix", "offset"), strict=True):
            if callable(value):
                _checks.takes_arguments(value, what, state)
        self.matrix = given[0] if callable(matrix) else _array_of_rows(matrix, count)
        self.offset = given[1] if callable(offset) else _array_beside(offset, count)

    def __call__(
        self, *state: Any, columns: int
    ) -> tuple[Float[Array, "rows n"], Float[Array, " rows"]]:
        """The matrix with this number of columns, and the constant terms, at a state."""
        matrix, offset = (
            jnp.asarray(x(*state) if callable(x) else x, float) for x in (self.matrix, self.offset)
        )
        return _shaped_matrix(matrix, self.count, columns), _shaped_offset(offset, self.count)


def _array_of_rows(value: Any, count: int) -> Float[Array, "rows n"]:
    shape = _checks.shape_of(value)
    if 0 in shape or len(shape) not in ((1, 2) if count == 1 else (2,)):
        raise ValueError(
            f"matrix must be a function, or an array of {count} row(s) with a column for each "
            f"velocity, got {_checks.shown(value)}."
        )
    return _shaped_matrix(_checks.real(value, shape, "matrix"), count, shape[-1])


def _array_beside(value: Any, count: int) -> Float[Array, " rows"]:
    shape = (count,) if _checks.shape_of(value) == (count,) else ()
    return _shaped_offset(_checks.real(value, shape, "offset"), count)


def _shaped_matrix(value: Float[Array, " ..."], rows: int, columns: int) -> Float[Array, "rows n"]:
    """The matrix in the shape (rows, columns); a single row may be given as a vector."""
    if value.shape != (rows, columns) and not (rows == 1 and value.shape == (columns,)):
        raise ValueError(
            f"matrix must be of shape [{rows}, {columns}], got {list(value.shape)}; say rows=... "
            "if it has another number of rows."
        )
    return value.reshape(rows, columns)


def _shaped_offset(value: Float[Array, " ..."], rows: int) -> Float[Array, " rows"]:
    """One number counts for all rows."""
    if value.shape not in ((), (rows,)):
        raise ValueError(f"offset must be a vector of {rows} numbers, got {list(value.shape)}.")
    return jnp.broadcast_to(value, (rows,))
