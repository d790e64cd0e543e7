"""The geometric constraints of a system among all its rows."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from .._custom_types import RealScalarLike
from .._linalg import AbstractDescriptor, placed
from .._system import AbstractSystem


def geometric_descriptor(
    system: AbstractSystem, q: Float[Array, " nq"], t: RealScalarLike
) -> AbstractDescriptor:
    """M and the geometric rows of C, zero in the place of the others."""
    descriptor = system.descriptor(q, jnp.zeros((system.structure.nv,), q.dtype), t)
    if system.structure.geometric.all():
        return descriptor
    return descriptor.keeping(system.structure.geometric)


def geometric_gap(
    system: AbstractSystem, q: Float[Array, " nq"], t: RealScalarLike
) -> Float[Array, " rows"]:
    """Phi, zero in the place of velocity constraints."""
    residual = system.position_residual(q, t)
    structure = system.structure
    return placed([residual], [structure.geometric_rows], len(structure.rows))
