"""Studies that make an objective least."""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from .._custom_types import RealScalarLike
from .._solvability._table import format_table
from ._guard import guard
from ._objective import Objective, require_gradient, value_and_slope
from ._optimisers import AbstractOptimiser, Descent, Function, SLSQP, Task
from ._path import look, rank_changes
from ._refusal import DesignError
from ._study import Study


class AtMost(NamedTuple):
    """A constraint: `function` of the states of a run is at most `bound`."""

    function: Objective
    bound: float


class Visit(NamedTuple):
    """One iterate: the design by names, and the objective."""

    design: dict[str, float]
    value: float


class Optimum(eqx.Module):
    """Where a study ended.

    - `design`: the best design, by names; `value` of the objective there, `start_value` at the
      start. `converged`, `message`: what the optimiser says.
    - `history`: every iterate. Give `design` to `minimise` as its `start` to go on from there.
    """

    design: dict[str, float]
    value: float
    start_value: float
    converged: bool
    message: str
    history: tuple[Visit, ...]
    study: Study
    bounds: dict[str, tuple[float, float]]

    def __str__(self) -> str:
        lines = []
        for name, value in self.design.items():
            low, high = self.bounds[name]
            width = high - low
            at = "" if min(value - low, high - value) > 1e-6 * width else "at its bound"
            unit = self.study.subject.unit(name)
            lines.append((name, unit, f"{self.history[0].design[name]:.6g}", f"{value:.6g}", at))
        head = (
            f"objective {self.start_value:.6g} -> {self.value:.6g} in "
            f"{len(self.history) - 1} iterations; {self.message}"
        )
        return "\n".join([head, "", format_table(("parameter", "unit", "from", "to", ""), lines)])


def minimise(
    objective: Objective,
    study: Study,
    bounds: Mapping[str, tuple[float, float]],
    *,
    constraints: Sequence[AtMost] = (),
    start: Mapping[str, RealScalarLike] | None = None,
    optimiser: AbstractOptimiser | None = None,
    progress: Callable[[int, Visit], None] | None = None,
) -> Optimum:
    """The design that makes an objective least, by its gradients.

    The start is guarded: an objective or constraint of reactions that are not unique is refused,
    and so are parameters along which the rank or the closure breaks. Every iterate's rank is
    compared with that of the start; where it has changed the study ends, and says at which design.

    **Arguments:**

    - `objective`: a function of the states of a run (a `Trajectory`) to a number, such as
      `Peak(Force("B"))`. `bounds`: lowest and highest number of every parameter of the `study`.
    - `constraints`: `AtMost(function, bound)`. `start`: numbers by name, default the model's.
    - `optimiser`: default `Descent()` without constraints, `SLSQP()` with them.
    - `progress`: called with the number of each iterate and the iterate.

    **Returns:** an `Optimum`.

    **Raises:** `DesignError` for what has no gradient, bounds that do not hold the start, a
    design that cannot be computed, and a rank that changes on the way.
    """
    begin = study.values({} if start is None else start)
    low, width = _widths(study, bounds, np.asarray(begin))
    for function in (objective, *(c.function for c in constraints)):
        require_gradient(study, function, begin)
    found = guard(study, begin)
    for name in study.names:
        found.require(name)
    history: list[Visit] = []

    def in_units(function: Objective, sign: float, bound: float) -> Function:
        def evaluated(u: np.ndarray) -> tuple[float, np.ndarray]:
            value, slope = value_and_slope(study, function, jnp.asarray(low + width * u))
            if not np.isfinite(np.asarray(slope)).all() or not np.isfinite(float(value)):
                raise DesignError(
                    f"the objective is not a number at {study.named(low + width * u)}; narrow the "
                    "bounds to designs that can be assembled and run."
                )
            return bound + sign * float(value), sign * np.asarray(slope) * width

        return evaluated

    main = in_units(objective, 1.0, 0.0)

    def visited(u: np.ndarray) -> None:
        x = jnp.asarray(low + width * u)
        ranks = look(study, x, "a design on the way", None).ranks
        if not np.array_equal(ranks, found.ranks):
            last = history[-1].design
            changes = rank_changes(study, last, study.named(x), count=3)
            where = "; ".join(map(str, changes)) or f"at {study.named(x)}"
            raise DesignError(
                f"the rank of the constraints changes on the way, so that reactions jump there: "
                f"{where}; narrow the bounds so that they leave it out."
            )
        history.append(Visit(study.named(x), main(u)[0]))
        if progress is not None:
            progress(len(history) - 1, history[-1])

    first = (np.asarray(begin) - low) / width
    visited(first)
    limits = [in_units(c.function, -1.0, c.bound) for c in constraints]
    chosen = optimiser
    if chosen is None:
        chosen = SLSQP() if constraints else Descent()
    ones = np.ones_like(first)
    outcome = chosen.run(Task(main, limits, first, 0 * ones, ones, visited))
    return Optimum(
        study.named(low + width * outcome.point),
        main(outcome.point)[0],
        history[0].value,
        outcome.converged,
        outcome.message,
        tuple(history),
        study,
        {name: (low[k], low[k] + width[k]) for k, name in enumerate(study.names)},
    )


def _widths(
    study: Study, bounds: Mapping[str, tuple[float, float]], start: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    full = {study.subject.name(name): pair for name, pair in bounds.items()}
    if set(full) != set(study.names):
        raise DesignError(
            f"bounds must hold a pair for each of {', '.join(study.names)}; got "
            f"{', '.join(full) or 'none'}."
        )
    low, high = np.array([full[name] for name in study.names], dtype=float).T
    for k, name in enumerate(study.names):
        if not (np.isfinite(low[k]) and np.isfinite(high[k]) and low[k] < high[k]):
            raise DesignError(f"the bounds of {name!r} must be finite and increase.")
        if not low[k] <= start[k] <= high[k]:
            raise DesignError(
                f"{name!r} starts at {start[k]:.6g}, outside of its bounds {low[k]:.6g} to "
                f"{high[k]:.6g}; give a start between them."
            )
    return low, high - low
