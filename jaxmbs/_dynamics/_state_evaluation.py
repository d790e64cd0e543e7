"""Evaluation of a state of a step, and the solutions there: accelerations, projections onto the
constraints, the part of the step's error that these remove (`_runge_kutta.py`).
"""

import abc
import enum
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

from .. import _settings
from .._custom_types import BoolScalar, IntScalar, Numbers, Scalar, Setting
from .._formulations import AbstractFormulation, Accelerations
from .._linalg import KKTSystem, motion_solver, REGULARISATION
from .._linalg._many_states import any_state
from .._solution import RESULTS
from .._system import AbstractSystem, Equations, Evaluation
from ._friction import accelerated


# --------------------------------------------------------------------------------------------------
# Arguments of the slopes and steps of a run besides the state, among them stabilisation.
# --------------------------------------------------------------------------------------------------


# Above this rate (1/s) beta^2 times rounding of a position of 1 m is an acceleration of 1e8 m/s^2,
# and no step of an integrator is short enough.
_FASTEST = 1e12


class AbstractStabilisation(eqx.Module):
    """Stabilisation against drift from the constraints."""

    @property
    @abc.abstractmethod
    def projecting(self) -> bool:
        """Are states brought back onto the constraints after each step?"""

    @abc.abstractmethod
    def offset(self, said: Evaluation) -> Float[Array, " rows"] | None:
        """The term added to Gamma; None for none."""


class Projection(AbstractStabilisation):
    """Mass-orthogonal projection of position and velocity after each step: no drift."""

    @property
    def projecting(self) -> bool:
        return True

    def offset(self, said: Evaluation) -> None:
        del said


class Baumgarte(AbstractStabilisation):
    """Gamma - 2 alpha (C v + b) - beta^2 Phi in the place of Gamma (Baumgarte 1972, Comput. Meth.
    Appl. Mech. Eng. 1): drift decays like an oscillator. Cheaper than projection, and neither
    exact nor free of tuning; velocity rows have no Phi.

    **Arguments:** `alpha`, `beta`: 1/s, greater than zero; equal values damp critically.
    """

    alpha: Scalar
    beta: Scalar

    def __init__(self, alpha: Setting[Numbers] = 10.0, beta: Setting[Numbers] = 10.0):
        self.alpha = _settings.between(alpha, "alpha", above=0, most=_FASTEST)
        self.beta = _settings.between(beta, "beta", above=0, most=_FASTEST)

    @property
    def projecting(self) -> bool:
        return False

    def offset(self, said: Evaluation) -> Float[Array, " rows"]:
        return -2 * self.alpha * said.rate - self.beta**2 * said.gap


# --------------------------------------------------------------------------------------------------
# Arguments of the slopes and steps of a run besides the state.
# --------------------------------------------------------------------------------------------------


# The largest change of velocity that counts as settled where a run has no relative tolerance of its
# own, or a singular configuration is near; and the part of that tolerance elsewhere. A slope is off
# by about as much, which in the next step counts times a weight of 0.04 and the step's length.
SETTLED, SETTLED_PART = 1e-11, 1 / 40


class Arguments(eqx.Module):
    """`first`: the state at the start; `end` (s): of the run; `knots` (s), at which motions are not
    smooth. `onto`: take slopes on the constraints, as rows become independent off them, or a
    singular configuration is near; none: never. `settled`: the largest change of velocity at the
    end of a step, relative to velocities and 1, after which its slope is not evaluated again."""

    system: AbstractSystem
    formulation: AbstractFormulation
    stabilisation: AbstractStabilisation
    first: Float[Array, " state"]
    end: Scalar
    knots: Float[Array, " knots"]
    onto: BoolScalar | None
    settled: Scalar

    def moves(self, exposed: BoolScalar) -> BoolScalar:
        """Are slopes taken on the constraints? `exposed`: may a stage lie next to a singular
        configuration?"""
        return jnp.asarray(False) if self.onto is None else self.onto | exposed

    def equations(self, evaluation: Evaluation) -> Equations:
        """The equations of motion of one state, stabilised."""
        offset = self.stabilisation.offset(evaluation)
        if offset is None:
            return evaluation.equations
        return eqx.tree_at(
            lambda e: e.offset, evaluation.equations, evaluation.equations.offset + offset
        )


class Packed(eqx.Module):
    """Arguments as a plain list of their leaves: the continuous adjoint has a state for each, and
    the loops of Diffrax accept no state that contains an empty tuple; a system contains many."""

    leaves: list[Any]
    structure: Any = eqx.field(static=True)

    def __init__(self, arguments: Arguments):
        self.leaves, self.structure = jax.tree.flatten(arguments)

    def opened(self) -> Arguments:
        return jax.tree.unflatten(self.structure, self.leaves)


def split(
    system: AbstractSystem, y: Float[Array, " state"]
) -> tuple[Float[Array, " nq"], Float[Array, " nv"]]:
    """q and v of y = (q, v, number of passages) or (q, v)."""
    nq, nv = system.structure.nq, system.structure.nv
    return y[:nq], y[nq : nq + nv]


