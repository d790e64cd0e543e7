"""The derivative of one evaluation of a run, backwards: of a stage or of a saved state, with that
of its way onto the constraints. All of it comes from one evaluation, one factor and one loop of
solves.

With (a, lambda) solved, its derivative needs none of a factor: it is that of the residuals
M a + C^T lambda - F and C a - Gamma at constant (a, lambda), times the solution of one more system
with the same matrices.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

from .._custom_types import BoolScalar, IntScalar, Scalar
from .._formulations import AbstractFormulation, MinimumNorm, UdwadiaKalaba
from .._linalg import KKTSystem, motion_solver, ProximalCholesky, unit_rows
from .._linalg._many_states import any_state
from .._system import AbstractSystem, Equations, MOST
from ._arguments import Arguments, split
from ._friction import accelerated
from ._look import Look, PASSES, Solved
from ._projection import projection_factors
from ._runge_kutta import StepConstants
from ._saved_states import SavedState
from ._step_tape import Sizes, Tape
from ._watched import motion_only


class TapedRun(NamedTuple):
    """A run that was made. `arguments`: of it, of the `numbers` that it is differentiated by;
    `start` (passages included); `times` (s), at which the first `count` of the `saved` states were
    saved, followed by that in which the run ended, if there is room."""

    arguments: Callable[[Float[Array, " n"]], Arguments]
    numbers: Float[Array, " n"]
    start: Float[Array, " passages"]
    times: Float[Array, " times"]
    saved: SavedState
    count: IntScalar
    steps: IntScalar
    tape: Tape
    sizes: Sizes
    solver: Any

    @property
    def given(self) -> Arguments:
        """The arguments as they were."""
        return self.arguments(self.numbers)

    def end_before(self, step: IntScalar) -> Scalar:
        """The time at which this step begins (s)."""
        return jnp.where(step > 0, self.tape.ends[jnp.maximum(step - 1, 0)], self.times[0])


class ByState(NamedTuple):
    """Derivatives by what is computed at one state: its `place` (state,), dq/dt, accelerations and
    multipliers."""

    place: Float[Array, " state"]
    flow: Float[Array, " nq"]
    acceleration: Float[Array, " nv"]
    multipliers: Float[Array, " reactions"]


class Place(NamedTuple):
    """A state of which a derivative is taken: a saved one (`saving`) or a stage; its time and place
    (state,); was it moved onto the constraints?"""

    saving: BoolScalar
    t: Scalar
    state: Float[Array, " state"]
    moving: BoolScalar
    by: ByState


class ByInputs(NamedTuple):
    """Derivatives by the numbers of the run, a time, and a state."""

    numbers: Float[Array, " n"]
    t: Scalar
    state: Float[Array, " state"]


class Evaluated(NamedTuple):
    """Evaluation of a state: equations of motion, residuals that the projection removes, dq/dt."""

    equations: Equations
    gap: Float[Array, " rows"]
    rate: Float[Array, " rows"]
    flow: Float[Array, " nq"]


class Recomputation(NamedTuple):
    """Recomputation of a step: is it `wanted` now? `look`: that of an evaluation."""

    wanted: BoolScalar
    look: Callable[[Evaluated], tuple[StepConstants, Look]]


class EvaluationVJP(NamedTuple):
    """Results at a state: the evaluation (`found`), derivatives by its `inputs`, and, for a step
    that is recomputed, the solution (`solved`)."""

    found: Evaluated
    inputs: ByInputs
    solved: Solved


class _Projections(NamedTuple):
    """Projections that a step that is made `again` asks for: is there one, and is that of the
    configuration still `opening`?"""

    again: BoolScalar
    moving: BoolScalar
    opening: BoolScalar


def evaluation_vjp(run: TapedRun, place: Place, again: Recomputation | None) -> EvaluationVJP:
    """An evaluation and its derivative, by the state that was moved to its place, by its time, and
    by the numbers of the run; or that of a step that is made `again`. The evaluation is transposed
    once, and where the state was moved, once more for velocities and once more for the
    configuration, which were moved in the other order."""
    t, state = place.t, place.state

    def looked(numbers: Float[Array, " n"], t: Scalar, state: Float[Array, " state"]) -> Evaluated:
        given = run.arguments(numbers)
        q, v = split(given.system, state)
        found = given.system.evaluation(q, v, t)
        equations, stabilised = found.equations, given.equations(found)
        if stabilised is not equations:
            # Saved accelerations are those of the equations as they are.
            offset = jnp.where(place.saving, equations.offset, stabilised.offset)
            equations = eqx.tree_at(lambda e: e.offset, equations, offset)
        return Evaluated(equations, found.gap, found.rate, given.system.flow(q, v, t))

    found, pull = eqx.filter_vjp(looked, run.numbers, t, state)
    system, (q, v) = run.given.system, split(run.given.system, state)
    asked = _requested_projections(again, found)
    back = _solution_back(run, found, place, asked)
    none = ByInputs(jnp.zeros_like(run.numbers), jnp.zeros_like(t), place.by.place)
    begun = none if back.direct is None else jax.tree.map(jnp.add, none, back.direct)
    nothing = jax.tree.map(jnp.zeros_like, back.equations)
    _, of_retraction = jax.vjp(system.retract, q, jnp.zeros_like(v))

    def transposed(k: IntScalar, carry: tuple[Any, ByInputs]) -> tuple[Any, ByInputs]:
        of_rows, so_far = carry
        first = k == 0
        equations = jax.tree.map(
            lambda own, zero: jnp.where(first, own, zero), back.equations, nothing
        )
        gap, rate = (jnp.where(k == n, of_rows, 0.0) for n in (2, 1))
        more = pull(Evaluated(equations, gap, rate, jnp.where(first, place.by.flow, 0.0)))
        so_far = jax.tree.map(jnp.add, so_far, ByInputs(*more))
        by_q, by_v = so_far.state[: len(q)], so_far.state[len(q) :]
        before, by_move = of_retraction(by_q)
        if back.factors is not None:
            of_rows = -_rows_of(back.factors, first, by_v, by_move)
        by_q = jnp.where(k == 1, before, by_q)
        return of_rows, so_far._replace(state=jnp.concatenate([by_q, by_v]))

    count = jnp.where(asked.again, 0, jnp.where(place.moving, 3, 1))
    _, inputs = lax.fori_loop(0, count, transposed, (jnp.zeros_like(found.gap), begun))
    return EvaluationVJP(found, inputs, back.solved)


def _requested_projections(again: Recomputation | None, found: Evaluated) -> _Projections:
    no = jnp.asarray(False)
    nothing = _Projections(no, no, no)
    if again is None:
        return nothing
    wanted, look_of = again

    def projections() -> _Projections:
        _, look = look_of(found)
        return _Projections(wanted, look.moving, look.purpose.opening)

    return lax.cond(wanted, projections, lambda: nothing)


class _Solution(NamedTuple):
    """Derivatives through accelerations and multipliers: by the `equations`, and `direct` ones by
    what else they depend on, if there is anything. `factors`: by which velocities and
    configurations go back onto the constraints, with a leading axis; one, where they are the same.
    `solved`: of a step that is made again."""

    equations: Any
    direct: ByInputs | None
    factors: Any
    solved: Solved


def _factor_of(factors: KKTSystem, k: int | IntScalar) -> KKTSystem:
    """One of two factors back."""
    if factors.factor.scale.ndim == 1:
        return factors
    arrays, rest = eqx.partition(factors, eqx.is_array)
    return eqx.combine(jax.tree.map(lambda x: x[k], arrays), rest)


def _rows_of(
    factors: KKTSystem, first: BoolScalar, by_v: Float[Array, " nv"], by_move: Float[Array, " nv"]
) -> Float[Array, " rows"]:
    """Derivatives by what is left in the rows, which a projection takes away, from those by the
    velocity, at `first`, or else by the displacement."""
    kkt = _factor_of(factors, 1 - first)
    motion = kkt.descriptor.inverse_mass(jnp.where(first, by_v, by_move))
    return kkt.approximate_multipliers(kkt.descriptor.apply_C(motion), PASSES)


def _solution_back(
    run: TapedRun,
    found: Evaluated,
    place: Place,
    asked: _Projections,
) -> _Solution:
    t, state = place.t, place.state
    whole, system, equations = run.given.formulation, run.given.system, found.equations
    solver = motion_solver()
    factors = projection_factors(system, equations.descriptor, solver)
    if factors is not None and _is_plain(whole, system):
        by_equations, solved = _minimum_norm_back(run, factors, found, place, asked)
        by_equations, acceleration = _unless_light(
            equations, place.by, by_equations, solved.acceleration
        )
        return _Solution(by_equations, None, factors, solved._replace(acceleration=acceleration))

    def back(formulation_of: Callable[[Arguments], AbstractFormulation]) -> Any:
        def solved(
            equations: Equations, numbers: Float[Array, " n"], t: Scalar, state: Any
        ) -> tuple[Array, Array]:
            given = run.arguments(numbers)
            q, v = split(given.system, state)
            found = accelerated(given.system, formulation_of(given), equations, q, v, t)
            return found.acceleration, found.multipliers

        found, pull = eqx.filter_vjp(solved, equations, run.numbers, t, state)
        return found[0], pull((place.by.acceleration, place.by.multipliers))

    def of_saved() -> Any:
        return back(lambda given: given.formulation)

    def of_stage() -> Any:
        return back(lambda given: motion_only(given.formulation, given.system))

    same = motion_only(whole, system) is whole
    acceleration, (by_equations, *direct) = (
        of_saved() if same else lax.cond(place.saving & ~asked.again, of_saved, of_stage)
    )
    none = jnp.zeros_like(acceleration)
    move, change = none, none
    if factors is not None:
        sides = _sides(system, found, asked)
        kkt = _factor_of(factors, asked.opening.astype(int))

        def solve(k: IntScalar, motions: Float[Array, "2 nv"]) -> Float[Array, "2 nv"]:
            return motions.at[k].set(kkt.response(kkt.approximate_multipliers(sides[k], PASSES)))

        count = jnp.where(asked.moving, 2, 0)
        move, change = lax.fori_loop(0, count, solve, jnp.zeros((2, len(none)), none.dtype))
    return _Solution(by_equations, ByInputs(*direct), factors, _solved(move, change, acceleration))


def _sides(system: AbstractSystem, found: Evaluated, asked: _Projections) -> Float[Array, "2 rows"]:
    """Residuals that the projections of configuration and velocity remove."""
    geometric = system.structure.geometric
    return jnp.stack([found.gap, jnp.where(asked.opening & ~geometric, 0.0, found.rate)])


def _solved(
    move: Float[Array, " nv"], change: Float[Array, " nv"], acceleration: Float[Array, " nv"]
) -> Solved:
    """Solution for a step that is recomputed; error estimates are not needed."""
    across = jnp.zeros((2, len(move)), move.dtype)
    failed = ~jnp.all(jnp.isfinite(acceleration))
    return Solved(move, change, acceleration, across, None, failed)


def _is_plain(formulation: AbstractFormulation, system: AbstractSystem) -> bool:
    """Is it the minimum norm in the metric of the rows, with the matrix by which velocities go back
    onto the constraints?"""
    structure = system.structure
    if not isinstance(formulation, MinimumNorm) or formulation.weights is not None:
        return False
    alone = not (structure.light or structure.semidefinite or system.frictional_joints)
    return alone and bool(structure.rows) and bool(structure.velocity_level.all())


def _unless_light(
    equations: Equations, by: ByState, found: Equations, acceleration: Float[Array, " nv"]
) -> tuple[Equations, Float[Array, " nv"]]:
    """Derivatives that were found, and accelerations; those of what is computed instead where only
    the numbers tell that parts are light, and they are."""
    light = equations.light
    if light is None or equations.structure.nv > MOST:
        return found, acceleration

    def dense() -> tuple[Equations, Float[Array, " nv"]]:
        def solved(equations: Equations) -> tuple[Array, Array]:
            found = UdwadiaKalaba().solve_refined(equations)
            return found.acceleration, found.multipliers

        own, pull = eqx.filter_vjp(solved, equations)
        (by_equations,) = pull((by.acceleration, by.multipliers))
        return jax.tree.map(
            lambda x, y: jnp.where(light, x, y), (by_equations, own[0]), (found, acceleration)
        )

    return lax.cond(any_state(light), dense, lambda: (found, acceleration))


def _minimum_norm_back(
    run: TapedRun,
    factors: KKTSystem,
    found: Evaluated,
    place: Place,
    asked: _Projections,
) -> tuple[Equations, Solved]:
    """Derivatives of the minimum-norm solution, by one factor (Golub & Pereyra 1973, eq. 4.12, as
    in `pseudosolve`, transposed). In rows of unit length, with r = C M^-1 F - Gamma,

        lambda = S^+ r,    lambda' = S^+ (r' - S' lambda + S^+ S' e) + P S' S^+ lambda,

    e = r - S lambda what is left where rows contradict each other, P the projector on the null
    space of S. Of a stage multipliers are not asked for, so that the last term vanishes. Where
    states are projected, that with e is as small as the error of the step: of stages it is left
    out, and the null space is not cleaned.
    """
    equations, by, saving = found.equations, place.by, place.saving & ~asked.again
    own = _factor_of(factors, asked.opening.astype(int))
    rows = unit_rows(own.descriptor)
    unit = eqx.tree_at(lambda f: f.scale, own.factor, jnp.ones_like(rows.scale))
    # Where states are not projected, rows may contradict each other by more than rounding.
    exact = not run.given.stabilisation.projecting
    clean = saving | jnp.asarray(exact)
    kkt = KKTSystem(rows, ProximalCholesky(own.solver.regularisation, clean=clean), unit)
    force, offset = equations.force, equations.offset / rows.scale
    right = kkt.unconstrained_residual(force, offset)
    wanted = by.multipliers / rows.scale - rows.apply_C(rows.inverse_mass(by.acceleration))
    most = jnp.asarray(ProximalCholesky().max_steps)
    sides = _sides(run.given.system, found, asked) / rows.scale[None]

    def solve(k: IntScalar, found: Float[Array, "4 rows"]) -> Float[Array, "4 rows"]:
        rights = jnp.stack([right, wanted, found[1], found[0]])
        projecting = asked.again & (k > 0)
        rights = jnp.where(projecting, jnp.stack([right, *sides, right]), rights)
        steps = jnp.where(projecting, PASSES, most)
        return found.at[k].set(kkt.approximate_multipliers(rights[k], steps))

    count = jnp.where(asked.again, jnp.where(asked.moving, 3, 1), jnp.where(saving, 4, 2 + exact))
    solutions = lax.fori_loop(0, count, solve, jnp.zeros((4, len(right)), right.dtype))
    multipliers, moved, twice, least = solutions
    motion = kkt.acceleration(force, multipliers)
    left = rows.apply_C(motion) - offset
    null = wanted - rows.apply_C(kkt.response(moved))
    across, along = kkt.response(twice), kkt.response(least)
    virtual = rows.inverse_mass(by.acceleration + rows.apply_CT(moved))

    def power(equations: Equations) -> Scalar:
        """Its derivative is that of the objective, with all vectors constant."""
        rows = unit_rows(equations.descriptor)
        balance = equations.force - rows.mass(motion) - rows.apply_CT(multipliers)
        rate = rows.apply_C(motion) - equations.offset / rows.scale
        return (
            virtual @ balance
            + moved @ rate
            + across @ rows.apply_CT(left)
            + null @ rows.apply_C(along)
            + by.multipliers @ (multipliers / rows.scale)
        )

    # Of a step that is made again these are the projections.
    solved = _solved(kkt.response(moved), along, motion)
    return eqx.filter_grad(power)(equations), solved
