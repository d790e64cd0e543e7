"""Smallest sets of joint replacements after which every reaction is unique."""

import itertools
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ... import _settings
from ..._custom_types import RealScalarLike, Setting
from ..._linalg._concrete_rank import values_and_rank
from ..._system import AbstractSystem, ReleaseOption, takes_state
from .._report import Solvability


# What is zero of directions of unit length.
_DEPENDENT = 1e-10


class Releases(NamedTuple):
    """`sets`: each a set of replacements that together make every reaction unique and keep the
    mobility, all of the smallest size there is. `searched`: the size up to which every set was
    tried. `complete`: False when the search was cut off within the next size."""

    sets: tuple[tuple[ReleaseOption, ...], ...]
    searched: int
    complete: bool

    def lines(self) -> list[str]:
        """One line a set, with the axis of each new joint, in which alone some sets differ."""
        return ["; ".join(map(str, chosen)) for chosen in self.sets]

    def remarks(self) -> list[str]:
        """The reasons why sets are missing."""
        if self.complete and not self.searched:
            return ["nothing to release: every reaction is unique"]
        none = [] if self.sets else ["no set of releases found that makes every reaction unique"]
        cut = f"the search was cut off after all sets of {self.searched}"
        return none if self.complete else [*none, cut]

    def __str__(self) -> str:
        return "\n".join([*self.lines(), *self.remarks()])


@takes_state(decides_rank=True)
def releases(
    system: AbstractSystem,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"] | None = None,
    t: RealScalarLike = 0.0,
    *,
    report: Solvability,
    most: Setting[int] = 20000,
) -> Releases:
    """Which joints, replaced by ones of fewer rows, would make all reactions unique?

    Tries sets of one replacement, of two, and so on, and returns all sets of the first size
    that works at this configuration. Replacements are those that the joints list (`releases` of
    each joint's class): usual joints at the same place along the old joint's own axes; smallest
    and complete refer to this list. A joint of one row may be left out altogether ("none").

    **Arguments:** the state at which `report` was made, and `report`; `most`: how many sets to
    try at most, at least 1.

    **Raises:** `TypeError` or `ValueError` for an invalid `most`.
    """
    most = _settings.whole_number(most, "most", least=1)
    if np.all(np.asarray(report.reaction_unique)):
        return Releases((), 0, True)
    velocity = jnp.zeros((system.structure.nv,), q.dtype) if v is None else v
    trial = _Trial(system, q, velocity, t, report)
    tried = 0
    for size in range(1, len(trial.options) + 1):
        works = []
        for chosen in trial.sets(size):
            tried += 1
            if tried > most:
                return Releases(tuple(works), size - 1, False)
            if trial.succeeds(chosen):
                works.append(chosen)
        if works:
            return Releases(tuple(works), size, True)
    return Releases((), len(trial.options), True)


class _Trial:
    """The scaled rows of every joint and of everything that may take its place."""

    def __init__(
        self,
        system: AbstractSystem,
        q: Float[Array, " nq"],
        v: Float[Array, " nv"],
        t: RealScalarLike,
        report: Solvability,
    ):
        structure = system.structure
        self._rank = int(report.rank)
        pivots = np.asarray(report.pivots)
        # Anything between the last kept and the first dropped pivot separates the two.
        dropped = pivots[self._rank] if self._rank < pivots.size else 0.0
        self._threshold = max(np.sqrt(pivots[self._rank - 1] * max(dropped, 1e-16)), 1e-12)
        self._columns = structure.column_scale(float(report.length))
        matrix = _unit(np.asarray(system.constraint_matrix(q, v, t)) * self._columns)
        self._rows = {c.name: matrix[c.start : c.stop] for c in structure.constraints}
        # All reactions are unique iff the ranks of the joints' own rows add up to the rank.
        self._excess = sum(map(self._own_rank, self._rows.values())) - self._rank
        involved = {
            c.name
            for c, unique in zip(
                structure.constraints, np.asarray(report.reaction_unique), strict=True
            )
            if not unique
        }
        self.options: dict[str, list[ReleaseOption]] = {}
        for option in system.release_options(q, v, t):
            if option.constraint in involved:
                self.options.setdefault(option.constraint, []).append(option)
        offered = [option for own in self.options.values() for option in own]
        self._saved = {id(option): self._saved_by(option) for option in offered}
        self._closed = self._closed_by(offered)

    def sets(self, size: int) -> Iterator[tuple[ReleaseOption, ...]]:
        """Sets of replacements that take away exactly what is too much."""
        largest = sorted(max(self._saved[id(x)] for x in o) for o in self.options.values())[::-1]
        if sum(largest[:size]) < self._excess:
            return
        for names in itertools.combinations(self.options, size):
            for chosen in itertools.product(*(self.options[n] for n in names)):
                if sum(self._saved[id(o)] for o in chosen) == self._excess:
                    yield chosen

    def succeeds(self, chosen: Sequence[ReleaseOption]) -> bool:
        """Is the rank as before? Then every reaction is unique, as nothing is in excess."""
        closed = [self._closed.get(id(o)) for o in chosen]
        known = [own for own in closed if own is not None]
        if len(known) == len(closed):
            # Forces that balance among themselves, and need no force that is gone, stay.
            least = np.linalg.svd(np.concatenate(known), compute_uv=False)[-1]
            if least < _DEPENDENT:
                return False
        replaced = {o.constraint: _unit(o.rows * self._columns) for o in chosen}
        rows = [replaced.get(name, own) for name, own in self._rows.items()]
        return values_and_rank(np.concatenate(rows), self._threshold)[1] == self._rank

    def _saved_by(self, option: ReleaseOption) -> int:
        rows = _unit(option.rows * self._columns)
        return self._own_rank(self._rows[option.constraint]) - self._own_rank(rows)

    def _closed_by(self, offered: Sequence[ReleaseOption]) -> dict[int, np.ndarray]:
        """For each replacement, a basis of the self-balancing forces restricted to those that the
        joint loses; no entry for a replacement that restricts a motion which the joint left
        free."""
        bases = {name: self._basis(rows) for name, rows in self._rows.items()}
        whole = np.concatenate(list(bases.values()))
        left, values, _ = np.linalg.svd(whole)
        forces = left[:, int(np.sum(values > self._threshold * values[0])) :]
        ends = np.cumsum([len(rows) for rows in bases.values()])[:-1]
        parts = dict(zip(bases, np.split(forces, ends), strict=True))
        found = {}
        for option in offered:
            basis, rows = bases[option.constraint], self._basis(_unit(option.rows * self._columns))
            within = rows @ basis.T
            if np.allclose(within @ basis, rows, atol=_DEPENDENT):
                gone = np.linalg.svd(within)[2][len(rows) :]
                found[id(option)] = gone @ parts[option.constraint]
        return found

    def _basis(self, rows: np.ndarray) -> np.ndarray:
        """An orthonormal one of what rows span."""
        return np.linalg.svd(rows, full_matrices=False)[2][: self._own_rank(rows)]

    def _own_rank(self, rows: np.ndarray) -> int:
        values = np.linalg.svd(rows, compute_uv=False)
        return int(np.sum(values > self._threshold))


def _unit(matrix: np.ndarray) -> np.ndarray:
    """`normalise_rows` in NumPy: of JAX each number of rows would be a program."""
    largest = np.max(np.abs(matrix), axis=1, initial=0.0, keepdims=True)
    scaled = matrix / np.where(largest > 0, largest, 1.0)
    length = np.linalg.norm(scaled, axis=1, keepdims=True)
    return scaled / np.where(length > 0, length, 1.0)
