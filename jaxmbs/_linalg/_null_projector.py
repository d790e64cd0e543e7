"""The orthogonal projector on the left null space of C, on the diagonal blocks of its rows.

With rows of unit length, mu (C C^T + mu I)^-1 tends to that projector P as mu tends to 0: to an
eigenvalue s of C C^T it gives the weight mu / (s + mu). The results at mu and at mu / 2 separate
the null space (the same at both) from small singular values.
"""

from collections.abc import Sequence

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from .._custom_types import RealScalarLike
from ._block_layout import Layout
from ._selected_inverse import in_order, selected_inverse
from ._selection import select, Selection
from ._states_last import apart, rows_at, states_last
from ._sums import sum_along, sum_of_products, sum_of_terms


# Sets of rows, each within one constraint.
Rows = tuple[tuple[int, ...], ...]

# Sums over at most this many columns are written out.
_WRITTEN_OUT = 16

# The multiples of mu.
_SHIFTS = (1.0, 0.5)


class NullProjector(eqx.Module):
    """Diagonal blocks on sets of rows, zero where a set has fewer than r rows.

    `gram`: of C C^T, C with rows of unit length. For mu and for mu / 2: `projector`, of
    P = mu (C C^T + mu I)^-1; `measure`, tr(P_XX (C C^T)_XX) for each set X; `trace`, that of P
    where the sets are all rows.
    """

    gram: Float[Array, "r r sets"]
    projector: Float[Array, "2 r r sets"]
    measure: Float[Array, "2 sets"]
    trace: Float[Array, "2"]


def block_null_projector(
    blocks: tuple[Float[Array, "_ _ _"], ...],
    layout: Layout,
    sets: Rows,
    regularisation: RealScalarLike,
) -> NullProjector:
    """The projector from C in the blocks of a `BlockKKTMatrices`, and its layout."""
    selection = select(layout.elimination, sets)
    own = _own_products(layout, sets)
    if not sets:
        none = jnp.zeros((2, 0, 0, 0), float)
        return NullProjector(none[0], none, none.reshape(2, 0), none.sum((1, 2, 3)))

    def at_states(*blocks: Float[Array, "_ _ _ states"]) -> tuple[Float[Array, "..."], ...]:
        unit = _unit_rows(blocks, layout)
        products = _flat([_along_columns(x, x) for x in unit])
        values = _values(unit, products, layout, regularisation)
        both = selected_inverse(selection, values)
        states = values.shape[-1] // len(_SHIFTS)
        found = [x.reshape(*x.shape[:-1], len(_SHIFTS), states) for x in both]
        gram = apart(_sum_of(products, own))
        mu = jnp.asarray(regularisation, gram.dtype) * jnp.array(_SHIFTS, gram.dtype)[:, None]
        measure, trace = _measured(gram, found, selection)
        projector = jnp.moveaxis(mu[None, None, None] * in_order(selection, found, 2), 3, 0)
        return gram, projector, jnp.moveaxis(mu[None] * measure, 1, 0), mu * trace

    return NullProjector(*states_last(at_states)(*blocks))


def _measured(
    gram: Float[Array, "r r sets states"],
    found: Sequence[Float[Array, "r r _ 2 states"]],
    selection: Selection,
) -> tuple[Float[Array, "sets 2 states"], Float[Array, "2 states"]]:
    """`measure` and `trace`, not yet multiplied by mu."""
    r, _, sets, states = gram.shape
    weights = gram.reshape(-1, states)
    # The position of each set, in the order of the groups.
    place = np.argsort(selection.order)
    measures, traces, end = [], [], 0
    for inverse in found:
        count = inverse.shape[2]
        if not count:
            continue
        of_group = np.arange(r * r)[:, None] * sets + place[end : end + count]
        end += count
        own = rows_at(weights, of_group)[:, :, None]
        square = inverse.reshape(r * r, count, len(_SHIFTS), states)
        measures.append(sum_of_terms([square[k] * own[k] for k in range(r * r)]))
        traces.append(sum_along(sum_of_terms([inverse[k, k] for k in range(r)]), 0))
    return in_order(selection, measures, 0), sum_of_terms(traces)


def _unit_rows(
    blocks: Sequence[Float[Array, "_ _ _ states"]], layout: Layout
) -> list[Float[Array, "_ _ _ states"]]:
    squares = [sum_along(own * own, 1, apart=False) for own in blocks]
    lengths = _sum_of(_flat(squares), layout.indices["row_slot"])
    inverse = 1 / jnp.sqrt(jnp.where(lengths > 0, lengths, 1.0))
    return [
        apart(own * _sum_of(inverse, bucket.indices["row"][None])[:, None])
        for own, bucket in zip(blocks, layout.slots, strict=True)
    ]


