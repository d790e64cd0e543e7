"""Influence of single elastic parts: reactions with different parts elastic."""

import itertools
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float, Int

from .. import _printing, _settings
from .._checks import listed, shown
from .._custom_types import RealScalarLike, Setting
from .._dynamics._friction import solve_with_friction
from .._formulations import ElasticResolution
from .._limits import AGREEMENT
from .._programs import program
from .._reactions import wrench_maps
from .._solution import RESULTS
from .._solvability import QR
from .._solvability._analyze import analyze_matrix, scaled
from .._solvability._report import openness
from .._solvability._state import check_numbers
from .._system import AbstractSystem, Model, MultibodySystem, Structure, takes_state
from .._system._places import PlaceLayout
from ._report import Flexibility, SubsetAnswer


# --------------------------------------------------------------------------------------------------
# Reactions and verdicts of one state with different parts elastic.
#
# Which parts are elastic is data: the compliances of the others are multiplied by zero. So there is
# one program for all subsets, which takes them in chunks of one size.
# --------------------------------------------------------------------------------------------------


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
        loads = solve_with_friction(masked, place, v, t, formulation=ElasticResolution())
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


# --------------------------------------------------------------------------------------------------
# Assessment of a choice of elastic parts, from the results of several choices.
# --------------------------------------------------------------------------------------------------


# A part carries nothing if its generalized force is this small relative to the largest force of the
# requested joints. Multipliers of an elastic resolution are exact to about 1e-8.
_NOTHING = 1e-6


class Scales(NamedTuple):
    """The characteristic length (m), and which relative difference is agreement."""

    length: float
    tolerance: float


def cases_of(subsets: Sequence[tuple[str, ...]], misfits: bool) -> list[Case]:
    """The cases needed to assess the subsets: the subsets themselves, each without one of its parts
    in turn and, where parts do not fit, each under loads alone."""
    wanted = [Case(own) for own in subsets]
    wanted += [Case(_without(own, part)) for own in subsets for part in own]
    if misfits:
        wanted += [Case(own, misfits=False) for own in subsets]
    return list(dict.fromkeys(wanted))


def judge(
    structure: Structure,
    layout: PlaceLayout,
    joints: Sequence[str],
    elastic: tuple[str, ...],
    found: Mapping[Case, CaseAnswer],
    whole: CaseAnswer,
    scales: Scales,
) -> SubsetAnswer:
    """The answer of one subset. `found`: at least `cases_of` it; `whole`: of all compliances."""
    own = found[Case(elastic)]
    constraints = [structure.constraint_names.index(name) for name in joints]
    undecided = tuple(
        name for name, c in zip(joints, constraints, strict=True) if not own.decided[c]
    )
    places = np.isin(np.array(layout.constraints), constraints)
    largest = _size(whole, places, scales.length)
    difference = np.nan
    if not (undecided or own.failed or whole.failed) and whole.decided[constraints].all():
        apart = own._replace(force=own.force - whole.force, torque=own.torque - whole.torque)
        difference = _size(apart, places, scales.length) / (largest or 1.0)
    seconds = [layout.seconds[c] for c in constraints]
    return SubsetAnswer(
        elastic=elastic,
        redundancy=len(structure.rows) - own.rank,
        doubtful=own.doubtful,
        undecided=undecided,
        disguised=_disguised(structure, elastic, found, largest, scales.length),
        force=own.force[seconds],
        torque=own.torque[seconds],
        deformation_forces=own.deformation_forces,
        difference=float(difference),
        agrees=bool(difference <= scales.tolerance),
        failed=own.failed,
    )


def _size(answer: CaseAnswer, places: np.ndarray, length: float) -> float:
    """The largest force at the places, torques over the characteristic length."""
    forces = np.linalg.norm(answer.force[places], axis=1)
    torques = np.linalg.norm(answer.torque[places], axis=1) / length
    return float(max(np.max(forces, initial=0.0), np.max(torques, initial=0.0)))


def _disguised(
    structure: Structure,
    elastic: tuple[str, ...],
    found: Mapping[Case, CaseAnswer],
    largest: float,
    length: float,
) -> tuple[str, ...]:
    """Parts without which the rank is less, and which loads leave without a force."""
    own = found[Case(elastic)]
    loads = found.get(Case(elastic, misfits=False), own)
    unit = np.asarray(structure.deformation_scale(length)) / length
    forces = np.abs(loads.deformation_forces) * unit
    parts = {part.name: slice(part.start, part.stop) for part in structure.compliances}
    return tuple(
        name
        for name in elastic
        if found[Case(_without(elastic, name))].rank < own.rank
        and not own.failed
        and np.max(forces[parts[name]], initial=0.0) <= _NOTHING * largest
    )


