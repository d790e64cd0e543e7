"""Step size controllers of a run: its first step, steps of given lengths, steps across singular
configurations, and the end of a run whose elimination becomes singular. Each of them is another
controller, of which it changes one thing.
"""

import functools
from typing import Any, NamedTuple

import diffrax as dfx
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PyTree

from .._custom_types import BoolScalar, Scalar
from .._formulations import AbstractFormulation, NonIdeal
from .._formulations._independent_coordinates import NumberedElimination, singular_between
from .._stop_gradient import stop_gradient
from ._state_evaluation import Packed, split


class AbstractAdaptiveWrapper(dfx.AbstractAdaptiveStepSizeController[Any, Any]):
    """Another behaviour of a controller with tolerances, which are that one's."""

    controller: eqx.AbstractVar[Any]

    @property
    def rtol(self) -> Any:
        return self.controller.rtol

    @property
    def atol(self) -> Any:
        return self.controller.atol

    @property
    def norm(self) -> Any:
        return self.controller.norm


# --------------------------------------------------------------------------------------------------
# The first step of a run.
# --------------------------------------------------------------------------------------------------


@functools.singledispatch
def starting(
    controller: dfx.AbstractStepSizeController, first_step: Scalar | None
) -> dfx.AbstractStepSizeController:
    """The controller, with a first step (s) of that length; without one, it makes its own."""
    return controller if first_step is None else _Starting(controller, first_step)


@starting.register
def _(
    controller: dfx.AbstractAdaptiveStepSizeController, first_step: Scalar | None
) -> dfx.AbstractStepSizeController:
    return controller if first_step is None else _AdaptiveStarting(controller, first_step)


@functools.singledispatch
def under_way(controller: dfx.AbstractStepSizeController) -> dfx.AbstractStepSizeController:
    """The controller of a run whose first step is long made, without an own state at the start."""
    return _Starting(controller, None)


@under_way.register
def _(controller: dfx.AbstractAdaptiveStepSizeController) -> dfx.AbstractStepSizeController:
    return _AdaptiveStarting(controller, None)


class _AbstractStarting(dfx.AbstractStepSizeController[Any, Any]):
    """A controller with its first step; without, it needs none."""

    controller: eqx.AbstractVar[Any]
    first_step: eqx.AbstractVar[Scalar | None]

    def init(
        self,
        terms: Any,
        t0: Any,
        t1: Any,
        y0: PyTree,
        dt0: None,
        args: Any,
        func: Any,
        error_order: Any,
    ) -> tuple[Any, Any]:
        if self.first_step is None:
            return t1, None
        first = jnp.abs(self.first_step)
        return self.controller.init(terms, t0, t1, y0, first, args, func, error_order)

    def adapt_step_size(
        self,
        t0: Any,
        t1: Any,
        y0: PyTree,
        y1_candidate: PyTree,
        args: Any,
        y_error: PyTree,
        error_order: Any,
        controller_state: Any,
    ) -> tuple[Any, ...]:
        return self.controller.adapt_step_size(
            t0, t1, y0, y1_candidate, args, y_error, error_order, controller_state
        )


class _Starting(_AbstractStarting):
    """The first step of any controller."""

    controller: dfx.AbstractStepSizeController
    first_step: Scalar | None

    def wrap(self, direction: Any) -> "_Starting":
        return _Starting(self.controller.wrap(direction), self.first_step)


class _AdaptiveStarting(_AbstractStarting, AbstractAdaptiveWrapper):
    """The first step of a controller with tolerances, which implicit methods require."""

    controller: dfx.AbstractAdaptiveStepSizeController
    first_step: Scalar | None

    # Written out, as `norm` has a default in the class above.
    def __init__(
        self, controller: dfx.AbstractAdaptiveStepSizeController, first_step: Scalar | None
    ):
        self.controller, self.first_step = controller, first_step

    def wrap(self, direction: Any) -> "_AdaptiveStarting":
        inner: Any = self.controller.wrap(direction)
        return _AdaptiveStarting(inner, self.first_step)


