"""Failed runs explained: what happened, when, at which joint, and what to try."""

from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Float

from .. import _settings
from .._checks import listed, shown
from .._constraints._primitives import COUPLING, MOST_TEETH
from .._custom_types import RealScalarLike, Scalar, Setting
from .._errors import AbstractError
from .._formulations import AbstractFormulation, Accelerations
from .._formulations._minimum_norm import effective_mass
from .._kinematics import open_constraints, undefined
from .._limits import EXACT
from .._linalg import motion_solver
from .._linalg._concrete_rank import null_spaces
from .._printing import AbstractAnswer, Description
from .._programs import Compiling, program
from .._solution import RESULTS
from .._system import AbstractSystem, smallest_rows, Structure, takes_state, vanishing_sentence
from ._elastic_theory import limits_left
from ._friction import acceleration_residual, certify, solve_stage
from ._passages import look_at_drivers, movers
from ._projection import project_position
from ._trajectory import Trajectory


# --------------------------------------------------------------------------------------------------
# Constraints that prescribe contradictory accelerations at one state, or barely determine them.
# Concrete numbers, dense.
# --------------------------------------------------------------------------------------------------


# Parts of what contradicts itself that are smaller than this, relative to the largest, are none.
_PART_OF_CONTRADICTION = 0.1


class _Rows(NamedTuple):
    """C with columns without units and rows of length one, and Gamma."""

    matrix: np.ndarray
    offset: np.ndarray


@program(compiling=Compiling.ONCE)
def _raw(
    system: AbstractSystem, q: Float[Array, " nq"], v: Float[Array, " nv"], t: Scalar
) -> tuple[Float[Array, "rows nv"], Float[Array, " rows"]]:
    matrix = system.constraint_matrix(q, v, t) * system.column_scale()[None]
    return matrix, system.acceleration_offset(q, v, t)


def _rows(
    system: AbstractSystem, q: Float[Array, " nq"], v: Float[Array, " nv"], t: Scalar
) -> _Rows | None:
    """None for what is traced or not finite."""
    found = _raw(system, q, v, t)
    if any(isinstance(x, Tracer) for x in found):
        return None
    matrix, offset = map(np.asarray, found)
    if not (np.all(np.isfinite(matrix)) and np.all(np.isfinite(offset))):
        return None
    sizes = np.linalg.norm(matrix, axis=1)
    sizes = np.where(sizes > 0, sizes, 1.0)
    return _Rows(matrix / sizes[:, None], offset / sizes)


def contradiction(
    system: AbstractSystem, q: Float[Array, " nq"], v: Float[Array, " nv"], t: Scalar
) -> str:
    """A sentence that names the constraints with contradictory accelerations; empty if all
    agree."""
    if not len(system.structure.rows):
        return ""
    rows = _rows(system, q, v, t)
    if rows is None:
        return ""
    null = null_spaces(rows.matrix).left
    left = np.abs(null @ (null.T @ rows.offset))
    largest = np.max(left, initial=0.0)
    size, tolerances = np.max(np.abs(rows.offset), initial=0.0), system.tolerances
    if largest <= tolerances.acceleration * size + tolerances.acceleration_rounding:
        return ""
    structure = system.structure
    advice = (
        "make the motions of drivers agree, leave one of them out, or give a state from which the "
        "mechanism can go on."
        if structure.driven.any()
        else "the velocities are possible to first order only, as of a mechanism that is rigid. "
        "Start at rest, or from another configuration."
    )
    names = _owners(structure, left)
    return (
        f"No accelerations satisfy what {names} ask for together at {float(t):.6g} s, as that "
        f"contradicts itself; {advice}"
    )


def refuse_contradiction(
    system: AbstractSystem, q: Float[Array, " nq"], v: Float[Array, " nv"], t: Scalar
) -> None:
    """Refuse contradicting drivers, and motion of a rigid mechanism, before a run is compiled.

    Only systems are examined in which several drivers might contradict each other, or which may be
    rigid by their number of rows: all others would wait for one more program.

    **Raises:** `ValueError` that names them.
    """
    structure = system.structure
    drivers = np.count_nonzero(structure.driven)
    crowded = len(structure.rows) >= structure.nv and (drivers or bool(np.any(np.asarray(v))))
    if drivers < 2 and not crowded:
        return
    text = contradiction(system, q, v, jnp.asarray(t, q.dtype))
    if text:
        raise ValueError(text[0].lower() + text[1:])


