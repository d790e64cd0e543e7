"""From multipliers to reactions, each with its verdict."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float

from .._custom_types import RealScalarLike, Setting
from .._linalg import RankDecomposition
from .._programs import Compiling, program
from .._solution import RESULTS
from .._solvability import AbstractCriterion, chosen_criterion, Solvability
from .._solvability._analyze import analyze_matrix, check_elastic, scaled, with_deformations
from .._solvability._expression import generalized_reactions, Questions
from .._solvability._state import check_numbers
from .._system import AbstractSystem, Structure, takes_state
from .._system._places import Attachments, moments, PlaceLayout
from .._verdict import Verdict
from ._report import Reactions


# --------------------------------------------------------------------------------------------------
# Maps from multipliers to forces and torques at points.
#
# A joint's generalized reaction C_X^T lambda_X acts on a body as minus its force and torque about
# the origin of the body's coordinates: linear velocities are in world axes, angular ones in body
# axes. Moved to the joint's point, each is a matrix on lambda_X. Where a body's coordinates do not
# define a frame of its own, the matrix is the change of the rows by displacements of the marker.
# --------------------------------------------------------------------------------------------------


class WrenchMaps(eqx.Module):
    """`force` (places, dim, width), `torque` (places, 1 or 3, width): times lambda_X the force
    (N), and the torque (N m) about the place's point, on its body; world axes."""

    force: Float[Array, "places dim width"]
    torque: Float[Array, "places turns width"]

    def of(
        self, multipliers: Float[Array, " rows"], layout: PlaceLayout
    ) -> tuple[Float[Array, "places dim"], Float[Array, "places turns"]]:
        """Force and torque of each place, from lambda."""
        own = jnp.append(multipliers, 0.0)[layout.indices["rows"]]
        force = jnp.einsum("pir,pr->pi", self.force, own)
        return force, jnp.einsum("pir,pr->pi", self.torque, own)


def wrench_maps(places: Attachments, matrix: Float[Array, "rows nv"]) -> WrenchMaps:
    """Maps from C. The wrench on the ground balances those of the constraint on its other
    bodies."""
    indices = places.layout.indices
    count, dim = places.point.shape
    if count == 0:
        return WrenchMaps(jnp.zeros((0, 0, 0)), jnp.zeros((0, 0, 0)))
    padded = jnp.pad(matrix, ((0, 1), (0, 1)))
    columns = indices["columns"][:, :, None]
    generalized = -padded[indices["rows"][:, None, :], columns]
    force, torque = generalized[:, :dim], generalized[:, dim:]
    if dim == 3:
        torque = jnp.einsum("pij,pjr->pir", places.body_axes, torque)
    torque = torque + jax.vmap(moments)(places.origin - places.point, force)
    if indices["unposed"].size:
        force = force.at[indices["unposed"]].set(-places.unposed[:, :dim])
        torque = torque.at[indices["unposed"]].set(-places.unposed[:, dim:])
    # What acts on the ground has no columns: it is zero up to here.
    ground = indices["ground"]
    of_ground = jnp.concatenate([places.point, jnp.zeros((1, dim), matrix.dtype)])[ground]
    moved = torque + jax.vmap(moments)(places.point - of_ground, force)

    def balanced(x: Float[Array, "places n width"], there: Float[Array, "places n width"]):
        return x - jnp.zeros((count + 1, *x.shape[1:]), x.dtype).at[ground].add(there)[:-1]

    return WrenchMaps(balanced(force, force), balanced(torque, moved))


@takes_state(decides_rank=True, multipliers="rows")
def reactions_of_multipliers(
    system: AbstractSystem,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    t: RealScalarLike,
    multipliers: Float[Array, " rows"],
    *,
    criterion: Setting[AbstractCriterion | None] = None,
    elastic: Setting[bool] = False,
) -> Reactions:
    """`reactions` where the multipliers are known, so that a trajectory's reactions are `jax.vmap`
    of this.

    **Arguments:**

    - `q` (nq,), `v` (nv,), `t` (s): the state. `multipliers` (rows,): lambda of
      M dv/dt + C^T lambda = F, in N and N m for rows of lengths and angles.
    - `criterion`, `elastic`: as in `analyze`. Multipliers of `ElasticResolution` have the verdicts
      of `elastic`.

    **Returns:** `Reactions`.

    **Raises:** `ValueError` for multipliers of another number of rows.
    """
    chosen = chosen_criterion(criterion, system)
    check_elastic(system.structure, elastic)
    return _reactions(system, q, v, jnp.asarray(t, q.dtype), multipliers, chosen, elastic)


@program(compiling=Compiling.ONCE)
def _reactions(
    system: AbstractSystem,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    t: Float[Array, ""],
    multipliers: Float[Array, " rows"],
    criterion: AbstractCriterion,
    elastic: bool,
) -> Reactions:
    return explained_reactions(system, q, v, t, multipliers, criterion, elastic).reactions


class ExplainedReactions(eqx.Module):
    """Reactions, and what they rest on: `solvability`, by the same decomposition, and `maps` from
    multipliers to the wrench at each place."""

    reactions: Reactions
    solvability: Solvability
    maps: WrenchMaps


