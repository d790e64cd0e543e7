"""Small motions about an equilibrium or a steady motion: d/dt (z, w) = A (z, w)."""

import dataclasses
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Complex, Float

from .. import _printing
from .._custom_types import RealScalarLike, Scalar
from .._formulations import MinimumNorm
from .._geometry import turn_matrix
from .._kinematics import geometric_descriptor
from .._limits import EXACT
from .._linalg import AbstractKKTMatrices, corrections, directional_derivative, motion_solver
from .._printing import AbstractAnswer, Column, Description, Table
from .._programs import Compiling, program
from .._system import AbstractSystem, ColumnInfo, Structure, takes_state
from ._elastic_theory import limits_left_by_state
from ._friction import solve_with_friction
from ._initial import check_state, residuals
from ._passages import movers, null_space
from ._projection import velocity_level_matrices
from ._small_motions import (
    beside_states,
    changes_of_modes,
    changing_state,
    constant_axes,
    coordinate_units,
    first_order,
    FirstOrder,
    frequency_scale,
    identity,
    normalised,
    rate_scale,
    SmallMotions,
    sorted_eigenvalues,
    state_scale,
    TurningAxes,
)


# --------------------------------------------------------------------------------------------------
# Is a motion steady, and along which axes?
#
# A motion is steady in axes that turn with Omega if its velocities, and the matrix A of small
# motions about it, are constant along them. Where the velocities determine their own rotation (d(B
# v)/dt = X(Omega) B v), there is one Omega. Where they do not, as all velocities are parallel to
# one direction, it is that of axes that do not turn about it if the motion is steady along these (a
# wheel that is symmetric about its axis), else that of one of the bodies (an unsymmetric rotor in
# symmetric bearings).
#
# Constancy is checked where the motion would be later if it were steady, at several times: a rotor
# that is not symmetric may have a start at which nothing changes to first order.
# --------------------------------------------------------------------------------------------------


# Parts of velocities that may be rounding.
_ROUNDING = 1e-10

# Directions about which the velocities turn by less than this, relative to the largest, do not
# determine how fast the axes turn about them.
_UNDETERMINED = 1e-7

# Angular velocities that differ by less, relative to themselves, are one.
_SAME = 1e-9

# Later times at which the matrix is evaluated: angles (rad) of the fastest rotation, or ways in
# characteristic lengths. Incommensurable with a full turn and its parts.
_LATER = (0.29, 0.83, 2.1, 5.3, 17.7)

_ELSE = "linearise takes equilibria and steady motions, floquet periodic ones"


class Bases(NamedTuple):
    """Y (nv, p) and Z (nv, k) of a state."""

    position: np.ndarray
    velocity: np.ndarray

    @property
    def arrays(self) -> tuple[Float[Array, "nv p"], Float[Array, "nv k"]]:
        """The numbers as arrays, for compiled functions."""
        return jnp.asarray(self.position), jnp.asarray(self.velocity)


class Steady(NamedTuple):
    """A steady motion: its axes, what it is to first order, and the largest change of A (1/s)
    that was seen along it, or the rounding of A."""

    axes: TurningAxes
    found: FirstOrder
    variation: float


@program
def matrices(
    system: AbstractSystem, q: Float[Array, " nq"], v: Float[Array, " nv"], t: Scalar
) -> tuple[Float[Array, "rows nv"], Float[Array, "nv nv"]]:
    """C and M."""
    return system.constraint_matrix(q, v, t), system.mass_matrix(q, t)


@program
def _state_after(
    system: AbstractSystem,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    rate: Float[Array, "3"],
    t: Scalar,
) -> tuple[Float[Array, " nq"], Float[Array, "nv nv"]]:
    """State of the motion after the time t if it is steady, and the map of displacements along the
    velocities there."""
    there = system.steady(q, v, rate, t)
    turned = turn_matrix(system.turning(rate), rate, t)
    return there, system.world_axes(there).T @ turned @ system.world_axes(q)


