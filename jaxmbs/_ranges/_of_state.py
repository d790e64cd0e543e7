"""The ranges of one state, from its numbers and the bounds: NumPy alone, with linear programs
exact to rounding.
"""

from typing import NamedTuple

import numpy as np

from .._errors import AnalysisError, optional
from .._limits import EXACT
from ._numbers import StateNumbers


# --------------------------------------------------------------------------------------------------
# Greatest values of linear functions on a polyhedron: linear programs, exact to rounding.
#
# HiGHS decides which inequalities are active at an optimum. The numbers do not come from it, as it
# leaves them at its tolerances: with A_S y = c on the inequalities S, y >= 0, the greatest c . z is
# y . room_S (duality), which one small solve gives to rounding. One dimension is an interval, and
# needs no program at all.
# --------------------------------------------------------------------------------------------------


# Tolerance of HiGHS for zero; the least that it allows.
_TOLERANCE = 1e-10

# Of unit vectors: below this a direction has no part in another.
_PARALLEL = EXACT.rank

# What misses a polyhedron by less than this, relative to its size, is in it.
_INSIDE = 1e-9


class Polyhedron(NamedTuple):
    """All z (p,) with `matrix` z <= `room`; rows (m, p) of unit length, `room` (m,) relative to the
    size of the loads."""

    matrix: np.ndarray
    room: np.ndarray


class Emptiness(NamedTuple):
    """`violation`: the least by which some row must be broken, rounding for a polyhedron that is
    not empty; `rows`: those that contradict each other, none if it is not empty; `broken` (m,): by
    how much each is broken at the point that breaks them least."""

    violation: float
    rows: np.ndarray
    broken: np.ndarray


class Maximum(NamedTuple):
    """`value`: the greatest, may be infinite; `basis` (p,): rows that are active at the maximum, -1
    if they are not known."""

    value: float
    basis: np.ndarray


def emptiness(polyhedron: Polyhedron, rounding: float) -> Emptiness:
    """Is there a point in it? What is empty by no more than `rounding`, relative to its size, is
    not. By Farkas' lemma rows with weights y >= 0, A^T y = 0, room . y < 0
    contradict each other; a basic solution has no more than p + 1 of them."""
    matrix, room = polyhedron
    count, size = matrix.shape
    if not count or np.all(room >= 0):
        return _not_empty(count)
    if size == 1:
        return _empty_interval(polyhedron, rounding)
    cost = np.append(np.zeros(size), 1.0)
    relaxed = np.hstack([matrix, -np.ones((count, 1))])
    free = [(None, None)] * size + [(0, None)]
    found = _linprog(cost, relaxed, room, free)
    weights = -found.ineqlin.marginals
    violation = _exact_violation(polyhedron, float(found.x[-1]), weights)
    if violation <= rounding:
        return _not_empty(count, violation)
    broken = np.maximum(matrix @ found.x[:-1] - room, 0.0)
    return Emptiness(violation, np.flatnonzero(weights > _TOLERANCE), broken)


def maxima(
    polyhedron: Polyhedron, directions: np.ndarray, bases: np.ndarray | None = None
) -> list[Maximum]:
    """The greatest of each direction (k, p) on a polyhedron that is not empty.

    `bases` (k, p): rows that may be active for each (-1: not known), as at a neighbouring state;
    where they are, no program is solved.
    """
    inside = _row_space(polyhedron.matrix)
    reduced = Polyhedron(polyhedron.matrix @ inside, polyhedron.room)
    size = inside.shape[1]
    within = directions @ inside
    away = np.linalg.norm(directions - within @ inside.T, axis=1)
    lengths = np.linalg.norm(directions, axis=1)
    never = np.full(size, -1)
    answers: list[Maximum | None] = [None] * len(directions)
    for k in np.flatnonzero(away > _PARALLEL * lengths):
        answers[k] = Maximum(np.inf, never)
    if bases is not None and bases.shape == (len(directions), size):
        _from_bases(reduced, within, bases, answers)
    left = [k for k, answer in enumerate(answers) if answer is None]
    for k, found in zip(left, _solved(reduced, within[left]), strict=True):
        answers[k] = found
    return [found for found in answers if found is not None]


