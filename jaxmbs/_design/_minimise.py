"""Studies that make an objective least, from one start or from many."""

import os
from collections.abc import Mapping, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .. import _settings
from .._checks import known_array
from .._custom_types import RealScalarLike, Setting
from .._dynamics import Trajectory
from .._solution import code_of, RESULTS
from .._sweep import Cases
from ._descent import Descent, enter, Way
from ._guard import guard_at
from ._objective import (
    Objective,
    refuse_idle,
    refuse_zero,
    require_unique,
    unique,
    unit_of_objective,
)
from ._optimisers import AbstractOptimiser, Outcome, Search, SLSQP
from ._problem import (
    AtMost,
    FINE,
    inside,
    Logbook,
    Optimum,
    Problem,
    problem_of,
    Progress,
    sentence,
    Starts,
    survey,
)
from ._study import design_vector, DesignError, states, Study


_RANK_CHANGED = int(code_of(RESULTS.design_rank_changed))
_NOT_UNIQUE = int(code_of(RESULTS.reaction_not_unique))

# Where no start has a greater value, the most promising one shows whether it is zero.
_SMALL = 1e-9

_START = '{"bodies.crank.mass": 1.0}'


def minimise(
    objective: Setting[Objective],
    study: Study,
    bounds: Setting[Mapping[str, tuple[float, float]]],
    *,
    constraints: Setting[Sequence[AtMost]] = (),
    start: Setting[Mapping[str, RealScalarLike] | None] = None,
    optimiser: Setting[AbstractOptimiser | None] = None,
    store: Setting[str | os.PathLike[str] | None] = None,
    progress: Setting[Progress | None] = None,
) -> Optimum:
    """The design that makes an objective least, by its gradients.

    The start is guarded: an objective or a constraint of reactions that are not unique is refused,
    or one that is zero by what a joint is (the force of a driver of a rotation), an objective that
    is zero there and does not change, and so are parameters along which the rank or the closure
    breaks. The rank of every iterate is compared with that of the start, at every state of its run,
    and the quantities of the objective and the constraints must be unique there too; where either
    fails the study ends, and reports the design. (A change between two iterates that is reversed is
    not detected: see `rank_changes`.) Every design is assembled; one that cannot be computed is
    avoided, and counted.

    **Arguments:**

    - `objective`: a function of the states of a run (a `Trajectory`) to a number, such as
      `Peak(Force("B"))`. `bounds`: lowest and highest number of every parameter of the `study`,
      in its unit.
    - `constraints`: `AtMost(function, bound)`. `start`: numbers by name, default the model's.
    - `optimiser`: default `Descent()` without constraints, `SLSQP()` with them.
    - `store`: a `.npz` file. A study that was stopped goes on from it when it is called again
      with the same arguments, and ends with the same numbers.
    - `progress`: called with the number of each iterate and the iterate (a `Visit`).

    **Returns:** an `Optimum`.

    **Raises:** `DesignError` for what has no gradient, bounds that do not hold the start, a
    start that cannot be computed, and a rank that changes or a reaction that ceases to be unique
    on the way; `ModelError` for numbers that cannot be, also at the bounds; `TypeError` or
    `ValueError` for other settings that cannot be.
    """
    problem = problem_of(study, objective, bounds, constraints)
    given = {} if start is None else _settings.mapping(start, "start", _START)
    begin = design_vector(study, given, "start")
    point = inside(problem, begin)
    study.check(begin)
    _check_outside(store, progress)
    chosen = optimiser
    if chosen is None:
        chosen = SLSQP() if constraints else Descent()
    such_as = "Descent(), SLSQP(), TrustRegion() or BFGS()"
    _settings.instance(chosen, AbstractOptimiser, "optimiser", such_as)
    first = chosen.respond(problem, point)
    book = Logbook(problem, _guarded(problem, begin, first), progress)
    refuse_idle(study, objective, begin, first)
    outcome = chosen.run(Search(problem, point, book, store))
    return _optimum(problem, book, outcome, first, chosen)


