"""Dependent sets, and the times at which the rules look at motions."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from ..._checks import listed
from ..._constraints import AbstractMotion
from ..._solvability import sharing_dependent_sets
from .._subject import Subject


# --------------------------------------------------------------------------------------------------
# Common functions of the rules.
# --------------------------------------------------------------------------------------------------


# More sets than these are counted.
MOST = 20

_HAVE = ("has", "have")


def sets_of(subject: Subject, parallel: bool) -> tuple[list[tuple[str, ...]], int]:
    """Minimal sets of joints and drivers with dependent rows: those that all act between the same
    bodies, or those around loops; the first of them, and how many more there are."""
    if subject.dependent is None:
        return [], 0
    chosen = [s for s in subject.dependent.sets if _is_parallel(subject, s) == parallel]
    return chosen[:MOST], max(0, len(chosen) - MOST)


class UndeterminedSet(NamedTuple):
    """Joints and drivers with dependent rows. `many`: those of them whose reaction is not unique;
    `others`: further members of their dependent sets, likewise not unique."""

    names: tuple[str, ...]
    many: list[str]
    others: list[str]

    @property
    def shared_with(self) -> str:
        """The other joints that share the load, as text after "load"."""
        return f", in which {listed(self.others)} {_HAVE[len(self.others) > 1]} a part" * bool(
            self.others
        )


def undetermined_sets(subject: Subject, parallel: bool) -> tuple[list[UndeterminedSet], int]:
    """`sets_of`, those between the same bodies that have members in common as one. Sets in which
    every reaction is unique are left out: of these the multipliers alone are arbitrary, and forces
    are what they are."""
    chosen, more = sets_of(subject, parallel)
    chosen = _united(subject, chosen) if parallel else chosen
    found = []
    for names in chosen:
        many = not_unique_of(subject, names)
        if many:
            assert subject.generic is not None
            sharing = sharing_dependent_sets(subject.generic.report, names)
            others = tuple(name for name in sharing if name not in names)
            found.append(UndeterminedSet(names, many, not_unique_of(subject, others)))
    return found, more


def _united(subject: Subject, sets: list[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """Sets with members in common as one, in row order."""
    groups: list[set[str]] = []
    for names in sets:
        touched = [group for group in groups if group & {*names}]
        groups = [group for group in groups if group not in touched]
        groups.append({*names}.union(*touched))
    order = subject.system.structure.constraint_names.index
    united = [tuple(sorted(group, key=order)) for group in groups]
    return sorted(united, key=lambda names: order(names[0]))


def _is_parallel(subject: Subject, names: tuple[str, ...]) -> bool:
    return len({frozenset(bodies) for bodies in _bodies(subject, names)}) == 1


def _bodies(subject: Subject, names: tuple[str, ...]) -> Iterator[tuple[int, ...]]:
    for name in names:
        yield subject.system.structure.constraint(name).bodies


def not_unique_of(subject: Subject, names: tuple[str, ...]) -> list[str]:
    """The joints whose reaction is not unique, with the model's compliances."""
    assert subject.generic is not None
    structure = subject.system.structure
    verdict = subject.generic.verdict
    places = {info.name: k for k, info in enumerate(structure.constraints)}
    return [name for name in names if not bool(verdict[places[name]])]


def body_of(name: str) -> str:
    """The body of a site such as 'link.A'."""
    return name.partition(".")[0]


# --------------------------------------------------------------------------------------------------
# Times at which rules look at motions.
# --------------------------------------------------------------------------------------------------


# Times (s) at which a motion without an end is looked at: no period has all of them.
_TIMES = (0.0, 0.3137, 1.0, 2.7183, 7.389, 20.0)


def motion_times(motion: AbstractMotion) -> Float[np.ndarray, " n"]:
    """Within what a motion is given for, and where its pieces meet."""
    domain = motion.domain()
    times = np.array(_TIMES)
    if domain is not None:
        times = np.linspace(float(domain[0]), float(domain[1]), 17)
    times = np.union1d(times, np.asarray(motion.knots()))
    if domain is not None:
        times = np.clip(times, float(domain[0]), float(domain[1]))
    return times
