"""What rules have in common."""

from collections.abc import Iterator

from .._subject import Subject


# More sets than these are counted.
MOST = 20


def sets_of(subject: Subject, parallel: bool) -> tuple[list[tuple[str, ...]], int]:
    """Minimal sets of joints and drivers with dependent rows: those that all act between the same
    bodies, or those around loops; the first of them, and how many more there are."""
    if subject.dependent is None:
        return [], 0
    chosen = [s for s in subject.dependent.sets if _is_parallel(subject, s) == parallel]
    return chosen[:MOST], max(0, len(chosen) - MOST)


def undetermined_sets(
    subject: Subject, parallel: bool
) -> tuple[list[tuple[tuple[str, ...], list[str]]], int]:
    """`sets_of`, each with those of its joints whose reaction is not unique. Sets without any are
    left out: of these the multipliers alone are arbitrary, and forces are what they are."""
    chosen, more = sets_of(subject, parallel)
    found = [(names, not_unique_of(subject, names)) for names in chosen]
    return [(names, many) for names, many in found if many], more


def _is_parallel(subject: Subject, names: tuple[str, ...]) -> bool:
    return len({frozenset(bodies) for bodies in _bodies(subject, names)}) == 1


def _bodies(subject: Subject, names: tuple[str, ...]) -> Iterator[tuple[int, ...]]:
    for name in names:
        yield subject.system.structure.constraint(name).bodies


def not_unique_of(subject: Subject, names: tuple[str, ...]) -> list[str]:
    """Those whose reaction is not unique, with the compliances that there are."""
    assert subject.generic is not None
    structure = subject.system.structure
    verdict = subject.generic.verdict
    places = {info.name: k for k, info in enumerate(structure.constraints)}
    return [name for name in names if not bool(verdict[places[name]])]


def body_of(name: str) -> str:
    """The body of a site such as 'link.A'."""
    return name.partition(".")[0]