def _row_space(matrix: np.ndarray) -> np.ndarray:
    """An orthonormal basis (p, r) of the row space of the inequalities."""
    if 0 in matrix.shape:
        return np.zeros((matrix.shape[1], 0))
    _, values, right = np.linalg.svd(matrix, full_matrices=False)
    return right[values > _PARALLEL * values[0]].T


def _solved(polyhedron: Polyhedron, directions: np.ndarray) -> list[Maximum]:
    """Solutions by linear programs, or as the ends of an interval."""
    if not len(directions):
        return []
    size = polyhedron.matrix.shape[1]
    if size == 1:
        return [_end_of_interval(polyhedron, float(c[0])) for c in directions]
    never = np.full(size, -1)
    answers = [Maximum(np.inf, never)] * len(directions)
    bounded = np.flatnonzero(~_recedes(polyhedron, directions))
    points, weights = _vertices(polyhedron, directions[bounded])
    for k, point, own in zip(bounded, points, weights, strict=True):
        answers[k] = _exact(polyhedron, directions[k], point, own)
    return answers


def _recedes(polyhedron: Polyhedron, directions: np.ndarray) -> np.ndarray:
    """Along which directions does it go on for ever? The greatest of each in the recession cone
    A d <= 0, cut by a box."""
    lengths = np.linalg.norm(directions, axis=1)
    unit = directions / np.where(lengths > 0, lengths, 1.0)[:, None]
    cone = Polyhedron(polyhedron.matrix, np.zeros_like(polyhedron.room))
    found, _ = _vertices(cone, unit, box=1.0)
    return np.sum(found * unit, axis=1) > np.sqrt(_TOLERANCE)


