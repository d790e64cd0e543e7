import functools
from typing import Any

import diffrax as dfx
import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, PyTree

from .._custom_types import BoolScalar
from .._fixed import fixed
from .._system import AbstractSystem
from ._arguments import Packed, split
from ._monitor import SingularValueMonitor
from ._projection import led, project
from ._runge_kutta import advance, ROUNDINGS, Start, tableau_of


class ProjectedSolver(dfx.AbstractAdaptiveSolver, dfx.AbstractWrappedSolver):
    """A Diffrax solver of y = (q, v, passages) that goes back onto the constraints after each
    step, and watches for singular configurations.

    A step whose end cannot be projected is rejected. The error of a step is how far apart the
    method's two solutions are on the constraints: next to a singular configuration they lie apart
    mostly across them, which the projection takes away. The first slope of the next step is
    evaluated anew: what a first-same-as-last method keeps belongs to the state before
    projection.
    """

    solver: dfx.AbstractSolver
    monitor: SingularValueMonitor | None
    projecting: bool
    # Diffrax sets this on what it takes for a Runge-Kutta method, according to the adjoint.
    scan_kind: Any = None

    @property
    def term_structure(self) -> Any:
        return self.solver.term_structure

    @property
    def interpolation_cls(self) -> Any:
        return self.solver.interpolation_cls

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
        inner = self.solver.init(terms, t0, t1, y0, args)
        if self.monitor is None:
            return inner, None
        return inner, self.monitor.init(args.opened().system, y0, t0)

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
        inner, watched = solver_state
        given = args.opened()
        jump = jnp.asarray(True) if self.projecting else made_jump
        near = None if self.monitor is None else watched.near(t1)
        if near is not None and given.onto is not None:
            given = eqx.tree_at(lambda a: a.onto, given, given.onto | near)
            args = Packed(given)
        y1, error, dense, inner, result = self._inner().step(terms, t0, t1, y0, args, inner, jump)
        if self.projecting:
            y1, error, usable = _onto_constraints(given.system, t1, y1, error, near)
        else:
            usable = jnp.all(jnp.isfinite(y1))
        if self.monitor is not None:
            watched, passed = self.monitor.step(given.system, y0, y1, t1, watched)
            y1 = y1.at[-1].add(passed)
            # Steps lead across a singular configuration, not to it, unless they must end there.
            forced = (t1 >= given.end) | jnp.any(t1 == given.knots)
            usable = usable & (forced | ~watched.beside)
        if error is not None:
            error = jnp.where(usable, error, jnp.inf)
        return y1, error, dense, (inner, watched), result

    def _inner(self) -> dfx.AbstractSolver:
        if self.scan_kind is None:
            return self.solver
        return eqx.tree_at(
            lambda s: s.scan_kind, self.solver, self.scan_kind, is_leaf=lambda x: x is None
        )


class ProjectedRungeKutta(ProjectedSolver):
    """The same for an explicit Runge-Kutta method, with stages and end of a step in one loop that
    looks at each state once (`_runge_kutta.py`). The end's slope is the first of the next step."""

    def init(self, terms: Any, t0: Any, t1: Any, y0: PyTree, args: Packed) -> PyTree:
        inner = jnp.zeros_like(y0[:-1]), jnp.asarray(False)
        if self.monitor is None:
            return inner, None
        return inner, self.monitor.init(args.opened().system, y0, t0)

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
        (slope, known), watched = solver_state
        given = args.opened()
        near = jnp.asarray(False) if self.monitor is None else watched.near(t1)
        t0, t1 = jnp.asarray(t0, y0.dtype), jnp.asarray(t1, y0.dtype)
        known = known & ~jnp.asarray(made_jump)
        start = Start(t0, t1, y0[:-1], slope, known, near, fixed(watched))
        taken = advance(self.solver, args, start)
        y1 = jnp.concatenate([taken.end, y0[-1:]])
        usable = taken.usable
        if self.monitor is not None:
            watched = taken.watched
            y1 = y1.at[-1].add(taken.passed)
            # Steps lead across a singular configuration, not to it, unless they must end there.
            forced = (t1 >= given.end) | jnp.any(t1 == given.knots)
            usable = usable & (forced | ~watched.beside)
        error = jnp.where(usable, jnp.pad(taken.error, (0, 1)), jnp.inf)
        own = tableau_of(self.solver).own
        slopes = jnp.pad(taken.slopes[:own], ((0, 0), (0, 1)))
        dense = {"y0": y0, "y1": y1, "k": (t1 - t0) * slopes}
        inner = taken.slopes[-1], jnp.asarray(True)
        return y1, error, dense, (inner, watched), dfx.RESULTS.successful


