from collections.abc import Iterator
from typing import ClassVar

import numpy as np

from .._findings import Finding, Part, Severity
from .._subject import Subject
from ..base import AbstractRule


# Times (s) at which a motion without an end is evaluated: no period contains all of them.
_TIMES = (0.0, 0.3137, 1.0, 2.7183, 7.389, 20.0)


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
            domain = driver.motion.domain()
            times = np.array(_TIMES)
            if domain is not None:
                times = np.linspace(float(domain[0]), float(domain[1]), 17)
            times = np.union1d(times, np.asarray(driver.motion.knots()))
            if domain is not None:
                times = np.clip(times, float(domain[0]), float(domain[1]))
            values = [float(driver.motion(t)) for t in times]
            if max(values) == min(values):
                yield self.finding(
                    f"driver {driver.name!r} never moves: it stays at {values[0]:.6g}",
                    [Part("driver", driver.name)],
                )
