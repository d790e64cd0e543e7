"""Blocks of C and M in the layout of the block descriptor: padded, parts along the last axis."""

import itertools
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float

from .._bodies import AbstractBodyInertia
from .._custom_types import BoolScalar, Scalar
from .._linalg import (
    BlockMass,
    BodyBlocks,
    cholesky,
    cholesky_solve,
    ConstraintBlock,
    gather,
    layout_of,
    Pattern,
    scatter_add,
    sizes_of,
    SlotBlocks,
)
from .._linalg._arrays import gather_or_zero
from .._stop_gradient import stop_gradient
from . import _groups
from ._groups import BodyGroup, ConstraintGroup, directions_of, ElementGroup, map_parts


# Entries of C below this, relative to what counts as one in their row and column, are rounding.
_ROUNDING = 1e-14


def pattern_of(
    body_groups: Sequence[BodyGroup],
    element_groups: Sequence[ElementGroup],
    constraint_groups: Sequence[ConstraintGroup],
    rows: int,
) -> Pattern:
    """The rows that act on each body, in the order in which `constraint_blocks` returns them, and
    the bodies that elements couple, in that of `block_mass`."""
    columns = sorted(tuple(own.tolist()) for group in body_groups for own in group.indices["v"])
    number = {own[0]: b for b, own in enumerate(columns)}
    slots = []
    for group in constraint_groups:
        size = group.indices["order"].shape[0]
        for k in range(len(group.markers)):
            first = group.indices[f"v{k}"][:, 0].tolist()
            for i in _moving(group, k, number):
                start = int(group.indices["row"][i])
                slots.append(ConstraintBlock(tuple(range(start, start + size)), number[first[i]]))
    couplings = [
        (number[first], number[second])
        for group in _massive(element_groups)
        for j, k in _pairs_of_nodes(group)
        for first, second in zip(
            group.indices[f"v{j}"][:, 0].tolist(),
            group.indices[f"v{k}"][:, 0].tolist(),
            strict=True,
        )
    ]
    return Pattern(tuple(slots), tuple(columns), rows, tuple(couplings))


class Scales(NamedTuple):
    """The unit of each row and of each velocity; those of the ground come last."""

    rows: Float[Array, " rows"]
    columns: Float[Array, " extended_v"]


def blocks_of(
    groups: Sequence[ConstraintGroup],
    coordinates: Float[Array, " extended_q"],
    velocities: Float[Array, " extended_v"],
    t: Scalar,
    scales: Scales | None,
) -> list[tuple[Float[Array, "_ _ _"], ...]]:
    """The blocks of C of each slot of each group (`combined`)."""
    found = directions_of(groups, coordinates, velocities)
    return [
        combined(
            group,
            map_parts(
                _groups.blocks, group.primitives, own.frames, own.changes, own.rates, shared=(t,)
            ),
            scales,
        )
        for group, own in zip(groups, found, strict=True)
    ]


def is_posed(group: ConstraintGroup) -> bool:
    """Do the velocities of all bodies of the group determine the motion of its frames? It has none
    on a body whose coordinates themselves are meant."""
    return all(marker.coordinates.posed or not marker.located for marker in group.markers)


def combined(
    group: ConstraintGroup,
    blocks: tuple[Float[Array, "_ _ _"], ...],
    scales: Scales | None,
) -> tuple[Float[Array, "_ _ _"], ...]:
    """The blocks of a group's slots: on a body that occurs twice in a constraint, the sum at the
    first slot and zero at the others. Where there are scales and nothing but rounding is left of an
    entry, it is zero: a frame that a body's coordinates do not move would have a row of rounding
    there, which would count like others, as rows are made of unit length. (No frame of a rigid body
    is fixed in this way.) Derivatives stay."""
    found = _summed(group, blocks)
    if scales is None or is_posed(group):
        return tuple(found)
    rows = group.indices["row"][:, None] + np.argsort(group.indices["order"])[None]
    for k, block in enumerate(found):
        unit = gather(scales.columns, group.indices[f"v{k}"])[:, None, :]
        size = jnp.abs(block) * unit / gather(scales.rows, rows)[:, :, None]
        found[k] = block - stop_gradient(jnp.where(size > _ROUNDING, 0.0, block))
    return tuple(found)


def _summed(
    group: ConstraintGroup, blocks: Sequence[Float[Array, "_ _ _"]]
) -> list[Float[Array, "_ _ _"]]:
    found = list(blocks)
    for k in range(1, len(found)):
        later = group.indices[f"v{k}"]
        for j in range(k):
            earlier = group.indices[f"v{j}"]
            same = later.shape == earlier.shape and np.all(later == earlier, axis=1)
            if np.any(same):
                here = np.asarray(same)[:, None, None]
                found[j] = found[j] + jnp.where(here, found[k], 0.0)
                found[k] = jnp.where(here, 0.0, found[k])
    return found


