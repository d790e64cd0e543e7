"""Rules about how a model is set up: joints that are open at the start, velocities that the
constraints forbid, and parts that do nothing.
"""

from collections.abc import Iterable, Iterator
from typing import ClassVar

import numpy as np

from ..._checks import listed
from ..._dynamics import overlap_sentences
from ..._forces import (
    AbstractBodyForce,
    AbstractJointForce,
    AbstractJointFriction,
    meant_by,
    Motor,
)
from ..._system import Model
from .._findings import Finding, Part, Severity
from .._subject import Subject
from ..base import AbstractRule
from ._shared import body_of, motion_times


class OpenJoint(AbstractRule):
    """Frames that do not coincide in the reference configuration."""

    code: ClassVar[str] = "JM301"
    name: ClassVar[str] = "open-joint"
    severity: ClassVar[Severity] = Severity.ERROR
    text: ClassVar[str] = (
        "The frames of a joint on its two bodies do not meet in the reference configuration, or a "
        "driver does not stand where it wants to be. Some programs pull them together with a "
        "jerk, others keep the gap for ever. Correct the points, or assemble the model first "
        "(`--assemble`)."
    )

    def findings(self, subject: Subject) -> Iterator[Finding]:
        for name, amount, unit in subject.open_constraints:
            yield self.finding(
                f"{subject.part(name)} is open by {amount:.3g} {unit} in the reference "
                f"configuration at {subject.t:g} s",
                [subject.part(name)],
                amount=amount,
            )


class InconsistentVelocity(AbstractRule):
    """Initial velocities that constraints do not allow."""

    code: ClassVar[str] = "JM302"
    name: ClassVar[str] = "inconsistent-velocity"
    severity: ClassVar[Severity] = Severity.WARNING
    text: ClassVar[str] = (
        "The initial velocities of the bodies break a constraint or do not agree with a driver. "
        "A simulation stops there, or changes them in its first step as if something had hit. "
        "Give velocities that fit (`simulate --assemble` finds the nearest), or a driver that "
        "starts as the bodies do."
    )

    def findings(self, subject: Subject) -> Iterator[Finding]:
        structure = subject.system.structure
        scale = structure.residual_scale(float(subject.reference.report.length))
        rate = np.abs(np.asarray(subject.reference.rate))
        size = np.max(rate / scale, initial=0.0)
        least = subject.system.tolerances.velocity * max(1.0, subject.speed)
        if subject.is_open or not size > least:
            return
        row = int(np.argmax(rate / scale))
        name = structure.constraint_names[structure.row_owner[row]]
        unit = structure.rows[row].quantity.unit
        yield self.finding(
            f"the initial velocities break {subject.part(name)} by {rate[row]:.3g} {unit}/s",
            [subject.part(name)],
            amount=float(rate[row]),
        )


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
        names = [body.name for body in model.bodies]
        for force in model.forces:
            # A force on a joint acts on bodies that are used already.
            if isinstance(force, AbstractBodyForce):
                used |= {x for name in force.bodies for x in meant_by(name, names)}
        used = {body_of(name) for name in used}
        for body in model.bodies:
            if body.name not in used and len(model.bodies) > 1:
                yield self.finding(
                    f"body {body.name!r} has no joint and no force", [Part("body", body.name)]
                )


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
            given = {name: getattr(force, name) for name in force.strengths}
            named = {name: x for name, x in given.items() if x is not None}
            if named and not any(np.any(np.asarray(x)) for x in named.values()):
                yield self.finding(
                    f"force {force.name!r} does nothing: its {', '.join(named)} "
                    f"{'is' if len(named) == 1 else 'are'} zero",
                    [Part("force", force.name)],
                )


class IdleMotor(AbstractRule):
    """A motor whose command is zero at all times."""

    code: ClassVar[str] = "JM505"
    name: ClassVar[str] = "idle-motor"
    severity: ClassVar[Severity] = Severity.WARNING
    text: ClassVar[str] = (
        "The command of a motor is zero at all times, and its controller, if it has one, has no "
        "gain, so that it never drives: it makes no torque, or (a DC motor) brakes alone. Give it "
        "a command or a controller, or leave it out."
    )

    def findings(self, subject: Subject) -> Iterator[Finding]:
        for motor in subject.model.forces:
            if not isinstance(motor, Motor):
                continue
            controller, command = motor.controller, motor.command
            if controller is not None and any(np.any(x) for x in controller.gains().values()):
                continue
            if command is not None and any(float(command(t)) for t in motion_times(command)):
                continue
            why = "its command is zero" if controller is None else "the gains of its PID are zero"
            does = "does nothing" if motor.actuator.passive else "brakes and never drives"
            yield self.finding(f"motor {motor.name!r} {does}: {why}", [Part("force", motor.name)])


