"""Equations of small motions to first order, with states of forces, and their eigenvalues and
mode shapes.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import block_diag
from jaxtyping import Array, Complex, Float

from .._custom_types import Scalar
from .._formulations import MinimumNorm
from .._linalg import AbstractKKTMatrices, correction, motion_solver
from .._programs import Compiling, program
from .._system import AbstractSystem, Structure
from ._friction import solve_stage
from ._projection import velocity_level_matrices


# --------------------------------------------------------------------------------------------------
# States of forces, besides displacements of bodies: coordinates s in q that no velocity changes.
#
# A step is one along the velocities (nv,), followed by the change of each state; without states the
# first alone, and nothing here adds an operation to a program.
# --------------------------------------------------------------------------------------------------


# Rates of states are none below this, relative to those that displacements, velocities and states
# of the size of one make.
_NO_RATE = 1e-6


def displaced(
    system: AbstractSystem, q: Float[Array, " nq"], step: Float[Array, " steps"]
) -> Float[Array, " nq"]:
    """`retract` by the first of the step, and the states changed by the others."""
    states = system.structure.internal
    if not states.size:
        return system.retract(q, step)
    nv = system.structure.nv
    return system.retract(q, step[:nv]).at[states].add(step[nv:])


def beside_states(
    matrix: Float[Array | np.ndarray, "a b"], states: Float[np.ndarray, "m m"]
) -> Any:
    """Block-diagonal: a matrix of displacements or velocities, and one of states."""
    return block_diag(jnp.asarray(matrix), jnp.asarray(states)) if states.size else matrix


def identity(structure: Structure) -> np.ndarray:
    """The identity matrix of the states (m, m)."""
    return np.eye(structure.internal.size)


def state_scale(structure: Structure, length: Any) -> Any:
    """The unit of each state (m,); a NumPy array if the length (m) is a `float`."""
    return structure.coordinate_scale(length)[structure.internal]


@program(compiling=Compiling.ONCE)
def rates_of_states(
    system: AbstractSystem, q: Float[Array, " nq"], v: Float[Array, " nv"], t: Scalar
) -> Float[Array, " m"]:
    """The rates of the states of a system that has states."""
    return system.flow(q, v, t)[system.structure.internal]


def coordinate_units(
    structure: Structure, mass: np.ndarray, length: float, displacements: int
) -> np.ndarray:
    """Units of the coordinates of small motions (d,), in the mass metric: 1 for displacements; for
    states, the change equivalent to a unit displacement."""
    own = state_scale(structure, length) / _one(structure, mass, length)
    return np.concatenate([np.ones(displacements), own])


def _one(structure: Structure, mass: np.ndarray, length: float) -> float:
    """The largest displacement of one, in the mass metric."""
    return float(np.max(np.sqrt(np.diagonal(mass)) * structure.column_scale(length)))


def changing_state(
    system: AbstractSystem,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    t: Scalar,
    matrix: Float[Array, "n n"],
    displacements: int,
) -> str:
    """Description of the force state that changes fastest; empty if no state changes. A state does
    not count as changing if its rate is at most what the matrix of small motions, that of
    `first_order`, gives for small motions. Concrete numbers."""
    structure = system.structure
    if not structure.internal.size:
        return ""
    length, mass = float(system.characteristic_length()), np.asarray(system.mass_matrix(q, t))
    last = displacements + structure.internal.size
    rates = np.asarray(rates_of_states(system, q, v, t))
    own = np.abs(np.asarray(matrix))[displacements:last]
    values = np.maximum(state_scale(structure, length), np.abs(np.asarray(q)[structure.internal]))
    around = _one(structure, mass, length) * np.sum(own[:, :displacements], axis=1)
    around += own[:, displacements:last] @ values
    speed = np.sqrt(np.asarray(v) @ mass @ np.asarray(v))
    around += speed * np.linalg.norm(own[:, last:], axis=1)
    moving = ~(np.abs(rates) <= _NO_RATE * around)
    if not np.any(moving):
        return ""
    worst = int(np.argmax(np.where(moving, np.abs(rates) / values, -1.0)))
    return said_to_change(structure, worst, float(rates[worst]))


def said_to_change(structure: Structure, which: int, rate: float) -> str:
    """Description of the state of that index among the states, and of its rate."""
    info = structure.coordinates[structure.internal[which]]
    return f"the state {info.name!r} of a force still changes, by {rate:.3g} {info.quantity.unit}/s"


# --------------------------------------------------------------------------------------------------
# The equations of small motions about a motion, to first order, along axes that may turn.
#
# With Y and Z bases of the null spaces of the geometric rows and of all rows of C, orthonormal in
# the mass metric, states next to (q, v) are
#
#     q(z) = retract(q, Y z),    v(z, w) = v + Z w - M^-1 C^T S^+ (C (v + Z w) + b).
#
# Displacements along the velocities, d = Y z of the configuration and e = dv of the velocity, obey
# d/dt (d, e) = L (d, e). Measured in axes that turn with Omega and not with the bodies, they change
# by K d and K e less, K = B^T X(Omega) B - B^T dB/dt, where B takes velocities to axes that never
# turn (`world_axes`) and X is `turning`: d/dt (z, w) = A (z, w), A that of L - K.
#
# States s of forces follow z, as in q, (z, s, w): they belong to no axes, and their
# rates are those of `flow`.
# --------------------------------------------------------------------------------------------------


class TurningAxes(NamedTuple):
    """The angular velocity Omega of axes in which a motion is steady, as it follows from the
    motion: d(B v)/dt = X(Omega) B v, N Omega = r in the sense of least squares. Here, to first
    order next to a motion at which all of this is known (constant rank of N).

    - `determined` (3,): of least norm. `inverse` (3, 3): N^+. `free` (3, 3): 1 - N^+ N.
    - `spin` (3, nv): maps B v to the angular velocity that contributes its component along the
      `free` directions to Omega; zero for none.
    """

    determined: Float[Array, "3"]
    inverse: Float[Array, "3 3"]
    free: Float[Array, "3 3"]
    spin: Float[Array, "3 nv"]

    def rate(
        self, normal: Float[Array, "3 3"], right: Float[Array, "3"], v: Float[Array, " nv"]
    ) -> Float[Array, "3"]:
        """Omega, from N, r and B v."""
        inverse, free = self.inverse, self.free
        # d(N^+) = -N^+ dN N^+ + N^+ N^+ dN (1 - N N^+) + (1 - N^+ N) dN N^+ N^+ (Golub and
        # Pereyra 1973), where r is in the range of N.
        rate = self.determined + inverse @ (right - normal @ self.determined)
        rate += free @ normal @ (inverse @ self.determined)
        along = self.spin @ v
        along = (
            free @ along - inverse @ (normal @ (free @ along)) - free @ normal @ (inverse @ along)
        )
        return rate + along


def constant_axes(rate: Float[Array, "3"], nv: int) -> TurningAxes:
    """Axes of this angular velocity, whatever the motion."""
    none = jnp.zeros((3, 3), rate.dtype)
    return TurningAxes(rate, none, none, jnp.zeros((3, nv), rate.dtype))


class FirstOrder(NamedTuple):
    """A and Omega, and further data of the motion: `unsteady` dv/dt - K v, the rate at
    which the velocities leave the turning axes; `normal` N and `right` r of Omega; `free` M^-1 F
    and `acceleration` dv/dt."""

    state: Float[Array, "n n"]
    rate: Float[Array, "3"]
    unsteady: Float[Array, " nv"]
    normal: Float[Array, "3 3"]
    right: Float[Array, "3"]
    free: Float[Array, " nv"]
    acceleration: Float[Array, " nv"]


@program(compiling=Compiling.ONCE)
def first_order(
    system: AbstractSystem,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    t: Scalar,
    position: Float[Array, "nv p"],
    velocity: Float[Array, "nv k"],
    axes: TurningAxes,
) -> FirstOrder:
    """First-order equations at one state, with its bases Y and Z."""
    states = system.structure.internal
    p, n = position.shape[1], position.shape[1] + states.size + velocity.shape[1]
    formulation = MinimumNorm().motion_only(system)
    descriptor = velocity_level_matrices(system, system.descriptor(q, v, t))

    def flow(x: Float[Array, " n"]) -> tuple[tuple[Array, Array, Array], Array]:
        step, there, speed = displaced_state(system, descriptor, (q, v, t), (position, velocity), x)
        found = solve_stage(system, formulation, there, speed, t)
        # The motion continues, and the displaced state would keep its distance if it moved so.
        beside = jax.jvp(lambda y: displaced(system, y, step), (q,), (system.rate(q, v),))[1]
        relative = system.flow(there, speed, t) - beside
        return (relative, speed, found.acceleration), found.acceleration

    origin = jnp.zeros((n,), q.dtype)
    (moved, changed, slope), acceleration = jax.jacfwd(flow, has_aux=True)(origin)
    displacement = along_velocities(system, q, moved)
    world, spinning = jax.jvp(system.world_axes, (q,), (system.rate(q, v),))
    normal, right = _rate_equations(system, world @ v, world @ acceleration)
    rate = axes.rate(normal, right, world @ v)
    turning = world.T @ (system.turning(rate) @ world - spinning)
    displacement -= turning @ jnp.pad(position, ((0, 0), (0, n - p)))
    slope -= turning @ changed
    mass = system.mass_matrix(q, t)
    parts = [position.T @ mass @ displacement, velocity.T @ mass @ slope]
    if states.size:
        parts.insert(1, moved[states])
    state = jnp.concatenate(parts)
    free = descriptor.inverse_mass(system.force(q, v, t))
    unsteady = acceleration - turning @ v
    return FirstOrder(state, rate, unsteady, normal, right, free, acceleration)


class Displaced(NamedTuple):
    """A state next to another, and the step that leads to its q."""

    step: Float[Array, " steps"]
    q: Float[Array, " nq"]
    v: Float[Array, " nv"]


def displaced_state(
    system: AbstractSystem,
    descriptor: AbstractKKTMatrices,
    state: tuple[Float[Array, " nq"], Float[Array, " nv"], Scalar],
    bases: tuple[Float[Array, "nv p"], Float[Array, "nv k"]],
    x: Float[Array, " n"],
) -> Displaced:
    """The state next to (q, v, t) by x in the null spaces, (z, w) or (z, s, w), on the constraints
    to first order: the configuration stays there without correction, the velocity does not. What
    takes it back may be that of the state itself, whose `descriptor` is given, as nothing is left
    over there."""
    q, v, t = state
    position = beside_states(bases[0], identity(system.structure))
    coordinates = position.shape[1]
    step = position @ x[:coordinates]
    there, speed = displaced(system, q, step), v + bases[1] @ x[coordinates:]
    left = system.velocity_residual(there, speed, t)
    return Displaced(step, there, speed - correction(descriptor.metric(), left, motion_solver()))


def along_velocities(
    system: AbstractSystem, q: Float[Array, " nq"], changes: Float[Array, "nq n"]
) -> Float[Array, "nv n"]:
    """Displacements along the velocities from changes N d of q."""
    rates = jax.jacfwd(lambda d: system.retract(q, d))(jnp.zeros((system.structure.nv,), q.dtype))
    # Columns of N are orthogonal, those of a quaternion half as long as it.
    return rates.T @ changes / jnp.sum(rates**2, axis=0)[:, None]


def _rate_equations(
    system: AbstractSystem, speed: Float[Array, " nv"], change: Float[Array, " nv"]
) -> tuple[Float[Array, "3 3"], Float[Array, "3"]]:
    """N and r of d(B v)/dt = X(Omega) B v, lengths relative to the characteristic length: the
    angular velocities of bodies along their own axes and along the world's have one derivative."""
    unit = system.column_scale()
    columns = [system.turning(axis) @ speed / unit for axis in jnp.eye(3, dtype=speed.dtype)]
    matrix = jnp.stack(columns, axis=1)
    return matrix.T @ matrix, matrix.T @ (change / unit)


