from collections.abc import Iterator
from typing import ClassVar

from ..._forces import AbstractBodyForce
from .._findings import Finding, Part, Severity
from .._subject import Subject
from ..base import AbstractRule
from ._shared import body_of


class UnusedBody(AbstractRule):
    """A body on which nothing acts but gravity."""

    code: ClassVar[str] = "JM501"
    name: ClassVar[str] = "unused-body"
    severity: ClassVar[Severity] = Severity.WARNING
    text: ClassVar[str] = (
        "No joint, force or element names the body: it falls by itself beside the mechanism. "
        "Connect it, or leave it out."
    )

    def findings(self, subject: Subject) -> Iterator[Finding]:
        model = subject.model
        used = {name for joint in model.joints for name in joint.bodies}
        used |= {driver.joint for driver in model.drivers}
        used |= {name for element in model.elements for name in element.bodies}
        for force in model.forces:
            # A force on a joint acts on bodies that are used already.
            if isinstance(force, AbstractBodyForce):
                used |= {*force.bodies}
        used = {body_of(name) for name in used}
        for body in model.bodies:
            if body.name not in used and len(model.bodies) > 1:
                yield self.finding(
                    f"body {body.name!r} has no joint and no force", [Part("body", body.name)]
                )
