"""The ranges of one state, from its numbers and the bounds: NumPy alone, with linear programs."""

from typing import NamedTuple

import numpy as np

from .._solvability import UNIQUE_BELOW
from ._numbers import StateNumbers
from ._polyhedron import emptiness, maxima, Polyhedron


# Directions that differ by less than this are one.
_SAME = 1e-12

# Loads below this, relative to the size of all, are rounding.
_ROUNDING = 1e-9

# Bounds contradict each other by rounding up to this, relative to their own numbers.
_OWN_ROUNDING = 1e-13

# Loads that cancel leave rounding that does not appear in their sum: it is that of forces no larger
# than this (N m), or than the least of all limits.
_CANCELLED = 1e4

# A limit that is larger by this than loads and all other limits, and larger than this itself (N m),
# counts as none: no linear program can represent both.
_NO_LIMIT = 1e15


class Bounded(NamedTuple):
    """Inequalities matrix x <= limit in the variables, and which bound each belongs to, of
    `count`."""

    matrix: np.ndarray
    limit: np.ndarray
    owner: np.ndarray
    count: int


class Asked(NamedTuple):
    """Requested quantities: functions of variables (asked, variables); for each whether it is a
    combination, made of unit length before it is judged, and the constraint whose whole reaction
    decides it (-1: none)."""

    matrix: np.ndarray
    combination: np.ndarray
    constraint: np.ndarray


class StateRanges(NamedTuple):
    """`low`, `high` (asked,), NaN where the bounds contradict the loads; `unique` (asked,); `size`
    (asked,): of each under loads like these, relative to which rounding is judged; `shortfall`
    (bounds,): by how much each contradictory bound must be relaxed. `bases`: where to start at a
    neighbouring state.
    """

    low: np.ndarray
    high: np.ndarray
    unique: np.ndarray
    size: np.ndarray
    feasible: bool
    shortfall: np.ndarray
    bases: np.ndarray


def ranges_of_state(
    numbers: StateNumbers, bounded: Bounded, asked: Asked, bases: np.ndarray | None
) -> StateRanges:
    """Least and greatest value of every requested quantity."""
    known = np.asarray(numbers.multipliers)
    if int(numbers.rank) < 0 or not np.all(np.isfinite(known)):
        return _nothing(len(asked.matrix), bounded.count)
    free = np.asarray(numbers.null_space)[:, int(numbers.rank) :]
    free = free / np.asarray(numbers.row_scale)[:, None]
    variables = np.asarray(numbers.variables)
    values = asked.matrix @ (variables @ known)
    slopes = asked.matrix @ (variables @ free)
    lengths = _lengths(numbers, asked)
    unique = _unique(numbers, asked, slopes, lengths)
    rows = _inequalities(numbers, bounded, variables, known, free)
    rows, empty, own = _carried(rows, bounded)
    answer = StateRanges(
        low=values.copy(),
        high=values.copy(),
        unique=unique,
        size=lengths * _load(numbers),
        feasible=not empty,
        shortfall=own,
        bases=np.zeros((0, 0), int),
    )
    if empty:
        return answer._replace(low=np.full_like(values, np.nan), high=np.full_like(values, np.nan))
    many = np.flatnonzero(~unique)
    if not many.size:
        return answer
    return _fill(answer, rows, many, slopes[many], bases)


def _lengths(numbers: StateNumbers, asked: Asked) -> np.ndarray:
    """Norms of the requested functions of scaled multipliers."""
    functionals = asked.matrix @ np.asarray(numbers.variables) / np.asarray(numbers.row_scale)
    return np.linalg.norm(functionals, axis=1)


def _load(numbers: StateNumbers) -> float:
    """The load in N m, like scaled multipliers."""
    scaled = np.asarray(numbers.multipliers) * np.asarray(numbers.row_scale)
    return max(float(numbers.load), float(np.max(np.abs(scaled), initial=0.0)))


def _unique(
    numbers: StateNumbers, asked: Asked, slopes: np.ndarray, lengths: np.ndarray
) -> np.ndarray:
    """Uniqueness as in `analyze` and `reactions`: the part of a function of scaled multipliers,
    without units, in the null space."""
    size = np.linalg.norm(slopes, axis=1)
    scale = asked.matrix @ np.asarray(numbers.scale)
    lengths = np.where(lengths > 0, lengths, 1.0)
    measure = np.where(asked.combination, size / lengths, np.abs(scale) * size)
    whole = np.append(np.asarray(numbers.whole), 0)[asked.constraint] == 1
    return (measure <= UNIQUE_BELOW) | whole