def _vertices(
    polyhedron: Polyhedron, directions: np.ndarray, box: float | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Optimal points (k, p) and weights (k, m) of all directions in one program of independent
    blocks: one call costs as much as several of them."""
    (blocks, size), count = directions.shape, polyhedron.matrix.shape[0]
    if not blocks:
        return np.zeros((0, size)), np.zeros((0, count))
    sparse = optional("scipy.sparse", "ranges")
    matrix = sparse.kron(sparse.identity(blocks), polyhedron.matrix, format="csr")
    limits = (None, None) if box is None else (-box, box)
    found = _linprog(-directions.ravel(), matrix, np.tile(polyhedron.room, blocks), limits)
    return found.x.reshape(blocks, size), -found.ineqlin.marginals.reshape(blocks, count)


def _linprog(cost: np.ndarray, matrix, limit: np.ndarray, bounds):
    """
    **Raises:** `AnalysisError` if HiGHS does not solve a program that has a solution.
    """
    found = optional("scipy.optimize", "ranges").linprog(
        cost,
        A_ub=matrix,
        b_ub=limit,
        bounds=bounds,
        method="highs-ds",
        options={
            "primal_feasibility_tolerance": _TOLERANCE,
            "dual_feasibility_tolerance": _TOLERANCE,
        },
    )
    if found.status:
        raise AnalysisError(
            f"HiGHS did not solve a linear program of {matrix.shape[0]} inequalities: "
            f"{found.message} Give bounds whose numbers are closer to those of the loads."
        )
    return found


def _exact(
    polyhedron: Polyhedron, direction: np.ndarray, point: np.ndarray, weights: np.ndarray
) -> Maximum:
    """The value by duality, and the rows that are active at the point."""
    matrix, room = polyhedron
    held = np.flatnonzero(weights > _TOLERANCE * max(1.0, float(np.max(weights, initial=0.0))))
    exact = np.zeros_like(weights)
    exact[held] = np.linalg.lstsq(matrix[held].T, direction, rcond=None)[0]
    size = np.linalg.norm(direction)
    misses = np.linalg.norm(matrix.T @ exact - direction) > _PARALLEL * size
    if misses or np.any(exact < -_PARALLEL * size):
        exact = weights
    slack = np.abs(matrix @ point - room)
    order = np.argsort(-exact, kind="stable").tolist()
    candidates = [k for k in order if slack[k] <= np.sqrt(_TOLERANCE) or exact[k] > 0]
    return Maximum(float(exact @ room), _independent(matrix, candidates))


def _independent(matrix: np.ndarray, candidates: list[int]) -> np.ndarray:
    """The first rows that do not depend on each other, p of them; -1 where there are too few."""
    size = matrix.shape[1]
    basis, found = np.full(size, -1), np.zeros((0, size))
    for k in candidates:
        if len(found) == size:
            break
        rest = matrix[k] - found.T @ (found @ matrix[k])
        length = np.linalg.norm(rest)
        if length > 1e-6:
            basis[len(found)] = k
            found = np.vstack([found, rest / length])
    return basis if len(found) == size else np.full(size, -1)


def _from_bases(
    polyhedron: Polyhedron,
    directions: np.ndarray,
    bases: np.ndarray,
    answers: list[Maximum | None],
) -> None:
    """Fill in the optima at the given active rows: a vertex in the polyhedron with nonnegative
    weights is the optimum."""
    matrix, room = polyhedron
    known = [k for k, own in enumerate(bases) if answers[k] is None and np.all(own >= 0)]
    if not known or not matrix.size:
        return
    corners = matrix[bases[known]]
    try:
        points = np.linalg.solve(corners, room[bases[known]][..., None])[..., 0]
        weights = np.linalg.solve(np.swapaxes(corners, 1, 2), directions[known][..., None])[..., 0]
    except np.linalg.LinAlgError:
        return
    size = np.linalg.norm(directions[known], axis=1)
    inside = np.max(points @ matrix.T - room, axis=1) <= _INSIDE
    optimal = np.min(weights, axis=1) >= -_TOLERANCE * size
    for own, k in enumerate(known):
        if inside[own] and optimal[own]:
            answers[k] = Maximum(float(weights[own] @ room[bases[k]]), bases[k])


def _exact_violation(polyhedron: Polyhedron, violation: float, weights: np.ndarray) -> float:
    """The violation by duality, as `_exact`: weights y >= 0 of sum one with A^T y = 0 prove
    -room . y."""
    held = np.flatnonzero(weights > _TOLERANCE)
    if not held.size:
        return violation
    corner = np.vstack([polyhedron.matrix[held].T, np.ones(held.size)])
    wanted = np.append(np.zeros(len(corner) - 1), 1.0)
    exact = np.linalg.lstsq(corner, wanted, rcond=None)[0]
    if np.linalg.norm(corner @ exact - wanted) > _PARALLEL or np.any(exact < 0):
        return violation
    return max(0.0, -float(exact @ polyhedron.room[held]))


def _empty_interval(polyhedron: Polyhedron, rounding: float) -> Emptiness:
    matrix, room = polyhedron
    up, down = _ends(polyhedron)
    violation = 0.0 if min(up, down) < 0 else max(0.0, -float(room[up] + room[down]) / 2)
    if violation <= rounding:
        return _not_empty(len(room), violation)
    middle = (room[up] - room[down]) / 2
    broken = np.maximum(matrix[:, 0] * middle - room, 0.0)
    return Emptiness(violation, np.array([up, down]), broken)


def _end_of_interval(polyhedron: Polyhedron, direction: float) -> Maximum:
    end = _ends(polyhedron)[0 if direction > 0 else 1]
    value = np.inf if end < 0 else abs(direction) * float(polyhedron.room[end])
    return Maximum(value, np.array([end]))


def _ends(polyhedron: Polyhedron) -> tuple[int, int]:
    """The rows that end it above and below; -1 where none does. All are z <= room or -z <= room."""
    positive = polyhedron.matrix[:, 0] > 0
    up = np.where(positive, polyhedron.room, np.inf)
    down = np.where(positive, np.inf, polyhedron.room)
    ends = [int(np.argmin(x)) if np.any(np.isfinite(x)) else -1 for x in (up, down)]
    return ends[0], ends[1]


def _not_empty(count: int, violation: float = 0.0) -> Emptiness:
    return Emptiness(violation, np.zeros(0, int), np.zeros(count))


# --------------------------------------------------------------------------------------------------
# The ranges of one state, from its numbers and the bounds: NumPy alone, with linear programs.
# --------------------------------------------------------------------------------------------------


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
    return (measure <= EXACT.unique) | whole


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
    kept = np.flatnonzero(length > EXACT.unique * scaled)
    fixed = np.flatnonzero(length <= EXACT.unique * scaled)
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
