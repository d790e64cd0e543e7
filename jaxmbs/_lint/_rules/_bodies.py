"""Rules about the numbers of bodies: inertias that cannot be or are out of scale, points and
gravity that are off by a power of ten, and elastic bodies beyond their theory.
"""

import itertools
from collections.abc import Iterator
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..._dynamics import limits_left_by_motion
from ..._limits import EXACT
from ..._programs import Compiling, program
from ..._system import AbstractSystem
from .._findings import Finding, Part, Severity
from .._subject import Subject
from ..base import AbstractRule
from ._shared import motion_times


class ImpossibleBody(AbstractRule):
    """A mass or an inertia that no body can have."""

    code: ClassVar[str] = "JM401"
    name: ClassVar[str] = "impossible-body"
    severity: ClassVar[Severity] = Severity.ERROR
    text: ClassVar[str] = (
        "A mass is not greater than zero, or an inertia is not positive definite, not symmetric, "
        "or breaks the triangle inequality: the largest principal moment may not exceed the sum "
        "of the two others. Many programs take it and integrate a body that cannot be. Often the "
        "inertia is about another point or in another unit, or a product of inertia has the wrong "
        "sign."
    )

    def findings(self, subject: Subject) -> Iterator[Finding]:
        for name, why in subject.impossible.items():
            yield self.finding(f"body {name!r}: {why}", [Part("body", name)])


# Between bodies of one joint.
_LARGE = 1e5


class MassRatio(AbstractRule):
    """Masses on one joint that are very different."""

    code: ClassVar[str] = "JM402"
    name: ClassVar[str] = "mass-ratio"
    severity: ClassVar[Severity] = Severity.WARNING
    text: ClassVar[str] = (
        "Two bodies that a joint connects have masses whose ratio is above 1e5. Equations of "
        "motion lose as many digits, iterative solvers need as many more iterations, and the "
        "light body is often one that was only added to carry a joint. Fuse it with a neighbour, "
        "or give it the mass that it has."
    )

    def findings(self, subject: Subject) -> Iterator[Finding]:
        structure = subject.system.structure
        told: set[frozenset[str]] = set()
        for info in structure.constraints:
            names = [structure.bodies[k].name for k in info.bodies]
            for pair in itertools.combinations(names, 2):
                if set(pair) & subject.impossible.keys() or frozenset(pair) in told:
                    continue
                masses = {name: subject.mass(name) for name in pair}
                light, heavy = sorted(pair, key=masses.__getitem__)
                if not 0 < masses[light] < masses[heavy] / _LARGE:
                    continue
                told.add(frozenset(pair))
                ratio = masses[heavy] / masses[light]
                yield self.finding(
                    f"bodies {heavy!r} ({masses[heavy]:.3g} kg) and {light!r} "
                    f"({masses[light]:.3g} kg) at {subject.part(info.name)} have masses of the "
                    f"ratio {ratio:.2g}",
                    [Part("body", light), Part("body", heavy)],
                    ratio=ratio,
                )


# --------------------------------------------------------------------------------------------------
# Points and numbers that are off by a power of ten: millimetres for metres, kg mm2 for kg m2.
# --------------------------------------------------------------------------------------------------


# A factor of a thousand leaves rods above this, whose joints are two radii of gyration from their
# middle, and the smallest bob on a long string below.
_FAR = 200.0

# Radii of gyration, relative to the distance of the joints, that are the rounding of zero.
_POINT = 1e-7


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
            # (A point of mass on joints through one point has no size to compare with.)
            if size > _POINT * nearest and nearest > _FAR * size:
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


# --------------------------------------------------------------------------------------------------
# Elastic bodies that are set up beyond their theory.
# --------------------------------------------------------------------------------------------------


# Rows of C, without units, below this part of the largest say nothing new; squares of frequencies
# below this part of the largest are those of rigid motions.
_RIGID = 1e-10


