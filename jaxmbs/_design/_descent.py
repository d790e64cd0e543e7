"""Descent by Optax, many starts batched in one compiled program."""

import os
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from .. import _settings
from .._checks import known_array
from .._custom_types import IntScalar, RealScalarLike, Scalar, Setting
from .._dynamics import Trajectory
from .._errors import optional
from .._programs import Compiling, program
from .._solution import code_of, RESULTS
from ._optimisers import AbstractOptimiser, Outcome, Search, start_failed
from ._problem import FINE, Logbook, Problem, Record, Survey, survey
from ._study import DesignError, responded


# The last tenth of the steps improves a study that has settled by less than this part.
_SETTLED = 1e-3

# The default step falls to this part of its first size.
_LAST_RATE = 0.01


class Descent(AbstractOptimiser):
    """Methods of Optax that use gradients alone, their steps clipped to the bounds; no constraints.
    It runs in one compiled program, of one start or of many.

    A design that fails takes its start halfway back to the best one that did not.

    **Arguments:** `steps`: how many; `rate`: of the default method, Adam, its first step in units
    of the width of the bounds, at most 1, which falls to a hundredth along a cosine; `method`: an
    `optax.GradientTransformation` in its place, whose steps are taken as they are;
    `every`: iterates between two savings.
    """

    method: Any
    rate: Scalar
    steps: int = eqx.field(static=True)
    every: int = eqx.field(static=True)

    def __init__(
        self,
        *,
        steps: Setting[int] = 200,
        rate: Setting[RealScalarLike] = 0.03,
        method: Any = None,
        every: Setting[int] = 10,
    ):
        self.method = None if method is None else _transformation(method)
        # A longer first step leads from any design to a bound.
        self.rate = _settings.between(rate, "rate", above=0, most=1)
        self.steps = _settings.whole_number(steps, "steps", least=1)
        self.every = _settings.whole_number(every, "every", least=1)

    def run(self, search: Search) -> Outcome:
        problem, book = search.problem, search.book
        way = Way(self, problem, known_array(np.asarray(search.start)[None]), search.store)
        if way.count:
            # What a store had comes first.
            enter(book, way.points[:, 0], way.values[:, 0], survey(problem, way.points[:, 0], 1))
        while True:
            if way.count and not np.isfinite(way.values[0, 0]):
                raise start_failed(int(way.walkers.code[0]))
            if way.finished:
                break
            entered = way.count
            seen = way.advance(watched=True)
            enter(book, way.points[entered:, 0], way.values[entered:, 0], seen)
        return way.outcome(0)

    def respond(self, problem: Problem, point: Float[Array, " p"]) -> Trajectory:
        return responded(problem.study, problem.design(point))


def _transformation(method: Any) -> Any:
    """**Raises:** `TypeError` for no method of Optax, `ModelError` where that is not installed."""
    kind = _optax().GradientTransformation
    such_as = "an optax.GradientTransformation such as optax.sgd(0.01)"
    return _settings.instance(method, kind, "method", such_as)


def enter(book: Logbook, points: np.ndarray, values: np.ndarray, seen: Survey) -> None:
    """Several iterates into the book."""
    for point, value, *own in zip(points, values, seen.ranks, seen.across, strict=True):
        book.enter(point, float(value), *own)


class Walkers(eqx.Module):
    """State of every start: its next `point` (n, p), the method's `memory`, its best point (n, p)
    with the `least` value (n,), the `code` (n,) of the failure of one that has never been
    computed, and how many of its designs `failed` (n,)."""

    point: Float[Array, "*n p"]
    memory: Any
    best: Float[Array, "*n p"]
    least: Float[Array, "*n"]
    code: Int[Array, "*n"]
    failed: Int[Array, "*n"]


