"""Elastic bodies that are set up beyond their theory."""

from collections.abc import Iterator
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..._dynamics import limits_left_by_motion
from ..._programs import Compiling, program
from ..._system import AbstractSystem
from .._findings import Finding, Part, Severity
from .._subject import Subject
from ..base import AbstractRule
from ._times import motion_times


# Rows of C, without units, below this part of the largest say nothing new; squares of frequencies
# below this part of the largest are those of rigid motions.
_RANK, _RIGID = 1e-9, 1e-10


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
        driven = [motion_times(driver) for driver in subject.model.drivers]
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
    rank = int(np.sum(values > _RANK * np.max(values, initial=0.0)))
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
    kept = values > _RANK * np.max(values, initial=0.0)
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
    return -scale * (offsets @ np.linalg.pinv(matrix * scale, rcond=_RANK).T)
