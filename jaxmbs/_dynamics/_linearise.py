"""Small motions about a state on the constraints.

With Y and Z bases of the null spaces of the geometric rows and of all rows of C, orthonormal in
the mass metric, states next to (q, v) are

    q(z) = retract(q, Y z),    v(z, w) = v + Z w - M^-1 C^T S^+ (C (v + Z w) + b),

and d/dt (z, w) = A (z, w) to first order. A displacement is measured along the velocities from
the motion that goes on, not from a fixed point, so that A is constant along a steady motion whose
coordinates do not notice it.
"""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Complex, Float

from .._custom_types import RealScalarLike, Scalar
from .._formulations import MinimumNorm
from .._kinematics import geometric_descriptor
from .._linalg import AbstractDescriptor, directional_derivative, motion_solver
from .._system import AbstractSystem
from ._friction import solve_with_friction
from ._initial import check_state
from ._mobility import movers, null_space
from ._modes import changes_of_modes, normalised, SmallMotions, sorted_eigenvalues
from ._projection import correction, corrections
from ._watched import motion_only


# A state at rest counts as an equilibrium if the nearest one is no farther away than this
# (lengths relative to the characteristic length, or rad).
_NEAR = 1e-6

# Stiffness below this, relative to the largest, is none.
_SOFT = 1e-10


