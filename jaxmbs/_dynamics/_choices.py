"""A user's choices for a run, checked before anything is computed."""

from collections.abc import Callable
from typing import Any, NamedTuple

import diffrax as dfx

from .. import _settings
from ._adjoints import check_adjoint
from ._events import AbstractEvent
from ._stabilisation import AbstractStabilisation, Projection


def chosen_solver(solver: Any) -> dfx.AbstractSolver:
    """`Dopri8` for None.

    **Raises:** as all of these, `TypeError` for an object of another class, or the class itself.
    """
    given = dfx.Dopri8() if solver is None else solver
    such_as = "a Diffrax solver such as diffrax.Dopri8()"
    return _settings.instance(given, dfx.AbstractSolver, "solver", such_as)


def chosen_stabilisation(stabilisation: Any) -> AbstractStabilisation:
    """`Projection` for None."""
    given = Projection() if stabilisation is None else stabilisation
    such_as = "Projection() or Baumgarte(alpha, beta)"
    return _settings.instance(given, AbstractStabilisation, "stabilisation", such_as)


def chosen_controller(controller: Any, first_step: Any) -> dfx.AbstractStepSizeController | None:
    """The controller, or None for None; both arguments are checked.

    **Raises:** also `ValueError` for steps of constant size without that size.
    """
    if first_step is not None:
        _settings.check_range(first_step, "first_step", above=0)
    if controller is None:
        return None
    such_as = "a Diffrax step size controller such as diffrax.PIDController(rtol=..., atol=...)"
    _settings.instance(controller, dfx.AbstractStepSizeController, "controller", such_as)
    if first_step is None and isinstance(controller, dfx.ConstantStepSize):
        raise ValueError("first_step must be given with ConstantStepSize, got None; it is in s.")
    return controller


def chosen_adjoint(adjoint: Any, events: tuple[AbstractEvent, ...]) -> dfx.AbstractAdjoint:
    """`RecursiveCheckpointAdjoint` for None.

    **Raises:** also `ValueError` for an adjoint that does not go with such a run.
    """
    given = dfx.RecursiveCheckpointAdjoint() if adjoint is None else adjoint
    such_as = "an adjoint of Diffrax such as diffrax.ForwardMode()"
    _settings.instance(given, dfx.AbstractAdjoint, "adjoint", such_as)
    check_adjoint(given, events)
    return given


class Progress(NamedTuple):
    """How a run says where it is: a `meter` in its program, and a function, `tell`, of the time."""

    meter: dfx.AbstractProgressMeter
    tell: Callable[[float], Any]


def chosen_progress(progress: Any) -> Progress:
    """Neither says anything for None."""
    if callable(progress) and not isinstance(progress, type):
        return Progress(dfx.NoProgressMeter(), chosen_tell(progress))
    given = dfx.NoProgressMeter() if progress is None else progress
    such_as = "a function of the time (s), or a Diffrax progress meter such as TqdmProgressMeter()"
    meter = _settings.instance(given, dfx.AbstractProgressMeter, "progress", such_as)
    return Progress(meter, _silent)


def chosen_tell(progress: Any) -> Callable[[float], Any]:
    """A function of the time that is reached, which says nothing for None."""
    if progress is None:
        return _silent
    return _settings.function(progress, "progress", "a function of the time (s)", "time")


def _silent(time: float) -> None:
    del time


def chosen_events(events: Any, monitor: bool) -> tuple[AbstractEvent, ...]:
    """
    **Raises:** also `ValueError` for an event that needs the monitor in a run without it.
    """
    such_as = "StopWhen(function), StopAtSingular()"
    found = _settings.instances(events, AbstractEvent, "events", such_as)
    if not monitor and any(event.needs_monitor for event in found):
        raise ValueError("StopAtSingular stops what the monitor sees; leave monitor=True.")
    return found
