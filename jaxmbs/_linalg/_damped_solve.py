"""One solve with S + mu D at many states, from the blocks of C and M^-1 to M^-1 C^T y.

What `BlockKKTMatrices.factor` and `solve` do for one state is done here with the states as the last
axis (`_states_last.py`), in one function, since the factor is needed once.
"""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from . import _multifrontal
from ._block_layout import Layout, SlotBucket
from ._states_last import along_columns, apart, at_slots, flat_states, sum_at_states
from ._sums import sum_along, sum_of_products


SlotsAtStates = tuple[Float[Array, "r c slots states"], ...]


def damped_solve(
    layout: Layout,
    blocks: SlotsAtStates,
    inverses: tuple[Float[Array, "c c bodies states"], ...],
    right: Float[Array, "rows states"],
    mu: Float[Array, " states"],
) -> tuple[Float[Array, "rows states"], Float[Array, "nv states"]]:
    """y = (S + mu D)^-1 right and M^-1 C^T y. No body is a hub, and no two masses are coupled."""
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
    beside = [apart(x * own) for x, own in zip(blocks, by_slot, strict=True)]
    values = _values(layout, left, beside, shift)
    levels = _multifrontal.factor(layout.elimination, values)
    solved = _multifrontal.solve(layout.elimination, levels, right / scale)
    multipliers = apart(solved / scale)
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
    return apart(flat_states(found))
