"""A user's choices for a run, events among them, checked before anything is computed, and data
of a run outside of its program.
"""

import abc
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, NamedTuple, TYPE_CHECKING

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Float

from .. import _settings
from .._checks import listed, number, shown
from .._custom_types import BoolScalar, IntScalar, RealScalarLike, Scalar, Setting
from .._formulations import AbstractFormulation
from .._formulations._elastic_resolution import check_compliances
from .._loading import late
from .._programs import Sealed
from .._solution import RESULTS
from .._system import AbstractSystem
from ._passages import Passages
from ._projection import SavedState
from ._state_evaluation import AbstractStabilisation, Projection
from ._trajectory import Statistics, Trajectory


if TYPE_CHECKING:
    import diffrax as dfx

    from . import _run as adjoints, _solver as fixed_steps
else:
    dfx = late("diffrax")
    adjoints = late(f"{__package__}._run")
    fixed_steps = late(f"{__package__}._solver")


EventFunction = Callable[
    [AbstractSystem, Float[Array, " nq"], Float[Array, " nv"], RealScalarLike], Scalar
]


class AbstractEvent(eqx.Module):
    """A reason to end a run early. `needs_monitor`: it depends on the passages. `within`: it ends
    the run within a step, not with it. `falling`: only where its condition falls through zero, and
    steps are kept from passing over that."""

    needs_monitor: ClassVar[bool]
    within: ClassVar[bool]
    falling: ClassVar[bool] = False

    @abc.abstractmethod
    def reason(self, trajectory: Trajectory) -> str:
        """Explanation of the event at the end of this trajectory, and what to try: sentences that
        follow "The run was stopped at ... s: "."""

    @abc.abstractmethod
    def condition(
        self,
        system: AbstractSystem,
        q: Float[Array, " nq"],
        v: Float[Array, " nv"],
        passages: Scalar,
        t: RealScalarLike,
    ) -> Scalar | BoolScalar:
        """A real number whose change of sign ends the run there, or a boolean that ends it
        after the step."""

    @abc.abstractmethod
    def check_start(self, system: AbstractSystem, q: Float[Array, " nq"]) -> None:
        """
        **Raises:** `ValueError` for a system without what it watches, and for an initial
        configuration from which it has no meaning; a traced one is not checked.
        """


class StopWhen(AbstractEvent):
    """Stop where `function(system, q, v, t)` crosses zero (either way)."""

    needs_monitor: ClassVar[bool] = False
    within: ClassVar[bool] = True
    function: EventFunction

    def __init__(self, function: Setting[EventFunction]):
        self.function = _settings.function(
            function,
            "function",
            "a function (system, q, v, t) to a number that crosses zero",
            "system, q, v, t",
        )

    def reason(self, trajectory: Trajectory) -> str:
        del trajectory
        name = getattr(self.function, "__name__", type(self.function).__name__)
        return (
            f"{name!r} crossed zero. For the motion behind it leave this event out, or start "
            "another run from the last state."
        )

    def condition(
        self,
        system: AbstractSystem,
        q: Float[Array, " nq"],
        v: Float[Array, " nv"],
        passages: Scalar,
        t: RealScalarLike,
    ) -> Scalar | BoolScalar:
        del passages
        return jnp.asarray(self.function(system, q, v, t), q.dtype)

    def check_start(self, system: AbstractSystem, q: Float[Array, " nq"]) -> None:
        del system, q


