from collections.abc import Iterator
from typing import ClassVar

import numpy as np

from .._findings import Finding, Severity
from .._subject import Numbers, Subject
from ..base import AbstractRule


# Of the largest prescribed rate: what is left of contradictions below it is rounding. Accelerations
# hold squares of velocities, which were themselves found.
_ROUNDING = 1e-8
_ROUNDING_OF_ACCELERATIONS = 1e-6

# Likewise of what counts as one, in 1/s^2.
_LEAST = 1e-9

# Rows with less than this part in a contradiction have none.
_PART = 1e-3


class ContradictingRows(AbstractRule):
    """Prescribed rates that no velocities, or accelerations, can have together."""

    code: ClassVar[str] = "JM201"
    name: ClassVar[str] = "contradicting-rows"
    severity: ClassVar[Severity] = Severity.ERROR
    text: ClassVar[str] = (
        "Rows of C v + b = 0 or of C dv/dt = Gamma depend on each other, and what drivers "
        "prescribe does not: no velocities, or no accelerations, satisfy all of them. A program "
        "either stops or moves by a compromise. Leave out one of the drivers, or make their "
        "motions agree."
    )

    def findings(self, subject: Subject) -> Iterator[Finding]:
        numbers = subject.closed
        if numbers is None:
            return
        found = self._contradiction(subject, numbers, numbers.offset, 0.0, "velocities", "s")
        if found is None:
            # Where velocities contradict each other accelerations cannot be checked.
            least = _LEAST * max(1.0, subject.speed**2)
            found = self._contradiction(
                subject, numbers, numbers.curvature, least, "accelerations", "s^2"
            )
        if found is not None:
            yield found

    def _contradiction(
        self, subject: Subject, numbers: Numbers, right: object, least: float, what: str, per: str
    ) -> Finding | None:
        report = numbers.report
        scale = np.asarray(report.row_scale)
        offset = np.asarray(right) / scale
        free = np.asarray(report.null_space)[:, int(report.rank) :]
        # What least squares leave.
        left = free @ (free.T @ offset)
        most = float(np.max(np.abs(left), initial=0.0))
        part = _ROUNDING_OF_ACCELERATIONS if least else _ROUNDING
        # NaN is not a contradiction.
        if not most > part * float(np.max(np.abs(offset), initial=0.0)) + least:
            return None
        structure, amounts = report.structure, np.abs(left * scale)
        parts: dict[str, tuple[float, str]] = {}
        for row in np.flatnonzero(np.abs(left) > _PART * most):
            name = structure.constraint_names[structure.row_owner[row]]
            unit = f"{structure.rows[row].quantity.unit}/{per}"
            parts[name] = max(parts.get(name, (0.0, unit)), (float(amounts[row]), unit))
        named = ", ".join(f"{name} by {size:.3g} {unit}" for name, (size, unit) in parts.items())
        return self.finding(
            f"no {what} satisfy all of these at {subject.t:g} s; the nearest miss {named}",
            [subject.part(name) for name in parts],
            largest=max(size for size, _ in parts.values()),
        )
