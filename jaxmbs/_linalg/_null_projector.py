"""The orthogonal projector on the left null space of C, on the diagonal blocks of its rows.

With rows of unit length, mu (C C^T + mu I)^-1 tends to that projector P as mu tends to 0: to an
eigenvalue s of C C^T it gives the weight mu / (s + mu). What is known at mu and at mu / 2 tells
apart what is null (the same at both) from what is small.
"""

import functools
import operator

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float, Int

from .._custom_types import RealScalarLike
from .._indices import Indices
from ._cholesky import cholesky, cholesky_solve
from ._multifrontal import Elimination
from ._scaling import normalise_rows
from ._selected_inverse import selected_inverse
from ._selection import select, Selection
from ._states_last import states_last


# Sets of rows, each within one constraint.
Rows = tuple[tuple[int, ...], ...]


class NullProjector(eqx.Module):
    """Diagonal blocks on sets of rows, zero where a set has fewer than r rows.

    `gram`: of C C^T, C with rows of unit length. `projector`: of mu (C C^T + mu I)^-1 for mu and
    for mu / 2. The trace of a projector is the sum of the traces of its blocks where the sets
    are all rows.
    """

    gram: Float[Array, "r r sets"]
    projector: Float[Array, "2 r r sets"]


def dense_null_projector(
    matrix: Float[Array, "rows nv"], sets: Rows, regularisation: RealScalarLike
) -> NullProjector:
    """From C as it is."""
    unit, _ = normalise_rows(matrix)
    gram = unit @ unit.T
    identity = jnp.eye(gram.shape[0], dtype=gram.dtype)

    def projector(mu):
        return mu * cholesky_solve(cholesky(gram + mu * identity), identity)

    rows = _padded(sets)

    def blocks(square):
        padded = jnp.pad(square, ((1, 0), (1, 0)))
        return padded[rows[:, None], rows[None, :]]

    both = jax.vmap(projector)(jnp.array([1.0, 0.5], gram.dtype) * regularisation)
    return NullProjector(blocks(gram), jax.vmap(blocks)(both))


def block_null_projector(
    blocks: Float[Array, "r c slots"],
    indices: Indices,
    elimination: Elimination,
    sets: Rows,
    regularisation: RealScalarLike,
) -> NullProjector:
    """From C in the blocks, and with the layout, of a `BlockKKTMatrices`."""
    selection = select(elimination, sets)
    own = _own_products(indices["slot_row"], sets)

    def at_states(
        blocks: Float[Array, "r c slots states"],
    ) -> tuple[Float[Array, "w w sets states"], Float[Array, "2 w w sets states"]]:
        unit = _unit_rows(blocks, indices)
        products = _along_columns(unit, unit)
        projector = _projector(unit, products, indices, regularisation, selection)
        return _sum_of(products, own), projector

    return NullProjector(*states_last(at_states)(blocks))


def _unit_rows(
    blocks: Float[Array, "r c slots states"], indices: Indices
) -> Float[Array, "r c slots states"]:
    columns = [blocks[:, j] * blocks[:, j] for j in range(blocks.shape[1])]
    squares = _sum_of(functools.reduce(operator.add, columns), indices["row_slot"])
    inverse = 1 / jnp.sqrt(jnp.where(squares > 0, squares, 1.0))
    padded = jnp.concatenate([jnp.zeros_like(inverse[:1]), inverse])
    return lax.optimization_barrier(blocks * padded[indices["slot_row"]][:, None])


def _projector(
    unit: Float[Array, "r c slots states"],
    products: Float[Array, "r r slots states"],
    indices: Indices,
    regularisation: RealScalarLike,
    selection: Selection,
) -> Float[Array, "2 r r sets states"]:
    """The values of C C^T + mu I are laid out as those of S + mu I, with M = I."""
    states = unit.shape[-1]
    own = _sum_of(products, indices["constraint_slot"])
    present = np.eye(own.shape[0])[:, :, None] * (indices["constraint_row"] > 0)
    present = jnp.asarray(present[..., None], unit.dtype)
    hubs = indices["body_column"][:, indices["hub_body"]] > 0
    mass = jnp.asarray(np.eye(hubs.shape[0])[:, :, None] * hubs, unit.dtype)
    others = [
        _along_columns(unit[:, :, indices["first"]], unit[:, :, indices["second"]]),
        unit[:, :, indices["hub_slot"]],
        jnp.broadcast_to(-mass[..., None], (*mass.shape, states)),
    ]

    def projector(mu):
        values = [own + mu * present, *others]
        flat = jnp.concatenate([x.reshape(-1, states) for x in values])
        return mu * selected_inverse(selection, flat)

    # One after the other: what both need at once does not fit into a processor's cache.
    return lax.map(projector, jnp.array([1.0, 0.5], unit.dtype) * regularisation)


def _along_columns(
    first: Float[Array, "r c n states"], second: Float[Array, "r c n states"]
) -> Float[Array, "r r n states"]:
    """Products of blocks, first second^T."""
    first, second = lax.optimization_barrier((first, second))
    terms = [first[:, None, j] * second[None, :, j] for j in range(first.shape[1])]
    return lax.optimization_barrier(functools.reduce(operator.add, terms))


def _sum_of(
    values: Float[Array, "*shape states"], indices: Int[np.ndarray, "k *sums"]
) -> Float[Array, "*sums states"]:
    """Sums of the values at positions counted from 1; 0 is nothing."""
    flat = values.reshape(-1, values.shape[-1])
    pool = jnp.concatenate([jnp.zeros_like(flat[:1]), flat])
    total = jnp.zeros((*indices.shape[1:], pool.shape[1]), pool.dtype)
    for some in indices:
        total = total + lax.optimization_barrier(pool[some])
    return total


def _own_products(
    slot_row: Int[np.ndarray, "r slots"], sets: Rows
) -> Int[np.ndarray, "k r r sets"]:
    """Where the products of the rows of each set with each other stand among the products
    (r, r, slots) of the rows of each slot, one for each of a constraint's bodies."""
    r, slots = slot_row.shape
    found: dict[int, list[tuple[int, int]]] = {}
    for i, s in zip(*np.nonzero(slot_row), strict=True):
        found.setdefault(int(slot_row[i, s]) - 1, []).append((int(s), int(i)))
    bodies = max((len(many) for many in found.values()), default=0)
    width = max((len(some) for some in sets), default=0)
    result = np.zeros((bodies, width, width, len(sets)), dtype=np.int32)
    for g, some in enumerate(sets):
        for a, row in enumerate(some):
            for b, other in enumerate(some):
                pairs = zip(found[row], found[other], strict=True)
                for k, ((s, i), (_, j)) in enumerate(pairs):
                    result[k, a, b, g] = 1 + (i * r + j) * slots + s
    return result


def _padded(sets: Rows) -> Int[np.ndarray, "r sets"]:
    """The rows of each set as a column, counted from 1 and filled up with 0."""
    width = max((len(some) for some in sets), default=0)
    result = np.zeros((width, len(sets)), dtype=np.int32)
    for k, some in enumerate(sets):
        result[: len(some), k] = np.array(some, dtype=np.int32) + 1
    return result
