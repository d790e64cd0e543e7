"""Objectives, their gradients, and which of them have none.

An objective is any function of the states of a run to a number. Multipliers are known up to N z, N
a basis of the left null space of C; so an objective J has a gradient only if J(lambda + N z) does
not depend on z. This is decided by the derivative of J by lambda, across N, at the multipliers that
were found and at other equally valid ones. Nor does a reaction have a derivative in a singular
configuration, from which free motions change the rank of C: N^T (dC z) w is not zero there for some
free motions z and w.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float

from .. import _settings
from .._checks import of_known
from .._custom_types import BoolScalar, Numbers, RealScalarLike, Scalar, Setting
from .._dynamics import Trajectory
from .._dynamics._projection import both_corrections
from .._limits import EXACT
from .._linalg import motion_solver
from .._programs import Compiling, program
from .._solution import RESULTS
from .._solvability import QR
from .._solvability._analyze import scaled, with_deformations
from .._stop_gradient import stop_gradient
from .._system import AbstractSystem
from ._guard import amounts, Guard, guard, said_of, succeeded
from ._quantities import AbstractObjective, zero_words
from ._study import DesignError, responded, slopes, Study


# Any function of the states of a run to a number.
Objective: TypeAlias = Callable[[Trajectory], Scalar]


def an_objective(value: Any, what: str = "objective") -> Objective:
    """**Raises:** `TypeError` for what cannot be called with the states of a run."""
    return _settings.function(
        value, what, "a function of the states of a run, such as Peak(Force('B'))", "states"
    )


# A value below this part of what the multipliers may make of it is zero.
_ZERO = 1e-10

# So may one be that changes by less than this, per unit of a multiplier.
_FLAT = 1e-7

# Random free motions, and other multipliers, that are tried.
_TRIALS = 2

# Terms of a combination that are named.
_TERMS = 6

# Distance of a neighbouring design, relative to the scale of the parameter. What is across N
# there is as large as its slope, and rounding and curvature are far below.
_BESIDE = 1e-4


class Evaluation(eqx.Module):
    """A value of an objective. `result`: `RESULTS.reaction_not_unique` or `design_singular` if it
    has no gradient; the failure of the run if that failed."""

    value: Scalar
    result: RESULTS


class Dependence(eqx.Module):
    """Dependence of an objective on the multipliers of each state, rows of unit length.

    - `value`. `gradient` (n, rows): by the multipliers. `null_space` (n, rows, rows): N after
      zeros.
    - `row_scale` (n, rows): what rows were divided by. `across`, `singular` (n,): what of it is
      not unique; how much the rank changes out of the configuration.
    """

    value: Scalar
    gradient: Float[Array, "n rows"]
    null_space: Float[Array, "n rows rows"]
    row_scale: Float[Array, "n rows"]
    across: Float[Array, " n"]
    singular: Float[Array, " n"]

    def unique(self) -> BoolScalar:
        """Does it depend on nothing that is not unique?"""
        return of_known(lambda across: (across <= EXACT.unique).all(), self.across)

    def regular(self) -> BoolScalar:
        """Are all states on whose multipliers it depends out of singular configurations?"""
        return of_known(lambda singular: (singular <= EXACT.singular_change).all(), self.singular)


def evaluate(
    study: Study,
    objective: Setting[Objective],
    design: Setting[Float[Array, " p"]],
    *,
    forward: Setting[bool] = False,
) -> Evaluation:
    """The value of an objective, and whether it has a gradient at all.

    Works under `jit`, `vmap` and differentiation: there failures appear in the `result` alone. It
    does not check the parameters: see `guard`.

    **Arguments:** `design` (p,): in the order of `study.names`; `forward`: as in `Study.respond`.
    """
    an_objective(objective)
    response = study.respond(design, forward=forward)
    value = objective(response)
    found = dependence(objective, response, null_space_data(response, value))
    result = RESULTS.where(found.regular(), RESULTS.successful, RESULTS.design_singular)
    result = RESULTS.where(found.unique(), result, RESULTS.reaction_not_unique)
    failed = response.result != RESULTS.successful
    return Evaluation(value, RESULTS.where(failed, response.result, result))


class NullSpaceData(eqx.Module):
    """Null-space data of a response at each state: N of the scaled C in its last columns, the
    divisors of the rows, and the change of the rank with free motions."""

    null_space: Float[Array, "n rows rows"]
    row_scale: Float[Array, "n rows"]
    singular: Float[Array, " n"]


class MultiplierSensitivity(NamedTuple):
    """Sensitivity of an objective to the multipliers of each state, at those that were found and at
    other equally valid ones (k): values, gradients, their lengths, and the part of each across
    N."""

    values: Float[Array, " k"]
    gradients: Float[Array, "k n rows"]
    lengths: Float[Array, "k n"]
    across: Float[Array, "k n"]


def null_space_data(response: Trajectory, after: Any = None) -> NullSpaceData:
    """Not differentiated. `after`: what has to be computed before, as this decomposes (see
    `AbstractCriterion.measure`) and an objective may do so as well."""
    response, after = stop_gradient((response, after))
    states = (response.q, response.v, response.times)
    states, _ = lax.optimization_barrier((states, after))

    def one(state: tuple[Array, Array, Array]) -> tuple[Array, Array, Scalar]:
        null, scale = _null_space(response, *state)
        return null, scale, _change(response.system, *state, null, scale)

    return NullSpaceData(*lax.map(one, states))


def dependence(objective: Objective, response: Trajectory, hidden: NullSpaceData) -> Dependence:
    """See `Dependence`; not differentiated."""
    found = _multiplier_sensitivity(objective, response, hidden.null_space, hidden.row_scale)
    largest = _largest(found.lengths)
    depends = jnp.max(found.lengths, axis=0) > EXACT.unique * largest
    # The trial that shows it most; the longest gradient where none does.
    strongest = jnp.argmax(found.across + EXACT.unique**2 * found.lengths / largest, axis=0)
    return Dependence(
        found.values[0],
        found.gradients[strongest, jnp.arange(hidden.row_scale.shape[0])],
        hidden.null_space,
        hidden.row_scale,
        jnp.max(found.across, axis=0),
        jnp.where(depends, hidden.singular, 0.0),
    )


def across(objectives: Sequence[Objective], response: Trajectory, after: Any) -> Float[Array, " m"]:
    """Dependence of each objective on what is not unique, at the state where it is largest; see
    `unique`. Works under `jit` and `vmap`; not differentiated. `after`: as in `null_space_data`."""
    response, after = stop_gradient((response, after))
    states = (response.q, response.v, response.times)
    states, _ = lax.optimization_barrier((states, after))
    null, scale = lax.map(lambda s: _null_space(response, *s), states)
    most = [
        jnp.max(_multiplier_sensitivity(f, response, null, scale).across, initial=0.0)
        for f in objectives
    ]
    return jnp.stack(most)


def unique(across: Float[Array, "*n m"] | np.ndarray) -> Bool[np.ndarray, "*n"]:
    """Do all objectives (m,) depend on nothing that is not unique? Failures are ignored."""
    return np.asarray(~np.any(np.asarray(across) > EXACT.unique, axis=-1))


def _multiplier_sensitivity(
    objective: Objective,
    response: Trajectory,
    null: Float[Array, "n rows rows"],
    scale: Float[Array, "n rows"],
) -> MultiplierSensitivity:
    response, objective = stop_gradient((response, objective))

    def value_and_gradient(other: Float[Array, "n rows"]) -> tuple[Scalar, Array]:
        def changed(x: Float[Array, "n rows"]) -> Scalar:
            return objective(eqx.tree_at(lambda r: r.multipliers, response, x))

        away = jnp.einsum("nij,nj->ni", null, size * other) / scale
        return jax.value_and_grad(changed)(response.multipliers + away)

    size = jnp.max(jnp.abs(response.multipliers * scale), initial=0.0)
    size = jnp.where(size > 0, size, 1.0)
    shape = response.multipliers.shape
    normal = np.random.default_rng(0).normal(size=(_TRIALS, *shape))
    others = jnp.asarray(np.concatenate([np.zeros((1, *shape)), normal]))
    values, gradients = lax.map(value_and_gradient, others)
    gradients = gradients / scale[None]
    lengths = jnp.linalg.norm(gradients, axis=2)
    part = jnp.linalg.norm(jnp.einsum("kni,nij->knj", gradients, null), axis=2)
    return MultiplierSensitivity(values, gradients, lengths, part / _largest(lengths))


def _largest(lengths: Float[Array, "k n"]) -> Scalar:
    largest = jnp.max(lengths, initial=0.0)
    return jnp.where(largest > 0, largest, 1.0)


def _null_space(
    response: Trajectory, q: Float[Array, " nq"], v: Float[Array, " nv"], t: Scalar
) -> tuple[Float[Array, "rows rows"], Float[Array, " rows"]]:
    """N of the scaled C after zeros, with the columns of deformations if multipliers include
    elasticity, and the divisors of its rows."""
    system = response.system
    matrix = system.constraint_matrix(q, v, t)
    if response.elastic:
        matrix = with_deformations(system, matrix, q, v, t)
    rows, scale = scaled(system.structure, matrix, system.characteristic_length())
    return QR().decompose(rows).null_space, scale


def _unit(system: AbstractSystem) -> Float[Array, " nv"]:
    """The factors of the columns."""
    return system.column_scale()


def _change(
    system: AbstractSystem,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    t: Scalar,
    null: Float[Array, "rows rows"],
    scale: Float[Array, " rows"],
) -> Scalar:
    """Change of the rank with free motions."""
    structure, unit = system.structure, _unit(system)
    normal = jnp.asarray(np.random.default_rng(1).normal(size=(_TRIALS, 2, structure.nv)))

    def matrix(q: Float[Array, " nq"]) -> Float[Array, "rows nv"]:
        return system.constraint_matrix(q, v, t) * unit[None]

    def change(pair: Float[Array, "2 nv"]) -> Float[Array, ""]:
        descriptor = system.descriptor(q, v, t)
        free, other = unit * pair[0], unit * pair[1]
        closing = jnp.where(structure.geometric, descriptor.apply_C(free), 0.0)
        rates = descriptor.apply_C(other)
        taken = both_corrections(system, descriptor, closing, rates, motion_solver())
        free, other = free - taken[0], (other - taken[1]) / unit
        zero, one = jnp.zeros(()), jnp.ones(())
        moved = jax.jvp(lambda s: matrix(system.retract(q, s * free)), (zero,), (one,))[1]
        moved = moved / scale[:, None]
        size = jnp.linalg.norm(moved) * jnp.linalg.norm(other)
        return jnp.linalg.norm(null.T @ (moved @ other)) / jnp.where(size > 0, size, 1.0)

    return jnp.max(lax.map(change, normal), initial=0.0)


# Apart, as the first is the same program for every objective.
_null_space_data = program(null_space_data, compiling=Compiling.ONCE)
_dependence = program(dependence, compiling=Compiling.ONCE)


def require_gradient(
    study: Study,
    objective: Setting[Objective],
    design: Setting[Mapping[str, RealScalarLike] | Numbers | None] = None,
) -> None:
    """Refuse an objective that has no gradient, as it depends on a reaction that is not unique.

    **Raises:** `DesignError` that names the joints and the ways out.
    """
    an_objective(objective)
    x = study.design if design is None else study.values(design)
    study.check(x)
    response = responded(study, x)
    require_unique(objective, response)
    refuse_zero(objective, response)


def refuse_zero(objective: Objective, response: Trajectory, what: str = "the objective") -> None:
    """Refuse an objective that is zero in every state, whatever the joints carry.

    **Raises:** `DesignError` that suggests another objective.
    """
    # Only where its value does not depend on multipliers is it worth a program of its own.
    value, slope, largest = _size_of(objective, response)
    if abs(value) <= _ZERO * slope * largest or slope <= _FLAT * (1 + largest):
        text = zero_words(objective, response)
        if text:
            raise DesignError(f"{what} is zero whatever the design is: {text}")


def _size_of(objective: Objective, response: Trajectory) -> tuple[float, float, float]:
    """The value of an objective, its largest change by a multiplier, and the largest multiplier
    of these states; rows of unit length."""
    found = _dependence(objective, response, _null_space_data(response))
    multipliers = np.asarray(response.multipliers) * np.asarray(found.row_scale)
    largest = float(np.max(np.abs(multipliers), initial=0.0))
    return float(found.value), float(np.max(np.abs(found.gradient), initial=0.0)), largest


def is_zero(objective: Objective, response: Trajectory) -> bool:
    """Is its value at these states nothing but rounding, against what multipliers would make of
    it?"""
    value, slope, largest = _size_of(objective, response)
    return abs(value) <= _ZERO * slope * largest


def refuse_idle(
    study: Study, objective: Objective, design: Float[Array, " p"], response: Trajectory
) -> None:
    """Refuse an objective that is zero at a design with these states and stays so when any of the
    parameters changes: no gradient leads anywhere from there.

    **Raises:** `DesignError` that names what carries a load.
    """
    if not is_zero(objective, response):
        return
    length = float(response.system.characteristic_length())
    sizes = amounts(study, np.asarray(design), length)
    for direction in np.eye(len(study.names)):
        moved = perturbed_design(study, design, direction, sizes)
        if not RESULTS[moved.result] and not is_zero(objective, moved):
            return
    raise DesignError(
        "the objective is zero at the start, and stays zero when any of "
        f"{', '.join(study.names)} changes, so that no gradient leads anywhere; {_loaded(response)}"
    )


def _loaded(response: Trajectory) -> str:
    """Advice that names the constraints that carry loads at these states."""
    structure = response.system.structure
    sizes = np.max(np.abs(np.asarray(response.multipliers)), axis=0, initial=0.0)
    rows = sizes > 1e-9 * np.max(sizes, initial=0.0)
    names = [structure.constraint_names[k] for k in dict.fromkeys(structure.row_owner[rows])]
    if not names:
        return "nothing carries a load here: give the model gravity, a force or a motion."
    return f"ask for what carries a load here ({', '.join(names)}), or start from another design."


def require_unique(objective: Objective, response: Trajectory) -> None:
    """`require_gradient` where the states are known."""
    succeeded(response.result, "this design")
    found = _dependence(objective, response, _null_space_data(response))
    if not bool(found.unique()):
        raise DesignError(f"the objective has no gradient: {_not_unique(found, response)}")
    if not bool(found.regular()):
        state = int(np.argmax(np.asarray(found.singular)))
        raise DesignError(
            "the objective has no gradient: it depends on reactions of "
            f"{', '.join(_joints(found, response, state, hidden=False))} in a singular "
            f"configuration (at {float(response.times[state]):g} s), out of which the rank of the "
            "constraints changes, so that they are not continuous there; design for other "
            "configurations, or make a body elastic."
        )


def perturbed_design(
    study: Study, design: Float[Array, " p"], direction: np.ndarray, sizes: np.ndarray
) -> Trajectory:
    """The states of a concrete design a little aside along a direction, in parts of `sizes` (p,),
    by which parameters may change."""
    return responded(study, design + _BESIDE * direction / np.max(np.abs(direction) / sizes))


def require_unique_beside(
    study: Study, objective: Objective, design: Float[Array, " p"], kept: Guard, *, project: bool
) -> None:
    """Refuse an objective that is unique at a design and not at neighbouring ones.

    A combination of reactions may be unique at one design alone. Equally valid multipliers there
    continue to different ones nearby, so that the derivative of the objective depends on the
    choice. The check uses neighbouring designs along every parameter (`project`: along the
    directions that keep rank and closure); one that cannot be computed is ignored.

    **Raises:** `DesignError` that names the direction and the joints.
    """
    length = float(study.place_parts(design).system.characteristic_length())
    sizes = amounts(study, np.asarray(design), length)
    for direction in kept.kept.T if project else np.eye(len(study.names)):
        response = perturbed_design(study, design, direction, sizes)
        if RESULTS[response.result]:
            continue
        found = _dependence(objective, response, _null_space_data(response))
        if not bool(found.unique()):
            raise DesignError(
                f"the objective has no gradient along {said_of(study.names, direction)}, as it is "
                f"unique at this design and not beside it: there {_not_unique(found, response)}"
            )


def unit_of_objective(objective: Objective, response: Trajectory) -> str:
    """The unit of an objective; empty where it has none of its own."""
    return objective.unit(response) if isinstance(objective, AbstractObjective) else ""


def _joints(found: Dependence, response: Trajectory, state: int, *, hidden: bool) -> list[str]:
    """The joints on which the objective depends at a state; `hidden`: and which are not
    unique."""
    structure = response.system.structure
    gradient = np.abs(np.asarray(found.gradient[state]))
    rows = gradient > EXACT.unique * max(gradient.max(), 1e-300)
    if hidden:
        rows &= np.linalg.norm(np.asarray(found.null_space[state]), axis=1) > EXACT.unique
    owners = dict.fromkeys(structure.row_owner[rows].tolist())
    return [structure.constraint_names[k] for k in owners]


def _not_unique(found: Dependence, response: Trajectory) -> str:
    state = int(np.argmax(np.asarray(found.across)))
    names = ", ".join(_joints(found, response, state, hidden=True))
    null = np.asarray(found.null_space[state])
    gradient = np.asarray(found.gradient[state])
    closest = gradient - null @ (null.T @ gradient)
    out = "no combination of multipliers close to it is unique"
    if np.linalg.norm(closest) > 1e-3 * np.linalg.norm(gradient):
        terms = _terms(closest * np.asarray(found.row_scale[state]), response)
        out = f"the closest unique combination is {terms}"
    return (
        f"it depends on reactions that are not unique, those of {names}; {out}; or give these "
        "joints compliance (a bushing in the place of the joint), which makes their reactions "
        "unique."
    )


def _terms(coefficients: np.ndarray, response: Trajectory) -> str:
    largest = np.max(np.abs(coefficients))
    shown = [k for k in np.argsort(-np.abs(coefficients)) if abs(coefficients[k]) > 1e-6 * largest]
    names = response.system.structure.row_names
    relative = coefficients / coefficients[shown[0]]
    terms = [f"{'-' if relative[k] < 0 else '+'} {abs(relative[k]):.4g} {names[k]}" for k in shown]
    more = f" ... ({len(terms)} terms)" if len(terms) > _TERMS else ""
    return " ".join(terms[:_TERMS]).removeprefix("+ ") + more


class Gradient(eqx.Module):
    """The value of an objective and its gradient (p,), `names` in order."""

    value: Scalar
    gradient: Float[Array, " p"]
    names: tuple[str, ...] = eqx.field(static=True)

    def __getitem__(self, name: str) -> float:
        return float(self.gradient[self.names.index(name)])


def gradient(
    study: Study,
    objective: Setting[Objective],
    design: Setting[Mapping[str, RealScalarLike] | Numbers | None] = None,
    *,
    project: Setting[bool] = False,
) -> Gradient:
    """Value and gradient of an objective, where there is one.

    **Arguments:** `design`: numbers by name or in order, default as the model gives them;
    `project`: take the gradient along the directions that keep rank and closure, in place of
    refusing the others (see `Guard.project`).

    **Raises:** `DesignError` for an objective of reactions that are not unique, at this design or
    next to it, naming them, and for parameters along which the rank or the closure breaks, naming
    the combinations that keep them.
    """
    project = _settings.flag(project, "project")
    x = study.design if design is None else study.values(design)
    require_gradient(study, objective, x)
    found = guard(study, x)
    if not project:
        for name in study.names:
            found.require(name)
    require_unique_beside(study, objective, x, found, project=project)
    value, slope = value_and_slope(study.settled(x), objective, x)
    if project:
        slope = jnp.asarray(found.project(slope))
    return Gradient(value, slope, study.names)


@program(compiling=Compiling.ONCE)
def value_and_slope(
    study: Study, objective: Objective, design: Float[Array, " p"]
) -> tuple[Scalar, Float[Array, " p"]]:
    """Value and gradient without any guard."""
    values, found, _ = _slopes(study, objective, design)
    return values[0], found[0]


def _slopes(
    study: Study, objective: Objective, design: Float[Array, " p"], *, forward: bool = False
) -> tuple[Float[Array, " one"], Float[Array, "one p"], None]:
    def function(x: Float[Array, " p"], forward: bool) -> tuple[Array, None]:
        return objective(study.respond(x, forward=forward))[None], None

    return slopes(study.run, function, design, 1, forward=forward)


def hessian_vector(
    study: Study,
    objective: Setting[Objective],
    direction: Setting[Mapping[str, float]],
    design: Setting[Mapping[str, RealScalarLike] | Numbers | None] = None,
) -> Float[Array, " p"]:
    """Derivative of an objective's gradient along a direction: the Hessian times the direction.

    **Arguments:** `direction`: numbers by name, names that are left out do not move; `design` as
    for `gradient`.

    **Returns:** (p,), in the order of `study.names`.

    **Raises:** `DesignError` as `gradient`.
    """
    x = study.design if design is None else study.values(design)
    moved = jnp.asarray(study.direction(direction))
    if not np.any(study.direction(direction)):
        raise DesignError(
            f"direction must move at least one of {', '.join(study.names)}, got {direction!r}."
        )
    require_gradient(study, objective, x)
    found = guard(study, x)
    for name in study.names:
        found.require(name)
    require_unique_beside(study, objective, x, found, project=False)
    return slope_and_curvature(study.settled(x), objective, x, moved)[1]


@program(compiling=Compiling.ONCE)
def slope_and_curvature(
    study: Study, objective: Objective, design: Float[Array, " p"], direction: Float[Array, " p"]
) -> tuple[Float[Array, " p"], Float[Array, " p"]]:
    """The gradient and its change along a direction, without any guard."""

    def gradient_at(x: Float[Array, " p"]) -> Float[Array, " p"]:
        return _slopes(study, objective, x, forward=True)[1][0]

    return jax.jvp(gradient_at, (design,), (direction,))
