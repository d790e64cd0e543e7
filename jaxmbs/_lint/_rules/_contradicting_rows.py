from collections.abc import Iterator
from typing import ClassVar

import numpy as np

from .._findings import Finding, Severity
from .._subject import Subject
from ..base import AbstractRule


# Of the largest prescribed rate: what is left of contradictions below it is rounding.
_ROUNDING = 1e-8

# Rows with less than this part in a contradiction have none.
_PART = 1e-3


class ContradictingRows(AbstractRule):
    """Prescribed rates that no velocities can have together."""

    code: ClassVar[str] = "JM201"
    name: ClassVar[str] = "contradicting-rows"
    severity: ClassVar[Severity] = Severity.ERROR
    text: ClassVar[str] = (
        "Rows of C v + b = 0 depend on each other, and what drivers prescribe does not: no "
        "velocities satisfy all of them. A program either stops or moves by a compromise. Leave "
        "out one of the drivers, or make their motions agree."
    )

    def findings(self, subject: Subject) -> Iterator[Finding]:
        if subject.closed is None:
            return
        report = subject.closed.report
        scale = np.asarray(report.row_scale)
        offset = np.asarray(subject.closed.offset) / scale
        free = np.asarray(report.null_space)[:, int(report.rank) :]
        # What least squares leave.
        left = free @ (free.T @ offset)
        most = float(np.max(np.abs(left), initial=0.0))
        if most <= _ROUNDING * float(np.max(np.abs(offset), initial=0.0)):
            return
        structure, amounts = report.structure, np.abs(left * scale)
        parts: dict[str, tuple[float, str]] = {}
        for row in np.flatnonzero(np.abs(left) > _PART * most):
            name = structure.constraint_names[structure.row_owner[row]]
            unit = f"{structure.rows[row].quantity.unit}/s"
            parts[name] = max(parts.get(name, (0.0, unit)), (float(amounts[row]), unit))
        named = ", ".join(f"{name} by {size:.3g} {unit}" for name, (size, unit) in parts.items())
        yield self.finding(
            f"no velocities satisfy all of these at {subject.t:g} s; the nearest miss {named}",
            [subject.part(name) for name in parts],
            largest=max(size for size, _ in parts.values()),
        )
