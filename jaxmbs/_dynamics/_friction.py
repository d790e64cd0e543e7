"""Accelerations and multipliers with Coulomb friction in the joints.

Friction makes F depend on lambda, so both are a fixed point around the frictionless solve:

    f = friction(lambda),     (dv/dt, lambda) = solve(F + f).

At one state (dv/dt, lambda) is affine in f. So the formulation is linearised once, which keeps its
factors, and every iteration is one solve with them. The map f -> friction(lambda(f)) is the modulus
of an affine function for each joint; with one frictional joint its iteration converges exactly
where the fixed point exists and is unique whatever the loads are (N = |a + b N| has one solution
for every a iff |b| < 1, and then it is a contraction). So failure to converge is not only a
weakness of the method: a joint jams, or the rigid-body model has no or several solutions
(Painleve).

The derivative is that of the fixed point, (1 - A) df = direct change, with A the derivative of the
map. The series 1 + A + A^2 ... converges where the iteration does, and so does its transpose.
"""

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

from .. import _settings
from .._custom_types import BoolScalar, IntScalar, RealScalarLike, Scalar, Setting
from .._formulations import AbstractFormulation, Accelerations, chosen_formulation
from .._linalg import AbstractKKTMatrices, directional_derivative
from .._solution import RESULTS
from .._stop_gradient import stop_gradient
from .._system import (
    AbstractSystem,
    Equations,
    is_state,
    State,
    takes_state,
    vanishing_rows,
)
from ._consistency import check_acceleration_rows


@takes_state(offset="rows")
def solve_with_friction(
    system: AbstractSystem,
    formulation: Setting[AbstractFormulation | None],
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    t: RealScalarLike,
    *,
    offset: Setting[Float[Array, " rows"] | None] = None,
    rtol: Setting[float] = 1e-12,
    max_steps: Setting[int] = 500,
) -> Accelerations:
    """dv/dt and lambda of one state, friction in the joints included.

    Without friction this is the formulation alone. Differentiable, forward and reverse.

    **Arguments:**

    - `formulation`: what handles redundancy; None for the default of `simulate`.
    - `q` (nq,), `v` (nv,), `t` (s): the state.
    - `offset` (rows,): added to Gamma (stabilisation).
    - `rtol`: iterations end when the friction forces change by less than this, relative to all
      forces, in the metric of M^-1; between 0 and 1, and less than rounding counts as rounding.
      `max_steps`: at most, 1 or more.

    **Returns:** `Accelerations`; its `result` is `friction_did_not_converge` if they did not, and
    `state_not_valid` for traced numbers that are not a valid state.
    """
    formulation = chosen_formulation(formulation, system.structure)
    rtol = _settings.known_number(rtol, "rtol", above=0, below=1)
    max_steps = _settings.whole_number(max_steps, "max_steps", least=1)
    t = jnp.asarray(t, q.dtype)
    found = solve_stage(system, formulation, q, v, t, offset=offset, rtol=rtol, max_steps=max_steps)
    valid = is_state(system.structure, q, v, t)
    result = found.result
    if system.structure.nonlinear.any():
        vanishing = jnp.any(vanishing_rows(system, q, v, t))
        result = RESULTS.where(vanishing, RESULTS.velocity_row_vanishes, result)
    result = RESULTS.where(valid, result, RESULTS.state_not_valid)
    return Accelerations(found.acceleration, found.multipliers, result)


def solve_stage(
    system: AbstractSystem,
    formulation: AbstractFormulation,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    t: RealScalarLike,
    *,
    offset: Float[Array, " rows"] | None = None,
    rtol: float = 1e-12,
    max_steps: int = 500,
) -> Accelerations:
    """`solve_with_friction`, also at the stages of a step, whose quaternions are not of unit
    length."""
    t = jnp.asarray(t, q.dtype)
    equations = system.equations(q, v, t)
    if offset is not None:
        _settings.vector(offset, "offset", size=len(system.structure.rows))
        equations = eqx.tree_at(lambda e: e.offset, equations, equations.offset + offset)
    return accelerated(system, formulation, equations, q, v, t, rtol=rtol, max_steps=max_steps)


def accelerated(
    system: AbstractSystem,
    formulation: AbstractFormulation,
    equations: Equations,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    t: Scalar,
    *,
    rtol: float = 1e-12,
    max_steps: int = 500,
) -> Accelerations:
    """`solve_stage` where the equations of the state are known."""
    equations = eqx.tree_at(
        lambda e: e.state, equations, State(q, v, t), is_leaf=lambda x: x is None
    )
    if not system.frictional_joints:
        return check_acceleration_rows(system, equations, formulation.solve(equations))
    state = _State(system, formulation, equations, q, v, t)
    frictionless, result = _linearised(state)
    # Below this a change is rounding.
    tolerance = max(rtol, 100 * float(jnp.finfo(q.dtype).eps))
    found, converged = _coupled(state, frictionless, tolerance, max_steps)
    failed = RESULTS.where(converged, RESULTS.successful, RESULTS.friction_did_not_converge)
    first = RESULTS.where(result == RESULTS.successful, failed, result)
    found = Accelerations(found.acceleration, found.multipliers, first)
    return check_acceleration_rows(system, equations, found)


class _State(eqx.Module):
    """Data that the fixed point depends on."""

    system: AbstractSystem
    formulation: AbstractFormulation
    equations: Equations
    q: Float[Array, " nq"]
    v: Float[Array, " nv"]
    t: Scalar


class _Response(NamedTuple):
    """The response to friction forces f (nv,), and the friction forces that follow from it."""

    acceleration: Float[Array, " nv"]
    multipliers: Float[Array, " rows"]
    friction: Float[Array, " nv"]


