"""Data of a state from which ranges follow: multipliers that carry the loads, and their null
space."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float, Int

from .._custom_types import BoolScalar, IntScalar, Scalar
from .._dynamics import solve_with_friction
from .._formulations import AbstractFormulation
from .._programs import Compiling, program
from .._reactions import wrench_maps
from .._solution import RESULTS
from .._solvability import AbstractCriterion, analyze
from .._system import AbstractSystem
from .._system._places import Attachments, PlaceLayout


class StateNumbers(eqx.Module):
    """Data of one state, or of a batch of states.

    - `multipliers` (rows,): lambda_0, one of those that carry the loads; all of them are lambda_0 +
      (N z) / `row_scale` with N the columns of `null_space` (rows, rows) after the first `rank`.
    - `variables` (variables, rows): each variable (`Variables`) as a function of lambda;
      `scale` (variables,): what makes it one of scaled multipliers, without units.
    - `whole` (constraints,): 1 where the generalized reaction is unique.
    - `load` (N m): the magnitude of all loads, relative to which rounding is judged.
    - `result`: a `RESULTS` member.
    """

    multipliers: Float[Array, " rows"]
    row_scale: Float[Array, " rows"]
    null_space: Float[Array, "rows rows"]
    rank: IntScalar
    variables: Float[Array, "variables rows"]
    scale: Float[Array, " variables"]
    whole: Int[Array, " constraints"]
    doubtful: BoolScalar
    load: Scalar
    result: RESULTS
    layout: PlaceLayout = eqx.field(static=True)


class GivenState(eqx.Module):
    """A state, and the multipliers there if they are known already."""

    q: Float[Array, "*batch nq"]
    v: Float[Array, "*batch nv"]
    t: Float[Array, "*batch"]
    multipliers: Float[Array, "*batch rows"] | None


@program(compiling=Compiling.ONCE)
def numbers_of_states(
    system: AbstractSystem,
    states: GivenState,
    formulation: AbstractFormulation | None,
    criterion: AbstractCriterion,
    elastic: bool,
) -> StateNumbers:
    """Data of many states, one after the other: rank decisions are LAPACK's, which gains nothing by
    batches."""
    return lax.map(lambda x: numbers_of_state(system, x, formulation, criterion, elastic), states)


def numbers_of_state(
    system: AbstractSystem,
    state: GivenState,
    formulation: AbstractFormulation | None,
    criterion: AbstractCriterion,
    elastic: bool,
) -> StateNumbers:
    q, v, t = state.q, state.v, state.t
    structure = system.structure
    report = analyze(system, q, v, t, criterion=criterion, elastic=elastic)
    multipliers, result = state.multipliers, report.result
    if multipliers is None:
        found = solve_with_friction(system, q, v, t, formulation=formulation)
        multipliers = found.multipliers
        result = RESULTS.where(found.result == RESULTS.successful, result, found.result)
        # An invalid state is reported first.
        result = RESULTS.where(report.decided, result, report.result)
    matrix = system.constraint_matrix(q, v, t)
    places = system.places(q, v, t)
    variables = variable_matrix(places, matrix)
    count = len(structure.rows)
    turns = jnp.ones((variables.shape[0] - count,), q.dtype)
    scale = jnp.concatenate([report.row_scale, turns])
    forces = _places_of_forces(places.layout, count, places.point.shape[1])
    scale = scale.at[forces].set(report.length)
    return StateNumbers(
        multipliers=multipliers,
        row_scale=report.row_scale,
        null_space=report.null_space,
        rank=report.rank,
        variables=variables,
        scale=scale,
        whole=report.reaction_unique.unique.astype(int),
        doubtful=report.doubtful,
        load=_load(system, q, v, t, matrix, multipliers),
        result=result,
        layout=places.layout,
    )


def variable_matrix(
    places: Attachments, matrix: Float[Array, "rows nv"]
) -> Float[Array, "variables rows"]:
    """Multipliers, then force and torque of each constraint on its second body, in the order of
    `Variables`."""
    count, layout = matrix.shape[0], places.layout
    seconds = np.array([place for place in layout.seconds if place >= 0], dtype=int)
    own = jnp.eye(count, dtype=matrix.dtype)
    if not seconds.size:
        return own
    maps = wrench_maps(places, matrix)
    both = jnp.concatenate([maps.force, maps.torque], axis=1)[seconds]
    rows = layout.indices["rows"][seconds]
    dense = jnp.zeros((*both.shape[:2], count + 1), matrix.dtype)
    index = np.arange(len(seconds))[:, None]
    # The two indices are separated, so that the components come last.
    dense = dense.at[index, :, rows].set(jnp.swapaxes(both, 1, 2))
    return jnp.concatenate([own, dense[..., :count].reshape(-1, count)])


def _places_of_forces(layout: PlaceLayout, count: int, dimension: int) -> np.ndarray:
    """Indices of components of forces among the variables."""
    seconds = sum(place >= 0 for place in layout.seconds)
    components = dimension + (1 if dimension == 2 else 3)
    starts = count + components * np.arange(seconds)
    return (starts[:, None] + np.arange(dimension)).ravel()


def _load(
    system: AbstractSystem,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    t: Scalar,
    matrix: Float[Array, "rows nv"],
    multipliers: Float[Array, " rows"],
) -> Scalar:
    """The largest of applied forces, constraint forces and the kinetic energy: a mechanism that
    moves without force has rounding of its momentum."""
    unit = system.column_scale()
    sizes = [
        jnp.max(jnp.abs(x * unit), initial=0.0)
        for x in (system.force(q, v, t), matrix.T @ multipliers)
    ]
    return lax.stop_gradient(jnp.max(jnp.stack([*sizes, system.kinetic_energy(q, v, t)])))


def of_state(numbers: StateNumbers, index: int) -> StateNumbers:
    """One state of many."""
    return jax.tree.map(lambda x: x[index], numbers)
