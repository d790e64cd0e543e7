"""Steps of given lengths, for methods without an error estimate."""

import functools
from typing import Any

import diffrax as dfx
import jax.numpy as jnp
from jaxtyping import Array, Float

from .. import _checks
from .._formulations import AbstractFormulation
from .._system import AbstractSystem, refuse_acceleration_level
from ._generalized_alpha import GeneralizedAlpha
from ._integration import Steps
from ._stabilisation import AbstractStabilisation


class FixedSteps(dfx.AbstractStepSizeController[Any, Any]):
    """A controller without tolerances, under which a step that became NaN ends the run at its
    start."""

    controller: dfx.AbstractStepSizeController

    def wrap(self, direction: Any) -> "FixedSteps":
        return FixedSteps(self.controller.wrap(direction))

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
        solved = jnp.all(jnp.isfinite(y1_candidate)) | jnp.logical_not(keep)
        failed: Any = dfx.RESULTS.nonlinear_divergence
        failure = dfx.RESULTS.where(solved, result, failed)
        return keep & solved, jnp.where(solved, next_t0, t0), next_t1, jump, inner, failure


@functools.singledispatch
def steps_of_method(
    solver: dfx.AbstractSolver | None,
    system: AbstractSystem,
    steps: Steps,
    stabilisation: AbstractStabilisation,
    adjoint: dfx.AbstractAdjoint | None,
) -> Steps:
    """The steps that a method makes.

    **Raises:** `ValueError` for what does not go with it.
    """
    del solver, stabilisation, adjoint
    controller, first_step = steps
    adaptive = isinstance(controller, dfx.AbstractAdaptiveStepSizeController)
    if controller is None or adaptive or not system.structure.nonlinear.any():
        return steps
    # A step across a state at which a velocity row vanishes is none.
    return Steps(FixedSteps(controller), first_step)


@steps_of_method.register
def _(
    solver: GeneralizedAlpha,
    system: AbstractSystem,
    steps: Steps,
    stabilisation: AbstractStabilisation,
    adjoint: dfx.AbstractAdjoint | None,
) -> Steps:
    _refuse_system(solver, system)
    if not stabilisation.projecting:
        raise ValueError(
            "GeneralizedAlpha meets the constraints itself; leave stabilisation=Projection()."
        )
    if isinstance(adjoint, dfx.BacksolveAdjoint):
        raise ValueError(
            "BacksolveAdjoint solves equations that GeneralizedAlpha does not know; use "
            "RecursiveCheckpointAdjoint() (reverse mode) or ForwardMode() in its place."
        )
    controller, first_step = steps
    if isinstance(controller, dfx.AbstractAdaptiveStepSizeController):
        raise ValueError(
            "GeneralizedAlpha knows no error of its steps, so that adaptive step sizes do not go "
            f"with it, got {type(controller).__name__}; give GeneralizedAlpha(step=1e-3) (s) "
            "and no controller."
        )
    if controller is None:
        first_step = solver.step_length if first_step is None else first_step
        if first_step is None:
            raise ValueError(
                "GeneralizedAlpha makes steps of one length, and was given none; write "
                "GeneralizedAlpha(step=1e-3), it is in s."
            )
        controller = dfx.ConstantStepSize()
    return Steps(FixedSteps(controller), first_step)


@functools.singledispatch
def check_method(solver: dfx.AbstractSolver, formulation: AbstractFormulation) -> None:
    """
    **Raises:** `ValueError` for a formulation that the method does not support.
    """
    del solver, formulation


@check_method.register
def _(solver: GeneralizedAlpha, formulation: AbstractFormulation) -> None:
    del solver
    if formulation.adds_force:
        raise ValueError(
            "GeneralizedAlpha knows the forces of the system alone, and "
            f"{type(formulation).__name__} adds some; leave the solver out, or take an implicit "
            "one such as diffrax.Kvaerno5()."
        )


def _refuse_system(solver: GeneralizedAlpha, system: AbstractSystem) -> None:
    """**Raises:** `ValueError` for a system that the method cannot follow."""
    radius = _checks.concrete(solver.spectral_radius)
    if radius is not None and system.structure.rows and float(radius) == 1.0:
        raise ValueError(
            "spectral_radius must be less than 1 for a system with constraints, whose multipliers "
            "nothing damps otherwise, got 1; 0.8 is usual."
        )
    if system.frictional_joints:
        raise ValueError(
            "GeneralizedAlpha knows no Coulomb friction in joints, got friction in "
            f"{', '.join(system.frictional_joints)}; leave the solver out."
        )
    refuse_acceleration_level(system.structure, "GeneralizedAlpha", "leave the solver out")
    if system.structure.internal.size:
        names = ", ".join(system.structure.coordinates[k].name for k in system.structure.internal)
        raise ValueError(
            f"GeneralizedAlpha knows no states of forces, got {names}; leave the solver out, or "
            "take an implicit one such as diffrax.Kvaerno5()."
        )
