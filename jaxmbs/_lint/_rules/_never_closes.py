from collections.abc import Iterator
from typing import ClassVar

from .._findings import Finding, Severity
from .._subject import Subject
from ..base import AbstractRule


class NeverCloses(AbstractRule):
    """A mechanism whose joints cannot all be closed."""

    code: ClassVar[str] = "JM202"
    name: ClassVar[str] = "never-closes"
    severity: ClassVar[Severity] = Severity.ERROR
    text: ClassVar[str] = (
        "No configuration near the reference one satisfies all joints and drivers: lengths "
        "contradict each other, or a driver wants what the mechanism cannot reach. Correct the "
        "points of the joints named, or the driver's motion."
    )

    def findings(self, subject: Subject) -> Iterator[Finding]:
        if subject.closed is not None:
            return
        left = subject.left_open or subject.open_constraints
        named = ", ".join(f"{name} by {size:.3g} {unit}" for name, size, unit in left[:5])
        yield self.finding(
            f"the mechanism cannot be closed at {subject.t:g} s; where the search for a closed "
            f"configuration ended these stayed open: {named}",
            [subject.part(name) for name, _, _ in left],
        )
