"""Explanations of reactions that are not unique: dependent rows and joints, releases, and singular
configurations.
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from .. import _printing, _settings
from .._custom_types import BoolScalar, IntScalar, PRNGKeyArray, RealScalarLike, Scalar, Setting
from .._kinematics import close_neighbour
from .._limits import EXACT
from .._linalg._concrete_rank import values_and_rank
from .._printing import AbstractAnswer, Description
from .._programs import Compiling, program
from .._quoting import shown
from .._solution import RESULTS
from .._system import AbstractSystem, ReleaseOption, takes_state
from ._analyze import scaled_constraint_matrix
from ._criteria import AbstractCriterion, chosen_criterion
from ._report import NO_RANK, Solvability
from ._state import check_numbers


# --------------------------------------------------------------------------------------------------
# Minimal sets of joints whose rows together are dependent.
# --------------------------------------------------------------------------------------------------


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


# The number of names in one line.
_MOST = 12


def reason(report: Solvability, sharing: tuple[tuple[str, ...], ...], name: str) -> str:
    """The reason why the reaction of a joint or driver is unique or not, in a few words; `sharing`:
    the joints that share loads (`sharing(report)`)."""
    if bool(report.unique(name)):
        if not bool(report.multipliers_unique(name)):
            return "its rows depend on each other only"
        return "no redundant row acts here"
    others = [member for own in sharing if name in own for member in own if member != name]
    if not others:
        return "its rows depend on each other"
    more = len(others) - _MOST
    shown = ", ".join(others[:_MOST]) + (f" and {more} more (below)" if more > 0 else "")
    return f"shares its load with {shown}"


def is_long(members: tuple[str, ...]) -> bool:
    """Does `reason` leave names out?"""
    return len(members) - 1 > _MOST


# --------------------------------------------------------------------------------------------------
# Smallest sets of joint replacements after which every reaction is unique.
# --------------------------------------------------------------------------------------------------


# What takes the place of a joint, as workshops say it, from what they would rather build to what
# they would not: {0} is its axis.
_PRACTICE = {
    "cylindrical": (1, "becomes a bearing that slides along {0}"),
    "spherical": (1, "becomes a spherical bearing"),
    "revolute": (1, "becomes a hinge about {0}"),
    "point_on_line": (2, "becomes a spherical bearing that slides along {0}"),
    "none": (2, "is left out"),
    "universal": (3, "becomes a universal joint with its second axis along {0}"),
    "translational": (3, "becomes a slide along {0}"),
    "planar": (4, "becomes two faces that slide on each other, with normal {0}"),
    "point_on_plane": (4, "becomes a ball on a plate with normal {0}"),
    "parallel_axes": (6, "becomes a coupling without force that keeps axes parallel to {0}"),
    "perpendicular_axes": (
        6,
        "becomes a coupling without force that keeps axes perpendicular",
    ),
}
# In the plane a hinge has no axis to name, and what slides on a line is a pin.
_PLANAR_PRACTICE = _PRACTICE | {
    "revolute": (1, "becomes a hinge"),
    "point_on_line": (1, "becomes a pin in a slot along {0}"),
}
_UNUSUAL = 9


def _practice(option: ReleaseOption) -> tuple[int, str]:
    """Rank of a replacement by how common it is in practice, and its description."""
    planar = option.axis is None or len(option.axis) == 2
    known = _PLANAR_PRACTICE if planar else _PRACTICE
    rank, words = known.get(option.to, (_UNUSUAL, f"becomes a joint {option.to} along {{0}}"))
    return rank, words.format(option.axis_in_words())


def _unusual(chosen: tuple[ReleaseOption, ...]) -> int:
    return sum(_practice(option)[0] for option in chosen)


class Releases(NamedTuple):
    """`sets`: each a set of replacements that together make every reaction unique and keep the
    mobility, all of the smallest size there is, those first that workshops would rather build (a
    bearing that slides, a spherical one, before a ball on a plate). `searched`: the size up to
    which every set was tried. `complete`: False when the search was cut off within the next
    size."""

    sets: tuple[tuple[ReleaseOption, ...], ...]
    searched: int
    complete: bool

    def lines(self) -> list[str]:
        """One line a set, with the axis of each new joint, in which alone some sets differ."""
        return ["; ".join(map(str, chosen)) for chosen in self.sets]

    def advice(self) -> str:
        """The first set in words, joint by joint; empty if there is none."""
        if not self.sets:
            return ""
        parts = [
            f"{shown(option.constraint)} ({option.kind.replace('_', ' ')}) {_practice(option)[1]}"
            for option in self.sets[0]
        ]
        return f"every reaction becomes unique, and the motion stays, if {' and '.join(parts)}"

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
    """Find the joints that, replaced by ones of fewer rows, would make all reactions unique.

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
                return Releases(tuple(sorted(works, key=_unusual)), size - 1, False)
            if trial.succeeds(chosen):
                works.append(chosen)
        if works:
            return Releases(tuple(sorted(works, key=_unusual)), size, True)
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
        """Sets of replacements that take away exactly what is too much.

        Parts of sets that cannot be completed are left at once: with many joints there are too
        many to try them all.
        """
        saved = [[self._saved[id(option)] for option in own] for own in self.options.values()]
        most, least = [max(own) for own in saved], [min(own) for own in saved]
        options = list(self.options.values())

        def joints(place: int, left: int, upper: int, lower: int) -> Iterator[tuple[int, ...]]:
            """So many joints from a place on, which save at most `upper` and at least `lower`."""
            if not left:
                yield ()
                return
            for k in range(place, len(options) - left + 1):
                high = sum(sorted(most[k:], reverse=True)[:left])
                low = sum(sorted(least[k:])[:left])
                if upper + high < self._excess or lower + low > self._excess:
                    continue
                for others in joints(k + 1, left - 1, upper + most[k], lower + least[k]):
                    yield (k, *others)

        def replacements(own: tuple[int, ...], excess: int) -> Iterator[tuple[ReleaseOption, ...]]:
            """One for each of these joints, which together save exactly that."""
            if not own:
                if not excess:
                    yield ()
                return
            first, others = own[0], own[1:]
            for option, part in zip(options[first], saved[first], strict=True):
                rest = excess - part
                if sum(least[k] for k in others) <= rest <= sum(most[k] for k in others):
                    yield from ((option, *more) for more in replacements(others, rest))

        for own in joints(0, size, 0, 0):
            yield from replacements(own, self._excess)

    def succeeds(self, chosen: Sequence[ReleaseOption]) -> bool:
        """Is the rank as before? Then every reaction is unique, as nothing is in excess."""
        closed = [self._closed.get(id(o)) for o in chosen]
        known = [own for own in closed if own is not None]
        if len(known) == len(closed):
            # Forces that balance among themselves, and need no force that is gone, stay.
            least = np.linalg.svd(np.concatenate(known), compute_uv=False)[-1]
            if least < EXACT.dependent:
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
            if np.allclose(within @ basis, rows, atol=EXACT.dependent):
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


