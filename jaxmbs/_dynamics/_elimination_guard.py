"""A run whose elimination becomes singular ends just before that happens.

Steps across such a configuration are halved until little is left of them. That needs no root of an
interpolant, which would belong to a step computed from beyond; and if the null space only turned
far in one step, its halves show that, and the run continues.
"""

import functools
from typing import Any, NamedTuple

import diffrax as dfx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from .._custom_types import BoolScalar, Scalar
from .._formulations import AbstractFormulation, NonIdeal
from .._formulations._independent_coordinates import NumberedElimination, singular_between
from ._arguments import Packed, split
from ._monitor import stop_gradient


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
