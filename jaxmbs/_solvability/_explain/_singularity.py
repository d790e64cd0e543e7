"""Permanent redundancy, or a singular configuration?"""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
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

# Singular values that vanish here are of the size of the spread at the neighbours: were that not
# well above what counts as zero there, no configuration would ever look singular.
_LEAST_SPREAD = 100 * _NEARBY_RANK


class Singularity(eqx.Module):
    """- `result`: `RESULTS.state_not_valid` where the numbers are no state (then ranks are -1 and
      nothing is singular), `configuration_open` where it is not closed.
    - `rank`: here. `generic_rank`: the largest at nearby closed configurations.
    - `singular`: `rank < generic_rank`; what is redundant beyond the generic redundancy is
      redundant in this configuration alone.
    - `ranks`, `closed` (samples,): at each neighbour, and whether the neighbour closed (one
      that did not is not counted).
    """

    result: RESULTS
    rank: IntScalar
    generic_rank: IntScalar
    singular: BoolScalar
    ranks: Int[Array, " samples"]
    closed: Bool[Array, " samples"]

    def __str__(self) -> str:
        if self.rank.ndim:
            return _printing.batch("configurations", self.rank.shape)
        failed = _printing.outcome(self.result)
        if failed:
            return failed
        rank, nearby, count = int(self.rank), int(self.generic_rank), int(jnp.sum(self.closed))
        neighbours = f"{count} of {self.closed.shape[0]} neighbours, closed"
        if count == 0:
            return f"rank {rank} here; no neighbour closed, so there is none to compare it with"
        if bool(self.singular):
            return f"SINGULAR configuration: rank {rank} here, {nearby} nearby ({neighbours})"
        return f"not singular: rank {rank} here and nearby ({neighbours}); it is permanent"


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
    length, or as many radians), closed again at the same time t, so that drivers keep their
    values. A mechanism that cannot move has no neighbours but itself.

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


@eqx.filter_jit
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
    unit = system.column_scale()

    def ranks_at(at: Float[Array, " nq"]) -> tuple[IntScalar, IntScalar]:
        matrix, _, _ = scaled_constraint_matrix(system, at, v, t)
        found = criterion.decompose(jnp.where(jnp.all(jnp.isfinite(matrix)), matrix, 0.0))
        coarse = jnp.maximum(found.threshold, _NEARBY_RANK * jnp.max(found.pivots, initial=0.0))
        return found.rank, jnp.sum(found.pivots > coarse)

    def neighbour(sample_key: PRNGKeyArray) -> tuple[Float[Array, " nq"], BoolScalar]:
        step = (
            spread.astype(q.dtype) * unit * jr.normal(sample_key, (system.structure.nv,), q.dtype)
        )
        at, residual = close(system, system.retract(q, step), t)
        # Rounding of the residual grows with the distance from the world's origin.
        sizes = jnp.abs(at) / system.structure.coordinate_scale(system.characteristic_length())
        rounding = 50 * jnp.finfo(q.dtype).eps * jnp.max(sizes, initial=0.0)
        return at, jnp.all(jnp.abs(residual) <= jnp.maximum(_NEARBY_CLOSED, rounding))

    nearby, closed = jax.vmap(neighbour)(jr.split(key, samples))
    # As one batch, the configuration itself first: see AbstractCriterion.measure.
    exact, coarse = jax.vmap(ranks_at)(jnp.concatenate([q[None], nearby]))
    rank, ranks = exact[0], coarse[1:]
    generic = jnp.maximum(rank, jnp.max(jnp.where(closed, ranks, 0)))
    check = check_numbers(system, q, system.characteristic_length(), q, v, t)
    rank, generic = (jnp.where(check.valid, x, NO_RANK) for x in (rank, generic))
    return Singularity(check.result(), rank, generic, rank < generic, ranks, closed)
