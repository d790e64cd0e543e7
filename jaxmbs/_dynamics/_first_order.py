"""The equations of small motions about a motion, to first order, along axes that may turn.

With Y and Z bases of the null spaces of the geometric rows and of all rows of C, orthonormal in
the mass metric, states next to (q, v) are

    q(z) = retract(q, Y z),    v(z, w) = v + Z w - M^-1 C^T S^+ (C (v + Z w) + b).

Displacements along the velocities, d = Y z of the configuration and e = dv of the velocity, obey
d/dt (d, e) = L (d, e). Measured in axes that turn with Omega and not with the bodies, they change
by K d and K e less, K = B^T X(Omega) B - B^T dB/dt, where B takes velocities to axes that never
turn (`world_axes`) and X is `turning`: d/dt (z, w) = A (z, w), A that of L - K.

States s of forces follow z, as in q, (z, s, w): they belong to no axes, and their
rates are those of `flow`.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from .._custom_types import Scalar
from .._formulations import MinimumNorm
from .._linalg import AbstractKKTMatrices, correction, motion_solver
from .._programs import Compiling, program
from .._system import AbstractSystem
from ._force_states import beside_states, displaced, identity
from ._friction import solve_stage
from ._projection import velocity_level_matrices
from ._watched import motion_only


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
    formulation = motion_only(MinimumNorm(), system)
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
