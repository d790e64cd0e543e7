"""Comparison of all formulations at one state, with the verdicts."""

from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .. import _settings
from .._custom_types import RealScalarLike, Setting
from .._limits import EXACT
from .._printing import AbstractAnswer, Column, Description, rows_of_last_table, Table
from .._programs import program
from .._solution import RESULTS
from .._solvability import analyze, Solvability
from .._system import AbstractSystem, Equations, takes_state
from ._augmented_lagrangian import AugmentedLagrangian
from ._elastic_resolution import SUCH_AS
from ._independent_coordinates import CoordinatePartitioning, Elimination, NullSpace
from ._minimum_norm import MinimumNorm, UdwadiaKalaba
from .base import AbstractFormulation, Accelerations


class Differences(NamedTuple):
    """Largest differences of what belongs to each joint or driver, relative to the largest
    multiplier: of its generalized reaction and of its multipliers, (constraints,) each."""

    reactions: np.ndarray
    multipliers: np.ndarray


class Comparison(AbstractAnswer):
    """The outcome of `compare`.

    - `formulations`, `runs`: the formulations compared, and the result of each, in the same order.
    - `acceleration_difference` (runs,): of dv/dt from that of the first run that succeeded,
      relative, in the norm of the kinetic energy; NaN for a run that failed.
    - `between_runs`: the largest differences between any two runs that succeeded.
    - `shaken`: multipliers lambda + N z of the first run, N a basis of the left null space of C
      and z random: they satisfy the same equations. `under_shaking`: what that changes.
    - `solvability`: the verdicts.
    """

    formulations: tuple[AbstractFormulation, ...]
    runs: tuple[Accelerations, ...]
    acceleration_difference: np.ndarray
    between_runs: Differences
    shaken: Float[Array, " rows"]
    under_shaking: Differences
    solvability: Solvability

    def succeeded(self) -> tuple[bool, ...]:
        """Success of each run."""
        return tuple(bool(run.result == RESULTS.successful) for run in self.runs)

    def contradictions(self) -> tuple[str, ...]:
        """Joints and drivers whose reaction is called unique and yet differs, or is called not
        unique and yet cannot be changed: none, unless the configuration is so close to a
        singular one that rounding decides."""
        unique = np.asarray(self.solvability.reaction_unique)
        differs = self.between_runs.reactions > EXACT.unique
        changes = self.under_shaking.reactions > EXACT.unique
        wrong = (unique & (differs | changes)) | (~unique & ~changes)
        names = self.solvability.structure.constraint_names
        return tuple(name for name, bad in zip(names, wrong, strict=True) if bad)

    rows = rows_of_last_table

    def described(self) -> Description:
        good = self.succeeded()
        labels = [formulation.label for formulation in self.formulations]
        differences = [
            f"{d:.1e}" if ok else "failed"
            for d, ok in zip(self.acceleration_difference, good, strict=True)
        ]
        rows = list(zip(labels, differences, strict=True))
        runs = Table.of(("formulation", "acceleration differs by"), rows)
        constraints = self.solvability.structure.constraints
        between, shaken = (
            [_words(own, k) for k in range(len(constraints))]
            for own in (self.between_runs, self.under_shaking)
        )
        joints = Table(
            [
                Column("joint", [info.name for info in constraints]),
                Column("type", [info.kind for info in constraints]),
                Column("verdict", self.solvability.verdicts()),
                Column("between formulations", between),
                Column("with lambda + N z", shaken),
            ]
        )
        largest = np.nanmax(self.acceleration_difference, initial=0.0)
        failures = [
            f"{label}: {RESULTS[run.result]}"
            for label, run, ok in zip(labels, self.runs, good, strict=True)
            if not ok
        ]
        named = ", ".join(self.contradictions())
        return Description(
            (),
            [runs, joints],
            [
                f"Largest relative difference of accelerations: {largest:.1e}",
                *failures,
                f"Decided by rounding: {named}." if named else "",
                self.solvability.doubt(),
            ],
        )


def _words(differences: Differences, k: int) -> str:
    reaction, multipliers = differences.reactions[k], differences.multipliers[k]
    word = "differs" if reaction > EXACT.unique else "same"
    if reaction <= EXACT.unique < multipliers:
        word = "same (multipliers differ)"
    return f"{word} {reaction:.1e}"