# --------------------------------------------------------------------------------------------------
# Steps of given lengths, for methods without an error estimate.
# --------------------------------------------------------------------------------------------------


# A step is none if its error is this part of what it moved, and it moved more than that (m, or as
# quaternions, which a coupling of angles that jumps turns by as much whatever the size is).
_WRONG, _MOVED = 0.5, 1e-2


def leads_elsewhere(
    q0: Float[Array, " nq"], q1: Float[Array, " nq"], error: Float[Array, " nq"]
) -> BoolScalar:
    """Is what a step was off, or was corrected by, most of what it moved?"""
    moved, wrong = (jnp.max(jnp.abs(x), initial=0.0) for x in (q1 - q0, error))
    return (moved > _MOVED) & (wrong > _WRONG * moved)


class FixedSteps(dfx.AbstractStepSizeController[Any, Any]):
    """A controller without tolerances, under which a step that became NaN, or one that leads to
    another branch, ends the run at its start. `nq`: how many entries of the state are coordinates.
    """

    controller: dfx.AbstractStepSizeController
    nq: int = eqx.field(static=True)

    def wrap(self, direction: Any) -> "FixedSteps":
        return FixedSteps(self.controller.wrap(direction), self.nq)

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
    ) -> tuple[Any, Any]:
        return self.controller.init(terms, t0, t1, y0, dt0, args, func, error_order)

    def adapt_step_size(
        self,
        t0: Any,
        t1: Any,
        y0: Float[Array, " state"],
        y1_candidate: Float[Array, " state"],
        args: Any,
        y_error: Any,
        error_order: Any,
        controller_state: Any,
    ) -> tuple[Any, ...]:
        keep, next_t0, next_t1, jump, inner, result = self.controller.adapt_step_size(
            t0, t1, y0, y1_candidate, args, y_error, error_order, controller_state
        )
        solved = jnp.all(jnp.isfinite(y1_candidate))
        if y_error is not None:
            # (An infinite error is that of a step next to a singular configuration.)
            error = jnp.where(jnp.isfinite(y_error), y_error, 0.0)
            own = (x[: self.nq] for x in (y0, y1_candidate, error))
            solved &= ~leads_elsewhere(*own)
        solved |= jnp.logical_not(keep)
        failed: Any = dfx.RESULTS.nonlinear_divergence
        failure = dfx.RESULTS.where(solved, result, failed)
        return keep & solved, jnp.where(solved, next_t0, t0), next_t1, jump, inner, failure


# --------------------------------------------------------------------------------------------------
# Steps across a singular configuration are placed so that none of their stages lies next to it.
#
# At a distance s in time from the passage rounding of velocities is divided by a singular value of
# the order of s, and accelerations by its square: a stage that lies next to the passage spoils a
# step that would otherwise lead across. A rejection makes the next step shorter by whatever factor
# its error suggests, which places stages by chance; and each step that ends closer before the
# passage makes the next one harder. (Of five runs of a chain of 160 windows at tolerances of 1e-9
# to 3e-9 four ended at a passage.)
# --------------------------------------------------------------------------------------------------


# The part of a gap between two nodes, at each of its ends, that a passage keeps away from; gaps
# that are so much shorter than the widest are not used.
_MARGIN, _SHORTER = 0.2, 0.5

# A step that ends so near before the passage, as a part of the way to it, ends halfway instead.
_TOO_NEAR = 0.7


def clear_places(nodes: np.ndarray) -> tuple[tuple[float, float], ...]:
    """Intervals within a step, in order, that are far from its nodes (stages,)."""
    ends = np.unique(np.clip(np.concatenate([[0.0], nodes, [1.0]]), 0.0, 1.0))
    widths = np.diff(ends)
    wide = widths >= _SHORTER * np.max(widths)
    margins = _MARGIN * widths
    low, high = ends[:-1] + margins, ends[1:] - margins
    return tuple((float(a), float(b)) for a, b in zip(low[wide], high[wide], strict=True))