def constraint_blocks(
    groups: Sequence[ConstraintGroup],
    pattern: Pattern,
    coordinates: Float[Array, " extended_q"],
    velocities: Float[Array, " extended_v"],
    t: Scalar,
    scales: Scales | None,
) -> SlotBlocks:
    """The derivative of each constraint's rows along the velocities of each of its moving
    bodies."""
    found = blocks_of(groups, coordinates, velocities, t, scales)
    return padded_blocks(groups, pattern, found, coordinates.dtype)


def padded_blocks(
    groups: Sequence[ConstraintGroup],
    pattern: Pattern,
    found: Sequence[tuple[Float[Array, "_ _ _"], ...]],
    dtype: Any,
    extended: Pattern | None = None,
) -> SlotBlocks:
    """The blocks of C of each group's slots, rows in their joint's order, concatenated in their
    buckets: those of the pattern, or of a pattern extended by more than bodies."""
    number = {own[0]: b for b, own in enumerate(pattern.bodies)}
    sizes = sizes_of(pattern if extended is None else extended)
    parts = [[jnp.zeros((*size, 0), dtype)] for size in sizes.slots]
    for group, blocks in zip(groups, found, strict=True):
        for k, block in enumerate(blocks):
            moving = _moving(group, k, number)
            if not moving.size:
                continue
            own = jnp.moveaxis(block, 0, -1)
            own = gather(own, moving) if len(moving) < own.shape[-1] else own
            order = group.indices["order"]
            ordered = own if np.array_equal(order, np.arange(len(order))) else own[order]
            rows, columns, _ = ordered.shape
            bucket = sizes.bucket(rows, columns)
            r, c = sizes.slots[bucket]
            missing = ((0, r - rows), (0, c - columns), (0, 0))
            padded = jnp.pad(ordered, missing) if (r, c) != (rows, columns) else ordered
            parts[bucket].append(padded)
    return tuple(jnp.concatenate(own, axis=-1) for own in parts)


def block_mass(
    body_groups: Sequence[BodyGroup],
    element_groups: Sequence[ElementGroup],
    pattern: Pattern,
    q: Float[Array, " nq"],
    t: Scalar,
    unit: Float[Array, " nv"] | None = None,
    light: BoolScalar | bool = False,
) -> BlockMass:
    """M of all bodies, and its inverse: the identity for the entries after them in the pattern.
    `unit`: the scale of each velocity, where a mass need only be semidefinite, or where parts are
    so `light` that M does not serve as the metric of projections."""
    sizes = sizes_of(pattern)
    number = {own[0]: b for b, own in enumerate(pattern.bodies)}
    coupled = {b for pair in pattern.couplings for b in pair}
    parts: list[list[Float[Array, "2 c c _"]]] = [[] for _ in sizes.bodies]
    firsts: list[list[np.ndarray]] = [[] for _ in sizes.bodies]
    for group in body_groups:
        first = group.indices["v"][:, 0]
        inverted = number[first[0]] not in coupled and not group.inertia.semidefinite
        pair = _mass_and_inverse(group, inverted, q, t)
        size = sizes.columns[pair.shape[-1]]
        missing = (0, size - pair.shape[-1])
        padded = jnp.pad(jnp.moveaxis(pair, 0, -1), ((0, 0), missing, missing, (0, 0)))
        bucket = sizes.bodies.index(size)
        parts[bucket].append(padded)
        firsts[bucket].append(first)
    count = sum(group.indices["v"].shape[0] for group in body_groups)
    for bucket, size in enumerate(sizes.bodies):
        behind = [own for own in pattern.bodies[count:] if sizes.columns[len(own)] == size]
        if behind:
            held = np.arange(size)[:, None] < [len(own) for own in behind]
            one = np.eye(size, dtype=q.dtype)[:, :, None] * held
            parts[bucket].append(jnp.asarray(np.stack([one, one])))
            firsts[bucket].append(np.array([own[0] for own in behind]))
    both = []
    for own, first in zip(parts, firsts, strict=True):
        order = np.argsort(np.concatenate(first))
        blocks = jnp.concatenate(own, axis=-1)
        both.append(blocks if np.all(np.diff(order) > 0) else gather(blocks, order))
    masses, inverses = tuple(mass for mass, _ in both), tuple(inverse for _, inverse in both)
    elements = _of_elements(_massive(element_groups), q, t)
    between: BodyBlocks = ()
    if elements:
        masses = _with_elements(masses, elements, pattern)
        # An element on one moving body (between it and the ground) couples it to no other.
        lone = {column for own in elements for column in own.first.tolist()}
        lone -= {pattern.bodies[b][0] for b in coupled}
        loose = [group.indices["v"] for group in body_groups if group.inertia.semidefinite]
        lone -= {column for own in loose for column in own[:, 0].tolist()}
        inverses = _inverses_with_elements(masses, inverses, pattern, np.array(sorted(lone)))
    if pattern.couplings:
        between = _between_nodes(elements, pattern, q.dtype)
    mass = BlockMass(masses, inverses, between, layout_of(pattern))
    if unit is None:
        return mass
    every = light is not False
    loose = [group for group in body_groups if every or group.inertia.semidefinite]
    loose = [own for group in loose for own in group.indices["v"][:, 0].tolist()]
    alone = [own for own in loose if number[own] not in coupled]
    found = _with_metric(mass, unit, np.array(loose), np.array(alone))
    if any(group.inertia.semidefinite for group in body_groups):
        return found
    blocks, inverse_blocks = found.blocks, found.inverse_blocks
    if light is not True:
        blocks, inverse_blocks = (
            tuple(jnp.where(light, x, y) for x, y in zip(own, others, strict=True))
            for own, others in ((blocks, masses), (inverse_blocks, inverses))
        )
    metric = BlockMass(blocks, inverse_blocks, found.between, found.layout)
    return BlockMass(masses, inverses, between, found.layout, metric=metric)


