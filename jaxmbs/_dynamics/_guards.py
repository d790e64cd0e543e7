"""States at which a run ends by itself or is not to go on: eliminations that become singular,
velocity rows that vanish, redundancy at closure alone.
"""

import functools
from typing import Any, NamedTuple

import diffrax as dfx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float, PyTree

from .._custom_types import BoolScalar, IntScalar, RealScalarLike, Scalar
from .._formulations import AbstractFormulation, NonIdeal
from .._formulations._independent_coordinates import NumberedElimination, singular_between
from .._kinematics import position_residual
from .._linalg import KKTSystem, ProximalCholesky
from .._linalg._many_states import many_states
from .._solution import RESULTS
from .._stop_gradient import stop_gradient
from .._system import AbstractSystem, vanishing_on_the_way, vanishing_rows
from ._arguments import Packed, split


# --------------------------------------------------------------------------------------------------
# A run whose elimination becomes singular ends just before that happens.
#
# Steps across such a configuration are halved until little is left of them. That needs no root of
# an interpolant, which would belong to a step computed from beyond; and if the null space only
# turned far in one step, its halves show that, and the run continues.
# --------------------------------------------------------------------------------------------------


# Steps are halved until they are this small, relative to the first one that went across. Much
# closer the kept rows count as dependent and accelerations fail.
_LEFT = 1e-6


class Guarded(NamedTuple):
    """State that a guard carries from step to step.

    `inner`: state of the controller; `dependence`: of the elimination, where the step starts;
    `beyond`: the end of the last step that went across (infinite: there is none, or the motion
    got there in smaller ones); `least`: a step across that is smaller ends the run; `singular`:
    was the other side seen, or is it just that a step became NaN or infinite?
    """

    inner: PyTree
    dependence: Float[Array, "rows dropped"]
    beyond: Scalar
    least: Scalar
    singular: BoolScalar


class EliminationGuard(dfx.AbstractStepSizeController[Guarded, Any]):
    """A step size controller that takes no step across a configuration in which `elimination` is
    singular, and otherwise is `controller`."""

    controller: dfx.AbstractStepSizeController
    elimination: NumberedElimination

    def wrap(self, direction: Any) -> "EliminationGuard":
        return EliminationGuard(self.controller.wrap(direction), self.elimination)

    def init(
        self,
        terms: Any,
        t0: Any,
        t1: Any,
        y0: Float[Array, " state"],
        dt0: Any,
        args: Any,
        func: Any,
        error_order: Any,
    ) -> tuple[Any, Guarded]:
        end, inner = self.controller.init(terms, t0, t1, y0, dt0, args, func, error_order)
        never = jnp.asarray(jnp.inf, y0.dtype)
        dependence = self._dependence(args, y0, t0)
        return end, Guarded(inner, dependence, never, never, jnp.asarray(False))

    def adapt_step_size(
        self,
        t0: Any,
        t1: Any,
        y0: Float[Array, " state"],
        y1_candidate: Float[Array, " state"],
        args: Any,
        y_error: Any,
        error_order: Any,
        controller_state: Guarded,
    ) -> tuple[Any, ...]:
        last = controller_state
        keep, next_t0, next_t1, jump, inner, result = self.controller.adapt_step_size(
            t0, t1, y0, y1_candidate, args, y_error, error_order, last.inner
        )
        start, end = stop_gradient((jnp.asarray(t0, y0.dtype), jnp.asarray(t1, y0.dtype)))
        dependence = self._dependence(args, y1_candidate, end)
        # Close by accelerations lose digits and then fail, so that a step across may not be
        # accepted; without step size control it must not be.
        singular = singular_between(last.dependence, dependence)
        pending = jnp.isfinite(last.beyond)
        across = singular | (keep & _failed(y1_candidate, y_error, pending))
        keep = keep & ~across
        least = jnp.where(pending, last.least, _LEFT * (end - start))
        beyond = jnp.where(across, end, last.beyond)
        # A part of a step that went across; what is left of it comes next. The controller, which
        # had accepted the whole, is not asked until then.
        part = keep & jnp.isfinite(beyond) & (end < beyond)
        after = Guarded(
            jax.tree.map(lambda a, b: jnp.where(across | part, a, b), last.inner, inner),
            jnp.where(keep, dependence, last.dependence),
            jnp.where(keep & ~part, jnp.inf, beyond),
            least,
            singular | (last.singular & pending),
        )
        next_t0 = jnp.where(across, start, next_t0)
        next_t1 = jnp.where(part, beyond, jnp.where(across, (start + end) / 2, next_t1))
        ends = across & (end - start <= least)
        result = dfx.RESULTS.where(ends, dfx.RESULTS.dt_min_reached, result)
        return keep, next_t0, next_t1, jump, after, result

    def _dependence(
        self, args: Packed, y: Float[Array, " state"], t: Any
    ) -> Float[Array, "rows dropped"]:
        system, y, t = stop_gradient((args.opened().system, y, jnp.asarray(t, y.dtype)))
        return self.elimination.dependence(system.equations(*split(system, y), t))


def _failed(y: Float[Array, " state"], error: Any, pending: BoolScalar) -> BoolScalar:
    """Did a step become NaN or infinite? Its error is infinite for other reasons too, but
    hardly where a singular configuration is `pending`."""
    numbers = [jnp.all(jnp.isfinite(x)) for x in jax.tree.leaves(error)]
    return ~jnp.all(jnp.isfinite(y)) | (pending & ~jnp.all(jnp.array(numbers, dtype=bool)))


@functools.singledispatch
def guarded(
    formulation: AbstractFormulation, controller: dfx.AbstractStepSizeController
) -> dfx.AbstractStepSizeController:
    """The controller, with a guard for a formulation that drops chosen rows."""
    del formulation
    return controller


@guarded.register
def _(
    formulation: NumberedElimination, controller: dfx.AbstractStepSizeController
) -> dfx.AbstractStepSizeController:
    return EliminationGuard(controller, formulation)


@guarded.register
def _(
    formulation: NonIdeal, controller: dfx.AbstractStepSizeController
) -> dfx.AbstractStepSizeController:
    return guarded(formulation.formulation, controller)


@functools.singledispatch
def ended_by_guard(controller_state: Any) -> BoolScalar:
    """Did a run end because its elimination became singular? Evaluated on the state of the
    controller at the end."""
    del controller_state
    return jnp.asarray(False)


@ended_by_guard.register
def _(controller_state: Guarded) -> BoolScalar:
    return controller_state.singular & jnp.isfinite(controller_state.beyond)


# --------------------------------------------------------------------------------------------------
# Runs that come to a state at which a velocity row that is nonlinear in v vanishes. Behind it the
# motion is one of several, whatever the method: no step leads across, and the run says why it ends.
# --------------------------------------------------------------------------------------------------


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


# --------------------------------------------------------------------------------------------------
# Are redundant rows redundant only where the mechanism closes?
#
# The rows of a Bennett linkage depend on each other on the constraints, but off them, where the
# stages of a Runge-Kutta method lie, they do not, and there they prescribe contradictory
# accelerations. (Those of a plane mechanism built of spatial joints depend on each other
# everywhere.) Slopes are to be taken on the constraints then.
#
# To find out, a configuration q' is made as a stage makes one, by a straight step along an
# admissible velocity; q is the one on the constraints next to it. A left null vector x of C at q
# is one of C at q' too, up to the distance between the two, unless its row becomes independent.
# --------------------------------------------------------------------------------------------------


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
