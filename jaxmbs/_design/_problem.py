"""A study as an optimiser evaluates it: numbers of a point in units of the bounds."""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float

from .. import _settings
from .._checks import known_array, of_known
from .._custom_types import BoolScalar, IntScalar, Setting
from .._dynamics import Trajectory
from .._linalg import normalise_rows
from .._linalg._concrete_rank import ranks
from .._programs import Compiling, program
from .._solution import code_of, RESULTS, sentences
from .._stop_gradient import stop_gradient
from .._system import AbstractSystem
from ._objective import across, an_objective, Objective
from ._refusal import DesignError
from ._slopes import slopes
from ._study import Study


# Number of designs whose ranks are evaluated in one batch.
_WIDTH, _WIDEST = 16, 256

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

    def look(self, point: Float[Array, " p"]) -> Look:
        """Works under `jit` and `vmap`."""

        def function(point: Float[Array, " p"], forward: bool) -> Any:
            values, response = self.values(point, forward=forward)
            return values, stop_gradient(_bare(response, None))

        count = len(self.functions)
        values, found, bare = slopes(self.study.run, function, point, count)
        response = _bare(bare, self.study.place_parts(self.design(point)).system)
        numbers = jnp.all(jnp.isfinite(values)) & jnp.all(jnp.isfinite(found))
        code = _code(code_of(response.result), numbers)
        leaning = across(self.functions, response, (values, found))
        return Look(values, found, response, matrices_of(response), leaning, code)


def _design(low: Any, width: Any, point: Any) -> Any:
    return low + width * point


class Survey(NamedTuple):
    """Many points: values (k, m), ranks (k, n) at each state, how much each function depends on
    what is not unique (k, m), and codes (k,)."""

    values: np.ndarray
    ranks: np.ndarray
    across: np.ndarray
    codes: np.ndarray


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


def survey(problem: Problem, points: np.ndarray, count: int = 1) -> Survey:
    """Values and ranks of many points (k, p), without derivatives; `count`: of all starts."""
    width = min(max(_WIDTH, count), _WIDEST)
    parts: list[Survey] = []
    for first in range(0, len(points), width):
        own = points[first : first + width]
        # The last batch is filled up, so that one program does for all.
        filled = np.concatenate([own, np.repeat(own[-1:], width - len(own), axis=0)])
        values, matrices, *rest = map(np.asarray, _survey(problem, known_array(filled)))
        found = Survey(values, ranks(matrices), *rest)
        parts.append(Survey(*(x[: len(own)] for x in found)))
    return Survey(*(np.concatenate(x) for x in zip(*parts, strict=True)))


@program
def _survey(problem: Problem, points: Float[Array, "k p"]) -> tuple[Array, ...]:
    def one(point: Float[Array, " p"]) -> tuple[Array, ...]:
        values, response = problem.values(point)
        code = _code(code_of(response.result), jnp.all(jnp.isfinite(values)))
        return values, matrices_of(response), across(problem.functions, response, values), code

    return jax.vmap(one)(points)


def look(problem: Problem, point: Float[Array, " p"]) -> Look:
    """`Problem.look`, compiled once for all points."""
    study = problem.study.settled(problem.design(point))
    return _look(eqx.tree_at(lambda p: p.study, problem, study), point)


@program(compiling=Compiling.ONCE)
def _look(problem: Problem, point: Float[Array, " p"]) -> Look:
    return problem.look(point)


def _code(code: IntScalar, numbers: BoolScalar) -> IntScalar:
    """The code of the first failure; NaN counts as a failure."""
    nothing = code_of(RESULTS.answer_not_a_number).astype(code.dtype)
    return jnp.where((code == FINE) & ~numbers, nothing, code)


def sentence(code: int) -> str:
    """The text of a `RESULTS` member; empty for a success."""
    return sentences()[int(code)][1]
