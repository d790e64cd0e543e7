from collections.abc import Iterator
from typing import ClassVar

import numpy as np

from .._findings import Finding, Part, Severity
from .._subject import Subject
from ..base import AbstractRule


class IdleForce(AbstractRule):
    """A force that is zero whatever happens."""

    code: ClassVar[str] = "JM502"
    name: ClassVar[str] = "idle-force"
    severity: ClassVar[Severity] = Severity.WARNING
    text: ClassVar[str] = (
        "All numbers that make a force are zero (stiffness, damping, torque, coefficient), so "
        "that it does nothing. Give it a number, or leave it out."
    )

    def findings(self, subject: Subject) -> Iterator[Finding]:
        for force in subject.model.forces:
            given = {name: getattr(force, name) for name in force.strengths}
            named = {name: x for name, x in given.items() if x is not None}
            if named and not any(np.any(np.asarray(x)) for x in named.values()):
                yield self.finding(
                    f"force {force.name!r} does nothing: its {', '.join(named)} "
                    f"{'is' if len(named) == 1 else 'are'} zero",
                    [Part("force", force.name)],
                )
