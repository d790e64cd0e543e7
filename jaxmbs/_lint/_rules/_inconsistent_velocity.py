from collections.abc import Iterator
from typing import ClassVar

import numpy as np

from .._findings import Finding, Severity
from .._subject import Subject
from ..base import AbstractRule


# Of what counts as one in a second.
_ROUNDING = 1e-8


class InconsistentVelocity(AbstractRule):
    """Initial velocities that constraints do not allow."""

    code: ClassVar[str] = "JM302"
    name: ClassVar[str] = "inconsistent-velocity"
    severity: ClassVar[Severity] = Severity.WARNING
    text: ClassVar[str] = (
        "The initial velocities of the bodies break a constraint or do not agree with a driver. "
        "A simulation stops there, or changes them in its first step as if something had hit. "
        "Give velocities that fit (`simulate --assemble` finds the nearest), or a driver that "
        "starts as the bodies do."
    )

    def findings(self, subject: Subject) -> Iterator[Finding]:
        structure = subject.system.structure
        scale = structure.residual_scale(float(subject.reference.report.length))
        rate = np.abs(np.asarray(subject.reference.rate))
        size = np.max(rate / scale, initial=0.0)
        if subject.is_open or not size > _ROUNDING * max(1.0, subject.speed):
            return
        row = int(np.argmax(rate / scale))
        name = structure.constraint_names[structure.row_owner[row]]
        unit = structure.rows[row].quantity.unit
        yield self.finding(
            f"the initial velocities break {subject.part(name)} by {rate[row]:.3g} {unit}/s",
            [subject.part(name)],
            amount=float(rate[row]),
        )
