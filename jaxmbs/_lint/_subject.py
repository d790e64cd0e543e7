"""What rules look at: a model, and what was computed of it, once for all of them."""

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._constraints import Driver
from .._kinematics import assemble, is_closed, open_constraints
from .._solution import RESULTS
from .._solvability import analyze, dependent_sets, DependentSets, Solvability
from .._system import AbstractSystem, Model, MultibodySystem
from ._findings import Part


class Numbers(eqx.Module):
    """Of one configuration, all in one program.

    `residual`: what is left of Phi, lengths relative to the characteristic length; `matrix`: C;
    `rate` (rows,): C v + b, `offset` (rows,): b; `mass_matrix` M.
    """

    report: Solvability
    residual: Float[Array, " geometric"]
    matrix: Float[Array, "rows nv"]
    rate: Float[Array, " rows"]
    offset: Float[Array, " rows"]
    mass_matrix: Float[Array, "nv nv"]


@eqx.filter_jit
def _numbers(
    system: AbstractSystem, q: Float[Array, " nq"], v: Float[Array, " nv"], t: Float[Array, ""]
) -> Numbers:
    return Numbers(
        report=analyze(system, q, v, t),
        residual=system.scaled_residual(q, t),
        matrix=system.constraint_matrix(q, v, t),
        rate=system.velocity_residual(q, v, t),
        offset=system.velocity_offset(q, v, t),
        mass_matrix=system.mass_matrix(q, t),
    )


class Subject:
    """A model at its reference configuration, and, where that is open, at the closed one nearest to
    it.

    `impossible`: what is wrong with the mass or inertia of bodies that no body can have, by name;
    the model holds others in their place.
    """

    def __init__(self, model: Model, t: float, impossible: Mapping[str, str]):
        self.model = model
        self.t = t
        self.impossible = impossible
        self.system: MultibodySystem = model.system()

    @cached_property
    def reference(self) -> Numbers:
        """At the reference configuration, with the initial velocities."""
        return self._at(self.system.reference_q)

    @cached_property
    def is_open(self) -> bool:
        """Is the reference configuration not closed?"""
        return not bool(is_closed(self.reference.residual))

    @cached_property
    def closed(self) -> Numbers | None:
        """At the closed configuration; None where none was found."""
        if not self.is_open:
            return self.reference
        q = self.closed_q
        return None if q is None else self._at(q)

    @cached_property
    def closed_q(self) -> Any:
        """The reference configuration, or the closed one nearest to it; None if none is found."""
        if not self.is_open:
            return self.system.reference_q
        found = self._assembly
        return found.q if bool(found.result == RESULTS.successful) else None

    @cached_property
    def left_open(self) -> list[tuple[str, float, str]]:
        """Of what cannot be closed: name, by how much and unit, where the search ended."""
        return open_constraints(self.system, self._assembly.residual)

    @cached_property
    def open_constraints(self) -> list[tuple[str, float, str]]:
        """Joints and drivers that are open in the reference configuration, likewise."""
        return open_constraints(self.system, self.reference.residual)

    @cached_property
    def dependent(self) -> DependentSets | None:
        """Of the closed configuration."""
        return None if self.closed is None else dependent_sets(self.closed.report)

    def part(self, name: str) -> Part:
        """The joint or driver of that name."""
        driver = self.system.structure.constraint(name).kind == Driver.kind
        return Part("driver" if driver else "joint", name)

    def mass(self, name: str) -> float:
        """Of the body of that name (kg): the mean of its mass along its axes; 0 if it has none of
        its own frame."""
        return float(np.mean(np.diagonal(self._block(name, "force")))) if self._has(name) else 0.0

    def radius_of_gyration(self, name: str) -> float:
        """Of the largest principal moment (m); 0 for a body that has none."""
        if not self._has(name):
            return 0.0
        block = self._block(name, "torque")
        moment = float(np.max(np.linalg.eigvalsh(block), initial=0.0))
        return float(np.sqrt(max(moment, 0.0) / self.mass(name)))

    def _has(self, name: str) -> bool:
        info = self._info(name)
        return bool(info.force) and bool(np.all(np.diagonal(self._block(name, "force")) > 0))

    def _info(self, name: str) -> Any:
        return next(b for b in self.system.structure.bodies if b.name == name)

    def _block(self, name: str, which: str) -> np.ndarray:
        info = self._info(name)
        columns = {"force": info.force, "torque": info.torque}[which]
        return np.asarray(self.reference.mass_matrix)[np.ix_(columns, columns)]

    @cached_property
    def _assembly(self) -> Any:
        return assemble(self.system, self.system.reference_q, self.t, throw=False)

    def _at(self, q: Any) -> Numbers:
        return _numbers(self.system, q, self.system.initial_v, jnp.asarray(self.t, float))
