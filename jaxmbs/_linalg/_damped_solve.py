"""Solves with S + mu D at many states, from the blocks of C and M^-1 to M^-1 C^T y.

What `BlockKKTMatrices.factor` and `solve` do for one state is done here with the states as the last
axis (`_states_last.py`), behind the fronts of one level. (As one axis with these, gathers of single
states stood in the way of vector instructions: three times as long. So did the zero that padding is
read from, put in front of what the fronts pass on.)
"""

from collections.abc import Sequence
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from ._block_layout import Layout, SlotBucket
from ._multifrontal import Elimination
from ._selected_inverse import eliminated, Panel
from ._states_last import along_columns, apart, at_slots, flat_states, rows_at, sum_at_states
from ._sums import sum_along, sum_of_products, sum_of_terms


SlotsAtStates = tuple[Float[Array, "r c slots states"], ...]
BodiesAtStates = tuple[Float[Array, "c c bodies states"], ...]


class DampedFactor(NamedTuple):
    """The roots of the diagonal of S, 1 where that is zero, and what elimination leaves: panels of
    the fronts of each level, with the fronts as an axis of their own."""

    scale: Float[Array, "rows states"]
    panels: tuple[tuple[Panel, ...], ...]


def damped_factor(
    layout: Layout,
    blocks: SlotsAtStates,
    inverses: BodiesAtStates,
    mu: Float[Array, " states"],
) -> DampedFactor:
    """The factor of S + mu D. No body is a hub, and no two masses are coupled."""
    half = [
        _product(own, at_slots(inverses[bucket.bodies], bucket.indices["body"]))
        for own, bucket in zip(blocks, layout.slots, strict=True)
    ]
    squares = [sum_along(x * y, 1, apart=False) for x, y in zip(half, blocks, strict=True)]
    diagonal = sum_at_states(flat_states(squares), layout.indices["row_slot"])
    scale = apart(jnp.sqrt(jnp.where(diagonal > 0, diagonal, 1.0)))
    shift = jnp.where(diagonal > 0, mu[None], 1.0)
    by_slot = [_of_rows(1 / scale, bucket)[:, None] for bucket in layout.slots]
    left = [apart(x * own) for x, own in zip(half, by_slot, strict=True)]
    scaled = [apart(x * own) for x, own in zip(blocks, by_slot, strict=True)]
    values = _values(layout, left, scaled, shift)
    return DampedFactor(scale, _panels(layout.elimination, values))


def damped_solve(
    layout: Layout,
    blocks: SlotsAtStates,
    inverses: BodiesAtStates,
    factor: DampedFactor,
    right: Float[Array, "rows states"],
) -> tuple[Float[Array, "rows states"], Float[Array, "nv states"]]:
    """y = (S + mu D)^-1 right and M^-1 C^T y."""
    solved = _solved(layout.elimination, factor.panels, right / factor.scale)
    multipliers = apart(solved / factor.scale)
    products = [
        sum_of_products(own, _of_rows(multipliers, bucket)[:, None], 0, apart=False)
        for own, bucket in zip(blocks, layout.slots, strict=True)
    ]
    force = apart(sum_at_states(flat_states(products), layout.indices["column_slot"]))
    moved = [
        sum_of_products(own, sum_at_states(force, bucket["column"][None])[None], 1, apart=False)
        for own, bucket in zip(inverses, layout.bodies, strict=True)
    ]
    return multipliers, sum_at_states(flat_states(moved), layout.indices["column_body"][None] + 1)


def _product(
    blocks: Float[Array, "r c slots states"], inverses: Float[Array, "c c slots states"]
) -> Float[Array, "r c slots states"]:
    return apart(sum_of_products(blocks[:, :, None], inverses[None], 1, apart=False))


def _of_rows(x: Float[Array, "rows states"], bucket: SlotBucket) -> Float[Array, "r slots states"]:
    """Numbers of rows in the rows of each slot, zero in those that are padding."""
    return sum_at_states(x, bucket.indices["row"][None])


