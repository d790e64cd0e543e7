"""Entries of an inverse on the pattern of its factor, from the roots of the tree to its leaves.

Eliminating the own unknowns o of a front with boundary b leaves A = L D L^T. With
G = L_bo L_oo^-1 the inverse Z of the whole matrix satisfies

    Z_bo = -Z_bb G        Z_oo = L_oo^-T D^-1 L_oo^-1 - G^T Z_bo

(Takahashi's recurrence: Erisman & Tinney 1975, Comm. ACM 18, eqs. 5-7, here in blocks), and Z_bb is
known by then, since the whole boundary is in the parent's front. So all entries of Z on the pattern
of the factor cost about as much as the factor, and no other one is ever formed.

They are wanted at many states at once. Everything here has the states behind the fronts as its
last axis, and fronts are grouped by size instead of padded: then the arithmetic runs along
fronts and states together and does nothing in vain. Where blocks stand is laid out in
`_selection`; what is computed once and read often is kept `apart` (`_states_last`).
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float

from ._selection import MATRIX, Plane, Selection
from ._states_last import apart, rows_at
from ._sums import sum_of_terms


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