class StopAtLimit(AbstractEvent):
    """Stop where a joint first meets one of its stops (`forces.JointStop`).

    The last state is that at which the depth of the stop is zero; the trajectory's `message` names
    the stop and its joint. A joint that meets a stop and leaves it within one step is not seen,
    which the force of the stop prevents as far as `rtol` and `atol` resolve it.

    **Arguments:** `stops`: names of the stops that count; default all.

    **Raises:** `TypeError` for what are no names. The run refuses names that are none of its stops,
    and an initial configuration in which one of them is met already; where that is traced it is not
    checked, and the run ends where the joint leaves the stop.
    """

    needs_monitor: ClassVar[bool] = False
    within: ClassVar[bool] = True
    stops: tuple[str, ...] | None = eqx.field(static=True)

    def __init__(self, stops: Setting[Sequence[str] | None] = None):
        self.stops = None if stops is None else _settings.names(stops, "stops", "['buffer']")
        if self.stops == ():
            raise ValueError("stops must name at least one stop, got []; leave it out for all.")

    def reason(self, trajectory: Trajectory) -> str:
        system = trajectory.system
        places = self._places(system)
        depths = np.asarray(system.stop_depths(trajectory.q[-1]))[places]
        row, end = np.unravel_index(np.argmax(depths), depths.shape)
        info = system.stops[places[row]]
        return (
            f"joint {shown(info.joint)} met the {('lower', 'upper')[end]} bound of its stop "
            f"{shown(info.name)}. For the motion behind it leave StopAtLimit out."
        )

    def condition(
        self,
        system: AbstractSystem,
        q: Float[Array, " nq"],
        v: Float[Array, " nv"],
        passages: Scalar,
        t: RealScalarLike,
    ) -> Scalar | BoolScalar:
        del v, passages, t
        return jnp.max(system.stop_depths(q)[np.array(self._places(system))])

    def check_start(self, system: AbstractSystem, q: Float[Array, " nq"]) -> None:
        places = self._places(system)
        if any(isinstance(x, Tracer) for x in jax.tree.leaves((system, q))):
            return
        depths = np.asarray(system.stop_depths(q))[places]
        met = [system.stops[k] for k, own in zip(places, depths, strict=True) if np.max(own) >= 0]
        if met:
            named = listed([shown(info.name) for info in met])
            raise ValueError(
                f"StopAtLimit: stops that are met already where the run begins: {named}; begin "
                "elsewhere, or name the others, StopAtLimit(stops=[...])."
            )

    def _places(self, system: AbstractSystem) -> list[int]:
        """Indices of the stops that end the run.

        **Raises:** `ValueError`, with the names of all stops, for an unknown one.
        """
        names = [info.name for info in system.stops]
        if not names:
            raise ValueError("StopAtLimit: the system has no stop of a joint (forces.JointStop).")
        chosen = names if self.stops is None else self.stops
        for name in chosen:
            if name not in names:
                raise ValueError(
                    f"StopAtLimit: there is no stop {shown(name)}; there are {listed(names)}."
                )
        return [names.index(name) for name in chosen]


class StopAtSingular(AbstractEvent):
    """Stop at the first singular configuration that the motion passes, where the rank of C
    drops and the mobility changes.

    The run ends with the step that crossed it, not in it: there constraints do not determine the
    motion, and the accuracy of states decreases towards it. `passages[0]` is the time of the
    configuration itself, interpolated within that step. A motion that comes very near one may be
    stopped too; then it has no `passages`, and `message` states that.
    """

    needs_monitor: ClassVar[bool] = True
    within: ClassVar[bool] = False

    def reason(self, trajectory: Trajectory) -> str:
        if not int(trajectory.passage_count):
            return (
                "the motion came near a singular configuration within the last step. A closer "
                "look tells that it does not pass it; for the motion behind it leave "
                "StopAtSingular out, or start another run from the last state."
            )
        near = "" if trajectory.passed else " (or came near one, which could not be told)"
        when = f"{float(trajectory.passages[0]):.6g} s"
        return (
            f"the motion passed a singular configuration{near} at {when}, within the last step. "
            "There the mobility changes (`singularity` tells how); for the "
            "motion behind it leave StopAtSingular out."
        )

    def condition(
        self,
        system: AbstractSystem,
        q: Float[Array, " nq"],
        v: Float[Array, " nv"],
        passages: Scalar,
        t: RealScalarLike,
    ) -> Scalar | BoolScalar:
        del system, q, v, t
        return passages > 0.5

    def check_start(self, system: AbstractSystem, q: Float[Array, " nq"]) -> None:
        del system, q


