from collections.abc import Iterator
from typing import ClassVar

from ..._mobility import LEFT_OUT
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
        if subject.is_mobility_left_out:
            yield self._note(f"{LEFT_OUT}; jm.mobility and `jaxmbs analyze --mobility` compute it")
        # Where there is no closed neighbour JM104 reports it.
        if found is None or subject.is_isolated:
            return
        if not found.decided:
            reasons = "; ".join(found.doubts)
            yield self._note(
                f"the mobility is {found.first_order} to first order, and the real one was not "
                f"decided: {reasons}"
            )
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

    def _note(self, message: str) -> Finding:
        return self.finding(message, [])._replace(severity=Severity.NOTE)
