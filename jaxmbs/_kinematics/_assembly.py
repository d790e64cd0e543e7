"""Assembly: from a configuration that does not close to the nearest one that does.

The assembled configuration is defined as the point on Phi = 0 nearest to the start q0:

    minimise 1/2 d^T M(q0) d    subject to    Phi(retract(q0, d), t) = 0.

Gauss-Newton with minimum-norm steps closes the mechanism (redundant rows do not disturb such a
step), and Newton's method on the conditions of the minimum slides along the closed
configurations to the nearest one (the limit of Gauss-Newton alone is close to it, not equal);
`_search.py` does both with the sparse factor of S = C M^-1 C^T. No decision depends on units.

For a start that is closed except for its drivers, nearest means nearest on its branch: where a
search does not find that configuration, or none, continuation moves the drivers
(`_continuation.py`).

The result carries its own derivative, that of the conditions of the minimum, solved with
multipliers of minimum norm: exact along every direction that keeps the mechanism
closed and its rank. (Differentiating the steps would give the derivative of the way, not of the
point.)
"""

from typing import Any, TYPE_CHECKING

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.core import Tracer
from jaxtyping import Array, Float

from .. import _printing, _settings
from .._checks import concrete, known_array
from .._custom_types import BoolScalar, RealScalarLike, Scalar, Setting
from .._errors import AnalysisError
from .._limits import EXACT, Tolerances
from .._linalg import directional_derivative, KKTSystem, motion_solver, saddle_point
from .._linalg._concrete_rank import values_and_rank
from .._loading import late
from .._printing import AbstractAnswer, Description
from .._programs import program
from .._solution import RESULTS
from .._system import AbstractSystem, is_state, Structure, takes_state
from ._continuation import Continuation, driver_way, find
from ._search import (
    close_steps,
    geometric_descriptor,
    position_residual,
    Problem,
    scaled_geometric_matrix,
    slope_of,
)


if TYPE_CHECKING:
    import optimistix as optx
else:
    optx = late("optimistix")


# --------------------------------------------------------------------------------------------------
# The derivative of an assembled configuration.
#
# It is that of the conditions of the minimum, grad f + C^T lambda = 0 and Phi = 0, at the end
# point: one saddle-point system, independent of the path to it.
# --------------------------------------------------------------------------------------------------


# Accuracy of the derivative.
_DERIVATIVE_RTOL = 1e-13


@eqx.filter_custom_jvp
def nearest(
    problem: Problem, max_steps: int
) -> tuple[Float[Array, " nq"], Float[Array, " rows"], Continuation]:
    """The nearest closed configuration on the branch of the start, its multipliers, and the path to
    it, which shows whether they are valid; otherwise the closed or last configuration reached.
    There has to be a geometric row. Without steps it is the start."""
    if not max_steps:
        no, one = jnp.asarray(False), jnp.ones((), problem.q.dtype)
        rows = jnp.zeros((len(problem.system.structure.rows),), problem.q.dtype)
        return problem.q, rows, Continuation(~no, no, no, no, one)
    return find(problem, max_steps)


@nearest.def_jvp
def _nearest_jvp(primals: Any, tangents: Any) -> Any:
    problem, max_steps = primals
    tangent, _ = tangents
    q, multipliers, way = nearest(problem, max_steps)
    system = problem.system
    rest = jnp.zeros((system.structure.nv,), q.dtype)

    def residual(given: Problem) -> tuple[Float[Array, " nv"], Float[Array, " rows"]]:
        return slope_of(given, q, multipliers, rest), position_residual(given.system, q, given.t)

    change = directional_derivative(residual, problem, tangent)
    descriptor = geometric_descriptor(system, q, problem.t)
    _, hessian = jax.linearize(lambda u: slope_of(problem, q, multipliers, u), rest)
    nv = rest.shape[0]

    def matrix(x: Float[Array, " unknowns"]) -> Float[Array, " unknowns"]:
        u, force = x[:nv], x[nv:]
        return jnp.concatenate([hessian(u) + descriptor.apply_CT(force), descriptor.apply_C(u)])

    def solve(_: Any, right: Float[Array, " unknowns"]) -> Float[Array, " unknowns"]:
        solution = saddle_point(
            KKTSystem(descriptor, motion_solver()),
            hessian,
            (right[:nv], right[nv:]),
            rtol=_DERIVATIVE_RTOL,
            max_steps=2 * nv,
        )
        return jnp.concatenate([solution.u, solution.multipliers])

    # One vector: where a part of the right-hand side does not vary, two have no transpose.
    x = lax.custom_linear_solve(matrix, -jnp.concatenate(change), solve, symmetric=True)
    none: Any = None
    still = Continuation(none, none, none, none, jnp.zeros_like(way.reached))
    return (q, multipliers, way), (system.rate(q, x[:nv]), x[nv:], still)


