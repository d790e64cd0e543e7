from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp


def directional_derivative(function: Callable[[Any], Any], primal: Any, tangent: Any) -> Any:
    """Derivative of a function whose results are floating-point arrays, along a tangent in which
    None marks what does not change. Results that do not change have the derivative zero, not None:
    linear solvers cannot be transposed without it."""
    value, change = eqx.filter_jvp(function, (primal,), (tangent,))
    return jax.tree.map(
        lambda x, dx: jnp.zeros_like(x) if dx is None else dx,
        value,
        change,
        is_leaf=lambda x: x is None,
    )