def steady_motion(
    system: AbstractSystem,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    t: Scalar,
    bases: Bases,
) -> Steady:
    """The axes in which a moving state is steady. Concrete numbers.

    **Raises:** `ValueError` that names a body which leaves the motion, or what changes.
    """
    motion = _steady_state(system, q, v, t, bases)
    candidates, start = _candidates(motion)
    _refuse_acceleration(motion, start)
    changing = _changing_state(motion, q, v, t, start)
    if changing:
        raise ValueError(f"the motion is not steady: {changing}; {_ELSE}.")
    reasons = []
    for axes in candidates:
        found = motion.at(axes)
        variation, reason = _largest_variation(motion, found)
        if not reason:
            rounding = np.finfo(found.state.dtype).eps * _frequency(motion, found)
            return Steady(axes, found, max(variation, float(rounding)))
        reasons.append(reason)
    raise ValueError(f"{reasons[0]}; {_ELSE}.")


def refuse_changing_rest(
    system: AbstractSystem, q: Float[Array, " nq"], t: Scalar, bases: Bases, found: FirstOrder
) -> None:
    """Refuse a state that stays in equilibrium while the matrix of small motions changes."""
    rest = jnp.zeros_like(found.acceleration)
    motion = _steady_state(system, q, rest, t, bases)
    for later in _times(motion, found):
        t_later = t + later
        there = first_order(system, q, rest, t_later, *bases.arrays, motion.axes(found))
        moves = (
            _broken_constraint(motion, q, rest, t_later)
            or _is_accelerating(motion, there)
            or _changing_state(motion, q, rest, t_later, there)
        )
        if not moves and not _matrix_change(motion, found, there) <= _tolerance(motion, found):
            raise ValueError(f"small motions about this equilibrium change with time; {_ELSE}.")


class _SteadyState(NamedTuple):
    """A state, its bases, the characteristic length (m), and what counts as one of each coordinate
    of small motions."""

    system: AbstractSystem
    q: Float[Array, " nq"]
    v: Float[Array, " nv"]
    t: Scalar
    bases: Bases
    length: float
    units: np.ndarray

    @property
    def structure(self) -> Structure:
        return self.system.structure

    def at(self, axes: TurningAxes) -> FirstOrder:
        """First-order equations at the start, along these axes."""
        return first_order(self.system, self.q, self.v, self.t, *self.bases.arrays, axes)

    def axes(self, found: FirstOrder) -> TurningAxes:
        """Axes that turn at the rate found, at all times."""
        return constant_axes(found.rate, self.structure.nv)


def _steady_state(
    system: AbstractSystem,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    t: Scalar,
    bases: Bases,
) -> _SteadyState:
    length, mass = float(system.characteristic_length()), np.asarray(system.mass_matrix(q, t))
    units = coordinate_units(system.structure, mass, length, bases.position.shape[1])
    return _SteadyState(system, q, v, t, bases, length, units)


def _candidates(motion: _SteadyState) -> tuple[list[TurningAxes], FirstOrder]:
    """Axes in which the velocities stay the same, if there are any: those that turn least first."""
    found = motion.at(constant_axes(jnp.zeros(3, motion.q.dtype), motion.structure.nv))
    normal, right = np.asarray(found.normal), np.asarray(found.right)
    sizes, directions = np.linalg.eigh(normal)
    kept = sizes > _UNDETERMINED**2 * np.max(sizes)
    inverse = (directions[:, kept] / sizes[kept]) @ directions[:, kept].T
    free = directions[:, ~kept] @ directions[:, ~kept].T
    given = [
        TurningAxes(*map(jnp.asarray, (inverse @ right, inverse, free, spin)))
        for spin in _spin_selectors(motion, free)
    ]
    return given, motion.at(given[0])


def _spin_selectors(motion: _SteadyState, free: np.ndarray) -> list[np.ndarray]:
    """Matrices that map B v to angular velocities that differ along the `free` directions: zero,
    and those of bodies, from slow to fast."""
    system, structure = motion.system, motion.structure
    spins, found = [np.zeros((3, structure.nv))], [np.zeros(3)]
    if not np.any(system.turning(jnp.ones(3, motion.q.dtype))):
        return spins
    speed = np.asarray(system.world_axes(motion.q) @ motion.v)
    for body in structure.bodies:
        if not body.posed:
            continue
        # In the plane the last component alone.
        spin = np.zeros((3, structure.nv))
        spin[range(3 - len(body.torque), 3), list(body.torque)] = 1.0
        along = free @ spin @ speed
        turns = np.any(np.abs(system.turning(jnp.asarray(along))) > _SAME * np.max(np.abs(speed)))
        if turns and all(np.max(np.abs(along - x)) > _SAME * np.max(np.abs(along)) for x in found):
            spins.append(spin)
            found.append(along)
    order = sorted(range(len(spins)), key=lambda k: np.linalg.norm(found[k]))
    return [spins[k] for k in order]