class Assembly(AbstractAnswer):
    """The outcome of `assemble`.

    - `q` (nq,): the configuration. `result`: a `RESULTS` member.
    - `residual` (geometric rows,): what is left of Phi, lengths relative to the characteristic
      length. `distance`: sqrt(d^T M d) from the start (m sqrt(kg)).
    - `continued`: was it reached by continuation of the drivers from their values at the start?
      `reached`: the part of their way that they went, 1 unless the branch ended before.
      `rank_changed`: continuation met or passed a singular configuration, in which the rank of
      the geometric rows of C changes.
    """

    q: Float[Array, " nq"]
    residual: Float[Array, " geometric"]
    distance: Scalar
    result: RESULTS
    continued: BoolScalar
    rank_changed: BoolScalar
    reached: Scalar

    def described(self) -> Description:
        if self.distance.ndim:
            return _printing.batch("assemblies", self.distance.shape)
        return Description(
            [
                _printing.outcome(self.result) or "Closed",
                f"residual at most {_printing.largest(self.residual)}, "
                f"{float(self.distance):.6g} m sqrt(kg) from the start",
                f"q = {_printing.array(self.q)}",
            ]
        )


@takes_state()
def assemble(
    system: AbstractSystem,
    q: Float[Array, " nq"],
    t: RealScalarLike = 0.0,
    *,
    max_steps: Setting[int] = 100,
    throw: Setting[bool] = True,
) -> Assembly:
    """The closed configuration nearest to q in the mass metric of q, drivers at time t, on the
    branch of q.

    Redundant constraints do not disturb it. A start whose joints are closed (to less than a
    hundredth of the travel of its drivers) lies on a branch: the configurations to which the
    drivers move it without a jump. A search for the nearest point comes first. Where that fails, or
    may have changed the branch, the drivers are moved in adaptive steps, without a change of
    direction where branches cross, and from there the nearest point is searched. So a system that
    its drivers determine ends where they move it. (A search is accepted without continuation where
    it moves the bodies by less than 0.05 characteristic lengths and radians, where its steps only
    become shorter, or where the tangents at both ends agree with the chord to 5 %: just after a
    point where branches cross, that may be the other one.) A start whose joints are open lies on no
    branch: continuation, once the joints are closed, is used only where the search fails.
    Continuation does not apply to user-written constraints of time.

    A driver of an angle whose turns the configuration does not count moves from the start's angle,
    between -pi and pi, towards its value, without whole turns; up to pi / 2 in the shorter
    direction.

    Differentiable, forward and reverse, in q, t and every array of the system, independent of the
    path to it; along a direction that breaks closure or rank the result is meaningless, as there is
    no derivative.

    **Arguments:** `q` (nq,): the start; `t`: s; `max_steps`: of each of the two stages of the
    search, on average; 1 or more.

    **Returns:** an `Assembly`.

    **Raises:** `AnalysisError` if the mechanism does not close (naming the joint that stays open
    and by how much, and where its branch ends the driver, its value there and the rank), or the
    nearest point is not found. Under `jit` or `vmap` a `RuntimeError` is raised at run time without
    the names, by a callback with which JAX neither keeps nor exports a program; with `throw=False`
    the `result` reports it instead.

    Nocedal & Wright 2006, Numerical Optimization, section 18.1 (the nearest point); Allgower &
    Georg 1990, Numerical Continuation Methods, chapter 6 (the drivers).
    """
    throw = _settings.flag(throw, "throw")
    max_steps = _settings.whole_number(max_steps, "max_steps", least=1)
    assembly = _assemble(system, q, jnp.asarray(t, q.dtype), max_steps)
    if throw:
        failed = assembly.result != RESULTS.successful
        if isinstance(failed, Tracer):
            checked = assembly.result.error_if(assembly.q, failed)
            return eqx.tree_at(lambda a: a.q, assembly, checked)
        if bool(failed):
            raise AnalysisError(_explanation(system, q, t, assembly))
    return assembly


def assemble_closed(system: AbstractSystem, q: Float[Array, " nq"], t: RealScalarLike) -> Assembly:
    """`assemble` of a start that is closed to rounding, and so its own nearest point: its program
    contains no search. As differentiable; the `result` reports failures."""
    return _assemble(system, q, jnp.asarray(t, q.dtype), 0)


