"""Solvers of a run: methods of Diffrax between states on the constraints, and steps of given
lengths.
"""

import abc
import functools
from typing import Any, NamedTuple

import diffrax as dfx
import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, PyTree

from .. import _checks
from .._custom_types import BoolScalar, Scalar
from .._formulations import AbstractFormulation
from .._stop_gradient import stop_gradient
from .._system import AbstractSystem, refuse_acceleration_level
from ._choices import Steps
from ._generalized_alpha import GeneralizedAlpha
from ._monitor import PackedCrossings, SingularValueMonitor, vanishes_in_step
from ._projection import attach_projection_jvp, project
from ._runge_kutta import (
    advance,
    Inside,
    inside_stages,
    record_of,
    ROUNDINGS,
    Start,
    StepInterpolation,
    StepRecord,
    Tableau,
    tableau_of,
)
from ._state_evaluation import AbstractStabilisation, Packed, split
from ._step_size import FixedSteps, leads_elsewhere


# The error of a step across a singular configuration counts as so many times as large. A method
# takes the motion for smooth, and is then more exact than its tolerance; there it is not (stages
# next to that configuration have lost digits), and one such step decided the error of a whole run:
# of the chain of 40 windows 7 to 131 times the tolerance, with it 13 to 24 times.
_ACROSS = 10.0

# Across or next to a singular configuration a step moves something by this at most (characteristic
# lengths, radians). Projection takes away what is wrong there, so that the error of a motion that
# drivers determine says nothing: steps of four radians were taken, and where a motion goes within
# such a one nothing tells.
_LONG = 1.5


class StepOutcome(NamedTuple):
    """A step that a method took. `y1`, `error` (state and passages,), the latter None where the
    method has no estimate; `dense`: for its interpolation; `inner`: what it carries on. `watched`:
    what a monitor carries on, if there is one; `passed`: was a singular configuration passed, or
    was one `near`? `usable`: is the end on the constraints?"""

    y1: PyTree
    error: Any
    dense: PyTree
    inner: PyTree
    watched: PackedCrossings | None
    passed: BoolScalar
    near: BoolScalar
    usable: BoolScalar
    result: dfx.RESULTS


class LastStep(NamedTuple):
    """The last step that was accepted, for its interpolation; before the first one `t1` is minus
    infinity."""

    t0: Scalar
    t1: Scalar
    dense: PyTree


class Kept(NamedTuple):
    """Parts of a step that are kept in the state of a run: the `last_step`, for its interpolation;
    the `record` of it, for a derivative."""

    last_step: bool
    record: bool


class Following(NamedTuple):
    """Data that a Runge-Kutta method carries from step to step: the `slope` at the end, if it is
    `known`, and the record of the step, if it is kept."""

    slope: Float[Array, " state"]
    known: BoolScalar
    record: StepRecord | None


