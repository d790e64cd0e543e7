from collections.abc import Iterator
from typing import ClassVar

from .._findings import Finding, Severity
from .._subject import Subject
from ..base import AbstractRule


class FirstOrderMobility(AbstractRule):
    """A motion that exists to first order alone."""

    code: ClassVar[str] = "JM105"
    name: ClassVar[str] = "first-order-mobility"
    severity: ClassVar[Severity] = Severity.WARNING
    text: ClassVar[str] = (
        "The rows of C allow more velocities than the mechanism has motions, in this configuration "
        "and wherever it can go: as two bars in line between two points at their distance, which "
        "allow a velocity across and do not move. Rank and mobility count it as a motion, and its "
        "neighbours have the same rank; loads across it meet no stiffness to first order. Change a "
        "length, or a joint's place, so that the parts are not in line, or leave one out."
    )

    def findings(self, subject: Subject) -> Iterator[Finding]:
        found = subject.mobility
        # Where there is no closed neighbour JM104 reports it.
        if found is None or not found.decided or subject.is_isolated:
            return
        first = [branch.first_order for branch in found.branches]
        if not found.is_shaky or any(x == found.mobility for x in first):
            return
        yield self.finding(
            f"the mobility is {found.first_order} to first order and {found.mobility} in truth, "
            f"here and wherever it can go (decided at order {found.order})",
            [subject.part(name) for name in found.restricting],
            first_order=float(found.first_order),
            mobility=float(found.mobility),
        )
