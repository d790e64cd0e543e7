"""Blocks of C and M as the block descriptor wants them: padded, parts along the last axis."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._custom_types import Scalar
from .._linalg import BodyBlocks, ConstraintBlock, gather, Pattern, sizes_of, SlotBlocks
from .._stop_gradient import stop_gradient
from . import _groups
from ._groups import BodyGroup, ConstraintGroup, map_parts
from ._markers import directions_of


# Entries of C below this, relative to what counts as one in their row and column, are rounding.
_ROUNDING = 1e-14


def pattern_of(
    body_groups: Sequence[BodyGroup], constraint_groups: Sequence[ConstraintGroup], rows: int
) -> Pattern:
    """Which rows stand on which body, in the order in which `constraint_blocks` returns them."""
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
    return Pattern(tuple(slots), tuple(columns), rows)


class Scales(NamedTuple):
    """What counts as one in each row, and of each velocity, those of the ground behind."""

    rows: Float[Array, " rows"]
    columns: Float[Array, " extended_v"]


def blocks_of(
    groups: Sequence[ConstraintGroup],
    coordinates: Float[Array, " extended_q"],
    velocities: Float[Array, " extended_v"],
    t: Scalar,
    scales: Scales | None,
) -> list[tuple[Float[Array, "_ _ _"], ...]]:
    """For each group the blocks of C of each of its slots (`combined`)."""
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
    """Do the velocities of all bodies of the group tell how its frames on them move? It has none
    on a body whose coordinates themselves are meant."""
    return all(marker.coordinates.posed or not marker.located for marker in group.markers)


def combined(
    group: ConstraintGroup,
    blocks: tuple[Float[Array, "_ _ _"], ...],
    scales: Scales | None,
) -> tuple[Float[Array, "_ _ _"], ...]:
    """The blocks of a group's slots: on a body that a constraint sees twice, the sum at the first
    slot and zero at the others. Where there are scales and nothing but rounding is left of an
    entry, it is zero: a frame that a body's coordinates do not move would have a row of rounding
    there, which would count like others, as rows are made of unit length. (No frame of a rigid body
    stands still so.) Derivatives stay."""
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
) -> SlotBlocks:
    """The blocks of C of each group's slots, rows in their joint's order, side by side in their
    buckets."""
    number, sizes = {own[0]: b for b, own in enumerate(pattern.bodies)}, sizes_of(pattern)
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


def mass_blocks(
    groups: Sequence[BodyGroup], pattern: Pattern, q: Float[Array, " nq"], t: Scalar
) -> tuple[BodyBlocks, BodyBlocks]:
    """M of each body, and its inverse."""
    sizes = sizes_of(pattern)
    parts: list[list[Float[Array, "2 c c _"]]] = [[] for _ in sizes.bodies]
    firsts: list[list[np.ndarray]] = [[] for _ in sizes.bodies]
    for group in groups:
        pair = map_parts(
            lambda b, x: jnp.stack([b.mass_matrix(x, t), b.inverse_mass_matrix(x, t)]),
            group.inertia,
            gather(q, group.indices["q"]),
        )
        size = sizes.columns[pair.shape[-1]]
        missing = (0, size - pair.shape[-1])
        padded = jnp.pad(jnp.moveaxis(pair, 0, -1), ((0, 0), missing, missing, (0, 0)))
        bucket = sizes.bodies.index(size)
        parts[bucket].append(padded)
        firsts[bucket].append(group.indices["v"][:, 0])
    both = []
    for own, first in zip(parts, firsts, strict=True):
        order = np.argsort(np.concatenate(first))
        blocks = jnp.concatenate(own, axis=-1)
        both.append(blocks if np.all(np.diff(order) > 0) else gather(blocks, order))
    return tuple(mass for mass, _ in both), tuple(inverse for _, inverse in both)


def _moving(group: ConstraintGroup, k: int, number: dict[int, int]) -> np.ndarray:
    """Which parts of a group have a moving body in slot k that is in none before."""
    first = [group.indices[f"v{j}"][:, 0].tolist() for j in range(k + 1)]
    return np.array(
        [
            i
            for i, column in enumerate(first[k])
            if column in number and column not in [own[i] for own in first[:k]]
        ],
        dtype=np.int32,
    )
