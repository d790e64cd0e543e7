from collections.abc import Iterator
from typing import ClassVar

from ..._checks import listed
from .._findings import Finding, Severity
from .._subject import Subject
from ..base import AbstractRule
from ._shared import undetermined_sets


class ArbitraryLoop(AbstractRule):
    """Forces around a closed loop that no rigid-body program determines."""

    code: ClassVar[str] = "JM101"
    name: ClassVar[str] = "arbitrary-loop-forces"
    severity: ClassVar[Severity] = Severity.WARNING
    text: ClassVar[str] = (
        "Joints around a closed loop constrain more than is left to constrain, so that the forces "
        "in it are arbitrary in any rigid-body program: which ones come out depends on the solver "
        "alone. Replace a joint by one of fewer rows (JM601 says which), make a body or a joint "
        "elastic, or do not use these forces."
    )

    def findings(self, subject: Subject) -> Iterator[Finding]:
        chosen, more = undetermined_sets(subject, parallel=False)
        for own in chosen:
            yield self.finding(
                f"the rows of {listed(own.names)} depend on each other around a loop, so that the "
                f"forces in {listed(own.many)} are arbitrary in any rigid-body program"
                + (f" (they share loads with {listed(own.others)})" if own.others else ""),
                [subject.part(name) for name in own.names],
            )
        if more:
            yield self.finding(f"and {more} loops more whose forces are arbitrary", ())
