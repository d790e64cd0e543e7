"""A study as an optimiser evaluates it, the way it takes, the file in which it is found again,
and its result.
"""

import dataclasses
import os
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float, Int

from .. import _settings
from .._checks import known_array, of_known
from .._custom_types import BoolScalar, IntScalar, Setting
from .._dynamics import Trajectory
from .._files import replacing
from .._linalg import normalise_rows
from .._linalg._concrete_rank import ranks
from .._printing import AbstractAnswer, Column, Description, Table
from .._programs import Compiling, program
from .._solution import code_of, RESULTS, sentences
from .._stop_gradient import stop_gradient
from .._sweep._program import in_batches
from .._sweep._running import digest
from .._sweep._sweep import default_width
from .._system import AbstractSystem
from .._version import __version__
from ._guard import rank_changes, told
from ._objective import across, an_objective, Objective, require_unique, unique
from ._study import DesignError, responded, slopes, start_closed, Study


# --------------------------------------------------------------------------------------------------
# A study as an optimiser evaluates it: numbers of a point in units of the bounds.
# --------------------------------------------------------------------------------------------------


# Batches of designs in one call of the program at most.
_BATCHES = 8

# A start may lie this far outside of the bounds, in units of their widths.
_ROUNDING = 1e-12

FINE = int(code_of(RESULTS.successful))


class AtMost(eqx.Module):
    """A constraint: `function` of the states of a run is at most `bound`, in its unit.

    **Raises:** `TypeError` or `ValueError` for a value that is not a function, or not a finite
    number.
    """

    function: Objective
    bound: float

    def __init__(self, function: Setting[Objective], bound: Setting[float]):
        self.function = an_objective(function, "function")
        self.bound = _settings.known_number(bound, "bound")


class Look(eqx.Module):
    """One point. Values (m,) of the objective and the constraints' functions, slopes (m, p) by the
    point, and the states. `matrices` (n, rows, nv): C at each of them, scaled as in `analyze`.
    `across` (m,): how much each function depends on what is not unique (see `unique`). `code`: of
    the `RESULTS` member with which it ended."""

    values: Float[Array, " m"]
    slopes: Float[Array, "m p"]
    response: Trajectory
    matrices: Float[Array, "n rows nv"]
    across: Float[Array, " m"]
    code: IntScalar


class Problem(eqx.Module):
    """A study with bounds: a point is a design in units of their widths, from 0 to 1.

    `functions`: the objective, then one for each constraint, which is to be at most its entry of
    `limits` (m - 1,). `low`, `width` (p,).
    """

    study: Study
    functions: tuple[Objective, ...]
    limits: Float[Array, " constraints"]
    low: Float[Array, " p"]
    width: Float[Array, " p"]

    def design(self, point: Float[Array, "*n p"] | np.ndarray) -> Float[Array, "*n p"]:
        """The design of one point or of many."""
        one = (1,) * (point.ndim - 1)
        low, width = (x.reshape(*one, -1) for x in (self.low, self.width))
        return of_known(_design, low, width, point)

    def point(self, design: Float[Array, "*n p"]) -> Float[Array, "*n p"]:
        """The point of one design or of many."""
        one = (1,) * (design.ndim - 1)
        low, width = (x.reshape(*one, -1) for x in (self.low, self.width))
        return of_known(lambda low, width, design: (design - low) / width, low, width, design)

    def named(self, point: Float[Array, " p"] | np.ndarray) -> dict[str, float]:
        """The design of a point, by names."""
        return self.study.named(_design(*map(np.asarray, (self.low, self.width, point))))

    def values(
        self, point: Float[Array, " p"], *, forward: bool = False
    ) -> tuple[Float[Array, " m"], Trajectory]:
        """The value of every function, with the states."""
        response = self.study.respond(self.design(point), forward=forward)
        return jnp.stack([function(response) for function in self.functions]), response

    def evaluate(
        self, point: Float[Array, " p"]
    ) -> tuple[Float[Array, " m"], Float[Array, "m p"], Trajectory, IntScalar]:
        """Values, slopes, states and code of one point, as in `Look`. Works under `jit` and
        `vmap`."""

        def function(point: Float[Array, " p"], forward: bool) -> Any:
            values, response = self.values(point, forward=forward)
            return values, stop_gradient(_bare(response, None))

        count = len(self.functions)
        values, found, bare = slopes(self.study.run, function, point, count)
        response = _bare(bare, self.study.place_parts(self.design(point)).system)
        numbers = jnp.all(jnp.isfinite(values)) & jnp.all(jnp.isfinite(found))
        return values, found, response, _code(code_of(response.result), numbers)


