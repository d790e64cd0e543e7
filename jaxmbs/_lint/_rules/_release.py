from collections.abc import Iterator
from typing import ClassVar

from ..._solvability import releases
from .._findings import Finding, Severity
from .._subject import Subject
from ..base import AbstractRule


# Sets of replacements that are tried.
_MOST = 2000


class Release(AbstractRule):
    """Joints of fewer rows with which every reaction is unique, and the mechanism moves as
    before."""

    code: ClassVar[str] = "JM601"
    name: ClassVar[str] = "release"
    severity: ClassVar[Severity] = Severity.NOTE
    text: ClassVar[str] = (
        "A smallest set of joints that may be replaced by ones of fewer rows so that all reactions "
        "become unique and the mobility stays. It is a suggestion: the reactions are then those of "
        "the mechanism with the other joints."
    )

    def findings(self, subject: Subject) -> Iterator[Finding]:
        # What moves to first order alone would begin to move.
        if subject.generic is None or subject.is_isolated:
            return
        report = subject.generic.report
        # What elastic parts decide needs no release.
        if bool(subject.generic.verdict.all()) or bool(report.reaction_unique.all()):
            return
        found = releases(
            subject.system,
            subject.generic_q,
            subject.system.initial_v,
            subject.t,
            report=report,
            most=_MOST,
        )
        if not found.sets:
            return
        others = len(found.sets) - 1
        more = f" ({others} other set{'s' * (others > 1)} of this size would do)" if others else ""
        yield self.finding(
            f"every reaction becomes unique, and the motion stays, with {found.lines()[0]}{more}",
            [subject.part(option.constraint) for option in found.sets[0]],
        )