def _largest_variation(motion: _SteadyState, found: FirstOrder) -> tuple[float, str]:
    """The largest change of A seen, or why the motion does not go on as it is."""
    system, largest, limit = motion.system, 0.0, _tolerance(motion, found)
    for later in _times(motion, found):
        q, axes = _state_after(system, motion.q, motion.v, found.rate, jnp.asarray(later))
        v, t = axes @ motion.v, motion.t + later
        bases = Bases(*(np.asarray(axes) @ x for x in motion.bases))
        opened = _broken_constraint(motion, q, v, t) or _constraint_not_turning(
            motion, q, v, t, bases
        )
        if opened:
            return largest, (
                f"the motion is not steady: {opened!r} does not let it go on as it begins"
            )
        there = first_order(system, q, v, t, *bases.arrays, motion.axes(found))
        if _is_accelerating(motion, there):
            return largest, f"the motion is not steady: {_mover(motion, there)} leaves it later"
        changing = _changing_state(motion, q, v, t, there)
        if changing:
            return largest, f"the motion is not steady: later {changing}"
        change = _matrix_change(motion, found, there)
        if not change <= limit:
            return largest, (
                "small motions about this motion change with time, in axes that turn with it (as "
                "of a body that spins and is not symmetric about its axis)"
            )
        largest = max(largest, change)
    return largest, ""


def _fastest(motion: _SteadyState, found: FirstOrder) -> float:
    """The largest velocity (rad/s, characteristic lengths per second); at rest, the frequency of
    small motions (1/s)."""
    speeds = np.abs(motion.v) / motion.structure.column_scale(motion.length)
    fastest = max(np.max(speeds, initial=0.0), float(jnp.linalg.norm(found.rate)))
    fastest = fastest if fastest > 0 else _frequency(motion, found)
    return fastest if fastest > 0 else 1.0


def _times(motion: _SteadyState, found: FirstOrder) -> list[float]:
    return [angle / _fastest(motion, found) for angle in _LATER]


def _balanced(motion: _SteadyState, state: Float[Array, "n n"], speed: float) -> np.ndarray:
    """A with displacements multiplied by a typical frequency, like velocities: all 1/s."""
    matrix = np.asarray(state)
    scale = rate_scale(matrix, motion.units, speed)
    return scale[:, None] * matrix / scale


def _frequency(motion: _SteadyState, found: FirstOrder) -> float:
    return frequency_scale(np.asarray(found.state), motion.units)


def _tolerance(motion: _SteadyState, found: FirstOrder) -> float:
    """Tolerance for a constant state (1/s); it includes rounding of the velocities."""
    return max(EXACT.steady * _frequency(motion, found), _ROUNDING * _fastest(motion, found))


def _matrix_change(motion: _SteadyState, one: FirstOrder, other: FirstOrder) -> float:
    """Difference of two matrices A (1/s)."""
    speed = _frequency(motion, one)
    change = _balanced(motion, other.state - one.state, speed if speed > 0 else 1.0)
    if not np.all(np.isfinite(change)):
        return np.inf
    return float(np.linalg.norm(change, 2)) if change.size else 0.0


def _is_accelerating(motion: _SteadyState, found: FirstOrder) -> bool:
    """Do velocities change along the axes?"""
    mass = np.asarray(motion.system.mass_matrix(motion.q, motion.t))

    def size(x: Array) -> float:
        return float(np.sqrt(np.asarray(x) @ mass @ np.asarray(x)))

    around = size(found.free) + size(found.acceleration) + size(motion.v) * _fastest(motion, found)
    return not size(found.unsteady) <= EXACT.steady * around


def _changing_state(
    motion: _SteadyState,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    t: Scalar,
    found: FirstOrder,
) -> str:
    p = motion.bases.position.shape[1]
    return changing_state(motion.system, q, v, t, found.state, p)


