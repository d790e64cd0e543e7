"""A mechanism, the numbers of it that may change, and what is computed of each design."""

import abc
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, TYPE_CHECKING

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.core import Tracer
from jaxtyping import Array, Bool, Float

from .. import _checks, _settings
from .._checks import known_array
from .._custom_types import BoolScalar, NumberList, Numbers, RealScalarLike, Scalar, Setting
from .._dynamics import inverse_dynamics, simulate, solve_with_friction, Statistics, Trajectory
from .._dynamics._passages import Passages
from .._dynamics._projection import errors, project_velocity
from .._dynamics._trajectory import MOST_STATES
from .._errors import AbstractError, ModelError
from .._formulations import AbstractFormulation, chosen_formulation, given_formulation
from .._kinematics import assemble, assemble_closed, Problem, starts_closed
from .._loading import late
from .._programs import Compiling, program
from .._solution import RESULTS
from .._sweep._subjects import (
    AbstractSubject,
    doubled,
    is_pose,
    may_change_masses,
    offer,
    Placed,
    subject_of,
)
from .._system import AbstractSystem, masses_far_apart, Model


if TYPE_CHECKING:
    import diffrax as dfx
else:
    dfx = late("diffrax")


class DesignError(AbstractError, ValueError):
    """A derivative or a study that does not exist: one sentence that names what it breaks and the
    ways out."""


# --------------------------------------------------------------------------------------------------
# Computation of each design: the states that enter an objective.
# --------------------------------------------------------------------------------------------------


class AbstractRun(eqx.Module):
    """A map from a system and its initial state to the states of an objective.

    `moving`: are they those of a motion, each of which follows from the one before? Otherwise
    there is one, the start itself. `one_mode`: must it be known beforehand whether they are
    differentiated in forward or in reverse mode?
    """

    moving: ClassVar[bool]
    one_mode: ClassVar[bool]

    @abc.abstractmethod
    def __call__(
        self,
        system: AbstractSystem,
        q: Float[Array, " nq"],
        v: Float[Array, " nv"],
        t: Scalar,
        *,
        forward: bool = False,
    ) -> Trajectory:
        """The states with their multipliers; failures are reported by the `result`.

        q is closed. Works under `jit`, `vmap` and differentiation: where only one mode is possible,
        in forward mode if requested, otherwise in reverse mode.
        """

    def check_start(self, start: Any) -> None:
        """
        **Raises:** `ValueError` for a run that ends before it starts. Traced numbers pass.
        """
        del start


class AtState(AbstractRun):
    """One state: the assembled configuration, the velocities next to those given that the
    constraints allow, and what acts there.

    **Arguments:** `formulation`: default as of `simulate`; with `ElasticResolution()` reactions are
    those that the compliances of the model decide.
    """

    moving: ClassVar[bool] = False
    one_mode: ClassVar[bool] = False
    formulation: AbstractFormulation | None

    def __init__(self, formulation: Setting[AbstractFormulation | None] = None):
        self.formulation = given_formulation(formulation)

    def __call__(
        self,
        system: AbstractSystem,
        q: Float[Array, " nq"],
        v: Float[Array, " nv"],
        t: Scalar,
        *,
        forward: bool = False,
    ) -> Trajectory:
        del forward
        found = project_velocity(system, q, v, t)
        v = found.v
        formulation = chosen_formulation(self.formulation, system.structure)
        loads = solve_with_friction(system, q, v, t, formulation=formulation)
        position, velocity = errors(system, q, v, t)
        result = RESULTS.where(found.met, loads.result, RESULTS.assembly_did_not_close)
        none = jnp.asarray(0)
        return Trajectory(
            t[None],
            q[None],
            v[None],
            loads.acceleration[None],
            loads.multipliers[None],
            position[None],
            velocity[None],
            jnp.ones((1,), bool),
            Passages.none(q.dtype),
            jnp.asarray(False),
            Statistics(none, none, none),
            result,
            system,
            elastic=formulation.elastic,
        )


class Driven(AbstractRun):
    """The motion that drivers determine, and its forces: `inverse_dynamics`.

    **Arguments:** `times` (n,): s, increasing; at the first of them the mechanism is assembled.
    `formulation`: as of `AtState`.
    """

    moving: ClassVar[bool] = True
    one_mode: ClassVar[bool] = False
    times: Float[Array, " n"]
    formulation: AbstractFormulation | None

    def __init__(
        self,
        times: Setting[NumberList],
        *,
        formulation: Setting[AbstractFormulation | None] = None,
    ):
        self.times = _settings.increasing(times, "times", float, least=1)
        self.formulation = given_formulation(formulation)

    def __call__(
        self,
        system: AbstractSystem,
        q: Float[Array, " nq"],
        v: Float[Array, " nv"],
        t: Scalar,
        *,
        forward: bool = False,
    ) -> Trajectory:
        del v, t, forward
        return inverse_dynamics(system, q, self.times, formulation=self.formulation, throw=False)