# --------------------------------------------------------------------------------------------------
# Rows that can be dropped without changing the motion.
# --------------------------------------------------------------------------------------------------


def removable_rows(report: Solvability) -> tuple[str, ...]:
    """Every row whose removal alone keeps the rank: its multiplier is not unique."""
    unique = np.asarray(report.multiplier_unique)
    names = report.structure.row_names
    return tuple(name for name, is_unique in zip(names, unique, strict=True) if not is_unique)


def complete_removal(report: Solvability) -> tuple[str, ...]:
    """One set of `redundancy` rows whose removal leaves full row rank and the same rank,
    found greedily from the last row upwards, in row order.

    A set of p rows can go iff its rows of the null space are independent: this is Gram-Schmidt
    orthogonalisation of the rows of N, from below.
    """
    null_space = report.left_null_space()
    chosen: list[int] = []
    basis = np.zeros((0, null_space.shape[1]))
    for row in reversed(range(null_space.shape[0])):
        if len(chosen) == null_space.shape[1]:
            break
        vector = null_space[row]
        size = np.linalg.norm(vector)
        # Twice is enough: the second pass removes what rounding left of the first.
        rest = vector - basis.T @ (basis @ vector)
        rest = rest - basis.T @ (basis @ rest)
        if size > EXACT.unique and np.linalg.norm(rest) > EXACT.unique * size:
            basis = np.vstack([basis, rest / np.linalg.norm(rest)])
            chosen.append(row)
    return tuple(report.structure.row_names[row] for row in sorted(chosen))


# --------------------------------------------------------------------------------------------------
# Permanent redundancy, or a singular configuration?
# --------------------------------------------------------------------------------------------------


# A neighbour nearer than this part of the spread is the configuration itself. Closing it again
# finds that to a root of rounding where the rank is too small, and leaves this much open.
_SAME = 1e-2
_FOUND_AGAIN = 1e-6

