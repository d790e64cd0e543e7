"""Zeros of a germ on small spheres: where they are, and the branches through them.

On a sphere the equations, made of equal size, are minimised from directions by chance, each start
by itself. About each zero the zeros on a much smaller sphere tell the dimension of its branch, and
its tangent space.
"""

from typing import NamedTuple

import numpy as np

from ._germ import AbstractGerm, Values


# A value of so many times the noise of the germ is zero; of so many it is not, for sure.
ZERO, NOT_ZERO = 3.0, 100.0

# A value that is smaller than this part of what counts as zero is not made smaller.
_SMALL = 0.03

# Radii from which tangents are extrapolated, each half of the one before.
_LEVELS = 5

# Spheres about points of a branch, relative to the distance of these from 0.
_LOCAL = 0.03

# Directions nearer than this are one: triple zeros are found to a third of the digits.
_SAME = 1e-3

# So many points of the zeros on a sphere are looked at closely, each from so many starts about it,
# and so many more for each unknown.
_LOOKED_AT, _LOOKED_AT_MORE = 8, 4
_STARTS, _STARTS_MORE = 4, 3

# In every direction of its tangent space there is a smooth branch but for this, so many times
# nearer to 0.
_FLAT, _NEARER = 0.05, 16.0

# A derivative that is smaller, relative to the first, is that of a multiple zero.
_MULTIPLE = 1e-4

# Tangent spaces that differ by less belong to one smooth branch; branches of a dimension of two or
# more that touch each other are counted as one, and all cones of one dimension.
_TURNED, _CONE = 0.3, 0.7


class Piece(NamedTuple):
    """A branch of zeros.

    `dimension`; `tangent` (k, dimension): orthonormal, of the branch at 0 (of a cone: as many
    directions as it spans); `one_way`: a cusp, which leads away from 0 in one direction alone;
    `is_cone`: without a tangent space at 0; `points` (points, k): on it, away from 0, and
    `tangents` (points, k, dimension) there.
    """

    dimension: int
    tangent: np.ndarray
    one_way: bool
    is_cone: bool
    points: np.ndarray
    tangents: np.ndarray


class _Ends(NamedTuple):
    """Where minimisations ended: directions u (n, k), largest value |g|, the germ there, and
    whether it is a minimum (or zero)."""

    u: np.ndarray
    size: np.ndarray
    values: Values
    settled: np.ndarray


class Link(NamedTuple):
    """Zeros on one sphere: `pieces` as far as one sphere tells, `halves` (n, k): directions of
    arcs; `minima`: directions and values of minima that are not zero; `gaps`: largest values
    between arcs that leave in one direction; `size`: root mean square of |g|; `left`: the largest
    value of what counts as zero; `doubts`."""

    pieces: list[Piece]
    minima: list[tuple[np.ndarray, float]]
    gaps: list[float]
    size: float
    left: float
    doubts: list[str]

    def signature(self) -> tuple[tuple[int, bool, bool], ...]:
        return tuple(sorted((p.dimension, p.one_way, p.is_cone) for p in self.pieces))


def directions(rng: np.random.Generator, count: int, k: int) -> np.ndarray:
    u = rng.standard_normal((count, k))
    return u / np.linalg.norm(u, axis=1, keepdims=True)


def refined(germ: AbstractGerm, piece: Piece, radius: float, rng: np.random.Generator) -> Piece:
    """With the tangent at 0, from points that are led there on spheres that become smaller: what it
    differs by is even in the radius, where points on opposite sides are taken together."""
    if piece.is_cone:
        return piece
    nodes = piece.points / np.linalg.norm(piece.points, axis=1, keepdims=True)
    if piece.dimension > 1:
        nodes = _spread_out(nodes, 3 * piece.dimension)
        nodes = np.concatenate([nodes, -nodes])
    factor, table = (2.0 if piece.one_way else 4.0), []
    for level in range(_LEVELS):
        small = radius / 2**level
        weights = _weights_at(germ, small, rng)
        ends = _minimise(germ, np.zeros_like(nodes), small, nodes, weights)
        if not np.all(ends.size <= ZERO * germ.noise):
            break
        nodes = ends.u
        spanned = nodes
        if piece.dimension == 1:
            spanned = nodes[:1] + (1.0 if piece.one_way else -1.0) * nodes[1:]
        _, _, right = np.linalg.svd(spanned, full_matrices=False)
        space = right[: piece.dimension].T
        table.append(space @ space.T)
        for back in range(1, len(table)):
            power = factor**back
            table[-1 - back] = (power * table[-back] - table[-1 - back]) / (power - 1)
    if not table:
        return piece
    _, vectors = np.linalg.eigh(table[0])
    tangent = vectors[:, ::-1][:, : piece.dimension]
    if piece.dimension == 1:
        tangent = tangent * (1.0 if tangent[:, 0] @ piece.tangent[:, 0] > 0 else -1.0)
    return piece._replace(tangent=tangent)


