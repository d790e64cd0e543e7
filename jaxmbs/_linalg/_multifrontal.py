"""Factor and solve sparse symmetric systems over a static tree of fronts.

Fronts of one height are factored together, padded to one size, with the fronts as the last axis,
so that the arithmetic runs along it. Padded pivots have diagonal 1, padding is gathered from a
zero. Everything is static gathers and batched arithmetic: it jits, batches and runs on any
device in O(log N) levels for chains and trees. The factor is L D L^T, so that quasi-definite
matrices are served as well as positive definite ones (Vanderbei 1995, SIAM J. Optim. 5).
"""

from collections.abc import Mapping, Sequence
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float

from .._custom_types import IntScalar
from .._indices import Indices
from ._dissection import Front, fronts, Graph
from ._gathering import gather
from ._kept import kept
from ._sums import sum_along, sum_of_products


# Pairs of columns are written out up to this many own unknowns, and looped over beyond: with 12 of
# them that takes 9 kernels in place of 21, and no more time for one state.
_UNROLLED = 8

# Parts of the graph with at most this many unknowns are not split: fewer levels for a few
# more operations.
_LEAF = 4

# The last fronts are merged into one of at most this many unknowns, for the same reason.
_ROOT = 12

Sources = Mapping[tuple[int, int], Sequence[int]]


class Level(eqx.Module):
    """Fronts of one height: `own` and `boundary` unknowns each, after padding; size s.

    Indices, the last axis over fronts: `entries` (k, own, s, n) into the pool of the matrix's
    values (a zero, a one, the values); `children` (k, s, s, n) into the pool of matrix updates;
    `right` (own, n) into the right-hand side; `updates` (k, s, n) into the pool of vector updates;
    `later` (boundary, n) into the pool of solutions. These pools start with a zero and grow by
    one level at a time.
    """

    own: int = eqx.field(static=True)
    boundary: int = eqx.field(static=True)
    indices: Indices = eqx.field(static=True)


class Elimination(eqx.Module):
    """The static order of elimination, from the leaves to the roots. Indices: `solution` (size,),
    the index of each unknown in the pool of solutions."""

    levels: tuple[Level, ...]
    indices: Indices = eqx.field(static=True)


class LevelFactor(eqx.Module):
    """Factors of each front: the inverse of the unit lower triangle of its own part, the part below
    it, and the pivots."""

    inverse: Float[Array, "own own n"]
    below: Float[Array, "boundary own n"]
    pivots: Float[Array, "own n"]


def factor(elimination: Elimination, values: Float[Array, " values"]) -> tuple[LevelFactor, ...]:
    """Factors of all levels of the symmetric matrix with these values."""
    pool = jnp.concatenate([jnp.array([0.0, 1.0], values.dtype), values])
    updates = jnp.zeros((1,), values.dtype)
    factors = []
    for level in elimination.levels:
        # Entries between boundary unknowns belong to later fronts.
        rows, corner = gathered(pool, level.indices["entries"]), None
        if level.indices["children"].size:
            change = gathered(updates, level.indices["children"])
            rows = rows + change[: level.own]
            corner = change[level.own :, level.own :]
        level_factor, update = eliminate(rows, corner)
        factors.append(level_factor)
        updates = jnp.concatenate([updates, update.ravel()])
    return tuple(factors)


def solve(
    elimination: Elimination,
    factors: tuple[LevelFactor, ...],
    right: Float[Array, " size"],
) -> Float[Array, " size"]:
    """The solution for one right-hand side."""
    zero = jnp.zeros((1,), right.dtype)
    pool = jnp.concatenate([zero, right])
    updates, forward = zero, []
    for level, part in zip(elimination.levels, factors, strict=True):
        vector = gather(pool, level.indices["right"])
        if level.indices["updates"].size:
            change = gathered(updates, level.indices["updates"])
            vector, rest = vector + change[: level.own], change[level.own :]
        else:
            rest = jnp.zeros((level.boundary, vector.shape[1]), right.dtype)
        vector = _applied(part.inverse, vector)
        if level.boundary:
            rest = rest - _applied(part.below, vector)
            updates = jnp.concatenate([updates, rest.ravel()])
        forward.append(vector / part.pivots)
    solved = zero
    for level, part, own in zip(
        reversed(elimination.levels), reversed(factors), reversed(forward), strict=True
    ):
        vector = own
        if level.boundary:
            later = gather(solved, level.indices["later"])
            vector = vector - _transposed(part.below, later)
        vector = _transposed(part.inverse, vector)
        solved = jnp.concatenate([solved, vector.ravel()])
    return gather(solved, elimination.indices["solution"])


def _applied(matrices: Float[Array, "a b n"], vectors: Float[Array, "b n"]) -> Float[Array, "a n"]:
    return sum_of_products(matrices, vectors[None], 1)


