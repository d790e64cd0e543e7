"""Peak resident memory of one sweep with a cheap question and a store.

python benchmarks/_sweep_memory.py 1000000      # prints megabytes
"""

import json
import resource
import subprocess
import sys
import tempfile
from typing import Any

import jax
import jax.numpy as jnp

import jaxmbs as jm


SIZES = (10_000, 1_000_000)


def _residual(system: Any, q: Any, v: Any, t: Any) -> Any:
    return jnp.max(jnp.abs(system.position_residual(q, t)))


def sweep_to_a_store(count: int) -> float:
    """Megabytes at the peak of a sweep of so many cases."""
    jax.config.update("jax_enable_x64", True)
    model = jm.mechanisms.four_bar_chain(1)
    cases = jm.Cases.uniform({"bodies.h1.mass": (0.5, 2.0)}, count, seed=0)
    with tempfile.TemporaryDirectory() as folder:
        jm.sweep(_residual, model, cases, assemble=False, store=f"{folder}/cases.zarr")
    # Linux counts in kilobytes.
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def measured() -> dict[str, float]:
    """Megabytes for each number of cases, each in a process of its own, and their ratio."""
    found = {}
    for count in SIZES:
        done = subprocess.run(
            [sys.executable, __file__, str(count)], capture_output=True, text=True, check=True
        )
        found[str(count)] = json.loads(done.stdout.splitlines()[-1])
    return found | {"ratio": found[str(SIZES[1])] / found[str(SIZES[0])]}


if __name__ == "__main__":
    print(json.dumps(sweep_to_a_store(int(sys.argv[1]))))
