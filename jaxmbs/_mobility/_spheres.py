"""Zeros of a germ on small spheres: where they are, and which of them belong to one branch."""

from typing import NamedTuple

import numpy as np

from ._germ import AbstractGerm, Restricted, Values


# --------------------------------------------------------------------------------------------------
# Zeros of a germ on small spheres: where they are, and the branches through them.
#
# On a sphere the equations, made of equal size, are minimised from directions by chance, each start
# by itself. About each zero the zeros on a much smaller sphere tell the dimension of its branch,
# and its tangent space.
# --------------------------------------------------------------------------------------------------


# A value of so many times the noise of the germ is zero; of so many it is not, for sure.
ZERO, NOT_ZERO = 3.0, 100.0

# A value that is smaller than this part of what counts as zero is not made smaller.
_SMALL = 0.03

# Radii from which tangents are extrapolated, each half of the one before.
_LEVELS = 5

# Spheres about points of a branch, relative to the distance of these from 0.
_LOCAL = (0.03, 0.003, 0.0003)

# Directions nearer than this are one: triple zeros are found to a third of the digits.
SAME = 1e-3

# So many points of the zeros on a sphere are looked at closely, each from so many starts about it,
# and so many more for each unknown.
_LOOKED_AT, _LOOKED_AT_MORE = 8, 4
_STARTS, _STARTS_MORE = 4, 3

# Starts for zeros that are few: so many, and so many more for each unknown.
_FEW, _FEW_MORE = 8, 6

# A derivative that is smaller, relative to the first, is that of a multiple zero.
_MULTIPLE = 1e-4

# Of two zeros nearer than `SAME` the values between them are looked at, at these parts.
_BETWEEN, _ONE = (0.2, 0.45, 0.7), 30.0

# Where zeros nearly touch there may be others between.
_NEARLY = 0.1


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
    """Ends of minimisations: directions u (n, k), largest value |g|, the germ there, and
    whether it is a minimum (or zero)."""

    u: np.ndarray
    size: np.ndarray
    values: Values
    settled: np.ndarray


class Link(NamedTuple):
    """Zeros on one sphere: `pieces` as far as one sphere tells, those of a dimension of two or
    more as one for each dimension; `halves` (n, k): directions of arcs; `minima`: directions and
    values of minima that are not zero; `gaps`: largest values between arcs that leave in one
    direction; `size`: root mean square of |g|; `left`: the largest value of what counts as zero;
    `doubts`."""

    pieces: list[Piece]
    halves: np.ndarray
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
        nodes = spread_out(nodes, 3 * piece.dimension)
        nodes = np.concatenate([nodes, -nodes])
    factor, table = (2.0 if piece.one_way else 4.0), []
    for level in range(_LEVELS):
        small = radius / 2**level
        weights = weights_at(germ, small, rng)
        if not len(weights):
            break
        ends = minimise(germ, np.zeros_like(nodes), small, nodes, weights)
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
        return Link([], u[:0], [], [], 1.0, 0.0, ["the constraints could not be solved"])
    size = float(np.sqrt(np.mean(np.sum(value**2, axis=1))))
    weights, faint = _weights(value, germ.noise)
    if not len(weights):
        return Link([], u[:0], [], [], size, 0.0, ["values are no larger than rounding"])
    ends = minimise(germ, np.zeros_like(u), radius, u, weights)
    doubts = ["an equation is hardly larger than rounding"] if faint else []
    is_zero = ends.size <= zero
    if np.any(~is_zero & (ends.size < NOT_ZERO * germ.noise) & ends.settled):
        doubts.append("a value on a sphere is hardly larger than rounding")
    left = float(np.max(ends.size[is_zero], initial=0.0))
    minima = _minima(germ, radius, u, ends)
    nodes = _distinct(germ, radius, ends.u[is_zero])
    nodes = _with_those_between(germ, radius, nodes, weights)
    pieces, halves, more = _pieces(germ, radius, nodes, weights, rng)
    gaps = _gaps(germ, radius, halves)
    return Link(pieces, halves, minima, gaps, size, left, doubts + more)


def _minima(
    germ: AbstractGerm, radius: float, u: np.ndarray, ends: _Ends
) -> list[tuple[np.ndarray, float]]:
    """Minima of |g| itself, and not of equations that were made of equal size, which are not zero:
    those of the conditions of lowest order count most, as curves that satisfy these do."""
    if germ.equations > 1:
        plain = np.eye(germ.equations)
        ends = minimise(germ, np.zeros_like(u), radius, u, plain)
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


