"""Numbers that are computed once, however many operations read them.

XLA puts what is cheap into everything that reads it. For one state a barrier prevents that; where
`vmap` has added states, the barrier is gone before kernels are made (jaxlib 0.10, CPU), and a solve
over the levels of a factor computes the first of them again for each entry of the last. What XLA
does not put into a reader that wants an entry more than once is a gather (see `_states_last.py`):
so where there are many states, a gather of all of them stands between one step and the next.
"""

from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.core import ShapedArray
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir
from jaxtyping import Array, Float


def kept(x: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
    """The same numbers."""
    return _kept.bind(x, states=False)


_kept = Primitive("kept")

# Whole states, the number of a state at a time.
_STATES = lax.GatherDimensionNumbers(
    offset_dims=(1,), collapsed_slice_dims=(0,), start_index_map=(0,)
)


@_kept.def_impl
def _keep(x: Any, *, states: bool) -> Any:
    if not states or not x.size:
        return lax.optimization_barrier(x)
    rows = jnp.reshape(x, (x.shape[0], -1))
    found = lax.gather(
        rows,
        np.arange(rows.shape[0], dtype=np.int32)[:, None],
        _STATES,
        slice_sizes=(1, rows.shape[1]),
        mode=lax.GatherScatterMode.PROMISE_IN_BOUNDS,
    )
    return found.reshape(x.shape)


@_kept.def_abstract_eval
def _shape(x: Any, *, states: bool) -> Any:
    del states
    return ShapedArray(x.shape, x.dtype)


def _transposed(cotangent: Any, x: Any, *, states: bool) -> list[Any]:
    if isinstance(cotangent, ad.Zero):
        return [ad.Zero(x.aval)]
    return [_kept.bind(cotangent, states=states)]


def _batched(arguments: Any, axes: Any, *, states: bool) -> Any:
    del states
    (x,), (axis,) = arguments, axes
    return _kept.bind(jnp.moveaxis(x, axis, 0), states=True), 0


mlir.register_lowering(_kept, mlir.lower_fun(_keep, multiple_results=False))
ad.deflinear2(_kept, _transposed)
batching.primitive_batchers[_kept] = _batched