def _values(
    layout: Layout,
    left: list[Float[Array, "r c slots states"]],
    right: list[Float[Array, "r c slots states"]],
    shift: Float[Array, "rows states"],
) -> Float[Array, "values states"]:
    """The values of D^-1/2 S D^-1/2 + mu I; `left`: blocks of D^-1/2 C M^-1, `right`: of
    D^-1/2 C."""
    products = flat_states([along_columns(x, y) for x, y in zip(left, right, strict=True)])
    found = []
    for bucket in layout.constraints:
        own = sum_at_states(products, bucket["slot"])
        identity = np.eye(own.shape[0])[:, :, None, None]
        found.append(own + identity * sum_at_states(shift, bucket["row"][None])[None])
    for bucket in layout.pairs:
        first = at_slots(left[bucket.first], bucket.indices["first"])
        second = at_slots(right[bucket.second], bucket.indices["second"])
        found.append(along_columns(first, second))
    # Entries of the fronts are those of the matrix, zeros where there is none, ones to pad with.
    known = jnp.zeros((2, shift.shape[1]), shift.dtype).at[1].set(1.0)
    return flat_states([known, *found])


def _panels(
    elimination: Elimination, values: Float[Array, "values states"]
) -> tuple[tuple[Panel, ...], ...]:
    """The matrix with these values, eliminated front by front."""
    updates, found = [], []
    for level in elimination.levels:
        indices = level.indices
        # Entries of the fronts are counted from 0: zeros where there are none.
        matrix = sum_of_terms([rows_at(values, some) for some in indices["entries"]])
        corner = jnp.zeros((level.boundary, level.boundary, *matrix.shape[-2:]), values.dtype)
        if indices["children"].size:
            change = _sums(updates, indices["children"], values)
            matrix, corner = matrix + change[: level.own], change[level.own :, level.own :]
        panels, update = eliminated(apart(matrix), corner)
        found.append(tuple(panels))
        updates.append(update)
    return tuple(found)


def _solved(
    elimination: Elimination,
    factors: tuple[tuple[Panel, ...], ...],
    right: Float[Array, "size states"],
) -> Float[Array, "size states"]:
    """The solution of the matrix with these factors, which begin with those of the leaves."""
    updates, fronts = [], []
    for level, panels in zip(elimination.levels, factors, strict=True):
        indices, size = level.indices, level.own + level.boundary
        vector = _sums([right], indices["right"][None], right)
        rest = jnp.zeros((size - level.own, *vector.shape[-2:]), right.dtype)
        if indices["updates"].size:
            change = _sums(updates, indices["updates"], right)
            vector, rest = vector + change[: level.own], change[level.own :]
        forward, later = [], jnp.concatenate([vector, rest])
        for panel in panels:
            width = panel.reciprocals.shape[0]
            own, later = later[:width], later[width:]
            forward.append(own)
            if later.shape[0]:
                later = apart(later - sum_of_products(panel.gain, own[None], 1, apart=False))
        fronts.append((panels, forward))
        updates.append(later)
    solved = []
    for level, (panels, forward) in zip(
        reversed(elimination.levels), reversed(fronts), strict=True
    ):
        later = _sums(solved, level.indices["later"][None], right)
        for panel, own in zip(reversed(panels), reversed(forward), strict=True):
            found = sum_of_products(panel.inverse, own[None], 1, apart=False) * panel.reciprocals
            found = sum_of_products(panel.inverse, apart(found)[:, None], 0, apart=False)
            if later.shape[0]:
                found = found - sum_of_products(panel.gain, later[:, None], 0, apart=False)
            later = jnp.concatenate([apart(found), later])
        solved.append(later[: level.own])
    return _sums(solved, elimination.indices["solution"][None], right)


def _sums(
    parts: Sequence[Float[Array, "... states"]],
    places: Int[np.ndarray, "k *shape n"],
    like: Float[Array, "... states"],
) -> Float[Array, "*shape n states"]:
    """Sums of entries of the parts, counted from 1, those at the k-th of each place; 0 is
    nothing. States and type are those of `like`."""
    if parts and places.size:
        return sum_at_states(flat_states(parts), places)
    return jnp.zeros((*places.shape[1:], like.shape[-1]), like.dtype)
