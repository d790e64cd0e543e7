from collections.abc import Iterator
from typing import ClassVar

from ..._checks import listed
from .._findings import Finding, Severity
from .._subject import Subject
from ..base import AbstractRule
from ._shared import undetermined_sets


class SharedLoad(AbstractRule):
    """Parallel joints between the same bodies, whose reactions are known only as a sum."""

    code: ClassVar[str] = "JM102"
    name: ClassVar[str] = "shared-load"
    severity: ClassVar[Severity] = Severity.WARNING
    text: ClassVar[str] = (
        "Several joints or drivers hold the same two bodies against each other and constrain some "
        "motion twice. They share a load, and how is not determined by rigid bodies. Leave one "
        "out, replace it by a joint of fewer rows, or make the bodies between them elastic."
    )

    def findings(self, subject: Subject) -> Iterator[Finding]:
        chosen, more = undetermined_sets(subject, parallel=True)
        for own in chosen:
            yield self.finding(
                f"{listed(own.names)} act between the same bodies and share a load"
                f"{own.shared_with}: what each of {listed(own.many)} carries is not determined by "
                "rigid bodies",
                [subject.part(name) for name in own.names],
            )
        if more:
            yield self.finding(f"and {more} sets more that share a load", ())
