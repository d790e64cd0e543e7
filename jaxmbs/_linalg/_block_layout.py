"""The blocks of C and M, their positions, and the elimination order of S.

Everything here is known before any number is. Blocks are kept in buckets of equal, padded size: a
body with many coordinates among small ones is padded to its own size, and they to theirs.
"""

import functools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import equinox as eqx
import numpy as np

from .._custom_types import Indices
from . import _multifrontal
from ._multifrontal import Elimination


# A body with more slots than this becomes a vertex of the graph, if it has more rows than columns:
# fewer rows are a smaller front by themselves than with the body beside them. So do bodies whose
# masses are coupled: the inverse of their M would couple all that stands on any of them.
_HUB = 8

# Blocks of at most as many rows or columns are of one size: those of rigid bodies.
_SMALL = 6

# Larger ones are of one size if the smaller has at least this part of the larger.
_ALIKE = 2 / 3


class ConstraintBlock(NamedTuple):
    """One constraint's block on one moving body: its rows, the body, the body's columns."""

    rows: tuple[int, ...]
    body: int


class Pattern(NamedTuple):
    """Everything that decides how blocks are combined; equal patterns share one `Layout`.
    `couplings`: which two bodies have a block of M between them, one for each such block."""

    slots: tuple[ConstraintBlock, ...]
    bodies: tuple[tuple[int, ...], ...]
    rows: int
    couplings: tuple[tuple[int, int], ...] = ()


class SlotBucket(NamedTuple):
    """Slots (one constraint on one moving body) whose blocks are padded to (r, c). Indices, counted
    from 1, where 0 means nothing: `row` (r, slots) into rows, `column` (c, slots) into columns;
    `body` (slots,): their places in the bucket of bodies that is number `bodies`."""

    bodies: int
    indices: Indices


class PairBucket(NamedTuple):
    """Pairs of slots of different constraints on one body: the buckets of the first and of the
    second of each, and their places there, `first` and `second` (pairs,)."""

    first: int
    second: int
    indices: Indices


class CouplingBucket(NamedTuple):
    """Blocks of M between two bodies: the buckets of the first and of the second of each, and their
    places there, `first` and `second` (n,)."""

    first: int
    second: int
    indices: Indices


class Couplings(eqx.Module):
    """M of the bodies whose masses are coupled; the unknowns are their columns.

    `elimination`: of M; its values are the blocks of the hubs, bucket by bucket, and those between
    bodies. `sets`: for each constraint on such bodies the unknowns of these. Indices: `column`
    (unknowns,) of each; `unknown` (nv,) of each column, from 1; `hub` (unknowns,) into the columns
    of all hubs; `product` (k, nv) into the products of the blocks between bodies with what stands
    at the second and at the first body of each, from 1; `entries` (r, w, sets) into the blocks of
    C of all slots, and `set_hub` (w, sets) into the columns of all hubs, from 1; `row` (rows,) into
    (r, sets), from 1.
    """

    buckets: tuple[CouplingBucket, ...] = eqx.field(static=True)
    elimination: Elimination
    sets: tuple[tuple[int, ...], ...] = eqx.field(static=True)
    indices: Indices = eqx.field(static=True)


class Layout(eqx.Module):
    """Index maps of a pattern, and the order of elimination.

    `bodies`: of each bucket of bodies `column` (c, bodies) into columns, counted from 1.
    `constraints`: of each bucket of constraints `row` (r, constraints) into rows, and `slot`
    (k, r, r, constraints) into the blocks (r, r) of all slots of ordinary bodies, both from 1.
    `hub_slots`: for each bucket of slots the places of those on hubs, `place` (n,); `hub_bodies`:
    for each bucket of bodies those of the hubs. `couplings`: of masses, if there are any.

    Indices: `row_slot` (k, rows) into the rows of all slots, from 1; `column_slot` (k, nv) into the
    columns of all slots of ordinary bodies, from 1; `column_hub` (nv,) into the columns of all
    hubs, from 1; `column_body` (nv,) into the columns of all bodies.
    """

    bodies: tuple[Indices, ...] = eqx.field(static=True)
    slots: tuple[SlotBucket, ...] = eqx.field(static=True)
    pairs: tuple[PairBucket, ...] = eqx.field(static=True)
    constraints: tuple[Indices, ...] = eqx.field(static=True)
    hub_slots: tuple[Indices, ...] = eqx.field(static=True)
    hub_bodies: tuple[Indices, ...] = eqx.field(static=True)
    indices: Indices = eqx.field(static=True)
    elimination: Elimination
    couplings: Couplings | None
    rows: int = eqx.field(static=True)
    columns: int = eqx.field(static=True)