class IdleTendon(AbstractRule):
    """A tendon along which nothing acts."""

    code: ClassVar[str] = "JM508"
    name: ClassVar[str] = "idle-tendon"
    severity: ClassVar[Severity] = Severity.WARNING
    text: ClassVar[str] = (
        "A tendon has no row, and no spring, motor, stop, friction or driver names it as its "
        "joint, so that it does nothing. Give it one, or leave it out; a rope that holds a length "
        "is `rope`."
    )

    def findings(self, subject: Subject) -> Iterator[Finding]:
        model, kinds = subject.model, (AbstractJointForce, AbstractJointFriction)
        used = {force.joint for force in model.forces if isinstance(force, kinds)}
        used |= {driver.joint for driver in model.drivers}
        for joint in model.joints:
            if not joint.constrains and joint.name not in used:
                yield self.finding(
                    f"nothing acts along the tendon {joint.name!r}", [Part("joint", joint.name)]
                )


class PressedStop(AbstractRule):
    """A stop of a joint that is pressed in the reference configuration."""

    code: ClassVar[str] = "JM506"
    name: ClassVar[str] = "pressed-stop"
    severity: ClassVar[Severity] = Severity.WARNING
    text: ClassVar[str] = (
        "A joint is beyond its stop in the reference configuration, so that a motion from there "
        "begins with the force of the stop. Bounds count from the reference configuration, in rad "
        "or m. Correct the bound, or place the bodies elsewhere; leave it if they rest on the stop."
    )

    def findings(self, subject: Subject) -> Iterator[Finding]:
        system = subject.system
        if not system.stops:
            return
        length = float(subject.reference.report.length)
        depths = np.asarray(system.stop_depths(system.reference_q))
        for stop, own in zip(system.stops, depths, strict=True):
            end, unit = int(np.argmax(own)), stop.quantity.unit
            size = length if stop.quantity.scale is None else stop.quantity.scale
            if not own[end] <= float(system.tolerances.closed) * size:
                bound = ("lower", "upper")[end]
                yield self.finding(
                    f"stop {stop.name!r} is pressed in the reference configuration: joint "
                    f"{stop.joint!r} is {own[end]:.3g} {unit} beyond its {bound} bound",
                    [Part("force", stop.name)],
                    amount=float(own[end]),
                )


class OverlappingContact(AbstractRule):
    """Shapes in contact that overlap by much at the start."""

    code: ClassVar[str] = "JM507"
    name: ClassVar[str] = "overlapping-contact"
    severity: ClassVar[Severity] = Severity.WARNING
    text: ClassVar[str] = (
        "Two shapes in contact overlap in the reference configuration by more than a twentieth of "
        "their smallest dimension, so that a simulation begins with a force that throws them "
        "apart. Move one of the bodies or the place of its shape, or turn the normal of the "
        "half-space round; it points out of the half-space."
    )

    def findings(self, subject: Subject) -> Iterator[Finding]:
        system = subject.system
        for contact, said in overlap_sentences(system, system.reference_q, system.initial_v):
            yield self.finding(said, [Part("force", contact.name)])


class RestingDriver(AbstractRule):
    """A driver whose value never changes."""

    code: ClassVar[str] = "JM503"
    name: ClassVar[str] = "resting-driver"
    severity: ClassVar[Severity] = Severity.NOTE
    text: ClassVar[str] = (
        "A driver holds its joint at one value for ever. That is a lock: say so by a fixed joint, "
        "or give the driver the motion that it was meant to have."
    )

    def findings(self, subject: Subject) -> Iterator[Finding]:
        for driver in subject.model.drivers:
            values = [float(driver.motion(t)) for t in motion_times(driver.motion)]
            if max(values) == min(values):
                yield self.finding(
                    f"driver {driver.name!r} never moves: it stays at {values[0]:.6g}",
                    [Part("driver", driver.name)],
                )


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
            connect([x for name in force.bodies for x in meant_by(name, bodies)])
    groups: dict[str, list[str]] = {}
    for name, own in leader.items():
        groups.setdefault(own, []).append(name)
    return list(groups.values())