def link(germ: AbstractGerm, radius: float, rng: np.random.Generator) -> Link:
    k, zero = germ.unknowns, ZERO * germ.noise
    # By chance alone: axes of a symmetric mechanism lead to where its branches meet.
    u = directions(rng, 40 * (k - 1), k) if k > 1 else np.array([[1.0], [-1.0]])
    start = germ(radius * u)
    value = start.value
    if not np.all(start.found):
        return Link([], [], [], 1.0, 0.0, ["the constraints could not be solved"])
    size = float(np.sqrt(np.mean(np.sum(value**2, axis=1))))
    weights, faint = _weights(value, germ.noise)
    ends = _minimise(germ, np.zeros_like(u), radius, u, weights)
    doubts = ["an equation is hardly larger than rounding"] if faint else []
    is_zero = ends.size <= zero
    if np.any(~is_zero & (ends.size < NOT_ZERO * germ.noise) & ends.settled):
        doubts.append("a value on a sphere is hardly larger than rounding")
    left = float(np.max(ends.size[is_zero], initial=0.0))
    minima = _minima(germ, radius, u, ends)
    nodes = _distinct(ends.u[is_zero])
    pieces, halves, more = _pieces(germ, radius, nodes, weights, rng)
    gaps = _gaps(germ, radius, halves)
    return Link(pieces, minima, gaps, size, left, doubts + more)


def _minima(
    germ: AbstractGerm, radius: float, u: np.ndarray, ends: _Ends
) -> list[tuple[np.ndarray, float]]:
    """Minima of |g| itself, and not of equations that were made of equal size, which are not zero:
    those of the conditions of lowest order count most, as curves that satisfy these do."""
    if germ.equations > 1:
        plain = np.eye(germ.equations)
        ends = _minimise(germ, np.zeros_like(u), radius, u, plain)
    found: list[tuple[np.ndarray, float]] = []
    for n in np.flatnonzero((ends.size > ZERO * germ.noise) & ends.settled):
        if all(float(ends.u[n] @ v) < 1 - 1e-4 for v, _ in found):
            found.append((ends.u[n], float(ends.size[n])))
    return found


def _weights(values: np.ndarray, noise: float) -> tuple[np.ndarray, bool]:
    """Combinations of equations (p', p) that are of size one each, those that are more than noise;
    and whether one of them is hardly more."""
    _, sizes, right = np.linalg.svd(values / np.sqrt(len(values)), full_matrices=False)
    kept = sizes > NOT_ZERO * noise
    return right[kept] / sizes[kept, None], bool(np.any(kept & (sizes < 10 * NOT_ZERO * noise)))


def _minimise(
    germ: AbstractGerm, centres: np.ndarray, radius: float, u: np.ndarray, weights: np.ndarray
) -> _Ends:
    """|W g| on spheres about the centres (n, k), from u (n, k): Levenberg and Marquardt's method,
    each start by itself."""
    u, zero = u.copy(), ZERO * germ.noise
    values = germ(centres + radius * u)
    cost = np.where(values.found, np.sum((values.value @ weights.T) ** 2, axis=1), np.inf)
    damping, going = np.full(len(u), 1e-3), values.found.copy()
    settled = np.zeros(len(u), bool)
    for _ in range(120):
        at = np.flatnonzero(going)
        if not at.size:
            break
        along = u[at]
        slope = radius * (weights @ values.slope[at])
        slope = slope - (slope @ along[:, :, None]) * along[:, None, :]
        step = _damped_step(slope, values.value[at] @ weights.T, damping[at])
        length = np.linalg.norm(step, axis=1, keepdims=True)
        step = step * np.minimum(1.0, 0.5 / np.maximum(length, 1e-300))
        trial = along + step
        trial = trial / np.linalg.norm(trial, axis=1, keepdims=True)
        found = germ(centres[at] + radius * trial, values.inner[at])
        new = np.where(found.found, np.sum((found.value @ weights.T) ** 2, axis=1), np.inf)
        better = new < cost[at]
        here = at[better]
        gained = cost[here] - new[better] > 1e-12 * cost[here]
        u[here], cost[here] = trial[better], new[better]
        for old, fresh in zip(values, found, strict=True):
            old[here] = fresh[better]
        damping[at] = np.clip(np.where(better, 0.1, 8.0) * damping[at], 1e-18, 1e12)
        size = np.max(np.abs(values.value[at]), axis=1)
        ended = (size <= _SMALL * zero) | (np.minimum(length[:, 0], 1.0) < 1e-9)
        ended |= damping[at] > 1e6
        ended[better] |= ~gained
        going[at] = ~ended
        settled[at] |= ended
    size = np.where(values.found, np.max(np.abs(values.value), axis=1), np.inf)
    return _Ends(u, size, values, settled)


