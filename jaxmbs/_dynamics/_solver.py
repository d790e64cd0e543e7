from typing import Any

import diffrax as dfx
import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from .._system import AbstractSystem
from ._monitor import SingularValueMonitor
from ._projection import project


def split(
    system: AbstractSystem, y: Float[Array, " state"]
) -> tuple[Float[Array, " nq"], Float[Array, " nv"]]:
    """q and v of y = (q, v, number of passages)."""
    nq, nv = system.structure.nq, system.structure.nv
    return y[:nq], y[nq : nq + nv]


class ProjectedSolver(dfx.AbstractAdaptiveSolver, dfx.AbstractWrappedSolver):
    """A Diffrax solver of y = (q, v, passages) that goes back onto the constraints after each
    step, and watches for singular configurations.

    A step whose end cannot be projected is rejected. The first slope of the next step is
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

    def order(self, terms: Any) -> int | None:
        return self.solver.order(terms)

    def error_order(self, terms: Any) -> Any:
        return self.solver.error_order(terms)

    def func(self, terms: Any, t0: Any, y0: PyTree, args: Any) -> Any:
        return self.solver.func(terms, t0, y0, args)

    def init(self, terms: Any, t0: Any, t1: Any, y0: PyTree, args: Any) -> PyTree:
        inner = self.solver.init(terms, t0, t1, y0, args)
        watched = None if self.monitor is None else self.monitor.init(args.system, y0, t0)
        return inner, watched

    def step(
        self,
        terms: Any,
        t0: Any,
        t1: Any,
        y0: PyTree,
        args: Any,
        solver_state: PyTree,
        made_jump: Any,
    ) -> tuple[PyTree, PyTree, Any, PyTree, dfx.RESULTS]:
        inner, watched = solver_state
        jump = jnp.asarray(True) if self.projecting else made_jump
        y1, error, dense, inner, result = self._inner().step(terms, t0, t1, y0, args, inner, jump)
        if self.projecting:
            raw, projected = y1, project(args.system, *split(args.system, y1), t1)
            y1 = jnp.concatenate([projected.q, projected.v, y1[-1:]])
            # What the projection had to move is an error of the step too. The method may not have
            # seen it: a driver that acted between its stages only. (Velocities next to a
            # singular configuration move far, and mean nothing.)
            moved = projected.q - raw[: projected.q.shape[0]]
            if error is not None:
                error = jnp.abs(error).at[: moved.shape[0]].add(jnp.abs(moved))
            usable = projected.met & jnp.all(jnp.isfinite(y1))
        else:
            usable = jnp.all(jnp.isfinite(y1))
        if error is not None:
            error = jnp.where(usable, error, jnp.inf)
        if self.monitor is not None:
            watched, passed = self.monitor.step(args.system, y0, y1, t1, watched)
            y1 = y1.at[-1].add(passed)
        return y1, error, dense, (inner, watched), result

    def _inner(self) -> dfx.AbstractSolver:
        if self.scan_kind is None:
            return self.solver
        return eqx.tree_at(
            lambda s: s.scan_kind, self.solver, self.scan_kind, is_leaf=lambda x: x is None
        )