# States that a motion saves where nothing else is said.
STATES = 51


class Motion(AbstractRun):
    """The motion from the initial velocities: `simulate`.

    **Arguments:** `end`: s; `count`: states saved from the start to the end, at equal times, at
    least 2; `rtol`, `atol`: of a step, as of `simulate`; `formulation`: default as of `simulate`;
    `monitor`: watch for singular configurations between the steps (at the saved states a study does
    anyway), unnecessary for a motion without any.
    """

    moving: ClassVar[bool] = True
    one_mode: ClassVar[bool] = True
    end: Scalar
    rtol: Scalar
    atol: Scalar
    formulation: AbstractFormulation | None
    count: int = eqx.field(static=True)
    monitor: bool = eqx.field(static=True)

    def __init__(
        self,
        end: Setting[RealScalarLike],
        *,
        count: Setting[int] = STATES,
        rtol: Setting[RealScalarLike] = 1e-8,
        atol: Setting[RealScalarLike] = 1e-10,
        formulation: Setting[AbstractFormulation | None] = None,
        monitor: Setting[bool] = True,
    ):
        self.end = _settings.between(end, "end")
        self.rtol, self.atol = _settings.step_tolerances(rtol, atol)
        self.formulation = given_formulation(formulation)
        self.count = _settings.whole_number(
            count, "count", least=2, most=MOST_STATES, why="the start and the end"
        )
        self.monitor = _settings.flag(monitor, "monitor")

    def check_start(self, start: Any) -> None:
        known = [_checks.concrete(x) for x in (self.end, start)]
        if all(x is not None for x in known) and float(self.end) <= float(start):
            raise ValueError(
                f"end of the run must lie behind the start t, got end {float(self.end):g} s and t "
                f"{float(start):g} s."
            )

    # Compiled, so that nothing is raised.
    @program
    def __call__(
        self,
        system: AbstractSystem,
        q: Float[Array, " nq"],
        v: Float[Array, " nv"],
        t: Scalar,
        *,
        forward: bool = False,
    ) -> Trajectory:
        start = jax.lax.stop_gradient(t)
        return simulate(
            system,
            q,
            project_velocity(system, q, v, t).v,
            self.end,
            start=start,
            times=jnp.linspace(start, self.end, self.count),
            rtol=self.rtol,
            atol=self.atol,
            formulation=self.formulation,
            adjoint=dfx.ForwardMode() if forward else None,
            monitor=self.monitor,
            throw=False,
        )


# The parameter that is the time at which a run starts.
_TIME = "time"


