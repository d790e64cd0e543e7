from collections.abc import Iterator
from typing import ClassVar

from .._findings import Finding, Part, Severity
from .._subject import Subject
from ..base import AbstractRule


class ImpossibleBody(AbstractRule):
    """A mass or an inertia that no body can have."""

    code: ClassVar[str] = "JM401"
    name: ClassVar[str] = "impossible-body"
    severity: ClassVar[Severity] = Severity.ERROR
    text: ClassVar[str] = (
        "A mass is not greater than zero, or an inertia is not positive definite, not symmetric, "
        "or breaks the triangle inequality: the largest principal moment may not exceed the sum "
        "of the two others. Many programs take it and integrate a body that cannot be. Often the "
        "inertia is about another point or in another unit, or a product of inertia has the wrong "
        "sign."
    )

    def findings(self, subject: Subject) -> Iterator[Finding]:
        for name, why in subject.impossible.items():
            yield self.finding(f"body {name!r}: {why}", [Part("body", name)])
