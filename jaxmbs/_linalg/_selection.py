"""Positions of the blocks of a selected inverse, from an elimination."""

import functools
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Int

from ._multifrontal import Elimination, Level


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
