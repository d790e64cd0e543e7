from collections.abc import Iterator
from typing import ClassVar

from .._findings import Finding, Part, Severity
from .._subject import Subject
from ..base import AbstractRule
from ._times import motion_times


class RestingDriver(AbstractRule):
    """A driver whose value never changes."""

    code: ClassVar[str] = "JM503"
    name: ClassVar[str] = "resting-driver"
    severity: ClassVar[Severity] = Severity.NOTE
    text: ClassVar[str] = (
        "A driver holds its joint at one value for ever. That is a lock: say so by a fixed joint, "
        "or give the driver the motion that it was meant to have."
    )

    def findings(self, subject: Subject) -> Iterator[Finding]:
        for driver in subject.model.drivers:
            values = [float(driver.motion(t)) for t in motion_times(driver)]
            if max(values) == min(values):
                yield self.finding(
                    f"driver {driver.name!r} never moves: it stays at {values[0]:.6g}",
                    [Part("driver", driver.name)],
                )
