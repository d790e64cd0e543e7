"""Blocks of C and M as the block descriptor wants them: padded, parts along the last axis."""

from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._custom_types import Scalar
from .._linalg import ConstraintBlock, gather, Pattern
from . import _groups
from ._groups import BodyGroup, ConstraintGroup, map_parts
from ._markers import directions_of


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


def blocks_of(
    groups: Sequence[ConstraintGroup],
    coordinates: Float[Array, " extended_q"],
    velocities: Float[Array, " extended_v"],
    t: Scalar,
) -> list[tuple[Float[Array, "n rows nv"], ...]]:
    """For each group the blocks of C of each of its slots."""
    found = directions_of(groups, coordinates, velocities)
    return [
        map_parts(_groups.blocks, group.primitives, own.frames, own.changes, own.rates, shared=(t,))
        for group, own in zip(groups, found, strict=True)
    ]


def constraint_blocks(
    groups: Sequence[ConstraintGroup],
    pattern: Pattern,
    coordinates: Float[Array, " extended_q"],
    velocities: Float[Array, " extended_v"],
    t: Scalar,
) -> Float[Array, "r c slots"]:
    """The derivative of each constraint's rows along the velocities of each of its moving
    bodies."""
    return padded_blocks(
        groups, pattern, blocks_of(groups, coordinates, velocities, t), coordinates.dtype
    )


def padded_blocks(
    groups: Sequence[ConstraintGroup],
    pattern: Pattern,
    found: Sequence[tuple[Float[Array, "_ _ _"], ...]],
    dtype: Any,
) -> Float[Array, "r c slots"]:
    """The blocks of C of each group's slots, rows in their joint's order, side by side."""
    number = {own[0]: b for b, own in enumerate(pattern.bodies)}
    r = max((len(slot.rows) for slot in pattern.slots), default=0)
    c = max(len(columns) for columns in pattern.bodies)
    parts = [jnp.zeros((r, c, 0), dtype)]
    for group, blocks in zip(groups, found, strict=True):
        for k, block in enumerate(blocks):
            moving = _moving(group, k, number)
            own = jnp.moveaxis(block, 0, -1)
            own = gather(own, moving) if len(moving) < own.shape[-1] else own
            order = group.indices["order"]
            ordered = own if np.array_equal(order, np.arange(len(order))) else own[order]
            missing = ((0, r - ordered.shape[0]), (0, c - ordered.shape[1]), (0, 0))
            parts.append(jnp.pad(ordered, missing) if (r, c) != ordered.shape[:2] else ordered)
    return jnp.concatenate(parts, axis=-1)


def mass_blocks(
    groups: Sequence[BodyGroup], pattern: Pattern, q: Float[Array, " nq"]
) -> tuple[Float[Array, "c c bodies"], Float[Array, "c c bodies"]]:
    """M of each body, and its inverse."""
    c = max(len(columns) for columns in pattern.bodies)
    parts, firsts = [], []
    for group in groups:
        pair = map_parts(
            lambda b, x: jnp.stack([b.mass_matrix(x), b.inverse_mass_matrix(x)]),
            group.inertia,
            gather(q, group.indices["q"]),
        )
        missing = (0, c - pair.shape[-1])
        padded = jnp.pad(jnp.moveaxis(pair, 0, -1), ((0, 0), missing, missing, (0, 0)))
        parts.append(padded)
        firsts.append(group.indices["v"][:, 0])
    order = np.argsort(np.concatenate(firsts))
    blocks = jnp.concatenate(parts, axis=-1)
    mass, inverse = blocks if np.all(np.diff(order) > 0) else gather(blocks, order)
    return mass, inverse


def _moving(group: ConstraintGroup, k: int, number: dict[int, int]) -> np.ndarray:
    """Which parts of a group have a moving body in slot k."""
    first = group.indices[f"v{k}"][:, 0].tolist()
    return np.array([i for i, column in enumerate(first) if column in number], dtype=np.int32)