class AbstractProjectedSolver(dfx.AbstractAdaptiveSolver, dfx.AbstractWrappedSolver):
    """A Diffrax solver of y = (q, v, passages) that goes back onto the constraints after each
    step, and watches for singular configurations. A step whose end cannot be projected is
    rejected. The last step, where it is `kept`, follows in the state what the method and the
    monitor carry. `predicts`: does the last number of the error hold the time of the next passage,
    as `PassageSteps` reads it?"""

    solver: eqx.AbstractVar[dfx.AbstractSolver]
    monitor: eqx.AbstractVar[SingularValueMonitor | None]
    kept: eqx.AbstractVar[Kept]
    predicts: eqx.AbstractVar[bool]

    @abc.abstractmethod
    def initial_state(self, terms: Any, t0: Any, t1: Any, y0: PyTree, args: Packed) -> PyTree:
        """The method's initial state."""

    @abc.abstractmethod
    def take_step(
        self,
        terms: Any,
        t0: Any,
        t1: Any,
        y0: PyTree,
        args: Packed,
        inner: PyTree,
        watched: PackedCrossings | None,
        made_jump: Any,
    ) -> StepOutcome:
        """The step."""

    @property
    def term_structure(self) -> Any:
        return self.solver.term_structure

    @property
    @abc.abstractmethod
    def interpolation_cls(self) -> Any:
        """The interpolant of a step, from the times of its ends and the step's `dense` output."""

    @property
    def term_compatible_contr_kwargs(self) -> Any:
        return self.solver.term_compatible_contr_kwargs

    @property
    def root_finder(self) -> Any:
        """Diffrax gives that of an implicit method the tolerances of the step sizes."""
        solver: Any = self.solver
        return solver.root_finder

    def order(self, terms: Any) -> int | None:
        return self.solver.order(terms)

    def error_order(self, terms: Any) -> Any:
        return self.solver.error_order(terms)

    def func(self, terms: Any, t0: Any, y0: PyTree, args: Any) -> Any:
        return self.solver.func(terms, t0, y0, args)

    def init(self, terms: Any, t0: Any, t1: Any, y0: PyTree, args: Packed) -> PyTree:
        inner = self.initial_state(terms, t0, t1, y0, args)
        system = args.opened().system
        watched = None if self.monitor is None else self.monitor.init(system, y0, t0)
        if not self.kept.last_step:
            return inner, watched, None
        function = functools.partial(self.take_step, made_jump=False)
        given = terms, t0, t1, y0, args, inner, watched
        dense = eqx.filter_eval_shape(function, *given).dense
        dense = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), dense)
        now = jnp.asarray(t0, y0.dtype)
        return inner, watched, LastStep(now, jnp.full_like(now, -jnp.inf), dense)

    def step(
        self,
        terms: Any,
        t0: Any,
        t1: Any,
        y0: PyTree,
        args: Packed,
        solver_state: PyTree,
        made_jump: Any,
    ) -> tuple[PyTree, PyTree, Any, PyTree, dfx.RESULTS]:
        inner, watched, last = solver_state
        taken = self.take_step(terms, t0, t1, y0, args, inner, watched, made_jump)
        y1, watched, error, usable = taken.y1, taken.watched, taken.error, taken.usable
        if args.opened().system.structure.nonlinear.any():
            held = ~vanishes_in_step(terms, t0, t1, y0, y1, args)
            # Where nothing chooses the lengths of steps the run ends with what is not finite.
            usable, y1 = usable & held, jnp.where(held, y1, jnp.nan)
        if watched is not None:
            y1 = y1.at[-1].add(taken.passed)
            # Steps lead across a singular configuration, not to it, unless they must end there.
            given = args.opened()
            forced = (t1 >= given.end) | jnp.any(t1 == given.knots)
            usable = usable & (forced | ~watched.ends_next_to_one(t1 - t0))
            speed = jnp.abs(split(given.system, y1)[1]) / given.system.column_scale()
            long = (t1 - t0) * jnp.max(speed, initial=0.0) > _LONG
            usable = usable & ~(long & (taken.passed | taken.near))
        if error is not None:
            error = jnp.where(usable, jnp.where(taken.passed, _ACROSS, 1.0) * error, jnp.inf)
            if self.predicts and watched is not None:
                # The error of the number of passages, which has none, is free. It stays finite:
                # what is not would be a step that failed.
                most = jnp.finfo(error.dtype).max
                expected = jnp.minimum(watched.expected, most)
                error = error.at[-1].set(jnp.where(usable, expected, jnp.inf))
        if last is not None:
            last = LastStep(jnp.asarray(t0, y1.dtype), jnp.asarray(t1, y1.dtype), taken.dense)
        return y1, error, taken.dense, (taken.inner, watched, last), taken.result


class ProjectedSolver(AbstractProjectedSolver):
    """Projection of any Diffrax method.

    The error of a step is how far apart the method's two solutions are on the constraints: next to
    a singular configuration they lie apart mostly across them, which the projection takes away. The
    first slope of the next step is evaluated anew: what a first-same-as-last method keeps belongs
    to the state before projection.
    """

    solver: dfx.AbstractSolver
    monitor: SingularValueMonitor | None
    projecting: bool
    kept: Kept
    predicts: bool
    # Diffrax sets this on what it takes for a Runge-Kutta method, according to the adjoint.
    scan_kind: Any = None

    @property
    def interpolation_cls(self) -> Any:
        return self.solver.interpolation_cls

    def initial_state(self, terms: Any, t0: Any, t1: Any, y0: PyTree, args: Packed) -> PyTree:
        return self.solver.init(terms, t0, t1, y0, args)

    def take_step(
        self,
        terms: Any,
        t0: Any,
        t1: Any,
        y0: PyTree,
        args: Packed,
        inner: PyTree,
        watched: PackedCrossings | None,
        made_jump: Any,
    ) -> StepOutcome:
        given, passed = args.opened(), jnp.asarray(False)
        jump = jnp.asarray(True) if self.projecting else made_jump
        near = None if watched is None else watched.near(t1)
        if near is not None and given.onto is not None:
            given = eqx.tree_at(lambda a: a.onto, given, given.onto | near)
            args = Packed(given)
        y1, error, dense, inner, result = self._inner().step(terms, t0, t1, y0, args, inner, jump)
        if self.projecting:
            y1, error, usable = _onto_constraints(given.system, t1, y0, y1, error, near)
        else:
            usable = jnp.all(jnp.isfinite(y1))
        if self.monitor is not None and watched is not None:
            watched, passed = self.monitor.step(given.system, y0, y1, t1, watched)
        near = jnp.asarray(False) if near is None else near
        return StepOutcome(y1, error, dense, inner, watched, passed, near, usable, result)

    def _inner(self) -> dfx.AbstractSolver:
        if self.scan_kind is None:
            return self.solver
        return eqx.tree_at(
            lambda s: s.scan_kind, self.solver, self.scan_kind, is_leaf=lambda x: x is None
        )