def _with_metric(
    mass: BlockMass, unit: Float[Array, " nv"], loose: np.ndarray, alone: np.ndarray
) -> BlockMass:
    """With the metric M + m U^-2 for the bodies with these first columns, of which those `alone`
    are coupled to no others: U what counts as one of each velocity, m the mean of the diagonal of
    U M U. So it depends on no units, and is as large as M is."""
    places = [bucket["column"] for bucket in mass.layout.bodies]
    held = [(place > 0) & (place <= unit.shape[0]) for place in places]
    sizes = [
        jnp.where(own, gather_or_zero(unit, np.where(own, place, 0)), 1.0)
        for own, place in zip(held, places, strict=True)
    ]
    total = sum(
        jnp.sum(jnp.where(own, jnp.diagonal(block).T * size**2, 0.0))
        for own, block, size in zip(held, mass.blocks, sizes, strict=True)
    )
    mean = total / unit.shape[0]
    mean = jnp.where(mean > 0, mean, 1.0)
    blocks, inverses = [], []
    for own, place, size, block, inverse in zip(
        held, places, sizes, mass.blocks, mass.inverse_blocks, strict=True
    ):
        identity = np.eye(block.shape[0])[:, :, None]
        shifted = own & np.isin(place[0] - 1, loose)
        metric = block + identity * jnp.where(shifted, mean / size**2, 0.0)[None]
        # Padding and other bodies count as 1, and are left out again.
        kept = own & np.isin(place[0] - 1, alone)
        both = kept[:, None] & kept[None]
        blocks.append(metric)
        if kept.any():
            regular = jnp.where(both, metric, np.where(both, 0.0, identity))
            inverses.append(jnp.where(both, _inverses(regular), inverse))
        else:
            inverses.append(inverse)
    return BlockMass(tuple(blocks), tuple(inverses), mass.between, mass.layout, mass.blocks)


def _inverses(blocks: Float[Array, "c c n"]) -> Float[Array, "c c n"]:
    one = jnp.eye(blocks.shape[0], dtype=blocks.dtype)
    return jax.vmap(lambda x: cholesky_solve(cholesky(x), one), -1, -1)(blocks)


def _mass_and_inverse(
    group: BodyGroup, inverted: bool, q: Float[Array, " nq"], t: Scalar
) -> Float[Array, "n 2 c c"]:
    """M of each body of a group, and its inverse, or zero where elements couple it to others or it
    need not have one."""

    def blocks(inertia: AbstractBodyInertia, x: Float[Array, " nq"]) -> Float[Array, "2 c c"]:
        mass = inertia.mass_matrix(x, t)
        inverse = inertia.inverse_mass_matrix(x, t) if inverted else jnp.zeros_like(mass)
        return jnp.stack([mass, inverse])

    return map_parts(blocks, group.inertia, gather(q, group.indices["q"]))


class _OfElements(NamedTuple):
    """One block of M of all elements of a group: between their j-th and k-th nodes, whose first
    columns are `first` and `second`."""

    block: Float[Array, "n r c"]
    nodes: tuple[int, int]
    first: np.ndarray
    second: np.ndarray


def _massive(groups: Sequence[ElementGroup]) -> list[ElementGroup]:
    return [group for group in groups if not group.inertia.massless]


