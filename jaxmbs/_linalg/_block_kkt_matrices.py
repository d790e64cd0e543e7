"""M block-diagonal by body, C in blocks of one constraint and one body.

S = C M^-1 C^T has a block only where two constraints share a moving body, so its factor follows
the graph of the mechanism. A body that carries many constraints would couple all of them: such a
hub stays in the matrix as a vertex of its own, by the quasi-definite form

    [ S' + mu I   C_b  ] [ lambda ]   [ r ]
    [ C_b^T      -M_b  ] [ y      ] = [ 0 ],        S' = S without the hub's part.

All arrays have the slots (one constraint on one moving body), the bodies or the pairs of slots
as their last axis, along which the arithmetic runs.
"""

import functools
from collections.abc import Sequence
from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float, Int

from .._custom_types import RealScalarLike
from .._indices import Indices
from . import _multifrontal
from ._gathering import gather
from ._kkt_matrices import AbstractFactor, AbstractKKTMatrices, RowMask
from ._multifrontal import Elimination, LevelFactor
from ._null_projector import block_null_projector, NullProjector, Rows
from ._sums import sum_along, sum_of_products


# A body with more slots than this becomes a vertex of the graph.
_HUB = 8


class ConstraintBlock(NamedTuple):
    """One constraint's block on one moving body: its rows, the body, the body's columns."""

    rows: tuple[int, ...]
    body: int


class Pattern(NamedTuple):
    """Everything that decides how blocks are combined; equal patterns share one `Layout`."""

    slots: tuple[ConstraintBlock, ...]
    bodies: tuple[tuple[int, ...], ...]
    rows: int


class Layout(eqx.Module):
    """Index maps of a pattern, and the order of elimination.

    Indices (0 means a zero that stands in front): `slot_row` (r, slots) into rows;
    `slot_column` (c, slots) and `body_column` (c, bodies) into columns; `slot_body` (slots,);
    `row_slot` (k, rows) into (r, slots); `column_slot` (k, nv) into (c, slots) of ordinary
    bodies; `column_body` (nv,) into (c, bodies), without a zero; `first`, `second` (pairs,):
    slots of different constraints on one body; `constraint_row` (r, constraints) into rows;
    `constraint_slot` (k, r, r, constraints) into (r, r, slots) of ordinary bodies; `hub_slot`,
    `hub_body`: slots on hubs, hubs; `hub_column` (c, hubs).
    """

    indices: Indices = eqx.field(static=True)
    elimination: Elimination
    rows: int = eqx.field(static=True)
    columns: int = eqx.field(static=True)


class BlockFactor(AbstractFactor):
    """Factors of the fronts."""

    scale: Float[Array, " rows"]
    levels: tuple[LevelFactor, ...]
    layout: Layout

    @eqx.filter_jit
    def solve(self, right: Float[Array, " rows"]) -> Float[Array, " rows"]:
        size = self.layout.elimination.indices["solution"].shape[0]
        padded = jnp.concatenate([right, jnp.zeros(size - right.shape[0], right.dtype)])
        solution = _multifrontal.solve(self.layout.elimination, self.levels, padded)
        return solution[: right.shape[0]]