def _transposed(
    matrices: Float[Array, "b a n"], vectors: Float[Array, "b n"]
) -> Float[Array, "a n"]:
    return sum_of_products(matrices, vectors[:, None], 0)


def gathered(pool: Float[Array, " size"], indices: np.ndarray) -> Float[Array, "*shape"]:
    """The sum over the first axis of the entries at these positions.

    The gather stays apart: fused into one loop with the sum it was measured to take six times as
    long (jaxlib 0.10, CPU).
    """
    if not len(indices):
        return jnp.zeros(indices.shape[1:], pool.dtype)
    parts = kept(gather(pool, indices))
    return sum_along(parts, 0, apart=False)


def eliminate(
    rows: Float[Array, "own s n"], corner: Float[Array, "b b n"] | None
) -> tuple[LevelFactor, Float[Array, "b b n"]]:
    """Factors of the first `own` unknowns of n symmetric matrices, given by their own rows, and
    what is left of the others (`corner`, none is zero)."""
    own, size, lanes = rows.shape
    identity = jnp.broadcast_to(jnp.eye(own, dtype=rows.dtype)[:, :, None], (own, own, lanes))
    # The row operations, applied to the unit matrix, make the inverse of the triangle.
    beside = jnp.concatenate([rows, identity], axis=1)
    upper, pivots = _unrolled(beside) if own <= _UNROLLED else _looped(beside)
    outer = upper[:, own:size]
    below = outer / pivots[:, None]
    change = sum_of_products(below[:, :, None], outer[:, None], 0)
    rest = -change if corner is None else corner - change
    return LevelFactor(upper[:, size:], jnp.swapaxes(below, 0, 1), pivots), rest


def _unrolled(
    rows: Float[Array, "own width n"],
) -> tuple[Float[Array, "own width n"], Float[Array, "own n"]]:
    """D L^T and the further columns after the same row operations; the pivots D."""
    if not rows.shape[0]:
        return rows, rows[:, 0]
    done, scales = [], []
    for k in range(0, rows.shape[0] - 1, 2):
        pair, scale = _pair(rows[:2], k)
        done.append(pair)
        scales += [jnp.ones_like(scale[0]), scale[0]]
        # The matrix is symmetric: the entries right of a pivot are also those below it.
        one, two = pair[:, k + 2 : k + rows.shape[0]] * scale[:, None]
        rows = rows[2:] - one[:, None] * pair[0][None] - two[:, None] * pair[1][None]
        rows = kept(rows)
    if rows.shape[0]:
        done.append(rows)
        scales.append(jnp.ones_like(rows[0, 0]))
    return _with_pivots(jnp.concatenate(done) * jnp.stack(scales)[:, None])


