"""Are redundant rows redundant only where the mechanism closes?

The rows of a Bennett linkage depend on each other on the constraints, but off them, where the
stages of a Runge-Kutta method lie, they do not, and there they prescribe contradictory
accelerations. (Those of a plane mechanism built of spatial joints depend on each other everywhere.)
Slopes are to be taken on the constraints then.

To find out, a configuration q' is made as a stage makes one, by a straight step along an
admissible velocity; q is the one on the constraints next to it. A left null vector x of C at q
is one of C at q' too, up to the distance between the two, unless its row becomes independent.
"""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float

from .._custom_types import BoolScalar, IntScalar, RealScalarLike, Scalar
from .._kinematics import position_residual
from .._linalg import KKTSystem, ProximalCholesky
from .._linalg._many_states import many_states
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

# Relative square of the null part of a random vector that counts as none; and that of a single one
# with which there is no null vector whatever, as a random one hardly ever has so little of it.
_NONE, _NONE_AT_ALL = 1e-8, 1e-16

# Newton steps from q' to q. Singular values much below the root of the regularisation count as
# null, of which each of the solves leaves the part mu / (s + mu).
_STEPS, _REGULARISATION, _SOLVES = 4, 1e-8, 6


class _Trial(NamedTuple):
    """`place` (nq,): evaluated next; `away` (nq,): q'; `vectors` (tried, rows): random ones, and
    their null parts as soon as these are known; `fraction` (tried,): what is left of their squares
    there; `looks`: the number of evaluations; `redundant`: can there be null vectors at all?"""

    place: Float[Array, " nq"]
    away: Float[Array, " nq"]
    vectors: Float[Array, "tried rows"]
    fraction: Float[Array, " tried"]
    looks: IntScalar
    redundant: BoolScalar


def rank_increases_off_manifold(
    system: AbstractSystem, q: Float[Array, " nq"], t: RealScalarLike
) -> BoolScalar:
    """Do rows that depend on each other at q (nq,), which is closed, become independent next to
    it? Also true where that cannot be decided. It has no derivative."""
    if not (len(system.structure.rows) and system.structure.nv):
        return jnp.asarray(False)
    return _rank_increases(*stop_gradient((system, q, jnp.asarray(t, q.dtype))))


@many_states
def _rank_increases(system: AbstractSystem, q: Float[Array, " nq"], t: Scalar) -> BoolScalar:
    rows, nv = len(system.structure.rows), system.structure.nv
    random = np.random.default_rng(0)
    unit = system.column_scale()
    motion = unit * jnp.asarray(random.normal(size=nv), q.dtype)
    vectors = jnp.asarray(random.normal(size=(rows, _TRIED)).T, q.dtype)

    def look(trial: _Trial) -> _Trial:
        """At q the motion is made admissible and leads to q'; from there to the constraints; there
        null vectors are taken, which are tried at q'."""
        first, closed, last = (trial.looks == k for k in (0, _STEPS, _STEPS + 1))
        here = jnp.where(last, trial.away, trial.place)
        descriptor = system.descriptor(here, jnp.zeros_like(motion), t)
        factored = KKTSystem(descriptor, ProximalCholesky(_REGULARISATION))
        scale = factored.factor.scale
        rates = jnp.where(first, descriptor.apply_C(motion), position_residual(system, here, t))

        def solve(k: IntScalar, found: Float[Array, "n rows"]) -> Float[Array, "n rows"]:
            """The way back, or the null part of a vector."""
            back, vector = k == 0, trial.vectors[jnp.maximum(k - 1, 0)]
            right, start = jnp.where(back, rates / scale, 0.0), jnp.where(back, 0.0, vector)
            solution = factored.proximal(right[:, None], start[:, None], _SOLVES)[:, 0]
            return found.at[k].set(solution)

        # Those alone that this evaluation is for: at q one vector, to see whether there are any.
        of_vectors = closed | last
        begin = jnp.where(of_vectors, 1, 0)
        end = jnp.where(of_vectors, _TRIED + 1, jnp.where(first, 2, 1))
        found = lax.fori_loop(begin, end, solve, jnp.zeros((_TRIED + 1, rows), q.dtype))
        shortest = factored.response(found[0] / scale)
        admissible = motion - shortest
        admissible = admissible * (_STEP / _largest(admissible / unit))
        there = system.retract(here, jnp.where(first, admissible, -shortest))

        rest, left = found[1:], _squares(trial.vectors)
        fraction = jnp.where(left > 0, _squares(rest) / jnp.where(left > 0, left, 1.0), 1.0)
        # What is left of a vector that has no null part is rounding.
        rest = jnp.where((fraction > _NONE)[:, None], rest, 0.0)
        return _Trial(
            there,
            jnp.where(first, there, trial.away),
            jnp.where(closed, rest, trial.vectors),
            jnp.where(of_vectors, fraction, 1.0),
            trial.looks + 1,
            ~first | ~(fraction[0] <= _NONE_AT_ALL),
        )

    start = _Trial(q, q, vectors, jnp.ones((_TRIED,), q.dtype), jnp.asarray(0), jnp.asarray(True))
    end = lax.while_loop(lambda trial: trial.redundant & (trial.looks < _STEPS + 2), look, start)
    return ~jnp.all(end.fraction > 1 - _LOST)


def _squares(vectors: Float[Array, "k n"]) -> Float[Array, " k"]:
    return jnp.sum(vectors**2, axis=1)


def _largest(x: Float[Array, " n"]) -> Scalar:
    return jnp.maximum(jnp.max(jnp.abs(x)), jnp.finfo(x.dtype).tiny)
