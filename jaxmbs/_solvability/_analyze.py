"""Solvability of reactions: one decomposition answers every question about multipliers."""

import dataclasses
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float

from .. import _checks, _settings
from .._checks import known_array
from .._custom_types import BoolScalar, IntScalar, RealScalarLike, Scalar, Setting
from .._limits import Tolerances
from .._linalg import normalise_rows, RankDecomposition
from .._programs import Compiling, program
from .._system import AbstractSystem, refuse_vanishing_rows, Structure, takes_state
from .._verdict import Verdict
from . import _expression
from ._criteria import AbstractCriterion, chosen_criterion
from ._expression import parse_combination
from ._report import Layout, NO_RANK, Solvability
from ._state import check_numbers, StateCheck


@takes_state(decides_rank=True)
def analyze(
    system: AbstractSystem,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"] | None = None,
    t: RealScalarLike = 0.0,
    *,
    criterion: Setting[AbstractCriterion | None] = None,
    subsets: Setting[Sequence[Sequence[str]]] = (),
    combinations: Setting[Sequence[str]] = (),
    elastic: Setting[bool] = False,
) -> Solvability:
    """Decide which reactions a rigid-body model determines at this state.

    With N a basis of the left null space of C, multipliers are known up to N z. So the
    generalized reaction C_X^T lambda_X of a joint is unique iff C_X^T N_X = 0 (Wojtyra &
    Fraczek 2013, eq. 27), its resultant on body i iff H_i C_X^T N_X = 0 (Wojtyra & Pekal,
    eq. 5), and a combination c^T lambda iff c^T N = 0. Lengths are scaled by the system's
    characteristic length and rows normalised first, so that no verdict depends on units.

    Where bodies or joints are flexible (`jaxmbs.elastic`) the multipliers are known up to those N z
    alone that strain none of them, D^T N z = 0 with D the columns of their deformations. So
    `elastic` gives the verdicts of the rigid bodies and these compliances together; only whether a
    compliance is zero matters, not its value. Other compliances decide other reactions, and each
    choice of them other values.

    Works under `jit` and `vmap`; the rank is data. Verdicts are not differentiable. A state that is
    not finite, or whose quaternions are not rotations, is refused; where numbers are traced, the
    `result` reports it and nothing is decided.

    **Arguments:**

    - `q` (nq,), `v` (nv,), `t` (s): the state; v (default 0) matters to nonlinear velocity
      constraints alone. Where it is not closed the report states that: its verdicts are then those
      of C there, and need not be those of the mechanism.
    - `criterion`: `QR()` (default), `SVD()` or `RankComparison()`, with their tolerance.
    - `subsets`: names of joints, drivers or rows whose resultant is required.
    - `combinations`: linear expressions in row names, such as `"W1 - W2"`.
    - `elastic`: with the compliances of the system; default without.

    **Returns:** a `Solvability`, of whose numbers `rank` and `redundancy` count the deformations
    with `elastic`, and the others do not.

    **Raises:** `ValueError` for a name or expression that means nothing in this system;
    `TypeError` or `ValueError` for an invalid state or criterion.
    """
    structure, chosen = system.structure, chosen_criterion(criterion, system)
    subsets = _subsets(subsets)
    for subset in subsets:
        for name in subset:
            structure.rows_of(name)
    combinations = _settings.instances(combinations, str, "combinations", '"W1 - W2"')
    for expression in combinations:
        parse_combination(expression, structure.row_names)
    check_elastic(structure, elastic)
    velocity = known_array(np.zeros(structure.nv, q.dtype)) if v is None else v
    t = t.astype(q.dtype) if isinstance(t, jax.Array) else known_array(np.asarray(t, q.dtype))
    refuse_vanishing_rows(system, q, velocity, t)
    report = _analyze(
        system,
        q,
        velocity,
        t,
        chosen,
        subsets,
        combinations,
        elastic,
    )
    if structure.possible_precision is None or not structure.has_loops:
        return report
    possible = jnp.asarray(Tolerances(np.asarray(structure.possible_precision)).rows)
    return dataclasses.replace(report, possible_precision=possible)


def check_elastic(structure: Structure, elastic: Any) -> None:
    """
    **Raises:** `TypeError`, and `ValueError` for a system without compliances.
    """
    if _settings.flag(elastic, "elastic") and not structure.compliances:
        raise ValueError(
            "elastic=True asks what compliances decide, and nothing of this system gives way; give "
            "it compliances, such as jaxmbs.elastic.Rod or jaxmbs.elastic.JointCompliance."
        )


