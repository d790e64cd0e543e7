"""Optimisers with one interface. Those of SciPy keep constraints."""

import abc
import os
import warnings
from typing import Any, NamedTuple, TYPE_CHECKING

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .. import _settings
from .._custom_types import Scalar, Setting
from .._dynamics import Trajectory
from .._errors import optional
from .._linalg._concrete_rank import ranks
from .._loading import late
from .._programs import program
from ._problem import FINE, Logbook, look, Problem, Record, sentence
from ._study import DesignError


if TYPE_CHECKING:
    import optimistix as optx
else:
    optx = late("optimistix")


# A constraint that is exceeded by less than this part of its limit is met.
_MET = 1e-6

# The barrier of trust-constr does not start on a bound, and BFGS does not leave one.
INSIDE = 1e-3


class Outcome(NamedTuple):
    """End of an optimisation: the best point (p,), the values (m,) of all functions there, its
    message, and the number of failed designs."""

    point: np.ndarray
    values: np.ndarray
    converged: bool
    message: str
    failed: int


class Search(NamedTuple):
    """Arguments of an optimiser: a problem, the point (p,) from which it starts, the logbook of its
    iterates, and the file from which a stopped search resumes."""

    problem: Problem
    start: Float[Array, " p"]
    book: Logbook
    store: str | os.PathLike[str] | None


class AbstractOptimiser(eqx.Module):
    """A way to make an objective least."""

    @abc.abstractmethod
    def run(self, search: Search) -> Outcome:
        """The best point met from the start, every iterate entered into the book.

        **Raises:** `DesignError` for constraints that it cannot keep, and a rank that changes
        on the way; `ModelError` for a missing extra.
        """

    @abc.abstractmethod
    def respond(self, problem: Problem, point: Float[Array, " p"]) -> Trajectory:
        """The states of the design of a point, by a program that it needs anyway."""


class SLSQP(AbstractOptimiser):
    """SciPy's sequential least squares programming (Kraft 1988), with constraints.

    **Arguments:** `steps`: at most; `tolerance`: on the objective, relative to its first value,
    between 0 and 1.
    """

    steps: int = eqx.field(static=True)
    tolerance: float = eqx.field(static=True)

    def __init__(self, steps: Setting[int] = 100, tolerance: Setting[float] = 1e-9):
        self.steps = _settings.whole_number(steps, "steps", least=1)
        self.tolerance = _settings.known_number(tolerance, "tolerance", above=0, below=1)

    def run(self, search: Search) -> Outcome:
        minimize = optional("scipy.optimize", "design").minimize
        begin = np.asarray(search.start)
        tape = Tape(search)
        tape.visit(begin)
        constraint = {
            "type": "ineq",
            "fun": lambda x: -tape.margins(x),
            "jac": lambda x: -tape.margin_slopes(x),
        }
        found = minimize(
            tape.objective,
            begin,
            jac=True,
            method="SLSQP",
            bounds=[(0.0, 1.0)] * begin.size,
            constraints=[constraint] if len(search.problem.limits) else [],
            callback=tape.visit,
            options={"maxiter": self.steps, "ftol": self.tolerance},
        )
        return tape.outcome(found)

    def respond(self, problem: Problem, point: Float[Array, " p"]) -> Trajectory:
        return look(problem, point).response


class TrustRegion(AbstractOptimiser):
    """SciPy's `trust-constr` (Byrd, Hribar & Nocedal 1999), with constraints: slower than `SLSQP`,
    and steadier where that fails. It goes on inside the bounds, from a thousandth of their width
    within.

    **Arguments:** `steps`: at most; `tolerance`: on the size of a step, in units of the bounds,
    between 0 and 1.
    """

    steps: int = eqx.field(static=True)
    tolerance: float = eqx.field(static=True)

    def __init__(self, steps: Setting[int] = 300, tolerance: Setting[float] = 1e-8):
        self.steps = _settings.whole_number(steps, "steps", least=1)
        self.tolerance = _settings.known_number(tolerance, "tolerance", above=0, below=1)

    def run(self, search: Search) -> Outcome:
        scipy = optional("scipy.optimize", "design")
        begin = np.asarray(search.start)
        tape = Tape(search)
        tape.visit(begin)
        limits = np.zeros(len(search.problem.limits))
        constraint = scipy.NonlinearConstraint(
            tape.margins, -np.inf, limits, jac=tape.margin_slopes, hess=scipy.BFGS()
        )
        with warnings.catch_warnings():
            # About objectives and constraints that are linear, which do no harm.
            warnings.filterwarnings("ignore", message="delta_grad == 0.0")
            found = scipy.minimize(
                tape.objective,
                np.clip(begin, INSIDE, 1 - INSIDE),
                jac=True,
                hess=scipy.BFGS(),
                method="trust-constr",
                bounds=scipy.Bounds(0.0, 1.0, keep_feasible=True),
                constraints=[constraint] if limits.size else [],
                callback=lambda x, _: tape.visit(x),
                options={
                    "maxiter": self.steps,
                    # Small gradients end it before its barriers have gone.
                    "gtol": 0.0,
                    "xtol": self.tolerance,
                    "barrier_tol": self.tolerance,
                },
            )
        return tape.outcome(found)

    def respond(self, problem: Problem, point: Float[Array, " p"]) -> Trajectory:
        return look(problem, point).response


