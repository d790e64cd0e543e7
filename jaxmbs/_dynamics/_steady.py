"""Is a motion steady, and along which axes?

A motion is steady in axes that turn with Omega if its velocities, and the matrix A of small motions
about it, are constant along them. Where the velocities determine their own rotation (d(B v)/dt =
X(Omega) B v), there is one Omega. Where they do not, as all velocities are parallel to one
direction, it is that of axes that do not turn about it if the motion is steady along these (a wheel
that is symmetric about its axis), else that of one of the bodies (an unsymmetric rotor in symmetric
bearings).

Constancy is checked where the motion would be later if it were steady, at several times: a rotor
that is not symmetric may have a start at which nothing changes to first order.
"""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._custom_types import Scalar
from .._geometry import turn_matrix
from .._programs import program
from .._system import AbstractSystem, Structure
from ._first_order import constant_axes, first_order, FirstOrder, TurningAxes
from ._force_states import changing_state, coordinate_units
from ._initial import residuals
from ._mobility import movers
from ._modes import frequency_scale, rate_scale


# What may change along a steady motion: parts of the largest, as of a state at rest that counts
# as an equilibrium.
_CONSTANT = 1e-6

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
    return max(_CONSTANT * _frequency(motion, found), _ROUNDING * _fastest(motion, found))


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
    return not size(found.unsteady) <= _CONSTANT * around


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
    if not broken.size or np.max(broken) <= _CONSTANT:
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
    if not passing.size or np.max(passing) <= _CONSTANT:
        return ""
    return structure.constraints[structure.row_owner[np.argmax(passing)]].name