class BlockKKTMatrices(AbstractKKTMatrices):
    """Blocks of C (r, c, slots), of M and of its inverse (c, c, bodies), padded with zeros."""

    constraint_blocks: Float[Array, "r c slots"]
    mass_blocks: Float[Array, "c c bodies"]
    inverse_blocks: Float[Array, "c c bodies"]
    layout: Layout

    @property
    def shape(self) -> tuple[int, int]:
        return self.layout.rows, self.layout.columns

    def mass(self, v: Float[Array, " nv"]) -> Float[Array, " nv"]:
        return self._by_body(self.mass_blocks, v)

    def inverse_mass(self, force: Float[Array, " nv"]) -> Float[Array, " nv"]:
        return self._by_body(self.inverse_blocks, force)

    def _by_body(
        self, blocks: Float[Array, "c c bodies"], v: Float[Array, " nv"]
    ) -> Float[Array, " nv"]:
        parts = _gather_or_zero(v, self.layout.indices["body_column"])
        product = sum_of_products(blocks, parts[None], 1)
        return gather(product.ravel(), self.layout.indices["column_body"])

    def apply_C(self, v: Float[Array, " nv"]) -> Float[Array, " rows"]:
        parts = _gather_or_zero(v, self.layout.indices["slot_column"])
        blocks = self.constraint_blocks
        product = sum_of_products(blocks, parts[None], 1)
        return _sum_of(product, self.layout.indices["row_slot"])

    def apply_CT(self, multipliers: Float[Array, " rows"]) -> Float[Array, " nv"]:
        indices = self.layout.indices
        parts = _gather_or_zero(multipliers, indices["slot_row"])
        blocks = self.constraint_blocks
        if not len(parts):
            return jnp.zeros((self.layout.columns,), multipliers.dtype)
        product = sum_of_products(blocks, parts[:, None], 0)
        total = _sum_of(product, indices["column_slot"])
        if indices["hub_body"].size:
            own = indices["slot_body"][indices["hub_slot"]] == indices["hub_body"][:, None]
            sums = jnp.sum(gather(product, indices["hub_slot"])[:, None] * own[None], axis=-1)
            total = total + _gather_or_zero(sums.ravel(), indices["column_hub"])
        return total

    def mask_rows(self, rows: RowMask) -> "BlockKKTMatrices":
        mask = jnp.asarray(rows, self.constraint_blocks.dtype)
        kept = _gather_or_zero(mask, self.layout.indices["slot_row"])
        blocks = jnp.where(kept[:, None] > 0, self.constraint_blocks, 0.0)
        return eqx.tree_at(lambda d: d.constraint_blocks, self, blocks)

    def _half(self) -> Float[Array, "r c slots"]:
        """The blocks of C M^-1."""
        inverse = gather(self.inverse_blocks, self.layout.indices["slot_body"])
        return sum_of_products(self.constraint_blocks[:, :, None], inverse[None], 1)

    def _diagonal(self, half: Float[Array, "r c slots"]) -> Float[Array, " rows"]:
        blocks = self.constraint_blocks
        by_row = sum_of_products(half, blocks, 1)
        return _sum_of(by_row, self.layout.indices["row_slot"])

    def row_scale(self) -> Float[Array, " rows"]:
        diagonal = self._diagonal(self._half())
        return jnp.sqrt(jnp.where(diagonal > 0, diagonal, 1.0))

    @eqx.filter_jit
    def factor(self, regularisation: RealScalarLike) -> BlockFactor:
        indices = self.layout.indices
        half, blocks = self._half(), self.constraint_blocks
        diagonal = self._diagonal(half)
        scale = jnp.sqrt(jnp.where(diagonal > 0, diagonal, 1.0))
        by_slot = _gather_or_zero(1 / scale, indices["slot_row"])
        left = half * by_slot[:, None]
        right = blocks * by_slot[:, None]
        first, second = gather(left, indices["first"]), gather(right, indices["second"])
        pairs = sum_of_products(first[:, None], second[None], 2)
        shift = jnp.where(diagonal > 0, regularisation, 1.0)
        values = [self._own_blocks(left, right, shift), pairs.ravel(), *self._hub_values(right)]
        levels = _multifrontal.factor(self.layout.elimination, jnp.concatenate(values))
        return BlockFactor(scale, levels, self.layout)

    def _own_blocks(
        self,
        left: Float[Array, "r c slots"],
        right: Float[Array, "r c slots"],
        shift: Float[Array, " rows"],
    ) -> Float[Array, " values"]:
        """The blocks of the constraints with themselves, summed over their bodies, shifted."""
        indices = self.layout.indices
        by_slot = sum_of_products(left[:, None], right[None], 2)
        blocks = _sum_of(by_slot, indices["constraint_slot"])
        identity = np.eye(blocks.shape[0])[:, :, None]
        return (blocks + identity * _gather_or_zero(shift, indices["constraint_row"])[None]).ravel()

    def _hub_values(self, scaled: Float[Array, "r c slots"]) -> list[Float[Array, " values"]]:
        """Coupling blocks and -M of the hubs, whose unknowns are scaled by the roots of the
        diagonal of M."""
        indices = self.layout.indices
        if not indices["hub_body"].size:
            return []
        mass = gather(self.mass_blocks, indices["hub_body"])
        diagonal = jnp.diagonal(mass).T
        size = jnp.sqrt(jnp.where(diagonal > 0, diagonal, 1.0))
        hubs = np.searchsorted(indices["hub_body"], indices["slot_body"][indices["hub_slot"]])
        coupling = gather(scaled, indices["hub_slot"]) / gather(size, hubs)[None]
        return [coupling.ravel(), -(mass / size[:, None] / size[None]).ravel()]

    def null_projector(
        self, columns: Float[Array, " nv"], sets: Rows, regularisation: RealScalarLike
    ) -> NullProjector:
        layout = self.layout
        by_slot = _gather_or_zero(columns, layout.indices["slot_column"])
        scaled = self.constraint_blocks * by_slot[None]
        return block_null_projector(
            scaled, layout.indices, layout.elimination, sets, regularisation
        )

    def mass_matrix(self) -> Float[Array, "nv nv"]:
        place = self.layout.indices["body_column"]
        size = self.layout.columns + 1
        matrix = jnp.zeros((size, size), self.mass_blocks.dtype)
        matrix = matrix.at[place[:, None], place[None]].add(self.mass_blocks)
        return matrix[1:, 1:]

    def constraint_matrix(self) -> Float[Array, "rows nv"]:
        row, column = self.layout.indices["slot_row"], self.layout.indices["slot_column"]
        shape = (self.layout.rows + 1, self.layout.columns + 1)
        matrix = jnp.zeros(shape, self.constraint_blocks.dtype)
        matrix = matrix.at[row[:, None], column[None]].add(self.constraint_blocks)
        return matrix[1:, 1:]