def _design(low: Any, width: Any, point: Any) -> Any:
    return low + width * point


class Survey(NamedTuple):
    """Many points: values (k, m), slopes (k, m, p) and codes (k,) as in `Look`; where they are
    watched, ranks (k, n) at each state and how much each function depends on what is not unique
    (k, m)."""

    values: np.ndarray
    slopes: np.ndarray
    codes: np.ndarray
    ranks: np.ndarray
    across: np.ndarray


def problem_of(
    study: Study,
    objective: Any,
    bounds: Any,
    constraints: Any = (),
) -> Problem:
    """**Raises:** `DesignError` for bounds that are missing or do not increase, `TypeError` or
    `ValueError` for what are none."""
    objective = an_objective(objective)
    constraints = _settings.instances(constraints, AtMost, "constraints", "AtMost(function, bound)")
    _settings.mapping(bounds, "bounds", '{"bodies.crank.mass": (1.0, 2.0)}')
    for name, pair in bounds.items():
        _settings.vector(pair, f"bounds of {name!r}", size=2)
    full = {study.subject.name(name): pair for name, pair in bounds.items()}
    if set(full) != set(study.names):
        raise DesignError(
            f"bounds must hold a pair for each of {', '.join(study.names)}; got "
            f"{', '.join(full) or 'none'}."
        )
    low, high = np.array([full[name] for name in study.names], dtype=float).T
    for name, least, most in zip(study.names, low, high, strict=True):
        if not least < most:
            raise DesignError(
                f"the bounds of {name!r} must be finite and increase, got {least:g} and {most:g}."
            )
    # Numbers that cannot be are refused before anything is computed.
    study.check(known_array(low))
    study.check(known_array(high))
    functions = (objective, *(c.function for c in constraints))
    limits, low, width = map(
        known_array, (np.array([c.bound for c in constraints]), low, high - low)
    )
    return Problem(study, functions, limits, low, width)


def inside(problem: Problem, design: Float[Array, " p"]) -> Float[Array, " p"]:
    """The point of a design.

    **Raises:** `DesignError` if it lies outside of the bounds.
    """
    point = np.asarray(problem.point(design))
    for k, name in enumerate(problem.study.names):
        if not -_ROUNDING <= float(point[k]) <= 1.0 + _ROUNDING:
            raise DesignError(
                f"{name!r} starts at {float(design[k]):.6g}, outside of its bounds "
                f"{float(problem.low[k]):.6g} to {float(problem.low[k] + problem.width[k]):.6g}; "
                "give a start between them."
            )
    return known_array(np.clip(point, 0.0, 1.0))


def _bare(response: Trajectory, system: AbstractSystem | None) -> Trajectory:
    """The same states of another system; of none, they are nothing but arrays."""
    return eqx.tree_at(lambda r: r.system, response, system, is_leaf=lambda x: x is None)


def matrices_of(response: Trajectory) -> Float[Array, "n rows nv"]:
    """C at each state, scaled as in `analyze`."""
    system = response.system
    unit = system.column_scale()

    def matrix(state: tuple[Array, Array, Array]) -> Float[Array, "rows nv"]:
        return normalise_rows(system.constraint_matrix(*state) * unit[None])[0]

    return lax.map(matrix, (response.q, response.v, response.times))