def _mover(motion: _SteadyState, found: FirstOrder) -> str:
    unsteady = np.asarray(found.unsteady)
    if not np.all(np.isfinite(unsteady)):
        return "a body"
    return movers(unsteady[:, None], motion.structure, motion.length)[0]


def _refuse_acceleration(motion: _SteadyState, found: FirstOrder) -> None:
    if _is_accelerating(motion, found):
        raise ValueError(
            f"the motion is not steady: {_mover(motion, found)} accelerates, in any axes that turn "
            f"steadily; {_ELSE}."
        )


def _broken_constraint(
    motion: _SteadyState, q: Float[Array, " nq"], v: Float[Array, " nv"], t: Scalar
) -> str:
    """The constraint that a state breaks, if there is one."""
    structure = motion.structure
    position, velocity = (np.asarray(x) for x in residuals(motion.system, q, v, t))
    speed = max(1.0, float(np.max(np.abs(v), initial=0.0)))
    broken = np.abs(velocity) / speed
    rows = structure.geometric_rows
    broken[rows] = np.maximum(broken[rows], np.abs(position))
    if not broken.size or np.max(broken) <= EXACT.steady:
        return ""
    return structure.constraints[structure.row_owner[np.argmax(broken)]].name


def _constraint_not_turning(
    motion: _SteadyState,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    t: Scalar,
    bases: Bases,
) -> str:
    """The constraint whose rows do not rotate with the axes, if there is one: it no longer admits
    the velocities that it admitted at the start."""
    structure = motion.structure
    rows, _ = (np.asarray(x) for x in matrices(motion.system, q, v, t))
    sizes = np.linalg.norm(rows, axis=1)
    passing = np.zeros(len(structure.rows))
    for own, basis in zip((structure.geometric, structure.velocity_level), bases, strict=True):
        if basis.size:
            through = np.max(np.abs(rows @ basis), axis=1) / np.max(np.linalg.norm(basis, axis=0))
            passing = np.fmax(passing, np.where(own, through, 0.0))
    passing /= np.where(sizes > 0, sizes, 1.0)
    if not passing.size or np.max(passing) <= EXACT.steady:
        return ""
    return structure.constraints[structure.row_owner[np.argmax(passing)]].name


# --------------------------------------------------------------------------------------------------
# Small motions about an equilibrium or a steady motion: d/dt (z, w) = A (z, w).
#
# A displacement is measured from the motion that goes on, not from a fixed point, and along axes in
# which that motion is steady, so that A is constant.
# --------------------------------------------------------------------------------------------------


_ADVICE = "Start from the result of equilibrium, or give the velocities of a steady motion."


class Linearisation(AbstractAnswer):
    """Small motions about a state: d/dt (z, w) = A (z, w).

    - `position_basis` Y (nv, p): displacements along the velocities that the geometric rows
      allow. `basis` Z (nv, k): velocities that all rows allow, k the mobility; p > k with
      velocity constraints alone. Both orthonormal in the mass metric.
    - `state_matrix` A (p + k, p + k). In the bases the mass matrix is the identity, the
      damping matrix (k, k) minus the lower right and the stiffness matrix (k, p) minus the
      lower left block of A.
    - `eigenvalues` (p + k,): 1/s, by frequency, then by decay. `modes` (nv, p + k): displacement
      of each along the velocities, of length 1 in the mass metric, its largest entry real; the
      velocities are the eigenvalue times it where the state is at rest.
    - `states`: name and quantity of each state s that forces have of their own (m of them). They
      follow the displacements: A is that of (z, s, w), (p + m + k) in size, and modes have m rows
      more, (nv + m); what counts as one of a state is of length 1 in them.
    - `turning` (3,): angular velocity (rad/s, world) of the axes along which displacements are
      measured. `variation`: the largest change of A that was seen along the motion (1/s), its
      displacements times a typical frequency: rounding. Eigenvalues that are zero up to rounding
      are given as zero. `message`: elastic bodies whose theory does not hold at this state, so that
      their frequencies are not those of it, and what to do.
    """

    position_basis: Float[Array, "nv p"]
    basis: Float[Array, "nv k"]
    state_matrix: Float[Array, "n n"]
    eigenvalues: Complex[Array, " n"]
    modes: Complex[Array, "steps n"]
    turning: Float[Array, "3"]
    variation: Scalar
    states: tuple[ColumnInfo, ...] = eqx.field(static=True)
    message: str = eqx.field(static=True, default="")

    @property
    def mass(self) -> Float[Array, "k k"]:
        """Z^T M Z = 1."""
        return jnp.eye(self.basis.shape[1], dtype=self.basis.dtype)

    @property
    def damping(self) -> Float[Array, "k k"]:
        """1/s."""
        first = self.state_matrix.shape[0] - self.basis.shape[1]
        return -self.state_matrix[first:, first:]

    @property
    def stiffness(self) -> Float[Array, "k p"]:
        """1/s^2."""
        first = self.state_matrix.shape[0] - self.basis.shape[1]
        return -self.state_matrix[first:, : self.position_basis.shape[1]]

    @property
    def frequencies(self) -> Float[Array, " n"]:
        """|Im| of each eigenvalue over 2 pi (Hz)."""
        return jnp.abs(jnp.imag(self.eigenvalues)) / (2 * jnp.pi)

    def described(self) -> Description:
        values, frequencies = np.asarray(self.eigenvalues), np.asarray(self.frequencies)
        table = Table(
            [
                Column("eigenvalue", [_printing.complex_number(x) for x in values], "1/s"),
                Column("frequency", [f"{x:.6g}" for x in frequencies], "Hz"),
            ]
        )
        names = ", ".join(f"{x.name} ({x.quantity.unit or '1'})" for x in self.states)
        return Description(
            (), [table], [f"beside displacements: {names}" if names else "", self.message]
        )