def explained_reactions(
    system: AbstractSystem,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    t: Float[Array, ""],
    multipliers: Float[Array, " rows"],
    criterion: AbstractCriterion,
    elastic: bool,
) -> ExplainedReactions:
    """`reactions`, of checked arguments, with what they rest on."""
    structure = system.structure
    matrix = system.constraint_matrix(q, v, t)
    places = system.places(q, v, t)
    maps = wrench_maps(places, matrix)
    # As in `analyze`, which would evaluate the matrix once more.
    length = system.characteristic_length().astype(q.dtype)
    decided = with_deformations(system, matrix, q, v, t) if elastic else matrix
    rows, row_scale = scaled(structure, lax.stop_gradient(decided), length)
    check = check_numbers(system, matrix, length, q, v, t)
    report = analyze_matrix(structure, rows, row_scale, length, check, criterion)
    axes = _axes(places)
    force, torque = maps.of(multipliers, places.layout)
    force_unique, torque_unique = _components(places, maps, rows, report, criterion)
    found = Reactions(
        multipliers=multipliers,
        generalized_reactions=_generalized(structure, matrix, jnp.append(multipliers, 0.0)),
        force=_along(axes, force[..., None])[..., 0],
        torque=_along(axes, torque[..., None])[..., 0],
        point=places.point,
        arm=lax.stop_gradient(jnp.linalg.norm(places.point - places.origin, axis=-1)),
        force_unique=force_unique,
        torque_unique=torque_unique,
        reaction_unique=report.reaction_unique,
        reaction_measure=report.reaction_measure,
        doubtful=report.doubtful,
        layout=places.layout,
        structure=structure,
        redundant_at_precision=(
            None if report.precision is None else report.redundant_at_precision
        ),
    )
    return ExplainedReactions(found, report, maps)


def _generalized(
    structure: Structure, matrix: Float[Array, "rows nv"], padded: Float[Array, " more"]
) -> Float[Array, "constraints width"]:
    """C_X^T lambda_X in the columns of each constraint's bodies, padded with zeros."""
    questions = generalized_reactions(
        matrix, [(range(c.start, c.stop), c.columns) for c in structure.constraints]
    )
    return jnp.einsum("xcr,xr->xc", questions.coefficients, padded[questions.rows])


def _axes(places: Attachments) -> Float[Array, "3 places dim dim"]:
    """World, body and marker axes (see `Axes`), as columns."""
    eye = jnp.eye(places.point.shape[1], dtype=places.point.dtype)
    world = jnp.broadcast_to(eye, places.body_axes.shape)
    return jnp.stack([world, places.body_axes, places.marker_axes])


def _along(
    axes: Float[Array, "3 places dim dim"], world: Float[Array, "places m columns"]
) -> Float[Array, "3 places m columns"]:
    """Components of vectors along axes; a planar torque is normal to all of them."""
    if world.shape[1] != axes.shape[2]:
        return jnp.broadcast_to(world, (axes.shape[0], *world.shape))
    return jnp.einsum("apij,pir->apjr", axes, world)


def _components(
    places: Attachments,
    maps: WrenchMaps,
    matrix: Float[Array, "rows nv"],
    report: Solvability,
    criterion: AbstractCriterion,
) -> tuple[Verdict, Verdict]:
    """The verdict of each component of each force and torque, along each of the axes."""
    layout = places.layout
    maps, axes = lax.stop_gradient((maps, _axes(places)))
    count, dim, _ = maps.force.shape
    if count == 0:
        none = Verdict.where(True, jnp.zeros((3, 0, 0), bool))
        return none, none
    # Multipliers of the scaled rows are lambda times the rows' lengths; with forces times the
    # characteristic length all components are torques, whatever the unit of length is.
    rows = layout.indices["rows"]
    scale = jnp.append(report.row_scale, 1.0)[rows][:, None, :]
    force = _along(axes, maps.force * report.length / scale)
    torque = _along(axes, maps.torque / scale)
    functionals = jnp.concatenate([force, torque], axis=2)
    shape = functionals.shape
    every = np.broadcast_to(rows[None, :, None, :], shape).reshape(-1, shape[-1])
    # A criterion that decomposes must not start before the one that made the report has ended
    # (see AbstractCriterion.measure).
    matrix, _ = lax.optimization_barrier((matrix, report.reaction_measure))
    (measure,) = criterion.measure(
        _decomposition(report, criterion),
        matrix,
        [Questions(functionals.reshape(-1, 1, shape[-1]), every)],
    )
    # All of them are the generalized reaction moved to another point, which changes a measure by a
    # factor: where the whole is unique, its components are. (Where a body's coordinates do not
    # determine the motion of its frames they may be more than the generalized reaction, also on the
    # ground.)
    owners = np.array(layout.constraints)
    posed = ~np.isin(owners, owners[layout.indices["unposed"]])
    whole = report.reaction_unique.unique[owners] & posed
    components = criterion.unique(measure).reshape(shape[:-1]) | whole[None, :, None]
    decided = report.result != RESULTS.state_not_valid
    unique = Verdict.where(decided, components)
    return unique[..., :dim], unique[..., dim:]


def _decomposition(report: Solvability, criterion: AbstractCriterion) -> RankDecomposition:
    """The decomposition from which the report was made."""
    first = report.pivots[0] if report.pivots.shape[0] else jnp.zeros_like(report.length)
    threshold = criterion.tolerance * first
    return RankDecomposition(report.rank, report.pivots, threshold, report.null_space)