class BeyondElasticTheory(AbstractRule):
    """An elastic body that turns too fast, or bends too far, for its theory."""

    code: ClassVar[str] = "JM407"
    name: ClassVar[str] = "beyond-elastic-theory"
    severity: ClassVar[Severity] = Severity.WARNING
    text: ClassVar[str] = (
        "An elastic body without displacements of second order turns, by its initial velocity or "
        "by a driver, faster than a third of its lowest frequency, so that centrifugal force, "
        "which is left out there, would decide its bending; or loads at rest bend it by more than "
        "a fifth of its length, where deformations are no longer small. Give it displacements of "
        "second order, make it stiffer, or make several bodies of it."
    )

    def findings(self, subject: Subject) -> Iterator[Finding]:
        system, q = subject.system, subject.closed_q
        elastic = [k for _, bodies in system.elasticities() for k in bodies]
        if not elastic or q is None:
            return
        driven = [motion_times(driver.motion) for driver in subject.model.drivers]
        later = np.concatenate([np.zeros(0), *driven])
        times = np.concatenate([[subject.t], np.unique(later[later > subject.t])])
        terms = _terms(system, q, jnp.asarray(times))
        bent = _bent(system, q, *(np.asarray(x) for x in terms[:3]))
        v = _driven_velocities(system, *(np.asarray(x) for x in terms[2:]))
        v[0] = np.asarray(system.initial_v)
        sentences = limits_left_by_motion(
            system, jnp.asarray(times), jnp.tile(bent, (len(times), 1)), jnp.asarray(v)
        )
        for name in (system.structure.bodies[k].name for k in elastic):
            for sentence in sentences:
                if sentence.startswith(f"Elastic body {name!r} "):
                    yield self.finding(sentence.rstrip("."), [Part("body", name)])


@program(compiling=Compiling.ONCE)
def _terms(system: AbstractSystem, q: Float[Array, " nq"], times: Float[Array, " n"]) -> Any:
    """M, the force at rest and C at the first time, and C v + b without v at all of them."""
    rest, t = jnp.zeros(system.structure.nv), times[0]
    offsets = jax.vmap(lambda t: system.velocity_offset(q, rest, t))(times)
    matrix = system.constraint_matrix(q, rest, t)
    return system.mass_matrix(q, t), system.force(q, rest, t), matrix, offsets


def _bent(
    system: AbstractSystem,
    q: Float[Array, " nq"],
    mass: Float[np.ndarray, "nv nv"],
    force: Float[np.ndarray, " nv"],
    matrix: Float[np.ndarray, "rows nv"],
) -> Float[Array, " nq"]:
    """q with the deformations in which elastic forces balance the loads at rest, as far as those
    do not accelerate the mechanism; what else would move stays."""
    scale = np.asarray(system.column_scale())
    _, values, right = np.linalg.svd(matrix * scale, full_matrices=True)
    rank = int(np.sum(values > EXACT.rank * np.max(values, initial=0.0)))
    free = scale[:, None] * right[rank:].T
    stiffness = np.zeros_like(mass)
    places: list[tuple[int, int]] = []
    for elasticity, bodies in system.elasticities():
        for j, k in enumerate(bodies):
            info = system.structure.bodies[k]
            own = list(info.columns[6:])
            stiffness[np.ix_(own, own)] = np.asarray(elasticity.stiffness)[j]
            places += zip(own, info.coordinates[7:], strict=True)
    inner = free.T @ mass @ free
    values, vectors = np.linalg.eigh(inner)
    # Of what has no mass nothing is said.
    kept = values > EXACT.rank * np.max(values, initial=0.0)
    free = free @ (vectors[:, kept] / np.sqrt(values[kept]))
    squares, shapes = np.linalg.eigh(free.T @ stiffness @ free)
    held = squares > _RIGID * np.max(squares, initial=0.0)
    shapes = free @ shapes[:, held]
    moved = shapes @ (shapes.T @ force / squares[held])
    found = np.array(q)
    for column, place in places:
        found[place] += moved[column]
    return jnp.asarray(found)


def _driven_velocities(
    system: AbstractSystem,
    matrix: Float[np.ndarray, "rows nv"],
    offsets: Float[np.ndarray, "n rows"],
) -> Float[np.ndarray, "n nv"]:
    """The smallest velocities that drivers ask for."""
    scale = np.asarray(system.column_scale())
    return -scale * (offsets @ np.linalg.pinv(matrix * scale, rcond=EXACT.rank).T)
