"""Runs that come to a state at which a velocity row that is nonlinear in v vanishes. Behind it the
motion is one of several, whatever the method: no step leads across, and the run says why it ends.
"""

from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Float

from .._custom_types import BoolScalar, IntScalar, Scalar
from .._solution import RESULTS
from .._stop_gradient import stop_gradient
from .._system import AbstractSystem, vanishing_on_the_way, vanishing_rows
from ._arguments import Packed, split


# Where a run ends, a row that is smaller than this has made it end, ...
_HARDLY = 1e-3

# ... or one that would vanish within such a part of the run from there, or within so many steps
# of mean length.
_AHEAD = 1e-2
_STEPS_AHEAD = 10.0


def vanishes_in_step(
    terms: Any,
    t0: Any,
    t1: Any,
    y0: Float[Array, " state"],
    y1: Float[Array, " state"],
    args: Packed,
) -> BoolScalar:
    """Does a velocity row vanish in a step? Without derivatives."""
    args, t0, t1, y0, y1 = stop_gradient((args, t0, t1, y0, y1))
    system = args.opened().system
    (q, first), (_, last) = split(system, y0), split(system, y1)
    start, end = (split(system, terms.vf(t, y, args))[1] for t, y in ((t0, y0), (t1, y1)))
    t, h = jnp.asarray(t0, y0.dtype), jnp.asarray(t1 - t0, y0.dtype)
    return jnp.any(vanishing_on_the_way(system, q, t, (first, last), (start, end), h))


def with_vanishing_rows(
    result: RESULTS,
    system: AbstractSystem,
    end: tuple[Float[Array, " nq"], Float[Array, " nv"], Float[Array, " nv"], Scalar],
    grid: Float[Array, " times"],
    steps: IntScalar,
) -> RESULTS:
    """The result of a run over these times that ended so (q, v, dv/dt, t) after so many steps, if
    it is that a step could not be made."""
    q, v, acceleration, t = stop_gradient(end)
    start, last = grid[0], grid[-1]
    mean = (t - start) / jnp.maximum(steps, 1)
    ahead = jnp.maximum(_AHEAD * (last - start), _STEPS_AHEAD * mean)
    ends, slopes = (v, v + ahead * acceleration), (acceleration, acceleration)
    later = vanishing_on_the_way(system, q, t, ends, slopes, ahead)
    vanishing = jnp.any(vanishing_rows(system, q, v, t, _HARDLY) | later)
    for member in (RESULTS.step_too_small, RESULTS.step_not_solved, RESULTS.integrator_failed):
        ended = vanishing & (result == member)
        result = RESULTS.where(ended, RESULTS.velocity_row_vanishes, result)
    return result