def _pairs_of_nodes(group: ElementGroup) -> list[tuple[int, int]]:
    return list(itertools.combinations(range(group.nodes), 2))


def _of_elements(
    groups: Sequence[ElementGroup], q: Float[Array, " nq"], t: Scalar
) -> list[_OfElements]:
    found = []
    for group in groups:
        mass = map_parts(
            lambda x, own: x.mass_matrix(own, t), group.inertia, gather(q, group.indices["q"])
        )
        columns = [group.indices[f"v{k}"] for k in range(group.nodes)]
        starts = np.cumsum([0, *(own.shape[1] for own in columns)])
        for j, k in [*((k, k) for k in range(group.nodes)), *_pairs_of_nodes(group)]:
            block = mass[:, starts[j] : starts[j + 1], starts[k] : starts[k + 1]]
            found.append(_OfElements(block, (j, k), columns[j][:, 0], columns[k][:, 0]))
    return found


def _with_elements(
    masses: BodyBlocks, elements: Sequence[_OfElements], pattern: Pattern
) -> BodyBlocks:
    """M of each body with what elements give to their nodes."""
    sizes = sizes_of(pattern)
    place: dict[int, tuple[int, int]] = {}
    counts = [0] * len(sizes.bodies)
    for own in pattern.bodies:
        bucket = sizes.bodies.index(sizes.columns[len(own)])
        place[own[0]] = (bucket, counts[bucket])
        counts[bucket] += 1
    found = []
    for bucket, mass in enumerate(masses):
        entries = np.arange(mass.size).reshape(mass.shape)
        parts, places = [mass], [entries]
        for part in elements:
            there = [place[column] for column in part.first.tolist()]
            if part.nodes[0] == part.nodes[1] and there[0][0] == bucket:
                own = part.block.shape[1]
                parts.append(part.block)
                places.append(np.moveaxis(entries[:own, :own, [n for _, n in there]], -1, 0))
        total = scatter_add(parts, places, mass.size).reshape(mass.shape)
        found.append(total if len(parts) > 1 else mass)
    return tuple(found)


def _inverses_with_elements(
    masses: BodyBlocks, inverses: BodyBlocks, pattern: Pattern, lone: np.ndarray
) -> BodyBlocks:
    """The inverse of M anew, for the bodies with these first columns."""
    found = []
    for bucket, mass, inverse in zip(layout_of(pattern).bodies, masses, inverses, strict=True):
        place = bucket["column"]
        own = (place > 0) & np.isin(place[0] - 1, lone)
        if not own.any():
            found.append(inverse)
            continue
        both = own[:, None] & own[None]
        # Padding, and other bodies, count as 1.
        regular = jnp.where(both, mass, np.eye(mass.shape[0])[:, :, None])
        found.append(jnp.where(both, _inverses(regular), inverse))
    return tuple(found)


def _between_nodes(elements: Sequence[_OfElements], pattern: Pattern, dtype: Any) -> BodyBlocks:
    """The blocks of M between two bodies, concatenated in their buckets."""
    sizes = sizes_of(pattern).columns
    parts: dict[tuple[int, int], list[Float[Array, "_ _ _"]]] = {}
    for part in elements:
        if part.nodes[0] != part.nodes[1]:
            _, rows, columns = part.block.shape
            r, c = sizes[rows], sizes[columns]
            missing = ((0, r - rows), (0, c - columns), (0, 0))
            padded = jnp.pad(jnp.moveaxis(part.block, 0, -1), missing)
            parts.setdefault((r, c), []).append(padded)
    return tuple(jnp.concatenate(parts[key], axis=-1).astype(dtype) for key in sorted(parts))


def _moving(group: ConstraintGroup, k: int, number: dict[int, int]) -> np.ndarray:
    """Parts of a group with a moving body in slot k that is in no earlier slot."""
    first = [group.indices[f"v{j}"][:, 0].tolist() for j in range(k + 1)]
    return np.array(
        [
            i
            for i, column in enumerate(first[k])
            if column in number and column not in [own[i] for own in first[:k]]
        ],
        dtype=np.int32,
    )


def add_blocks(
    matrix: Float[Array, "rows nv"], blocks: Float[Array, "n r c"], corners: np.ndarray
) -> Float[Array, "rows nv"]:
    """Add blocks at their upper left corners (n, 2), one window each."""
    numbers = lax.ScatterDimensionNumbers(
        update_window_dims=(1, 2),
        inserted_window_dims=(),
        scatter_dims_to_operand_dims=(0, 1),
    )
    return lax.scatter_add(
        matrix, jnp.asarray(corners), blocks, numbers, mode=lax.GatherScatterMode.FILL_OR_DROP
    )