# A motion that C allows is made by neighbours if they move by this part of the spread along it.
_MADE = 1e-2


class Singularity(AbstractAnswer):
    """- `result`: `RESULTS.state_not_valid` for an invalid state (then ranks are -1 and nothing is
    singular), `configuration_open` where it is not closed.
    - `rank`: here. `generic_rank`: the largest at nearby closed configurations, drivers released.
    - `singular`: `rank < generic_rank`, or motions that C allows here are not made by any
      neighbour: they exist to first order alone. What is redundant beyond the generic redundancy
      is redundant in this configuration alone.
    - `isolated`: is there no other closed configuration nearby, although C allows motions? Ranks
      elsewhere are then those of open ones, `displaced_rank` at most, which geometry that has to
      be special does not share.
    - `mobility`: of motions that C allows here, drivers released; `moving`: how many of them
      neighbours make.
    - `ranks`, `closed` (samples,): at each neighbour, and whether the neighbour closed in another
      configuration than this one (one that did not is not counted). `rows`: of C.
    """

    result: RESULTS
    rank: IntScalar
    generic_rank: IntScalar
    singular: BoolScalar
    isolated: BoolScalar
    displaced_rank: IntScalar
    mobility: IntScalar
    moving: IntScalar
    ranks: Int[Array, " samples"]
    closed: Bool[Array, " samples"]
    rows: int = eqx.field(static=True)

    def described(self) -> Description:
        if self.rank.ndim:
            return _printing.batch("configurations", self.rank.shape)
        return Description([_printing.outcome(self.result) or self._words()], data=self._data)

    def _data(self) -> dict[str, Any]:
        return {
            "generic_rank": int(self.generic_rank),
            "rank": int(self.rank),
            "singular": bool(self.singular),
            "isolated": bool(self.isolated),
            "displaced_rank": int(self.displaced_rank),
            "mobility": int(self.mobility),
            "moving": int(self.moving),
            "neighbours": int(jnp.sum(self.closed)),
        }

    def _words(self) -> str:
        rank, nearby, count = int(self.rank), int(self.generic_rank), int(jnp.sum(self.closed))
        neighbours = f"{count} of {self.closed.shape[0]} neighbours, closed"
        displaced = f"up to {int(self.displaced_rank)} at displaced ones that are left open"
        mobility, moving = int(self.mobility), int(self.moving)
        if nearby > rank:
            return (
                f"SINGULAR configuration: rank {rank} here, {nearby} nearby ({neighbours}); "
                f"{self.rows - nearby} rows are redundant everywhere, {nearby - rank} more here"
            )
        if bool(self.isolated):
            return (
                f"SINGULAR configuration, isolated: rank {rank} here, {displaced}; no other closed "
                f"configuration is nearby, so that the mobility of {mobility} is one to first "
                "order alone"
            )
        if bool(self.singular):
            return (
                f"SINGULAR configuration: rank {rank} here and nearby ({neighbours}), which move "
                f"in {moving} of the {mobility} ways that C allows; the others exist to first "
                "order alone"
            )
        if count == 0 and mobility == 0:
            return f"not singular: rank {rank} here, the largest there can be, as nothing can move"
        if count == 0:
            return f"rank {rank} here, {displaced}; no neighbour closed to compare it with"
        permanent = "the redundancy is permanent" if self.rows > rank else "no row is redundant"
        return f"not singular: rank {rank} here and nearby ({neighbours}); {permanent}"


@takes_state(decides_rank=True)
def singularity(
    system: AbstractSystem,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"] | None = None,
    t: RealScalarLike = 0.0,
    *,
    key: Setting[PRNGKeyArray],
    samples: Setting[int] = 16,
    spread: Setting[RealScalarLike] = 0.05,
    criterion: Setting[AbstractCriterion | None] = None,
) -> Singularity:
    """Compare the rank of C here with its rank at nearby assembled configurations.

    Each neighbour is a random displacement of all coordinates (`spread` of the characteristic
    length, or as many radians), closed again without drivers, which would hold a mechanism in
    place. Where closing returns the configuration itself there is no neighbour: a mechanism that
    cannot move has none, and where C nevertheless allows a motion, it is one to first order only.

    **Arguments:** the state; `key`: a JAX random key; `samples`: number of neighbours, at least 1;
    `spread`: size of the displacements, 0.001 to 1; `criterion`: whose tolerance decides the ranks.

    **Raises:** `TypeError` or `ValueError` for one of these that cannot be.
    """
    velocity = jnp.zeros((system.structure.nv,), q.dtype) if v is None else v
    chosen = chosen_criterion(criterion, system)
    key = _settings.random_key(key, "key")
    samples = _settings.whole_number(samples, "samples", least=1)
    nearest, advice = system.tolerances.least_spread, "neighbours are about 0.05 away"
    spread = _settings.between(spread, "spread", least=nearest, most=1, advice=advice)
    return _singularity(system, q, velocity, jnp.asarray(t, q.dtype), key, samples, spread, chosen)


