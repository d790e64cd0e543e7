"""Permanent redundancy, or a singular configuration?"""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Bool, Float, Int

from ..._custom_types import BoolScalar, IntScalar, PRNGKeyArray, RealScalarLike
from ..._kinematics import close
from ..._system import AbstractSystem
from .._analyze import scaled_constraint_matrix
from .._criteria import AbstractCriterion, QR


# Near a singular configuration a residual r leaves a distance of sqrt(r) to the closed ones, and
# rows that are dependent on them have singular values of that size. So neighbours must close to
# rounding, and their rank is decided coarsely: what counts there is of the size of the spread.
_NEARBY_CLOSED = 1e-13
_NEARBY_RANK = 1e-5


class Singularity(eqx.Module):
    """- `rank`: here. `generic_rank`: the largest at nearby closed configurations.
    - `singular`: `rank < generic_rank`; what is redundant beyond the generic redundancy is
      redundant in this configuration alone.
    - `ranks`, `closed` (samples,): at each neighbour, and whether the neighbour closed (one
      that did not is not counted).
    """

    rank: IntScalar
    generic_rank: IntScalar
    singular: BoolScalar
    ranks: Int[Array, " samples"]
    closed: Bool[Array, " samples"]


def singularity(
    system: AbstractSystem,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"] | None = None,
    t: RealScalarLike = 0.0,
    *,
    key: PRNGKeyArray,
    samples: int = 16,
    spread: float = 0.05,
    criterion: AbstractCriterion | None = None,
) -> Singularity:
    """Compares the rank of C here with that at nearby assembled configurations.

    Each neighbour is a random displacement of all coordinates (`spread` of the characteristic
    length, or as many radians), closed again at the same time t, so that drivers keep their
    values. A mechanism that cannot move has no neighbours but itself.

    **Arguments:** the state; `key`: a JAX random key; `samples`: number of neighbours;
    `spread`: size of the displacements; `criterion`: whose tolerance decides the ranks.
    """
    velocity = jnp.zeros((system.structure.nv,), q.dtype) if v is None else v
    chosen = QR() if criterion is None else criterion
    return _singularity(system, q, velocity, jnp.asarray(t, q.dtype), key, samples, spread, chosen)


@eqx.filter_jit
def _singularity(
    system: AbstractSystem,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    t: Float[Array, ""],
    key: PRNGKeyArray,
    samples: int,
    spread: float,
    criterion: AbstractCriterion,
) -> Singularity:
    length = jnp.where(system.structure.length_columns, system.characteristic_length(), 1.0)

    def ranks_at(at: Float[Array, " nq"]) -> tuple[IntScalar, IntScalar]:
        matrix, _, _ = scaled_constraint_matrix(system, at, v, t)
        found = criterion.decompose(matrix)
        coarse = jnp.maximum(found.threshold, _NEARBY_RANK * jnp.max(found.pivots, initial=0.0))
        return found.rank, jnp.sum(found.pivots > coarse)

    def neighbour(sample_key: PRNGKeyArray) -> tuple[Float[Array, " nq"], BoolScalar]:
        step = spread * length * jr.normal(sample_key, (system.structure.nv,), q.dtype)
        at, residual = close(system, system.retract(q, step), t)
        # Rounding of the residual grows with the distance from the world's origin.
        rounding = 50 * jnp.finfo(q.dtype).eps * jnp.max(jnp.abs(at)) / jnp.min(length)
        return at, jnp.all(jnp.abs(residual) <= jnp.maximum(_NEARBY_CLOSED, rounding))

    nearby, closed = jax.vmap(neighbour)(jr.split(key, samples))
    # As one batch, the configuration itself first: see AbstractCriterion.measure.
    exact, coarse = jax.vmap(ranks_at)(jnp.concatenate([q[None], nearby]))
    rank, ranks = exact[0], coarse[1:]
    generic = jnp.maximum(rank, jnp.max(jnp.where(closed, ranks, 0)))
    return Singularity(rank, generic, rank < generic, ranks, closed)
