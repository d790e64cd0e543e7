"""What is computed of each design: the states of which an objective is made."""

import abc
from typing import ClassVar

import diffrax as dfx
import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from .. import _checks
from .._custom_types import NumberList, RealScalarLike, Scalar
from .._dynamics import inverse_dynamics, simulate, solve_with_friction, Statistics, Trajectory
from .._dynamics._projection import allowed, errors
from .._formulations import AbstractFormulation, MinimumNorm
from .._solution import RESULTS
from .._system import AbstractSystem


_FORWARD = dfx.ForwardMode()


class AbstractRun(eqx.Module):
    """From a system and the state in which it starts to the states that an objective sees.

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
        """The states with their multipliers; what fails is told by the `result`.

        q is closed. Works under `jit`, `vmap` and differentiation: where there is one mode alone,
        in forward mode if it is asked for, in reverse mode otherwise.
        """


class AtState(AbstractRun):
    """One state: the assembled configuration, the velocities next to those given that the
    constraints allow, and what acts there."""

    moving: ClassVar[bool] = False
    one_mode: ClassVar[bool] = False

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
        found = allowed(system, q, v, t)
        v = found.v
        loads = solve_with_friction(system, MinimumNorm(), q, v, t)
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
        )


class Driven(AbstractRun):
    """The motion that drivers determine, and the forces behind it: `inverse_dynamics`.

    **Arguments:** `times` (n,): s, increasing; at the first of them the mechanism is assembled.
    """

    moving: ClassVar[bool] = True
    one_mode: ClassVar[bool] = False
    times: Float[Array, " n"]

    def __init__(self, times: NumberList):
        self.times = jnp.asarray(times, dtype=float)

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
        return inverse_dynamics(system, q, self.times, throw=False)


class Motion(AbstractRun):
    """The motion from the initial velocities: `simulate`.

    **Arguments:** `end`: s; `count`: states saved between the start and the end, at equal times;
    `rtol`, `atol`: of a step; `formulation`: default `MinimumNorm()`; `monitor`: watch for singular
    configurations between the steps (at the saved states a study does anyway), which a motion
    that meets none can do without.
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
        end: RealScalarLike,
        *,
        count: int = 51,
        rtol: RealScalarLike = 1e-8,
        atol: RealScalarLike = 1e-10,
        formulation: AbstractFormulation | None = None,
        monitor: bool = True,
    ):
        if count < 2:
            raise ValueError(f"count must be at least 2 (the start and the end), got {count}.")
        self.end = _checks.real(end, (), "end")
        self.rtol = _checks.positive(rtol, "rtol")
        self.atol = _checks.positive(atol, "atol")
        self.formulation = formulation
        self.count = count
        self.monitor = monitor

    # Compiled, so that nothing is raised.
    @eqx.filter_jit
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
            allowed(system, q, v, t).v,
            self.end,
            start=start,
            times=jnp.linspace(start, self.end, self.count),
            rtol=self.rtol,
            atol=self.atol,
            formulation=self.formulation,
            adjoint=_FORWARD if forward else None,
            monitor=self.monitor,
            throw=False,
        )