@program(compiling=Compiling.ONCE)
def _singularity(
    system: AbstractSystem,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    t: Float[Array, ""],
    key: PRNGKeyArray,
    samples: int,
    spread: Scalar,
    criterion: AbstractCriterion,
) -> Singularity:
    unit, structure = system.column_scale(), system.structure

    def ranks_at(at: Float[Array, " nq"]) -> tuple[IntScalar, IntScalar]:
        matrix, _, _ = scaled_constraint_matrix(system, at, v, t)
        found = criterion.decompose(jnp.where(jnp.all(jnp.isfinite(matrix)), matrix, 0.0))
        least = system.tolerances.rank_nearby * jnp.max(found.pivots, initial=0.0)
        coarse = jnp.maximum(found.threshold, least)
        return found.rank, jnp.sum(found.pivots > coarse)

    def neighbour(sample_key: PRNGKeyArray) -> tuple[Array, ...]:
        step = spread.astype(q.dtype) * unit * jr.normal(sample_key, (structure.nv,), q.dtype)
        displaced = system.retract(q, step)
        at, gap, closed = close_neighbour(system, displaced, t, drivers=False)
        way = system.difference(q, at) / (unit * spread.astype(q.dtype))
        other = jnp.max(jnp.abs(way), initial=0.0) > _SAME
        return displaced, at, way, closed & other, (gap <= _FOUND_AGAIN) & ~other

    displaced, nearby, ways, closed, again = jax.vmap(neighbour)(jr.split(key, samples))
    # As one batch, the configuration itself first: see AbstractCriterion.measure.
    exact, coarse = jax.vmap(ranks_at)(jnp.concatenate([q[None], nearby, displaced]))
    rank, ranks = exact[0], coarse[1 : samples + 1]
    generic = jnp.maximum(rank, jnp.max(jnp.where(closed, ranks, 0)))
    check = check_numbers(system, q, system.characteristic_length(), q, v, t)
    mobility, moving = _motions(system, q, v, t, jnp.where(closed[:, None], ways, 0.0))
    count = jnp.sum(closed)
    isolated = (count == 0) & (jnp.sum(again) > 0) & (mobility > 0)
    # Of many motions a few neighbours make not all.
    missing = moving < jnp.minimum(mobility, count // 2)
    singular = (rank < generic) | isolated | missing
    numbers = (rank, generic, jnp.maximum(rank, jnp.max(coarse[samples + 1 :])), mobility, moving)
    rank, generic, open_rank, mobility, moving = (
        jnp.where(check.valid, x, NO_RANK) for x in numbers
    )
    singular, isolated = singular & check.valid, isolated & check.valid
    return Singularity(
        check.result(),
        rank,
        generic,
        singular,
        isolated,
        open_rank,
        mobility,
        moving,
        ranks,
        closed,
        len(structure.rows),
    )


def _motions(
    system: AbstractSystem,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    t: Float[Array, ""],
    ways: Float[Array, "samples nv"],
) -> tuple[IntScalar, IntScalar]:
    """Number of motions that C allows here, drivers released, and number of them along these
    displacements (without units, relative to the spread)."""
    structure = system.structure
    matrix, _, _ = scaled_constraint_matrix(system, q, v, t)
    matrix = jnp.where(structure.driven[:, None] | ~jnp.isfinite(matrix), 0.0, matrix)
    none = jnp.zeros((max(0, structure.nv - len(structure.rows)), structure.nv), matrix.dtype)
    _, values, rows = jnp.linalg.svd(jnp.concatenate([matrix, none]), full_matrices=False)
    free = values <= system.tolerances.rank * jnp.max(values, initial=0.0)
    along = jnp.where(free, jnp.nan_to_num(ways) @ rows.T, 0.0)
    sizes = jnp.linalg.svd(along, compute_uv=False) / np.sqrt(len(ways))
    return jnp.sum(free), jnp.sum(sizes > _MADE)