class Entry(NamedTuple):
    """Values computed at one point."""

    point: np.ndarray
    values: np.ndarray
    slopes: np.ndarray
    ranks: np.ndarray
    across: np.ndarray
    good: np.ndarray


class Tape:
    """Every evaluation of a study, in order. Recorded points are not computed again: so a
    deterministic optimiser continues where it was stopped.

    The objective is given in units of its first value, what a constraint exceeds its limit by in
    units of that.
    """

    def __init__(self, search: Search):
        problem = search.problem
        self._problem, self._book = problem, search.book
        self._record = Record(search.store, problem, Entry._fields)
        self._entries: dict[bytes, Entry] = {}
        kept = self._record.read()
        if kept is not None:
            for one in zip(*(kept[name] for name in Entry._fields), strict=True):
                self._entries[one[0].tobytes()] = Entry(*one)
        limits = np.asarray(problem.limits)
        self._limits = np.where(limits != 0, np.abs(limits), 1.0)
        self._first: Entry | None = None
        self._first = self.at(np.asarray(search.start))
        first = abs(float(self._first.values[0]))
        self._scale = first if first > 0 else 1.0

    def at(self, point: np.ndarray) -> Entry:
        """A failed point has an infinite objective, and the constraints of the start."""
        key = np.ascontiguousarray(point).tobytes()
        if key not in self._entries:
            found = look(self._problem, jnp.asarray(point))
            values, slopes = np.asarray(found.values), np.asarray(found.slopes)
            good = np.asarray(int(found.code) == FINE)
            if not good:
                if self._first is None:
                    raise start_failed(int(found.code))
                values = np.concatenate([[np.inf], self._first.values[1:]])
                slopes = self._first.slopes
            own = ranks(np.asarray(found.matrices))
            leaning = np.asarray(found.across)
            self._entries[key] = Entry(np.array(point), values, slopes, own, leaning, good)
        return self._entries[key]

    def objective(self, point: np.ndarray) -> tuple[float, np.ndarray]:
        found = self.at(point)
        return float(found.values[0]) / self._scale, found.slopes[0] / self._scale

    def margins(self, point: np.ndarray) -> np.ndarray:
        """Violation of each limit; at most zero where it is satisfied."""
        return (self.at(point).values[1:] - np.asarray(self._problem.limits)) / self._limits

    def margin_slopes(self, point: np.ndarray) -> np.ndarray:
        return self.at(point).slopes[1:] / self._limits[:, None]

    def visit(self, point: np.ndarray) -> None:
        """Enter an iterate, unless it is the same as the last, and keep the tape."""
        if self._book.points and np.array_equal(point, self._book.points[-1]):
            return
        found = self.at(point)
        self._record.write(
            {
                name: np.stack([getattr(x, name) for x in self._entries.values()])
                for name in Entry._fields
            }
        )
        self._book.enter(point, float(found.values[0]), found.ranks, found.across)

    def outcome(self, found: Any) -> Outcome:
        """The best iterate that keeps the constraints; the last one where none does."""
        self.visit(found.x)
        points = self._book.points
        kept = [p for p in points if self.margins(p).max(initial=0.0) <= _MET]
        best = min(kept, key=lambda p: float(self.at(p).values[0]), default=points[-1])
        message = str(found.message)
        if not kept:
            message += "; no design that was tried keeps the constraints"
        failed = sum(not x.good for x in self._entries.values())
        converged = bool(found.success) and bool(kept)
        return Outcome(best, self.at(best).values, converged, message, failed)


def start_failed(code: int) -> DesignError:
    """The error for a start whose objective cannot be computed."""
    return DesignError(f"the start cannot be computed: {sentence(code)}")


# --------------------------------------------------------------------------------------------------
# Quasi-Newton methods of Optimistix with values supplied from outside.
#
# Each of their steps evaluates the objective at one point, which their state contains beforehand.
# So the value and the slope there come from the study's tape, as for SciPy's methods, and a step is
# given the linear function that has both: a small program, the same for all studies of one size.
# --------------------------------------------------------------------------------------------------