def _without(names: tuple[str, ...], name: str) -> tuple[str, ...]:
    return tuple(other for other in names if other != name)


# All subsets of so many candidates are made, and no more.
_MOST_CANDIDATES = 10


def flexibility(
    system: Setting[Model | MultibodySystem],
    q: Setting[Float[Array, " nq"] | None] = None,
    v: Setting[Float[Array, " nv"] | None] = None,
    t: Setting[RealScalarLike] = 0.0,
    *,
    reactions: Setting[Sequence[str] | None] = None,
    candidates: Setting[Sequence[str] | None] = None,
    subsets: Setting[Sequence[Sequence[str]] | None] = None,
    tolerance: Setting[float] = 0.005,
) -> Flexibility:
    """The elastic parts of a model that decide its reactions, and sets of them that suffice.

    Rigid bodies leave reactions of an overconstrained mechanism undecided, and elastic ones decide
    them; but a few elastic parts among rigid ones may decide them wrongly (Wojtyra & Fraczek 2012,
    sections 4.2 and 6). With c_e the columns of the deformations of a part e (its columns of D,
    `MultibodySystem.deformation_matrix`) and N a basis of the left null space of C, reactions are
    those of `ElasticResolution` with all compliances but those of a subset S zero, and

    - **undecided** is a joint X if C_X^T N z is not zero for all z with c_e^T N z = 0, e in S;
    - **equivalent to dropping rows** is a part e in S without whose N^T c_e the rank of N^T D_S
      would be less, and which carries no load, c_e^T lambda = 0: no other part deforms under one of
      the self-stresses, so that the deformation of e by it must vanish. Its elasticity does what
      dropping a row does. (With misfits it carries what these make of it, whatever the load.)
    - a split that **depends on the choice** is decided, and not that of all elastic parts;
    - the subset of fewest parts that **agrees** with all elastic parts shows which parts need to be
      elastic in a model of elastic bodies.

    Parts on whose body (or in whose joint) every reaction is unique in the rigid model have
    N^T c_e = 0 and decide nothing: they are skipped. One program is compiled for all subsets.

    **Arguments:**

    - `system`: a model or system with compliances (`jaxmbs.elastic`).
    - `q` (nq,), `v` (nv,), `t` (s): the state; default the reference configuration with the
      initial velocities.
    - `reactions`: names of the joints and drivers that matter; default those whose reaction is not
      unique in the rigid model.
    - `candidates`: names of the compliances whose subsets are compared, at most 10; default all.
      Others are zero in them, and not zero where everything is elastic.
    - `subsets`: lists of names of compliances, in place of all subsets of the candidates.
    - `tolerance`: what counts as agreement, relative to the largest force.

    **Returns:** a `Flexibility`.

    **Raises:** `ValueError` for unknown names, too many candidates, a system without compliances,
    or where no reaction remains to be compared; `TypeError` for arguments of other types.
    """
    made = system.system() if isinstance(system, Model) else system
    if not isinstance(made, AbstractSystem):
        raise TypeError(f"system must be a Model or a system of equations, got {shown(system)}.")
    if not isinstance(made, MultibodySystem) or not made.structure.compliances:
        raise ValueError(
            "a study of flexibility needs compliances, and nothing of this system gives way; give "
            "it some, such as jaxmbs.elastic.Rod or jaxmbs.elastic.JointCompliance."
        )
    structure = made.structure
    tolerance = _settings.known_number(tolerance, "tolerance", AGREEMENT)
    asked = None if reactions is None else _joints(structure, reactions)
    known = tuple(part.name for part in structure.compliances)
    varied = known if candidates is None else _compliances(known, candidates, "candidates")
    given = None if subsets is None else _subsets(known, subsets)
    state = (made.reference_q if q is None else q, made.initial_v if v is None else v, t)
    return _study(made, *state, asked, varied, given, tolerance)


def _joints(structure: Structure, names: Any) -> tuple[str, ...]:
    found = _settings.names(names, "reactions", '["A", "B"]')
    for name in found:
        structure.constraint(name)
    if not found:
        raise ValueError("reactions names no joint; leave it out for all that are not unique.")
    return tuple(dict.fromkeys(found))


