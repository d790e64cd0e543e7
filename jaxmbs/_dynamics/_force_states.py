"""States of forces, besides displacements of bodies: coordinates s in q that no velocity changes.

A step is one along the velocities (nv,), followed by the change of each state; without states the
first alone, and nothing here adds an operation to a program.
"""

from typing import Any

import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import block_diag
from jaxtyping import Array, Float

from .._custom_types import Scalar
from .._programs import Compiling, program
from .._system import AbstractSystem, Structure


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