class BFGS(AbstractOptimiser):
    """Optimistix's method of Broyden, Fletcher, Goldfarb and Shanno; no constraints.

    The bounds are kept by a variable z with the point (1 - cos pi z) / 2 (as in Minuit: James
    & Roos 1975). No step leaves them, and an optimum may lie on one. There the slope by z is zero:
    it goes on from a thousandth of their width within.

    **Arguments:** `steps`: designs computed at most; `tolerance`: on the change of z and on that of
    the objective, relative to its first value; `method`: in its place another minimiser of
    Optimistix that steps along a descent, such as `optimistix.LBFGS` or `NonlinearCG`, with
    tolerances of its own.
    """

    method: Any
    steps: int = eqx.field(static=True)
    tolerance: float = eqx.field(static=True)

    def __init__(
        self, *, steps: Setting[int] = 200, tolerance: Setting[float] = 1e-8, method: Any = None
    ):
        self.steps = _settings.whole_number(steps, "steps", least=1)
        self.tolerance = _settings.known_number(tolerance, "tolerance", above=0, below=1)
        self.method = None if method is None else _minimiser(method)

    def run(self, search: Search) -> Outcome:
        if len(search.problem.limits):
            raise DesignError(
                "BFGS keeps bounds, no constraints; use SLSQP() or TrustRegion() for these."
            )
        method = self.method
        if method is None:
            method = optx.BFGS(rtol=self.tolerance, atol=self.tolerance)
        begin = np.asarray(search.start)
        tape = Tape(search)
        tape.visit(begin)
        inside = np.clip(begin, INSIDE, 1 - INSIDE)
        iterate = _begun(method, jnp.asarray(np.arccos(1 - 2 * inside) / np.pi))
        for _ in range(self.steps):
            asked = np.asarray(iterate.state.y_eval)
            value, slope = tape.objective(_point(asked))
            told = jnp.asarray(value), jnp.asarray(slope * np.pi / 2 * np.sin(np.pi * asked))
            iterate = _stepped(method, iterate, *told)
            tape.visit(_point(np.asarray(iterate.z)))
            if iterate.done:
                break
        return tape.outcome(_ended(iterate, self.steps))

    def respond(self, problem: Problem, point: Float[Array, " p"]) -> Trajectory:
        return look(problem, point).response


def _minimiser(method: Any) -> Any:
    """**Raises:** `TypeError` for what does not step along a descent."""
    kinds = (optx.AbstractQuasiNewton, optx.AbstractGradientDescent)
    if isinstance(method, kinds):
        return method
    such_as = "a minimiser such as optimistix.LBFGS(rtol=1e-8, atol=1e-8)"
    return _settings.instance(method, kinds[0], "method", such_as)


class _Iterate(NamedTuple):
    """The best variable so far, what the method keeps, whether it is done, and how that ended."""

    z: Float[Array, " p"]
    state: Any
    done: Any
    result: Any


class _Found(NamedTuple):
    """The end, by the names that SciPy has for it."""

    x: np.ndarray
    success: bool
    message: str


def _point(z: np.ndarray) -> np.ndarray:
    return (1 - np.cos(np.pi * z)) / 2


def _ended(iterate: _Iterate, steps: int) -> _Found:
    success = bool(iterate.done) and bool(iterate.result == optx.RESULTS.successful)
    if success:
        message = "neither the design nor the objective changes any more"
    elif iterate.done:
        message = optx.RESULTS[iterate.result]
    else:
        message = f"not converged after {steps} designs; raise steps"
    return _Found(_point(np.asarray(iterate.z)), success, message)


def _begun(method: Any, z: Float[Array, " p"]) -> _Iterate:
    number = jax.ShapeDtypeStruct((), z.dtype)
    state = method.init(lambda z, _: (jnp.sum(z), None), z, None, {}, number, None, frozenset())
    return _Iterate(z, state, jnp.asarray(False), optx.RESULTS.successful)


@program
def _stepped(method: Any, iterate: _Iterate, value: Scalar, slope: Float[Array, " p"]) -> _Iterate:
    asked = iterate.state.y_eval

    def linear(z: Float[Array, " p"], _: None) -> tuple[Scalar, None]:
        return value + slope @ (z - asked), None

    given = (None, {})
    z, state, _ = method.step(linear, iterate.z, *given, iterate.state, frozenset())
    done, result = method.terminate(linear, z, *given, state, frozenset())
    return _Iterate(z, state, done, result)