def _subsets(subsets: Any) -> tuple[tuple[str, ...], ...]:
    if isinstance(subsets, str) or not isinstance(subsets, Sequence):
        raise TypeError(
            f'subsets must be a list such as [["A", "B"]], got {_checks.shown(subsets)}.'
        )
    return tuple(_settings.names(x, "each of subsets", '["A", "B"]') for x in subsets)


@program(compiling=Compiling.ONCE)
def _analyze(
    system: AbstractSystem,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    t: Float[Array, ""],
    criterion: AbstractCriterion,
    subsets: tuple[tuple[str, ...], ...],
    expressions: tuple[str, ...],
    elastic: bool,
) -> Solvability:
    length = system.characteristic_length().astype(q.dtype)
    raw = system.constraint_matrix(q, v, t)
    if elastic:
        raw = with_deformations(system, raw, q, v, t)
    matrix, row_scale = scaled(system.structure, raw, length)
    check = check_numbers(system, raw, length, q, v, t)
    return analyze_matrix(
        system.structure, matrix, row_scale, length, check, criterion, subsets, expressions
    )


def scaled_constraint_matrix(
    system: AbstractSystem, q: Float[Array, " nq"], v: Float[Array, " nv"], t: RealScalarLike
) -> tuple[Float[Array, "rows nv"], Float[Array, " rows"], Float[Array, ""]]:
    """C with linear columns times the characteristic length and rows of unit length; the
    lengths that the rows had; the characteristic length."""
    length = system.characteristic_length().astype(q.dtype)
    raw = system.constraint_matrix(q, v, t)
    return *scaled(system.structure, raw, length), length


def with_deformations(
    system: AbstractSystem,
    matrix: Float[Array, "rows nv"],
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    t: RealScalarLike,
) -> Float[Array, "rows columns"]:
    """C with the columns of deformations after those of velocities; zero where a compliance is."""
    elasticity = system.elasticity(q, v, t)
    assert elasticity is not None
    columns = system.deformation_matrix(q, v, t)
    return jnp.concatenate([matrix, jnp.where(elasticity.compliance > 0, columns, 0.0)], axis=1)


def scaled(
    structure: Structure, matrix: Float[Array, "rows columns"], length: Scalar
) -> tuple[Float[Array, "rows columns"], Float[Array, " rows"]]:
    """C without units, with rows of unit length, and the lengths that they had."""
    columns = structure.column_scale(length)
    if matrix.shape[1] > structure.nv:
        columns = jnp.concatenate([columns, structure.deformation_scale(length)])
    return normalise_rows(matrix * columns[None, :])


def analyze_matrix(
    structure: Structure,
    matrix: Float[Array, "rows columns"],
    row_scale: Float[Array, " rows"],
    length: Float[Array, ""],
    check: StateCheck,
    criterion: AbstractCriterion,
    subsets: tuple[tuple[str, ...], ...] = (),
    expressions: tuple[str, ...] = (),
) -> Solvability:
    """All verdicts from a scaled constraint matrix, and from what its state is worth. The matrix
    may have the columns of deformations after those of velocities."""
    matrix, row_scale = lax.stop_gradient((matrix, row_scale))
    valid = check.decided()
    # An invalid matrix is not decomposed.
    matrix = jnp.where(valid, matrix, 0.0)
    layout = _layout(structure, criterion, subsets, expressions)
    if matrix.shape[1] > structure.nv:
        layout = layout._replace(elastic=tuple(own.name for own in structure.compliances))
    decomposition, ranks = _decompose(structure, matrix, criterion)
    rows, rank = len(structure.rows), decomposition.rank
    measures = _measures(layout, decomposition, matrix, row_scale, criterion)
    near = [criterion.near_threshold(measure) for measure in measures]
    # Measures without a verdict are NaN, so that none can be mistaken for that of a verdict.
    reaction, multiplier, body, subset, subset_body, combination = (
        (jnp.where(valid, measure, jnp.nan), Verdict.where(valid, criterion.unique(measure)))
        for measure in measures
    )
    rank, redundancy, mobility, rank_geometric, rank_velocity = (
        jnp.where(valid, number, NO_RANK)
        for number in (rank, rows - rank, structure.nv - ranks.rigid, *ranks[1:])
    )
    return Solvability(
        result=check.result(),
        residual=check.residual,
        rank=rank,
        redundancy=redundancy,
        mobility=mobility,
        rank_geometric=rank_geometric,
        rank_velocity=rank_velocity,
        rank_gap=jnp.where(valid, decomposition.gap(), jnp.nan),
        margin=jnp.where(valid, decomposition.margin(), jnp.nan),
        dropped=jnp.where(valid, decomposition.dropped(), jnp.nan),
        rounding=check.rounding,
        tolerance=criterion.tolerance,
        near_threshold=jnp.any(jnp.concatenate(near)),
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
        **_as_written(layout, decomposition, matrix, criterion, valid),
    )