def multistart(
    objective: Setting[Objective],
    study: Study,
    bounds: Setting[Mapping[str, tuple[float, float]]],
    starts: Setting[Cases],
    *,
    optimiser: Setting[Descent | None] = None,
    store: Setting[str | os.PathLike[str] | None] = None,
    progress: Setting[Progress | None] = None,
) -> Starts:
    """`minimise` from many starts at once, batched in one compiled program.

    A start that cannot be computed, or whose best design has another rank than its own first or
    depends on reactions that are not unique, is recorded as failed and stops no other. The best
    start is guarded as `minimise` guards its own, at every iterate of its way; if the rank or
    what is unique changed, that start has failed, and the next best one is taken.

    **Arguments:** as `minimise`; `starts`: values of every parameter for each start, such as
    `Cases.sobol(bounds, 1024, seed=0)`; `progress`: called with the best of all starts after
    every `every` steps.

    **Returns:** `Starts`.

    **Raises:** as `minimise`, and `DesignError` if every start failed.
    """
    problem = problem_of(study, objective, bounds)
    chosen = Descent() if optimiser is None else optimiser
    _settings.instance(chosen, Descent, "optimiser", "Descent() (many starts know no other)")
    _check_outside(store, progress)
    begins = _points(problem, starts)
    begun = survey(problem, begins, len(begins))
    good = np.flatnonzero(begun.codes == FINE)
    if not good.size:
        raise DesignError(_all_failed(begun.codes))
    # What has no gradient is refused before anything is done.
    promising = jnp.asarray(begins[good[0]])
    begin, first = problem.design(promising), chosen.respond(problem, promising)
    _guarded(problem, begin, first)
    if not np.any(np.abs(begun.values[good, 0]) > _SMALL):
        refuse_idle(study, objective, begin, first)
    # What fails at once would only keep the others waiting.
    way = Way(chosen, problem, jnp.asarray(begins[good]), store, len(begins))
    told = Logbook(problem, np.zeros(0), progress)
    while not way.finished:
        way.advance()
        k = int(np.argmin(np.asarray(way.walkers.least)))
        told.tell(way.count - 1, np.asarray(way.walkers.best[k]), float(way.walkers.least[k]))
    own = np.array(way.walkers.code)
    ends = survey(problem, np.asarray(way.walkers.best), len(begins))
    same = (begun.ranks[good] == ends.ranks).all(axis=1)
    own[(own == FINE) & ~same] = _RANK_CHANGED
    own[(own == FINE) & ~unique(ends.across)] = _NOT_UNIQUE
    best = _best(problem, way, own, chosen, len(begins))
    bests, codes = begins.copy(), begun.codes.copy()
    values = np.full(len(begins), np.inf)
    history = np.full((way.count, len(begins)), np.inf)
    bests[good], codes[good], history[:, good] = way.walkers.best, own, way.values
    values[good] = np.where(own == FINE, np.asarray(way.walkers.least), np.inf)
    return Starts(
        study.names,
        np.asarray(problem.design(begins)),
        np.asarray(problem.design(bests)),
        values,
        codes,
        history,
        best,
    )


def _guarded(problem: Problem, begin: Float[Array, " p"], response: Trajectory) -> np.ndarray:
    """Refuse functions and parameters without derivative at a design with these states; its
    ranks."""
    for k, function in enumerate(problem.functions):
        require_unique(function, response)
        what = f"the function of constraint number {k}" if k else "the objective"
        refuse_zero(function, response, what)
    found = guard_at(problem.study, begin, states(problem.study, begin, response))
    for name in problem.study.names:
        found.require(name)
    return found.ranks


def _check_outside(store: Any, progress: Any) -> None:
    """**Raises:** `TypeError` or `ValueError` for a store or a progress that is none."""
    if store is not None:
        _settings.path(store, "store")
    if progress is not None:
        _settings.function(progress, "progress", "a function (number, visit)", "number, visit")


def _points(problem: Problem, starts: Any) -> np.ndarray:
    _settings.instance(starts, Cases, "starts", "Cases, such as Cases.sobol(bounds, 64, seed=0)")
    study = problem.study
    columns = {study.subject.name(n): x for n, x in zip(starts.names, starts.values, strict=True)}
    if set(columns) != set(study.names):
        raise DesignError(
            f"starts must hold values of each of {', '.join(study.names)}; got "
            f"{', '.join(columns)}."
        )
    for name, column in columns.items():
        if column.ndim != 1:
            raise DesignError(
                f"starts must hold one number of {name!r} for each start, got shape "
                f"{list(column.shape)}."
            )
    designs = np.stack([columns[name] for name in study.names], axis=1)
    for extreme in (designs.min(axis=0), designs.max(axis=0)):
        inside(problem, jnp.asarray(extreme))
    return np.clip(np.asarray(problem.point(jnp.asarray(designs))), 0.0, 1.0)


def _best(problem: Problem, way: Way, codes: np.ndarray, optimiser: Descent, count: int) -> Optimum:
    """The best start of `count` whose way keeps its rank; others are marked as failed."""
    least = np.asarray(way.walkers.least)
    for k in np.argsort(least, kind="stable"):
        if codes[k] != FINE:
            continue
        good = np.isfinite(way.values[:, k])
        points, values = way.points[good, k], way.values[good, k]
        seen = survey(problem, points, count)
        if not (seen.ranks == seen.ranks[0]).all():
            codes[k] = _RANK_CHANGED
            continue
        if not unique(seen.across).all():
            codes[k] = _NOT_UNIQUE
            continue
        begin = jnp.asarray(points[0])
        first = optimiser.respond(problem, begin)
        kept = _guarded(problem, problem.design(begin), first)
        book = Logbook(problem, kept, None)
        enter(book, points, values, seen)
        return _optimum(problem, book, way.outcome(int(k)), first, optimiser)
    raise DesignError(_all_failed(codes))


def _all_failed(codes: np.ndarray) -> str:
    words = {sentence(code) for code in codes.tolist()}
    return f"every start failed: {' '.join(sorted(words))}"


def _optimum(
    problem: Problem,
    book: Logbook,
    outcome: Outcome,
    first: Trajectory,
    optimiser: AbstractOptimiser,
) -> Optimum:
    """The end of a study that began with the states `first`.

    **Raises:** `DesignError` if the objective or a constraint is of reactions that are not unique
    there.
    """
    study = problem.study
    point = known_array(np.asarray(outcome.point))
    end, last = problem.design(point), optimiser.respond(problem, point)
    for function in problem.functions:
        require_unique(function, last)
    low, width = np.asarray(problem.low), np.asarray(problem.width)
    high = low + width
    return Optimum(
        study.named(end),
        float(outcome.values[0]),
        book.history[0].value,
        unit_of_objective(problem.functions[0], last),
        tuple(outcome.values[1:].tolist()),
        outcome.converged,
        outcome.message,
        outcome.failed,
        tuple(book.history),
        {n: (float(a), float(b)) for n, a, b in zip(study.names, low, high, strict=True)},
        study,
        first,
        last,
    )
