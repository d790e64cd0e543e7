"""The static side of a system: which rows, columns and names belong together.

Everything here is known before any number is, is hashed once, and decides what is compiled.
"""

from functools import cached_property
from typing import Literal, NamedTuple

import numpy as np


class RowInfo(NamedTuple):
    """One scalar constraint row."""

    name: str
    geometric: bool
    quantity: Literal["length", "angle"]


class ConstraintInfo(NamedTuple):
    """One joint, driver or user constraint: rows `start` to `stop`, and the bodies (indices
    into `Structure.bodies`) and columns on which its reaction acts."""

    name: str
    kind: str
    start: int
    stop: int
    bodies: tuple[int, ...]
    columns: tuple[int, ...]


class BodyInfo(NamedTuple):
    """One moving body: the columns of its resultant force and of its resultant torque, and the
    places of its coordinates in q."""

    name: str
    force: tuple[int, ...]
    torque: tuple[int, ...]
    coordinates: tuple[int, ...]


class Structure:
    """Names and index maps of one system; equal structures share compiled code."""

    def __init__(
        self,
        *,
        constraints: tuple[ConstraintInfo, ...],
        rows: tuple[RowInfo, ...],
        bodies: tuple[BodyInfo, ...],
        quantities: tuple[str, ...],
        nq: int,
        lengths: tuple[int, ...],
        quaternions: tuple[tuple[int, ...], ...] = (),
    ):
        self.constraints = constraints
        self.rows = rows
        self.bodies = bodies
        self.quantities = quantities
        self.nq = nq
        self.nv = len(quantities)
        # Places in q of lengths (n,), and of each quaternion of unit length (n, 4).
        self.lengths = np.array(lengths, dtype=int)
        self.quaternions = np.array(quaternions, dtype=int).reshape(-1, 4)
        self._key = (constraints, rows, bodies, quantities, nq, lengths, quaternions)
        self._hash = hash(self._key)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return isinstance(other, Structure) and self._key == other._key

    @cached_property
    def origin(self) -> np.ndarray:
        """Coordinates of bodies at the origin whose axes are the world's."""
        q = np.zeros(self.nq)
        q[self.quaternions[:, 0]] = 1.0
        return q

    @cached_property
    def row_names(self) -> tuple[str, ...]:
        """Names of all rows, in order."""
        return tuple(row.name for row in self.rows)

    @cached_property
    def constraint_names(self) -> tuple[str, ...]:
        """Names of all joints and drivers, in row order."""
        return tuple(constraint.name for constraint in self.constraints)

    @cached_property
    def geometric(self) -> np.ndarray:
        """True for geometric rows (bool, (rows,))."""
        return np.array([row.geometric for row in self.rows], dtype=bool)

    @cached_property
    def geometric_rows(self) -> np.ndarray:
        """Indices of the geometric rows."""
        return np.flatnonzero(self.geometric)

    @cached_property
    def length_rows(self) -> np.ndarray:
        """True for rows whose residual is a length (bool, (rows,))."""
        return np.array([row.quantity == "length" for row in self.rows], dtype=bool)

    @cached_property
    def length_columns(self) -> np.ndarray:
        """True for velocities that are linear (bool, (nv,))."""
        return np.array([q == "length" for q in self.quantities], dtype=bool)

    @cached_property
    def driven(self) -> np.ndarray:
        """True for the rows of drivers (bool, (rows,))."""
        kinds = [constraint.kind for constraint in self.constraints]
        return np.array([kinds[owner] == "driver" for owner in self.row_owner], dtype=bool)

    @cached_property
    def row_owner(self) -> np.ndarray:
        """Index of the constraint that each row belongs to."""
        sizes = [c.stop - c.start for c in self.constraints]
        return np.repeat(np.arange(len(self.constraints)), sizes)

    def constraint(self, name: str) -> ConstraintInfo:
        """The joint or driver of that name.

        **Raises:** `ValueError` that lists the names there are.
        """
        if name not in self.constraint_names:
            raise ValueError(
                f"there is no joint or driver {name!r}; there are "
                f"{', '.join(self.constraint_names)}."
            )
        return self.constraints[self.constraint_names.index(name)]

    def rows_of(self, name: str) -> tuple[int, ...]:
        """Rows of the joint, driver or single row of that name.

        **Raises:** `ValueError` that lists the names there are.
        """
        if name in self.constraint_names:
            constraint = self.constraint(name)
            return tuple(range(constraint.start, constraint.stop))
        if name in self.row_names:
            return (self.row_names.index(name),)
        raise ValueError(
            f"there is no joint, driver or row {name!r}; the rows are {', '.join(self.row_names)}."
        )
