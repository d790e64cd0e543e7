"""Preparation of a run for the adjoint that differentiates it.

Most differentiate the steps that were made. The continuous adjoint does not use them: it solves the
equations of the motion again, backwards, together with those of the derivative. It needs no
projection: the exact motion stays on the constraints, and the residual of a step is as small as its
error. What moves with the parameters is the start, so that this is projected where it can be
differentiated.
"""

import functools
from typing import Any, NamedTuple

import diffrax as dfx
from jaxtyping import Array, Float

from .._custom_types import RealScalarLike
from .._stop_gradient import stop_gradient
from .._system import AbstractSystem
from ._projection import attach_projection_jvp


@functools.singledispatch
def check_adjoint(adjoint: dfx.AbstractAdjoint, events: tuple[Any, ...]) -> None:
    """**Raises:** `ValueError` for an adjoint that does not go with such a run."""
    del adjoint, events


@check_adjoint.register
def _(adjoint: dfx.BacksolveAdjoint, events: tuple[Any, ...]) -> None:
    if events:
        raise ValueError(
            "BacksolveAdjoint knows no events; use RecursiveCheckpointAdjoint() (reverse mode) or "
            "ForwardMode() in its place."
        )


@check_adjoint.register
def _(adjoint: dfx.ImplicitAdjoint, events: tuple[Any, ...]) -> None:
    raise ValueError(
        "ImplicitAdjoint differentiates states of rest, no motion; use RecursiveCheckpointAdjoint()"
        " (reverse mode) or ForwardMode() in its place, or `equilibrium` for a state of rest."
    )


@functools.singledispatch
def differentiates_alone(adjoint: dfx.AbstractAdjoint) -> bool:
    """Are the values of a run known to be the same as with any other adjoint?"""
    del adjoint
    return False


@differentiates_alone.register(dfx.RecursiveCheckpointAdjoint)
@differentiates_alone.register(dfx.ForwardMode)
@differentiates_alone.register(dfx.DirectAdjoint)
@differentiates_alone.register(dfx.BacksolveAdjoint)
def _(adjoint: dfx.AbstractAdjoint) -> bool:
    del adjoint
    return True


class PreparedAdjoint(NamedTuple):
    """An adjoint and a choice of steps as a run gives them to Diffrax."""

    adjoint: dfx.AbstractAdjoint
    controller: dfx.AbstractStepSizeController


@functools.singledispatch
def prepared(
    adjoint: dfx.AbstractAdjoint,
    solver: dfx.AbstractSolver,
    controller: dfx.AbstractStepSizeController,
) -> PreparedAdjoint:
    """The adjoint for a run by this method and this choice of steps."""
    del solver
    return PreparedAdjoint(adjoint, controller)


@prepared.register
def _(
    adjoint: dfx.BacksolveAdjoint,
    solver: dfx.AbstractSolver,
    controller: dfx.AbstractStepSizeController,
) -> PreparedAdjoint:
    # The exact motion does not depend on where steps end.
    controller = stop_gradient(controller)
    # A backward integration that ends early would give a wrong derivative without any result code.
    own = {"solver": solver, "stepsize_controller": controller, "throw": True}
    return PreparedAdjoint(dfx.BacksolveAdjoint(**(own | adjoint.kwargs)), controller)


@functools.singledispatch
def started(
    adjoint: dfx.AbstractAdjoint,
    system: AbstractSystem,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    t: RealScalarLike,
) -> tuple[Float[Array, " nq"], Float[Array, " nv"]]:
    """The same state, with the derivative that a run needs of it: the first step projects."""
    del adjoint, system, t
    return q, v


@started.register
def _(
    adjoint: dfx.BacksolveAdjoint,
    system: AbstractSystem,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    t: RealScalarLike,
) -> tuple[Float[Array, " nq"], Float[Array, " nv"]]:
    return attach_projection_jvp(system, q, v, t, (q, v))
