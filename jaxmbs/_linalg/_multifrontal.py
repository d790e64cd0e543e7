"""Sparse symmetric systems over a static tree of fronts: elimination order, factor, solves, and
entries of the inverse.
"""

import functools
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float, Int

from .._custom_types import Indices, IntScalar
from ._arrays import apart, gather, kept, rows_at, sum_along, sum_of_products, sum_of_terms


# --------------------------------------------------------------------------------------------------
# The order in which a sparse symmetric matrix is eliminated, decided once from its graph.
#
# Multifrontal method (Liu, SIAM Review 34, 1992): nested dissection splits the graph by small
# separators, which are eliminated last; each leaf and each separator becomes a *front*, a dense
# matrix over the vertices that it eliminates (its own) and the later ones that they couple to,
# from the start or by fill (its boundary). What is left on the boundary is added to the parent, the
# front that owns the first boundary vertex.
# --------------------------------------------------------------------------------------------------


Graph = Mapping[int, frozenset[int]]


class Front(NamedTuple):
    """Vertices that are eliminated together, the later ones they couple to (both in the order of
    elimination), the fronts whose updates are added, and the height above the leaves."""

    own: tuple[int, ...]
    boundary: tuple[int, ...]
    children: tuple[int, ...]
    height: int


def fronts(graph: Graph, sizes: Sequence[int], *, leaf: int, root: int) -> tuple[Front, ...]:
    """Fronts in the order of elimination, children before parents.

    **Arguments:** `graph`: neighbours of each vertex; `sizes`: scalar unknowns of each vertex;
    `leaf`: a connected part with at most this many unknowns is not split any further; `root`:
    the last fronts are merged into one of at most this many unknowns.
    """
    parts: list[tuple[int, ...]] = []
    for component in _components(graph, frozenset(graph)):
        _dissect(graph, sizes, component, leaf, parts)
    found = _with_heights(_merged(_eliminated(graph, parts)))
    return _with_heights(_with_wide_roots(found, sizes, root))


def _components(graph: Graph, vertices: frozenset[int]) -> list[frozenset[int]]:
    left = set(vertices)
    found = []
    while left:
        component = {u for level in _levels(graph, vertices, min(left)) for u in level}
        found.append(frozenset(component))
        left -= component
    return found


def _levels(graph: Graph, vertices: frozenset[int], start: int) -> list[list[int]]:
    """Vertices by their distance from the start."""
    levels, seen = [[start]], {start}
    while True:
        reached = {u for v in levels[-1] for u in graph[v] if u in vertices} - seen
        if not reached:
            return levels
        seen |= reached
        levels.append(sorted(reached))


def _dissect(
    graph: Graph,
    sizes: Sequence[int],
    component: frozenset[int],
    leaf: int,
    parts: list[tuple[int, ...]],
) -> None:
    """Append the parts of a connected component, separators after the parts that they separate."""
    levels = _levels(graph, component, min(component))
    # From the farthest vertex the levels are many and thin.
    levels = _levels(graph, component, levels[-1][0])
    total = sum(sizes[v] for v in component)
    if total <= leaf or len(levels) < 3:
        parts.append(tuple(sorted(component)))
        return
    weights = [sum(sizes[v] for v in level) for level in levels]
    before = 0
    best, cost = 1, float("inf")
    for k, weight in enumerate(weights):
        after = total - before - weight
        if 0 < k < len(levels) - 1:
            # A separator costs the cube of its size, an unbalanced split another level.
            imbalance = abs(after - before) / total
            if weight * (1 + 2 * imbalance) < cost:
                best, cost = k, weight * (1 + 2 * imbalance)
        before += weight
    # Only what touches the far side separates.
    far = {v for level in levels[best + 1 :] for v in level}
    separator = frozenset(v for v in levels[best] if graph[v] & far)
    for part in _components(graph, component - separator):
        _dissect(graph, sizes, part, leaf, parts)
    parts.append(tuple(sorted(separator)))