class ProjectedRungeKutta(AbstractProjectedSolver):
    """Projection of an explicit Runge-Kutta method, with stages and end of a step in one loop that
    evaluates each state once (`_runge_kutta.py`). The end's slope is the first of the next step.
    `inside`: output between the ends of steps, if any."""

    solver: dfx.AbstractERK
    monitor: SingularValueMonitor | None
    inside: Inside | None
    kept: Kept
    predicts: bool
    # Set by Diffrax; the loop over stages has no other kind.
    scan_kind: Any = None

    @property
    def interpolation_cls(self) -> Any:
        if self.inside is None:
            return dfx.ThirdOrderHermitePolynomialInterpolation
        if inside_stages(self.solver) is None:
            return self.solver.interpolation_cls
        return StepInterpolation

    def initial_state(self, terms: Any, t0: Any, t1: Any, y0: PyTree, args: Packed) -> PyTree:
        del terms, t0, t1, args
        none = jnp.zeros_like(y0[:-1])
        if not self.kept.record:
            return Following(none, jnp.asarray(False), None)
        rows = jnp.zeros((len(self.step_tableau.nodes), len(none)), none.dtype)
        return Following(none, jnp.asarray(False), StepRecord(none, rows, rows, jnp.uint8(0)))

    def take_step(
        self,
        terms: Any,
        t0: Any,
        t1: Any,
        y0: PyTree,
        args: Packed,
        inner: PyTree,
        watched: PackedCrossings | None,
        made_jump: Any,
    ) -> StepOutcome:
        del terms
        near = jnp.asarray(False) if watched is None else watched.near(t1)
        t0, t1 = jnp.asarray(t0, y0.dtype), jnp.asarray(t1, y0.dtype)
        known = inner.known & ~jnp.asarray(made_jump)
        more = inside_stages(self.solver)
        wanted = None if more is None or self.inside is None else self.inside.wanted(t0, t1)
        watched = stop_gradient(watched)
        # Steps that are placed keep their stages away from a singular configuration.
        onto = args.opened().moves(near & (not self.predicts))
        start = Start(t0, t1, y0[:-1], inner.slope, known, near, onto, wanted, watched)
        step = advance(self.solver, args, start)
        y1 = jnp.concatenate([step.end, y0[-1:]])
        record = stop_gradient(record_of(start, step)) if self.kept.record else None
        following = Following(step.slopes[-1], jnp.asarray(True), record)
        dense = self.dense(t1 - t0, y0, y1, step.slopes)
        error, result = jnp.pad(step.error, (0, 1)), dfx.RESULTS.successful
        return StepOutcome(
            y1, error, dense, following, step.watched, step.passed, near, step.usable, result
        )

    @property
    def step_tableau(self) -> Tableau:
        """The tableau of a step, with stages of its interpolant."""
        return tableau_of(self.solver, None if self.inside is None else inside_stages(self.solver))

    def dense(
        self,
        h: Scalar,
        y0: Float[Array, " passages"],
        y1: Float[Array, " passages"],
        slopes: Float[Array, "stages state"],
    ) -> dict[str, Array]:
        """Arguments of `interpolation_cls` for a step, besides its times: states with the number of
        passages."""
        slopes = h * jnp.pad(slopes, ((0, 0), (0, 1)))
        ends = {"y0": y0, "y1": y1}
        if self.inside is None:
            return {**ends, "k0": slopes[0], "k1": slopes[-1]}
        more = inside_stages(self.solver)
        if more is None:
            return {**ends, "k": slopes[: tableau_of(self.solver).own]}
        return {**ends, "k": jnp.stack([slopes[k] for k in more.used])}