# --------------------------------------------------------------------------------------------------
# Eigenvalues and mode shapes of small motions, and their first derivatives. Dense, in NumPy.
#
# With P the projector onto the eigenvectors of all m eigenvalues equal to s, along those of the
# others, and R the inverse of A - s on the others (Kato 1980, chapter 2),
#
#     ds = tr(P dA) / m,    dx = -R dA x,
#
# the mean's derivative where m > 1: equal eigenvalues may part with the root of a change.
# --------------------------------------------------------------------------------------------------


# Eigenvalues nearer to each other than this, relative to the largest, are equal: multiple ones
# are known to the root of rounding only.
_EQUAL = 1e-6

# How many times the changes that are seen of a matrix its rounding may be.
_ROUNDING = 100.0

# What rounding is at most, relative to the frequencies: a state that is less steady than that hides
# no small eigenvalue.
_NEGLIGIBLE = 1e-10


class SmallMotions(NamedTuple):
    """Y, A and M, or changes of them, Y and M with a block for the states of forces: `position`
    makes modes of the first d rows of an eigenvector, `mass` measures them."""

    position: Float[Array, "steps d"]
    state: Float[Array, "n n"]
    mass: Float[Array, "steps steps"]


def sorted_eigenvalues(
    state: np.ndarray, units: np.ndarray, rounding: float = 0.0
) -> tuple[np.ndarray, np.ndarray]:
    """Eigenvalues by frequency, then by decay, with eigenvectors. The first rows and columns are
    those of coordinates, whose units are `units` (d,); where the matrix is known up to `rounding`
    (1/s), eigenvalues within that of zero are zero, with their multiplicity."""
    scale = np.ones(state.shape[0])
    if rounding > 0:
        frequency = frequency_scale(state, units) or 1.0
        scale = rate_scale(state, units, frequency)
        limit = min(_ROUNDING * rounding, _NEGLIGIBLE * frequency)
        values, shapes = _deflated(scale[:, None] * state / scale, limit)
    else:
        values, shapes = np.linalg.eig(state)
    turns = np.imag(values)
    order = np.lexsort((turns, np.real(values), np.abs(turns).round(9)))
    return values[order].astype(complex), (shapes / scale[:, None])[:, order].astype(complex)


