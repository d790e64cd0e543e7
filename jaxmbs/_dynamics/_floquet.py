"""Small motions about a periodic motion: what a period makes of them (Floquet).

With Y and Z as in `_small_motions.py`, displacements (z, w) from a motion that repeats itself
become Phi (z, w) after its period P. Phi is integrated along with the motion, as directions in q
and v. What repeats itself are the velocities and the equations of small motions along the world's
axes; places may have moved on, and all of it may have turned by a given rotation.
"""

from typing import Any, NamedTuple

import diffrax as dfx
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Complex, Float

from .. import _printing, _settings
from .._custom_types import IntScalar, Numbers, RealScalarLike, Scalar, Setting
from .._errors import AnalysisError
from .._formulations import MinimumNorm
from .._geometry import turn_matrix
from .._limits import EXACT
from .._linalg import directional_derivative
from .._printing import AbstractAnswer, Column, Description, Table
from .._programs import program
from .._system import AbstractSystem, takes_state
from ._friction import solve_stage
from ._initial import check_state
from ._linearise import bases_of, refuse_tracers, transport_bases
from ._passages import movers
from ._projection import velocity_level_matrices
from ._run import onto_knots
from ._small_motions import (
    along_velocities,
    changes_of_eigenvalues,
    constant_axes,
    coordinate_units,
    displaced_state,
    first_order,
    frequency_scale,
    rate_scale,
    state_scale,
)


_MAX_STEPS = 16**4


class Floquet(AbstractAnswer):
    """Small motions about a periodic motion: (z, w) becomes Phi (z, w) after a period.

    - `position_basis` Y (nv, p) and `basis` Z (nv, k): displacements of the configuration and of
      the velocities at the start, as of `Linearisation`.
    - `monodromy` Phi (p + k, p + k), with the states s of forces after the displacements, (z, s,
      w), as in `Linearisation`. `multipliers` (p + k,): its eigenvalues, the largest first; the
      motion is unstable if one is larger than 1. One of an autonomous system is 1: the motion
      itself, later.
    - `period` (s). `exponents` (p + k,): logarithms of the multipliers over the period (1/s),
      frequencies up to multiples of 2 pi / period.
    """

    position_basis: Float[Array, "nv p"]
    basis: Float[Array, "nv k"]
    monodromy: Float[Array, "n n"]
    multipliers: Complex[Array, " n"]
    period: Scalar

    @property
    def exponents(self) -> Complex[Array, " n"]:
        """1/s."""
        return jnp.log(self.multipliers) / self.period

    def described(self) -> Description:
        values = np.asarray(self.multipliers)
        table = Table(
            [
                Column("multiplier", [_printing.complex_number(x) for x in values]),
                Column("magnitude", [f"{x:.6g}" for x in np.abs(values)]),
            ]
        )
        return Description([f"period {float(self.period):.6g} s"], [table])


@takes_state(decides_rank=True)
def floquet(
    system: AbstractSystem,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    period: Setting[RealScalarLike],
    t: RealScalarLike = 0.0,
    *,
    turn: Setting[Numbers] = (0.0, 0.0, 0.0),
    rtol: Setting[RealScalarLike] = 1e-10,
    atol: Setting[RealScalarLike] = 1e-12,
) -> Floquet:
    """Multipliers of small motions about a periodic motion.

    What must repeat itself after the period are velocities, states of forces and small motions,
    along the world's axes: bodies may have moved on and wheels may have turned, or rotors by half a
    turn, if nothing depends on that. The equations may depend on time with the same period.
    Redundant rows do not disturb it. Dense, for concrete numbers: outside of `jit` and `vmap`.

    Differentiable once, forward and reverse, in the state, the period, t and every array of the
    system, along what keeps the rank and the motion periodic. Of equal multipliers the derivative
    is that of their mean; multiple ones are known to the root of the tolerance.

    **Arguments:**

    - `q` (nq,), `v` (nv,), `t` (s): a state of the motion, on the constraints.
    - `period`: s, > 0.
    - `turn` (3,): rotation vector (rad, world; in the plane its z component) by which the motion
      has turned after the period, where that does not matter (a precessing top).
    - `rtol`, `atol`: of the integration (m, rad, m/s, rad/s), of the motion and of Phi.

    **Returns:** a `Floquet`.

    **Raises:** `ValueError` for traced numbers, second derivatives, a state that the constraints
    do not allow, a turn about axes that there are not, and a motion that does not repeat itself;
    `AnalysisError` if the integration fails.

    Source: Nayfeh & Balachandran 1995, section 3.2.
    """
    system.structure.require_definite_mass("floquet")
    t, period = jnp.asarray(t, q.dtype), _settings.between(period, "period", above=0)
    turn = _settings.vector(turn, "turn", size=3)
    tolerance = jnp.stack(_settings.step_tolerances(rtol, atol, q.dtype))
    return _floquet(_Problem(system, q, v, t, period, turn), tolerance).floquet


