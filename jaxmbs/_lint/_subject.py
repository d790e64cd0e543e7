"""Subject of the rules: a model, and the results computed for it, once for all rules."""

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Float

from .._constraints import Driver
from .._custom_types import BoolScalar
from .._kinematics import assemble, close_neighbour, is_closed, open_constraints
from .._limits import EXACT
from .._mobility import is_left_out, Mobility, without_asking
from .._programs import Compiling, program
from .._solution import RESULTS
from .._solvability import (
    analyze,
    dependent_sets,
    DependentSets,
    Solvability,
)
from .._system import AbstractSystem, Attachments, Model, MultibodySystem
from .._verdict import Verdict
from ._findings import Part


# Number of neighbours, and their distance in characteristic lengths or radians (see `singularity`).
_NEIGHBOURS, _SPREAD = 6, 0.05

# Neighbours nearer than this are the configuration itself: closing it again finds it only to the
# square root of rounding where the rank is too small.
_SAME = 1e-4

# Rows of C, without units and of unit length, that depend on each other.
_DEPENDENT = 1e-8


class Numbers(eqx.Module):
    """Results at one configuration, all in one program.

    `residual`: what is left of Phi, lengths relative to the characteristic length; `matrix`: C;
    `rate` (rows,): C v + b, `offset` (rows,): b; `curvature` (rows,): Gamma of C dv/dt = Gamma, at
    the velocities nearest to v that satisfy the constraints; `mass_matrix` M. `verdict`: which
    reactions are unique, with the compliances that there are. `places`: where constraints act.
    """

    report: Solvability
    verdict: Verdict
    residual: Float[Array, " geometric"]
    matrix: Float[Array, "rows nv"]
    rate: Float[Array, " rows"]
    offset: Float[Array, " rows"]
    curvature: Float[Array, " rows"]
    mass_matrix: Float[Array, "nv nv"]
    places: Attachments


@program(compiling=Compiling.ONCE)
def _numbers(
    system: AbstractSystem, q: Float[Array, " nq"], v: Float[Array, " nv"], t: Float[Array, ""]
) -> Numbers:
    report = analyze(system, q, v, t)
    elastic = analyze(system, q, v, t, elastic=True) if system.structure.compliances else report
    matrix, rate = system.constraint_matrix(q, v, t), system.velocity_residual(q, v, t)
    columns = system.column_scale()
    unit = matrix * columns[None, :] / report.row_scale[:, None]
    allowed = v - columns * (jnp.linalg.pinv(unit, rtol=_DEPENDENT) @ (rate / report.row_scale))
    return Numbers(
        report=report,
        verdict=elastic.reaction_unique,
        residual=system.scaled_residual(q, t),
        matrix=matrix,
        rate=rate,
        offset=system.velocity_offset(q, v, t),
        curvature=system.acceleration_offset(q, allowed, t),
        mass_matrix=system.mass_matrix(q, t),
        places=system.places(q, v, t),
    )


@program(compiling=Compiling.ONCE)
def _closed_near(
    system: AbstractSystem, step: Float[Array, " nv"], q: Float[Array, " nq"], t: float
) -> tuple[Float[Array, " nq"], BoolScalar]:
    """`q` displaced by a step and closed again without drivers, and whether it is closed."""
    at = system.retract(q, step)
    at, _, closed = close_neighbour(system, at, jnp.asarray(t, q.dtype), drivers=False)
    return at, closed


