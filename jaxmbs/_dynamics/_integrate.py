"""Diffrax's integration in programs without callbacks to Python.

`diffeqsolve` checks the sign of the first step, and that the times of saved states are in order and
within the run. In a compiled program each of these checks is a callback into Python, and for the
sake of one such callback JAX neither keeps the program in its compilation cache nor exports it for
another platform. The conditions that they check are known here: a first step has a length and no
sign, the run goes from the first to the last of the times, and `in_order` checks these once, with
an answer that the `result` of a run can report. So both are passed to Diffrax where it does not
check them: the first step by the step size controller, which proposes it, and the times by the
adjoint, which makes the loop that saves states.
"""

import functools
from typing import Any

import diffrax as dfx
import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from .._custom_types import BoolScalar, Scalar


def integrate(
    terms: PyTree,
    solver: dfx.AbstractSolver,
    times: Float[Array, " times"],
    y0: PyTree,
    args: Any,
    *,
    saveat: dfx.SaveAt,
    adjoint: dfx.AbstractAdjoint,
    **options: Any,
) -> Any:
    """`diffrax.diffeqsolve` from the first of the times to the last, with the states at these times
    before the output of `saveat`, which contains no times itself.

    The times must be in order (`in_order`); this is not checked here. The first step is that of the
    controller (`starting`). `options`: others of `diffeqsolve`.
    """
    return dfx.diffeqsolve(
        terms,
        solver,
        times[0],
        times[-1],
        None,
        y0,
        args,
        saveat=saveat,
        adjoint=_SavingAt(adjoint, times),
        **options,
    )


def in_order(times: Float[Array, " times"]) -> BoolScalar:
    """Do these times never go back? (Diffrax would run backwards with the sign of time reversed,
    which projections and monitors do not support.)"""
    return jnp.all(jnp.diff(times) >= 0)


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


class _AbstractStarting(dfx.AbstractStepSizeController[Any, Any]):
    """A controller with its first step."""

    controller: eqx.AbstractVar[Any]
    first_step: eqx.AbstractVar[Scalar]

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
    first_step: Scalar

    def wrap(self, direction: Any) -> "_Starting":
        return _Starting(self.controller.wrap(direction), self.first_step)


class _AdaptiveStarting(_AbstractStarting, dfx.AbstractAdaptiveStepSizeController[Any, Any]):
    """The first step of a controller with tolerances, which implicit methods require."""

    controller: dfx.AbstractAdaptiveStepSizeController
    first_step: Scalar

    # Written out, as `norm` has a default in the class above.
    def __init__(self, controller: dfx.AbstractAdaptiveStepSizeController, first_step: Scalar):
        self.controller, self.first_step = controller, first_step

    @property
    def rtol(self) -> Any:
        return self.controller.rtol

    @property
    def atol(self) -> Any:
        return self.controller.atol

    @property
    def norm(self) -> Any:
        return self.controller.norm

    def wrap(self, direction: Any) -> "_AdaptiveStarting":
        inner: Any = self.controller.wrap(direction)
        return _AdaptiveStarting(inner, self.first_step)


class _SavingAt(dfx.AbstractAdjoint):
    """An adjoint whose loop saves the states at these times too."""

    adjoint: dfx.AbstractAdjoint
    times: Float[Array, " times"]

    def loop(self, *, saveat: Any, init_state: Any, **rest: Any) -> Any:
        # Diffrax turns the sign of time in a run that does not go forwards: one without length.
        direction = jnp.where(self.times[0] < self.times[-1], 1, -1)
        saveat = eqx.tree_at(
            lambda s: s.subs.ts, saveat, direction * self.times, is_leaf=lambda x: x is None
        )
        # Room for that many states, which is filled with "not reached" where there is any.
        count = len(self.times)
        room = jax.tree.map(
            lambda x: jnp.broadcast_to(x[:1], (count + len(x), *x.shape[1:])),
            (init_state.save_state.ts, init_state.save_state.ys),
        )
        init_state = eqx.tree_at(lambda s: (s.save_state.ts, s.save_state.ys), init_state, room)
        return self.adjoint.loop(saveat=saveat, init_state=init_state, **rest)
