"""Controls that servo constraints need along a motion."""

import functools
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Bool, Float

from .. import _printing
from .._custom_types import Scalar, Setting
from .._formulations import AbstractFormulation, chosen_formulation, NonIdeal, ServoControl
from .._programs import Compiling, program
from .._system import AbstractSystem, Equations
from ._limits import force_unit, limit_line
from ._trajectory import Trajectory


# What may be left of the equations of motion, relative to the largest force in them.
_BALANCED = 1e-6


class Controls(eqx.Module):
    """Actuator forces of servo constraints at the saved times of a motion.

    - `times` (n,): s. `values` (n, controls): N or N m, positive along the velocity or the rows
      that they act on. `limits` (controls,): their largest sizes, infinite where there is none.
    - `names`, `units` (controls,); no units where an actuation matrix was given.
    """

    times: Float[Array, " n"]
    values: Float[Array, "n controls"]
    limits: Float[Array, " controls"]
    names: tuple[str, ...] = eqx.field(static=True)
    units: tuple[str, ...] = eqx.field(static=True)

    def of(self, name: str) -> Float[Array, " n"]:
        """The control of that name.

        **Raises:** `ValueError` that lists the names there are.
        """
        if name not in self.names:
            raise ValueError(f"there is no control {name!r}; there are {', '.join(self.names)}.")
        return self.values[..., self.names.index(name)]

    @property
    def exceeded(self) -> Bool[Array, "n controls"]:
        """True where a control is larger than its limit."""
        return jnp.abs(self.values) > self.limits[..., None, :]

    def __str__(self) -> str:
        if self.values.ndim > 2:
            return _printing.batch("motions", self.values.shape[:-2])
        times, values, limits = (np.asarray(x) for x in (self.times, self.values, self.limits))
        return "\n".join(
            limit_line(f"{name}: ", unit, times, values[:, k], limits[k])
            for k, (name, unit) in enumerate(zip(self.names, self.units, strict=True))
        )


def controls(
    trajectory: Trajectory, formulation: Setting[AbstractFormulation | None] = None
) -> Controls:
    """The forces that servo constraints need along a motion.

    With `ServoControl` these are those of its actuators. With any other formulation a servo
    constraint acts by the ideal force of its own rows, one control for each row, whose generalized
    force C^T u is added to F. Differentiable, and works under `jit` and `vmap`; what is refused
    because of numbers is NaN there.

    **Arguments:** `trajectory`: of `simulate`; `formulation`: the one that made it, or a
    `ServoControl` to be evaluated at the states of another motion.

    **Returns:** `Controls`, to be printed.

    **Raises:** `ValueError` for a system without servo constraints, and for a motion that was made
    by actuators that `formulation` does not have.
    """
    structure = trajectory.system.structure
    chosen = chosen_formulation(formulation, structure)
    if not structure.servo.any():
        raise ValueError(
            "the system has no servo constraint, so that there are no controls; reactions() of the "
            "trajectory tells the forces of drivers."
        )
    values, left = _controls_along_motion(chosen, trajectory)
    if not isinstance(left, Tracer) and bool(np.any(np.asarray(left) > _BALANCED)):
        raise ValueError(
            "this motion was made by actuators that formulation does not know; give the "
            "ServoControl with which it was simulated."
        )
    # Inside a transformation nothing can be raised.
    values = jnp.where((left > _BALANCED)[..., None], jnp.nan, values)
    said = _describe_controls(chosen, trajectory.system, values.shape[-1])
    return Controls(trajectory.times, values, said.limits, said.names, said.units)


@program(compiling=Compiling.ONCE)
def _controls_along_motion(
    formulation: AbstractFormulation, trajectory: Trajectory
) -> tuple[Float[Array, "n controls"], Float[Array, " n"]]:
    system = trajectory.system

    def at(state: Any) -> Any:
        q, v, t, acceleration, multipliers = state
        friction = system.friction(q, v, t, multipliers)
        equations = system.equations(q, v, t)
        return _evaluate_controls(
            formulation, system, _SavedState(equations, friction, acceleration, multipliers)
        )

    states = (
        trajectory.q,
        trajectory.v,
        trajectory.times,
        trajectory.acceleration,
        trajectory.multipliers,
    )
    return jax.lax.map(at, states)


class _ControlInfo(NamedTuple):
    """Data of controls besides their values: the `names`, `units` and `limits` of each."""

    names: tuple[str, ...]
    units: tuple[str, ...]
    limits: Float[Array, " controls"]


@functools.singledispatch
def _describe_controls(
    formulation: AbstractFormulation, system: AbstractSystem, count: int
) -> _ControlInfo:
    """Info on the controls; for ideal servo constraints, that of their rows."""
    del formulation, count
    rows = np.flatnonzero(system.structure.servo)
    infos = [system.structure.rows[k] for k in rows]
    names, units = zip(*((row.name, force_unit(row.quantity)) for row in infos), strict=True)
    return _ControlInfo(names, units, system.servo_limits()[rows])


@_describe_controls.register
def _(formulation: NonIdeal, system: AbstractSystem, count: int) -> _ControlInfo:
    return _describe_controls(formulation.formulation, system, count)


@_describe_controls.register
def _(formulation: ServoControl, system: AbstractSystem, count: int) -> _ControlInfo:
    moved = formulation.actuated(system.structure)
    names = tuple(info.name for info in moved) or tuple(str(k + 1) for k in range(count))
    units = tuple(force_unit(info.quantity) for info in moved) or ("",) * count
    limits = jnp.asarray(jnp.inf if formulation.limits is None else formulation.limits)
    if limits.shape not in ((), (count,)):
        raise ValueError(
            f"limits must be one number, or one for each of the {count} controls "
            f"({', '.join(names)}), got {limits.shape[0]}."
        )
    return _ControlInfo(names, units, jnp.broadcast_to(limits, (count,)))


class _SavedState(NamedTuple):
    """A saved state: what its motion was made of, and the `friction` (nv,) of its joints."""

    equations: Equations
    friction: Float[Array, " nv"]
    acceleration: Float[Array, " nv"]
    multipliers: Float[Array, " rows"]


@functools.singledispatch
def _evaluate_controls(
    formulation: AbstractFormulation, system: AbstractSystem, state: _SavedState
) -> tuple[Float[Array, " controls"], Scalar]:
    """The controls at one state, and what is left of the equations of motion then, relative."""
    del formulation
    descriptor, force = state.equations.descriptor, state.equations.force + state.friction
    inertia = descriptor.mass(state.acceleration)
    pull = descriptor.apply_CT(state.multipliers)
    unit = system.column_scale()
    left, *sizes = (
        jnp.max(jnp.abs(x * unit), initial=0.0)
        for x in (force - inertia - pull, force, inertia, pull)
    )
    size = jnp.max(jnp.stack(sizes))
    servo = np.flatnonzero(system.structure.servo)
    return -state.multipliers[servo], left / jnp.where(size > 0, size, 1.0)


@_evaluate_controls.register
def _(
    formulation: NonIdeal, system: AbstractSystem, state: _SavedState
) -> tuple[Float[Array, " controls"], Scalar]:
    loaded = formulation.with_work_force(state.equations)
    return _evaluate_controls(formulation.formulation, system, state._replace(equations=loaded))


@_evaluate_controls.register
def _(
    formulation: ServoControl, system: AbstractSystem, state: _SavedState
) -> tuple[Float[Array, " controls"], Scalar]:
    del system
    force = state.equations.force + state.friction
    found = formulation.control(eqx.tree_at(lambda e: e.force, state.equations, force))
    return found.values, jnp.zeros((), force.dtype)