def nearly_singular(
    system: AbstractSystem,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    t: Scalar,
    tolerance: float,
) -> str:
    """A sentence that names what depends on each other there to within the tolerance, and not to
    within rounding; empty if nothing does."""
    rows = _rows(system, q, v, t) if len(system.structure.rows) else None
    if rows is None:
        return ""
    left, values, _ = np.linalg.svd(rows.matrix)
    largest = np.max(values, initial=0.0)
    near = (values <= tolerance * largest) & (values > system.tolerances.rank * largest)
    if not np.any(near):
        return ""
    names = _owners(system.structure, np.linalg.norm(left[:, : len(values)][:, near], axis=1))
    return (
        f"The configuration there is next to a singular one, as a dead centre is: {names} hardly "
        f"determine the motion any more, or contradict each other. "
        f"{look_at_drivers(system.structure)}"
    )


def _owners(structure: Structure, sizes: np.ndarray) -> str:
    """Those of the rows in which most is, drivers first."""
    rows = np.flatnonzero(sizes > _PART_OF_CONTRADICTION * np.max(sizes))
    owners = sorted(dict.fromkeys(structure.row_owner[rows].tolist()))
    owners.sort(key=lambda k: structure.constraints[k].kind != "driver")
    return listed([repr(structure.constraints[k].name) for k in owners])


# An eigenvalue of M below minus this, relative to the largest, is not rounding.
_NEGATIVE = 1e-12

# Of a direction, relative to its largest part: coordinates that have less have none.
_UNDETERMINED_PART = 1e-6


class UndeterminedAccelerations(AbstractAnswer):
    """Accelerations that M dv/dt + C^T lambda = F, C dv/dt = Gamma leave undetermined.

    - `directions` (nv, k): accelerations that may be added to any solution, M a = 0 and C a = 0;
      orthonormal with lengths relative to the characteristic length. k = 0: all are determined.
    - `names`: the coordinates that have a part in them.
    - `singular_value`: the smallest of M^1/2 stacked on C, rows of C times the root of their
      effective mass, in velocities scaled to equal mass (massless ones count like the mean of the
      others), so that light bodies among heavy ones change nothing; relative to the largest. 0
      where something is not determined.
    - `indefinite`: has M a negative eigenvalue? Then it is not a mass matrix.
    """

    directions: Float[Array, "nv k"]
    singular_value: Scalar
    names: tuple[str, ...] = eqx.field(static=True)
    indefinite: bool = eqx.field(static=True)

    def __len__(self) -> int:
        return self.directions.shape[1]

    def described(self) -> Description:
        return Description([self._words()])

    def _words(self) -> str:
        if self.indefinite:
            return (
                "The mass matrix has a negative eigenvalue, so that it is none; look for a wrong "
                "sign, or an entry beside the diagonal that is too large."
            )
        value = float(self.singular_value)
        if not len(self):
            return f"All accelerations are determined (smallest singular value {value:.3g})."
        names = ", ".join(map(repr, self.names))
        alone = len(self.names) == len(self)
        what = "" if alone else f" in {len(self)} combination{'s' if len(self) > 1 else ''}"
        return (
            f"Nothing determines the acceleration of {names}{what} (singular value {value:.3g}). "
            "Give mass, add a constraint that ties it to the others, or leave it out."
        )


@takes_state(decides_rank=True)
def undetermined_accelerations(
    system: AbstractSystem,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    t: RealScalarLike = 0.0,
    *,
    tolerance: Setting[float] = EXACT.undetermined,
) -> UndeterminedAccelerations:
    """Accelerations that neither mass nor constraints determine, by the names of coordinates.

    With a mass matrix that is positive semidefinite, accelerations are unique exactly if M and C,
    one over the other, have full column rank. Their null space is what remains open. Forces along
    it would accelerate without bound, so that motion with them is impossible; without such forces
    there are many motions. Dense, for concrete numbers: outside of `jit` and `vmap`.

    **Arguments:** `q` (nq,), `v` (nv,), `t` (s): the state. `tolerance`: singular values that are
    at most this count as zero, between 0 and 1.

    **Returns:** `UndeterminedAccelerations`, which prints as a sentence.

    **Raises:** `ValueError` for traced numbers.

    Source: Udwadia & Phohomsiri 2006, Proc. R. Soc. A 462:2097.
    """
    tolerance = _settings.known_number(tolerance, "tolerance", above=0, below=1)
    known = _matrices(system, q, v, jnp.asarray(t, q.dtype))
    if any(isinstance(x, Tracer) for x in known):
        raise ValueError(
            "undetermined_accelerations decides ranks: call it outside of jit and vmap."
        )
    return _undetermined(_Scaled(*map(np.asarray, known)), system.structure, tolerance)