class Study(eqx.Module):
    """A mechanism with named parameters: a design is one number for each of them.

    **Arguments:**

    - `system`: a `Model`, whose parts are named, or a system, whose arrays are.
    - `parameters`: names of single numbers, as in `Cases`: `bodies.crank.mass`, `joints.B.at.x`,
      `drivers.motor.motion.rate`, `gravity.y`, `q.0` ...
    - `run`: what is computed of each design; default `AtState()`.
    - `q`, `v`, `t`: where every design starts to be assembled; default the model's own.

    **Raises:** `ModelError` for a name that means nothing; `DesignError` for one that names
    several numbers; `TypeError` for a run that is none,
    `ValueError` for one that ends before it starts.
    """

    subject: AbstractSubject
    run: AbstractRun
    names: tuple[str, ...] = eqx.field(static=True)
    given: tuple[float, ...] = eqx.field(static=True)
    # Are parts so light that solves lose them? None where that depends on the design.
    light: bool | None = eqx.field(static=True)
    # Are all designs closed to rounding where they start?
    closed: bool = eqx.field(static=True)

    def __init__(
        self,
        system: Model | AbstractSystem,
        parameters: Setting[Sequence[str]],
        *,
        run: Setting[AbstractRun | None] = None,
        q: Float[Array, " nq"] | None = None,
        v: Float[Array, " nv"] | None = None,
        t: RealScalarLike = 0.0,
    ):
        parameters = _settings.names(parameters, "parameters", '["bodies.crank.mass"]')
        chosen = AtState() if run is None else run
        such_as = "AtState(), Driven(times) or Motion(end)"
        self.run = _settings.instance(chosen, AbstractRun, "run", such_as)
        self.subject = subject_of(system, q, v, t)
        self.names = tuple(self.subject.name(name) for name in parameters)
        if not self.names:
            raise DesignError("a study needs at least one parameter, such as bodies.crank.mass.")
        twice = doubled(self.subject, self.names)
        if twice is not None:
            raise DesignError(f"the parameter {twice!r} is named twice; name it once.")
        if _TIME not in self.names:
            self.run.check_start(t)
        self.given = tuple(_number(self.subject, name) for name in self.names)
        system = self.subject.place({}).system
        massive = may_change_masses([name for name in self.names if not is_pose(name)])
        light = system.structure.light
        # Of masses that are far apart the configuration decides.
        varies = massive or masses_far_apart(system) is not False
        self.light = None if varies and not light else light
        self.closed = False

    @property
    def design(self) -> Float[Array, " p"]:
        """The design as the model gives it."""
        return jnp.array(self.given)

    def values(self, design: Setting[Mapping[str, RealScalarLike] | Numbers]) -> Float[Array, " p"]:
        """A design as a vector in the order of `names`; names that are left out keep their
        number.

        **Raises:** `DesignError` for names that are not parameters, or another count of numbers;
        `TypeError` or `ValueError` for numbers that are not finite.
        """
        return design_vector(self, design, "design")

    def direction(self, direction: Setting[Mapping[str, float]]) -> np.ndarray:
        """A direction as a vector: names that are left out do not move.

        **Raises:** `DesignError` for names that are not parameters.
        """
        _settings.mapping(direction, "direction", '{"bodies.crank.mass": 1.0}')
        moved = {
            self.subject.name(name): _settings.known_number(value, f"direction along {name!r}")
            for name, value in direction.items()
        }
        known_parameters(self, moved)
        return np.array([float(moved.get(name, 0.0)) for name in self.names])

    def named(self, vector: Float[Array, " p"] | np.ndarray) -> dict[str, float]:
        """A design or a gradient by names."""
        return dict(zip(self.names, np.asarray(vector).tolist(), strict=True))

    def place_parts(self, design: Float[Array, " p"]) -> Placed:
        """The system and the start of a design, not assembled."""
        placed = self.subject.place({name: design[k] for k, name in enumerate(self.names)})
        return placed.with_light_parts(self.light)

    def settled(self, design: Float[Array, " p"]) -> "Study":
        """The study where it is known whether parts of a concrete design are so light. A program
        that finds it out takes up to three times as long to compile."""
        if self.light is not None:
            return self
        if any(isinstance(x, Tracer) for x in jax.tree.leaves((self.subject, design))):
            return self
        try:
            numbers = dict(zip(self.names, np.asarray(design), strict=True))
            system = self.subject.place(numbers).system
        except ModelError:
            # Numbers that cannot be are refused elsewhere.
            return self
        if system.light_parts is not None:
            return self
        return self._with(light=system.structure.light)

    def starting_closed(self) -> "Study":
        """The study for designs that are closed to rounding where they start (`start_closed`): its
        programs contain no search for the assembly."""
        return self._with(closed=True)

    def _with(self, **changed: bool) -> "Study":
        other = object.__new__(Study)
        for name, value in (vars(self) | changed).items():
            object.__setattr__(other, name, value)
        return other

    def respond(
        self, design: Setting[Float[Array, " p"]], *, forward: Setting[bool] = False
    ) -> Trajectory:
        """The states of a design. Works under `jit`, `vmap` and differentiation; failures are
        reported by the `result`. `forward`: through a motion in forward mode, not in reverse
        mode."""
        forward = _settings.flag(forward, "forward")
        system, held, q, v, t = self.place_parts(self.values(design))
        closing = assemble_closed if self.closed else functools.partial(assemble, throw=False)
        assembly = closing(held, q, t)
        # An unclosed configuration is run as it is, and reported by the result.
        response = self.run(system, assembly.q, v, t, forward=forward)
        closed = assembly.result == RESULTS.successful
        result = RESULTS.where(closed, response.result, assembly.result)
        return eqx.tree_at(lambda r: r.result, response, result)

    def check(self, design: Float[Array, " p"]) -> None:
        """Refuse a design of numbers that cannot be. Concrete ones only.

        **Raises:** `ModelError`.
        """
        if not isinstance(design, Tracer):
            self.subject.check(dict(zip(self.names, np.asarray(design), strict=True)))


def design_vector(study: Study, design: Any, what: str) -> Float[Array, " p"]:
    """`Study.values` of what the user calls `what`.

    **Raises:** also `TypeError` or `ValueError` for numbers that are not finite.
    """
    if isinstance(design, Mapping):
        _settings.mapping(design, what, '{"bodies.crank.mass": 1.0}')
        changed = {
            study.subject.name(name): _settings.between(value, f"{what} of {name!r}")
            for name, value in design.items()
        }
        known_parameters(study, changed)
        numbers = [changed.get(n, x) for n, x in zip(study.names, study.given, strict=True)]
        if any(isinstance(x, Tracer) for x in numbers):
            return jnp.stack([jnp.asarray(x, float) for x in numbers])
        return known_array(np.array([float(x) for x in numbers]))
    if _checks.holds_numbers(design) and np.shape(design) != (len(study.names),):
        raise DesignError(
            f"{what} must be {len(study.names)} numbers, one for each of "
            f"{', '.join(study.names)}; got shape {list(np.shape(design))}."
        )
    return _settings.vector(design, what)