def _eliminated(graph: Graph, parts: Sequence[tuple[int, ...]]) -> list[Front]:
    """Boundaries and children by symbolic elimination."""
    owner = {v: k for k, part in enumerate(parts) for v in part}
    place = {v: i for i, v in enumerate(v for part in parts for v in part)}
    children: list[list[int]] = [[] for _ in parts]
    result: list[Front] = []
    for k, part in enumerate(parts):
        coupled = {u for v in part for u in graph[v]}
        for child in children[k]:
            coupled |= set(result[child].boundary)
        boundary = sorted((u for u in coupled if owner[u] > k), key=place.__getitem__)
        if boundary:
            children[owner[boundary[0]]].append(k)
        result.append(Front(part, tuple(boundary), tuple(children[k]), 0))
    return result


def _merged(found: list[Front]) -> list[Front]:
    """The fronts without those that their only-child parents absorb at no cost."""
    own = [front.own for front in found]
    children = [front.children for front in found]
    gone: set[int] = set()
    for k, front in enumerate(found):
        if len(children[k]) != 1:
            continue
        (child,) = children[k]
        if set(found[child].boundary) == {*front.own, *front.boundary}:
            own[k] = own[child] + own[k]
            children[k] = children[child]
            gone.add(child)
    return _without(found, own, children, gone)


def _with_wide_roots(found: Sequence[Front], sizes: Sequence[int], limit: int) -> list[Front]:
    """The tree with the tallest children of each root merged into the root, repeatedly: the last
    levels hold few small fronts, and a level costs more than the zeros that merging fills in."""
    own = [front.own for front in found]
    children = [front.children for front in found]
    gone: set[int] = set()
    for k, front in enumerate(found):
        if front.boundary:
            continue
        while children[k]:
            height = max(found[c].height for c in children[k])
            tall = [c for c in children[k] if found[c].height == height]
            merged = tuple(v for c in tall for v in found[c].own) + own[k]
            if sum(sizes[v] for v in merged) > limit:
                break
            own[k] = merged
            lower = tuple(c for c in children[k] if c not in tall)
            children[k] = lower + tuple(g for c in tall for g in found[c].children)
            gone |= set(tall)
    return _without(found, own, children, gone)


def _without(
    found: Sequence[Front],
    own: Sequence[tuple[int, ...]],
    children: Sequence[tuple[int, ...]],
    gone: set[int],
) -> list[Front]:
    """The fronts that are left, with these own vertices and children."""
    number = {k: i for i, k in enumerate(k for k in range(len(found)) if k not in gone)}
    return [
        Front(own[k], found[k].boundary, tuple(number[c] for c in children[k]), 0) for k in number
    ]


def _with_heights(found: list[Front]) -> tuple[Front, ...]:
    heights: list[int] = []
    for front in found:
        heights.append(1 + max((heights[c] for c in front.children), default=-1))
    return tuple(f._replace(height=h) for f, h in zip(found, heights, strict=True))


# --------------------------------------------------------------------------------------------------
# Factor and solve sparse symmetric systems over a static tree of fronts.
#
# Fronts of one height are factored together, padded to one size, with the fronts as the last axis,
# so that the arithmetic runs along it. Padded pivots have diagonal 1, padding is gathered from a
# zero. Everything is static gathers and batched arithmetic: it jits, batches and runs on any
# device in O(log N) levels for chains and trees. The factor is L D L^T, so that quasi-definite
# matrices are served as well as positive definite ones (Vanderbei 1995, SIAM J. Optim. 5).
# --------------------------------------------------------------------------------------------------


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


# --------------------------------------------------------------------------------------------------
# Positions of the blocks of a selected inverse, from an elimination.
# --------------------------------------------------------------------------------------------------


# The source of entries of the matrix itself.
MATRIX = -1


class Plane(NamedTuple):
    """Entries of `source` (the number of a group, or `MATRIX`) at `places` (a, b, n), where they
    are `present`; they begin at row and column `start`."""

    source: int
    start: int
    places: Int[np.ndarray, "a b n"]
    present: Bool[np.ndarray, "a b n"]