@program(compiling=Compiling.ONCE)
def _matrices(
    system: AbstractSystem, q: Float[Array, " nq"], v: Float[Array, " nv"], t: Scalar
) -> tuple[Array, Array, Array, Array]:
    """The matrices of `_Scaled`."""
    unit, descriptor = system.column_scale(), system.descriptor(q, v, t)
    metric = jnp.diagonal(descriptor.metric().mass_matrix()) * unit**2
    mass = unit[:, None] * descriptor.mass_matrix() * unit[None]
    return mass, metric, descriptor.constraint_matrix() * unit[None], unit


class _Scaled(NamedTuple):
    """M, the diagonal of the metric in its place, and C in velocities without units, and what
    counts as one of each."""

    mass: np.ndarray
    metric: np.ndarray
    constraints: np.ndarray
    unit: np.ndarray


def _undetermined(
    known: _Scaled, structure: Structure, tolerance: float
) -> UndeterminedAccelerations:
    mass, metric, constraints, unit = known
    # As `UdwadiaKalaba` has it: M + C^T W C, whose null space is that of M and C.
    weights = np.asarray(effective_mass(jnp.asarray(metric), jnp.asarray(constraints)))
    both = mass + constraints.T @ (weights[:, None] * constraints)
    mean = np.mean(metric) if np.any(metric > 0) else 1.0
    size = np.sqrt(np.where(metric > 0, metric, mean))
    values, vectors = np.linalg.eigh(both / size[:, None] / size)
    values = values / (values[-1] if values[-1] > 0 else 1.0)
    directions, _ = np.linalg.qr(vectors[:, values <= tolerance**2] / size[:, None])
    parts = np.linalg.norm(directions, axis=1)
    named = parts > _UNDETERMINED_PART * np.max(parts, initial=0.0)
    names = tuple(
        info.name.removesuffix(".rate")
        for info, own in zip(structure.velocities, named, strict=True)
        if own
    )
    own = np.linalg.eigvalsh(mass)
    return UndeterminedAccelerations(
        jnp.asarray(unit[:, None] * directions),
        jnp.asarray(np.sqrt(np.maximum(values[0], 0.0))),
        names,
        bool(own[0] < -_NEGATIVE * np.max(np.abs(own))),
    )


# --------------------------------------------------------------------------------------------------
# Explanation of a failed run: what happened, when, at which joint, and what to try.
# --------------------------------------------------------------------------------------------------


# How far a failed run is followed to see why: relative to its duration, and at least (s).
_AHEAD = 1e-2
_AHEAD_AT_LEAST = 1e-6

# What opens by this much (scaled) within this part of that time does so at once.
_JUMP, _SOON = 0.05, 1e-3

# Where a run ends, what determines an acceleration by less than this has made it end.
_HARDLY = 1e-3


class SimulationError(AbstractError, RuntimeError):
    """A run that ended too early. `trajectory`: everything computed until then."""

    trajectory: Trajectory

    def __init__(self, trajectory: Trajectory):
        self.trajectory = trajectory

    def __str__(self) -> str:
        return self.trajectory.message


class SimulationInterrupted(KeyboardInterrupt):
    """A run that Ctrl-C has stopped. `trajectory`: everything computed until then, which `resume`
    goes on with."""

    trajectory: Trajectory

    def __init__(self, trajectory: Trajectory):
        self.trajectory = trajectory

    def __str__(self) -> str:
        return self.trajectory.message