class Sizes(NamedTuple):
    """Padded numbers of rows and columns of blocks, by their numbers, and the sizes
    of the buckets of bodies and of slots, in order."""

    rows: Mapping[int, int]
    columns: Mapping[int, int]
    bodies: tuple[int, ...]
    slots: tuple[tuple[int, int], ...]

    def bucket(self, rows: int, columns: int) -> int:
        """The bucket of slots with so many rows and columns."""
        return self.slots.index((self.rows[rows], self.columns[columns]))


def sizes_of(pattern: Pattern) -> Sizes:
    """The sizes of a pattern's buckets."""
    rows = _padded(len(slot.rows) for slot in pattern.slots)
    columns = _padded(len(own) for own in pattern.bodies)
    slots = {(rows[len(s.rows)], columns[len(pattern.bodies[s.body])]) for s in pattern.slots}
    return Sizes(rows, columns, tuple(sorted({*columns.values()})), tuple(sorted(slots)))


def _padded(sizes: Iterable[int]) -> dict[int, int]:
    """The padded size of each size."""
    found, largest = {}, 0
    for size in sorted({*sizes}, reverse=True):
        alike = (size <= _SMALL and largest <= _SMALL) or size >= _ALIKE * largest
        largest = largest if largest and alike else size
        found[size] = largest
    return found


class _Buckets:
    """Members of buckets, in order, by their keys: which bucket each is in, and its place there."""

    def __init__(self, of_members: Sequence[Any] | Mapping[int, Any], keys: Sequence[Any]):
        given = of_members if isinstance(of_members, Mapping) else dict(enumerate(of_members))
        self.keys, self._given = list(keys), given
        self.members = [[m for m, own in given.items() if own == key] for key in keys]
        self.place = {m: (b, n) for b, own in enumerate(self.members) for n, m in enumerate(own)}

    def among(self, kept: set[int]) -> "_Buckets":
        """The same buckets with those members alone."""
        return _Buckets({m: key for m, key in self._given.items() if m in kept}, self.keys)


class _Entries:
    """Positions of the entries of arrays (*shape, members), one for each bucket, in the
    concatenation of the arrays."""

    def __init__(self, buckets: _Buckets, shapes: Sequence[tuple[int, ...]], start: int = 0):
        self._buckets = buckets
        self._shapes = shapes
        counts = [
            int(np.prod(shape)) * len(own)
            for shape, own in zip(shapes, buckets.members, strict=True)
        ]
        self._starts = np.cumsum([start, *counts]).tolist()
        self.end: int = self._starts[-1]

    def of(self, member: int) -> np.ndarray:
        """The entries of a member (*shape)."""
        bucket, place = self._buckets.place[member]
        shape, count = self._shapes[bucket], len(self._buckets.members[bucket])
        return self._starts[bucket] + np.arange(int(np.prod(shape))).reshape(shape) * count + place


@functools.lru_cache(maxsize=128)
def layout_of(pattern: Pattern) -> Layout:
    """The index maps and the order of elimination of a pattern; made once for each."""
    blocks = _Blocks(pattern)
    return Layout(
        bodies=blocks.body_indices(),
        slots=blocks.slot_buckets(),
        pairs=blocks.pair_buckets(),
        constraints=blocks.constraint_indices(),
        hub_slots=tuple(Indices(place=np.array(x, np.int32)) for x in blocks.hub_slots()),
        hub_bodies=tuple(Indices(place=np.array(x, np.int32)) for x in blocks.hub_bodies()),
        indices=blocks.sums(),
        elimination=blocks.elimination(),
        couplings=blocks.couplings() if pattern.couplings else None,
        rows=pattern.rows,
        columns=sum(len(columns) for columns in pattern.bodies),
    )