class _Problem(NamedTuple):
    """A motion, its start and its period."""

    system: AbstractSystem
    q: Float[Array, " nq"]
    v: Float[Array, " nv"]
    t: Scalar
    period: Scalar
    turn: Float[Array, "3"]


class _Period(NamedTuple):
    """After a period: the state, what takes displacements back to the start's axes, Phi; and how
    many steps it took, and whether the integration went well."""

    q: Float[Array, " nq"]
    v: Float[Array, " nv"]
    back: Float[Array, "nv nv"]
    monodromy: Float[Array, "n n"]
    steps: IntScalar
    failed: Array


class _Found(NamedTuple):
    """The requested result, and the number of steps it took."""

    floquet: Floquet
    steps: IntScalar | None


@eqx.filter_custom_jvp
def _floquet(problem: _Problem, tolerance: Float[Array, "2"]) -> _Found:
    refuse_tracers("floquet", problem)
    system, q, v, t = problem[:4]
    check_state(system, q, v, t)
    _refuse_turn(system, np.asarray(problem.turn))
    bases = bases_of(system, q, v, t)[0].arrays
    end = _integrate_period(
        problem, *bases, tolerance, dfx.RecursiveCheckpointAdjoint(), _MAX_STEPS
    )
    if bool(end.failed) or not bool(jnp.all(jnp.isfinite(end.monodromy))):
        raise AnalysisError(
            "floquet could not integrate the motion over the period; look whether simulate can, "
            "or loosen rtol."
        )
    _refuse_not_periodic(problem, *bases, end)
    values = np.linalg.eigvals(np.asarray(end.monodromy)).astype(complex)
    order = np.lexsort((np.imag(values), -np.abs(values).round(9)))
    values = jnp.asarray(values[order])
    return _Found(Floquet(*bases, end.monodromy, values, problem.period), end.steps)


@_floquet.def_jvp
def _floquet_jvp(primals: Any, tangents: Any) -> Any:
    problem, tolerance = primals
    found, steps = _floquet(problem, tolerance)
    bases = found.position_basis, found.basis
    # As many steps as are needed, in few programs.
    bound = 2 ** int(np.ceil(np.log2(1.2 * int(steps) + 4)))

    def nearby(problem: _Problem) -> Any:
        return _period_nearby(problem, *bases, tolerance, bound)

    position, velocity, monodromy = directional_derivative(nearby, problem, tangents[0])
    matrix, values = np.asarray(found.monodromy), np.asarray(found.multipliers)
    slopes = changes_of_eigenvalues(matrix, values, monodromy)
    length = tangents[0].period
    length = jnp.zeros_like(found.period) if length is None else length
    change = Floquet(position, velocity, monodromy, slopes, length)
    return _Found(found, steps), _Found(change, None)


@program
def _period_nearby(
    problem: _Problem,
    position: Float[Array, "nv p"],
    velocity: Float[Array, "nv k"],
    tolerance: Float[Array, "2"],
    max_steps: int,
) -> tuple[Float[Array, "nv p"], Float[Array, "nv k"], Float[Array, "n n"]]:
    """Y, Z and Phi of motions nearby, from the bases here."""
    system, q, v, t = problem[:4]
    _, position, velocity = transport_bases(system, q, v, t, position, velocity)
    end = _integrate_period(problem, position, velocity, tolerance, dfx.DirectAdjoint(), max_steps)
    return position, velocity, end.monodromy


def _refuse_turn(system: AbstractSystem, turn: np.ndarray) -> None:
    """Refuse a turn about axes that the coordinates do not have."""
    turning = np.asarray(system.turning(jnp.asarray(turn)))
    cubed = turning @ turning @ turning + (turn @ turn) * turning
    if np.any(turn) and not (np.any(turning) and np.max(np.abs(cubed)) <= 1e-9 * (turn @ turn)):
        raise ValueError(
            "turn must be (0, 0, angle) in the plane and zero in generalized coordinates, got "
            f"{turn.tolist()}."
        )


