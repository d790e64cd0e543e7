"""Solves with S + mu D at many states, from the blocks of C and M^-1 to M^-1 C^T y.

What `BlockKKTMatrices.factor` and `solve` do for one state is done here with the states as the last
axis (`_states_last.py`). The fronts of one level and the states are one axis, along which the
arithmetic runs.
"""

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
    states = values.shape[1]
    matrices, found = jnp.zeros((1, states), values.dtype), []
    for level in elimination.levels:
        indices = level.indices
        matrix = _sums(values, indices["entries"])
        corner = jnp.zeros((level.boundary, level.boundary, matrix.shape[-1]), values.dtype)
        if indices["children"].size:
            change = _sums(matrices, indices["children"])
            matrix, corner = matrix + change[: level.own], change[level.own :, level.own :]
        panels, update = eliminated(apart(matrix), corner)
        found.append(tuple(Panel(*(_by_front(x, states) for x in panel)) for panel in panels))
        matrices = jnp.concatenate([matrices, update.reshape(-1, states)])
    return tuple(found)


def _by_front(x: Float[Array, "*shape lanes"], states: int) -> Float[Array, "*shape n states"]:
    return x.reshape(*x.shape[:-1], x.shape[-1] // states, states)


def _as_lanes(panel: Panel) -> Panel:
    return Panel(*(x.reshape(*x.shape[:-2], x.shape[-2] * x.shape[-1]) for x in panel))


def _solved(
    elimination: Elimination,
    factors: tuple[tuple[Panel, ...], ...],
    right: Float[Array, "size states"],
) -> Float[Array, "size states"]:
    """The solution of the matrix with these factors, which begin with those of the leaves."""
    states = right.shape[1]
    zero = jnp.zeros((1, states), right.dtype)
    pool, vectors, fronts = jnp.concatenate([zero, right]), zero, []
    for level, split in zip(elimination.levels, factors, strict=True):
        indices, size = level.indices, level.own + level.boundary
        panels = [_as_lanes(panel) for panel in split]
        vector = _sums(pool, indices["right"][None])
        rest = jnp.zeros((size - level.own, vector.shape[-1]), right.dtype)
        if indices["updates"].size:
            change = _sums(vectors, indices["updates"])
            vector, rest = vector + change[: level.own], change[level.own :]
        forward, later = [], jnp.concatenate([vector, rest])
        for panel in panels:
            width = panel.reciprocals.shape[0]
            own, later = later[:width], later[width:]
            forward.append(own)
            if later.shape[0]:
                later = apart(later - sum_of_products(panel.gain, own[None], 1, apart=False))
        fronts.append((panels, forward))
        vectors = jnp.concatenate([vectors, later.reshape(-1, states)])
    solved = zero
    for level, (panels, forward) in zip(
        reversed(elimination.levels), reversed(fronts), strict=True
    ):
        later = _sums(solved, level.indices["later"][None])
        for panel, own in zip(reversed(panels), reversed(forward), strict=True):
            found = sum_of_products(panel.inverse, own[None], 1, apart=False) * panel.reciprocals
            found = sum_of_products(panel.inverse, apart(found)[:, None], 0, apart=False)
            if later.shape[0]:
                found = found - sum_of_products(panel.gain, later[:, None], 0, apart=False)
            later = jnp.concatenate([apart(found), later])
        solved = jnp.concatenate([solved, later[: level.own].reshape(-1, states)])
    return rows_at(solved, elimination.indices["solution"])


def _sums(
    pool: Float[Array, "entries states"], places: Int[np.ndarray, "k *shape n"]
) -> Float[Array, "*shape lanes"]:
    """Sums of entries of the pool, those at the k-th of each place, with fronts and states as one
    axis."""
    shape = *places.shape[1:-1], places.shape[-1] * pool.shape[1]
    if not places.size:
        return jnp.zeros(shape, pool.dtype)
    return sum_of_terms([rows_at(pool, some) for some in places]).reshape(shape)