def minimise(
    germ: AbstractGerm,
    centres: np.ndarray,
    radius: float,
    u: np.ndarray,
    weights: np.ndarray,
    small: float = _SMALL,
) -> _Ends:
    """|W g| on spheres about the centres (n, k), from u (n, k): Levenberg and Marquardt's method,
    each start by itself. It ends at values of `small` times what counts as zero."""
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
        ended = (size <= small * zero) | (np.minimum(length[:, 0], 1.0) < 1e-9)
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


def _distinct(germ: AbstractGerm, radius: float, u: np.ndarray) -> np.ndarray:
    """Zeros (n, k) on the sphere that differ: those at a distance, and those near each other with
    values between them that are not zero."""
    kept: list[np.ndarray] = []
    left = list(u)
    while left:
        first, *others = left
        kept.append(first)
        left = others
        if not others:
            break
        near = np.linalg.norm(np.stack(others) - first, axis=1) < SAME
        close = np.stack(others)[near]
        if len(close):
            repeated = are_one_zero(germ, radius, np.repeat(first[None], len(close), 0), close)
            near[np.flatnonzero(near)[~repeated]] = False
        left = [other for other, same in zip(others, near, strict=True) if not same]
    return np.stack(kept) if kept else u[:0]


def zeros_on_sphere(germ: AbstractGerm, radius: float, rng: np.random.Generator) -> np.ndarray:
    """Directions (n, k) of all that few starts by chance lead to."""
    u = directions(rng, _FEW + _FEW_MORE * germ.unknowns, germ.unknowns)
    weights = weights_at(germ, radius, rng)
    ends = minimise(germ, np.zeros_like(u), radius, u, weights)
    nodes = _distinct(germ, radius, ends.u[ends.size <= ZERO * germ.noise])
    return _with_those_between(germ, radius, nodes, weights)


