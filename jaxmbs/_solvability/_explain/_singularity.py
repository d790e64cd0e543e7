"""Permanent redundancy, or a singular configuration?"""

import functools

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from ... import _printing, _settings
from ..._custom_types import (
    BoolScalar,
    IntScalar,
    PRNGKeyArray,
    RealScalarLike,
    Scalar,
    Setting,
)
from ..._kinematics import close
from ..._programs import Compiling, program
from ..._solution import RESULTS
from ..._system import AbstractSystem, takes_state
from .._analyze import scaled_constraint_matrix
from .._criteria import AbstractCriterion, chosen_criterion
from .._report import NO_RANK
from .._state import check_numbers


# Near a singular configuration a residual r leaves a distance of sqrt(r) to the closed ones, and
# rows that are dependent on them have singular values of that size. So neighbours must close to
# rounding, and their rank is decided coarsely: what counts there is of the size of the spread.
_NEARBY_CLOSED = 1e-13
_NEARBY_RANK = 1e-5

# Singular values that vanish here are of the size of the spread at the neighbours: if that were not
# well above the threshold for zero there, no configuration would ever be found singular.
_LEAST_SPREAD = 100 * _NEARBY_RANK


# A neighbour nearer than this part of the spread is the configuration itself. Closing it again
# finds that to a root of rounding where the rank is too small, and leaves this much open.
_SAME = 1e-2
_FOUND_AGAIN = 1e-6

# Singular values below this, relative to the largest, leave a motion free.
_FREE = 1e-9

# A motion that C allows is made by neighbours if they move by this part of the spread along it.
_MADE = 1e-2


class Singularity(eqx.Module):
    """- `result`: `RESULTS.state_not_valid` for an invalid state (then ranks are -1 and nothing is
    singular), `configuration_open` where it is not closed.
    - `rank`: here. `generic_rank`: the largest at nearby closed configurations, drivers released.
    - `singular`: `rank < generic_rank`, or motions that C allows here are not made by any
      neighbour: they exist to first order alone. What is redundant beyond the generic redundancy
      is redundant in this configuration alone.
    - `isolated`: is there no other closed configuration nearby, although C allows motions? Ranks
      elsewhere are then those of open ones, `displaced_rank` at most, which geometry that has to
      be special does not share.
    - `mobility`: of motions that C allows here, drivers released; `moving`: how many of them
      neighbours make.
    - `ranks`, `closed` (samples,): at each neighbour, and whether the neighbour closed in another
      configuration than this one (one that did not is not counted). `rows`: of C.
    """

    result: RESULTS
    rank: IntScalar
    generic_rank: IntScalar
    singular: BoolScalar
    isolated: BoolScalar
    displaced_rank: IntScalar
    mobility: IntScalar
    moving: IntScalar
    ranks: Int[Array, " samples"]
    closed: Bool[Array, " samples"]
    rows: int = eqx.field(static=True)

    def __str__(self) -> str:
        if self.rank.ndim:
            return _printing.batch("configurations", self.rank.shape)
        failed = _printing.outcome(self.result)
        if failed:
            return failed
        rank, nearby, count = int(self.rank), int(self.generic_rank), int(jnp.sum(self.closed))
        neighbours = f"{count} of {self.closed.shape[0]} neighbours, closed"
        displaced = f"up to {int(self.displaced_rank)} at displaced ones that are left open"
        mobility, moving = int(self.mobility), int(self.moving)
        if nearby > rank:
            return (
                f"SINGULAR configuration: rank {rank} here, {nearby} nearby ({neighbours}); "
                f"{self.rows - nearby} rows are redundant everywhere, {nearby - rank} more here"
            )
        if bool(self.isolated):
            return (
                f"SINGULAR configuration, isolated: rank {rank} here, {displaced}; no other closed "
                f"configuration is nearby, so that the mobility of {mobility} is one to first "
                "order alone"
            )
        if bool(self.singular):
            return (
                f"SINGULAR configuration: rank {rank} here and nearby ({neighbours}), which move "
                f"in {moving} of the {mobility} ways that C allows; the others exist to first "
                "order alone"
            )
        if count == 0 and mobility == 0:
            return f"not singular: rank {rank} here, the largest there can be, as nothing can move"
        if count == 0:
            return f"rank {rank} here, {displaced}; no neighbour closed to compare it with"
        permanent = "the redundancy is permanent" if self.rows > rank else "no row is redundant"
        return f"not singular: rank {rank} here and nearby ({neighbours}); {permanent}"