class _Blocks:
    """The slots, bodies, constraints and pairs of slots of a pattern, in buckets.

    The values of the matrix to be eliminated are in this order: blocks of the constraints with
    themselves, of pairs, of slots on hubs, of hubs, of M between hubs.
    """

    def __init__(self, pattern: Pattern):
        self._pattern, self._sizes = pattern, sizes_of(pattern)
        slots, sizes = pattern.slots, self._sizes
        on_body: list[list[int]] = [[] for _ in pattern.bodies]
        for s, slot in enumerate(slots):
            on_body[slot.body].append(s)
        self._coupled = sorted({b for pair in pattern.couplings for b in pair})
        self._crowded = {
            b
            for b, members in enumerate(on_body)
            if len(members) > _HUB
            and sum(len(slots[s].rows) for s in members) > len(pattern.bodies[b])
        }
        self._hubs = sorted(self._crowded | {*self._coupled})
        self._hub_slots = [s for b in self._hubs for s in on_body[b]]
        self._pairs = [
            (first, second)
            for b, members in enumerate(on_body)
            if b not in self._hubs
            for i, first in enumerate(members)
            for second in members[:i]
        ]
        # The slots of each constraint, by its rows.
        self._constraints: dict[tuple[int, ...], list[int]] = {}
        for s, slot in enumerate(slots):
            self._constraints.setdefault(slot.rows, []).append(s)
        columns = [sizes.columns[len(own)] for own in pattern.bodies]
        self._in_bodies = _Buckets(columns, sizes.bodies)
        keys = [(sizes.rows[len(s.rows)], columns[s.body]) for s in slots]
        self._in_slots = _Buckets(keys, sizes.slots)
        widths = sorted({*sizes.rows.values()})
        self._rows = list(self._constraints)
        self._in_constraints = _Buckets([sizes.rows[len(x)] for x in self._rows], widths)
        buckets = [tuple(self._in_slots.place[s][0] for s in pair) for pair in self._pairs]
        self._in_pairs = _Buckets(buckets, sorted({*buckets}))
        between = [tuple(self._in_bodies.place[b][0] for b in two) for two in pattern.couplings]
        self._in_couplings = _Buckets(between, sorted({*between}))

    def body_indices(self) -> tuple[Indices, ...]:
        bodies = self._pattern.bodies
        return tuple(
            Indices(column=_columns_of([np.array(bodies[b]) + 1 for b in own], size))
            for own, size in zip(self._in_bodies.members, self._in_bodies.keys, strict=True)
        )

    def slot_buckets(self) -> tuple[SlotBucket, ...]:
        pattern, found = self._pattern, []
        for own, (r, c) in zip(self._in_slots.members, self._in_slots.keys, strict=True):
            slots = [pattern.slots[s] for s in own]
            indices = Indices(
                row=_columns_of([np.array(slot.rows) + 1 for slot in slots], r),
                column=_columns_of([np.array(pattern.bodies[x.body]) + 1 for x in slots], c),
                body=np.array([self._in_bodies.place[x.body][1] for x in slots], np.int32),
            )
            found.append(SlotBucket(self._in_bodies.keys.index(c), indices))
        return tuple(found)

    def pair_buckets(self) -> tuple[PairBucket, ...]:
        found = []
        for own, (first, second) in zip(self._in_pairs.members, self._in_pairs.keys, strict=True):
            places = np.array(
                [[self._in_slots.place[s][1] for s in self._pairs[p]] for p in own], np.int32
            )
            indices = Indices(first=places[:, 0], second=places[:, 1])
            found.append(PairBucket(first, second, indices))
        return tuple(found)

    def constraint_indices(self) -> tuple[Indices, ...]:
        products = _Entries(self._in_slots, [(r, r) for r, _ in self._in_slots.keys])
        found = []
        for own, r in zip(self._in_constraints.members, self._in_constraints.keys, strict=True):
            ordinary = [
                [
                    products.of(s) + 1
                    for s in self._constraints[self._rows[n]]
                    if not self._on_hub(s)
                ]
                for n in own
            ]
            slot = np.zeros((max(map(len, ordinary)), r, r, len(own)), np.int32)
            for n, blocks in enumerate(ordinary):
                for k, block in enumerate(blocks):
                    slot[k, :, :, n] = block
            row = _columns_of([np.array(self._rows[n]) + 1 for n in own], r)
            found.append(Indices(row=row, slot=slot))
        return tuple(found)

    def hub_slots(self) -> list[list[int]]:
        """Places of the slots on hubs, for each bucket of slots."""
        return [[n for n, s in enumerate(own) if self._on_hub(s)] for own in self._in_slots.members]

    def hub_bodies(self) -> list[list[int]]:
        """Places of the hubs, for each bucket of bodies."""
        return [
            [n for n, b in enumerate(own) if b in self._hubs] for own in self._in_bodies.members
        ]

    def sums(self) -> Indices:
        pattern = self._pattern
        by_row = _Entries(self._in_slots, [(r,) for r, _ in self._in_slots.keys])
        by_column = _Entries(self._in_slots, [(c,) for _, c in self._in_slots.keys])
        of_bodies = _Entries(self._in_bodies, [(c,) for c in self._in_bodies.keys])
        of_hubs = _Entries(self._among_hubs(), [(c,) for c in self._in_bodies.keys])
        nv = sum(len(columns) for columns in pattern.bodies)
        row_slot: list[list[int]] = [[] for _ in range(pattern.rows)]
        column_slot: list[list[int]] = [[] for _ in range(nv)]
        for s, slot in enumerate(pattern.slots):
            for row, entry in zip(slot.rows, by_row.of(s) + 1, strict=False):
                row_slot[row].append(int(entry))
            if not self._on_hub(s):
                for column, entry in zip(
                    pattern.bodies[slot.body], by_column.of(s) + 1, strict=False
                ):
                    column_slot[column].append(int(entry))
        column_body, column_hub = np.zeros(nv, np.int32), np.zeros(nv, np.int32)
        for b, columns in enumerate(pattern.bodies):
            column_body[list(columns)] = of_bodies.of(b)[: len(columns)]
            if b in self._hubs:
                column_hub[list(columns)] = of_hubs.of(b)[: len(columns)] + 1
        return Indices(
            row_slot=_columns_of(row_slot),
            column_slot=_columns_of(column_slot),
            column_body=column_body,
            column_hub=column_hub,
        )

    def elimination(self) -> Elimination:
        """The elimination order of S extended by the hubs. Constraints on the same
        bodies (a joint and its driver) make one vertex."""
        pattern = self._pattern
        sources, first_unknown = self._sources()
        bodies = {rows: {pattern.slots[s].body for s in x} for rows, x in self._constraints.items()}
        members: dict[tuple[frozenset[int], int], list[int]] = {}
        behind: dict[int, list[tuple[int, ...]]] = {b: [] for b in self._hubs}
        for number, (rows, on) in enumerate(bodies.items()):
            homes = sorted(on & {*self._coupled} - self._crowded) if on <= {*self._hubs} else []
            if homes:
                # Their block of S' is mu I alone: they are eliminated after one of the bodies.
                behind[homes[0]].append(rows)
                continue
            # Constraints on hubs alone are not coupled to each other.
            apart = number if on <= {*self._hubs} else -1
            members.setdefault((frozenset(on), apart), []).extend(rows)
        vertices, touched = [sorted(rows) for rows in members.values()], [on for on, _ in members]
        for b, start in first_unknown.items():
            own = range(start, start + len(pattern.bodies[b]))
            vertices.append([*own, *(row for rows in behind[b] for row in rows)])
            touched.append(frozenset([b]).union(*(bodies[rows] for rows in behind[b])))
        meeting: dict[int, list[int]] = {}
        for vertex, on in enumerate(touched):
            for body in on:
                meeting.setdefault(body, []).append(vertex)
        hub_vertex = {b: len(members) + h for h, b in enumerate(self._hubs)}
        graph: dict[int, set[int]] = {vertex: set() for vertex in range(len(vertices))}

        def couple(first: int, second: int) -> None:
            if first != second:
                graph[first].add(second)
                graph[second].add(first)

        for body, group in meeting.items():
            for vertex in group:
                if body in hub_vertex:
                    couple(vertex, hub_vertex[body])
                else:
                    graph[vertex] |= {*group} - {vertex}
        for first, second in pattern.couplings:
            couple(hub_vertex[first], hub_vertex[second])
        neighbours = {vertex: frozenset(near) for vertex, near in graph.items()}
        return _multifrontal.plan(vertices, neighbours, sources)

    def _sources(self) -> tuple[dict[tuple[int, int], list[int]], dict[int, int]]:
        """The values that make up each entry of the matrix, and the first unknown of each hub."""
        pattern, slots = self._pattern, self._pattern.slots
        sources: dict[tuple[int, int], list[int]] = {}
        own = _Entries(self._in_constraints, [(r, r) for r in self._in_constraints.keys])
        for n, rows in enumerate(self._rows):
            block = own.of(n)
            for i, a in enumerate(rows):
                for k, b in enumerate(rows):
                    sources[a, b] = [int(block[i, k])]
        rows_of = [r for r, _ in self._in_slots.keys]
        shapes = [(rows_of[first], rows_of[second]) for first, second in self._in_pairs.keys]
        paired = _Entries(self._in_pairs, shapes, own.end)
        for p, (first, second) in enumerate(self._pairs):
            block = paired.of(p)
            for i, a in enumerate(slots[first].rows):
                for k, b in enumerate(slots[second].rows):
                    sources.setdefault((a, b), []).append(int(block[i, k]))
                    sources.setdefault((b, a), []).append(int(block[i, k]))
        first_unknown, unknown = {}, pattern.rows
        for b in self._hubs:
            first_unknown[b] = unknown
            unknown += len(pattern.bodies[b])
        on_hubs = self._in_slots.among({*self._hub_slots})
        coupling = _Entries(on_hubs, self._in_slots.keys, paired.end)
        for s in self._hub_slots:
            block, start = coupling.of(s), first_unknown[slots[s].body]
            for i, row in enumerate(slots[s].rows):
                for j in range(len(pattern.bodies[slots[s].body])):
                    sources.setdefault((row, start + j), []).append(int(block[i, j]))
                    sources.setdefault((start + j, row), []).append(int(block[i, j]))
        self._add_masses(first_unknown, coupling.end, sources)
        return sources, first_unknown

    def _add_masses(
        self,
        first_unknown: Mapping[int, int],
        start: int,
        sources: dict[tuple[int, int], list[int]],
    ) -> None:
        """The values of M of hubs, and between them, which begin at `start`."""
        columns, sizes = self._pattern.bodies, self._in_bodies.keys
        masses = _Entries(self._among_hubs(), [(c, c) for c in sizes], start)
        for b, first in first_unknown.items():
            block = masses.of(b)
            for i in range(len(columns[b])):
                for j in range(len(columns[b])):
                    sources[first + i, first + j] = [int(block[i, j])]
        shapes = [(sizes[a], sizes[b]) for a, b in self._in_couplings.keys]
        between = _Entries(self._in_couplings, shapes, masses.end)
        for n, (a, b) in enumerate(self._pattern.couplings):
            block = between.of(n)
            for i in range(len(columns[a])):
                for j in range(len(columns[b])):
                    row, column = first_unknown[a] + i, first_unknown[b] + j
                    sources.setdefault((row, column), []).append(int(block[i, j]))
                    sources.setdefault((column, row), []).append(int(block[i, j]))

    def couplings(self) -> Couplings:
        """M of the bodies whose masses are coupled."""
        pattern, sizes = self._pattern, self._in_bodies.keys
        first_unknown, count = {}, 0
        for b in self._coupled:
            first_unknown[b] = count
            count += len(pattern.bodies[b])
        column = np.concatenate([pattern.bodies[b] for b in self._coupled])
        unknown = np.zeros(sum(map(len, pattern.bodies)), np.int32)
        unknown[column] = np.arange(count) + 1
        of_hubs = _Entries(self._among_hubs(), [(c,) for c in sizes])
        hub = np.concatenate([of_hubs.of(b)[: len(pattern.bodies[b])] for b in self._coupled])
        own = self._coupled_constraints()
        sets = tuple(
            tuple(int(unknown[c]) - 1 for b in on for c in pattern.bodies[b]) for _, on in own
        )
        buckets = []
        for members, (first, second) in zip(
            self._in_couplings.members, self._in_couplings.keys, strict=True
        ):
            two = np.array(
                [[self._in_bodies.place[b][1] for b in pattern.couplings[n]] for n in members]
            )
            indices = Indices(first=two[:, 0], second=two[:, 1])
            buckets.append(CouplingBucket(first, second, indices))
        return Couplings(
            buckets=tuple(buckets),
            elimination=self._mass_elimination(first_unknown, [on for _, on in own]),
            sets=sets,
            indices=Indices(
                column=column,
                unknown=unknown,
                hub=hub,
                product=self._coupling_products(),
                **self._rows_on_coupled(own, sets, hub),
            ),
        )

    def _coupled_constraints(self) -> list[tuple[int, list[int]]]:
        """The numbers of the constraints on bodies whose masses are coupled, and these bodies."""
        found = []
        for n, rows in enumerate(self._rows):
            on = {self._pattern.slots[s].body for s in self._constraints[rows]}
            if on & {*self._coupled}:
                found.append((n, sorted(on & {*self._coupled})))
        return found

    def _mass_elimination(
        self, first_unknown: Mapping[int, int], together: Sequence[Sequence[int]]
    ) -> Elimination:
        """Elimination of M. Bodies of one constraint are taken as coupled, so that the inverse
        contains the entries between them."""
        vertex = {b: k for k, b in enumerate(self._coupled)}
        near: list[set[int]] = [set() for _ in vertex]
        for some in (*self._pattern.couplings, *together):
            for b in some:
                near[vertex[b]] |= {vertex[other] for other in some if other != b}
        unknowns = [
            list(range(first, first + len(self._pattern.bodies[b])))
            for b, first in first_unknown.items()
        ]
        sources: dict[tuple[int, int], list[int]] = {}
        self._add_masses(first_unknown, 0, sources)
        graph = {k: frozenset(others) for k, others in enumerate(near)}
        return _multifrontal.plan(unknowns, graph, sources)

    def _coupling_products(self) -> np.ndarray:
        """Contribution of the blocks of M between bodies to the entry of M v of each column."""
        pattern, sizes = self._pattern, self._in_bodies.keys
        sums: list[list[int]] = [[] for _ in range(sum(map(len, pattern.bodies)))]
        of_first = _Entries(self._in_couplings, [(sizes[a],) for a, _ in self._in_couplings.keys])
        widths = [(sizes[b],) for _, b in self._in_couplings.keys]
        of_second = _Entries(self._in_couplings, widths, of_first.end)
        for n, pair in enumerate(pattern.couplings):
            for b, entries in zip(pair, (of_first.of(n), of_second.of(n)), strict=True):
                for column, entry in zip(pattern.bodies[b], entries + 1, strict=False):
                    sums[column].append(int(entry))
        return _columns_of(sums)

    def _rows_on_coupled(
        self,
        own: Sequence[tuple[int, list[int]]],
        sets: Sequence[tuple[int, ...]],
        hub: np.ndarray,
    ) -> dict[str, np.ndarray]:
        """`entries`, `set_hub` and `row` (see `Couplings`)."""
        pattern, blocks = self._pattern, _Entries(self._in_slots, self._in_slots.keys)
        r = max((len(self._rows[n]) for n, _ in own), default=0)
        w = max(map(len, sets), default=0)
        entries = np.zeros((r, w, len(own)), np.int32)
        row = np.zeros(pattern.rows, np.int32)
        for k, (n, on) in enumerate(own):
            rows = self._rows[n]
            start = dict(
                zip(on, np.cumsum([0, *(len(pattern.bodies[b]) for b in on)]), strict=False)
            )
            for s in self._constraints[rows]:
                b = pattern.slots[s].body
                if b in start:
                    size = len(pattern.bodies[b])
                    block = blocks.of(s)[: len(rows), :size] + 1
                    entries[: len(rows), start[b] : start[b] + size, k] = block
            row[list(rows)] = np.arange(len(rows)) * len(own) + k + 1
        set_hub = _columns_of([hub[list(some)] + 1 for some in sets], w)
        return {"entries": entries, "set_hub": set_hub, "row": row}

    def _on_hub(self, slot: int) -> bool:
        return self._pattern.slots[slot].body in self._hubs

    def _among_hubs(self) -> "_Buckets":
        return self._in_bodies.among({*self._hubs})


def _columns_of(lists: Sequence[Sequence[int] | np.ndarray], size: int | None = None) -> np.ndarray:
    """Lists as columns, filled up with zeros (to this size)."""
    longest = max((len(some) for some in lists), default=0) if size is None else size
    result = np.zeros((longest, len(lists)), dtype=np.int32)
    for i, some in enumerate(lists):
        result[: len(some), i] = some
    return result
