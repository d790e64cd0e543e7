"""Are redundant rows redundant only where the mechanism closes?

The rows of a Bennett linkage depend on each other on the constraints, but off them, where the
stages of a Runge-Kutta method lie, they do not, and there they prescribe contradictory
accelerations. (Those of a plane mechanism built of spatial joints depend on each other everywhere.)
Slopes are to be taken on the constraints then.

To find out, a configuration q' is made as a stage makes one, by a straight step along an
admissible velocity; q is the one on the constraints next to it. A left null vector x of C at q
is one of C at q' too, up to the distance between the two, unless its row becomes independent.
"""

from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float

from .._custom_types import BoolScalar, IntScalar, RealScalarLike, Scalar
from .._kinematics import position_residual
from .._linalg import KKTSystem, ProximalCholesky
from .._stop_gradient import stop_gradient
from .._system import AbstractSystem


# The straight step, relative to the characteristic length or in radians. With twice as much the
# rows of the spatial parallelogram lose 0.01 to 0.05, with this less than 0.005: they become
# independent with a higher power of the distance, which does not disturb.
_STEP = 0.05

# Null vectors that are tried: drawn at random, few may have no part in what is lost.
_TRIED = 4

# x loses the square of the distance between q and q', about _STEP^4, or all of its part in what
# is lost.
_LOST = 1e-2

# Relative square of the null part of a random vector that counts as none.
_NONE = 1e-8

# Newton steps from q' to q. Singular values much below the root of the regularisation count as
# null, of which each of the solves leaves the part mu / (s + mu).
_STEPS, _REGULARISATION, _SOLVES = 4, 1e-8, 6


def rank_increases_off_manifold(
    system: AbstractSystem, q: Float[Array, " nq"], t: RealScalarLike
) -> BoolScalar:
    """Do rows that depend on each other at q (nq,), which is closed, become independent next to
    it? Also true where that cannot be decided. It has no derivative."""
    shape = (len(system.structure.rows), system.structure.nv)
    if 0 in shape:
        return jnp.asarray(False)
    system, q, t = stop_gradient((system, q, jnp.asarray(t, q.dtype)))
    random = np.random.default_rng(0)
    unit = system.column_scale()
    motion = unit * jnp.asarray(random.normal(size=shape[1]), q.dtype)
    trial = jnp.asarray(random.normal(size=(shape[0], _TRIED)), q.dtype)

    def look(k: IntScalar, carry: Any) -> Any:
        """At q the motion is made admissible and leads to q'; from there to the constraints; there
        null vectors are taken, which are tried at q'."""
        here, away, null, _ = carry
        first, closed, last = k == 0, k == _STEPS, k == _STEPS + 1
        here = jnp.where(last, away, here)
        descriptor = system.descriptor(here, jnp.zeros_like(motion), t)
        factored = KKTSystem(descriptor, ProximalCholesky(_REGULARISATION))
        scale = factored.factor.scale
        rates = jnp.where(first, descriptor.apply_C(motion), position_residual(system, here, t))
        right = jnp.zeros((shape[0], _TRIED + 1), q.dtype).at[:, 0].set(rates / scale)
        start = jnp.concatenate([jnp.zeros((shape[0], 1), q.dtype), null], axis=1)
        found = factored.proximal(right, start, _SOLVES)
        shortest = factored.response(found[:, 0] / scale)
        admissible = motion - shortest
        admissible = admissible * (_STEP / _largest(admissible / unit))
        there = system.retract(here, jnp.where(first, admissible, -shortest))

        rest, left = found[:, 1:], _squares(null)
        fraction = jnp.where(left > 0, _squares(rest) / jnp.where(left > 0, left, 1.0), 1.0)
        # What is left of a vector that has no null part is rounding.
        rest = jnp.where((fraction > _NONE)[None], rest, 0.0)
        return there, jnp.where(first, there, away), jnp.where(closed, rest, null), fraction

    start = q, q, trial, jnp.ones((_TRIED,), q.dtype)
    _, _, _, fraction = lax.fori_loop(0, _STEPS + 2, look, start)
    return ~jnp.all(fraction > 1 - _LOST)


def _squares(columns: Float[Array, "n k"]) -> Float[Array, " k"]:
    return jnp.sum(columns**2, axis=0)


def _largest(x: Float[Array, " n"]) -> Scalar:
    return jnp.maximum(jnp.max(jnp.abs(x)), jnp.finfo(x.dtype).tiny)