@takes_state(decides_rank=True)
def singularity(
    system: AbstractSystem,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"] | None = None,
    t: RealScalarLike = 0.0,
    *,
    key: Setting[PRNGKeyArray],
    samples: Setting[int] = 16,
    spread: Setting[RealScalarLike] = 0.05,
    criterion: Setting[AbstractCriterion | None] = None,
) -> Singularity:
    """Compares the rank of C here with that at nearby assembled configurations.

    Each neighbour is a random displacement of all coordinates (`spread` of the characteristic
    length, or as many radians), closed again without drivers, which would hold a mechanism in
    place. Where closing returns the configuration itself there is no neighbour: a mechanism that
    cannot move has none, and where C nevertheless allows a motion, it is one to first order only.

    **Arguments:** the state; `key`: a JAX random key; `samples`: number of neighbours, at least 1;
    `spread`: size of the displacements, 0.001 to 1; `criterion`: whose tolerance decides the ranks.

    **Raises:** `TypeError` or `ValueError` for one of these that cannot be.
    """
    velocity = jnp.zeros((system.structure.nv,), q.dtype) if v is None else v
    chosen = chosen_criterion(criterion, system)
    key = _settings.random_key(key, "key")
    samples = _settings.whole_number(samples, "samples", least=1)
    spread = _settings.between(
        spread, "spread", least=_LEAST_SPREAD, most=1, advice="neighbours are about 0.05 away"
    )
    return _singularity(system, q, velocity, jnp.asarray(t, q.dtype), key, samples, spread, chosen)


@program(compiling=Compiling.ONCE)
def _singularity(
    system: AbstractSystem,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    t: Float[Array, ""],
    key: PRNGKeyArray,
    samples: int,
    spread: Scalar,
    criterion: AbstractCriterion,
) -> Singularity:
    unit, structure = system.column_scale(), system.structure
    samples_closed = functools.partial(close, system, t=t, drivers=False)

    def ranks_at(at: Float[Array, " nq"]) -> tuple[IntScalar, IntScalar]:
        matrix, _, _ = scaled_constraint_matrix(system, at, v, t)
        found = criterion.decompose(jnp.where(jnp.all(jnp.isfinite(matrix)), matrix, 0.0))
        coarse = jnp.maximum(found.threshold, _NEARBY_RANK * jnp.max(found.pivots, initial=0.0))
        return found.rank, jnp.sum(found.pivots > coarse)

    def neighbour(sample_key: PRNGKeyArray) -> tuple[Array, ...]:
        step = spread.astype(q.dtype) * unit * jr.normal(sample_key, (structure.nv,), q.dtype)
        displaced = system.retract(q, step)
        at, residual = samples_closed(displaced)
        # Rounding of the residual grows with the distance from the world's origin.
        sizes = jnp.abs(at) / structure.coordinate_scale(system.characteristic_length())
        rounding = 50 * jnp.finfo(q.dtype).eps * jnp.max(sizes, initial=0.0)
        gap = jnp.max(jnp.abs(residual), initial=0.0)
        way = system.difference(q, at) / (unit * spread.astype(q.dtype))
        other = jnp.max(jnp.abs(way), initial=0.0) > _SAME
        closed = gap <= jnp.maximum(_NEARBY_CLOSED, rounding)
        return displaced, at, way, closed & other, (gap <= _FOUND_AGAIN) & ~other

    displaced, nearby, ways, closed, again = jax.vmap(neighbour)(jr.split(key, samples))
    # As one batch, the configuration itself first: see AbstractCriterion.measure.
    exact, coarse = jax.vmap(ranks_at)(jnp.concatenate([q[None], nearby, displaced]))
    rank, ranks = exact[0], coarse[1 : samples + 1]
    generic = jnp.maximum(rank, jnp.max(jnp.where(closed, ranks, 0)))
    check = check_numbers(system, q, system.characteristic_length(), q, v, t)
    mobility, moving = _motions(system, q, v, t, jnp.where(closed[:, None], ways, 0.0))
    count = jnp.sum(closed)
    isolated = (count == 0) & (jnp.sum(again) > 0) & (mobility > 0)
    # Of many motions a few neighbours make not all.
    missing = moving < jnp.minimum(mobility, count // 2)
    singular = (rank < generic) | isolated | missing
    numbers = (rank, generic, jnp.maximum(rank, jnp.max(coarse[samples + 1 :])), mobility, moving)
    rank, generic, open_rank, mobility, moving = (
        jnp.where(check.valid, x, NO_RANK) for x in numbers
    )
    singular, isolated = singular & check.valid, isolated & check.valid
    return Singularity(
        check.result(),
        rank,
        generic,
        singular,
        isolated,
        open_rank,
        mobility,
        moving,
        ranks,
        closed,
        len(structure.rows),
    )


def _motions(
    system: AbstractSystem,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    t: Float[Array, ""],
    ways: Float[Array, "samples nv"],
) -> tuple[IntScalar, IntScalar]:
    """Number of motions that C allows here, drivers released, and number of them along these
    displacements (without units, relative to the spread)."""
    structure = system.structure
    matrix, _, _ = scaled_constraint_matrix(system, q, v, t)
    matrix = jnp.where(structure.driven[:, None] | ~jnp.isfinite(matrix), 0.0, matrix)
    none = jnp.zeros((max(0, structure.nv - len(structure.rows)), structure.nv), matrix.dtype)
    _, values, rows = jnp.linalg.svd(jnp.concatenate([matrix, none]), full_matrices=False)
    free = values <= _FREE * jnp.max(values, initial=0.0)
    along = jnp.where(free, jnp.nan_to_num(ways) @ rows.T, 0.0)
    sizes = jnp.linalg.svd(along, compute_uv=False) / np.sqrt(len(ways))
    return jnp.sum(free), jnp.sum(sizes > _MADE)
