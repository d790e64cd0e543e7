"""Points and numbers that are off by a power of ten: millimetres for metres, kg mm2 for kg m2."""

from collections.abc import Iterator
from typing import ClassVar

import numpy as np

from .._findings import Finding, Part, Severity
from .._subject import Subject
from ..base import AbstractRule


# A factor of a thousand leaves rods above this, whose joints are two radii of gyration from their
# middle, and the smallest bob on a long string below.
_FAR = 200.0


def _held_bodies(subject: Subject) -> Iterator[tuple[str, list[str], np.ndarray, float]]:
    """Each body whose inertia is possible: its name, its joints, the vectors (joints, dim) from its
    centre of mass to their points (m), and its radius of gyration (m)."""
    for body, arms in subject.joint_points.items():
        if body not in subject.impossible:
            yield body, list(arms), np.array(list(arms.values())), subject.radius_of_gyration(body)


class DistantJoint(AbstractRule):
    """A joint many body lengths away from its body."""

    code: ClassVar[str] = "JM404"
    name: ClassVar[str] = "distant-joint"
    severity: ClassVar[Severity] = Severity.WARNING
    text: ClassVar[str] = (
        "A joint's point is more than two hundred times as far from the centre of mass of one of "
        "its bodies as the body is large, which its radius of gyration and its other joints tell: "
        "most likely the point is in another unit (mm for m), or belongs to another body. Correct "
        "it."
    )

    def findings(self, subject: Subject) -> Iterator[Finding]:
        for body, joints, arms, radius in _held_bodies(subject):
            sizes = np.linalg.norm(arms, axis=1).tolist()
            for k, (joint, size) in enumerate(zip(joints, sizes, strict=True)):
                others = sizes[:k] + sizes[k + 1 :]
                if not others:
                    # With a single joint, either of the two points may be the wrong one.
                    continue
                near = max(radius, min(others))
                if near and size > _FAR * near:
                    yield self.finding(
                        f"{subject.part(joint)} is {size:.3g} m away from the centre of mass of "
                        f"body {body!r}, whose size is about {near:.3g} m",
                        [subject.part(joint), Part("body", body)],
                        distance=size,
                        size=near,
                    )


class DistantCentre(AbstractRule):
    """A centre of mass far away from all joints of its body."""

    code: ClassVar[str] = "JM405"
    name: ClassVar[str] = "distant-centre-of-mass"
    severity: ClassVar[Severity] = Severity.WARNING
    text: ClassVar[str] = (
        "The centre of mass of a body is more than two hundred times as far from each of its "
        "joints as these are from each other, and as its radius of gyration: most likely the "
        "position of the body is in another unit (mm for m), or is one of another frame; of a body "
        "on a single joint it may as well be the inertia (kg m2 divided by a million). Correct it."
    )

    def findings(self, subject: Subject) -> Iterator[Finding]:
        for body, joints, arms, radius in _held_bodies(subject):
            apart = float(np.max(np.linalg.norm(arms[:, None] - arms[None], axis=-1)))
            size = max(apart, radius)
            nearest = float(np.min(np.linalg.norm(arms, axis=1)))
            if size and nearest > _FAR * size:
                yield self.finding(
                    f"the centre of mass of body {body!r} is {nearest:.3g} m away from the nearest "
                    f"of its joints ({', '.join(joints[:3])}), and the body's size is about "
                    f"{size:.3g} m",
                    [Part("body", body)],
                    distance=nearest,
                    size=size,
                )


class GravityOutOfScale(AbstractRule):
    """Gravity in another unit."""

    code: ClassVar[str] = "JM406"
    name: ClassVar[str] = "gravity-out-of-scale"
    severity: ClassVar[Severity] = Severity.WARNING
    text: ClassVar[str] = (
        "Gravity is greater than on the surface of any star (300 m/s2) or smaller than on any "
        "moon (0.002 m/s2): 9810 mm/s2, 981 cm/s2 and 0.00981 km/s2 are 9.81 in SI units, which "
        "models have throughout. Correct it, or leave gravity out where there is none."
    )

    def findings(self, subject: Subject) -> Iterator[Finding]:
        size = float(np.linalg.norm(np.asarray(subject.system.gravity)))
        slip = any(abs(size / (9.81 * factor) - 1) < 0.02 for factor in (1e-3, 1e-2, 1e2, 1e3))
        if size > 300 or 0 < size < 2e-3 or slip:
            yield self.finding(
                f"gravity is {size:.4g} m/s2; on Earth it is 9.81 m/s2",
                [Part("model", subject.model.name)],
                gravity=size,
            )
