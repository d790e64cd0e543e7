"""The constraint matrix along a design's states, with its null spaces and its changes.

C is scaled as in `analyze`: linear columns times the characteristic length, rows of unit length.
Decompositions are NumPy's, of concrete numbers, and nothing is differentiated through them.
"""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float

from .._custom_types import Scalar
from .._linalg._concrete_rank import RANK_TOLERANCE
from .._programs import Compiling, program
from ._study import States, Study


class Rows(eqx.Module):
    """Changes at each state, along each parameter: of C and of Phi at a fixed configuration.
    What the configuration follows: its geometric rows (joints whose coordinate is held have one
    more), their change, and the change of the configuration from which it is assembled."""

    matrix: Float[Array, "*n rows nv p"]
    residual: Float[Array, "*n geometric p"]
    followed: Float[Array, "*n held nv"]
    held: Float[Array, "*n held p"]
    start: Float[Array, "*n nv p"]


class Scaled(NamedTuple):
    """C at each state (n, rows, nv) with rows of unit length, the lengths that the rows had
    (n, rows), and what the columns were multiplied by (nv,)."""

    matrix: np.ndarray
    rows: np.ndarray
    columns: np.ndarray


@program(compiling=Compiling.ONCE)
def _matrices(at: States) -> tuple[Float[Array, "n rows nv"], Scalar]:
    system = at.system
    states = (at.q, at.v, at.times)
    matrices = lax.map(lambda s: system.constraint_matrix(*s), states)
    return matrices, system.characteristic_length()


def scaled(at: States) -> Scaled:
    """The constraint matrices of a concrete at."""
    matrices, length = _matrices(at)
    structure = at.system.structure
    columns = structure.column_scale(float(length))
    matrix = np.asarray(matrices) * columns
    rows = np.linalg.norm(matrix, axis=2)
    rows = np.where(rows > 0, rows, 1.0)
    return Scaled(matrix / rows[:, :, None], rows, columns)


@program(compiling=Compiling.ONCE)
def changes(study: Study, design: Float[Array, " p"], at: States) -> Rows:
    """Changes of C and Phi along every parameter, at every state."""
    moving, nv = study.run.moving, at.v.shape[1]
    origin = lax.stop_gradient(study.place_parts(design).q)

    def state(given: tuple[Array, Array, Array]) -> Rows:
        q, v, t = given

        def varied(x: Float[Array, " p"]) -> tuple[Array, Array, Array, Array]:
            system, held, start, _, time = study.place_parts(x)
            held, time = (system, t) if moving else (held, time)
            begin = jnp.zeros(nv) if moving else system.difference(origin, start)
            matrix, residual = system.constraint_matrix(q, v, time), held.position_residual(q, time)
            return matrix, system.position_residual(q, time), residual, begin

        matrix, residual, held, start = jax.jacfwd(varied)(design)
        follower = study.place_parts(design)
        system, time = (follower.system, t) if moving else (follower.held, follower.t)
        followed = system.constraint_matrix(q, v, time)[system.structure.geometric_rows]
        return Rows(matrix, residual, followed, held, start)

    states = (at.q, at.v, at.times)
    return lax.map(state, lax.stop_gradient(states))


def following(moved: Rows, columns: np.ndarray) -> Float[np.ndarray, "n p nv"]:
    """The displacement with which each state follows each parameter: the start's, and the least one
    that satisfies the constraints again, or comes closest. Free motions may be added to it."""
    followed = np.asarray(moved.followed) * columns
    start = np.asarray(moved.start) / columns[:, None]
    if not followed.shape[1]:
        return np.swapaxes(start, 1, 2) * columns
    gap = followed @ start + np.asarray(moved.held)
    least = np.linalg.pinv(followed, rcond=RANK_TOLERANCE) @ gap
    return np.swapaxes(start - least, 1, 2) * columns


@program(compiling=Compiling.ONCE)
def changes_of_motion(at: States, steps: Float[Array, "n k nv"]) -> Float[Array, "n k rows nv"]:
    """The change of C along displacements of each state."""
    system = at.system

    def state(given: tuple[Array, Array, Array, Array]) -> Float[Array, "k rows nv"]:
        q, v, t, own = given

        def along(step: Float[Array, " nv"]) -> Float[Array, "rows nv"]:
            def matrix(s: Scalar) -> Float[Array, "rows nv"]:
                return system.constraint_matrix(system.retract(q, s * step), v, t)

            return jax.jvp(matrix, (jnp.zeros((), q.dtype),), (jnp.ones((), q.dtype),))[1]

        return jax.vmap(along)(own)

    return lax.map(state, (at.q, at.v, at.times, steps))