@takes_state(decides_rank=True)
def linearise(
    system: AbstractSystem,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"] | None = None,
    t: RealScalarLike = 0.0,
) -> Linearisation:
    """Eigenvalues and mode shapes of small motions about a state on the constraints.

    The state must be an equilibrium (`equilibrium` finds one) or belong to a steady motion: one
    whose velocities, and whose small motions, are constant along axes that turn at a constant rate.
    Displacements are measured along these `turning` axes: fixed ones for a straight course (wheels
    that are symmetric about their axes turn, the axes do not) or a sleeping top, those that go
    round with it for a steady turn, a precessing top, or an unsymmetric rotor. At rest, loads and
    drivers count as they are at `t`. Redundant rows do not disturb it. States of forces (a
    controller's integral) must be constant there, and are further coordinates of small motions
    after the displacements. Dense, for concrete numbers: outside of `jit` and `vmap`.

    A motion that may begin elsewhere, in another direction or faster has eigenvalues zero, in
    pairs where what is changed makes a position grow with time (speed and way); in a turn with
    the rate Omega a shift has +-i Omega, as it turns against the axes. They do not show stability.

    Differentiable once, forward (`jax.jvp`; `jax.jacfwd` would trace it) and reverse, in t, the
    state (that of `equilibrium`, say) and every
    array of the system, along what keeps the rank. Bases go along with their null spaces. Of equal
    eigenvalues the derivative is that of their mean.

    **Arguments:** `q` (nq,), `v` (nv,), default at rest, `t` (s): the state.

    **Returns:** a `Linearisation`.

    **Raises:** `ValueError` for traced numbers, second derivatives, a state that the constraints do
    not allow, a state at rest that is not an equilibrium, naming a body that would accelerate or a
    force's state that changes, and a motion that is not steady, naming what changes (`floquet`
    takes periodic ones), and a system that cannot move.
    """
    v = jnp.zeros((system.structure.nv,), q.dtype) if v is None else v
    t = jnp.asarray(t, q.dtype)
    small, message = _linearised(system, q, v, t).small, _limits(system, q, v, t)
    return dataclasses.replace(small, message=message) if message else small


def _limits(
    system: AbstractSystem, q: Float[Array, " nq"], v: Float[Array, " nv"], t: Scalar
) -> str:
    """Elastic bodies whose theory does not hold at the state."""
    traced = any(isinstance(x, Tracer) for x in jax.tree.leaves((system, q, v, t)))
    if traced or not system.elasticities():
        return ""
    return limits_left_by_state(system, q, v, t, _multipliers(system, q, v, t))


@program(compiling=Compiling.ONCE)
def _multipliers(
    system: AbstractSystem, q: Float[Array, " nq"], v: Float[Array, " nv"], t: Scalar
) -> Float[Array, " rows"]:
    """Those of least norm."""
    return solve_with_friction(system, q, v, t, formulation=MinimumNorm()).multipliers