def _damped_step(slope: np.ndarray, value: np.ndarray, damping: np.ndarray) -> np.ndarray:
    left, sizes, right = np.linalg.svd(slope, full_matrices=False)
    first = np.maximum(sizes[:, :1], 1e-100)
    scale = sizes / (sizes**2 + damping[:, None] * first**2)
    parts = np.einsum("bpi,bp->bi", left, value) * scale
    return -np.einsum("bi,bik->bk", parts, right)


def _distinct(u: np.ndarray) -> np.ndarray:
    """Directions (n, k) that differ."""
    kept: list[np.ndarray] = []
    for direction in u:
        if all(np.linalg.norm(direction - other) > _SAME for other in kept):
            kept.append(direction)
    return np.stack(kept) if kept else u[:0]


def _spread_out(nodes: np.ndarray, count: int) -> np.ndarray:
    """At most so many of them, far from each other."""
    if len(nodes) <= count:
        return nodes
    chosen = [0]
    distance = np.linalg.norm(nodes - nodes[0], axis=1)
    while len(chosen) < count:
        chosen.append(int(np.argmax(distance)))
        distance = np.minimum(distance, np.linalg.norm(nodes - nodes[chosen[-1]], axis=1))
    return nodes[chosen]


def _pieces(
    germ: AbstractGerm,
    radius: float,
    nodes: np.ndarray,
    weights: np.ndarray,
    rng: np.random.Generator,
) -> tuple[list[Piece], np.ndarray, list[str]]:
    """Branches through the nodes, directions of those that are arcs, and doubts."""
    k = germ.unknowns
    if not len(nodes):
        return [], nodes, []
    nodes = _spread_out(nodes, _LOOKED_AT + _LOOKED_AT_MORE * k)
    starts = _STARTS + _STARTS_MORE * k
    u = np.concatenate([directions(rng, starts, k) for _ in nodes])
    centres = np.repeat(radius * nodes, starts, axis=0)
    ends = _minimise(germ, centres, _LOCAL * radius, u, weights)
    near = ends.size <= ZERO * germ.noise
    tangents = [
        _tangent(ends.u[n * starts : (n + 1) * starts][near[n * starts : (n + 1) * starts]])
        for n in range(len(nodes))
    ]
    # Next to where branches meet both are seen: more directions than the derivative leaves free.
    slopes = weights @ germ(radius * nodes).slope
    sizes = np.linalg.svd(slopes, compute_uv=False)
    free = k - np.sum(sizes > _MULTIPLE * np.max(sizes), axis=1)
    clean = [n for n in range(len(nodes)) if tangents[n].shape[1] <= free[n]]
    doubts = [] if clean else ["branches meet wherever they were looked at"]
    nodes, tangents = nodes[clean], [tangents[n] for n in clean]
    if any(tangent.shape[1] == 0 for tangent in tangents):
        doubts.append("a zero on a sphere has no others next to it")
    pieces: list[Piece] = []
    halves = nodes[:0]
    for dimension in sorted({own.shape[1] for own in tangents} - {0}):
        own = [n for n, x in enumerate(tangents) if x.shape[1] == dimension]
        spaces = np.stack([tangents[n] for n in own])
        if dimension > 1:
            pieces += _sheets(germ, nodes[own], spaces, radius, rng)
            continue
        halves = nodes[own]
        pieces += _arcs(halves, spaces, radius)
        if len(halves) % 2:
            doubts.append("an odd number of arcs leaves the configuration")
    return pieces, halves, doubts


