"""Solvability of reactions: one decomposition answers every question about multipliers."""

import functools
import warnings
from collections.abc import Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float

from .._custom_types import IntScalar, RealScalarLike
from .._linalg import normalise_rows, RankDecomposition
from .._system import AbstractSystem, Structure
from . import _questions
from ._criteria import AbstractCriterion, QR
from ._expression import parse_combination
from ._report import Layout, Solvability


def analyze(
    system: AbstractSystem,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"] | None = None,
    t: RealScalarLike = 0.0,
    *,
    criterion: AbstractCriterion | None = None,
    subsets: Sequence[Sequence[str]] = (),
    combinations: Sequence[str] = (),
) -> Solvability:
    """Which reactions does a rigid-body model determine at this state?

    With N a basis of the left null space of C, multipliers are known up to N z. So the
    generalized reaction C_X^T lambda_X of a joint is unique iff C_X^T N_X = 0 (Wojtyra &
    Fraczek 2013, eq. 27), its resultant on body i iff H_i C_X^T N_X = 0 (Wojtyra & Pekal,
    eq. 5), and a combination c^T lambda iff c^T N = 0. Lengths are scaled by the system's
    characteristic length and rows normalised first, so that no verdict depends on units.

    Works under `jit` and `vmap`; the rank is data. Verdicts are not differentiable.

    **Arguments:**

    - `q` (nq,), `v` (nv,), `t` (s): the state. It should be closed; v (default 0) matters to
      nonlinear velocity constraints alone.
    - `criterion`: `QR()` (default), `SVD()` or `RankComparison()`, with their tolerance.
    - `subsets`: names of joints, drivers or rows whose resultant is asked for.
    - `combinations`: linear expressions in row names, such as `"W1 - W2"`.

    **Returns:** a `Solvability`.

    **Raises:** `ValueError` for a name or expression that means nothing in this system.
    """
    if q.dtype == jnp.float32:
        _warn_single_precision()
    structure = system.structure
    for subset in subsets:
        for name in subset:
            structure.rows_of(name)
    for expression in combinations:
        parse_combination(expression, structure.row_names)
    velocity = jnp.zeros((structure.nv,), q.dtype) if v is None else v
    return _analyze(
        system,
        q,
        velocity,
        jnp.asarray(t, q.dtype),
        QR() if criterion is None else criterion,
        tuple(tuple(subset) for subset in subsets),
        tuple(combinations),
    )


@eqx.filter_jit
def _analyze(
    system: AbstractSystem,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    t: Float[Array, ""],
    criterion: AbstractCriterion,
    subsets: tuple[tuple[str, ...], ...],
    expressions: tuple[str, ...],
) -> Solvability:
    matrix, row_scale, length = scaled_constraint_matrix(system, q, v, t)
    return analyze_matrix(
        system.structure, matrix, row_scale, length, criterion, subsets, expressions
    )


def scaled_constraint_matrix(
    system: AbstractSystem, q: Float[Array, " nq"], v: Float[Array, " nv"], t: RealScalarLike
) -> tuple[Float[Array, "rows nv"], Float[Array, " rows"], Float[Array, ""]]:
    """C with linear columns times the characteristic length and rows of unit length; the
    lengths that the rows had; the characteristic length."""
    length = system.characteristic_length().astype(q.dtype)
    columns = jnp.where(system.structure.length_columns, length, 1.0)
    matrix, row_scale = normalise_rows(system.constraint_matrix(q, v, t) * columns[None, :])
    return matrix, row_scale, length


