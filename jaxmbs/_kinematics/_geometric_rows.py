"""The geometric constraints of a system among all its rows."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from .._custom_types import RealScalarLike
from .._linalg import AbstractKKTMatrices, scatter_add
from .._system import AbstractSystem


def geometric_descriptor(
    system: AbstractSystem, q: Float[Array, " nq"], t: RealScalarLike
) -> AbstractKKTMatrices:
    """M, as a metric, and the geometric rows of C, zero in the place of the others."""
    descriptor = system.descriptor(q, jnp.zeros((system.structure.nv,), q.dtype), t).metric()
    if system.structure.geometric.all():
        return descriptor
    return descriptor.mask_rows(system.structure.geometric)


def position_residual(
    system: AbstractSystem, q: Float[Array, " nq"], t: RealScalarLike
) -> Float[Array, " rows"]:
    """Phi, zero in the place of velocity constraints."""
    residual = system.position_residual(q, t)
    structure = system.structure
    return scatter_add([residual], [structure.geometric_rows], len(structure.rows))


def scaled_geometric_matrix(
    system: AbstractSystem, q: Float[Array, " nq"], t: RealScalarLike
) -> Float[Array, "geometric nv"]:
    """C_h without units: rows and columns of lengths relative to the characteristic length."""
    structure, length = system.structure, system.characteristic_length()
    rest = jnp.zeros((structure.nv,), q.dtype)
    matrix = system.constraint_matrix(q, rest, t)[structure.geometric_rows]
    rows = structure.residual_scale(length)[structure.geometric_rows]
    columns = structure.column_scale(length)
    return matrix * columns[None, :] / rows[:, None]
