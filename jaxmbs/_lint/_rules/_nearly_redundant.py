from collections.abc import Iterator
from typing import ClassVar

import numpy as np

from ..._checks import listed
from .._findings import Finding, Severity
from .._subject import Subject
from ..base import AbstractRule


# The smallest singular value that is kept, over the largest, below which a mechanism is close to
# one that is redundant.
_NEAR = 1e-3

# Joints with less than this part in the singular vector have none.
_PART = 0.2


class NearlyRedundant(AbstractRule):
    """Joints that are nearly dependent."""

    code: ClassVar[str] = "JM103"
    name: ClassVar[str] = "nearly-redundant"
    severity: ClassVar[Severity] = Severity.WARNING
    text: ClassVar[str] = (
        "The rows of C, without units and of unit length, are independent by a small singular "
        "value: so little misalignment of the joints' points (in metres) or axes (in radians) "
        "makes them dependent (Eckart and Young 1936). Forces are as large as one over it and "
        "depend on the last digits of the model. Either the joints are meant to be aligned, and "
        "the numbers need more digits, or they should be moved apart."
    )

    def findings(self, subject: Subject) -> Iterator[Finding]:
        if subject.closed is None:
            return
        report = subject.closed.report
        structure, rank = report.structure, int(report.rank)
        if rank < 1:
            return
        columns = structure.column_scale(float(report.length))
        matrix = np.asarray(subject.closed.matrix) * columns / np.asarray(report.row_scale)[:, None]
        left, values, _ = np.linalg.svd(matrix, full_matrices=False)
        # What was dropped, and is more than rounding, is a misalignment that is really there.
        dropped = values[rank] if rank < len(values) else 0.0
        kept = values[rank - 1]
        if kept < _NEAR * values[0]:
            yield self._finding(
                subject, left[:, rank - 1], kept, values[0], "are independent, but nearly redundant"
            )
        if dropped > max(float(report.rounding), 1e-13) * values[0]:
            yield self._finding(
                subject,
                left[:, rank],
                dropped,
                values[0],
                "are redundant at the precision of the model's numbers"
                if bool(report.redundant_at_precision)
                else "are taken as redundant, but not exactly",
            )

    def _finding(
        self, subject: Subject, vector: np.ndarray, value: float, largest: float, said: str
    ) -> Finding:
        structure = subject.system.structure
        size = [np.linalg.norm(vector[c.start : c.stop]) for c in structure.constraints]
        names = [
            info.name
            for info, part in zip(structure.constraints, size, strict=True)
            if part > _PART * max(size)
        ]
        assert subject.closed is not None
        metres = value * float(subject.closed.report.length)
        return self.finding(
            f"the rows of {listed(names)} {said}: the singular value that decides is "
            f"{value / largest:.2g} of the largest, and a misalignment of {metres:.2g} m or "
            f"{value:.2g} rad turns the verdict",
            [subject.part(name) for name in names],
            relative_singular_value=value / largest,
            metres=metres,
            radians=value,
        )