def _looped(
    rows: Float[Array, "own width n"],
) -> tuple[Float[Array, "own width n"], Float[Array, "own n"]]:
    """The same by a loop over pairs of columns."""
    index = np.arange(rows.shape[0])

    def eliminate_pair(half: IntScalar, rows: Float[Array, "own width n"]) -> Any:
        k = 2 * half
        pair, scale = _pair(lax.dynamic_slice_in_dim(rows, k, 2), k)
        behind = (index > k + 1)[:, None]
        one, two = jnp.where(behind, pair[:, : len(index)] * scale[:, None], 0.0)
        rows = rows - one[:, None] * pair[0][None] - two[:, None] * pair[1][None]
        # Not by its own multiple of the first row: a small pivot would not be the one by which the
        # others were eliminated.
        return jnp.where((index == k + 1)[:, None, None], (pair[1] * scale[0][None])[None], rows)

    return _with_pivots(lax.fori_loop(0, len(index) // 2, eliminate_pair, rows))


def _pair(
    rows: Float[Array, "2 width n"], k: int | IntScalar
) -> tuple[Float[Array, "2 width n"], Float[Array, "2 n"]]:
    """Two rows whose pivots are in columns k and k + 1, the second without the first and times its
    pivot, and the scales of both where they are subtracted from others. (A small matrix costs the
    starts of its operations. What is kept apart is not computed again by each that uses it.)"""
    first, second = rows
    pivot, beside = lax.dynamic_slice_in_dim(first, k, 2)
    pair = jnp.stack([first, pivot[None] * second - beside[None] * first])
    pair = kept(pair)
    (pivot, _), (_, other) = lax.dynamic_slice_in_dim(pair, k, 2, axis=1)
    return pair, kept(1 / jnp.stack([pivot, pivot * other]))


def _with_pivots(
    rows: Float[Array, "own width n"],
) -> tuple[Float[Array, "own width n"], Float[Array, "own n"]]:
    """The rows, and the pivots from their diagonal: to read each is a kernel of its own."""
    own = rows.shape[0]
    diagonal = np.eye(own, dtype=bool)[:, :, None]
    return rows, jnp.sum(jnp.where(diagonal, rows[:, :own], 0.0), axis=1)


def plan(vertices: Sequence[Sequence[int]], graph: Graph, sources: Sources) -> Elimination:
    """The elimination of a matrix.

    **Arguments:** `vertices`: the scalar unknowns of each vertex; `graph`: which vertices are
    coupled; `sources`: for each entry (i, j) of the matrix the positions in the array of its
    values whose sum it is.
    """
    found = fronts(graph, [len(v) for v in vertices], leaf=_LEAF, root=_ROOT)
    layout = _Layout(
        found,
        [[i for v in f.own for i in vertices[v]] for f in found],
        [[i for v in f.boundary for i in vertices[v]] for f in found],
        [
            [k for k, front in enumerate(found) if front.height == height]
            for height in range(max((f.height for f in found), default=-1) + 1)
        ],
    )
    levels = tuple(layout.level(members, sources) for members in layout.groups)
    count = sum(len(v) for v in vertices)
    order = np.array([layout.solution[i] for i in range(count)], dtype=np.int32)
    return Elimination(levels, Indices(solution=order))


Positions = dict[tuple[int, ...], list[int]]


class _Layout:
    """Positions in the pools while the levels are laid out."""

    def __init__(
        self,
        found: Sequence[Front],
        own: list[list[int]],
        boundary: list[list[int]],
        groups: list[list[int]],
    ):
        self._fronts, self._own, self._boundary = found, own, boundary
        self.groups = groups
        self.solution: dict[int, int] = {}
        # First place and stride of each front's update in the two pools.
        self._matrix: dict[int, tuple[int, int, int]] = {}
        self._vector: dict[int, tuple[int, int]] = {}
        self._matrix_end = self._vector_end = 1
        end = 1
        # Solutions are found from the last level to the first.
        for members in reversed(groups):
            for lane, k in enumerate(members):
                for a, i in enumerate(own[k]):
                    self.solution[i] = end + a * len(members) + lane
            end += max(len(own[k]) for k in members) * len(members)

    def level(self, members: list[int], sources: Sources) -> Level:
        own = max(len(self._own[k]) for k in members)
        boundary = max(len(self._boundary[k]) for k in members)
        size, lanes = own + boundary, len(members)
        entries: Positions = {}
        children: Positions = {}
        updates: Positions = {}
        right = np.zeros((own, lanes), dtype=np.int32)
        later = np.zeros((boundary, lanes), dtype=np.int32)
        for lane, k in enumerate(members):
            places = {i: a for a, i in enumerate(self._own[k])}
            places |= {i: own + a for a, i in enumerate(self._boundary[k])}
            self._add_entries(k, own, lane, places, sources, entries)
            for child in self._fronts[k].children:
                self._add_child(child, lane, places, children, updates)
            right[: len(self._own[k]), lane] = np.array(self._own[k], dtype=np.int32) + 1
            later[: len(self._boundary[k]), lane] = [self.solution[i] for i in self._boundary[k]]
            self._matrix[k] = (self._matrix_end + lane, boundary, lanes)
            self._vector[k] = (self._vector_end + lane, lanes)
        self._matrix_end += boundary * boundary * lanes
        self._vector_end += boundary * lanes
        indices = Indices(
            entries=_dense(entries, (own, size, lanes)),
            children=_dense(children, (size, size, lanes)),
            right=right,
            updates=_dense(updates, (size, lanes)),
            later=later,
        )
        return Level(own, boundary, indices)

    def _add_entries(
        self,
        k: int,
        own: int,
        lane: int,
        places: dict[int, int],
        sources: Sources,
        entries: Positions,
    ) -> None:
        for a in range(len(self._own[k]), own):
            entries[a, a, lane] = [1]
        for i in self._own[k]:
            for j, b in places.items():
                many = [2 + s for s in sources.get((i, j), ())]
                if many:
                    entries[places[i], b, lane] = many

    def _add_child(
        self, child: int, lane: int, places: dict[int, int], children: Positions, updates: Positions
    ) -> None:
        start, width, stride = self._matrix[child]
        vector, step = self._vector[child]
        where = [places[i] for i in self._boundary[child]]
        for x, a in enumerate(where):
            updates.setdefault((a, lane), []).append(vector + x * step)
            for y, b in enumerate(where):
                place = start + (x * width + y) * stride
                children.setdefault((a, b, lane), []).append(place)


def _dense(places: Positions, shape: tuple[int, ...]) -> np.ndarray:
    """Lists of positions as (longest, *shape), filled up with the position of zero."""
    longest = max((len(many) for many in places.values()), default=0)
    result = np.zeros((longest, *shape), dtype=np.int32)
    for place, many in places.items():
        for k, position in enumerate(many):
            result[(k, *place)] = position
    return result
