import functools
from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np

from ..._forces import (
    AbstractForce,
    Applied,
    Bushing,
    CoulombFriction,
    Following,
    SpringDamper,
    TorsionSpring,
)
from .._findings import Finding, Part, Severity
from .._subject import Subject
from ..base import AbstractRule


class IdleForce(AbstractRule):
    """A force that is zero whatever happens."""

    code: ClassVar[str] = "JM502"
    name: ClassVar[str] = "idle-force"
    severity: ClassVar[Severity] = Severity.WARNING
    text: ClassVar[str] = (
        "All numbers that make a force are zero (stiffness, damping, torque, coefficient), so "
        "that it does nothing. Give it a number, or leave it out."
    )

    def findings(self, subject: Subject) -> Iterator[Finding]:
        for force in subject.model.forces:
            named = _strengths(force)
            if named and not any(np.any(np.asarray(x)) for x in named.values()):
                yield self.finding(
                    f"force {force.name!r} does nothing: its {', '.join(named)} "
                    f"{'is' if len(named) == 1 else 'are'} zero",
                    [Part("force", force.name)],
                )


@functools.singledispatch
def _strengths(force: AbstractForce) -> dict[str, Any]:
    """The numbers without which a force is none, by name; of a user's own force nothing is
    known."""
    del force
    return {}


@_strengths.register(Applied)
@_strengths.register(Following)
def _(force: Any) -> dict[str, Any]:
    own = {"force": force.force, "torque": force.torque}
    return {name: x for name, x in own.items() if x is not None} or {"force": 0.0}


@_strengths.register
def _(force: SpringDamper) -> dict[str, Any]:
    return {"stiffness": force.stiffness, "damping": force.damping}


@_strengths.register
def _(force: TorsionSpring) -> dict[str, Any]:
    return {"stiffness": force.stiffness, "damping": force.damping, "torque": force.torque}


@_strengths.register
def _(force: Bushing) -> dict[str, Any]:
    return {"stiffness": force.stiffness, "damping": force.damping}


@_strengths.register
def _(force: CoulombFriction) -> dict[str, Any]:
    return {"coefficient": force.coefficient}
