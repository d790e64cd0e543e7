"""Parts that are so light, beside the loads that they carry, that C M^-1 C^T loses them.

A light part between heavy ones gives S = C M^-1 C^T, in rows of unit length, an eigenvalue as small
as the ratio of the masses, over a chain of n of them as small as that over n. Solves by a factor of
S + mu I lose the forces that hang on eigenvalues near mu and below it, though C itself has nothing
small. So a system looks once, when it is made, whether S has such eigenvalues that another metric
has not: then multipliers of minimum norm are found by dense decompositions of C M^-1/2, and ways
back onto the constraints are measured by masses of one size. That is static: programs of other
systems have not one equation of this.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Float

from .._bodies.base import AbstractRigidInertia
from ._blocks import BodyGroup


# Eigenvalues of S, in rows of unit length, below this are too near to mu: what cleans the null
# space takes the cube of mu over the eigenvalue of a force along.
_SMALL = 1e-5

# Singular values that are this part of those of another metric are lost for the masses; those below
# the other are zero, of redundant rows.
_LOST, _ZERO = 0.1, 1e-13

# Beyond so many velocities a dense decomposition takes longer than users wait.
_MOST = 1000


def loses_light_parts(system: Any) -> bool:
    """Does C M^-1 C^T of this system lose what C has, at its reference configuration? False while
    numbers are traced, and for systems that are too large."""
    structure = system.structure
    if structure.nv > _MOST or not structure.rows or structure.semidefinite:
        return False
    if any(isinstance(leaf, Tracer) for leaf in jax.tree.leaves(eqx.filter(system, eqx.is_array))):
        return False
    rigid = [g for g in system.body_groups if isinstance(g.inertia, AbstractRigidInertia)]
    coupled = {c for e in system.element_groups for c in e.indices["v"].ravel().tolist()}
    diagonals = [_diagonal(g) for g in rigid if not coupled & set(g.indices["v"].ravel().tolist())]
    bodies = sum(len(own) for own in diagonals)
    if bodies < 2:
        return False
    masses = np.concatenate([own[:, 0] for own in diagonals])
    moments = np.concatenate([own[:, system.gravity.shape[0] :].ravel() for own in diagonals])
    ratios = [np.min(x) / np.max(x) for x in (masses, moments) if x.size and np.max(x) > 0]
    # Cheap, and true of most: no eigenvalue can be as small.
    if not ratios or min(ratios) / bodies > _SMALL:
        return False
    rows, mass, unit = map(np.asarray, _matrices(system))
    lengths = np.linalg.norm(rows * unit, axis=1)
    if not np.all(np.isfinite(rows)) or not lengths.any():
        return False
    own, others = _values(rows, mass), _values(rows * unit, np.eye(len(mass)))
    # Next to a singular configuration both are small.
    return bool(np.any((own < np.sqrt(_SMALL)) & (own < _LOST * others)))


def _diagonal(group: BodyGroup) -> np.ndarray:
    """The diagonals of M (n, nv) of rigid bodies, which are constant."""
    count = group.indices["q"].shape[1]
    still, now = jnp.zeros((count,)), jnp.zeros(())

    def diagonal(inertia: Any) -> Float[Array, " nv"]:
        return jnp.diagonal(inertia.mass_matrix(still, now))

    return np.asarray(eqx.filter_vmap(diagonal)(group.inertia))


@eqx.filter_jit
def _matrices(
    system: Any,
) -> tuple[Float[Array, "rows nv"], Float[Array, "nv nv"], Float[Array, " nv"]]:
    """C and M at the reference configuration, and what counts as one of each velocity."""
    q, v, t = system.reference_q, system.initial_v, jnp.zeros(())
    descriptor = system.descriptor(q, v, t)
    return descriptor.constraint_matrix(), descriptor.mass_matrix(), system.column_scale()


def _values(rows: np.ndarray, mass: np.ndarray) -> np.ndarray:
    """The singular values of C M^-1/2, in rows of unit length, but for those that are zero."""
    # M is in blocks of sizes far apart: its Cholesky factor is exact in each.
    half = np.linalg.solve(np.linalg.cholesky(mass), rows.T).T
    lengths = np.linalg.norm(half, axis=1)
    half = half / np.where(lengths > 0, lengths, 1.0)[:, None]
    values = np.linalg.svd(half, compute_uv=False)
    return np.where(values > _ZERO, values, 1.0)