@functools.singledispatch
def projected_solver(
    solver: dfx.AbstractSolver,
    monitor: SingularValueMonitor | None,
    projecting: bool,
    inside: Inside | None,
    kept: Kept,
    predicts: bool,
) -> AbstractProjectedSolver:
    """The solver that a run passes to Diffrax in place of a method. `inside`: output between the
    ends of steps, if any; `kept`: in the state; `predicts`: as of the solver."""
    del inside
    return ProjectedSolver(solver, monitor, projecting=projecting, kept=kept, predicts=predicts)


@projected_solver.register
def _(
    solver: dfx.AbstractERK,
    monitor: SingularValueMonitor | None,
    projecting: bool,
    inside: Inside | None,
    kept: Kept,
    predicts: bool,
) -> AbstractProjectedSolver:
    del projecting
    return ProjectedRungeKutta(solver, monitor, inside=inside, kept=kept, predicts=predicts)


@projected_solver.register
def _(
    solver: GeneralizedAlpha,
    monitor: SingularValueMonitor | None,
    projecting: bool,
    inside: Inside | None,
    kept: Kept,
    predicts: bool,
) -> AbstractProjectedSolver:
    # It satisfies Phi = 0 itself, and velocities that were projected would not be those of its
    # order.
    del projecting, inside
    return ProjectedSolver(solver, monitor, projecting=False, kept=kept, predicts=predicts)


def _onto_constraints(
    system: AbstractSystem,
    t: Any,
    y0: Float[Array, " state"],
    y: Float[Array, " state"],
    error: Float[Array, " state"] | None,
    near: BoolScalar | None,
) -> tuple[Float[Array, " state"], Float[Array, " state"] | None, BoolScalar]:
    """The end `y` of a step from `y0`, on the constraints, its error there, and whether it can be
    used. `near`: is a singular configuration close? None: without a monitor."""

    def projected(y: Float[Array, " state"]) -> tuple[Float[Array, " state"], BoolScalar]:
        found = project(still, *split(still, y), now)
        end = jnp.concatenate([found.q, found.v, y[-1:]])
        return end, found.met & jnp.all(jnp.isfinite(end))

    # Steps are not differentiated by their errors: of both solutions the first alone is.
    still, now = stop_gradient((system, jnp.asarray(t, y.dtype)))
    found = y[None] if error is None else jnp.stack([y, y - error])
    ends, usable = jax.vmap(projected)(stop_gradient(found))
    end = jnp.concatenate(
        [*attach_projection_jvp(system, *split(system, y), t, split(system, ends[0])), y[-1:]]
    )
    nq = system.structure.nq
    moved = jnp.abs(ends[0] - found[0]).at[nq:].set(0.0)
    if error is None:
        # Nothing else can tell of it.
        jumps = leads_elsewhere(y0[:nq], ends[0][:nq], moved[:nq])
        return jnp.where(jumps, jnp.nan, end), None, usable[0]
    apart = jnp.abs(ends[0] - ends[1])
    # What the projection had to move the configuration is an error too. The method may not have
    # seen it: a driver that acted between its stages only. (Next to a singular configuration
    # all moves far, and means nothing, unless it is farther than the step itself: that leads to
    # another branch. Velocities do so earlier.)
    if near is None:
        return end, apart + moved, jnp.all(usable)
    rounding = _rounding(system, t, ends[0], near)
    apart = jnp.maximum(apart - ROUNDINGS * rounding, 0.0)
    leaps = jnp.max(moved[:nq], initial=0.0) > jnp.max(jnp.abs(y - y0)[:nq], initial=0.0)
    return end, apart + jnp.where(near & ~leaps, 0.0, moved), jnp.all(usable)


def _rounding(
    system: AbstractSystem, t: Any, y: Float[Array, " state"], near: BoolScalar
) -> Float[Array, " state"]:
    """Displacement of a state by the projection through rounding alone, if a singular configuration
    is `near`, and zero otherwise. It has no derivative."""
    system, y, t = stop_gradient((system, y, jnp.asarray(t, y.dtype)))

    def move(carry: tuple[BoolScalar, Array]) -> tuple[BoolScalar, Array]:
        again = project(system, *split(system, y), t)
        return jnp.asarray(False), jnp.abs(y.at[:-1].set(jnp.concatenate([again.q, again.v])) - y)

    # At most once. In a batch a condition would be evaluated for all, a loop is only for some.
    return lax.while_loop(lambda x: x[0], move, (near, jnp.zeros_like(y)))[1]


