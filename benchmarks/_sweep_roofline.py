"""How much of what the device can do is used."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from _timing import best


def ceilings(dtype: str) -> dict[str, float]:
    """Measured: bytes a second of a copy (read and written), and multiplications and additions a
    second of a product of matrices, which is the fastest there is."""
    on_cpu = jax.default_backend() == "cpu"
    long = jnp.ones((2**25 if on_cpu else 2**28,), dtype)
    copied = jax.jit(lambda x: x + 1)
    seconds = best(lambda: jax.block_until_ready(copied(long)), 3)
    size = 1024 if on_cpu else 8192
    square = jnp.ones((size, size), dtype)
    product = jax.jit(lambda x: jnp.matmul(x, x, precision=jax.lax.Precision.HIGHEST))
    turn = best(lambda: jax.block_until_ready(product(square)), 3)
    return {
        "copy_bytes_per_second": 2 * long.nbytes / seconds,
        "operations_per_second": 2 * size**3 / turn,
    }


def counted(one: Callable[..., Any], system: Any, qs: Any) -> dict[str, float]:
    """Operations and bytes of one configuration as the compiler counts them, for a batch of the
    width that is used; what stands inside calls to LAPACK is not counted, and bytes include
    those that stay in the cache."""
    compiled: Any = jax.jit(jax.vmap(one, in_axes=(None, 0))).lower(system, qs).compile()
    cost = compiled.cost_analysis()
    return {
        "operations": cost["flops"] / len(qs),
        "bytes": cost["bytes accessed"] / len(qs),
    }


def fractions(rate: float, counts: dict[str, float], limits: dict[str, float]) -> dict[str, float]:
    """Of both ceilings, at this many configurations a second."""
    return {
        "of_operations": rate * counts["operations"] / limits["operations_per_second"],
        "of_copy": rate * counts["bytes"] / limits["copy_bytes_per_second"],
    }