def _rank_nearby(report: Solvability) -> int:
    """Singular values of the size of the distance to a singular configuration do count, and those
    of the size of its square do not."""
    pivots = np.asarray(report.pivots)
    coarse = int(np.sum(pivots > EXACT.rank_nearby * np.max(pivots, initial=0.0)))
    return min(coarse, int(report.rank))


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
        """The results at the reference configuration, with the initial velocities."""
        return self._at(self.system.reference_q)

    @cached_property
    def is_open(self) -> bool:
        """Is the reference configuration not closed?"""
        return not bool(is_closed(self.reference.residual, self.system.precision))

    @cached_property
    def closed(self) -> Numbers | None:
        """The results at the closed configuration; None where none was found."""
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
        """Constraints that cannot be closed: name, residual and unit, where the search ended."""
        return open_constraints(self.system, self._assembly.residual)

    @cached_property
    def open_constraints(self) -> list[tuple[str, float, str]]:
        """Joints and drivers that are open in the reference configuration, likewise."""
        return open_constraints(self.system, self.reference.residual)

    @cached_property
    def _nearby(self) -> list[tuple[Any, Numbers]]:
        """Closed configurations next to the closed one; none where no rank could be greater
        there: where nothing is redundant, or nothing moves."""
        if self.closed is None:
            return []
        report = self.closed.report
        if not (int(report.redundancy) > 0 and int(report.mobility) > 0):
            return []
        found = []
        for key in jr.split(jr.key(0), _NEIGHBOURS):
            step = _SPREAD * self.system.column_scale() * jr.normal(key, (self._nv,))
            q, closed = _closed_near(self.system, step, self.closed_q, self.t)
            if bool(closed):
                found.append((q, self._at(q)))
        return found

    @cached_property
    def is_isolated(self) -> bool:
        """Is there no closed configuration next to the closed one, although C lets it move?"""
        unit = self.system.structure.coordinate_scale(self.system.characteristic_length())
        return bool(self._nearby) and all(
            float(jnp.max(jnp.abs((q - self.closed_q) / unit))) < _SAME for q, _ in self._nearby
        )

    @property
    def is_singular(self) -> bool:
        """Is the rank greater at closed configurations next to the closed one?"""
        return self._generic is not None

    @property
    def generic_q(self) -> Any:
        """The closed configuration or, where that is singular, a regular one next to it."""
        return self.closed_q if self._generic is None else self._generic[0]

    @property
    def generic(self) -> Numbers | None:
        """The results at `generic_q`, which excludes constraints that are redundant in one
        configuration alone."""
        return self.closed if self._generic is None else self._generic[1]

    @cached_property
    def _generic(self) -> tuple[Any, Numbers] | None:
        """The configuration with the greatest rank, if that is another one."""
        if not self._nearby or self.is_isolated:
            return None
        best = max(self._nearby, key=lambda own: _rank_nearby(own[1].report))
        assert self.closed is not None
        return best if _rank_nearby(best[1].report) > int(self.closed.report.rank) else None

    @cached_property
    def mobility(self) -> Mobility | None:
        """Mobility at the closed configuration, where it may differ from n - rank."""
        if self.closed is None:
            return None
        return without_asking(self.closed.report, self.system, self.closed_q, self.t)

    @property
    def is_mobility_left_out(self) -> bool:
        """May the real mobility be another than n - rank, and was it not computed?"""
        return self.closed is not None and is_left_out(self.closed.report)

    @cached_property
    def dependent(self) -> DependentSets | None:
        """Dependent sets of the generic configuration."""
        return None if self.generic is None else dependent_sets(self.generic.report)

    def part(self, name: str) -> Part:
        """The joint or driver of that name."""
        driver = self.system.structure.constraint(name).kind == Driver.kind
        return Part("driver" if driver else "joint", name)

    @property
    def speed(self) -> float:
        """The largest initial velocity, lengths relative to the characteristic length (1/s)."""
        unit = np.asarray(self.system.column_scale())
        return float(np.max(np.abs(np.asarray(self.system.initial_v) / unit), initial=0.0))

    def mass(self, name: str) -> float:
        """Mass of the body of that name (kg): the mean of its mass along its axes; 0 if it has none
        of its own frame."""
        return float(np.mean(np.diagonal(self._block(name, "force")))) if self._has(name) else 0.0

    def radius_of_gyration(self, name: str) -> float:
        """Radius of gyration of the largest principal moment (m); 0 for a body that has none."""
        if not self._has(name):
            return 0.0
        block = self._block(name, "torque")
        moment = float(np.max(np.linalg.eigvalsh(block), initial=0.0))
        return float(np.sqrt(max(moment, 0.0) / self.mass(name)))

    @cached_property
    def joint_points(self) -> dict[str, dict[str, np.ndarray]]:
        """Vectors, by body and joint, from the body's centre of mass to the joint's point on it (m,
        world axes), in the reference configuration."""
        places = self.reference.places
        layout, names = places.layout, self.system.structure.constraint_names
        arms = np.asarray(places.point) - np.asarray(places.origin)
        found: dict[str, dict[str, np.ndarray]] = {}
        for k, (constraint, site) in enumerate(zip(layout.constraints, layout.bodies, strict=True)):
            body = site.partition(".")[0]
            if body != layout.ground:
                found.setdefault(body, {}).setdefault(names[constraint], arms[k])
        return found

    def _has(self, name: str) -> bool:
        info = self._info(name)
        return bool(info.force) and bool(np.all(np.diagonal(self._block(name, "force")) > 0))

    def _info(self, name: str) -> Any:
        return next(b for b in self.system.structure.bodies if b.name == name)

    def _block(self, name: str, which: str) -> np.ndarray:
        info = self._info(name)
        columns = {"force": info.force, "torque": info.torque}[which]
        return self._own_mass[np.ix_(columns, columns)]

    @cached_property
    def _own_mass(self) -> np.ndarray:
        """M without what elements add to it: the inertia of a drive is none of a body."""
        matrix = np.asarray(self.reference.mass_matrix)
        if not self.model.elements:
            return matrix
        own = np.zeros_like(matrix)
        for body, info in zip(self.model.bodies, self.system.structure.bodies, strict=True):
            inertia = body.inertia_properties()
            q = body.coordinates()
            own[np.ix_(info.columns, info.columns)] = inertia.mass_matrix(
                q, jnp.asarray(self.t, q.dtype)
            )
        return own

    @property
    def _nv(self) -> int:
        return self.system.structure.nv

    @cached_property
    def _assembly(self) -> Any:
        return assemble(self.system, self.system.reference_q, self.t, throw=False)

    def _at(self, q: Any) -> Numbers:
        return _numbers(self.system, q, self.system.initial_v, jnp.asarray(self.t, float))
