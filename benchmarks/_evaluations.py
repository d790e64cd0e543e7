from typing import Any

import equinox as eqx
from jax import lax

import jaxmbs as jm


@eqx.filter_jit
def evaluations(system: jm.MultibodySystem, q: Any, v: Any, count: int) -> Any:
    """So many evaluations one after another, from q and v to accelerations and multipliers, each
    from what the last one gave. (Both q and v change: what depends on q alone would be computed
    once for all. Coordinates are as many as velocities.)"""

    def turn(_: Any, state: Any) -> Any:
        q, v = state
        found = jm.runs.solve_with_friction(
            system, q, v, 0.0, formulation=jm.formulations.MinimumNorm()
        )
        return q + 1e-9 * v, v + 1e-9 * found.acceleration

    return lax.fori_loop(0, count, turn, (q, v))
