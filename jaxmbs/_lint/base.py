import abc
from collections.abc import Iterator, Sequence
from typing import ClassVar

import equinox as eqx

from ._findings import Finding, Part, Severity
from ._subject import Subject


class AbstractRule(eqx.Module):
    """A rule: `code` (JM and three digits), `name`, `severity`, and `text`: the defect, its
    consequence and the remedy, in a few sentences."""

    code: ClassVar[str]
    name: ClassVar[str]
    severity: ClassVar[Severity]
    text: ClassVar[str]

    @abc.abstractmethod
    def findings(self, subject: Subject) -> Iterator[Finding]:
        """Findings of the rule in a model. It raises nothing for any model that has a system."""

    def finding(self, message: str, parts: Sequence[Part], **numbers: float) -> Finding:
        """One finding of this rule."""
        return Finding(
            self.code, self.name, self.severity, message, tuple(parts), tuple(numbers.items())
        )