def _compliances(known: Sequence[str], names: Any, what: str) -> tuple[str, ...]:
    """The compliances in the order of the system."""
    found = _settings.names(names, what, '["AB", "CD"]')
    for name in found:
        if name not in known:
            raise ValueError(
                f"{what}: there is no compliance {shown(name)}; there are {listed(known)}."
            )
    return tuple(name for name in known if name in found)


def _subsets(known: Sequence[str], subsets: Any) -> tuple[tuple[str, ...], ...]:
    if isinstance(subsets, str) or not isinstance(subsets, Sequence) or not subsets:
        raise TypeError(
            f'subsets must be a list such as [["AB"], ["AB", "CD"]], got {shown(subsets)}.'
        )
    return tuple(dict.fromkeys(_compliances(known, own, "each of subsets") for own in subsets))


@takes_state(decides_rank=True)
def _study(
    system: MultibodySystem,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    t: RealScalarLike,
    asked: tuple[str, ...] | None,
    candidates: tuple[str, ...],
    subsets: tuple[tuple[str, ...], ...] | None,
    tolerance: float,
) -> Flexibility:
    structure, time = system.structure, jnp.asarray(t, q.dtype)
    names = tuple(part.name for part in structure.compliances)
    rigid, whole = answers(system, q, v, time, [Case(()), Case(names)])
    layout = system.places(q, v, time).layout
    joints = _asked(structure, asked, rigid, layout)
    skipped = _skipped(structure, candidates, rigid)
    kept = tuple(name for name in candidates if name not in skipped)
    chosen = _all_subsets(kept) if subsets is None else subsets
    cases = cases_of((*chosen, names), _has_misfits(system))
    found = dict(zip(cases, answers(system, q, v, time, cases), strict=True))
    length = system.characteristic_length()
    scales = Scales(float(length), tolerance)
    judged = [
        judge(structure, layout, joints, own, found, whole, scales) for own in (*chosen, names)
    ]
    return Flexibility(
        tuple(judged[:-1]),
        judged[-1],
        tolerance,
        joints,
        kept,
        skipped,
        openness(structure, length, system.scaled_residual(q, time)),
        structure,
    )


def _asked(
    structure: Structure, asked: tuple[str, ...] | None, rigid: CaseAnswer, layout: PlaceLayout
) -> tuple[str, ...]:
    """The joints that matter."""
    known = structure.constraint_names
    nowhere = [name for name, place in zip(known, layout.seconds, strict=True) if place < 0]
    if asked is None:
        asked = tuple(
            name
            for name, unique in zip(known, rigid.decided, strict=True)
            if not unique and name not in nowhere
        )
        if not asked:
            raise ValueError(
                "every reaction of this system is unique in the rigid model, so that there is "
                "nothing for elastic parts to decide; name the reactions that matter to see that."
            )
    for name in asked:
        if name in nowhere:
            raise ValueError(
                f"reactions: {shown(name)} acts on coordinates and has no force at a point; name "
                "joints of bodies."
            )
    return asked


def _skipped(structure: Structure, candidates: Sequence[str], rigid: CaseAnswer) -> tuple[str, ...]:
    """Compliances of bodies on which, or joints in which, every reaction is unique."""
    # In the order of `Solvability.body_unique`.
    bodies = [structure.bodies[body].name for c in structure.constraints for body in c.bodies]
    on_bodies: dict[str, bool] = {}
    for name, (force, torque) in zip(bodies, rigid.on_bodies.tolist(), strict=True):
        on_bodies[name] = on_bodies.get(name, True) and force and torque
    in_joints = dict(zip(structure.constraint_names, rigid.decided.tolist(), strict=True))
    unique = {
        part.name: (in_joints if part.in_joint else on_bodies).get(part.of, False)
        for part in structure.compliances
    }
    return tuple(name for name in candidates if unique[name])


def _all_subsets(names: tuple[str, ...]) -> tuple[tuple[str, ...], ...]:
    """All subsets, from the empty to the full one."""
    if len(names) > _MOST_CANDIDATES:
        raise ValueError(
            f"all subsets of {len(names)} candidates are {2 ** len(names)}, more than of "
            f"{_MOST_CANDIDATES}; name fewer candidates, or the subsets that matter."
        )
    sizes = range(len(names) + 1)
    return tuple(own for size in sizes for own in itertools.combinations(names, size))


def _has_misfits(system: MultibodySystem) -> bool:
    giving = system.deformations
    assert giving is not None
    return any(np.any(np.asarray(own.deformation.misfit)) for own in giving.groups)