@program
def close(
    system: AbstractSystem,
    q: Float[Array, " nq"],
    t: RealScalarLike = 0.0,
    *,
    max_steps: int = 100,
    drivers: bool = True,
) -> tuple[Float[Array, " nq"], Float[Array, " geometric"]]:
    """A closed configuration near q, not exactly the nearest nor on its branch, and what is left
    of Phi there (lengths relative to the characteristic length).

    The first stage of `assemble` alone: cheaper, and not differentiable. Without `drivers` their
    rows need not close, and nothing is left of them.
    """
    driven = system.structure.driven
    released = None if drivers else driven
    closed_q = close_steps(Problem(system, q, jnp.asarray(t, q.dtype)), max_steps, released)
    residual = system.scaled_residual(closed_q, t)
    if not drivers:
        residual = jnp.where(driven[system.structure.geometric_rows], 0.0, residual)
    return closed_q, residual


def close_neighbour(
    system: AbstractSystem, q: Float[Array, " nq"], t: RealScalarLike, drivers: bool = True
) -> tuple[Float[Array, " nq"], Scalar, BoolScalar]:
    """A displaced configuration closed again (see `close`), its largest scaled residual, and
    whether it is closed to rounding, as ranks near singular configurations need it."""
    tolerances, structure = system.tolerances, system.structure
    closed_q, residual = close(system, q, t, drivers=drivers)
    # Rounding of the residual grows with the distance from the world's origin.
    sizes = jnp.abs(closed_q) / structure.coordinate_scale(system.characteristic_length())
    eps = tolerances.neighbour_roundings * jnp.finfo(q.dtype).eps
    gap = jnp.max(jnp.abs(residual), initial=0.0)
    rounding = eps * jnp.max(sizes, initial=0.0)
    return closed_q, gap, gap <= jnp.maximum(tolerances.neighbour_closed, rounding)


def is_closed(residual: Float[Array, " geometric"], precision: Scalar | None = None) -> BoolScalar:
    """Does this scaled residual (lengths relative to the characteristic length) count as
    closed, for numbers of that precision?"""
    known, exact = concrete(residual), None if precision is None else concrete(precision)
    if known is not None and (precision is None or exact is not None):
        return known_array(np.asarray(np.all(np.abs(known) <= Tolerances(exact).closed)))
    return jnp.all(jnp.abs(residual) <= Tolerances(precision).closed)


def open_constraints(
    system: AbstractSystem, residual: Float[Array, " geometric"]
) -> list[tuple[str, float, str]]:
    """Joints and drivers that are not closed, the worst first: name, largest residual, its
    unit. Concrete arguments only."""
    return open_in(system.structure, float(system.characteristic_length()), residual)


def open_in(structure: Structure, length: float, residual: Any) -> list[tuple[str, float, str]]:
    """`open_constraints` of a system of this structure and characteristic length; `residual`
    (geometric,): an array of JAX or of NumPy."""
    scaled, scale = np.abs(np.asarray(residual)), structure.residual_scale(length)
    worst: dict[str, tuple[float, float, str]] = {}
    for value, row in zip(scaled, structure.geometric_rows, strict=True):
        if value <= EXACT.closed:
            continue
        name = structure.constraints[structure.row_owner[row]].name
        entry = (value, value * scale[row], structure.rows[row].quantity.unit)
        worst[name] = max(worst.get(name, entry), entry)
    order = sorted(worst.items(), key=lambda item: -item[1][0])
    return [(name, amount, unit) for name, (_, amount, unit) in order]


def undefined(system: AbstractSystem, q: Float[Array, " nq"], t: RealScalarLike) -> str:
    """Constraints that are NaN or infinite at this configuration and time, such as a driver
    beyond the end of its table or a point beyond that of its curve, and what to do; empty if there
    is none. Concrete arguments only."""
    structure, now = system.structure, jnp.asarray(t, q.dtype)
    broken = ~np.isfinite(np.asarray(system.scaled_residual(q, now)))
    owners = structure.row_owner[structure.geometric_rows[broken]]
    names = dict.fromkeys(structure.constraint_names[owner] for owner in owners)
    if not names:
        return ""
    kinds = {structure.constraints[owner].kind for owner in owners}
    fix = "keep to the times of a driver's table, or extend it"
    if kinds == {"rope"}:
        fix = (
            "it leaves the plane of a pulley by more than 0.1 rad, or a point comes into a circle; "
            "turn the pulley, or lead the rope through a point in its place"
        )
    elif "driver" not in kinds:
        fix = (
            "its point is beyond an end of its curve, or the curve is hollow there; extend the "
            "curve, or begin and end the motion on it"
        )
    return (
        f"At {float(now):.9g} s the constraint {', '.join(map(repr, names))} is not defined: {fix}."
    )