def rate_scale(state: np.ndarray, units: np.ndarray, frequency: float) -> np.ndarray:
    """Factors that turn all n components into rates: coordinates times a typical frequency, like
    velocities."""
    scale = np.ones(state.shape[0])
    scale[: len(units)] = frequency / units
    return scale


def frequency_scale(state: np.ndarray, units: np.ndarray) -> float:
    """A typical frequency of small motions (1/s)."""
    p, scale = len(units), rate_scale(state, units, 1.0)
    state = scale[:, None] * state / scale
    blocks = (state[:p, :p], state[p:, p:])
    fastest = max(np.linalg.norm(x, 2) if x.size else 0.0 for x in blocks)
    stiff = state[p:, :p]
    return float(max(fastest, np.sqrt(np.linalg.norm(stiff, 2)) if stiff.size else 0.0))


def _deflated(state: np.ndarray, rounding: float) -> tuple[np.ndarray, np.ndarray]:
    """Eigenvalues and eigenvectors, those that are zero taken out first.

    A null space is split off by an orthogonal change of basis, and that of the rest, until there
    is none: the chains of multiple zeros, which rounding would spread to the root of its size
    (staircase form; Golub & Van Loan 2013, section 7.6.5).
    """
    basis, rest, count = np.eye(state.shape[0]), state, 0
    zeros = []
    while rest.size:
        _, sizes, right = np.linalg.svd(rest)
        null = sizes <= rounding
        if not null.any():
            break
        turn = np.concatenate([right[null], right[~null]]).T
        basis[:, count:] = basis[:, count:] @ turn
        found = basis[:, count : count + int(null.sum())]
        # The eigenvector at the end of each chain.
        for _ in range(len(zeros)):
            found = state @ found
        zeros.append(found)
        rest, count = (turn.T @ rest @ turn)[null.sum() :, null.sum() :], count + int(null.sum())
    values, shapes = np.linalg.eig(rest)
    if not count:
        return values, shapes
    # What the null spaces move along with the others.
    upper = basis.T @ state @ basis
    coupled = upper[:count, count:] @ shapes
    chains = upper[:count, :count]
    own = (
        np.stack(
            [
                np.linalg.solve(value * np.eye(count) - np.triu(chains, 1), column)
                for value, column in zip(values, coupled.T, strict=True)
            ],
            axis=1,
        )
        if values.size
        else np.zeros((count, 0))
    )
    others = basis @ np.concatenate([own, shapes])
    return np.concatenate([np.zeros(count), values]), np.concatenate([*zeros, others], axis=1)


