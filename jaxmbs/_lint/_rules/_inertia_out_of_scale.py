from collections.abc import Iterator
from typing import ClassVar

import numpy as np

from .._findings import Finding, Part, Severity
from .._subject import Subject
from ..base import AbstractRule
from ._misplaced import DistantCentre, DistantJoint


# Radius of gyration over the mechanism's characteristic length: outside of this a unit is wrong.
_LEAST, _MOST = 1e-4, 1e2

# Over the body's own size, the distance of its farthest joint: a factor of a million in the inertia
# leaves rods and plates outside of this, and a bob on a long string within.
_THIN, _WIDE = 3e-3, 1e2


class InertiaOutOfScale(AbstractRule):
    """Inertias that do not fit the size of the mechanism."""

    code: ClassVar[str] = "JM403"
    name: ClassVar[str] = "inertia-out-of-scale"
    severity: ClassVar[Severity] = Severity.WARNING
    text: ClassVar[str] = (
        "The radius of gyration of a body, the root of inertia over mass, is more than a hundred "
        "times the size of the mechanism or less than a ten thousandth of it, or as far from the "
        "distance of the body's own joints: most likely the inertia is in another unit (kg mm2 "
        "for kg m2), or a placeholder. Correct it."
    )

    def findings(self, subject: Subject) -> Iterator[Finding]:
        length = float(subject.reference.report.length)
        # Their points are far away, and do not show their size.
        misplaced = {
            part.name
            for rule in (DistantJoint(), DistantCentre())
            for finding in rule.findings(subject)
            for part in finding.parts
        }
        for info in subject.system.structure.bodies:
            radius = subject.radius_of_gyration(info.name)
            if info.name in subject.impossible or not radius:
                continue
            arms = subject.joint_points.get(info.name, {})
            own = max((float(np.linalg.norm(arm)) for arm in arms.values()), default=0.0)
            if not _LEAST < radius / length < _MOST:
                where = f"in a mechanism of the size {length:.3g} m"
            elif info.name in misplaced:
                continue
            elif own and (radius < _THIN * own or (radius > _WIDE * own and radius > 3 * length)):
                where = f"and its farthest joint is {own:.3g} m from its centre of mass"
            else:
                continue
            yield self.finding(
                f"body {info.name!r} has a radius of gyration of {radius:.3g} m {where}",
                [Part("body", info.name)],
                radius=radius,
            )
