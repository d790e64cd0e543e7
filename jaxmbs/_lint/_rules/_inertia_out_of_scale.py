from collections.abc import Iterator
from typing import ClassVar

from .._findings import Finding, Part, Severity
from .._subject import Subject
from ..base import AbstractRule


# Radius of gyration over the mechanism's characteristic length: outside of this a unit is wrong.
_LEAST, _MOST = 1e-4, 1e2


class InertiaOutOfScale(AbstractRule):
    """Inertias that do not fit the size of the mechanism."""

    code: ClassVar[str] = "JM403"
    name: ClassVar[str] = "inertia-out-of-scale"
    severity: ClassVar[Severity] = Severity.WARNING
    text: ClassVar[str] = (
        "The radius of gyration of a body, the root of inertia over mass, is more than a hundred "
        "times the size of the mechanism or less than a ten thousandth of it: most likely the "
        "inertia is in another unit (kg mm2 for kg m2), or a placeholder. Correct it."
    )

    def findings(self, subject: Subject) -> Iterator[Finding]:
        length = float(subject.reference.report.length)
        for info in subject.system.structure.bodies:
            radius = subject.radius_of_gyration(info.name)
            if info.name in subject.impossible or not radius or _LEAST < radius / length < _MOST:
                continue
            yield self.finding(
                f"body {info.name!r} has a radius of gyration of {radius:.3g} m in a mechanism of "
                f"the size {length:.3g} m",
                [Part("body", info.name)],
                radius=radius,
            )