def normalised(modes: np.ndarray, mass: np.ndarray) -> np.ndarray:
    """Length 1 in the mass metric; the entry that is largest there real and positive."""
    factors, _ = _factors(modes, mass)
    return modes * factors


def _factors(modes: np.ndarray, mass: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The factors that modes are multiplied by, and the indices of their largest entries."""
    if not modes.size:
        return np.ones(modes.shape[1]), np.zeros(modes.shape[1], int)
    weight = np.sqrt(np.diagonal(mass))[:, None]
    largest = np.argmax(np.abs(weight * modes), axis=0)
    phase = np.angle(np.take_along_axis(modes, largest[None], axis=0))[0]
    size = np.sqrt(np.real(np.sum(np.conj(modes) * (mass @ modes), axis=0)))
    return np.exp(-1j * phase) / np.where(size > 0, size, 1.0), largest


def changes_of_modes(
    at: SmallMotions, change: SmallMotions, units: np.ndarray, rounding: float = 0.0
) -> tuple[Complex[Array, " n"], Complex[Array, "steps n"]]:
    """Changes of the eigenvalues and of the normalised modes; linear in the `change`, `at`
    concrete."""
    position, state, mass = (np.asarray(x) for x in at)
    values, shapes = sorted_eigenvalues(state, units, rounding)
    p, n = position.shape[1], len(values)
    if not n:
        return jnp.zeros((0,), complex), jnp.zeros((position.shape[0], 0), complex)
    modes = position @ shapes[:p]
    factors, largest = _factors(modes, mass)
    modes, shapes = modes * factors, shapes * factors
    projectors, inverses = zip(*(_resolved(state, values, k) for k in range(n)), strict=True)
    moved = change.state @ jnp.asarray(shapes)
    slopes = jnp.einsum("kij,ji->k", jnp.asarray(np.stack(projectors)), change.state)
    turned = -jnp.einsum("kij,jk->ik", jnp.asarray(np.stack(inverses)), moved)
    raw = change.position @ jnp.asarray(shapes[:p]) + jnp.asarray(position) @ turned[:p]
    # Any multiple of a mode may be added: that which keeps its length and its phase.
    heavy = np.conj(mass @ modes)
    conjugate = jnp.asarray(np.conj(modes))
    longer = jnp.real(jnp.sum(heavy * raw, axis=0))
    longer += jnp.real(jnp.sum(conjugate * (change.mass @ jnp.asarray(modes)), axis=0)) / 2
    top = np.real(np.take_along_axis(modes, largest[None], axis=0)[0])
    ahead = jnp.imag(jnp.take_along_axis(raw, jnp.asarray(largest)[None], axis=0)[0])
    ahead = ahead / np.where(top > 0, top, 1.0)
    return slopes, raw - jnp.asarray(modes) * (longer + 1j * ahead)[None]


def changes_of_eigenvalues(
    matrix: np.ndarray, values: np.ndarray, change: Float[Array, "n n"]
) -> Complex[Array, " n"]:
    """Changes of the eigenvalues in their order; linear in the `change`, the matrix concrete."""
    if not len(values):
        return jnp.zeros((0,), complex)
    projectors = [_resolved(matrix, values, k)[0] for k in range(len(values))]
    return jnp.einsum("kij,ji->k", jnp.asarray(np.stack(projectors)), change)


def _resolved(state: np.ndarray, values: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """P / m and R of one eigenvalue."""
    scale = np.max(np.abs(values))
    equal = np.abs(values - values[k]) <= _EQUAL * scale
    count = int(np.sum(equal))
    own, one = np.mean(values[equal]), np.eye(len(values))
    shifted = state - own * one
    # Of m equal ones A - s may have fewer eigenvectors, but not its m-th power.
    left, _, right = np.linalg.svd(np.linalg.matrix_power(shifted, count))
    left, right = left[:, -count:], np.conj(right[-count:]).T
    projector = right @ np.linalg.solve(np.conj(left).T @ right, np.conj(left).T)
    others = one - projector
    size = scale if scale > 0 else 1.0
    inverse = others @ np.linalg.solve(shifted + size * projector, others)
    return projector / count, inverse