# --------------------------------------------------------------------------------------------------
# A user's choices for a run, checked before anything is computed, and data of a run outside of
# its program.
# --------------------------------------------------------------------------------------------------


# --------------------------------------------------------------------------------------------------
# Data of a run outside of its program.
#
# They hold no class of Diffrax, which is loaded where a program is traced, or by a user who passes
# one of its objects. A run whose program is in the store does not load it.
# --------------------------------------------------------------------------------------------------


class Steps(NamedTuple):
    """The choice of step lengths, and the first of them (s), both as in `simulate`."""

    controller: Any
    first_step: Any


class Integration(eqx.Module):
    """Method of computing a motion; the arguments of `simulate`. `solver`, `adjoint` and `progress`
    (a meter) are Diffrax's, or None for what it takes without them; `tolerances`: rtol and atol of
    the controller where none was given."""

    formulation: AbstractFormulation
    solver: Any
    stabilisation: AbstractStabilisation
    controller: Any
    tolerances: tuple[Scalar, Scalar]
    adjoint: Any
    events: tuple[AbstractEvent, ...]
    progress: Any
    first_step: Scalar | None
    max_steps: int = eqx.field(static=True)
    monitored: bool = eqx.field(static=True)

    @property
    def explicit(self) -> bool:
        """Is the method an explicit Runge-Kutta method?"""
        return self.solver is None or isinstance(self.solver, dfx.AbstractERK)


class Start(NamedTuple):
    """Beginning of a run. `y`: q, v and the number of passages; `span` (s): its first and its last
    time. `onto`: as in `Arguments`."""

    y: Float[Array, " state"]
    span: Float[Array, " times"]
    onto: BoolScalar | None


class StateChecks(NamedTuple):
    """Checks of saved states: the first failure of one (`saved`); are all `finite`; the largest
    deflection of an elastic body, `bent`, beside its length, if there is such a body."""

    saved: RESULTS
    finite: BoolScalar
    bent: Scalar | None


class Underway(eqx.Module):
    """A run between two chunks. `state`: Diffrax's; `start`: see there; `found`: on the states that
    were saved."""

    state: Sealed
    start: Start
    found: StateChecks


class Chunk(NamedTuple):
    """Results of a chunk. `times` and states in `saved`: `count` of them at times that were
    requested, and then, if it is `shown`, that in which the run has come to its end, or was
    stopped. The others are of the run until then; `reached` (s): by its steps; `event`: which one
    ended it."""

    times: Float[Array, " states"]
    saved: SavedState
    count: IntScalar
    shown: BoolScalar
    finished: BoolScalar
    reached: Scalar
    result: RESULTS
    stopped: BoolScalar
    event: IntScalar
    passages: Passages
    statistics: Statistics


class Limits(NamedTuple):
    """Ends of a chunk: `count` of its times, and `steps` attempted. `shown`: is the state in which
    it ends shown in any case?"""

    count: Any
    steps: Any
    shown: Any


# --------------------------------------------------------------------------------------------------
# A user's choices for a run, checked before anything is computed.
#
# None stands for Diffrax's default, which the program of the run fills in (`_run.with_defaults`).
# --------------------------------------------------------------------------------------------------


# Steps that a run attempts at most, where nothing else is said.
MAX_STEPS = 1_000_000


def chosen_solver(solver: Any) -> Any:
    """
    **Raises:** as all of these, `TypeError` for an object of another class, or the class itself.
    """
    if solver is None:
        return None
    such_as = "a Diffrax solver such as diffrax.Dopri8()"
    _settings.instance(solver, dfx.AbstractSolver, "solver", such_as)
    # The default by its name is the same program.
    return None if solver == dfx.Dopri8() else solver


def chosen_stabilisation(stabilisation: Any) -> AbstractStabilisation:
    """`Projection` for None."""
    given = Projection() if stabilisation is None else stabilisation
    such_as = "Projection() or Baumgarte(alpha, beta)"
    return _settings.instance(given, AbstractStabilisation, "stabilisation", such_as)


