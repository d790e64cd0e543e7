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
from jax import lax


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


class Along(NamedTuple):
    """f at many points (n, m); at the first of them J d of many directions (k, m) and J^T w."""

    values: Any
    pushed: Any
    pulled: Any


@eqx.filter_jit
def along(function: Callable[[Any], Any], points: Any, directions: Any, weight: Any) -> Along:
    """Of a function of a vector: points (n, p), directions (k, p). In a loop, whose body is
    compiled once."""

    def visit(found: Any, given: Any) -> tuple[Any, Any]:
        x, first = given
        value, push = jax.linearize(function, x)

        def derivatives() -> tuple[Any, Any]:
            return lax.map(push, directions), jax.linear_transpose(push, x)(weight)[0]

        return lax.cond(first, derivatives, lambda: found), value

    zeros = jnp.zeros((directions.shape[0], weight.shape[0])), jnp.zeros(points.shape[1])
    first = np.arange(points.shape[0]) == 0
    (pushed, pulled), values = lax.scan(visit, zeros, (points, first))
    return Along(values, pushed, pulled)


def check(
    function: Callable[[Any], Any],
    x: Any,
    directions: np.ndarray,
    *,
    step: float = 1e-3,
    tolerance: float = 1e-6,
    transposed: float = 1e-10,
    part: slice = slice(None),
) -> np.ndarray:
    """All directions (k, p) of a function of a vector (p,), forward and reverse: J d (k, m).

    `part`: the values that are looked at; the others may have no derivative.
    """
    x, directions = np.asarray(x), np.asarray(directions)
    weight = np.zeros(eqx.filter_eval_shape(function, x).shape[0])
    weight[part] = np.random.default_rng(0).normal(size=weight[part].shape)
    nodes = (x + step * NODES[:, None, None] * directions).reshape(-1, x.size)
    found = jax.device_get(along(function, np.concatenate([x[None], nodes]), directions, weight))
    values, pushed, weight = found.values[:, part], found.pushed[:, part], weight[part]
    value = values[0]
    gap = np.abs(pushed @ weight - directions @ found.pulled)
    # Directions are as long as the numbers themselves: slopes that are much smaller than the
    # function are known to its rounding.
    size = np.maximum(np.linalg.norm(pushed, axis=1), np.linalg.norm(value))
    gap = np.max(gap / (np.linalg.norm(weight) * size))
    assert gap <= transposed, f"forward and reverse differ by {gap:.1e}"
    ends = values[1:].reshape(NODES.size, *pushed.shape)
    floor = 1e-3 * np.max(np.abs(value))
    assert_slopes(pushed, difference(ends, step), floor, tolerance)
    return pushed
