"""Greatest values of linear functions on a polyhedron: linear programs, exact to rounding.

HiGHS decides which inequalities are active at an optimum. The numbers do not come from it, as it
leaves them at its tolerances: with A_S y = c on the inequalities S, y >= 0, the greatest c . z is
y . room_S (duality), which one small solve gives to rounding. One dimension is an interval, and
needs no program at all.
"""

from typing import NamedTuple

import numpy as np

from .._extras import optional


# Tolerance of HiGHS for zero; the least that it allows.
_TOLERANCE = 1e-10

# Of unit vectors: below this a direction has no part in another.
_PARALLEL = 1e-9

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
    **Raises:** `RuntimeError` if HiGHS does not solve a program that has a solution.
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
        raise RuntimeError(
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