def explain(
    system: AbstractSystem, formulation: AbstractFormulation, trajectory: Trajectory
) -> str:
    """A sentence or two for a trajectory whose result is a failure. Concrete values only."""
    t, q, v = trajectory.times[-1], trajectory.q[-1], trajectory.v[-1]
    left = limits_left(trajectory)
    if bool(trajectory.result == RESULTS.elastic_body_too_bent):
        return " ".join([RESULTS[trajectory.result], *left])
    text = f"The run ended at {float(t):.9g} s. {RESULTS[trajectory.result]}"
    dropped = ~formulation.kept_rows(system.structure)
    if dropped.any():
        names = [n for n, d in zip(system.structure.row_names, dropped, strict=True) if d]
        text += f" Dropped here: {', '.join(names)}."
    force, found = _state(system, formulation, q, v, t)
    if not bool(jnp.all(jnp.isfinite(force))):
        return f"{text} The force is not finite on {_bodies(system, force)}.{_stops(system, q)}"
    if bool(trajectory.result == RESULTS.velocity_row_vanishes):
        return f"{text} There {vanishing_sentence(system, smallest_rows(system, q, v, t))}"
    open_ones = _undetermined_motion(system, q, v, t)
    if open_ones:
        return f"{text} {open_ones}"
    friction = _friction(system, q, v, t)
    if RESULTS[found.result]:
        unmet = _unmet_constraints(system, q, v, t, found)
        return " ".join([text, f"{RESULTS[found.result]}{unmet}", *friction])
    advice = [_hardest(system, trajectory), _unmonitored(system, trajectory), *friction]
    return " ".join([text, *filter(None, advice), *left]) + _stops(system, q)


def _friction(
    system: AbstractSystem, q: Float[Array, " nq"], v: Float[Array, " nv"], t: Scalar
) -> list[str]:
    """The sentence of `certify` on Coulomb friction at this state, if it is in doubt."""
    finite = all(bool(jnp.all(jnp.isfinite(x))) for x in (q, v, t))
    if not (system.frictional_joints and finite):
        return []
    found = certify(system, q, v, t)
    return [] if bool(found.certified) else [f"Friction there: {found}"]


def _stops(system: AbstractSystem, q: Float[Array, " nq"]) -> str:
    """The stops of joints that are pressed, or whose angle is not known."""
    found = []
    for info, own in zip(system.stops, np.asarray(system.stop_depths(q)), strict=True):
        deepest = float(np.max(own))
        if np.isnan(deepest):
            found.append(f"{shown(info.name)} (so deep that it could be beyond either end)")
        elif deepest > 0:
            found.append(f"{shown(info.name)} ({deepest:.3g} {info.quantity.unit} deep)")
    if not found:
        return ""
    return f" Pressed stops of joints: {listed(found)}."


def _unmonitored(system: AbstractSystem, trajectory: Trajectory) -> str:
    """The advice for a run without monitor that could not go on where its rank may be about to
    drop."""
    watched = trajectory.passes.times.size or not len(system.structure.rows)
    crept = bool(trajectory.result == RESULTS.step_too_small)
    crept = crept or bool(trajectory.result == RESULTS.too_many_steps)
    if watched or not crept:
        return ""
    return (
        "Without monitor, steps approach a singular configuration and do not lead across it; if "
        "there is one ahead, leave out monitor=False."
    )


def _undetermined_motion(
    system: AbstractSystem, q: Float[Array, " nq"], v: Float[Array, " nv"], t: Scalar
) -> str:
    """Accelerations that are undetermined, or barely determined, as where a run ends close to such
    a state; of systems whose mass matrix need only be semidefinite."""
    finite = all(bool(jnp.all(jnp.isfinite(x))) for x in (q, v, t))
    if not (system.structure.semidefinite and finite):
        return ""
    found = undetermined_accelerations(system, q, v, t, tolerance=_HARDLY)
    return str(found) if len(found) or found.indefinite else ""


@program(compiling=Compiling.ONCE)
def _state(
    system: AbstractSystem,
    formulation: AbstractFormulation,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    t: Scalar,
) -> tuple[Float[Array, " nv"], Accelerations]:
    return system.force(q, v, t), solve_stage(system, formulation, q, v, t)


def _unmet_constraints(
    system: AbstractSystem,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    t: Scalar,
    found: Accelerations,
) -> str:
    """The constraints at acceleration level that are not met."""
    structure = system.structure
    if structure.velocity_level.all():
        return ""
    equations = system.equations(q, v, t)
    left = np.abs(np.asarray(acceleration_residual(system, equations, found.acceleration)))
    # A tenth of the largest is more than rounding.
    rows = np.flatnonzero(left > 0.1 * np.max(left, initial=0.0))
    names = {structure.constraints[owner].name: None for owner in structure.row_owner[rows]}
    return f" This is asked for: {', '.join(map(repr, names))}." if names else ""