def are_one_zero(germ: AbstractGerm, radius: float, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Are zeros a and b (n, k), near each other, one: is all between them zero as well?"""
    return value_between(germ, radius, a, b) <= _ONE * germ.noise


def value_between(germ: AbstractGerm, radius: float, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The largest |g| between directions a and b (n, k) on the sphere."""
    size = np.zeros(len(a))
    for part in _BETWEEN:
        between = (1 - part) * a + part * b
        between = between / np.linalg.norm(between, axis=1, keepdims=True)
        size = np.maximum(size, np.max(np.abs(germ(radius * between).value), axis=1))
    return size


def _with_those_between(
    germ: AbstractGerm, radius: float, nodes: np.ndarray, weights: np.ndarray
) -> np.ndarray:
    """Nodes, and those between two that nearly touch, to which no way leads from outside."""
    apart = np.linalg.norm(nodes[:, None] - nodes[None], axis=-1)
    a, b = np.nonzero(np.triu(apart < _NEARLY, 1))
    if not a.size or a.size > 8 * germ.unknowns:
        return nodes
    between = [(1 - part) * nodes[a] + part * nodes[b] for part in _BETWEEN]
    u = np.concatenate(between)
    u /= np.linalg.norm(u, axis=1, keepdims=True)
    ends = minimise(germ, np.zeros_like(u), radius, u, weights)
    return _distinct(germ, radius, np.concatenate([nodes, ends.u[ends.size <= ZERO * germ.noise]]))


def spread_out(nodes: np.ndarray, count: int) -> np.ndarray:
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
    nodes = spread_out(nodes, _LOOKED_AT + _LOOKED_AT_MORE * k)
    tangents = local_tangents(germ, radius, nodes, weights, rng)
    free = k - _ranks(germ, radius, nodes, weights)
    # Next to where branches meet both are seen: more directions than the derivative leaves free.
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
            spanned = tangent_of(nodes[own])
            pieces.append(Piece(dimension, spanned, False, False, radius * nodes[own], spaces))
            continue
        halves = nodes[own]
        pieces += _arcs(halves, spaces, radius)
        if len(halves) % 2:
            doubts.append("an odd number of arcs leaves the configuration")
    return pieces, halves, doubts


def local_tangents(
    germ: AbstractGerm,
    radius: float,
    nodes: np.ndarray,
    weights: np.ndarray,
    rng: np.random.Generator,
) -> list[np.ndarray]:
    """Tangent spaces (k, dimension) of branches through the nodes, from zeros about each: on
    spheres that become smaller where another branch is near."""
    k = germ.unknowns
    starts = _STARTS + _STARTS_MORE * k
    free = k - _ranks(germ, radius, nodes, weights)
    found = [np.eye(k)] * len(nodes)
    left = np.arange(len(nodes))
    for local in _LOCAL:
        u = np.concatenate([directions(rng, starts, k) for _ in left])
        centres = np.repeat(radius * nodes[left], starts, axis=0)
        ends = minimise(germ, centres, local * radius, u, weights)
        near = ends.size <= ZERO * germ.noise
        for n, own in enumerate(left):
            part = slice(n * starts, (n + 1) * starts)
            found[own] = tangent_of(ends.u[part][near[part]])
        left = np.array([n for n in left if found[n].shape[1] > free[n]], int)
        if not left.size:
            break
    return found


def _ranks(germ: AbstractGerm, radius: float, nodes: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Ranks of the derivatives at zeros."""
    sizes = np.linalg.svd(weights @ germ(radius * nodes).slope, compute_uv=False)
    return np.sum(sizes > _MULTIPLE * np.max(sizes), axis=1)


def tangent_of(u: np.ndarray) -> np.ndarray:
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


def weights_at(germ: AbstractGerm, radius: float, rng: np.random.Generator) -> np.ndarray:
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


# --------------------------------------------------------------------------------------------------
# Branches of dimension two or more: which zeros on a small sphere belong together.
#
# Two zeros belong to one branch if a walk along the zeros of the sphere leads from one to the
# other: in small steps along the tangent space where it is, back to the nearest zero after each.
# Surfaces that touch at the configuration alone, or that cross, are so told apart, as the walk
# stays on one of them. Opposite parts of a cone are one branch (an irreducible set: x^2 + y^2 =
# z^2). A branch has a tangent space if its zeros near the configuration come, the nearer the more,
# to lie in a plane.
# --------------------------------------------------------------------------------------------------


# Steps of a walk: the largest, one that is not made smaller, and how many at most.
_STEP, _LEAST_STEP, _MOST_STEPS = 0.05, 0.003, 150

# A walk has come to another branch if the tangent space turns in a step by so many times what it
# turned in the steps before (in the first one: by that rate), and not by nearly nothing.
_SUDDEN, _FIRST_RATE, _NO_TURN = 5.0, 1.0, 1e-3

# Derivatives are evaluated at places that are displaced by so much of the radius: on a multiple
# zero itself they vanish.
_DISPLACED = 1e-4

# A walk ends where so much of what is left of its way is along the branch.
_ASIDE = 0.02

# One that ends so near its end, and not there, has found another branch next to it.
_NEXT_TO = 0.2

# Each zero is joined to so many others near it, then groups by so many walks between each two.
_NEIGHBOURS, _BETWEEN_ZEROS = 2, 4

# Branches are flat if zeros in all directions of a space lie in it to this, so many times nearer to
# 0, and much more nearly still nearer.
_FLAT, _NEARER, _INWARD = 0.05, 16.0, 64.0

# One sheet: its tangent spaces are as near to each other, so many planes across cut it, points with
# so much of their direction along it count, and the cosine of the two of them is as near to -1.
_AGREE, _SLICES, _BESIDE, _OPPOSITE = 0.3, 4, 0.7, 0.9


class Surfaces(NamedTuple):
    """Branches of a dimension of two or more, what is not sure about their number, and the largest
    value between each two that touch."""

    pieces: list[Piece]
    doubts: list[str]
    gaps: list[float]

    def signature(self) -> tuple[tuple[int, bool], ...]:
        return tuple(sorted((p.dimension, p.is_cone) for p in self.pieces))


def surfaces(germ: AbstractGerm, found: Piece, radius: float, rng: np.random.Generator) -> Surfaces:
    """The branches to which the zeros (all of one dimension) on a sphere belong."""
    sheet = _one_sheet(germ, found, radius, rng)
    if sheet is not None:
        return Surfaces([found._replace(tangent=sheet)], [], [])
    nodes, weights = found.points / radius, weights_at(germ, radius, rng)
    labels, contradicted = _joined(germ, nodes, found.dimension, radius, weights, rng)
    groups = [np.flatnonzero(labels == label) for label in np.unique(labels)]
    pieces, others, doubts = [], [], []
    if contradicted:
        doubts.append(f"branches of dimension {found.dimension} that touch may be counted as one")
    for own in groups:
        tangent = _flat_space(germ, nodes[own], found.dimension, radius, rng)
        if tangent is None:
            others.append(own)
            continue
        points, spaces = found.points[own], found.tangents[own]
        pieces.append(Piece(found.dimension, tangent, False, False, points, spaces))
    if others and len(weights_at(germ, radius / _INWARD, rng)) < len(weights):
        doubts.append(
            f"next to the configuration, where branches of dimension {found.dimension} would be "
            "told from cones, values are no larger than rounding"
        )
    # A few that nothing joins to the others lie where branches meet.
    large = [own for own in others if len(own) > found.dimension]
    if not pieces and not large:
        large = [np.concatenate(others)]
        doubts.append(f"branches of dimension {found.dimension} were not told apart")
    for own in _with_opposite(germ, nodes, large, found.dimension, radius, weights, rng):
        spanned = tangent_of(nodes[own])
        points, spaces = found.points[own], found.tangents[own]
        pieces.append(Piece(found.dimension, spanned, False, True, points, spaces))
    gaps = _gaps_between(germ, pieces, radius, weights, rng)
    return Surfaces(pieces, doubts, gaps)


def _one_sheet(
    germ: AbstractGerm, found: Piece, radius: float, rng: np.random.Generator
) -> np.ndarray | None:
    """The tangent space (k, dimension) if all zeros are for sure one sheet, without walks: tangent
    spaces agree, and planes of one direction of it and all that is across cut it in one curve, of
    which two points, opposite to each other, are on the sphere. Sheets that touch, cross or end at
    0 leave more or fewer there."""
    common = _mean_of(found.tangents)
    across = found.tangents - common @ (common.T @ found.tangents)
    if np.max(np.linalg.norm(across, ord=2, axis=(1, 2))) > _AGREE:
        return None
    normal = np.linalg.svd(common.T)[2][found.dimension :].T
    for along in directions(rng, _SLICES, found.dimension):
        basis = np.concatenate([(common @ along)[:, None], normal], axis=1)
        zeros = zeros_on_sphere(Restricted(germ, basis), radius, rng)
        # (What leads away from it is another branch, of another dimension.)
        near = zeros[np.abs(zeros[:, 0]) > _BESIDE]
        if len(near) != 2 or near[0] @ near[1] > -_OPPOSITE:
            return None
    return common


def _gaps_between(
    germ: AbstractGerm,
    pieces: list[Piece],
    radius: float,
    weights: np.ndarray,
    rng: np.random.Generator,
) -> list[float]:
    found = []
    flat = [piece for piece in pieces if not piece.is_cone]
    for k, one in enumerate(flat):
        for other in flat[:k]:
            between = one.tangent @ one.tangent.T - other.tangent @ other.tangent.T
            if np.linalg.norm(between, ord=2) > 2 * _FLAT:
                continue
            # From each point of one to the nearest of the other.
            b, a = one.points / radius, other.points / radius
            nearest = np.argmin(np.linalg.norm(b[:, None] - a[None], axis=-1), axis=1)
            ends = _walk(germ, a[nearest], b, one.dimension, radius, weights, rng)
            found.append(float(np.max(value_between(germ, radius, ends, b))))
    return sorted(found)


def _joined(
    germ: AbstractGerm,
    nodes: np.ndarray,
    dimension: int,
    radius: float,
    weights: np.ndarray,
    rng: np.random.Generator,
) -> tuple[np.ndarray, bool]:
    """A label for each node; those with the same belong together. And whether that contradicts
    another walk."""
    labels = np.arange(len(nodes))
    strayed: list[tuple[int, int]] = []
    apart = np.linalg.norm(nodes[:, None] - nodes[None], axis=-1)

    def join(pairs: list[tuple[int, int]]) -> None:
        if not pairs:
            return
        a, b = np.array(pairs).T
        arrived, aside = _arrive(germ, nodes[a], nodes[b], dimension, radius, weights, rng)
        strayed.extend(zip(a[aside], b[aside], strict=True))
        for first, second in zip(a[arrived], b[arrived], strict=True):
            labels[labels == labels[second]] = labels[first]

    nearest = np.argsort(apart, axis=1)[:, 1 : 1 + _NEIGHBOURS]
    join(
        [(a, int(b)) for a in range(len(nodes)) for b in nearest[a] if a < b or a not in nearest[b]]
    )
    for _ in range(6):
        groups = [np.flatnonzero(labels == label) for label in np.unique(labels)]
        pairs: list[tuple[int, int]] = []
        for k, own in enumerate(groups):
            for other in groups[:k]:
                between = apart[np.ix_(own, other)]
                order = np.argsort(between, axis=None)[:_BETWEEN_ZEROS]
                at, to = np.unravel_index(order, between.shape)
                pairs += [(int(own[i]), int(other[j])) for i, j in zip(at, to, strict=True)]
        if not pairs:
            break
        join(pairs)
        if len(np.unique(labels)) == len(groups):
            break
    return labels, any(labels[a] == labels[b] for a, b in strayed)


def _arrive(
    germ: AbstractGerm,
    a: np.ndarray,
    b: np.ndarray,
    dimension: int,
    radius: float,
    weights: np.ndarray,
    rng: np.random.Generator,
) -> tuple[np.ndarray, np.ndarray]:
    """Do walks from the a (n, k) arrive at the b, and those back at the a? Which of them do not,
    and end next to b, on another branch?"""
    there = _walk(germ, a, b, dimension, radius, weights, rng)
    arrived = _is_same(germ, radius, there, b)
    apart = np.linalg.norm(there - b, axis=1)
    remaining = np.linalg.norm(
        _toward(there, b, _tangents(germ, there, dimension, radius, weights, rng)), axis=1
    )
    aside = ~arrived & (apart < _NEXT_TO) & (remaining < 2 * _ASIDE * apart)
    if np.any(arrived):
        # A walk that strayed onto another branch where both cross does not do so both ways.
        back = _walk(germ, b[arrived], a[arrived], dimension, radius, weights, rng)
        arrived[arrived] = _is_same(germ, radius, back, a[arrived])
    return arrived, aside


def _is_same(germ: AbstractGerm, radius: float, u: np.ndarray, b: np.ndarray) -> np.ndarray:
    same = np.linalg.norm(u - b, axis=1) < SAME
    if np.any(same):
        same[same] = are_one_zero(germ, radius, u[same], b[same])
    return same


def _walk(
    germ: AbstractGerm,
    a: np.ndarray,
    b: np.ndarray,
    dimension: int,
    radius: float,
    weights: np.ndarray,
    rng: np.random.Generator,
) -> np.ndarray:
    """End points of walks from the a (n, k) to the b, each as straight as the set allows."""
    u, going = a.copy(), np.ones(len(a), bool)
    most, rate = np.full(len(a), _STEP), np.full(len(a), _FIRST_RATE)
    tangents = _tangents(germ, u, dimension, radius, weights, rng)
    for _ in range(_MOST_STEPS):
        length = np.zeros(len(a))
        along = np.zeros_like(u)
        along[going] = _toward(u[going], b[going], tangents[going])
        length = np.linalg.norm(along, axis=1)
        # It has arrived, or goes no nearer: b is on another branch.
        going &= length > np.maximum(1e-9, _ASIDE * np.linalg.norm(b - u, axis=1))
        at = np.flatnonzero(going)
        if not at.size:
            break
        # (By chance, so that another attempt does not stray at the same place.)
        step = np.minimum(most[at] * rng.uniform(0.6, 1.0, at.size), length[at])
        trial = u[at] + along[at] * (step / length[at])[:, None]
        trial /= np.linalg.norm(trial, axis=1, keepdims=True)
        ends = minimise(germ, np.zeros_like(trial), radius, trial, weights, small=0.5)
        new = _tangents(germ, ends.u, dimension, radius, weights, rng)
        overlap = np.einsum("nki,nkj->nij", tangents[at], new)
        cosine = np.linalg.svd(overlap, compute_uv=False)[:, -1]
        turned = np.sqrt(np.maximum(0.0, 1 - cosine**2))
        corrected = np.linalg.norm(ends.u - trial, axis=1)
        lost = (ends.size > ZERO * germ.noise) | (corrected > 0.5 * step + 1e-6)
        lost |= turned > np.maximum(_SUDDEN * rate[at] * step, _NO_TURN)
        # Once more with a smaller step: a bend becomes less, a corner does not.
        going[at[lost & (step < _LEAST_STEP)]] = False
        most[at] = np.where(lost, step / 4, np.minimum(2 * most[at], _STEP))
        fresh = (turned / np.maximum(step, 1e-6))[~lost]
        at = at[~lost]
        u[at], tangents[at] = ends.u[~lost], new[~lost]
        rate[at] = np.where(rate[at] == _FIRST_RATE, fresh, np.maximum(rate[at], fresh))
    return u


def _toward(u: np.ndarray, b: np.ndarray, tangents: np.ndarray) -> np.ndarray:
    """From u to b (n, k), in the tangent space of the branch and in that of the sphere."""
    outward = np.einsum("nki,nk->ni", tangents, u)
    part = np.einsum("nki,nk->ni", tangents, b - u)
    share = np.sum(part * outward, axis=1) / np.maximum(np.sum(outward**2, axis=1), 1e-12)
    return np.einsum("nki,ni->nk", tangents, part - share[:, None] * outward)


def _tangents(
    germ: AbstractGerm,
    u: np.ndarray,
    dimension: int,
    radius: float,
    weights: np.ndarray,
    rng: np.random.Generator,
) -> np.ndarray:
    """Tangent spaces (n, k, dimension) of zeros, from derivatives next to them."""
    slopes = [
        weights @ germ(radius * (u + _DISPLACED * directions(rng, len(u), u.shape[1]))).slope
        for _ in range(2)
    ]
    _, _, right = np.linalg.svd(np.concatenate(slopes, axis=1))
    return np.swapaxes(right[:, u.shape[1] - dimension :], 1, 2)


def _flat_space(
    germ: AbstractGerm,
    nodes: np.ndarray,
    dimension: int,
    radius: float,
    rng: np.random.Generator,
) -> np.ndarray | None:
    """The tangent space (k, dimension) at 0 of the branch of these nodes; None if it has none."""
    if len(nodes) < dimension:
        return None
    u, errors, tangent = spread_out(nodes, 3 * dimension), [], None
    inward = radius
    for factor in (4.0, 4.0, 4.0):
        inward /= factor
        weights = weights_at(germ, inward, rng)
        ends = minimise(germ, np.zeros_like(u), inward, u, weights)
        if np.any(ends.size > ZERO * germ.noise):
            return None
        u = ends.u
        if inward > radius / _NEARER:
            continue
        spaces = _tangents(germ, u, dimension, inward, weights, rng)
        tangent = _mean_of(spaces)
        wanted = directions(rng, 4 * dimension, dimension) @ tangent.T
        # (Between two branches that touch here values are as large as anywhere near.)
        aside = 0.1 * _FLAT * directions(rng, *wanted.shape)
        start = np.concatenate([wanted + aside, wanted - aside])
        start /= np.linalg.norm(start, axis=1, keepdims=True)
        back = minimise(germ, np.zeros_like(start), inward, start, weights)
        apart = np.linalg.norm(back.u - np.concatenate([wanted, wanted]), axis=1)
        off = np.linalg.norm(back.u - back.u @ tangent @ tangent.T, axis=1)
        off[(back.size > ZERO * germ.noise) | (apart > 2 * _FLAT)] = np.inf
        errors.append(float(np.max(np.minimum(*np.split(off, 2)))))
    is_flat = errors[0] < _FLAT and errors[1] < max(0.6 * errors[0], 0.1 * _FLAT)
    return tangent if is_flat else None


def _mean_of(spaces: np.ndarray) -> np.ndarray:
    """The space (k, dimension) nearest to spaces (n, k, dimension)."""
    _, vectors = np.linalg.eigh(np.mean(spaces @ np.swapaxes(spaces, 1, 2), axis=0))
    return vectors[:, ::-1][:, : spaces.shape[2]]


def _with_opposite(
    germ: AbstractGerm,
    nodes: np.ndarray,
    groups: list[np.ndarray],
    dimension: int,
    radius: float,
    weights: np.ndarray,
    rng: np.random.Generator,
) -> list[np.ndarray]:
    """Groups with those that lie opposite to them."""
    left, found = [list(own) for own in groups], []
    while left:
        own = left.pop(0)
        across = minimise(germ, np.zeros_like(nodes[own]), radius, -nodes[own], weights)
        is_zero = across.size <= ZERO * germ.noise
        for other in list(left):
            to = nodes[other]
            apart = np.linalg.norm(across.u[is_zero][:, None] - to[None], axis=-1)
            if not apart.size:
                continue
            order = np.argsort(apart, axis=None)[:_BETWEEN_ZEROS]
            at, at_other = np.unravel_index(order, apart.shape)
            start = across.u[is_zero][at]
            if np.any(_arrive(germ, start, to[at_other], dimension, radius, weights, rng)[0]):
                own += other
                left.remove(other)
        found.append(np.array(own))
    return found
