"""Derivatives of what is computed of a design, in the mode that serves the question.

Through states and driven motions all modes go. A loop over time has one, which is chosen before it
is built: forward for few parameters and for second derivatives, reverse, with checkpoints, for
many parameters.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ._runs import AbstractRun


# Parameters for each function up to which a motion is differentiated forward. A reverse gradient
# was measured to cost five motions and each parameter forward less than one, and a reverse program
# takes three times as long to compile.
_FEW = 6

# From x (p,), and whether forward mode is requested, to values (m,) and auxiliary output.
Answered = Callable[[Float[Array, " p"], bool], tuple[Float[Array, " m"], Any]]


def slopes(
    run: AbstractRun,
    function: Answered,
    x: Float[Array, " p"],
    count: int,
    *,
    forward: bool = False,
) -> tuple[Float[Array, " m"], Float[Array, "m p"], Any]:
    """Values, their derivatives, and what else the function of `count` values gives. `forward`:
    whatever it costs, as it is to be differentiated again."""
    if run.one_mode and (forward or x.shape[0] <= _FEW * count):

        def pushed(x: Float[Array, " p"]) -> Any:
            values, more = function(x, True)
            return values, (values, more)

        found, (values, more) = jax.jacfwd(pushed, has_aux=True)(x)
        return values, found, more
    values, pull, more = jax.vjp(lambda x: function(x, False), x, has_aux=True)
    if count == 1:
        return values, pull(jnp.ones(1))[0][None], more
    return values, jax.vmap(pull)(jnp.eye(count))[0], more