class Way:
    """The ways of many starts, of so many that were `asked` for, a few steps at a time, kept after
    each of these.

    `points` (k, n, p) and `values` (k, n): the iterates so far.
    """

    def __init__(
        self,
        optimiser: Descent,
        problem: Problem,
        starts: Float[Array, "n p"],
        store: str | os.PathLike[str] | None,
        asked: int = 1,
    ):
        if len(problem.limits):
            raise DesignError(
                "Descent keeps bounds, no constraints; use SLSQP() or TrustRegion() for these."
            )
        self._optimiser, self._problem, self._asked = optimiser, problem, asked
        self._method = _Adam() if optimiser.method is None else optimiser.method
        self._record = Record(store, problem, optimiser, starts)
        count, size = starts.shape
        nothing = known_array(np.full(count, np.inf))
        codes = np.broadcast_to(np.asarray(code_of(RESULTS.successful)), (count,))
        memory = _memory(self._method, starts)
        codes, failed = known_array(codes), known_array(np.zeros_like(codes))
        self.walkers = Walkers(starts, memory, starts, nothing, codes, failed)
        self.points = np.zeros((0, count, size))
        self.values = np.zeros((0, count))
        self._restore()

    @property
    def count(self) -> int:
        """Iterates so far."""
        return len(self.values)

    @property
    def finished(self) -> bool:
        return self.count > self._optimiser.steps

    def advance(self, *, watched: bool = False) -> Survey:
        """Advance by the number of iterates that are saved at a time.

        **Returns:** the evaluations of these, one iterate after the other.
        """
        chosen, seen = self._optimiser, []
        rate = None if chosen.method is not None else chosen.rate
        steps = known_array(np.array(chosen.steps))
        points, values = [self.points], [self.values]
        for number in range(self.count, min(self.count + chosen.every, chosen.steps + 1)):
            here = np.asarray(self.walkers.point)
            found = survey(self._problem, here, self._asked, watched=watched)
            plan = _Plan(rate, steps, known_array(np.array(number)))
            given = jax.device_put((found.values[:, 0], found.slopes[:, 0], found.codes))
            self.walkers, value = _step(self._method, plan, self.walkers, *given)
            points.append(here[None])
            values.append(np.asarray(value)[None])
            seen.append(found)
        self.points, self.values = np.concatenate(points), np.concatenate(values)
        leaves = {f"leaf {k}": np.asarray(x) for k, x in enumerate(jax.tree.leaves(self.walkers))}
        self._record.write({"points": self.points, "values": self.values, **leaves})
        return Survey(*(np.concatenate(x) for x in zip(*seen, strict=True)))

    def outcome(self, start: int) -> Outcome:
        """Outcome of one start, with an account of its last tenth."""
        values = np.minimum.accumulate(self.values[:, start])
        steps = self._optimiser.steps
        last = max(steps // 10, 1)
        whole, late = values[0] - values[-1], values[-1 - last] - values[-1]
        share = late / whole if whole > 0 else 0.0
        message = f"{steps} steps taken; the last {last} gained {100 * share:.2g} % of the whole"
        return Outcome(
            np.asarray(self.walkers.best)[start],
            values[-1:],
            bool(share <= _SETTLED),
            message,
            int(np.asarray(self.walkers.failed)[start]),
        )

    def _restore(self) -> None:
        kept = self._record.read()
        if kept is None:
            return
        leaves, structure = jax.tree.flatten(self.walkers)
        stored = [jnp.asarray(kept[f"leaf {k}"]) for k in range(len(leaves))]
        self.walkers = jax.tree.unflatten(structure, stored)
        self.points, self.values = kept["points"], kept["values"]


class _Plan(NamedTuple):
    """The first rate of the default method, None for another one; all steps; the `number` of this
    one."""

    rate: Scalar | None
    steps: IntScalar
    number: IntScalar


class _Adam(eqx.Module):
    """Optax's Adam without its rate, so that other rates and numbers of steps are the same program.
    Optax is loaded only where that program is traced; the memory is a plain tuple, which needs none
    of Optax's classes."""

    def init(self, point: Float[Array, " p"]) -> Any:
        return tuple(_optax().scale_by_adam().init(point))

    def update(self, slope: Float[Array, " p"], memory: Any, point: Float[Array, " p"]) -> Any:
        """The move and the new memory."""
        before = _optax().ScaleByAdamState(*memory)
        move, after = _optax().scale_by_adam().update(slope, before, point)
        return move, tuple(after)


def _optax() -> Any:
    return optional("optax", "design")


@program(compiling=Compiling.ONCE)
def _memory(method: Any, starts: Float[Array, "n p"]) -> Any:
    """The state of the method at each start."""
    return jax.vmap(method.init)(starts)


def _scale(plan: _Plan) -> Scalar:
    """The factor of the method's steps."""
    if plan.rate is None:
        return jnp.ones(())
    along = (1 + jnp.cos(jnp.pi * plan.number / plan.steps)) / 2
    return -plan.rate * (_LAST_RATE + (1 - _LAST_RATE) * along)


@program(compiling=Compiling.ONCE)
def _step(
    method: Any,
    plan: _Plan,
    walkers: Walkers,
    values: Float[Array, " n"],
    slopes: Float[Array, "n p"],
    codes: Int[Array, " n"],
) -> tuple[Walkers, Float[Array, " n"]]:
    """The next iterate of every start, and the value of the objective at this one."""
    scale = _scale(plan)

    def one(
        walker: Walkers, value: Scalar, slope: Float[Array, " p"], code: IntScalar
    ) -> tuple[Walkers, Scalar]:
        good = code == FINE
        value = jnp.where(good, value, jnp.inf)
        better = value < walker.least
        best = jnp.where(better, walker.point, walker.best)
        least = jnp.where(better, value, walker.least)

        slope = jnp.where(good, slope, 0.0)
        move, memory = method.update(slope, walker.memory, walker.point)
        forward = jnp.clip(walker.point + scale * move, 0.0, 1.0)
        started = jnp.isfinite(least)
        back = jnp.where(started, (walker.point + best) / 2, walker.point)
        kept = jax.tree.map(lambda new, old: jnp.where(good, new, old), memory, walker.memory)
        after = Walkers(
            jnp.where(good, forward, back),
            kept,
            best,
            least,
            jnp.where(started, jnp.full_like(walker.code, FINE), code),
            walker.failed + jnp.where(good, 0, 1),
        )
        return after, value

    return jax.vmap(one)(walkers, values, slopes, codes)