class Group(NamedTuple):
    """Fronts of one height and one size: `own` and `boundary` unknowns each.

    A `front` is the sum of entries of the matrix and of its children's updates; the inverse on
    its boundary stands `above`, and the blocks that are `wanted` in its own inverse.
    """

    own: int
    boundary: int
    front: tuple[Plane, ...]
    above: tuple[Plane, ...]
    wanted: Plane


class Selection(NamedTuple):
    """Diagonal blocks of an inverse, at most `width` unknowns each, and how they are found.
    `order`: of the requested blocks, among those that the groups find from the last to the
    first."""

    groups: tuple[Group, ...]
    width: int
    order: Int[np.ndarray, " blocks"]


class _Front(NamedTuple):
    """The level of a front, its place there, and its unknowns without padding."""

    level: int
    lane: int
    own: tuple[int, ...]
    boundary: tuple[int, ...]


@functools.lru_cache(maxsize=128)
def select(elimination: Elimination, blocks: tuple[tuple[int, ...], ...]) -> Selection:
    """The diagonal blocks of the inverse on these sets of unknowns, in the order of the sets and
    zero where a set has fewer unknowns than the largest. Made once for each.

    **Raises:** `ValueError` for a set with two unknowns that are not coupled in the factor.
    """
    return _Positions(elimination).selection(blocks)