class PassageState(NamedTuple):
    """State of `PassageSteps`: that of the controller, and the time (s) of the passage ahead of the
    state that was reached, infinite if there is none."""

    inner: PyTree
    expected: Scalar


class PassageSteps(AbstractAdaptiveWrapper):
    """A step size controller that places steps across a singular configuration so that it lies in
    one of the `places` of the step (`clear_places`), which shortens them, and otherwise is
    `controller`. The last number of the error is the time of the passage ahead of the step's
    end."""

    controller: dfx.AbstractAdaptiveStepSizeController
    places: tuple[tuple[float, float], ...] = eqx.field(static=True)

    # Written out, as `norm` has a default in the class above.
    def __init__(
        self,
        controller: dfx.AbstractAdaptiveStepSizeController,
        places: tuple[tuple[float, float], ...],
    ):
        self.controller, self.places = controller, places

    def wrap(self, direction: Any) -> "PassageSteps":
        inner: Any = self.controller.wrap(direction)
        return PassageSteps(inner, self.places)

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
    ) -> tuple[Any, PassageState]:
        end, inner = self.controller.init(terms, t0, t1, y0, dt0, args, func, error_order)
        return end, PassageState(inner, jnp.asarray(jnp.inf, y0.dtype))

    def adapt_step_size(
        self,
        t0: Any,
        t1: Any,
        y0: Float[Array, " state"],
        y1_candidate: Float[Array, " state"],
        args: Any,
        y_error: Float[Array, " state"],
        error_order: Any,
        controller_state: PassageState,
    ) -> tuple[Any, ...]:
        expected = stop_gradient(y_error[-1])
        keep, next_t0, next_t1, jump, inner, result = self.controller.adapt_step_size(
            t0,
            t1,
            y0,
            y1_candidate,
            args,
            y_error.at[-1].set(0.0),
            error_order,
            controller_state.inner,
        )
        expected = jnp.where(keep, expected, controller_state.expected)
        wanted = jnp.asarray(next_t1 - next_t0)
        length = self._placed(wanted, expected - stop_gradient(next_t0))
        return keep, next_t0, next_t0 + length, jump, PassageState(inner, expected), result

    def _placed(self, step: Scalar, ahead: Scalar) -> Scalar:
        """The step from a state with a passage so far ahead (s), or a shorter one."""
        there = (ahead > 0) & jnp.isfinite(ahead)
        place = jnp.where(there, ahead, 1.0) / step
        clear = jnp.asarray(jnp.inf, place.dtype)
        for low, high in reversed(self.places):
            clear = jnp.where(place <= high, jnp.maximum(place, low), clear)
        short = jnp.where(place * _TOO_NEAR < 1, ahead / 2, step)
        crossing = jnp.where(clear > place, ahead / clear, step)
        return jnp.where(there, jnp.where(jnp.isfinite(clear), crossing, short), step)


# --------------------------------------------------------------------------------------------------
# Steps are predicted by how the error changes from one to the next.
#
# Integral control takes the error of the next step for that of the last one. Where a motion becomes
# faster, errors grow by five to ten times from step to step, so that every other step is rejected;
# and Diffrax never shortens a step after one that it accepts. So a step whose error by predictive
# control would be too large has the length of that (Gustafsson 1994, ACM Trans. Math. Softw. 20,
# 496; Hairer and Wanner 1996, section IV.8):
#
#     h_(n+1) / h_n = safety err_n^(-1/k) (err_(n-1) / err_n)^(1/k) h_n / h_(n-1).
#
# Next to a singular configuration errors are rounding, and steps would become the shorter the
# closer they come; there it is left to the controller.
# --------------------------------------------------------------------------------------------------


_SAFETY = 0.9

# A step is shortened by this factor at most.
_SHORTEST = 0.5

