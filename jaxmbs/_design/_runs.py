"""Computation of each design: the states that enter an objective."""

import abc
import functools
from typing import Any, ClassVar, TYPE_CHECKING

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from .. import _settings
from .._custom_types import NumberList, RealScalarLike, Scalar, Setting
from .._dynamics import inverse_dynamics, simulate, solve_with_friction, Statistics, Trajectory
from .._dynamics._projection import errors, project_velocity
from .._formulations import AbstractFormulation, chosen_formulation, given_formulation
from .._loading import late
from .._programs import program
from .._solution import RESULTS
from .._system import AbstractSystem


if TYPE_CHECKING:
    import diffrax as dfx
else:
    dfx = late("diffrax")


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
        loads = solve_with_friction(system, formulation, q, v, t)
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
            jnp.zeros((0,), q.dtype),
            none,
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
        count: Setting[int] = 51,
        rtol: Setting[RealScalarLike] = 1e-8,
        atol: Setting[RealScalarLike] = 1e-10,
        formulation: Setting[AbstractFormulation | None] = None,
        monitor: Setting[bool] = True,
    ):
        self.end = _settings.between(end, "end")
        self.rtol, self.atol = _settings.step_tolerances(rtol, atol)
        self.formulation = given_formulation(formulation)
        self.count = _settings.whole_number(count, "count", least=2, why="the start and the end")
        self.monitor = _settings.flag(monitor, "monitor")

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


@functools.singledispatch
def check_start(run: AbstractRun, start: Any) -> None:
    """**Raises:** `ValueError` for a run that ends before it starts. Traced numbers pass."""
    del run, start


@check_start.register
def _(run: Motion, start: Any) -> None:
    known = [_settings.known_numbers(x) for x in (run.end, start)]
    if all(x is not None for x in known) and float(run.end) <= float(start):
        raise ValueError(
            f"end of the run must lie behind the start t, got end {float(run.end):g} s and t "
            f"{float(start):g} s."
        )
