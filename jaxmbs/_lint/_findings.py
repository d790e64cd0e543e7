"""Findings of a check of a model."""

import enum
from typing import NamedTuple

from .._printing import Description, html, Table, text


class Severity(enum.IntEnum):
    """Severity of a finding; the words are SARIF's levels."""

    NOTE = 0
    WARNING = 1
    ERROR = 2

    @property
    def word(self) -> str:
        return self.name.lower()


class Part(NamedTuple):
    """A part of a model: its `kind` (body, joint, driver, force, compliance) and its name."""

    kind: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.name!r}"


class Finding(NamedTuple):
    """One finding: the rule's `code`, name and severity, a sentence, the parts that it is about
    (the first one first), and the numbers in it by name."""

    code: str
    rule: str
    severity: Severity
    message: str
    parts: tuple[Part, ...]
    numbers: tuple[tuple[str, float], ...] = ()

    def __str__(self) -> str:
        return f"{self.severity.word} {self.code} ({self.rule}): {self.message}"


class Findings(NamedTuple):
    """All findings about one model, the worst first; `model`: its name."""

    model: str
    found: tuple[Finding, ...]

    @property
    def worst(self) -> Severity | None:
        """Severity of the worst finding; None where there is none."""
        return max((x.severity for x in self.found), default=None)

    def of(self, code: str) -> tuple[Finding, ...]:
        """The findings of one rule."""
        return tuple(x for x in self.found if x.code == code)

    def described(self) -> Description:
        if not self.found:
            return Description([f"{self.model}: nothing found"])
        count = f"{len(self.found)} finding{'s' * (len(self.found) > 1)}"
        rows = [(x.code, x.rule, x.severity.word, x.message) for x in self.found]
        table = Table.of(("code", "rule", "severity", "finding"), rows)
        return Description([f"{self.model}: {count}"], [table])

    def __str__(self) -> str:
        return text(self.described())

    def _repr_html_(self) -> str:
        return html(self.described())
