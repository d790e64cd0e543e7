"""Assessment of a choice of elastic parts, from the results of several choices."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from .._system import Structure
from .._system._places import PlaceLayout
from ._cases import Case, CaseAnswer
from ._report import SubsetAnswer


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