@takes_state(decides_rank=True)
def compare(
    system: AbstractSystem,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    t: RealScalarLike = 0.0,
    formulations: Setting[Sequence[AbstractFormulation] | None] = None,
    *,
    seed: Setting[int] = 0,
) -> Comparison:
    """Solve the equations of motion of one state by several formulations, and compare the results.

    Accelerations and unique reactions are the same in all. A reaction that is not unique may be
    the same too: pseudoinverse, Udwadia-Kalaba, null space and augmented Lagrangian all return
    the multipliers of minimum norm. Adding N z with random z shows exactly which reactions can
    change. Friction is left out.

    **Arguments:** `q` (nq,), `v` (nv,), `t` (s): the state; it should be closed and v admissible.
    `formulations`: default one of each, and where the mass matrix need only be semidefinite
    `UdwadiaKalaba(semidefinite=True)` alone. `seed`: of z, 0 to 2^32 - 1.

    **Returns:** a `Comparison`, which prints as a table.

    **Raises:** `ValueError` for a formulation whose options do not fit the system, `TypeError` for
    a value that is not a formulation.
    """
    if formulations is not None:
        chosen = formulations
    elif system.structure.semidefinite:
        chosen = (UdwadiaKalaba(semidefinite=True),)
    else:
        chosen = _one_of_each()
    chosen = _settings.instances(chosen, AbstractFormulation, "formulations", SUCH_AS)
    # JAX takes 32 bits of a seed: larger ones would be truncated without a warning.
    seed = _settings.seed(seed, most=2**32 - 1)
    if not chosen:
        raise ValueError(
            "formulations must hold at least one formulation, or be None for one of each."
        )
    t = jnp.asarray(t, q.dtype)
    equations = _equations(system, q, v, t)
    runs = tuple(_solve(formulation, equations) for formulation in chosen)
    solvability = analyze(system, q, v, t)
    meter = _Meter(equations, solvability, v, runs)
    found = meter.found
    added = meter.size * _null_vector(solvability, seed)
    pairs = [a - b for i, a in enumerate(found) for b in found[:i]]
    return Comparison(
        formulations=chosen,
        runs=runs,
        acceleration_difference=meter.acceleration_differences(),
        between_runs=meter.largest(pairs),
        shaken=jnp.asarray(added + (found[0] if found else 0.0)),
        under_shaking=meter.largest([added]),
        solvability=solvability,
    )


def _one_of_each() -> tuple[AbstractFormulation, ...]:
    return (
        MinimumNorm(),
        Elimination(),
        UdwadiaKalaba(),
        NullSpace(),
        CoordinatePartitioning(),
        AugmentedLagrangian(),
    )


@program
def _equations(
    system: AbstractSystem,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    t: Float[Array, ""],
) -> Equations:
    return system.equations(q, v, t)


# One compiled function each: a decomposition of one never waits for that of another.
@program
def _solve(formulation: AbstractFormulation, equations: Equations) -> Accelerations:
    return formulation.solve(equations)


def _null_vector(solvability: Solvability, seed: int) -> np.ndarray:
    """N z of unit length in rows of unit length, as multipliers; zero where nothing is
    redundant."""
    basis = np.asarray(solvability.null_space)
    random = np.asarray(jax.random.normal(jax.random.key(seed), (basis.shape[1],), basis.dtype))
    vector = basis @ random
    length = np.linalg.norm(vector) or 1.0
    return vector / length / np.asarray(solvability.row_scale)


class _Meter:
    """Measures multipliers joint by joint, and accelerations, in the scaling of the verdicts.

    Where nothing accelerates there is nothing but rounding, whose size is that of the forces
    that would turn the velocities over the characteristic length.
    """

    def __init__(
        self,
        equations: Equations,
        solvability: Solvability,
        v: Float[Array, " nv"],
        runs: Sequence[Accelerations],
    ):
        structure, length = solvability.structure, float(solvability.length)
        self._runs = [run if bool(run.result == RESULTS.successful) else None for run in runs]
        self.found = [np.asarray(run.multipliers) for run in self._runs if run is not None]
        self._columns = structure.column_scale(length)
        self._rows = [slice(c.start, c.stop) for c in structure.constraints]
        self._lengths = np.asarray(solvability.row_scale)
        # A metric, in which also coordinates without mass count.
        self._descriptor = equations.descriptor.metric()
        self._matrix = np.asarray(equations.descriptor.constraint_matrix()) * self._columns
        turning = v * np.max(np.abs(v) * length / self._columns, initial=0.0) / length
        self._free = (turning, self._descriptor.inverse_mass(equations.force))
        forces = np.asarray(self._descriptor.mass(turning)) * self._columns
        sizes = [forces, *(self._lengths * multipliers for multipliers in self.found)]
        self.size = max(np.max(np.abs(x), initial=0.0) for x in sizes) or 1.0

    def acceleration_differences(self) -> np.ndarray:
        """Relative differences from the first run that succeeded, in the norm of the kinetic
        energy."""
        good = [run.acceleration for run in self._runs if run is not None]
        # A mass matrix that turns out to be singular has no free accelerations.
        norms = map(self._energy_norm, [*self._free, *good])
        size = max(norm for norm in norms if np.isfinite(norm)) or 1.0
        return np.array(
            [
                np.nan if run is None else self._energy_norm(run.acceleration - good[0]) / size
                for run in self._runs
            ]
        )

    def _energy_norm(self, a: Array) -> float:
        return float(jnp.sqrt(a @ self._descriptor.mass(a)))

    def largest(self, changes: Sequence[np.ndarray]) -> Differences:
        """The largest norms among the changes of multipliers, relative."""
        reactions = np.zeros(len(self._rows))
        multipliers = np.zeros(len(self._rows))
        for change in changes:
            for i, rows in enumerate(self._rows):
                reaction = self._matrix[rows].T @ change[rows]
                own = self._lengths[rows] * change[rows]
                reactions[i] = max(reactions[i], np.linalg.norm(reaction) / self.size)
                multipliers[i] = max(multipliers[i], np.linalg.norm(own) / self.size)
        return Differences(reactions, multipliers)