def _explanation(
    system: AbstractSystem, start: Float[Array, " nq"], t: RealScalarLike, assembly: Assembly
) -> str:
    text = RESULTS[assembly.result]
    if bool(is_closed(assembly.residual)):
        return text
    unknown = undefined(system, start, t)
    if unknown:
        return unknown
    ended = assembly.result == RESULTS.assembly_branch_ended
    left = assembly.residual if ended else _least_residual(system, start, t)
    still_open = open_constraints(system, left)
    if not still_open:
        return text
    named = [f"{name!r} by {amount:.3g} {unit}" for name, amount, unit in still_open[:3]]
    more = f" and {len(still_open) - 3} more" if len(still_open) > 3 else ""
    return (
        f"{text}{_end_of_branch(system, start, t, assembly)} Still open: {', '.join(named)}{more}."
    )


def _end_of_branch(
    system: AbstractSystem, start: Float[Array, " nq"], t: RealScalarLike, assembly: Assembly
) -> str:
    """The driver and its value at which the branch of the start ended, and the rank there."""
    if assembly.result != RESULTS.assembly_branch_ended:
        return ""
    structure, part = system.structure, float(assembly.reached)
    led = np.asarray(driver_way(system, start, jnp.asarray(t, start.dtype)))
    wanted = np.asarray(system.driver_readings(start, t))[2]
    ends = []
    for row in np.flatnonzero(structure.driven & (np.abs(led) > EXACT.closed)):
        unit = structure.rows[row].quantity.unit
        value = wanted[row] + (1 - part) * led[row]
        ends.append(f"{structure.row_names[row]!r} at {value:.6g} {unit} of {wanted[row]:.6g}")
    before, there = (np.asarray(scaled_geometric_matrix(system, q, t)) for q in (start, assembly.q))
    generic = values_and_rank(before)[1]
    rank = min(generic, values_and_rank(there, EXACT.dead_point)[1])
    dead = f", a dead point: the rank falls from {generic} to {rank}" if rank < generic else ""
    return f" It ended with {', '.join(ends)}{dead}."


@program
def _least_residual(
    system: AbstractSystem, q: Float[Array, " nq"], t: RealScalarLike
) -> Float[Array, " geometric"]:
    """Phi at its smallest norm (least squares), which measures how far a mechanism that does not
    close is from closing. A globalised method, as the smallest residual is not zero."""

    def residual(step: Float[Array, " nv"], _: None) -> Float[Array, " geometric"]:
        return system.scaled_residual(system.retract(q, unit * step), t)

    unit = system.column_scale()
    step = optx.least_squares(
        residual,
        optx.LevenbergMarquardt(1e-10, 1e-10),
        jnp.zeros_like(unit),
        max_steps=1000,
        throw=False,
    ).value
    return residual(step, None)


@program
def _assemble(
    system: AbstractSystem, q: Float[Array, " nq"], t: Scalar, max_steps: int
) -> Assembly:
    rest = jnp.zeros((system.structure.nv,), q.dtype)
    valid = is_state(system.structure, q, rest, t)
    if not system.structure.geometric.any():
        # What is left to do is to bring quaternions to unit length.
        end = system.retract(q, rest)
        residual = system.scaled_residual(end, t)
        none, no = jnp.zeros((), q.dtype), jnp.asarray(False)
        result = RESULTS.where(valid, RESULTS.successful, RESULTS.state_not_valid)
        return Assembly(end, residual, none, result, no, no, 1.0 + none)
    end, _, way = nearest(Problem(system, q, t), max_steps)
    residual = system.scaled_residual(end, t)
    result = RESULTS.where(way.nearest, RESULTS.successful, RESULTS.assembly_not_nearest)
    result = RESULTS.where(is_closed(residual), result, RESULTS.assembly_did_not_close)
    result = RESULTS.where(way.ended, RESULTS.assembly_branch_ended, result)
    result = RESULTS.where(valid, result, RESULTS.state_not_valid)
    square = 2 * system.kinetic_energy(q, system.difference(q, end), t)
    moved = square > 0
    distance = jnp.where(moved, jnp.sqrt(jnp.where(moved, square, 1.0)), 0.0)
    distance = jnp.where(valid, distance, jnp.nan)
    return Assembly(end, residual, distance, result, way.continued, way.rank_changed, way.reached)
