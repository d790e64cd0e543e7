"""M and C given as matrices, in the blocks of one body with all columns and one joint with all
rows."""

from typing import Any

import jax.numpy as jnp

from jaxmbs._linalg import (
    BlockKKTMatrices,
    BlockMass,
    cholesky,
    cholesky_solve,
    ConstraintBlock,
    layout_of,
    Pattern,
)


def kkt_matrices(mass: Any, constraints: Any) -> BlockKKTMatrices:
    """Of M (nv, nv) and C (rows, nv)."""
    rows, columns = constraints.shape
    joint = ConstraintBlock(tuple(range(rows)), 0)
    inverse = cholesky_solve(cholesky(jnp.asarray(mass)), jnp.eye(columns))
    pattern = Pattern((joint,), (tuple(range(columns)),), rows)
    rows_of_c, mass_of, inverse_of = (
        (jnp.asarray(x)[..., None],) for x in (constraints, mass, inverse)
    )
    layout = layout_of(pattern)
    return BlockKKTMatrices(rows_of_c, BlockMass(mass_of, inverse_of, (), layout), layout)