def _values(
    unit: Sequence[Float[Array, "_ _ _ states"]],
    products: Float[Array, "entries states"],
    layout: Layout,
    regularisation: RealScalarLike,
) -> Float[Array, "values both_states"]:
    """The values of C C^T + mu I, laid out as those of S + mu I, with M = I; at all states for
    mu, then at all for mu / 2: batched, they are one loop of each kind, not two."""
    states = products.shape[-1]
    own, present = [], []
    for bucket in layout.constraints:
        own.append(_sum_of(products, bucket["slot"]))
        present.append(np.eye(len(bucket["row"]))[:, :, None] * (bucket["row"] > 0))
    pairs = []
    for bucket in layout.pairs:
        first = _at_slots(unit[bucket.first], bucket.indices["first"])
        second = _at_slots(unit[bucket.second], bucket.indices["second"])
        pairs.append(_along_columns(first, second))
    hubs = [
        _at_slots(some, on["place"])
        for some, on in zip(unit, layout.hub_slots, strict=True)
        if on["place"].size
    ]
    for bucket, on in zip(layout.bodies, layout.hub_bodies, strict=True):
        if on["place"].size:
            there = bucket["column"][:, on["place"]] > 0
            mass = jnp.asarray(np.eye(there.shape[0])[:, :, None] * there, products.dtype)
            hubs.append(jnp.broadcast_to(-mass[..., None], (*mass.shape, states)))
    for bucket in layout.couplings.buckets if layout.couplings else ():
        size = [len(layout.bodies[which]["column"]) for which in (bucket.first, bucket.second)]
        count = len(bucket.indices["first"])
        hubs.append(jnp.zeros((*size, count, states), products.dtype))
    values = apart(_flat([*own, *pairs, *hubs]))
    diagonal = np.concatenate([x.ravel() for x in present])
    shifted = np.pad(diagonal, (0, values.shape[0] - diagonal.size))[:, None, None]
    shift = regularisation * jnp.array(_SHIFTS, values.dtype)[:, None]
    return apart((values[:, None] + shifted * shift[None]).reshape(values.shape[0], -1))


def _flat(parts: Sequence[Float[Array, "... states"]]) -> Float[Array, "entries states"]:
    """The entries of the concatenated arrays; at least one array."""
    flat = [part.reshape(-1, part.shape[-1]) for part in parts]
    return flat[0] if len(flat) == 1 else jnp.concatenate(flat)


def _at_slots(
    blocks: Float[Array, "r c slots states"], slots: Int[np.ndarray, " n"]
) -> Float[Array, "r c n states"]:
    r, c, count, states = blocks.shape
    places = np.arange(r * c).reshape(r, c, 1) * count + slots
    return apart(rows_at(blocks.reshape(-1, states), places))


def _along_columns(
    first: Float[Array, "r c n states"], second: Float[Array, "r c n states"]
) -> Float[Array, "r r n states"]:
    """Products of blocks, first second^T."""
    if first.shape[1] > _WRITTEN_OUT:
        return apart(sum_of_products(first[:, None], second[None], 2))
    terms = [first[:, None, j] * second[None, :, j] for j in range(first.shape[1])]
    return apart(sum_of_terms(terms))


def _sum_of(
    values: Float[Array, "*shape states"], indices: Int[np.ndarray, "k *sums"]
) -> Float[Array, "*sums states"]:
    """Sums of the values at positions counted from 1; 0 is nothing."""
    flat = values.reshape(-1, values.shape[-1])
    if not flat.size:
        return jnp.zeros((*indices.shape[1:], flat.shape[1]), values.dtype)
    parts = [rows_at(flat, np.maximum(some - 1, 0)) for some in indices]
    kept = [
        part if np.all(some > 0) else jnp.where((some > 0)[..., None], part, 0.0)
        for part, some in zip(parts, indices, strict=True)
    ]
    return sum_of_terms(kept)


def _own_products(layout: Layout, sets: Rows) -> Int[np.ndarray, "k r r sets"]:
    """Positions of the products of the rows of each set with each other among the products (r, r,
    slots) of the rows of each slot, one for each of a constraint's bodies."""
    found: dict[int, list[tuple[int, np.ndarray]]] = {}
    start = 1
    for bucket in layout.slots:
        r, slots = bucket.indices["row"].shape
        entries = start + np.arange(r * r * slots).reshape(r, r, slots)
        start += entries.size
        for s in range(slots):
            for i in np.flatnonzero(bucket.indices["row"][:, s]):
                row = int(bucket.indices["row"][i, s]) - 1
                found.setdefault(row, []).append((int(i), entries[:, :, s]))
    bodies = max((len(many) for many in found.values()), default=0)
    width = max((len(some) for some in sets), default=0)
    result = np.zeros((bodies, width, width, len(sets)), dtype=np.int32)
    for g, some in enumerate(sets):
        for a, row in enumerate(some):
            for b, other in enumerate(some):
                pairs = zip(found[row], found[other], strict=True)
                for k, ((i, block), (j, _)) in enumerate(pairs):
                    result[k, a, b, g] = block[i, j]
    return result
