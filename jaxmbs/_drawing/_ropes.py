"""Lines of ropes, belts and tendons, and the circles around which they run."""

from typing import Any

import jax
import numpy as np
from jaxtyping import Array, Float

from .._programs import Compiling, program
from .._system import MultibodySystem
from ._moving import points_in_space


# Each of as many points as its way needs.
Lines = tuple[Float[np.ndarray, "n _ 3"], ...]


def rope_lines(system: MultibodySystem, q: Float[np.ndarray, "n nq"]) -> tuple[Lines, Lines]:
    """Lines of ropes, belts and tendons in n states, and the circles around which they run."""
    if not system.has_ways:
        return (), ()
    ropes: list[np.ndarray] = []
    pulleys: list[np.ndarray] = []
    for line, circles in jax.tree.map(np.asarray, _drawn_ways(system, q)):
        ropes += [points_in_space(line[:, k]) for k in range(line.shape[1])]
        for k, place in np.ndindex(circles.shape[1:3]):
            circle = points_in_space(circles[:, k, place])
            if np.any(circle != circle[:, :1]):
                pulleys.append(circle)
    return tuple(ropes), tuple(pulleys)


@program(compiling=Compiling.ONCE)
def _drawn_ways(system: MultibodySystem, q: Any) -> list[tuple[Array, Array]]:
    return jax.lax.map(system.drawn_ways, q)
