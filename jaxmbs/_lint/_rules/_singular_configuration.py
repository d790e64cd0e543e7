from collections.abc import Iterator
from typing import ClassVar

from ..._checks import listed
from .._findings import Finding, Severity
from .._subject import Subject
from ..base import AbstractRule


class SingularConfiguration(AbstractRule):
    """A configuration in which rows depend on each other that do not next to it."""

    code: ClassVar[str] = "JM104"
    name: ClassVar[str] = "singular-configuration"
    severity: ClassVar[Severity] = Severity.WARNING
    text: ClassVar[str] = (
        "The rank of C is smaller in this configuration than at closed ones next to it, as at a "
        "dead centre. Here reactions are not unique and the mechanism may have several ways to "
        "go on; its neighbours are regular, so that no joint needs to be replaced. Start from "
        "another configuration. Where there is none, as of a linkage that is stretched to the "
        "distance of its ends, correct a length."
    )

    def findings(self, subject: Subject) -> Iterator[Finding]:
        if subject.closed is None or subject.generic is None:
            return
        structure, report = subject.system.structure, subject.closed.report
        if subject.is_isolated:
            yield self.finding(
                "there is no closed configuration next to this one, although the mobility is "
                f"{int(report.mobility)}: the rows let it move to first order alone, as a "
                "stretched linkage; lengths that are meant to let it move must differ",
                [subject.part(info.name) for info in structure.constraints],
            )
        if not subject.is_singular:
            return
        rank, nearby = int(report.rank), int(subject.generic.report.rank)
        here, there = subject.closed.verdict, subject.generic.verdict
        names = [
            info.name
            for k, info in enumerate(structure.constraints)
            if bool(there[k]) and not bool(here[k])
        ]
        consequence = f", so that here the forces in {listed(names)} are not unique" * bool(names)
        yield self.finding(
            f"in this configuration alone the rank is {rank}, and {nearby} at its neighbours"
            f"{consequence}",
            [subject.part(name) for name in names],
            rank=float(rank),
            generic_rank=float(nearby),
        )
