"""Derivatives of vector functions, forward and reverse, against central differences.

One compiled program gives the value and both derivatives, and the differences are its values at
other points: to compile is what these tests cost.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np


# Of fourth order: truncation by the step's fourth power, rounding over the step.
NODES = np.array([-2.0, -1.0, 1.0, 2.0])
WEIGHTS = np.array([1.0, -8.0, 8.0, -1.0]) / 12


class Slopes(NamedTuple):
    """f (m,), J d and J^T w."""

    value: Any
    pushed: Any
    pulled: Any


@eqx.filter_jit
def slopes(function: Callable[[Any], Any], x: Any, direction: Any, weight: Any) -> Slopes:
    """Of a function from a tree of arrays to a vector."""
    arrays, static = eqx.partition(x, eqx.is_inexact_array)
    value, push = jax.linearize(lambda a: function(eqx.combine(a, static)), arrays)
    return Slopes(value, push(direction), jax.linear_transpose(push, arrays)(weight)[0])


def difference(values: Sequence[Any], step: float) -> Any:
    """From values at the nodes."""
    return sum(w * x for w, x in zip(WEIGHTS, values, strict=True)) / step


def assert_slopes(pushed: Any, differences: Any, floor: Any, tolerance: float = 1e-6) -> None:
    """Along every direction (k, m), relative to the largest slope of each function, or to the
    `floor` where that is larger."""
    assert np.isfinite(np.asarray(pushed)).all()
    size = np.maximum(np.max(np.abs(differences), axis=0), floor)
    error = np.abs(pushed - differences) / np.where(size > 0, size, 1.0)[None]
    direction, function = np.unravel_index(np.argmax(error), error.shape)
    assert error.max() <= tolerance, (
        f"direction {direction}, function {function}: {pushed[direction, function]} and by "
        f"differences {differences[direction, function]}"
    )


def check(
    function: Callable[[Any], Any],
    x: Any,
    directions: np.ndarray,
    *,
    step: float = 1e-3,
    tolerance: float = 1e-6,
    transposed: float = 1e-10,
) -> np.ndarray:
    """All directions (k, p) of a function of a vector (p,), forward and reverse: J d (k, m)."""
    rng = np.random.default_rng(0)
    count = eqx.filter_eval_shape(function, x).shape[0]
    pushed, differences, value = [], [], np.zeros(count)
    for direction in jnp.asarray(directions):
        weight = jnp.asarray(rng.normal(size=count))
        value, own, pulled = slopes(function, x, direction, weight)
        gap = abs(float(weight @ own - pulled @ direction))
        # Directions are as long as the numbers themselves: slopes that are much smaller than the
        # function are known to its rounding.
        size = max(float(jnp.linalg.norm(own)), float(jnp.linalg.norm(value)))
        gap /= float(jnp.linalg.norm(weight)) * size
        assert gap <= transposed, f"forward and reverse differ by {gap:.1e}"
        ends = [slopes(function, x + n * step * direction, direction, weight) for n in NODES]
        pushed.append(np.asarray(own))
        differences.append(np.asarray(difference([end.value for end in ends], step)))
    floor = 1e-3 * np.max(np.abs(np.asarray(value)))
    assert_slopes(np.array(pushed), np.array(differences), floor, tolerance)
    return np.array(pushed)
