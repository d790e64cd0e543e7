"""What a system in generalized coordinates costs, by the number of these.

CPU microseconds of one evaluation, from q and v to accelerations and multipliers: of n coordinates
whose mass matrix is full, and of n / 2 rows, once under one name and once under one for each row.

    taskset -c 0 python benchmarks/generalized.py    # writes results/generalized-<hardware>
"""

import os


os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import time
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from _hardware import hardware, renew, result_path
from jax import lax

import jaxmbs as jm


jax.config.update("jax_enable_x64", True)

COORDINATES, CALLS, ROUNDS = (4, 12, 40), 200, 20


def system(count: int, *, apart: bool) -> Any:
    """Masses on springs, coupled to each other, each second of which is held by the one before.
    `apart`: each row has a name of its own."""
    couplings = jnp.asarray(0.1 * np.cos(np.arange(count)[:, None] - np.arange(count)) / count)

    def mass_matrix(q: Any) -> Any:
        return jnp.eye(count) + couplings * jnp.cos(q[:, None] - q[None])

    def force(q: Any, v: Any, t: Any) -> Any:
        return jnp.sin(t) - 3.0 * q - 0.1 * v

    def rows(q: Any, t: Any) -> Any:
        return q[1::2] + 0.5 * jnp.sin(q[::2]) * (1.0 + 0.1 * jnp.cos(t))

    def row(k: int) -> Any:
        return lambda q, t: q[2 * k + 1] + 0.5 * jnp.sin(q[2 * k]) * (1.0 + 0.1 * jnp.cos(t))

    held = count // 2
    return jm.GeneralizedSystem(
        [f"q{k}" for k in range(count)],
        mass_matrix=mass_matrix,
        force=force,
        constraints=(
            {f"row {k}": jm.generalized.PositionConstraint(row(k)) for k in range(held)}
            if apart
            else {"rows": jm.generalized.PositionConstraint(rows, rows=held)}
        ),
    )


@eqx.filter_jit
def many(system: Any, q: Any, v: Any) -> Any:
    """Evaluations one after another, each from what the last one gave."""

    def turn(_: Any, v: Any) -> Any:
        found = jm.runs.solve_with_friction(
            system, q, v, 0.3, formulation=jm.formulations.MinimumNorm()
        )
        return v + 1e-9 * (found.acceleration + jnp.sum(found.multipliers))

    return lax.fori_loop(0, CALLS, turn, v)


def microseconds(count: int, *, apart: bool) -> float:
    """CPU time of one evaluation, the least of some rounds."""
    made = system(count, apart=apart)
    q, v = jnp.asarray(np.random.default_rng(0).uniform(-1.0, 1.0, (2, count)))
    jax.block_until_ready(many(made, q, v))
    times = []
    for _ in range(ROUNDS):
        start = time.process_time()
        jax.block_until_ready(many(made, q, v))
        times.append(time.process_time() - start)
    return 1e6 * min(times) / CALLS


def main() -> None:
    """Measure, print, and write the result file."""
    times = {}
    for count in COORDINATES:
        own = {
            "one name": microseconds(count, apart=False),
            "names apart": microseconds(count, apart=True),
        }
        times[str(count)] = own
        words = ", ".join(f"{name} {x:.1f} us" for name, x in own.items())
        print(f"{count} coordinates, {count // 2} rows: {words}", flush=True)
    device = hardware()
    renew(result_path("generalized", device), {"hardware": device, "coordinates": times})


if __name__ == "__main__":
    main()
