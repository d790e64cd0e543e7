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
from ._arrays import (
    along_columns,
    apart,
    at_slots,
    flat_states,
    rows_at,
    states_last,
    sum_along,
    sum_at_states,
    sum_of_terms,
)
from ._block_layout import Layout
from ._multifrontal import in_order, select, selected_inverse, Selection


# Sets of rows, each within one constraint.
Rows = tuple[tuple[int, ...], ...]

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
        products = flat_states([along_columns(x, x) for x in unit])
        values = _values(unit, products, layout, regularisation)
        both = selected_inverse(selection, values)
        states = values.shape[-1] // len(_SHIFTS)
        found = [x.reshape(*x.shape[:-1], len(_SHIFTS), states) for x in both]
        gram = apart(sum_at_states(products, own))
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
    lengths = sum_at_states(flat_states(squares), layout.indices["row_slot"])
    inverse = 1 / jnp.sqrt(jnp.where(lengths > 0, lengths, 1.0))
    return [
        apart(own * sum_at_states(inverse, bucket.indices["row"][None])[:, None])
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
        own.append(sum_at_states(products, bucket["slot"]))
        present.append(np.eye(len(bucket["row"]))[:, :, None] * (bucket["row"] > 0))
    pairs = []
    for bucket in layout.pairs:
        first = at_slots(unit[bucket.first], bucket.indices["first"])
        second = at_slots(unit[bucket.second], bucket.indices["second"])
        pairs.append(along_columns(first, second))
    hubs = [
        at_slots(some, on["place"])
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
    values = apart(flat_states([*own, *pairs, *hubs]))
    diagonal = np.concatenate([x.ravel() for x in present])
    shifted = np.pad(diagonal, (0, values.shape[0] - diagonal.size))[:, None, None]
    shift = regularisation * jnp.array(_SHIFTS, values.dtype)[:, None]
    return apart((values[:, None] + shifted * shift[None]).reshape(values.shape[0], -1))


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