class Linearisation(eqx.Module):
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
    """

    position_basis: Float[Array, "nv p"]
    basis: Float[Array, "nv k"]
    state_matrix: Float[Array, "n n"]
    eigenvalues: Complex[Array, " n"]
    modes: Complex[Array, "nv n"]

    @property
    def mass(self) -> Float[Array, "k k"]:
        """Z^T M Z = 1."""
        return jnp.eye(self.basis.shape[1], dtype=self.basis.dtype)

    @property
    def damping(self) -> Float[Array, "k k"]:
        """1/s."""
        p = self.position_basis.shape[1]
        return -self.state_matrix[p:, p:]

    @property
    def stiffness(self) -> Float[Array, "k p"]:
        """1/s^2."""
        p = self.position_basis.shape[1]
        return -self.state_matrix[p:, :p]

    @property
    def frequencies(self) -> Float[Array, " n"]:
        """|Im| of each eigenvalue over 2 pi (Hz)."""
        return jnp.abs(jnp.imag(self.eigenvalues)) / (2 * jnp.pi)

    def __str__(self) -> str:
        lines = ["eigenvalue (1/s)            frequency (Hz)"]
        for value, frequency in zip(self.eigenvalues, self.frequencies, strict=True):
            text = f"{float(jnp.real(value)):+.6g} {float(jnp.imag(value)):+.6g}i"
            lines.append(f"{text:<28}{float(frequency):.6g}")
        return "\n".join(lines)


def linearise(
    system: AbstractSystem,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"] | None = None,
    t: RealScalarLike = 0.0,
) -> Linearisation:
    """Eigenvalues and mode shapes of small motions about a state on the constraints.

    The state must be an equilibrium (`equilibrium` finds one) or belong to a steady motion, in
    which forces and constraints do not change along the motion in these coordinates (a body
    that spins about its axis of symmetry, a straight course); of any other state the numbers
    are those of the equations frozen at that time. Redundant rows do not disturb it. Dense, for
    concrete numbers: outside of `jit` and `vmap`.

    Differentiable once, forward and reverse, in t, the state (that of `equilibrium`, say) and every
    array of the system, along what keeps the rank. Bases go along with their null spaces. Of equal
    eigenvalues the derivative is that of their mean.

    **Arguments:** `q` (nq,), `v` (nv,), default at rest, `t` (s): the state.

    **Returns:** a `Linearisation`.

    **Raises:** `ValueError` for traced numbers, second derivatives, a state that the constraints
    do not allow, and a state at rest that is no equilibrium, naming a body that would move off.
    """
    v = jnp.zeros((system.structure.nv,), q.dtype) if v is None else v
    t = jnp.asarray(t, q.dtype)
    return _linearised(system, q, v, t)


@eqx.filter_custom_jvp
def _linearised(
    system: AbstractSystem, q: Float[Array, " nq"], v: Float[Array, " nv"], t: Scalar
) -> Linearisation:
    numbers = jax.tree.leaves(eqx.filter((system, q, v, t), eqx.is_array))
    if any(isinstance(x, Tracer) for x in numbers):
        raise ValueError(
            "linearise decides ranks: call it outside of jit and vmap, and differentiate it once."
        )
    check_state(system, q, v, t)
    structure, length = system.structure, float(system.characteristic_length())
    matrix, mass = (np.asarray(x) for x in _matrices(system, q, v, t))
    bases = [
        _orthonormal(null_space(rows, structure, length), mass)
        for rows in (matrix[structure.geometric_rows], matrix)
    ]
    position, velocity = bases
    found = _first_order(system, q, v, t, jnp.asarray(position), jnp.asarray(velocity))
    state, free, acceleration = (np.asarray(x) for x in found)
    if not np.any(v):
        start = _Rest(mass, position, velocity, -state[position.shape[1] :, : position.shape[1]])
        _refuse_unbalanced(system, start, free, acceleration)
    values, shapes = sorted_eigenvalues(state)
    modes = normalised(position @ shapes[: position.shape[1]], mass)
    arrays = (position, velocity, state, values, modes)
    return Linearisation(*(jnp.asarray(x) for x in arrays))


@_linearised.def_jvp
def _linearised_jvp(primals: Any, tangents: Any) -> Any:
    found = _linearised(*primals)

    def carried(given: tuple[AbstractSystem, Array, Array, Scalar]) -> _Carried:
        return _carried(*given, found.position_basis, found.basis)

    change = directional_derivative(carried, primals, tangents)
    _, mass = _matrices(*primals)
    values, modes = changes_of_modes(
        SmallMotions(found.position_basis, found.state_matrix, mass),
        SmallMotions(change.position, change.state, change.mass),
    )
    return found, Linearisation(change.position, change.velocity, change.state, values, modes)


class _Carried(NamedTuple):
    """Y, Z, A and M."""

    position: Float[Array, "nv p"]
    velocity: Float[Array, "nv k"]
    state: Float[Array, "n n"]
    mass: Float[Array, "nv nv"]


@eqx.filter_jit
def _carried(
    system: AbstractSystem,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    t: Scalar,
    position: Float[Array, "nv p"],
    velocity: Float[Array, "nv k"],
) -> _Carried:
    """From the bases here, to first order, those of states and systems nearby."""
    mass = system.mass_matrix(q)
    position = _carried_basis(geometric_descriptor(system, q, t), mass, position)
    velocity = _carried_basis(system.descriptor(q, v, t), mass, velocity)
    state = _first_order(system, q, v, t, position, velocity).state
    return _Carried(position, velocity, state, mass)


def _carried_basis(
    descriptor: AbstractDescriptor, mass: Float[Array, "nv nv"], basis: Float[Array, "nv k"]
) -> Float[Array, "nv k"]:
    """In the null space, and orthonormal to first order."""
    if not basis.shape[1]:
        return basis
    residuals = jax.vmap(descriptor.constrain, in_axes=1)(basis)
    basis = basis - corrections(descriptor, residuals, motion_solver()).T
    return basis @ (1.5 * jnp.eye(basis.shape[1]) - 0.5 * basis.T @ mass @ basis)


@eqx.filter_jit
def _matrices(
    system: AbstractSystem, q: Float[Array, " nq"], v: Float[Array, " nv"], t: Scalar
) -> tuple[Float[Array, "rows nv"], Float[Array, "nv nv"]]:
    return system.constraint_matrix(q, v, t), system.mass_matrix(q)


class _FirstOrder(NamedTuple):
    """A; M^-1 F and dv/dt of the state itself."""

    state: Float[Array, "n n"]
    free: Float[Array, " nv"]
    acceleration: Float[Array, " nv"]


@eqx.filter_jit
def _first_order(
    system: AbstractSystem,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    t: Scalar,
    position: Float[Array, "nv p"],
    velocity: Float[Array, "nv k"],
) -> _FirstOrder:
    p, k = position.shape[1], velocity.shape[1]
    formulation = motion_only(MinimumNorm(), system)
    # A step d from q leads to q + N d.
    rates = jax.jacfwd(lambda d: system.retract(q, d))(jnp.zeros_like(v))

    def flow(x: Float[Array, " n"]) -> tuple[tuple[Array, Array], Array]:
        displaced = position @ x[:p]
        # To first order the displacement keeps to the constraints; the velocity does not.
        there, speed = system.retract(q, displaced), v + velocity @ x[p:]
        left = system.velocity_residual(there, speed, t)
        speed = speed - correction(system.descriptor(there, speed, t), left, motion_solver())
        found = solve_with_friction(system, formulation, there, speed, t)
        # The motion goes on, and the displaced state would stay beside it if it moved so.
        carried = jax.jvp(lambda y: system.retract(y, displaced), (q,), (system.rate(q, v),))[1]
        relative = system.rate(there, speed) - carried
        return (relative, found.acceleration), found.acceleration

    origin = jnp.zeros((p + k,), q.dtype)
    (moved, slope), acceleration = jax.jacfwd(flow, has_aux=True)(origin)
    # Columns of N are orthogonal, those of a quaternion half as long as it.
    displacement = rates.T @ moved / jnp.sum(rates**2, axis=0)[:, None]
    mass = system.mass_matrix(q)
    state = jnp.concatenate([position.T @ mass @ displacement, velocity.T @ mass @ slope])
    free = system.descriptor(q, v, t).inverse_mass(system.force(q, v, t))
    return _FirstOrder(state, free, acceleration)


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
    unit = np.where(system.structure.length_columns, length, 1.0)
    force = rest.velocity.T @ rest.mass @ acceleration
    way = np.linalg.lstsq(rest.stiffness, force, rcond=_SOFT)[0]
    left = force - rest.stiffness @ way
    # Forces that act here, and those that stiffness could give.
    weight = np.max(np.sqrt(np.diagonal(rest.mass)) * unit)
    forces = np.sqrt(free @ rest.mass @ free) + np.linalg.norm(rest.stiffness, 2) * weight
    moved = rest.position @ way
    far = np.any(np.abs(moved) > _NEAR * unit)
    if not far and np.linalg.norm(left) <= _NEAR * forces:
        return
    motion = moved if far else rest.velocity @ left
    name = movers(motion[:, None], system.structure, length)[0]
    raise ValueError(
        f"the state is at rest but no equilibrium: {name} would move off. Start from the result "
        "of equilibrium, or give the velocities of a steady motion."
    )