# Proximal steps for the projection onto the constraints, with the larger mu, as in
# `_linalg.damped_solver`.
PASSES = 2


class Phase(enum.IntEnum):
    """Purpose of an evaluation within a step.

    A step goes through `STAGE` for each of its stages, where these are taken as the method makes
    them. The end, and stages that are taken on the constraints, go through `OPEN` until the
    configuration is closed, and then through `CLOSE` until velocities are consistent. Behind the
    end there are `MEASURE` once, next to a singular configuration, and `LOCATE` as often as the
    monitor needs a sample within the step.
    """

    DONE = 0  # nothing more: the step is made, or has failed
    STAGE = 1  # the slope; of a state that is to be moved its residuals decide between the next two
    OPEN = 2  # the projection of a configuration
    CLOSE = 3  # the projection of velocities, and the slope behind it
    MEASURE = 4  # the projection of what is projected: rounding
    LOCATE = 5  # singular values within the step


class StateResiduals(NamedTuple):
    """A state of a step that was evaluated, before anything is solved. `closure`, `rest`: the
    largest residual of the configuration and of the velocity; `moving`: is it projected back onto
    the constraints? `evaluations`: their number at this stage; `arriving`: is it the end of the
    step? `starting`: does the monitor begin here?"""

    phase: Scalar
    stage: IntScalar
    evaluations: Scalar
    arriving: BoolScalar
    starting: BoolScalar
    t: Scalar
    q: Float[Array, " nq"]
    v: Float[Array, " nv"]
    finite: BoolScalar
    evaluation: Evaluation
    closure: Scalar
    rest: Scalar
    moving: BoolScalar

    @property
    def opening(self) -> BoolScalar:
        return self.phase == Phase.OPEN

    @property
    def closing(self) -> BoolScalar:
        return self.phase == Phase.CLOSE

    @property
    def behind(self) -> BoolScalar:
        """Is the step at its end already?"""
        return self.phase >= Phase.MEASURE


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
    state: StateResiduals,
    equations: Equations,
    moves: BoolScalar,
    acceleration: Float[Array, " nv"],
) -> tuple[Float[Array, " nv"], BoolScalar]:
    """The acceleration, or that of the formulation where only the numbers tell whether parts are
    light, and they are."""
    light = jnp.asarray(equations.light) & ~moves

    def solved() -> tuple[Float[Array, " nv"], BoolScalar]:
        q, v, t = state.q, state.v, state.t
        found = accelerated(given.system, given.formulation, equations, q, v, t)
        failed = light & (found.result != RESULTS.successful)
        return jnp.where(light, found.acceleration, acceleration), failed

    return lax.cond(any_state(light), solved, lambda: (acceleration, jnp.asarray(False)))


def solve_state(
    given: Arguments, state: StateResiduals, embedded: Float[Array, "2 nv"], last_slope: Scalar
) -> Solved:
    """The solution at one state. `embedded`: the error without the last slope, which has the weight
    `last_slope` (s) in it."""
    system, structure = given.system, given.system.structure
    geometric, held = structure.geometric, structure.velocity_level
    q, v, evaluation, opening = state.q, state.v, state.evaluation, state.opening
    equations = given.equations(evaluation)
    descriptor, offset = equations.descriptor, equations.offset
    (rows, nv), none = descriptor.shape, jnp.zeros_like(v)
    free = descriptor.inverse_mass(equations.force)
    moves = opening | (state.phase == Phase.MEASURE)
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
            lambda: accelerated(system, given.formulation, equations, q, v, state.t),
        )
        acceleration, failed = found.acceleration, found.result != RESULTS.successful
    if not rows:
        failed = failed | ~jnp.all(jnp.isfinite(acceleration))
        return Solved(none, none, acceleration, jnp.zeros((2, nv), v.dtype), None, failed)

    kept = descriptor.metric()
    if not geometric.all():
        kept = kept.mask_rows(jnp.where(opening, geometric, held))
    motion = motion_solver()
    # Where nothing is moved the smaller shift of accelerations does.
    still = state.phase == Phase.STAGE
    shift = jnp.where(still, motion.regularisation, REGULARISATION)
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
            jnp.where(opening & ~geometric, 0.0, evaluation.rate),
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
    end = jnp.where(state.arriving, 5, jnp.where(state.closing, 3, 1))
    end = jnp.where(moves, 3, jnp.where(state.phase == Phase.LOCATE, first, end))
    found = lax.fori_loop(first, end, answer, jnp.zeros_like(through))
    if shared:
        acceleration = acceleration - found[0]
        if equations.light is not None:
            acceleration, failed = _unless_light(given, state, equations, moves, acceleration)
    failed = failed | ~(jnp.all(jnp.isfinite(acceleration)) | moves)
    return Solved(found[1], found[2], acceleration, found[3:], factored, failed)