class _Found(NamedTuple):
    """The requested result, and the axes along which it is measured."""

    small: Linearisation
    axes: TurningAxes


@eqx.filter_custom_jvp
def _linearised(
    system: AbstractSystem, q: Float[Array, " nq"], v: Float[Array, " nv"], t: Scalar
) -> _Found:
    refuse_tracers("linearise", (system, q, v, t))
    system.structure.require_definite_mass("linearise")
    check_state(system, q, v, t)
    bases, mass = bases_of(system, q, v, t)
    if np.any(v):
        axes, found, variation = steady_motion(system, q, v, t, bases)
    else:
        axes, variation = constant_axes(jnp.zeros(3, q.dtype), v.shape[0]), 0.0
        found = first_order(system, q, v, t, *bases.arrays, axes)
        p = bases.position.shape[1]
        first = p + system.structure.internal.size
        start = _Rest(mass, *bases, -np.asarray(found.state)[first:, :p])
        _refuse_unbalanced(system, start, np.asarray(found.free), np.asarray(found.acceleration))
        changing = changing_state(system, q, v, t, found.state, p)
        if changing:
            raise ValueError(f"the state is at rest but no equilibrium: {changing}. {_ADVICE}")
        refuse_changing_rest(system, q, t, bases, found)
    measure = _measured(system, bases.position, mass)
    values, shapes = sorted_eigenvalues(np.asarray(found.state), measure.units, variation)
    position = np.asarray(measure.position)
    modes = normalised(position @ shapes[: position.shape[1]], np.asarray(measure.mass))
    arrays = (*bases, found.state, values, modes, found.rate, np.asarray(variation))
    structure = system.structure
    states = tuple(structure.coordinates[place] for place in structure.internal)
    return _Found(Linearisation(*(jnp.asarray(x) for x in arrays), states=states), axes)


class _Measure(NamedTuple):
    """Matrices that compose and measure modes: Y and M extended by the states of forces, and the
    unit of each coordinate."""

    position: Float[Array, "steps d"]
    mass: Float[Array, "steps steps"]
    units: np.ndarray


def _measured(system: AbstractSystem, position: Any, mass: Any) -> _Measure:
    """Concrete numbers."""
    structure, length = system.structure, float(system.characteristic_length())
    return _Measure(
        beside_states(position, identity(structure)),
        beside_states(mass, np.diag(state_scale(structure, length) ** -2.0)),
        coordinate_units(structure, np.asarray(mass), length, position.shape[1]),
    )


def refuse_tracers(name: str, numbers: Any) -> None:
    """Refuse what is traced."""
    leaves = jax.tree.leaves(eqx.filter(numbers, eqx.is_array))
    if any(isinstance(x, Tracer) for x in leaves):
        raise ValueError(
            f"{name} decides ranks: call it outside of jit and vmap, and differentiate it once."
        )


def bases_of(
    system: AbstractSystem, q: Float[Array, " nq"], v: Float[Array, " nv"], t: Scalar
) -> tuple[Bases, np.ndarray]:
    """Y and Z of a state, and M. Concrete numbers.

    **Raises:** `ValueError` where nothing can move.
    """
    structure, length = system.structure, float(system.characteristic_length())
    matrix, mass = (np.asarray(x) for x in matrices(system, q, v, t))
    found = [
        _orthonormal(null_space(rows, structure, length), mass)
        for rows in (matrix[structure.geometric_rows], matrix[structure.velocity_level])
    ]
    if not found[0].shape[1]:
        raise ValueError(
            "there are no small motions: the constraints hold every body; look whether a driver or "
            "joint is one too many."
        )
    return Bases(*found), mass


