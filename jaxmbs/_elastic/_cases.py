"""Reactions and verdicts of one state with different parts elastic.

Which parts are elastic is data: the compliances of the others are multiplied by zero. So there is
one program for all subsets, which takes them in chunks of one size.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float, Int

from .. import _printing
from .._dynamics._friction import solve_with_friction
from .._formulations import ElasticResolution
from .._programs import program
from .._reactions import wrench_maps
from .._solution import RESULTS
from .._solvability import QR
from .._solvability._analyze import analyze_matrix, scaled
from .._solvability._state import check_numbers
from .._system import MultibodySystem


# Subsets in one call of the program; what is missing is filled up.
_CHUNK = 32


class Case(NamedTuple):
    """A case to evaluate: the compliances that are not zero, and whether there are misfits."""

    elastic: tuple[str, ...]
    misfits: bool = True


class CaseAnswer(NamedTuple):
    """The results of a case.

    - `failed`: empty, or why the reactions were not found. `rank`: of C with the columns of what
      is elastic; `doubtful`: is the decision marginal?
    - `decided` (constraints,): is the reaction unique? `on_bodies` (pairs, 2): force and torque of
      a constraint on a body.
    - `force` (places, dim), `torque` (places, turns): on the place's body, world axes (N, N m).
    - `deformation_forces` (deformations,): what each carries (`Elasticity.deformation_forces`).
    """

    failed: str
    rank: int
    doubtful: bool
    decided: Bool[np.ndarray, " constraints"]
    on_bodies: Bool[np.ndarray, "pairs 2"]
    force: Float[np.ndarray, "places dim"]
    torque: Float[np.ndarray, "places turns"]
    deformation_forces: Float[np.ndarray, " deformations"]


class _Numbers(NamedTuple):
    """The results of a case as arrays."""

    result: RESULTS
    rank: Int[Array, ""]
    doubtful: Bool[Array, ""]
    decided: Bool[Array, " constraints"]
    on_bodies: Bool[Array, "pairs 2"]
    force: Float[Array, "places dim"]
    torque: Float[Array, "places turns"]
    deformation_forces: Float[Array, " deformations"]


def answers(
    system: MultibodySystem,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    t: Float[Array, ""],
    cases: Sequence[Case],
) -> list[CaseAnswer]:
    """The results of each case, in order."""
    names = [info.name for info in system.structure.compliances]
    masks = np.array([[name in case.elastic for name in names] for case in cases], dtype=float)
    fits = np.array([case.misfits for case in cases], dtype=float)
    found: list[CaseAnswer] = []
    for start in range(0, len(cases), _CHUNK):
        # The last one again and again.
        places = np.minimum(np.arange(start, start + _CHUNK), len(cases) - 1)
        numbers = _evaluate(system, q, v, t, jnp.asarray(masks[places]), jnp.asarray(fits[places]))
        numbers = jax.tree.map(np.asarray, numbers)
        for i in range(min(_CHUNK, len(cases) - start)):
            own = jax.tree.map(lambda x, i=i: x[i], numbers)
            answer = CaseAnswer(
                failed=_printing.outcome(own.result),
                rank=int(own.rank),
                doubtful=bool(own.doubtful),
                decided=own.decided,
                on_bodies=own.on_bodies,
                force=own.force,
                torque=own.torque,
                deformation_forces=own.deformation_forces,
            )
            found.append(answer)
    return found


@program
def _evaluate(
    system: MultibodySystem,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    t: Float[Array, ""],
    masks: Float[Array, "cases compliances"],
    fits: Float[Array, " cases"],
) -> _Numbers:
    structure, criterion = system.structure, QR()
    length = system.characteristic_length().astype(q.dtype)
    matrix = system.constraint_matrix(q, v, t)
    columns = system.deformation_matrix(q, v, t)
    elasticity = system.elasticity(q, v, t)
    assert elasticity is not None
    gives = elasticity.compliance > 0
    owner = np.repeat(
        np.arange(len(structure.compliances)), [len(c.directions) for c in structure.compliances]
    )
    check = check_numbers(system, matrix, length, q, v, t)
    places = system.places(q, v, t)
    maps = wrench_maps(places, matrix)

    def case(mask: Float[Array, " compliances"], fit: Float[Array, ""]) -> _Numbers:
        elastic = gives & (mask[owner] > 0)
        both = jnp.concatenate([matrix, jnp.where(elastic, columns, 0.0)], axis=1)
        rows, row_scale = scaled(structure, both, length)
        report = analyze_matrix(structure, rows, row_scale, length, check, criterion)
        # One decomposition at a time (see `AbstractCriterion.measure`).
        place, _ = lax.optimization_barrier((q, report.reaction_measure))
        masked = _masked(system, mask, fit)
        loads = solve_with_friction(masked, ElasticResolution(), place, v, t)
        force, torque = maps.of(loads.multipliers, places.layout)
        return _Numbers(
            loads.result,
            report.rank,
            report.doubtful,
            report.reaction_unique.unique,
            report.body_unique.unique,
            force,
            torque,
            elasticity.deformation_forces(loads.multipliers),
        )

    return jax.vmap(case)(masks, fits)


def _masked(
    system: MultibodySystem, mask: Float[Array, " compliances"], fit: Float[Array, ""]
) -> MultibodySystem:
    """The system, whose compliances are multiplied by the mask, and whose misfits by `fit`."""
    giving = system.deformations
    assert giving is not None
    compliances = [
        own.deformation.compliance * mask[own.indices["compliance"]][:, None]
        for own in giving.groups
    ]
    misfits = [own.deformation.misfit * fit for own in giving.groups]

    # Of a copy whose leaves are not arrays.
    def numbers(x: Any) -> list[Any]:
        groups = x.deformations.groups
        return [
            *(own.deformation.compliance for own in groups),
            *(own.deformation.misfit for own in groups),
        ]

    return eqx.tree_at(numbers, system, [*compliances, *misfits])
