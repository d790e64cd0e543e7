"""Influence of single elastic parts: reactions with different parts elastic."""

import itertools
from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .. import _settings
from .._checks import listed, shown
from .._custom_types import RealScalarLike, Setting
from .._solvability._report import openness
from .._system import AbstractSystem, Model, MultibodySystem, Structure, takes_state
from .._system._places import PlaceLayout
from ._cases import answers, Case, CaseAnswer
from ._judgement import cases_of, judge, Scales
from ._report import Flexibility


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
    - an **elimination in disguise** is a part e in S without whose N^T c_e the rank of N^T D_S
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
    tolerance = _settings.known_number(
        tolerance, "tolerance", above=0, below=1, advice="0.005 is usual"
    )
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
