"""Velocity rows of functions that users write: which are linear in velocities?

A row g(q, v, t) = 0 is, where the program of its derivative by velocities does not use them. That
is read off the program, which no number enters: a comparison at some velocities would pass over
what a function does at others, as where it branches, and a row that is wrongly called linear could
vanish at rest without a word. The few that are linear by cancellation only, as
(v + a)^2 - (v - a)^2, count as nonlinear, which costs some equations and changes no answer.
"""

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax.interpreters import partial_eval
from jaxtyping import Array, Float

from .._bodies import AbstractMarker
from .._constraints import AbstractPrimitive
from ._groups import velocity


def is_linear_in_velocities(
    primitive: AbstractPrimitive,
    markers: Sequence[AbstractMarker],
    sizes: Sequence[tuple[int, int]],
) -> bool:
    """Is C of these rows the same for all velocities? `sizes`: how many coordinates and velocities
    the body of each marker has."""
    if primitive.linear_in_rates:
        return True
    dtype = jnp.result_type(float)
    t = jax.ShapeDtypeStruct((), dtype)
    moving = [
        jax.eval_shape(m.kinematics, *(jax.ShapeDtypeStruct((n,), dtype) for n in size))
        for m, size in zip(markers, sizes, strict=True)
    ]
    frames, rates = tuple(x.frame for x in moving), tuple(x.rate for x in moving)
    numbers, form = jax.tree.flatten(rates)

    def residual(*arguments: Any) -> Float[Array, " velocity"]:
        *numbers, frames, t = arguments
        return velocity((primitive,), frames, jax.tree.unflatten(form, numbers), t)

    changing = tuple(range(len(numbers)))
    program = jax.make_jaxpr(jax.jacfwd(residual, changing))(*numbers, frames, t).jaxpr
    _, used = partial_eval.dce_jaxpr(program, [True] * len(program.outvars))
    return not any(used[: len(numbers)])