def analyze_matrix(
    structure: Structure,
    matrix: Float[Array, "rows nv"],
    row_scale: Float[Array, " rows"],
    length: Float[Array, ""],
    criterion: AbstractCriterion,
    subsets: tuple[tuple[str, ...], ...] = (),
    expressions: tuple[str, ...] = (),
) -> Solvability:
    """All verdicts from a scaled constraint matrix."""
    matrix, row_scale = lax.stop_gradient((matrix, row_scale))
    layout = _layout(structure, criterion, subsets, expressions)
    decomposition, rank_geometric, rank_velocity = _decompose(structure, matrix, criterion)
    rows, rank = len(structure.rows), decomposition.rank
    own_rows = [tuple(range(c.start, c.stop)) for c in structure.constraints]
    subset_rows = [_rows_of(structure, subset) for subset in subsets]
    everything = tuple(range(structure.nv))
    own = [(r, c.columns) for r, c in zip(own_rows, structure.constraints, strict=True)]
    on_bodies = [(own_rows[c], b) for c, b in layout.pairs]
    subsets_on_bodies = [(subset_rows[s], b) for s, b in layout.subset_pairs]
    coefficients = jnp.array(
        [parse_combination(e, structure.row_names) for e in expressions], matrix.dtype
    ).reshape(len(expressions), rows)
    measures = criterion.measure(
        decomposition,
        matrix,
        [
            _questions.with_fewest_components(_questions.generalized_reactions(matrix, own)),
            _questions.single_multipliers(structure, matrix.dtype),
            _on_bodies(structure, matrix, on_bodies),
            _questions.generalized_reactions(matrix, [(r, everything) for r in subset_rows]),
            _on_bodies(structure, matrix, subsets_on_bodies),
            _questions.combinations(coefficients / row_scale[None, :]),
        ],
    )
    reaction, multiplier, body, subset, subset_body, combination = (
        (measure, criterion.unique(measure)) for measure in measures
    )
    return Solvability(
        rank=rank,
        redundancy=rows - rank,
        mobility=structure.nv - rank,
        rank_geometric=rank_geometric,
        rank_velocity=rank_velocity,
        rank_gap=decomposition.gap(),
        margin=decomposition.margin(),
        pivots=decomposition.pivots,
        length=length,
        row_scale=row_scale,
        null_space=decomposition.null_space,
        reaction_measure=reaction[0],
        reaction_unique=reaction[1],
        multiplier_measure=multiplier[0],
        multiplier_unique=multiplier[1],
        body_measure=body[0].reshape(-1, 2),
        body_unique=body[1].reshape(-1, 2),
        subset_measure=subset[0],
        subset_unique=subset[1],
        subset_body_measure=subset_body[0].reshape(-1, 2),
        subset_body_unique=subset_body[1].reshape(-1, 2),
        combination_measure=combination[0],
        combination_unique=combination[1],
        layout=layout,
    )


def _decompose(
    structure: Structure, matrix: Float[Array, "rows nv"], criterion: AbstractCriterion
) -> tuple[RankDecomposition, IntScalar, IntScalar]:
    """The decomposition of C, and the ranks of its geometric and of its velocity rows."""
    geometric = structure.geometric
    zero = jnp.asarray(0)
    if np.all(geometric) or not np.any(geometric):
        whole = criterion.decompose(matrix)
        return (whole, whole.rank, zero) if np.all(geometric) else (whole, zero, whole.rank)
    # As one batch: see AbstractCriterion.measure. Rows of zeros change no rank.
    masks = jnp.asarray(np.stack([np.ones_like(geometric), geometric, ~geometric]))
    batch = jax.vmap(criterion.decompose)(matrix[None] * masks[:, :, None])
    whole = jax.tree.map(lambda x: x[0], batch)
    ranks = jnp.sum(batch.pivots > whole.threshold, axis=1)
    return whole, ranks[1], ranks[2]


def _layout(
    structure: Structure,
    criterion: AbstractCriterion,
    subsets: tuple[tuple[str, ...], ...],
    expressions: tuple[str, ...],
) -> Layout:
    pairs = [(i, b) for i, c in enumerate(structure.constraints) for b in c.bodies]
    subset_pairs = []
    for i, subset in enumerate(subsets):
        owners = {int(structure.row_owner[r]) for r in _rows_of(structure, subset)}
        touched = {b for owner in owners for b in structure.constraints[owner].bodies}
        subset_pairs += [(i, b) for b in sorted(touched)]
    return Layout(
        structure, criterion.word, tuple(pairs), subsets, tuple(subset_pairs), expressions
    )


def _rows_of(structure: Structure, subset: Sequence[str]) -> tuple[int, ...]:
    return tuple(sorted({row for name in subset for row in structure.rows_of(name)}))


def _on_bodies(
    structure: Structure,
    matrix: Float[Array, "rows nv"],
    pairs: Sequence[tuple[Sequence[int], int]],
):
    """Resultant force and resultant torque, in turn, of rows on a body."""
    selections = []
    for rows, body in pairs:
        info = structure.bodies[body]
        selections += [(rows, info.force), (rows, info.torque)]
    return _questions.generalized_reactions(matrix, selections)


@functools.cache
def _warn_single_precision() -> None:
    warnings.warn(
        "A rank is being decided in single precision (float32), where a redundant row and a "
        "nearly redundant one look alike. Switch double precision on with "
        'jax.config.update("jax_enable_x64", True) before the first array is made.',
        stacklevel=3,
    )