class _Positions:
    """Groups of fronts, and the positions of each front's entries among those of its group."""

    def __init__(self, elimination: Elimination):
        self._levels = elimination.levels
        fronts = _fronts(elimination)
        sizes: dict[tuple[int, int, int], list[_Front]] = {}
        for front in fronts:
            key = (front.level, len(front.own), len(front.boundary))
            sizes.setdefault(key, []).append(front)
        self._groups = [sizes[key] for key in sorted(sizes)]
        self._number = {
            f: (g, n) for g, some in enumerate(self._groups) for n, f in enumerate(some)
        }
        self._owner = {i: front for front in fronts for i in front.own}
        self._children: dict[_Front, list[_Front]] = {front: [] for front in fronts}
        for front in fronts:
            if front.boundary:
                self._children[self._first(front.boundary)].append(front)

    def selection(self, blocks: Sequence[tuple[int, ...]]) -> Selection:
        width = max((len(block) for block in blocks), default=0)
        found: list[list[int]] = [[] for _ in self._groups]
        for k, block in enumerate(blocks):
            found[self._number[self._first(block)][0]].append(k)
        groups = []
        for members, own_blocks in zip(self._groups, found, strict=True):
            first = members[0]
            groups.append(
                Group(
                    own=len(first.own),
                    boundary=len(first.boundary),
                    front=(
                        *_entries(self._levels[first.level], members),
                        *self._updates(members),
                    ),
                    above=self._above(members),
                    wanted=self._wanted([blocks[k] for k in own_blocks], width),
                )
            )
        order = np.argsort(np.array([k for some in reversed(found) for k in some], dtype=int))
        return Selection(tuple(groups), width, order)

    def _first(self, unknowns: Sequence[int]) -> _Front:
        """The front in which the first of some coupled unknowns is eliminated: it holds the
        others. Levels grow on the way to the root."""
        front = min((self._owner[i] for i in unknowns), key=lambda f: f.level)
        if not {*unknowns} <= {*front.own, *front.boundary}:
            raise ValueError(
                f"unknowns {tuple(unknowns)} are not all coupled; only blocks on the pattern of "
                "the factor are found, such as those of constraints that share a moving body."
            )
        return front

    def _updates(self, members: Sequence[_Front]) -> tuple[Plane, ...]:
        """Update matrices of the fronts' children, added to the fronts: one plane for the first
        child of each from one group, one for the second, and so on."""
        planes: dict[tuple[int, int], list[tuple[int, _Front]]] = {}
        for lane, front in enumerate(members):
            count: dict[int, int] = {}
            for child in self._children[front]:
                source, _ = self._number[child]
                nth = count[source] = count.get(source, -1) + 1
                planes.setdefault((source, nth), []).append((lane, child))
        return tuple(
            self._update(members, source, children) for (source, _), children in planes.items()
        )

    def _update(
        self, members: Sequence[_Front], source: int, children: Sequence[tuple[int, _Front]]
    ) -> Plane:
        where = [_local(members[lane], child.boundary) for lane, child in children]
        start, end = min(w.min() for w in where), max(w.max() for w in where) + 1
        shape = (end - start, end - start, len(members))
        places, present = np.zeros(shape, dtype=np.int32), np.zeros(shape, dtype=bool)
        stride = len(self._groups[source])
        for (lane, child), own in zip(children, where, strict=True):
            count = len(own)
            entries = np.arange(count * count).reshape(count, count) * stride
            rows, columns = own[:, None] - start, own[None, :] - start
            places[rows, columns, lane] = entries + self._number[child][1]
            present[rows, columns, lane] = True
        return Plane(source, int(start), places, present)

    def _above(self, members: Sequence[_Front]) -> tuple[Plane, ...]:
        size = len(members[0].boundary)
        if not size:
            # Without entries; it has the number of fronts.
            places = np.zeros((0, 0, len(members)), dtype=np.int32)
            return (Plane(MATRIX, 0, places, places > 0),)
        parents = [self._first(front.boundary) for front in members]
        planes = []
        for source in sorted({self._number[parent][0] for parent in parents}):
            places = np.zeros((size, size, len(members)), dtype=np.int32)
            present = np.zeros(places.shape, dtype=bool)
            for lane, (front, parent) in enumerate(zip(members, parents, strict=True)):
                if self._number[parent][0] == source:
                    places[:, :, lane] = self._inverse(parent, front.boundary)
                    present[:, :, lane] = True
            planes.append(Plane(source, 0, places, present))
        return tuple(planes)

    def _wanted(self, blocks: Sequence[tuple[int, ...]], width: int) -> Plane:
        places = np.zeros((width, width, len(blocks)), dtype=np.int32)
        present = np.zeros(places.shape, dtype=bool)
        for k, block in enumerate(blocks):
            size = len(block)
            places[:size, :size, k] = self._inverse(self._first(block), block)
            present[:size, :size, k] = True
        return Plane(0, 0, places, present)

    def _inverse(self, front: _Front, unknowns: Sequence[int]) -> Int[np.ndarray, "r r"]:
        """Positions of the inverse on unknowns of a front."""
        group, lane = self._number[front]
        where = _local(front, unknowns)
        size = len(front.own) + len(front.boundary)
        return (where[:, None] * size + where[None, :]) * len(self._groups[group]) + lane


def _local(front: _Front, unknowns: Sequence[int]) -> Int[np.ndarray, " r"]:
    """The places of unknowns among those of a front."""
    place = {i: a for a, i in enumerate(front.own + front.boundary)}
    return np.array([place[i] for i in unknowns])


def _fronts(elimination: Elimination) -> list[_Front]:
    """The fronts, leaves first."""
    unknown = {int(place): i for i, place in enumerate(elimination.indices["solution"])}
    fronts = []
    for number, level in enumerate(elimination.levels):
        right, later = level.indices["right"], level.indices["later"]
        for lane in range(right.shape[1]):
            own = tuple(int(i) - 1 for i in right[:, lane] if i > 0)
            boundary = tuple(unknown[int(i)] for i in later[:, lane] if i > 0)
            fronts.append(_Front(number, lane, own, boundary))
    return fronts


