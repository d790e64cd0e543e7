"""Evaluation of a state of a step, and the solutions there: accelerations, projections onto the
constraints, the part of the step's error that these remove (`_runge_kutta.py`)."""

from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

from .._custom_types import BoolScalar, IntScalar, Scalar
from .._formulations import Accelerations
from .._linalg import KKTSystem, motion_solver, REGULARISATION
from .._linalg._many_states import any_state
from .._solution import RESULTS
from .._system import Equations, Evaluation
from ._arguments import Arguments
from ._friction import accelerated


# Proximal steps for the projection onto the constraints, with the larger mu, as in
# `_linalg.damped_solver`.
PASSES = 2


class Purpose(NamedTuple):
    """Purpose of an evaluation. `opening`: the projection of a configuration; `closing`: of
    velocities; `measuring`: of both once they are converged, so that only rounding is left;
    `locating`: a singular configuration within the step; `starting`: the first vectors of a
    monitor; `arriving`: at the end of the step."""

    opening: BoolScalar
    closing: BoolScalar
    measuring: BoolScalar
    locating: BoolScalar
    starting: BoolScalar
    arriving: BoolScalar

    @property
    def behind(self) -> BoolScalar:
        """Is the step at its end already?"""
        return self.measuring | self.locating

    @property
    def still(self) -> BoolScalar:
        """Is nothing to be moved?"""
        return ~(self.opening | self.closing | self.behind)


class Look(NamedTuple):
    """Data at one state before anything is solved. `closure`, `rest`: the largest residual of the
    configuration and of the velocity; `moving`: is it projected back onto the constraints? `looks`:
    the number of evaluations at this stage."""

    stage: IntScalar
    looks: Scalar
    t: Scalar
    q: Float[Array, " nq"]
    v: Float[Array, " nv"]
    finite: BoolScalar
    evaluation: Evaluation
    closure: Scalar
    rest: Scalar
    moving: BoolScalar
    purpose: Purpose


class Solved(NamedTuple):
    """`move`, `change` (nv,): the projections of the configuration and of the velocity, if they are
    requested; `acceleration` (nv,); `across` (2, nv): the part of the error that the constraints
    take away; `factored`: with what it was solved."""

    move: Float[Array, " nv"]
    change: Float[Array, " nv"]
    acceleration: Float[Array, " nv"]
    across: Float[Array, "2 nv"]
    factored: KKTSystem | None
    failed: BoolScalar


def _unless_light(
    given: Arguments,
    look: Look,
    equations: Equations,
    moves: BoolScalar,
    acceleration: Float[Array, " nv"],
) -> tuple[Float[Array, " nv"], BoolScalar]:
    """The acceleration, or that of the formulation where only the numbers tell whether parts are
    light, and they are."""
    light = jnp.asarray(equations.light) & ~moves

    def solved() -> tuple[Float[Array, " nv"], BoolScalar]:
        q, v, t = look.q, look.v, look.t
        found = accelerated(given.system, given.formulation, equations, q, v, t)
        failed = light & (found.result != RESULTS.successful)
        return jnp.where(light, found.acceleration, acceleration), failed

    return lax.cond(any_state(light), solved, lambda: (acceleration, jnp.asarray(False)))


def solve_look(
    given: Arguments, look: Look, embedded: Float[Array, "2 nv"], last_slope: Scalar
) -> Solved:
    """The solution at one state. `embedded`: the error without the last slope, which has the weight
    `last_slope` (s) in it."""
    system, structure = given.system, given.system.structure
    geometric, held = structure.geometric, structure.velocity_level
    q, v, evaluation, purpose = look.q, look.v, look.evaluation, look.purpose
    equations = given.equations(evaluation)
    descriptor, offset = equations.descriptor, equations.offset
    (rows, nv), none = descriptor.shape, jnp.zeros_like(v)
    free = descriptor.inverse_mass(equations.force)
    moves = purpose.opening | purpose.measuring
    # Where its factor serves, the acceleration is one right-hand side more.
    shared = given.formulation.shares_factor and not system.frictional_joints
    # Rows at acceleration level are in the equations and not in the ways back.
    shared = shared and bool(held.all()) and not structure.light
    if shared:
        acceleration, failed = free, jnp.asarray(False)
    else:
        found = lax.cond(
            moves,
            lambda: Accelerations(none, jnp.zeros((rows,), v.dtype), RESULTS.successful),
            lambda: accelerated(system, given.formulation, equations, q, v, look.t),
        )
        acceleration, failed = found.acceleration, found.result != RESULTS.successful
    if not rows:
        failed = failed | ~jnp.all(jnp.isfinite(acceleration))
        return Solved(none, none, acceleration, jnp.zeros((2, nv), v.dtype), None, failed)

    kept = descriptor.metric()
    if not geometric.all():
        kept = kept.mask_rows(jnp.where(purpose.opening, geometric, held))
    motion = motion_solver()
    shift = jnp.where(purpose.still, motion.regularisation, REGULARISATION)
    factored = KKTSystem(kept, eqx.tree_at(lambda s: s.regularisation, motion, shift))
    # What is led through C, and what stands beside it, of each right-hand side. The error's part
    # that the constraints take away comes with the last slope, which follows. Of displacements
    # velocity constraints take nothing away, and are not left out here.
    error_q, rate_of_error = none, jnp.zeros_like(offset)
    if structure.holonomic:
        error_q = embedded[0] + last_slope * v
        rate_of_error = -last_slope * evaluation.rate
    through = jnp.stack([free, none, none, error_q, embedded[1]])
    beside = jnp.stack(
        [
            -offset,
            evaluation.gap,
            jnp.where(purpose.opening & ~geometric, 0.0, evaluation.rate),
            rate_of_error,
            last_slope * offset,
        ]
    )
    passes = jnp.array([factored.solver.max_steps, PASSES, PASSES, PASSES, PASSES])

    def answer(k: IntScalar, answers: Float[Array, "5 nv"]) -> Float[Array, "5 nv"]:
        motion, rest = (lax.dynamic_index_in_dim(x, k, keepdims=False) for x in (through, beside))
        right = descriptor.apply_C(motion) + rest
        multipliers = factored.approximate_multipliers(right, passes[k])
        return answers.at[k].set(factored.response(multipliers))

    # One at a time, and those that this evaluation needs: most are stages, which need one of five.
    first = jnp.where(moves | (not shared), 1, 0)
    end = jnp.where(purpose.arriving, 5, jnp.where(purpose.closing, 3, 1))
    end = jnp.where(moves, 3, jnp.where(purpose.locating, first, end))
    found = lax.fori_loop(first, end, answer, jnp.zeros_like(through))
    if shared:
        acceleration = acceleration - found[0]
        if equations.light is not None:
            acceleration, failed = _unless_light(given, look, equations, moves, acceleration)
    failed = failed | ~(jnp.all(jnp.isfinite(acceleration)) | moves)
    return Solved(found[1], found[2], acceleration, found[3:], factored, failed)