def chosen_controller(controller: Any, first_step: Any) -> Any:
    """The controller. Both arguments are checked.

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


def chosen_adjoint(adjoint: Any, events: tuple[AbstractEvent, ...]) -> Any:
    """
    **Raises:** also `ValueError` for an adjoint that does not go with such a run.
    """
    if adjoint is None:
        return None
    such_as = "an adjoint of Diffrax such as diffrax.ForwardMode()"
    _settings.instance(adjoint, dfx.AbstractAdjoint, "adjoint", such_as)
    adjoints.check_adjoint(adjoint, events)
    return adjoint


def chosen_steps(
    solver: Any,
    system: AbstractSystem,
    steps: Steps,
    stabilisation: AbstractStabilisation,
    adjoint: Any,
) -> Steps:
    """The steps that a method makes.

    **Raises:** also `ValueError` for what does not go with it.
    """
    if solver is None and steps.controller is None:
        return steps
    return fixed_steps.steps_of_method(solver, system, steps, stabilisation, adjoint)


def check_formulation(solver: Any, formulation: AbstractFormulation) -> None:
    """
    **Raises:** `ValueError` for a formulation that the method does not support.
    """
    if solver is not None:
        fixed_steps.check_method(solver, formulation)


def values_ignore(adjoint: Any) -> bool:
    """Is this an adjoint that leaves the values of a run unchanged?"""
    return adjoint is None or adjoints.differentiates_alone(adjoint)


class Progress(NamedTuple):
    """Reports of a run's progress: a `meter` in its program, if any, and a function, `tell`, of the
    time."""

    meter: Any
    tell: Callable[[float], Any]


def chosen_progress(progress: Any) -> Progress:
    """Neither says anything for None."""
    if callable(progress) and not isinstance(progress, type):
        return Progress(None, chosen_tell(progress))
    if progress is None:
        return Progress(None, _silent)
    such_as = "a function of the time (s), or a Diffrax progress meter such as TqdmProgressMeter()"
    meter = _settings.instance(progress, dfx.AbstractProgressMeter, "progress", such_as)
    return Progress(None if meter == dfx.NoProgressMeter() else meter, _silent)


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
    such_as = "StopWhen(function), StopAtSingular(), StopAtLimit()"
    found = _settings.instances(events, AbstractEvent, "events", such_as)
    if not monitor and any(event.needs_monitor for event in found):
        raise ValueError("StopAtSingular stops what the monitor sees; leave monitor=True.")
    return found


def integration_of(
    system: AbstractSystem,
    formulation: AbstractFormulation,
    dtype: np.dtype,
    *,
    solver: Any = None,
    stabilisation: Any = None,
    tolerances: tuple[Any, Any],
    controller: Any = None,
    first_step: Any = None,
    max_steps: int = MAX_STEPS,
    adjoint: Any = None,
    events: Any = (),
    meter: Any = None,
    monitor: bool = True,
) -> Integration:
    """The method of a run, from the arguments of `simulate`. The `formulation` is one that was
    chosen, `max_steps` and `monitor` were checked; `tolerances`: rtol and atol.

    **Raises:** `TypeError` and `ValueError` for all the others, as `simulate`.
    """
    solver = chosen_solver(solver)
    check_compliances(formulation, system.structure)
    stabilisation = chosen_stabilisation(stabilisation)
    controller = chosen_controller(controller, first_step)
    events = chosen_events(events, monitor)
    adjoint = chosen_adjoint(adjoint, events)
    steps = Steps(controller, first_step)
    controller, first_step = chosen_steps(solver, system, steps, stabilisation, adjoint)
    check_formulation(solver, formulation)
    return Integration(
        formulation.numbered(system.structure),
        solver,
        stabilisation,
        controller,
        _settings.step_tolerances(*tolerances, dtype),
        adjoint,
        events,
        meter,
        None if first_step is None else number(first_step, dtype),
        max_steps,
        monitor and bool(system.structure.rows),
    )
