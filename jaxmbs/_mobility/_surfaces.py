"""Branches of dimension two or more: which zeros on a small sphere belong together.

Two zeros belong to one branch if a walk along the zeros of the sphere leads from one to the other:
in small steps along the tangent space where it is, back to the nearest zero after each. Surfaces
that touch at the configuration alone, or that cross, are so told apart, as the walk stays on one of
them. Opposite parts of a cone are one branch (an irreducible set: x^2 + y^2 = z^2). A branch has a
tangent space if its zeros near the configuration come, the nearer the more, to lie in a plane.
"""

from typing import NamedTuple

import numpy as np

from ._germ import AbstractGerm, Restricted
from ._spheres import (
    are_one_zero,
    directions,
    minimise,
    Piece,
    SAME,
    spread_out,
    tangent_of,
    value_between,
    weights_at,
    ZERO,
    zeros_on_sphere,
)


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
_NEIGHBOURS, _BETWEEN = 2, 4

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
    gaps = _gaps(germ, pieces, radius, weights, rng)
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


def _gaps(
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
                order = np.argsort(between, axis=None)[:_BETWEEN]
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
            order = np.argsort(apart, axis=None)[:_BETWEEN]
            at, at_other = np.unravel_index(order, apart.shape)
            start = across.u[is_zero][at]
            if np.any(_arrive(germ, start, to[at_other], dimension, radius, weights, rng)[0]):
                own += other
                left.remove(other)
        found.append(np.array(own))
    return found