def known_parameters(study: Study, names: Mapping[str, object]) -> None:
    """**Raises:** `DesignError` for a name that is not a parameter."""
    for name in names:
        if name not in study.names:
            raise DesignError(
                f"{name!r} is no parameter of this study; they are {', '.join(study.names)}."
            )


class States(eqx.Module):
    """States at which the constraint matrix of a design is evaluated: closed configurations.
    Velocities matter to nonlinear velocity constraints alone."""

    times: Float[Array, " n"]
    q: Float[Array, "n nq"]
    v: Float[Array, "n nv"]
    system: AbstractSystem
    result: RESULTS


def states(study: Study, design: Float[Array, " p"], response: Trajectory | None = None) -> States:
    """The states of a concrete design; of one that does not move, where it is assembled.
    `response`: of that design, if it is known."""
    if study.run.moving:
        # The same program as for objectives.
        r = responded(study, design) if response is None else response
        return States(r.times, r.q, r.v, r.system, r.result)
    return _assembled(study.settled(design), design)


@program(compiling=Compiling.ONCE)
def _assembled(study: Study, design: Float[Array, " p"]) -> States:
    system, held, q, v, t = study.place_parts(lax.stop_gradient(design))
    assembly = assemble(held, q, t, throw=False)
    # Any closed configuration will do, and next to a singular one the nearest is hard to find.
    near = assembly.result == RESULTS.assembly_not_nearest
    result = RESULTS.where(near, RESULTS.successful, assembly.result)
    return States(t[None], assembly.q[None], v[None], system, result)


@program(compiling=Compiling.ONCE)
def start_closed(study: Study, designs: Float[Array, "k p"]) -> Bool[Array, " k"]:
    """Is each of the designs closed to rounding where it starts?"""

    def one(design: Float[Array, " p"]) -> BoolScalar:
        _, held, q, _, t = study.place_parts(design)
        return starts_closed(Problem(held, q, t))

    return jax.vmap(one)(designs)


def responded(study: Study, design: Float[Array, " p"]) -> Trajectory:
    """The states of a concrete design (p,), without derivative: `Study.respond` in one program."""
    return _responded(study.settled(design), design)


@program(compiling=Compiling.ONCE)
def _responded(study: Study, design: Float[Array, " p"]) -> Trajectory:
    return study.respond(lax.stop_gradient(design))


def _number(subject: AbstractSubject, name: str) -> float:
    value = subject.value(name)
    if value.shape != ():
        raise DesignError(
            f"{name!r} names {value.size} numbers; a parameter is one number, so add an entry: "
            f"{offer(value.shape, subject.naming(name))}."
        )
    return float(value)


# --------------------------------------------------------------------------------------------------
# Derivatives of what is computed of a design, in the mode that serves the question.
#
# Through states and driven motions all modes go. A loop over time has one, which is chosen before
# it is built: forward for few parameters and for second derivatives, reverse, with checkpoints, for
# many parameters.
# --------------------------------------------------------------------------------------------------


# Parameters for each function up to which a motion is differentiated forward. A reverse gradient
# was measured to cost five motions and each parameter forward less than one, and a reverse program
# takes three times as long to compile.
_FEW = 6

# From x (p,), and whether forward mode is requested, to values (m,) and auxiliary output.
Answered = Callable[[Float[Array, " p"], bool], tuple[Float[Array, " m"], Any]]


def slopes(
    run: AbstractRun,
    function: Answered,
    x: Float[Array, " p"],
    count: int,
    *,
    forward: bool = False,
) -> tuple[Float[Array, " m"], Float[Array, "m p"], Any]:
    """Values, their derivatives, and what else the function of `count` values gives. `forward`:
    whatever it costs, as it is to be differentiated again."""
    if run.one_mode and (forward or x.shape[0] <= _FEW * count):

        def pushed(x: Float[Array, " p"]) -> Any:
            values, more = function(x, True)
            return values, (values, more)

        found, (values, more) = jax.jacfwd(pushed, has_aux=True)(x)
        return values, found, more
    values, pull, more = jax.vjp(lambda x: function(x, False), x, has_aux=True)
    if count == 1:
        return values, pull(jnp.ones(1))[0][None], more
    return values, jax.vmap(pull)(jnp.eye(count))[0], more