def _entries(level: Level, members: Sequence[_Front]) -> tuple[Plane, ...]:
    """The rows of the matrix that fronts of one level own."""
    own, boundary = len(members[0].own), len(members[0].boundary)
    columns = [*range(own), *range(level.own, level.own + boundary)]
    lanes = [front.lane for front in members]
    # The pool that these positions refer to starts with a zero and a one.
    places = level.indices["entries"][:, :own][:, :, columns][..., lanes] - 2
    return tuple(
        Plane(MATRIX, 0, np.maximum(some, 0), some >= 0) for some in places if np.any(some >= 0)
    )


# --------------------------------------------------------------------------------------------------
# Entries of an inverse on the pattern of its factor, from the roots of the tree to its leaves.
#
# Eliminating the own unknowns o of a front with boundary b leaves A = L D L^T. With
# G = L_bo L_oo^-1 the inverse Z of the whole matrix satisfies
#
#     Z_bo = -Z_bb G        Z_oo = L_oo^-T D^-1 L_oo^-1 - G^T Z_bo
#
# (Takahashi's recurrence: Erisman & Tinney 1975, Comm. ACM 18, eqs. 5-7, here in blocks), and Z_bb
# is known by then, since the whole boundary is in the parent's front. So all entries of Z on the
# pattern of the factor cost about as much as the factor, and no other one is ever formed.
#
# They are wanted at many states at once. Everything here has the states behind the fronts as its
# last axis, and fronts are grouped by size instead of padded: then the arithmetic runs along
# fronts and states together and does nothing in vain. Where blocks stand is laid out in
# `_selection`; what is computed once and read often is kept `apart` (`_states_last`).
# --------------------------------------------------------------------------------------------------


# Unknowns that are eliminated in one step. Measured for fronts of 10 and 12: with 3 or 4 there are
# more operations to start, with 12 a triangle's zeros are multiplied.
_PANEL = 6

# Sums of at most this many products are written out, and looped over beyond. Summed by
# `jnp.sum` along the first axis they were measured to take up to 20 times as long (jaxlib
# 0.10, CPU).
_WRITTEN_OUT = 16


class Panel(NamedTuple):
    """A few own unknowns of n fronts: the inverse of their unit lower triangle, the reciprocals
    of their pivots, and the transpose of G (above)."""

    inverse: Float[Array, "own own n states"]
    reciprocals: Float[Array, "own n states"]
    gain: Float[Array, "later own n states"]


def selected_inverse(
    selection: Selection, values: Float[Array, "values states"]
) -> list[Float[Array, "r r _ states"]]:
    """The wanted blocks of the inverse, for the matrix with these values at each state; those of
    each group apart (`in_order` puts them together)."""
    factors: list[list[Panel]] = []
    updates: dict[int, Float[Array, "entries states"]] = {}
    for k, group in enumerate(selection.groups):
        front = _sum_of_planes(group.front, {MATRIX: values, **updates}, group.own + group.boundary)
        panels, rest = eliminated(front[: group.own], front[group.own :, group.own :])
        factors.append(panels)
        updates[k] = rest.reshape(-1, values.shape[1])
    inverses: dict[int, Float[Array, "entries states"]] = {MATRIX: values}
    found = []
    for k in reversed(range(len(selection.groups))):
        group = selection.groups[k]
        inverse = _sum_of_planes(group.above, inverses, group.boundary)
        for panel in reversed(factors[k]):
            inverse = _extended(panel, inverse)
        inverses[k] = inverse.reshape(-1, values.shape[1])
        found.append(_gather_plane(group.wanted, inverses[k]))
    return found


def in_order(
    selection: Selection, found: Sequence[Float[Array, "..."]], axis: int
) -> Float[Array, "..."]:
    """Results for the blocks of each group, along that axis in the order in which the blocks were
    requested."""
    return jnp.take(jnp.concatenate(found, axis=axis), selection.order, axis=axis, mode="clip")


def _gather_plane(
    plane: Plane, source: Float[Array, "entries states"]
) -> Float[Array, "a b n states"]:
    if np.array_equal(plane.places.ravel(), np.arange(source.shape[0])):
        return source.reshape(*plane.places.shape, source.shape[1])
    part = rows_at(source, plane.places)
    return part if np.all(plane.present) else jnp.where(plane.present[..., None], part, 0.0)