def _bodies(system: AbstractSystem, force: Float[Array, " nv"]) -> str:
    """Bodies on which the force is NaN or infinite."""
    columns = set(np.flatnonzero(~np.isfinite(np.asarray(force))).tolist())
    bodies = [b.name for b in system.structure.bodies if columns & {*b.columns}]
    return ", ".join(bodies) or "the system"


def _hardest(system: AbstractSystem, trajectory: Trajectory) -> str:
    """The probable cause of failure: a force that is NaN or infinite, joints or drivers that open,
    or the body with the largest acceleration; at the end or, where steps went to zero, a little
    later."""
    t, q, v = trajectory.times[-1], trajectory.q[-1], trajectory.v[-1]
    opened = open_constraints(system, system.scaled_residual(q, t))
    if opened:
        name, amount, unit = opened[0]
        return f"{name!r} is open by {amount:.3g} {unit} there."
    ahead = (RESULTS.step_too_small, RESULTS.step_not_solved)
    broken = (*ahead, RESULTS.state_not_finite, RESULTS.acceleration_not_finite)
    if not any(bool(trajectory.result == member) for member in broken):
        return ""
    later = t + _AHEAD * (t - trajectory.times[0]) + _AHEAD_AT_LEAST
    # A table ends in time, a curve where the motion leads to.
    unknown = undefined(system, q, later)
    unknown = unknown or undefined(system, system.retract(q, (later - t) * v), later)
    if unknown or not any(bool(trajectory.result == member) for member in ahead):
        return unknown
    force, residual, at_once = _ahead(system, q, v, t, later)
    if not bool(jnp.all(jnp.isfinite(force))):
        return f"The force on {_bodies(system, force)} is not finite a little later."
    jumping = [x for x in open_constraints(system, at_once) if x[1] > _JUMP]
    if not jumping:
        jumping = _jumps_of_couplings(system, trajectory)
    if jumping:
        name, amount, unit = jumping[0]
        return (
            f"The condition of {name!r} jumps to {amount:.3g} {unit} there. A coupling of two "
            "angles in space holds over any number of turns if its ratio is a fraction m / n with "
            f"n at most {MOST_TEETH}; otherwise both must stay between half a turn back and forth."
        )
    opened = open_constraints(system, residual)
    unmet = contradiction(system, q, v, t)
    if unmet:
        return unmet
    if opened:
        _, amount, unit = opened[0]
        names = ", ".join(repr(name) for name, other, _ in opened if other > 0.1 * amount)
        return (
            f"Not all constraints can be met a little later, at {float(later):.6g} s: {names} "
            f"stay open by up to {amount:.3g} {unit}. The mechanism may have reached the end of "
            f"its range, or they contradict each other. {look_at_drivers(system.structure)}"
        )
    singular = nearly_singular(system, q, v, t, _HARDLY)
    if singular:
        return singular
    acceleration = np.asarray(trajectory.acceleration[-1])
    if not np.any(acceleration):
        return ""
    length = float(system.characteristic_length())
    return f"What accelerates most is {movers(acceleration[:, None], system.structure, length)[0]}."


def _jumps_of_couplings(
    system: AbstractSystem, trajectory: Trajectory
) -> list[tuple[str, float, str]]:
    """Couplings that open, and by how much, within one more step from the end."""
    t, q, v = trajectory.times[-1], trajectory.q[-1], trajectory.v[-1]
    structure, accepted = system.structure, int(trajectory.statistics.accepted)
    if not accepted or not any(own.kind == COUPLING for own in structure.constraints):
        return []
    # (A step that changes its length grows by less.)
    step = 2 * (t - trajectory.times[0]) / accepted
    opened = open_constraints(system, system.scaled_residual(system.retract(q, step * v), t + step))
    return [
        (name, amount, unit)
        for name, amount, unit in opened
        if amount > _JUMP and structure.constraint(name).kind == COUPLING
    ]


@program(compiling=Compiling.ONCE)
def _ahead(
    system: AbstractSystem,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    t: Scalar,
    later: Scalar,
) -> tuple[Float[Array, " nv"], Float[Array, " geometric"], Float[Array, " geometric"]]:
    """The force where the motion would lead to, what stays open next to there, and what opens at
    once."""
    straight = system.retract(q, (later - t) * v)
    near, _ = project_position(system, straight, later, motion_solver())
    soon = _SOON * (later - t)
    at_once = system.scaled_residual(system.retract(q, soon * v), t + soon)
    return system.force(straight, v, later), system.scaled_residual(near, later), at_once