def _gather_or_zero(
    x: Float[Array, " n"], places: Int[np.ndarray, "*shape"]
) -> Float[Array, "*shape"]:
    """Entries at places that are counted from 1; zero for the place 0."""
    missing = places == 0
    if missing.all():
        return jnp.zeros(places.shape, x.dtype)
    # Something is taken where nothing is asked for, each time another, so that the derivative has
    # no entry to which much more belongs than to others.
    filler = np.arange(places.size).reshape(places.shape) % x.shape[0]
    found = gather(x, np.where(missing, filler, places - 1))
    return jnp.where(missing, 0.0, found) if missing.any() else found


def _sum_of(values: Float[Array, "*given"], places: np.ndarray) -> Float[Array, "*shape"]:
    """Sums of the values at places (k, *shape), counted from 1."""
    if not len(places):
        return jnp.zeros(places.shape[1:], values.dtype)
    # Kept apart, as in `_multifrontal.gathered`.
    parts = lax.optimization_barrier(_gather_or_zero(values.ravel(), places))
    return sum_along(parts, 0, apart=False)


@functools.lru_cache(maxsize=128)
def layout_of(pattern: Pattern) -> Layout:
    """The index maps and the order of elimination of a pattern; made once for each."""
    on_body: list[list[int]] = [[] for _ in pattern.bodies]
    for s, slot in enumerate(pattern.slots):
        on_body[slot.body].append(s)
    hubs = [b for b, members in enumerate(on_body) if len(members) > _HUB]
    pairs = [
        (first, second)
        for b, members in enumerate(on_body)
        if b not in hubs
        for i, first in enumerate(members)
        for second in members[:i]
    ]
    indices = Indices(
        **_slot_indices(pattern, hubs),
        **_body_indices(pattern, hubs),
        **_constraint_indices(pattern, hubs),
        first=np.array([p[0] for p in pairs], dtype=np.int32),
        second=np.array([p[1] for p in pairs], dtype=np.int32),
        hub_slot=np.array([s for b in hubs for s in on_body[b]], dtype=np.int32),
        hub_body=np.array(hubs, dtype=np.int32),
    )
    nv = sum(len(columns) for columns in pattern.bodies)
    return Layout(indices, _elimination(pattern, pairs, hubs), pattern.rows, nv)