def _refuse_not_periodic(
    problem: _Problem,
    position: Float[Array, "nv p"],
    velocity: Float[Array, "nv k"],
    end: _Period,
) -> None:
    """Refuse a motion that does not repeat itself."""
    system, q, v, t, period, _ = problem
    length = float(system.characteristic_length())
    unit = system.structure.column_scale(length)
    speed, away = np.asarray(v) / unit, np.asarray(end.back @ end.v - v) / unit
    scale = max(np.max(np.abs(speed), initial=0.0), 1 / float(period))
    if not np.max(np.abs(away), initial=0.0) <= system.tolerances.steady * scale:
        name = movers(away[:, None] * unit[:, None], system.structure, length)[0]
        raise ValueError(
            f"the motion does not repeat itself after {float(period):g} s: {name} is another "
            f"{np.max(np.abs(away)) / scale:.2g} of the largest velocity faster or slower; give "
            "its period (to about 1e-8), and the turn that it makes in one."
        )
    _refuse_changed_state(problem, end, length)
    axes = constant_axes(jnp.zeros(3, q.dtype), v.shape[0])
    before = first_order(system, q, v, t, position, velocity, axes)
    ahead = end.back.T @ position, end.back.T @ velocity
    after = first_order(system, end.q, end.v, t + period, *ahead, axes)
    mass = np.asarray(system.mass_matrix(q, t))
    units = coordinate_units(system.structure, mass, length, position.shape[1])
    size = max(frequency_scale(np.asarray(before.state), units), 1 / float(period))
    weight = rate_scale(np.asarray(before.state), units, size)
    change = weight[:, None] * np.asarray(after.state - before.state) / weight
    if not np.max(np.abs(change), initial=0.0) <= system.tolerances.steady * size:
        raise ValueError(
            f"the motion does not repeat itself after {float(period):g} s: velocities do, small "
            "motions do not (a body stands otherwise, or a load has another period); give a "
            "multiple of the period, or the turn that the motion makes in one."
        )


def _refuse_changed_state(problem: _Problem, end: _Period, length: float) -> None:
    """Refuse a motion after which a force's state is another."""
    structure = problem.system.structure
    if not structure.internal.size:
        return
    before, after = (np.asarray(x)[structure.internal] for x in (problem.q, end.q))
    away = np.abs(after - before) / np.maximum(state_scale(structure, length), np.abs(before))
    if not np.max(away) <= EXACT.steady:
        worst = int(np.argmax(away))
        info = structure.coordinates[structure.internal[worst]]
        raise ValueError(
            f"the motion does not repeat itself after {float(problem.period):g} s: the state "
            f"{info.name!r} of a force is {after[worst]:.6g} {info.quantity.unit} then, after "
            f"{before[worst]:.6g}; start from its value in the periodic motion."
        )


@program
def _integrate_period(
    problem: _Problem,
    position: Float[Array, "nv p"],
    velocity: Float[Array, "nv k"],
    tolerance: Float[Array, "2"],
    adjoint: dfx.AbstractAdjoint,
    max_steps: int,
) -> _Period:
    """The motion after a period, with its small motions."""
    system, q, v, t, period, turn = problem
    states = system.structure.internal
    size = position.shape[1] + states.size + velocity.shape[1]
    formulation = MinimumNorm().motion_only(system)
    descriptor = velocity_level_matrices(system, system.descriptor(q, v, t))
    controller = onto_knots(dfx.PIDController(rtol=tolerance[0], atol=tolerance[1]), system)

    def slope(time: RealScalarLike, y: Any, _: Any) -> Any:
        def rates(q: Float[Array, " nq"], v: Float[Array, " nv"]) -> tuple[Array, Array]:
            found = solve_stage(system, formulation, q, v, time)
            return system.flow(q, v, time), found.acceleration

        (q, v), directions = y
        here, push = jax.linearize(rates, q, v)
        return here, jax.vmap(push)(*directions)

    def start(x: Float[Array, " n"]) -> tuple[Array, Array]:
        _, there, speed = displaced_state(system, descriptor, (q, v, t), (position, velocity), x)
        return there, speed

    first = jax.vmap(lambda x: jax.jvp(start, (jnp.zeros_like(x),), (x,))[1])(jnp.eye(size))
    solution = dfx.diffeqsolve(
        dfx.ODETerm(slope),
        dfx.Dopri8(),
        t,
        t + period,
        None,
        ((q, v), first),
        stepsize_controller=controller,
        adjoint=adjoint,
        max_steps=max_steps,
        throw=False,
    )
    (q1, v1), (moved, slope1) = jax.tree.map(lambda x: x[-1], solution.ys)
    turned = turn_matrix(system.turning(turn), turn, jnp.ones((), q.dtype))
    back = system.world_axes(q).T @ turned.T @ system.world_axes(q1)
    mass = system.mass_matrix(q, t)
    blocks = [
        position.T @ mass @ back @ along_velocities(system, q1, moved.T),
        velocity.T @ mass @ back @ slope1.T,
    ]
    if states.size:
        blocks.insert(1, moved.T[states])
    failed = solution.result != dfx.RESULTS.successful
    return _Period(q1, v1, back, jnp.concatenate(blocks), solution.stats["num_steps"], failed)