@functools.singledispatch
def projected_solver(
    solver: dfx.AbstractSolver, monitor: SingularValueMonitor | None, projecting: bool
) -> ProjectedSolver:
    """What a run gives to Diffrax in the place of a method."""
    return ProjectedSolver(solver, monitor, projecting)


@projected_solver.register
def _(
    solver: dfx.AbstractERK, monitor: SingularValueMonitor | None, projecting: bool
) -> ProjectedSolver:
    return ProjectedRungeKutta(solver, monitor, projecting)


def _onto_constraints(
    system: AbstractSystem,
    t: Any,
    y: Float[Array, " state"],
    error: Float[Array, " state"] | None,
    near: BoolScalar | None,
) -> tuple[Float[Array, " state"], Float[Array, " state"] | None, BoolScalar]:
    """The end of a step on the constraints, its error there, and whether it can be used. `near`:
    is a singular configuration close? None: nobody looks."""

    def projected(y: Float[Array, " state"]) -> tuple[Float[Array, " state"], BoolScalar]:
        found = project(still, *split(still, y), now)
        end = jnp.concatenate([found.q, found.v, y[-1:]])
        return end, found.met & jnp.all(jnp.isfinite(end))

    # Steps are not differentiated by their errors: of both solutions the first alone is.
    still, now = fixed((system, jnp.asarray(t, y.dtype)))
    found = y[None] if error is None else jnp.stack([y, y - error])
    ends, usable = jax.vmap(projected)(fixed(found))
    end = jnp.concatenate([*led(system, *split(system, y), t, split(system, ends[0])), y[-1:]])
    if error is None:
        return end, None, usable[0]
    apart = jnp.abs(ends[0] - ends[1])
    # What the projection had to move the configuration is an error too. The method may not have
    # seen it: a driver that acted between its stages only. (Next to a singular configuration
    # all moves far, and means nothing; velocities do so earlier.)
    nq = system.structure.nq
    moved = jnp.abs(ends[0] - found[0]).at[nq:].set(0.0)
    if near is None:
        return end, apart + moved, jnp.all(usable)
    rounding = _rounding(system, t, ends[0], near)
    apart = jnp.maximum(apart - ROUNDINGS * rounding, 0.0)
    return end, apart + jnp.where(near, 0.0, moved), jnp.all(usable)


def _rounding(
    system: AbstractSystem, t: Any, y: Float[Array, " state"], near: BoolScalar
) -> Float[Array, " state"]:
    """How far the projection moves a state where it should not, if a singular configuration is
    `near`, and no distance otherwise. It has no derivative."""
    system, y, t = fixed((system, y, jnp.asarray(t, y.dtype)))

    def move(carry: tuple[BoolScalar, Array]) -> tuple[BoolScalar, Array]:
        again = project(system, *split(system, y), t)
        return jnp.asarray(False), jnp.abs(y.at[:-1].set(jnp.concatenate([again.q, again.v])) - y)

    # At most once. In a batch a condition would be evaluated for all, a loop is only for some.
    return lax.while_loop(lambda x: x[0], move, (near, jnp.zeros_like(y)))[1]