def _padding(pattern: Pattern) -> tuple[int, int]:
    """Rows and columns of a padded block."""
    return (
        max((len(slot.rows) for slot in pattern.slots), default=0),
        max((len(columns) for columns in pattern.bodies), default=0),
    )


def _slot_indices(pattern: Pattern, hubs: Sequence[int]) -> dict[str, np.ndarray]:
    slots, (r, c) = pattern.slots, _padding(pattern)
    slot_row = np.zeros((r, len(slots)), dtype=np.int32)
    slot_column = np.zeros((c, len(slots)), dtype=np.int32)
    row_slot: list[list[int]] = [[] for _ in range(pattern.rows)]
    column_slot: list[list[int]] = [[] for columns in pattern.bodies for _ in columns]
    for s, slot in enumerate(slots):
        columns = pattern.bodies[slot.body]
        slot_row[: len(slot.rows), s] = np.array(slot.rows, dtype=np.int32) + 1
        slot_column[: len(columns), s] = np.array(columns) + 1
        for i, row in enumerate(slot.rows):
            row_slot[row].append(i * len(slots) + s + 1)
        for j, column in enumerate(columns):
            if slot.body not in hubs:
                column_slot[column].append(j * len(slots) + s + 1)
    return {
        "slot_row": slot_row,
        "slot_column": slot_column,
        "slot_body": np.array([slot.body for slot in slots], dtype=np.int32),
        "row_slot": _columns_of(row_slot),
        "column_slot": _columns_of(column_slot),
    }


def _body_indices(pattern: Pattern, hubs: Sequence[int]) -> dict[str, np.ndarray]:
    bodies, (_, c) = pattern.bodies, _padding(pattern)
    body_column = np.zeros((c, len(bodies)), dtype=np.int32)
    column_body = np.zeros(sum(len(columns) for columns in bodies), dtype=np.int32)
    column_hub = np.zeros_like(column_body)
    for b, columns in enumerate(bodies):
        body_column[: len(columns), b] = np.array(columns) + 1
        column_body[list(columns)] = np.arange(len(columns)) * len(bodies) + b
        if b in hubs:
            places = np.arange(len(columns)) * len(hubs) + hubs.index(b)
            column_hub[list(columns)] = places + 1
    return {"body_column": body_column, "column_body": column_body, "column_hub": column_hub}


def _constraints(pattern: Pattern) -> dict[tuple[int, ...], list[int]]:
    """The slots of each constraint, by its rows."""
    found: dict[tuple[int, ...], list[int]] = {}
    for s, slot in enumerate(pattern.slots):
        found.setdefault(slot.rows, []).append(s)
    return found


def _constraint_indices(pattern: Pattern, hubs: Sequence[int]) -> dict[str, np.ndarray]:
    constraints, (r, _) = _constraints(pattern), _padding(pattern)
    ordinary = [
        [s for s in slots if pattern.slots[s].body not in hubs] for slots in constraints.values()
    ]
    row = np.zeros((r, len(constraints)), dtype=np.int32)
    deepest = max((len(slots) for slots in ordinary), default=0)
    slot = np.zeros((deepest, r, r, len(constraints)), dtype=np.int32)
    corner = np.arange(r * r).reshape(r, r) * len(pattern.slots) + 1
    for n, (rows, slots) in enumerate(zip(constraints, ordinary, strict=True)):
        row[: len(rows), n] = np.array(rows, dtype=np.int32) + 1
        for k, s in enumerate(slots):
            slot[k, :, :, n] = corner + s
    return {"constraint_row": row, "constraint_slot": slot}


