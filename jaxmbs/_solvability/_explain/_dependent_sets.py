"""Minimal sets of joints whose rows together are dependent."""

from typing import NamedTuple

import numpy as np

from ... import _settings
from ..._custom_types import Setting
from .._report import Solvability


class DependentSets(NamedTuple):
    """`sets`: inclusion-minimal, each in row order, sorted by size and then row order.
    `complete`: False when the search was cut off; the sets found are minimal all the same."""

    sets: tuple[tuple[str, ...], ...]
    complete: bool

    def __str__(self) -> str:
        lines = [", ".join(names) for names in self.sets] or ["no dependent set"]
        return "\n".join(lines + ([] if self.complete else ["... (the search was cut off)"]))


def dependent_sets(report: Solvability, *, work: Setting[float] = 2e9) -> DependentSets:
    """Inclusion-minimal sets of joints and drivers whose rows together are dependent.

    They are the minimal supports, joint by joint, of vectors in the left null space. Starting
    from the whole null space, joints are forced out of the support one at a time; a subspace
    in which no further joint can be forced out is supported on a minimal set. Subspaces are
    remembered by the joints that they leave out, so that none is visited twice.

    **Arguments:** `work`: bound on floating-point operations, roughly; a search that needs more
    returns what it found and `complete=False`.

    **Raises:** `TypeError` or `ValueError` for a bound that is not a finite number greater than
    zero.
    """
    search = _Search(report, _settings.known_number(work, "work", above=0))
    search.run()
    names = report.structure.constraint_names
    ordered = sorted(search.found, key=lambda s: (len(s), sorted(s)))
    return DependentSets(
        tuple(tuple(names[i] for i in sorted(support)) for support in ordered),
        search.budget > 0,
    )


def sharing(report: Solvability) -> tuple[tuple[str, ...], ...]:
    """The joints and drivers that share loads: all that dependent sets connect, those that have
    members in common with each other too; at least two in each, in row order.

    No search: these are the components of the left null space, which is the direct sum of what
    lies in each. Its orthogonal projector has a zero block between any two of them, and no finer
    division has that.
    """
    constraints = [c for c in report.structure.constraints if c.stop > c.start]
    if not constraints:
        return ()
    null_space = report.left_null_space()
    starts = [c.start for c in constraints]
    blocks = np.abs(null_space @ null_space.T)
    for axis in (0, 1):
        blocks = np.maximum.reduceat(blocks, starts, axis=axis)
    found = []
    for members in _components(blocks > float(report.unique_below)):
        if len(members) > 1:
            found.append(tuple(constraints[k].name for k in members))
    return tuple(found)


def _components(linked: np.ndarray) -> list[list[int]]:
    """Connected components of a graph given by its symmetric matrix (n, n; bool), each in order."""
    left = np.ones(len(linked), bool)
    found = []
    for first in range(len(linked)):
        if not left[first]:
            continue
        own, reached = np.zeros(len(linked), bool), np.arange(len(linked)) == first
        while reached.any():
            own |= reached
            reached = linked[reached].any(axis=0) & ~own
        left &= ~own
        found.append(np.flatnonzero(own).tolist())
    return found


def sharing_dependent_sets(report: Solvability, names: tuple[str, ...]) -> tuple[str, ...]:
    """The joints and drivers, in row order, that share loads with any of these, and these."""
    found = {*names}.union(*(own for own in sharing(report) if {*own} & {*names}))
    return tuple(name for name in report.structure.constraint_names if name in found)


class _Search:
    """Depth-first search through the subspaces of the left null space."""

    def __init__(self, report: Solvability, work: float):
        self.budget = work
        self.found: set[frozenset[int]] = set()
        self._seen: set[frozenset[int]] = set()
        self._rows = [np.arange(c.start, c.stop) for c in report.structure.constraints]
        self._null_space = report.left_null_space()
        self._zero = float(report.unique_below)

    def run(self) -> None:
        stack = [self._null_space] if self._null_space.shape[1] else []
        while stack and self.budget > 0:
            stack += self._visit(stack.pop())

    def _visit(self, basis: np.ndarray) -> list[np.ndarray]:
        """Record the support of a subspace if it is minimal; else the subspaces inside."""
        support = frozenset(
            i for i, rows in enumerate(self._rows) if _is_nonzero(basis[rows], self._zero)
        )
        if support in self._seen:
            return []
        self._seen.add(support)
        if basis.shape[1] == 1:
            # One direction: its support is minimal unless a smaller one lies inside, which
            # one direction cannot have.
            self.found.add(support)
            return []
        inner = []
        for joint in sorted(support, reverse=True):
            subspace = self._without(basis, joint)
            if subspace.shape[1]:
                inner.append(subspace)
            if self.budget <= 0:
                return []
        if not inner:
            self.found.add(support)
        return inner

    def _without(self, basis: np.ndarray, joint: int) -> np.ndarray:
        """The vectors of the subspace that are zero on one joint's rows, as a basis."""
        block = basis[self._rows[joint]]
        rows, columns = block.shape
        self.budget -= columns * (rows * columns + basis.shape[0] * columns) + 1e4
        _, values, directions = np.linalg.svd(block, full_matrices=True)
        rank = int(np.sum(values > self._zero))
        return basis @ directions[rank:].T


def _is_nonzero(block: np.ndarray, zero: float) -> bool:
    """Orthonormal bases: entries are of order one, and zero up to rounding that grows with depth,
    or to the precision of the model's numbers."""
    return bool(block.size) and float(np.max(np.abs(block))) > zero