# Errors relative to tolerances below which a step was not as long as its error allows, so that the
# next one is not predicted by it.
_SMALL_ERROR = 1e-3

# A step is shortened if its expected error, relative to the tolerances, is larger than this.
_EXPECTED = 0.9

# A passage is close if it lies within so many steps.
_STEPS_BEFORE = 2.0


class PredictionState(NamedTuple):
    """State of `PredictiveSteps`: that of the controller; length (s) and error of the last step
    that was accepted, 0 before the first."""

    inner: PyTree
    length: Scalar
    error: Scalar


class PredictiveSteps(AbstractAdaptiveWrapper):
    """A step size controller that shortens the next step where the error grows, and otherwise is
    `controller`. If the motion is `monitored`, the last number of the error is the time of the
    passage ahead of the step's end."""

    controller: dfx.AbstractAdaptiveStepSizeController
    monitored: bool = eqx.field(static=True)

    # Written out, as `norm` has a default in the class above.
    def __init__(self, controller: dfx.AbstractAdaptiveStepSizeController, monitored: bool):
        self.controller, self.monitored = controller, monitored

    def wrap(self, direction: Any) -> "PredictiveSteps":
        inner: Any = self.controller.wrap(direction)
        return PredictiveSteps(inner, self.monitored)

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
    ) -> tuple[Any, PredictionState]:
        end, inner = self.controller.init(terms, t0, t1, y0, dt0, args, func, error_order)
        none = jnp.asarray(0.0, y0.dtype)
        return end, PredictionState(inner, none, none)

    def adapt_step_size(
        self,
        t0: Any,
        t1: Any,
        y0: Float[Array, " state"],
        y1_candidate: Float[Array, " state"],
        args: Any,
        y_error: Float[Array, " state"],
        error_order: Any,
        controller_state: PredictionState,
    ) -> tuple[Any, ...]:
        keep, next_t0, next_t1, jump, inner, result = self.controller.adapt_step_size(
            t0, t1, y0, y1_candidate, args, y_error, error_order, controller_state.inner
        )
        begin, wanted = stop_gradient((next_t0, jnp.asarray(next_t1 - next_t0)))
        length = stop_gradient(jnp.asarray(t1 - t0, y0.dtype))
        error = stop_gradient(self._relative(y0, y1_candidate, y_error))
        now = PredictionState(inner, length, error)
        predicted = _predicted(now, controller_state, wanted, error_order)
        if self.monitored:
            ahead = stop_gradient(y_error[-1]) - begin
            close = (ahead > 0) & (ahead < _STEPS_BEFORE * wanted)
            predicted = jnp.where(close, wanted, predicted)
        next_t1 = jnp.where(keep & (predicted < wanted), next_t0 + predicted, next_t1)
        before = controller_state._replace(inner=inner)
        state = jax.tree.map(lambda a, b: jnp.where(keep, a, b), now, before)
        return keep, next_t0, next_t1, jump, state, result

    def _relative(
        self,
        y0: Float[Array, " state"],
        y1: Float[Array, " state"],
        error: Float[Array, " state"],
    ) -> Scalar:
        """The norm of the error of q and v over what the tolerances allow."""
        largest = jnp.maximum(jnp.abs(y0), jnp.abs(y1))[:-1]
        return self.norm(error[:-1] / (self.atol + self.rtol * largest))


def _predicted(now: PredictionState, before: PredictionState, wanted: Scalar, order: Any) -> Scalar:
    """Length of the step after two that were accepted, where one of the `wanted` length would be
    rejected; infinite elsewhere, and if either error is below `_SMALL_ERROR` or there is no earlier
    step."""
    known = (before.error > _SMALL_ERROR) & (now.error > _SMALL_ERROR)
    known = known & (before.length > 0) & (now.length > 0)
    error, length = jnp.where(known, now.error, 1.0), jnp.where(known, now.length, 1.0)
    growth = error / jnp.where(known, before.error, 1.0)
    stretch = length / jnp.where(known, before.length, 1.0)
    # Of a step as long as the last one, if the error grows once more as it did.
    expected = error * growth * stretch**-order
    too_large = expected * (wanted / length) ** order > _EXPECTED
    factor = jnp.maximum(_SAFETY * expected ** (-1 / order), _SHORTEST)
    return jnp.where(known & too_large, factor * length, jnp.inf)