class _Iterate(NamedTuple):
    friction: Float[Array, " nv"]
    change: Scalar
    first: Scalar
    steps: IntScalar
    converged: BoolScalar


def _solved(state: _State, friction: Float[Array, " nv"]) -> Accelerations:
    equations = state.equations
    force = equations.force + friction
    return state.formulation.solve(eqx.tree_at(lambda e: e.force, equations, force))


def _friction(state: _State, multipliers: Float[Array, " rows"]) -> Float[Array, " nv"]:
    return state.system.friction(state.q, state.v, state.t, multipliers)


def _response(state: _State, friction: Float[Array, " nv"]) -> _Response:
    found = _solved(state, friction)
    return _Response(found.acceleration, found.multipliers, _friction(state, found.multipliers))


class _Frictionless(NamedTuple):
    """The solution without friction, and the linear map from friction forces to its change."""

    acceleration: Float[Array, " nv"]
    multipliers: Float[Array, " rows"]
    change: Callable[[Float[Array, " nv"]], tuple[Float[Array, " nv"], Float[Array, " rows"]]]

    def plus(self, friction: Float[Array, " nv"]) -> tuple[Any, Any]:
        """dv/dt and lambda with these friction forces."""
        accelerated, added = self.change(friction)
        return self.acceleration + accelerated, self.multipliers + added


def _linearised(state: _State) -> tuple[_Frictionless, RESULTS]:
    """A constant for all derivatives, and how the formulation's solve ended."""
    still = stop_gradient(state)

    def solve(extra: Float[Array, " nv"]) -> Any:
        found = _solved(still, extra)
        return (found.acceleration, found.multipliers), found.result

    zero = jnp.zeros_like(state.equations.force)
    (acceleration, multipliers), change, result = jax.linearize(solve, zero, has_aux=True)
    return _Frictionless(acceleration, multipliers, change), result


@eqx.filter_custom_jvp
def _coupled(
    state: _State, frictionless: _Frictionless, tolerance: float, max_steps: int
) -> tuple[_Response, BoolScalar]:
    """The fixed point, and whether it is one."""
    descriptor = state.equations.descriptor
    around = _size(descriptor, state.equations.force)
    around = around + _size(descriptor, descriptor.apply_CT(frictionless.multipliers))

    def step(last: _Iterate) -> _Iterate:
        _, multipliers = frictionless.plus(last.friction)
        new = _friction(state, multipliers)
        change = _size(descriptor, new - last.friction)
        met = change <= tolerance * (around + _size(descriptor, new))
        first = jnp.where(last.steps == 0, change, last.first)
        return _Iterate(new, change, first, last.steps + 1, met)

    def going(last: _Iterate) -> BoolScalar:
        # NaN ends it as well.
        bounded = last.change <= 1e6 * last.first
        return ~last.converged & (last.steps < max_steps) & ((last.steps == 0) | bounded)

    start = _friction(state, frictionless.multipliers)
    nothing = jnp.zeros((), start.dtype)
    end = lax.while_loop(
        going, step, _Iterate(start, nothing, nothing, jnp.asarray(0), jnp.asarray(False))
    )
    return _Response(*frictionless.plus(end.friction), end.friction), end.converged


@_coupled.def_jvp
def _coupled_jvp(primals: Any, tangents: Any) -> Any:
    state, frictionless, tolerance, max_steps = primals
    tangent, *_ = tangents
    found, converged = _coupled(state, frictionless, tolerance, max_steps)
    descriptor = lax.stop_gradient(state.equations.descriptor)
    direct = directional_derivative(lambda s: _response(s, found.friction), state, tangent)
    _, push = jax.linearize(lambda f: _response(state, f), found.friction)
    change = lax.custom_linear_solve(
        lambda x: x - push(x).friction,
        direct.friction,
        solve=_series(lambda x: _size(descriptor, x), tolerance, max_steps),
        transpose_solve=_series(lambda x: _size_of_velocity(descriptor, x), tolerance, max_steps),
    )
    indirect = push(change)
    dot = _Response(
        direct.acceleration + indirect.acceleration,
        direct.multipliers + indirect.multipliers,
        change,
    )
    return (found, converged), (dot, None)


# The sum so far, what is missing on the right-hand side, and the number of terms.
_Sum: TypeAlias = tuple[Float[Array, " nv"], Float[Array, " nv"], IntScalar]


def _series(
    size: Callable[[Float[Array, " nv"]], Scalar], tolerance: float, max_steps: int
) -> Callable[[Any, Float[Array, " nv"]], Float[Array, " nv"]]:
    """Solves x = b + A x by its own iteration, for the function x -> x - A x."""

    def solve(
        function: Callable[[Float[Array, " nv"]], Float[Array, " nv"]], b: Float[Array, " nv"]
    ) -> Float[Array, " nv"]:
        def going(carry: _Sum) -> BoolScalar:
            x, missing, steps = carry
            return (size(missing) > tolerance * size(x)) & (steps < max_steps)

        def step(carry: _Sum) -> _Sum:
            x, missing, steps = carry
            new = x + missing
            return new, b - function(new), steps + 1

        return lax.while_loop(going, step, (b, b - function(b), jnp.asarray(0)))[0]

    return solve


def _size(descriptor: AbstractKKTMatrices, force: Float[Array, " nv"]) -> Scalar:
    """sqrt(f^T M^-1 f): the size of a generalized force, whatever its units; any metric does."""
    return jnp.sqrt(jnp.maximum(force @ descriptor.inverse_mass(force), 0.0))


def _size_of_velocity(descriptor: AbstractKKTMatrices, v: Float[Array, " nv"]) -> Scalar:
    """sqrt(v^T M v)."""
    return jnp.sqrt(jnp.maximum(v @ descriptor.metric().mass(v), 0.0))
