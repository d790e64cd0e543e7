import itertools
from collections.abc import Iterator
from typing import ClassVar

from .._findings import Finding, Part, Severity
from .._subject import Subject
from ..base import AbstractRule


# Between bodies of one joint.
_LARGE = 1e5


class MassRatio(AbstractRule):
    """Masses on one joint that are very different."""

    code: ClassVar[str] = "JM402"
    name: ClassVar[str] = "mass-ratio"
    severity: ClassVar[Severity] = Severity.WARNING
    text: ClassVar[str] = (
        "Two bodies that a joint connects have masses whose ratio is above 1e5. Equations of "
        "motion lose as many digits, iterative solvers need as many more iterations, and the "
        "light body is often one that was only added to carry a joint. Fuse it with a neighbour, "
        "or give it the mass that it has."
    )

    def findings(self, subject: Subject) -> Iterator[Finding]:
        structure = subject.system.structure
        told: set[frozenset[str]] = set()
        for info in structure.constraints:
            names = [structure.bodies[k].name for k in info.bodies]
            for pair in itertools.combinations(names, 2):
                if set(pair) & subject.impossible.keys() or frozenset(pair) in told:
                    continue
                masses = {name: subject.mass(name) for name in pair}
                light, heavy = sorted(pair, key=masses.__getitem__)
                if not 0 < masses[light] < masses[heavy] / _LARGE:
                    continue
                told.add(frozenset(pair))
                ratio = masses[heavy] / masses[light]
                yield self.finding(
                    f"bodies {heavy!r} ({masses[heavy]:.3g} kg) and {light!r} "
                    f"({masses[light]:.3g} kg) at {subject.part(info.name)} have masses of the "
                    f"ratio {ratio:.2g}",
                    [Part("body", light), Part("body", heavy)],
                    ratio=ratio,
                )