def _as_written(
    layout: Layout,
    decomposition: RankDecomposition,
    matrix: Float[Array, "rows columns"],
    criterion: AbstractCriterion,
    valid: BoolScalar,
) -> dict[str, Any]:
    """Results for numbers of limited precision: their precision, and the verdicts for the numbers
    as written."""
    if criterion.precision is None:
        return {}
    pivots = decomposition.pivots
    threshold = criterion.tolerance * jnp.max(pivots, initial=0.0)
    rank = jnp.sum(pivots > threshold)
    columns = jnp.arange(decomposition.null_space.shape[1])
    exact = RankDecomposition(
        rank, pivots, threshold, jnp.where(columns >= rank, decomposition.null_space, 0.0)
    )
    own = [(tuple(range(c.start, c.stop)), c.columns) for c in layout.structure.constraints]
    asked = _expression.with_fewest_components(_expression.generalized_reactions(matrix, own))
    measure = criterion.measure(exact, matrix, [asked])[0]
    return {
        "precision": criterion.precision,
        "rank_as_written": jnp.where(valid, rank, NO_RANK),
        "reaction_as_written": Verdict.where(valid, criterion.unique(measure)),
    }


def _measures(
    layout: Layout,
    decomposition: RankDecomposition,
    matrix: Float[Array, "rows columns"],
    row_scale: Float[Array, " rows"],
    criterion: AbstractCriterion,
) -> list[Float[Array, " _"]]:
    """Measures of reactions, multipliers, reactions on bodies, subsets, subsets on bodies,
    combinations."""
    structure = layout.structure
    own_rows = [tuple(range(c.start, c.stop)) for c in structure.constraints]
    subset_rows = [_rows_of(structure, subset) for subset in layout.subsets]
    everything = tuple(range(structure.nv))
    own = [(r, c.columns) for r, c in zip(own_rows, structure.constraints, strict=True)]
    on_bodies = [(own_rows[c], b) for c, b in layout.pairs]
    subsets_on_bodies = [(subset_rows[s], b) for s, b in layout.subset_pairs]
    coefficients = jnp.array(
        [parse_combination(e, structure.row_names) for e in layout.expressions], matrix.dtype
    ).reshape(len(layout.expressions), len(structure.rows))
    return criterion.measure(
        decomposition,
        matrix,
        [
            _expression.with_fewest_components(_expression.generalized_reactions(matrix, own)),
            _expression.single_multipliers(structure, matrix.dtype),
            _on_bodies(structure, matrix, on_bodies),
            _expression.generalized_reactions(matrix, [(r, everything) for r in subset_rows]),
            _on_bodies(structure, matrix, subsets_on_bodies),
            _expression.combinations(coefficients / row_scale[None, :]),
        ],
    )


class _Ranks(NamedTuple):
    """Ranks of the columns of velocities: of all rows, of the geometric and of the velocity
    rows."""

    rigid: IntScalar
    geometric: IntScalar
    velocity: IntScalar


def _decompose(
    structure: Structure, matrix: Float[Array, "rows columns"], criterion: AbstractCriterion
) -> tuple[RankDecomposition, _Ranks]:
    """The decomposition of C, and the ranks of parts of it."""
    geometric, elastic = structure.geometric, matrix.shape[1] > structure.nv
    mixed = np.any(geometric) and not np.all(geometric)
    if not mixed and not elastic:
        whole = criterion.decompose(matrix)
        rank, zero = whole.rank, jnp.asarray(0)
        own = (rank, zero) if np.all(geometric) else (zero, rank)
        return whole, _Ranks(rank, *own)
    # As one batch: see AbstractCriterion.measure. Rows and columns of zeros change no rank.
    rows = np.stack([np.ones_like(geometric), geometric, ~geometric])
    masks = np.repeat(rows[:, :, None], matrix.shape[1], axis=2)
    if elastic:
        rigid = masks & (np.arange(matrix.shape[1]) < structure.nv)
        masks = np.concatenate([masks[:1], rigid])
    batch = jax.vmap(criterion.decompose)(matrix[None] * jnp.asarray(masks))
    whole = jax.tree.map(lambda x: x[0], batch)
    ranks = jnp.sum(batch.pivots > whole.threshold, axis=1)
    return whole, _Ranks(*ranks[-3:])


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
    """Resultant force and resultant torque, in turn, of rows on a body; of one without a frame of
    its own the generalized force, and nothing."""
    selections = []
    for rows, body in pairs:
        selections += [(rows, columns) for columns in structure.bodies[body].resultants]
    return _expression.generalized_reactions(matrix, selections)
