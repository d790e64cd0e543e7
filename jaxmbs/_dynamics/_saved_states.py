"""States of a motion between its steps, as they are saved: on the constraints, with accelerations
and multipliers.

The loop that projects a state evaluates it once more at its end; the formulation solves the
equations of this evaluation. The derivative is that of the end
(`_projection.attach_projection_jvp`) and of the formulation there.
"""

import functools
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from .._custom_types import Scalar
from .._programs import program
from .._solution import RESULTS
from .._stop_gradient import stop_gradient
from .._system import AbstractSystem
from ._arguments import Packed, split
from ._friction import accelerated
from ._projection import (
    attach_projection_jvp,
    project_and_evaluate,
    ProjectedEvaluation,
)


class SavedState(NamedTuple):
    """`position_error`, `velocity_error`: the largest geometric residual and the largest
    |C v + b|, rows as they are, without derivative."""

    q: Float[Array, " nq"]
    v: Float[Array, " nv"]
    acceleration: Float[Array, " nv"]
    multipliers: Float[Array, " rows"]
    result: RESULTS
    position_error: Scalar
    velocity_error: Scalar


@functools.singledispatch
def nearly_projected(
    solver: Any, system: AbstractSystem, t: Scalar, y: Float[Array, " state"]
) -> Float[Array, " state"]:
    """A state of a method's solution, so near to the constraints that the derivative of the way
    onto them is that at its end."""
    del solver, system, t
    return y


@eqx.filter_custom_jvp
def saved_state(packed: Packed, t: Scalar, y: Float[Array, " state"]) -> SavedState:
    """The state that a run saves for y = (q, v, passages) of its solution. The formulation of the
    arguments is that of the run."""
    return _saved(packed, t, y)


@program
def _saved(packed: Packed, t: Scalar, y: Float[Array, " state"]) -> SavedState:
    given = packed.opened()
    system = given.system
    q, v = split(system, y)
    if given.stabilisation.projecting:
        end = project_and_evaluate(system, q, v, t)
    else:
        end = ProjectedEvaluation(q, v, system.evaluation(q, v, t))
    found = accelerated(system, given.formulation, end.evaluation.equations, end.q, end.v, t)
    gap, rate = (
        jnp.max(jnp.abs(x), initial=0.0) for x in (end.evaluation.gap, end.evaluation.rate)
    )
    return SavedState(end.q, end.v, found.acceleration, found.multipliers, found.result, gap, rate)


@saved_state.def_jvp
def _saved_state_jvp(primals: Any, tangents: Any) -> Any:
    saved = saved_state(*primals)
    end = stop_gradient((saved.q, saved.v))

    def again(packed: Packed, t: Scalar, y: Float[Array, " state"]) -> tuple[Array, ...]:
        given = packed.opened()
        system = given.system
        q, v = split(system, y)
        if given.stabilisation.projecting:
            q, v = attach_projection_jvp(system, q, v, t, end)
        equations = system.evaluation(q, v, t).equations
        found = accelerated(system, given.formulation, equations, q, v, t)
        return q, v, found.acceleration, found.multipliers

    _, changes = eqx.filter_jvp(again, primals, tangents)
    still = jax.tree.map(lambda x: jnp.zeros_like(x) if eqx.is_inexact_array(x) else None, saved)
    return saved, SavedState(*changes, *still[4:])