def _tangent(u: np.ndarray) -> np.ndarray:
    """An orthonormal basis (k, dimension) of what directions (n, k) span."""
    if not len(u):
        return np.zeros((u.shape[1], 0))
    _, sizes, right = np.linalg.svd(u, full_matrices=False)
    return right[sizes > 0.2 * sizes[0]].T


def _arcs(halves: np.ndarray, tangents: np.ndarray, radius: float) -> list[Piece]:
    """Curves, of which each leaves the configuration by two arcs: the most opposite together."""
    left, pieces = list(range(len(halves))), []
    while len(left) > 1:
        pairs = [(float(halves[a] @ halves[b]), a, b) for a in left for b in left if a < b]
        cosine, a, b = min(pairs)
        left = [n for n in left if n not in (a, b)]
        one_way = cosine > 0
        tangent = halves[a] + (1.0 if one_way else -1.0) * halves[b]
        tangent = (tangent / np.linalg.norm(tangent))[:, None]
        points = radius * halves[[a, b]]
        pieces.append(Piece(1, tangent, one_way, False, points, tangents[[a, b]]))
    return pieces


def _sheets(
    germ: AbstractGerm,
    nodes: np.ndarray,
    tangents: np.ndarray,
    radius: float,
    rng: np.random.Generator,
) -> list[Piece]:
    """Branches of one dimension of two or more: points with like tangent spaces together, if they
    lie in one of these the more, the nearer they are to 0. What does not is a cone."""
    dimension = tangents.shape[2]
    projectors = tangents @ np.swapaxes(tangents, 1, 2)
    apart = np.linalg.norm(projectors[:, None] - projectors[None], ord=2, axis=(-2, -1))
    left, pieces, others = set(range(len(nodes))), [], []
    while left:
        group, edge = set(), {min(left)}
        while edge:
            group |= edge
            edge = {n for n in left - group if any(apart[n, m] < _TURNED for m in edge)}
        left -= group
        own = sorted(group)
        together = float(np.max(apart[np.ix_(own, own)])) < _CONE
        _, vectors = np.linalg.eigh(np.mean(projectors[own], axis=0))
        tangent = vectors[:, ::-1][:, :dimension]
        if not together or not _is_flat(germ, tangent, radius, rng):
            others += own
            continue
        points = radius * nodes[own]
        pieces.append(Piece(dimension, tangent, False, False, points, tangents[own]))
    # One by itself is no sheet: there branches meet.
    if len(others) > dimension:
        points, spanned = radius * nodes[others], _tangent(nodes[others])
        pieces.append(Piece(dimension, spanned, False, True, points, tangents[others]))
    return pieces


def _is_flat(
    germ: AbstractGerm, tangent: np.ndarray, radius: float, rng: np.random.Generator
) -> bool:
    """Is there a zero near 0 in every direction of the space (k, dimension)?"""
    small, dimension = radius / _NEARER, tangent.shape[1]
    u = directions(rng, 4 * dimension, dimension) @ tangent.T
    ends = _minimise(germ, np.zeros_like(u), small, u, _weights_at(germ, small, rng))
    near = np.linalg.norm(ends.u - u, axis=1) < _FLAT
    return bool(np.all(near & (ends.size <= ZERO * germ.noise)))


def _weights_at(germ: AbstractGerm, radius: float, rng: np.random.Generator) -> np.ndarray:
    k = germ.unknowns
    found = germ(radius * directions(rng, 8 + 4 * k, k))
    return _weights(found.value[found.found], germ.noise)[0]


def _gaps(germ: AbstractGerm, radius: float, halves: np.ndarray) -> list[float]:
    """The largest value between two arcs that leave in nearly one direction."""
    found = []
    for a in range(len(halves)):
        for b in range(a):
            if halves[a] @ halves[b] < 0.8:
                continue
            part = np.linspace(0, 1, 9)[1:-1, None]
            between = (1 - part) * halves[a] + part * halves[b]
            between = between / np.linalg.norm(between, axis=1, keepdims=True)
            value = germ(radius * between).value
            found.append(float(np.max(np.linalg.norm(value, axis=1))))
    return found