def _sum_of_planes(
    planes: Sequence[Plane], sources: Mapping[int, Float[Array, "entries states"]], size: int
) -> Float[Array, "size size n states"]:
    """The sum of the planes, each in its place in a square matrix. At least one plane, though it
    may be empty."""
    parts = []
    for plane in planes:
        part = _gather_plane(plane, sources[plane.source])
        a, b = part.shape[:2]
        around = ((plane.start, size - plane.start - a), (plane.start, size - plane.start - b))
        parts.append(jnp.pad(part, (*around, (0, 0), (0, 0))))
    return apart(sum_of_terms(parts)) if len(parts) > 1 else parts[0]


def eliminated(
    rows: Float[Array, "own s n states"], corner: Float[Array, "b b n states"]
) -> tuple[list[Panel], Float[Array, "b b n states"]]:
    """Factors of the own unknowns of symmetric matrices, given by their own rows and the corner
    beyond them, and what is left of the corner."""
    panels = []
    while rows.shape[0]:
        width = min(_PANEL, rows.shape[0])
        inverse, reciprocals = _triangle(rows[:width, :width])
        scaled = product(jnp.swapaxes(inverse, 0, 1), rows[:width, width:])
        below = scaled * reciprocals[:, None]
        panels.append(Panel(inverse, reciprocals, product(below, inverse)))
        own = rows.shape[0] - width
        rows = product(-below[:, :own], scaled, rows[width:, width:])
        corner = product(-below[:, own:], scaled[:, own:], corner)
    return panels, corner


def _triangle(
    block: Float[Array, "own own n states"],
) -> tuple[Float[Array, "own own n states"], Float[Array, "own n states"]]:
    """The inverse of the unit lower triangle L and the reciprocals of the pivots D of
    L D L^T."""
    size = block.shape[0]
    identity = jnp.eye(size, dtype=block.dtype)[:, :, None, None]
    inverse = list(jnp.broadcast_to(identity, block.shape))
    reciprocals = []
    for k in range(size):
        reciprocals.append(1 / block[0, 0])
        below = block[1:, 0] * reciprocals[k][None]
        block = block[1:, 1:] - below[:, None] * block[0, None, 1:]
        for i in range(k + 1, size):
            inverse[i] = inverse[i] - below[i - k - 1][None] * inverse[k]
    return apart(jnp.stack(inverse)), jnp.stack(reciprocals)


def _extended(panel: Panel, later: Float[Array, "b b n states"]) -> Float[Array, "s s n states"]:
    """The inverse on a front, from the inverse on the unknowns after a panel of it."""
    own = product(panel.inverse * panel.reciprocals[:, None], panel.inverse)
    if not later.shape[0]:
        return own
    cross = product(later, panel.gain)
    own = product(panel.gain, cross, own)
    above = jnp.concatenate([own, -jnp.swapaxes(cross, 0, 1)], axis=1)
    return apart(jnp.concatenate([above, jnp.concatenate([-cross, later], axis=1)]))


def product(
    left: Float[Array, "m a n states"],
    right: Float[Array, "m b n states"],
    start: Float[Array, "a b n states"] | None = None,
) -> Float[Array, "a b n states"]:
    """start + left^T right for n matrices."""

    def add(k, total):
        first = lax.dynamic_index_in_dim(left, k, keepdims=False)
        second = lax.dynamic_index_in_dim(right, k, keepdims=False)
        return total + first[:, None] * second[None]

    count = left.shape[0]
    if count <= _WRITTEN_OUT:
        terms = [left[k][:, None] * right[k][None] for k in range(count)]
        return apart(sum_of_terms(terms if start is None else [start, *terms]))
    shape = (left.shape[1], *right.shape[1:])
    return lax.fori_loop(0, count, add, jnp.zeros(shape, left.dtype) if start is None else start)
