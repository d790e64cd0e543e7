from collections.abc import Iterable, Iterator
from typing import ClassVar

from ..._checks import listed
from ..._forces import AbstractBodyForce
from ..._system import Model
from .._findings import Finding, Part, Severity
from .._subject import Subject
from ..base import AbstractRule
from ._shared import body_of


_GROUND = "ground"


class Island(AbstractRule):
    """Connected bodies that are not connected to the mechanism on the fixed frame."""

    code: ClassVar[str] = "JM504"
    name: ClassVar[str] = "island"
    severity: ClassVar[Severity] = Severity.NOTE
    text: ClassVar[str] = (
        "Some bodies are joined to each other, and by no joint, force or element to the fixed "
        "frame, which other bodies are joined to: they fly by themselves beside the mechanism. "
        "Connect them, unless that is meant."
    )

    def findings(self, subject: Subject) -> Iterator[Finding]:
        parts = _components(subject.model)
        if not any(_GROUND in own and len(own) > 1 for own in parts):
            # Everything flies, as satellites do.
            return
        for own in parts:
            # A single body is reported by JM501.
            if _GROUND not in own and len(own) > 1:
                yield self.finding(
                    f"bodies {listed(own)} are joined to each other, and not to the fixed frame",
                    [Part("body", name) for name in own],
                )


def _components(model: Model) -> list[list[str]]:
    """Bodies, and the fixed frame, that joints, forces or elements connect."""
    bodies = [body.name for body in model.bodies]
    leader = {name: name for name in [_GROUND, *bodies]}

    def connect(names: Iterable[str]) -> None:
        own = {leader[body_of(name)] for name in names}
        first = min(own)
        for name in leader:
            if leader[name] in own:
                leader[name] = first

    for joint in model.joints:
        # What holds one body holds it against the fixed frame.
        connect([*joint.bodies, *([_GROUND] if len(joint.bodies) == 1 else [])])
    for element in model.elements:
        connect(element.bodies)
    for force in model.forces:
        if isinstance(force, AbstractBodyForce):
            connect(force.bodies)
    groups: dict[str, list[str]] = {}
    for name, own in leader.items():
        groups.setdefault(own, []).append(name)
    return list(groups.values())