# --------------------------------------------------------------------------------------------------
# The steps that a method makes, and what it supports.
# --------------------------------------------------------------------------------------------------


@functools.singledispatch
def steps_of_method(
    solver: dfx.AbstractSolver | None,
    system: AbstractSystem,
    steps: Steps,
    stabilisation: AbstractStabilisation,
    adjoint: dfx.AbstractAdjoint | None,
) -> Steps:
    """The steps that a method makes.

    **Raises:** `ValueError` for what does not go with it.
    """
    del solver, stabilisation, adjoint
    controller, first_step = steps
    adaptive = isinstance(controller, dfx.AbstractAdaptiveStepSizeController)
    if controller is None or adaptive:
        return steps
    # A step across a state at which a velocity row vanishes, or a coupling jumps, is none.
    return Steps(FixedSteps(controller, system.structure.nq), first_step)


@steps_of_method.register
def _(
    solver: GeneralizedAlpha,
    system: AbstractSystem,
    steps: Steps,
    stabilisation: AbstractStabilisation,
    adjoint: dfx.AbstractAdjoint | None,
) -> Steps:
    _refuse_system(solver, system)
    if not stabilisation.projecting:
        raise ValueError(
            "GeneralizedAlpha meets the constraints itself; leave stabilisation=Projection()."
        )
    if isinstance(adjoint, dfx.BacksolveAdjoint):
        raise ValueError(
            "BacksolveAdjoint solves equations that GeneralizedAlpha does not know; use "
            "RecursiveCheckpointAdjoint() (reverse mode) or ForwardMode() in its place."
        )
    controller, first_step = steps
    if isinstance(controller, dfx.AbstractAdaptiveStepSizeController):
        raise ValueError(
            "GeneralizedAlpha knows no error of its steps, so that adaptive step sizes do not go "
            f"with it, got {type(controller).__name__}; give GeneralizedAlpha(step=1e-3) (s) "
            "and no controller."
        )
    if controller is None:
        first_step = solver.step_length if first_step is None else first_step
        if first_step is None:
            raise ValueError(
                "GeneralizedAlpha makes steps of one length, and was given none; write "
                "GeneralizedAlpha(step=1e-3), it is in s."
            )
        controller = dfx.ConstantStepSize()
    return Steps(FixedSteps(controller, system.structure.nq), first_step)


@functools.singledispatch
def check_method(solver: dfx.AbstractSolver, formulation: AbstractFormulation) -> None:
    """
    **Raises:** `ValueError` for a formulation that the method does not support.
    """
    del solver, formulation


@check_method.register
def _(solver: GeneralizedAlpha, formulation: AbstractFormulation) -> None:
    del solver
    if formulation.adds_force:
        raise ValueError(
            "GeneralizedAlpha knows the forces of the system alone, and "
            f"{type(formulation).__name__} adds some; leave the solver out, or take an implicit "
            "one such as diffrax.Kvaerno5()."
        )


def _refuse_system(solver: GeneralizedAlpha, system: AbstractSystem) -> None:
    """**Raises:** `ValueError` for a system that the method cannot follow."""
    radius = _checks.concrete(solver.spectral_radius)
    if radius is not None and system.structure.rows and float(radius) == 1.0:
        raise ValueError(
            "spectral_radius must be less than 1 for a system with constraints, whose multipliers "
            "nothing damps otherwise, got 1; 0.8 is usual."
        )
    if system.frictional_joints:
        raise ValueError(
            "GeneralizedAlpha knows no Coulomb friction in joints, got friction in "
            f"{', '.join(system.frictional_joints)}; leave the solver out."
        )
    refuse_acceleration_level(system.structure, "GeneralizedAlpha", "leave the solver out")
    if system.structure.internal.size:
        names = ", ".join(system.structure.coordinates[k].name for k in system.structure.internal)
        raise ValueError(
            f"GeneralizedAlpha knows no states of forces, got {names}; leave the solver out, or "
            "take an implicit one such as diffrax.Kvaerno5()."
        )
