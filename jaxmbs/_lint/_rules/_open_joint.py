from collections.abc import Iterator
from typing import ClassVar

from .._findings import Finding, Severity
from .._subject import Subject
from ..base import AbstractRule


class OpenJoint(AbstractRule):
    """Frames that do not coincide in the reference configuration."""

    code: ClassVar[str] = "JM301"
    name: ClassVar[str] = "open-joint"
    severity: ClassVar[Severity] = Severity.ERROR
    text: ClassVar[str] = (
        "The frames of a joint on its two bodies do not meet in the reference configuration, or a "
        "driver does not stand where it wants to be. Some programs pull them together with a "
        "jerk, others keep the gap for ever. Correct the points, or assemble the model first "
        "(`--assemble`)."
    )

    def findings(self, subject: Subject) -> Iterator[Finding]:
        for name, amount, unit in subject.open_constraints:
            yield self.finding(
                f"{subject.part(name)} is open by {amount:.3g} {unit} in the reference "
                f"configuration at {subject.t:g} s",
                [subject.part(name)],
                amount=amount,
            )
