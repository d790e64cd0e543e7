"""Cost of the checks at the door, against the question behind it.

CPU microseconds of a call of `analyze` on one state, of its checks alone, and the equations that
`is_state` adds to a traced program.

    python benchmarks/doors.py            # prints a table, writes results/doors-<hardware>.json
"""

import json
import os


os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from _hardware import hardware, result_path

import jaxmbs as jm
from jaxmbs._system import is_state, takes_state


jax.config.update("jax_enable_x64", True)

NAMES = ("door", "slider-crank", "mobile-robot", "parallelogram", "four-bar-chain:16")


@takes_state(decides_rank=True)
def nothing(system: Any, q: Any, v: Any, t: Any) -> None:
    """A question without an answer: all that it costs is its door."""


def microseconds(function: Callable[[], Any], calls: int) -> float:
    """CPU time of one call: the least of seven rounds."""
    rounds = []
    for _ in range(7):
        start = time.process_time()
        for _ in range(calls):
            function()
        rounds.append(1e6 * (time.process_time() - start) / calls)
    return min(rounds)


def measure(name: str) -> dict[str, float]:
    """One mechanism."""
    system = jm.mechanisms.get(name).system()
    q, v, t = system.reference_q, system.initial_v, 0.0
    jaxpr = jax.make_jaxpr(lambda *state: is_state(system.structure, *state))(q, v, jnp.asarray(t))
    jax.block_until_ready(jm.analyze(system, q, v, t).rank)
    call = microseconds(lambda: jax.block_until_ready(jm.analyze(system, q, v, t).rank), 200)
    door = microseconds(lambda: nothing(system, q, v, t), 5000)
    return {"analyze_us": call, "door_us": door, "share": door / call, "equations": len(jaxpr.eqns)}


def main() -> None:
    """Measure, print, and write the result file."""
    results: dict[str, Any] = {"hardware": hardware(), "doors": {}}
    print(f"{'mechanism':20s} {'analyze us':>11s} {'door us':>8s} {'share':>7s} {'equations':>10s}")
    for name in NAMES:
        row = results["doors"][name] = measure(name)
        print(
            f"{name:20s} {row['analyze_us']:11.1f} {row['door_us']:8.2f} {row['share']:7.2%} "
            f"{row['equations']:10d}",
            flush=True,
        )
    path = result_path("doors", results["hardware"])
    path.write_text(json.dumps(results, indent=1) + "\n")
    print(f"wrote {path}")


if __name__ == "__main__":
    main()