def _elimination(
    pattern: Pattern, pairs: Sequence[tuple[int, int]], hubs: Sequence[int]
) -> Elimination:
    """The order in which S, with the hubs beside it, is eliminated. Constraints on the same
    bodies (a joint and its driver) make one vertex."""
    slots, (r, _) = pattern.slots, _padding(pattern)
    constraints = _constraints(pattern)
    sources: dict[tuple[int, int], list[int]] = {}
    for n, rows in enumerate(constraints):
        for i, a in enumerate(rows):
            for k, b in enumerate(rows):
                sources[a, b] = [(i * r + k) * len(constraints) + n]
    start = r * r * len(constraints)
    for p, (first, second) in enumerate(pairs):
        for i, a in enumerate(slots[first].rows):
            for k, b in enumerate(slots[second].rows):
                place = start + (i * r + k) * len(pairs) + p
                sources.setdefault((a, b), []).append(place)
                sources.setdefault((b, a), []).append(place)
    end = start + r * r * len(pairs)
    bodies = {rows: {slots[s].body for s in own} for rows, own in constraints.items()}
    members: dict[tuple[frozenset[int], int], list[int]] = {}
    for number, (rows, on) in enumerate(bodies.items()):
        # Constraints on hubs alone are not coupled to each other.
        apart = number if on <= set(hubs) else -1
        members.setdefault((frozenset(on), apart), []).extend(rows)
    vertices, touched = [sorted(rows) for rows in members.values()], [on for on, _ in members]
    _add_hubs(pattern, hubs, end, sources, vertices, touched)
    meeting: dict[int, list[int]] = {}
    for vertex, on in enumerate(touched):
        for body in on:
            meeting.setdefault(body, []).append(vertex)
    hub_vertex = {b: len(members) + h for h, b in enumerate(hubs)}
    graph: dict[int, set[int]] = {vertex: set() for vertex in range(len(vertices))}
    for body, group in meeting.items():
        for vertex in group:
            if body not in hub_vertex:
                graph[vertex] |= set(group) - {vertex}
            elif vertex != hub_vertex[body]:
                graph[vertex].add(hub_vertex[body])
                graph[hub_vertex[body]].add(vertex)
    neighbours = {vertex: frozenset(near) for vertex, near in graph.items()}
    return _multifrontal.plan(vertices, neighbours, sources)


def _add_hubs(
    pattern: Pattern,
    hubs: Sequence[int],
    end: int,
    sources: dict[tuple[int, int], list[int]],
    vertices: list[list[int]],
    touched: list[frozenset[int]],
) -> None:
    """Unknowns and entries of the hubs, whose values stand from `end` on."""
    slots, (r, c) = pattern.slots, _padding(pattern)
    on_hubs = [s for b in hubs for s, slot in enumerate(slots) if slot.body == b]
    first_unknown = {}
    unknown = pattern.rows
    for b in hubs:
        first_unknown[b] = unknown
        vertices.append(list(range(unknown, unknown + len(pattern.bodies[b]))))
        touched.append(frozenset([b]))
        unknown += len(pattern.bodies[b])
    for place, s in enumerate(on_hubs):
        start = first_unknown[slots[s].body]
        for i, row in enumerate(slots[s].rows):
            for j in range(len(pattern.bodies[slots[s].body])):
                where = end + (i * c + j) * len(on_hubs) + place
                sources.setdefault((row, start + j), []).append(where)
                sources.setdefault((start + j, row), []).append(where)
    end += r * c * len(on_hubs)
    for h, b in enumerate(hubs):
        size = len(pattern.bodies[b])
        for i in range(size):
            for j in range(size):
                where = end + (i * c + j) * len(hubs) + h
                sources[first_unknown[b] + i, first_unknown[b] + j] = [where]


def _columns_of(lists: Sequence[Sequence[int]]) -> np.ndarray:
    """Lists as columns, filled up with zeros."""
    longest = max((len(some) for some in lists), default=0)
    result = np.zeros((longest, len(lists)), dtype=np.int32)
    for i, some in enumerate(lists):
        result[: len(some), i] = some
    return result