@_linearised.def_jvp
def _linearised_jvp(primals: Any, tangents: Any) -> Any:
    found, axes = _linearised(*primals)

    def nearby(given: tuple[AbstractSystem, Array, Array, Scalar]) -> Nearby:
        return first_order_nearby(*given, found.position_basis, found.basis, axes)

    change = directional_derivative(nearby, primals, tangents)
    _, mass = matrices(*primals)
    measure = _measured(primals[0], found.position_basis, mass)
    still = np.zeros_like(identity(primals[0].structure))
    values, modes = changes_of_modes(
        SmallMotions(measure.position, found.state_matrix, measure.mass),
        SmallMotions(
            beside_states(change.position, still), change.state, beside_states(change.mass, still)
        ),
        measure.units,
        float(found.variation),
    )
    small = Linearisation(
        change.position,
        change.velocity,
        change.state,
        values,
        modes,
        change.rate,
        jnp.zeros_like(found.variation),
        found.states,
    )
    return _Found(found, axes), _Found(small, jax.tree.map(jnp.zeros_like, axes))


class Nearby(NamedTuple):
    """Y, Z, A, M and the angular velocity of the axes."""

    position: Float[Array, "nv p"]
    velocity: Float[Array, "nv k"]
    state: Float[Array, "n n"]
    mass: Float[Array, "nv nv"]
    rate: Float[Array, "3"]


@program(compiling=Compiling.ONCE)
def first_order_nearby(
    system: AbstractSystem,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    t: Scalar,
    position: Float[Array, "nv p"],
    velocity: Float[Array, "nv k"],
    axes: TurningAxes,
) -> Nearby:
    """First-order equations of states and systems nearby, with bases and axes continued from here
    to first order."""
    mass, position, velocity = transport_bases(system, q, v, t, position, velocity)
    found = first_order(system, q, v, t, position, velocity, axes)
    return Nearby(position, velocity, found.state, mass, found.rate)


def transport_bases(
    system: AbstractSystem,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    t: Scalar,
    position: Float[Array, "nv p"],
    velocity: Float[Array, "nv k"],
) -> tuple[Float[Array, "nv nv"], Float[Array, "nv p"], Float[Array, "nv k"]]:
    """M, Y and Z."""
    mass = system.mass_matrix(q, t)
    position = _transport_basis(geometric_descriptor(system, q, t), mass, position)
    held = velocity_level_matrices(system, system.descriptor(q, v, t))
    return mass, position, _transport_basis(held, mass, velocity)


def _transport_basis(
    descriptor: AbstractKKTMatrices, mass: Float[Array, "nv nv"], basis: Float[Array, "nv k"]
) -> Float[Array, "nv k"]:
    """The basis transported in the null space, orthonormal to first order."""
    if not basis.shape[1]:
        return basis
    residuals = jax.vmap(descriptor.apply_C, in_axes=1)(basis)
    basis = basis - corrections(descriptor.metric(), residuals, motion_solver()).T
    return basis @ (1.5 * jnp.eye(basis.shape[1]) - 0.5 * basis.T @ mass @ basis)


def _orthonormal(basis: np.ndarray, mass: np.ndarray) -> np.ndarray:
    """The same space, with basis^T M basis = 1."""
    lower = np.linalg.cholesky(basis.T @ mass @ basis)
    return np.linalg.solve(lower, basis.T).T


class _Rest(NamedTuple):
    """A state at rest: M, Y, Z and the stiffness matrix (k, p)."""

    mass: np.ndarray
    position: np.ndarray
    velocity: np.ndarray
    stiffness: np.ndarray


def _refuse_unbalanced(
    system: AbstractSystem, rest: _Rest, free: np.ndarray, acceleration: np.ndarray
) -> None:
    """Refuse accelerations that stiffness does not balance within a small way."""
    if not rest.stiffness.size:
        return
    length = float(system.characteristic_length())
    unit = system.structure.column_scale(length)
    force = rest.velocity.T @ rest.mass @ acceleration
    way = np.linalg.lstsq(rest.stiffness, force, rcond=system.tolerances.stiffness)[0]
    left = force - rest.stiffness @ way
    # Forces that act here, and those that stiffness could give.
    weight = np.max(np.sqrt(np.diagonal(rest.mass)) * unit)
    forces = np.sqrt(free @ rest.mass @ free) + np.linalg.norm(rest.stiffness, 2) * weight
    moved = rest.position @ way
    far = np.any(np.abs(moved) > system.tolerances.steady * unit)
    if not far and np.linalg.norm(left) <= system.tolerances.steady * forces:
        return
    motion = moved if far else rest.velocity @ left
    name = movers(motion[:, None], system.structure, length)[0]
    raise ValueError(f"the state is at rest but no equilibrium: {name} would move off. {_ADVICE}")