def survey(problem: Problem, points: np.ndarray, count: int, *, watched: bool = True) -> Survey:
    """Many points (k, p), in batches whose width, and so the program, depends on the `count` of all
    starts alone: no point waits for those of other batches. `watched`: with ranks and with what is
    not unique."""
    width = min(default_width(), _power_of_two(count))
    size = width * min(_BATCHES, _power_of_two(-(-count // width)))
    parts: list[Survey] = []
    for first in range(0, len(points), size):
        own = points[first : first + size]
        # The last batch is filled up; batches without a point of their own are not evaluated.
        filled = np.concatenate([own, np.repeat(own[-1:], size - len(own), axis=0)])
        batches = known_array(np.asarray(-(-len(own) // width)))
        watching = known_array(np.asarray(watched))
        given = known_array(filled)
        found = _survey(_as_started(problem, given), given, batches, watching, width)
        values, slopes, codes, across = (np.asarray(x)[: len(own)] for x in found[:4])
        own_ranks = ranks(np.asarray(found[4])[: len(own)]) if watched else np.zeros((len(own), 0))
        parts.append(Survey(values, slopes, codes, own_ranks, across))
    return Survey(*(np.concatenate(x) for x in zip(*parts, strict=True)))


def _as_started(problem: Problem, points: Float[Array, "k p"]) -> Problem:
    """The problem without search for the assembly, where none of the points needs one: parts are
    mostly placed so that every design is closed where it starts."""
    if not np.all(start_closed(problem.study, problem.design(points))):
        return problem
    return dataclasses.replace(problem, study=problem.study.starting_closed())


def _power_of_two(number: int) -> int:
    """The least one that is not below the number: so few programs serve all numbers of starts."""
    return 1 << (number - 1).bit_length()


@program
def _survey(
    problem: Problem,
    points: Float[Array, "k p"],
    count: IntScalar,
    watched: BoolScalar,
    width: int,
) -> tuple[Array, ...]:
    def one(point: Float[Array, " p"]) -> tuple[Array, ...]:
        values, slopes, response, code = problem.evaluate(point)

        def watch() -> tuple[Array, Array]:
            return across(problem.functions, response, (values, slopes)), matrices_of(response)

        nothing = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), jax.eval_shape(watch))
        return values, slopes, code, *lax.cond(watched, watch, lambda: nothing)

    return in_batches(one, points, width, count)


def look(problem: Problem, point: Float[Array, " p"]) -> Look:
    """One point, by a program that is compiled once for all points."""
    study = problem.study.settled(problem.design(point))
    return _look(eqx.tree_at(lambda p: p.study, problem, study), point)


@program(compiling=Compiling.ONCE)
def _look(problem: Problem, point: Float[Array, " p"]) -> Look:
    values, found, response, code = problem.evaluate(point)
    leaning = across(problem.functions, response, (values, found))
    return Look(values, found, response, matrices_of(response), leaning, code)


def _code(code: IntScalar, numbers: BoolScalar) -> IntScalar:
    """The code of the first failure; NaN counts as a failure."""
    nothing = code_of(RESULTS.answer_not_a_number).astype(code.dtype)
    return jnp.where((code == FINE) & ~numbers, nothing, code)


def sentence(code: int) -> str:
    """The text of a `RESULTS` member; empty for a success."""
    return sentences()[int(code)][1]


# --------------------------------------------------------------------------------------------------
# The small file in which a study that was stopped is found again.
# --------------------------------------------------------------------------------------------------


_FINGERPRINT = "fingerprint"


class Record:
    """Named arrays in a `.npz` file, with a fingerprint of the study to which they belong.

    **Arguments:** `path`: None keeps nothing; `parts`: everything on which the arrays depend.
    """

    def __init__(self, path: str | os.PathLike[str] | None, *parts: Any):
        self._path = None if path is None else Path(path)
        self._fingerprint = digest(*parts, __version__)

    def read(self) -> Mapping[str, np.ndarray] | None:
        """The content of the file; None if there is none.

        **Raises:** `DesignError` for a file of another study, or one that cannot be read.
        """
        if self._path is None or not self._path.exists():
            return None
        try:
            with np.load(self._path, allow_pickle=False) as stored:
                arrays = dict(stored)
        except (OSError, ValueError, zipfile.BadZipFile):
            arrays = {}
        if _FINGERPRINT not in arrays:
            raise DesignError(
                f"{str(self._path)!r} is no saved study; give another file, or remove this one."
            )
        if str(arrays.pop(_FINGERPRINT)) != self._fingerprint:
            raise DesignError(
                f"{str(self._path)!r} belongs to another study (other numbers, bounds, functions "
                "or settings); give another file, or remove this one."
            )
        return arrays

    def write(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Keep these in the place of what was kept, all or nothing.

        **Raises:** `DesignError` if the file cannot be written.
        """
        if self._path is None:
            return
        all_arrays: dict[str, Any] = {_FINGERPRINT: np.array(self._fingerprint), **arrays}
        try:
            with replacing(self._path) as beside, beside.open("wb") as file:
                np.savez(file, **all_arrays)
        except OSError as error:
            raise DesignError(f"cannot write {str(self._path)!r}: {error.strerror}.") from None


# --------------------------------------------------------------------------------------------------
# Results of studies.
# --------------------------------------------------------------------------------------------------


class Visit(NamedTuple):
    """One iterate: the design by names, and the objective (infinite where it failed)."""

    design: dict[str, float]
    value: float


class Optimum(AbstractAnswer):
    """Result of a study.

    - `design`: the best design, by names; `value` of the objective there, `start_value` at the
      start, in the objective's `unit`. `constraints`: what each constraint's function is there.
    - `converged`, `message`: as reported by the optimiser. `failed`: designs that were tried and
      could not be computed.
    - `history`: every iterate; `bounds` by names; `study`.
    - `start_response`, `response`: the states of the start and of the best design.
    """

    design: dict[str, float]
    value: float
    start_value: float
    unit: str
    constraints: tuple[float, ...]
    converged: bool
    message: str
    failed: int
    history: tuple[Visit, ...]
    bounds: dict[str, tuple[float, float]]
    study: Study
    start_response: Trajectory
    response: Trajectory

    @property
    def values(self) -> Float[np.ndarray, " visits"]:
        """The objective at every iterate."""
        return np.array([visit.value for visit in self.history])

    def at_bound(self, name: str) -> bool:
        """Does this parameter end at one of its bounds?"""
        low, high = self.bounds[name]
        return min(self.design[name] - low, high - self.design[name]) <= 1e-6 * (high - low)

    def described(self) -> Description:
        unit = f" {self.unit}" if self.unit else ""
        return Description(
            [
                f"objective {self.start_value:.6g} -> {self.value:.6g}{unit} in "
                f"{len(self.history) - 1} iterations; {self.message}",
                f"designs that could not be computed: {self.failed}" if self.failed else "",
            ],
            [self._table()],
            data=self._data,
        )

    def _table(self) -> Table:
        begin = self.history[0].design
        bounds = ["at its bound" if self.at_bound(name) else "" for name in self.design]
        return Table(
            [
                Column("parameter", list(self.design)),
                Column("unit", [self.study.subject.unit(name) for name in self.design]),
                Column("from", [f"{begin[name]:.6g}" for name in self.design]),
                Column("to", [f"{value:.6g}" for value in self.design.values()]),
                Column("", bounds),
            ]
        )

    def _data(self) -> dict[str, Any]:
        return {
            "unit": self.unit,
            "start": self.start_value,
            "value": self.value,
            "converged": self.converged,
            "message": self.message,
            "iterations": len(self.history) - 1,
            "failed": self.failed,
            "parameters": [
                {
                    "name": name,
                    "unit": self.study.subject.unit(name),
                    "low": self.bounds[name][0],
                    "high": self.bounds[name][1],
                    "from": self.history[0].design[name],
                    "to": value,
                    "at_bound": self.at_bound(name),
                }
                for name, value in self.design.items()
            ],
        }


class Starts(AbstractAnswer):
    """Results of many starts.

    - `begins`, `designs` (n, p): where each began, and its best design, in the order of `names`;
      `values` (n,) of the objective there, infinite for a start that failed.
    - `codes` (n,): 0 for a start that did not fail, or the number of a `RESULTS` member;
      `failures()` counts their sentences.
    - `history` (iterates, n): the objective at every iterate.
    - `best`: the best start as an `Optimum`.
    """

    names: tuple[str, ...] = eqx.field(static=True)
    begins: Float[np.ndarray, "n p"]
    designs: Float[np.ndarray, "n p"]
    values: Float[np.ndarray, " n"]
    codes: Int[np.ndarray, " n"]
    history: Float[np.ndarray, "iterates n"]
    best: Optimum

    def failures(self) -> dict[str, int]:
        """Number of failed starts by message."""
        codes, counts = np.unique(self.codes[self.codes != FINE], return_counts=True)
        return {sentence(c): n for c, n in zip(codes.tolist(), counts.tolist(), strict=True)}

    def described(self) -> Description:
        good = self.values[self.codes == FINE]
        near = int(np.sum(good <= good.min() + 0.01 * abs(good.min())))
        best = self.best.described()
        return Description(
            [
                f"{len(self.values)} starts, {len(good)} of them without failure; objective "
                f"{good.min():.6g} (best), {np.median(good):.6g} (median); {near} within 1 % of "
                "the best",
                *(f"{count} failed: {text}" for text, count in self.failures().items()),
                *best.head,
            ],
            best.tables,
            data=self._data,
        )

    def _data(self) -> dict[str, Any]:
        return {
            "count": len(self.values),
            "failures": self.failures(),
            "values": [x if x < float("inf") else None for x in self.values.tolist()],
        }


# --------------------------------------------------------------------------------------------------
# The way of one study: its iterates, and at each of them the rank, and whether what it depends on
# is unique.
# --------------------------------------------------------------------------------------------------


# Called with the number of an iterate and the iterate.
Progress: TypeAlias = Callable[[int, Visit], None]


class Logbook:
    """Every iterate of a study is entered, in order.

    **Arguments:** `ranks` (n,): of the start, which every iterate has to keep.
    """

    def __init__(self, problem: Problem, ranks: np.ndarray, progress: Progress | None):
        self._problem = problem
        self._ranks = ranks
        self._progress = progress
        self.history: list[Visit] = []
        self.points: list[np.ndarray] = []

    def enter(self, point: np.ndarray, value: float, ranks: np.ndarray, across: np.ndarray) -> None:
        """Add an iterate; a failed evaluation has an infinite value and no ranks. `across` (m,):
        dependence of each function on reactions that are not unique there.

        **Raises:** `DesignError` that states where the rank changed since the previous iterate, or
        which reactions are no longer unique.
        """
        if np.isfinite(value) and not np.array_equal(ranks, self._ranks):
            raise DesignError(self._changed(point))
        if np.isfinite(value) and not unique(across):
            self._require_unique(point)
        self.points.append(np.array(point))
        self.history.append(Visit(self._problem.named(point), float(value)))
        self.tell(len(self.history) - 1, point, float(value))

    def tell(self, number: int, point: np.ndarray, value: float) -> None:
        """Progress alone."""
        if self._progress is not None:
            self._progress(number, Visit(self._problem.named(point), value))

    def _require_unique(self, point: np.ndarray) -> None:
        problem = self._problem
        response = responded(problem.study, problem.design(jnp.asarray(point)))
        try:
            for function in problem.functions:
                require_unique(function, response)
        except DesignError as error:
            where = told(problem.named(point))
            raise DesignError(
                f"on the way, at {where}, {str(error).removesuffix('.')}; or narrow the bounds so "
                "that they leave such designs out."
            ) from None

    def _changed(self, point: np.ndarray) -> str:
        problem = self._problem
        here = problem.named(point)
        before = [x.design for x in self.history if np.isfinite(x.value)][-1]
        found = rank_changes(problem.study, before, here, count=3)
        where = "; ".join(map(str, found)) or f"at {here}"
        return (
            "the rank of the constraints changes on the way, so that reactions jump there: "
            f"{where}; narrow the bounds so that they leave it out."
        )