# --------------------------------------------------------------------------------------------------
# Steps of systems with one-sided forces (contacts, stops of joints, elastic ropes) end before a gap
# has closed unseen.
#
# A body that flies on a parabola is integrated exactly by steps of any length, so that no error
# shows what lies between their ends. A gap changes at most as fast as the relative velocity is.
# --------------------------------------------------------------------------------------------------


# So deep, relative to the smallest dimension of the shapes, the overlap may be within a step into
# which the contact has not been followed by smaller ones; others likewise (`Clearance`).
_ALLOWED_DEPTH = 0.1


class OnsetSteps(AbstractAdaptiveWrapper):
    """A step size controller that takes no step within which two shapes may have overlapped by more
    than a part of their size, or another one-sided force set in unseen, and otherwise is
    `controller`. Gaps are followed by their values and rates at both ends of a step."""

    controller: dfx.AbstractAdaptiveStepSizeController

    # Written out, as `norm` has a default in the class above.
    def __init__(self, controller: dfx.AbstractAdaptiveStepSizeController):
        self.controller = controller

    def wrap(self, direction: Any) -> "OnsetSteps":
        inner: Any = self.controller.wrap(direction)
        return OnsetSteps(inner)

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
    ) -> tuple[Any, Any]:
        return self.controller.init(terms, t0, t1, y0, dt0, args, func, error_order)

    def adapt_step_size(
        self,
        t0: Any,
        t1: Any,
        y0: Float[Array, " state"],
        y1_candidate: Float[Array, " state"],
        args: Packed,
        y_error: Float[Array, " state"],
        error_order: Any,
        controller_state: Any,
    ) -> tuple[Any, ...]:
        keep, next_t0, next_t1, jump, inner, result = self.controller.adapt_step_size(
            t0, t1, y0, y1_candidate, args, y_error, error_order, controller_state
        )
        start, end = stop_gradient((jnp.asarray(t0, y0.dtype), jnp.asarray(t1, y0.dtype)))
        part = self._followed(args, y0, y1_candidate, jnp.abs(end - start))
        too_long = keep & (part < 1)
        state = jax.tree.map(lambda a, b: jnp.where(too_long, a, b), controller_state, inner)
        next_t1 = jnp.where(too_long, start + part * (end - start), next_t1)
        next_t0 = jnp.where(too_long, start, next_t0)
        return keep & ~too_long, next_t0, next_t1, jump, state, result

    def _followed(
        self, args: Packed, y0: Float[Array, " state"], y1: Float[Array, " state"], length: Scalar
    ) -> Scalar:
        """The part of a step in which no contact may have gone unnoticed, at least a tenth; 1: all
        of it."""
        system, y0, y1 = stop_gradient((args.opened().system, y0, y1))
        first = system.clearances(*split(system, y0))
        last = system.clearances(*split(system, y1))
        speed = jnp.maximum(first.speed, last.speed)
        # The least value that a function of these ends and of this slope may have in between.
        least = (first.gap + last.gap - length * speed) / 2
        allowed = jnp.minimum(first.gap, 0.0) - _ALLOWED_DEPTH * first.size
        unsafe = (least < allowed) | (last.gap < allowed)
        moving = speed > 0
        way = first.gap - allowed
        time = jnp.where(moving, way / jnp.where(moving, speed, 1.0), length)
        part = jnp.clip(time / jnp.where(length > 0, length, 1.0), 0.1, 0.9)
        return jnp.min(jnp.where(unsafe, part, 1.0))


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
