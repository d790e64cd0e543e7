from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Bool, Float

from .. import _printing
from .._checks import known_array, picked
from .._custom_types import BoolScalar, RealScalarLike, Scalar
from .._kinematics import is_closed, open_constraints, undefined
from .._linalg import motion_solver
from .._programs import Compiling, program
from .._system import (
    AbstractSystem,
    is_state,
    named_vanishing_rows,
    refuse_vanishing_rows,
    takes_state,
)
from ._projection import project, Projected


class ConsistentState(NamedTuple):
    """A state that all constraints allow: coordinates `q` (nq,) and velocities `v` (nv,)."""

    q: Float[Array, " nq"]
    v: Float[Array, " nv"]

    def __str__(self) -> str:
        if self.q.ndim > 1:
            return _printing.text(_printing.batch("states", self.q.shape[:-1]))
        return f"q = {_printing.array(self.q)}\nv = {_printing.array(self.v)}"


@program(compiling=Compiling.ONCE)
def residuals(
    system: AbstractSystem, q: Float[Array, " nq"], v: Float[Array, " nv"], t: Scalar
) -> tuple[Float[Array, " geometric"], Float[Array, " rows"]]:
    scale = system.residual_scale()
    return system.scaled_residual(q, t), system.velocity_residual(q, v, t) / scale


@program(compiling=Compiling.ONCE)
def projected_state(
    system: AbstractSystem, q: Float[Array, " nq"], v: Float[Array, " nv"], t: Scalar
) -> Projected:
    """The state on the constraints next to (q, v); NaN for an invalid state."""
    found = project(system, q, v, t, motion_solver())
    valid = is_state(system.structure, q, v, t)
    q, v = (jnp.where(valid, x, jnp.nan) for x in (found.q, found.v))
    return Projected(q, v, found.met & valid)


@takes_state()
def consistent_state(
    system: AbstractSystem,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    t: RealScalarLike = 0.0,
) -> ConsistentState:
    """The state next to (q, v) that all constraints allow at time t, in the mass metric.

    Close to closure this is the projection of a step of an integrator: use `assemble` for a
    mechanism with large closure errors. Differentiable in every argument, from a closed
    configuration and any velocities.

    **Arguments:** `q` (nq,), `v` (nv,), `t` (s).

    **Returns:** a `ConsistentState`, which unpacks to q, v; NaN for traced numbers that are not a
    valid state.

    **Raises:** `ValueError` if there is none nearby, naming the joint.
    """
    t = jnp.asarray(t, q.dtype)
    found = projected_state(system, q, v, t)
    if not isinstance(found.met, Tracer) and not bool(found.met):
        _refuse(system, found.q, found.v, t, "no state nearby satisfies them")
    return ConsistentState(found.q, found.v)


def check_state(
    system: AbstractSystem,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    t: Scalar,
    advice: str = "consistent=True moves to the nearest state they allow",
) -> None:
    """Refuse a state that the constraints do not allow, or that leaves one of them out; traced ones
    are not checked.

    **Raises:** `ValueError` that names the joint or driver, by how much and what to do.
    """
    if any(isinstance(x, Tracer) for x in (q, v, t)):
        return
    _refuse(system, q, v, t, advice)
    refuse_vanishing_rows(system, q, v, t)


# States are checked so many at a time, by one program for all numbers of runs.
_CHECKED = 1024


@program
def _allowed(
    system: AbstractSystem, q: Float[Array, "runs nq"], v: Float[Array, "runs nv"], t: Scalar
) -> tuple[Bool[Array, " runs"], Bool[Array, " runs"]]:
    """Are the states valid, and do the constraints allow them?"""

    def one(q: Float[Array, " nq"], v: Float[Array, " nv"]) -> tuple[BoolScalar, BoolScalar]:
        position, velocity = residuals(system, q, v, t)
        speed = jnp.maximum(1.0, jnp.max(jnp.abs(v), initial=0.0))
        kept = jnp.max(jnp.abs(velocity), initial=0.0) <= system.tolerances.velocity * speed
        allowed = is_closed(position, system.precision) & kept
        return is_state(system.structure, q, v, t), allowed

    return jax.vmap(one)(q, v)


def check_states(
    system: AbstractSystem, q: np.ndarray, v: np.ndarray, t: Scalar, consistent: bool
) -> None:
    """Refuse the first of many states, q (runs, nq) and v (runs, nv), that is not valid or, unless
    it is to be made `consistent`, that the constraints do not allow.

    **Raises:** `ValueError` with the number of the run.
    """
    for first in range(0, len(q), _CHECKED):
        places = np.minimum(first + np.arange(_CHECKED), len(q) - 1)
        own = (known_array(q[places]), known_array(v[places]))
        valid, allowed = map(np.asarray, _allowed(system, *own, t))
        good = valid if consistent else valid & allowed
        for k in np.flatnonzero(~good).tolist():
            try:
                _check(system, picked(own[0], k), picked(own[1], k), t, consistent)
            except ValueError as error:
                raise ValueError(f"run {places[k]}: {error}") from None


@takes_state()
def _check(
    system: AbstractSystem,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    t: RealScalarLike,
    consistent: bool,
) -> None:
    if not consistent:
        check_state(system, q, v, jnp.asarray(t, q.dtype))


def _refuse(
    system: AbstractSystem,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    t: Scalar,
    advice: str,
) -> None:
    position, velocity = residuals(system, q, v, t)
    if isinstance(position, Tracer) or isinstance(velocity, Tracer):
        return
    if not bool(is_closed(position, system.precision)):
        unknown = undefined(system, q, t)
        if unknown:
            raise ValueError(unknown)
        name, amount, unit = open_constraints(system, position)[0]
        raise ValueError(
            f"the configuration is not closed at time {float(t):g} s: {name!r} is open by "
            f"{amount:.3g} {unit}; assemble it first ({advice})."
        )
    speed = max(1.0, float(np.max(np.abs(np.asarray(v)), initial=0.0)))
    amounts = np.abs(np.asarray(velocity))
    if amounts.size and not np.max(amounts) <= system.tolerances.velocity * speed:
        row = int(np.argmax(amounts))
        structure = system.structure
        name = structure.constraints[structure.row_owner[row]].name
        amount = float(amounts[row] * system.residual_scale()[row])
        reason = named_vanishing_rows(system, q, v, t)
        raise ValueError(
            f"the velocities break the constraints at time {float(t):g} s: row "
            f"{structure.row_names[row]!r} of {name!r} by {amount:.3g} "
            f"{structure.rows[row].quantity.unit}/s; {advice}{f': {reason}' if reason else '.'}"
        )