class _Rows(NamedTuple):
    """The inequalities in z over `size` (N m), those of rows `kept`. Of those on what is unique,
    `fixed`, nothing is free: `missing` is what they are broken by, in their own unit, zero where
    that is rounding. `length` (m,): of the rows before they were made of unit length. `rounding`:
    by what the kept ones may contradict each other, relative to `size`."""

    polyhedron: Polyhedron
    kept: np.ndarray
    fixed: np.ndarray
    missing: np.ndarray
    size: float
    length: np.ndarray
    rounding: float


def _inequalities(
    numbers: StateNumbers,
    bounded: Bounded,
    variables: np.ndarray,
    known: np.ndarray,
    free: np.ndarray,
) -> _Rows:
    functions = bounded.matrix @ variables
    matrix = functions @ free
    room = bounded.limit - functions @ known
    length = np.linalg.norm(matrix, axis=1)
    scaled = np.linalg.norm(functions / np.asarray(numbers.row_scale), axis=1)
    kept = np.flatnonzero(length > UNIQUE_BELOW * scaled)
    fixed = np.flatnonzero(length <= UNIQUE_BELOW * scaled)
    load = _load(numbers)
    room_of_kept = room[kept] / length[kept]
    least = float(np.min(np.abs(room_of_kept), initial=np.inf, where=room_of_kept != 0))
    # Without it loads that are small beside all limits would be zero for a program.
    size = max(load, least if np.isfinite(least) else 0.0) or 1.0
    limited = room_of_kept <= _NO_LIMIT * max(size, 1.0)
    kept, room_of_kept = kept[limited], room_of_kept[limited]
    # A fixed quantity is judged on its own: limits of others do not apply to it.
    own = np.maximum(scaled[fixed] * load, np.abs(bounded.limit[fixed]))
    rounding = np.maximum(_ROUNDING * own, _OWN_ROUNDING * scaled[fixed] * min(size, _CANCELLED))
    return _Rows(
        Polyhedron(matrix[kept] / length[kept, None], room_of_kept / size),
        kept,
        fixed,
        np.where(room[fixed] < -rounding, -room[fixed], 0.0),
        size,
        np.where(length > 0, length, 1.0),
        max(_ROUNDING * load / size, _OWN_ROUNDING),
    )


def _carried(rows: _Rows, bounded: Bounded) -> tuple[_Rows, bool, np.ndarray]:
    """The inequalities, relaxed by contradictions due to rounding; is the set empty, and by how
    much would each of the bounds have to be relaxed?"""
    own = np.zeros(bounded.count)
    if np.any(rows.missing):
        np.maximum.at(own, bounded.owner[rows.fixed], rows.missing)
        return rows, True, own
    found = emptiness(rows.polyhedron, rows.rounding)
    if not found.rows.size:
        room = rows.polyhedron.room + 2 * found.violation
        return rows._replace(polyhedron=rows.polyhedron._replace(room=room)), False, own
    places = rows.kept[found.rows]
    missing = found.broken[found.rows] * rows.size * rows.length[places]
    np.maximum.at(own, bounded.owner[places], missing)
    return rows, True, own


def _fill(
    answer: StateRanges,
    rows: _Rows,
    many: np.ndarray,
    slopes: np.ndarray,
    bases: np.ndarray | None,
) -> StateRanges:
    """The ends of what is not unique. Directions that are parallel share a program."""
    lengths = np.linalg.norm(slopes, axis=1)
    distinct, which, signs = _distinct(slopes / lengths[:, None])
    directions = np.concatenate([distinct, -distinct])
    found = maxima(rows.polyhedron, directions, bases)
    for k, place in enumerate(many):
        up, down = found[which[k]], found[which[k] + len(distinct)]
        if signs[k] < 0:
            up, down = down, up
        reach = lengths[k] * rows.size
        answer.high[place] += reach * up.value
        answer.low[place] -= reach * down.value
    return answer._replace(bases=np.stack([own.basis for own in found]))


def _distinct(unit: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Unit vectors up to their sign: those that differ, which of them each is, and its sign."""
    kept: list[int] = []
    which, signs = np.zeros(len(unit), int), np.ones(len(unit))
    for k, vector in enumerate(unit):
        own = unit[kept]
        same = np.linalg.norm(own - vector, axis=1), np.linalg.norm(own + vector, axis=1)
        for sign, apart in zip((1.0, -1.0), same, strict=True):
            if np.any(apart < _SAME):
                which[k], signs[k] = int(np.argmin(apart)), sign
                break
        else:
            which[k] = len(kept)
            kept.append(k)
    return unit[kept], which, signs


def _nothing(asked: int, bounds: int) -> StateRanges:
    """Ranges of an invalid state, or of one without accelerations."""
    missing = np.full(asked, np.nan)
    return StateRanges(
        low=missing,
        high=missing,
        unique=np.zeros(asked, bool),
        size=np.zeros(asked),
        feasible=False,
        shortfall=np.zeros(bounds),
        bases=np.zeros((0, 0), int),
    )
