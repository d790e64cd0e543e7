"""Cases a second of `jm.sweep` as a user calls it, each case assembled and judged, on one core.

Beside it a loop of SciPy's pivoted QR with Q over matrices C that are ready: what verdicts alone
would take if somebody had closed the mechanism, filled C, and asked for no more. Rates are per CPU
second; all cases that assemble are counted, and so are those that do not.

    taskset -c 0 python benchmarks/assembling.py              # prints a table, writes results
    python benchmarks/assembling.py --count 256 --no-write
"""

import os


# One thread in each decomposition, for all sides; to be said before the libraries are loaded.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
import importlib
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import scipy.linalg as sl
from _hardware import hardware, renew, result_path

import jaxmbs as jm


# The linkages of Bricard that the tests have an oracle for.
sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
closed_loops = importlib.import_module("closed_loops")


jax.config.update("jax_enable_x64", True)

Row = tuple[jm.Model, dict[str, tuple[float, float]], int]


def three_cranks() -> Row:
    """The angle of one of the cranks that carry the beam."""
    model = jm.mechanisms.get("three-crank-parallelogram")
    joint = next(joint for joint in model.joints if joint.coordinates())
    return model, {f"joints.{joint.name}.{next(iter(joint.coordinates()))}": (-1.5, 1.5)}, 600


# A mechanism, what is varied and between which limits, and how many cases: radians, metres,
# kilograms.
ROWS: dict[str, Callable[[], Row]] = {
    "mobile robot, rack and trolley": lambda: (
        jm.mechanisms.get("mobile-robot"),
        {"steering": (-0.06, 0.06), "joints.A.rotation": (-2.5, 2.5)},
        4096,
    ),
    "Bennett, one angle": lambda: (
        jm.mechanisms.get("bennett"),
        {"joints.J1.rotation": (-2.5, 2.5)},
        4096,
    ),
    "parallelogram, mass of its platform": lambda: (
        jm.mechanisms.get("parallelogram"),
        {"bodies.platform.mass": (1.0, 5.0)},
        4096,
    ),
    "Bricard, one angle": lambda: (
        closed_loops.model_of(closed_loops.threefold(-1.2)),
        {"drive": (-0.8, 3.0)},
        600,
    ),
    "three cranks, one angle": three_cranks,
}

# Calls that are timed, of which the best counts.
_CALLS = 3


def measured(row: Row, most: int | None) -> dict[str, Any]:
    """Rates of both, how many cases assembled, and the time of the first call."""
    model, over, count = row
    count = count if most is None else min(count, most)
    cases = jm.Cases.uniform(over, count, seed=11)
    start = time.process_time()
    found = jm.sweep(jm.sweeps.Certification(), model, cases)
    first = time.process_time() - start
    own = min(
        _seconds(lambda: jm.sweep(jm.sweeps.Certification(), model, cases)) for _ in range(_CALLS)
    )
    peer, size = _scipy_loop(model, np.asarray(found.configuration))
    return {
        "cases": count,
        "assembled": int(np.sum(found.result == 0)),
        "C": size,
        "first_call_cpu_seconds": first,
        "sweep_per_cpu_second": count / own,
        "scipy_per_cpu_second": peer,
        "ratio": count / own / peer,
    }


def _seconds(call: Callable[[], Any]) -> float:
    start = time.process_time()
    call()
    return time.process_time() - start


def _scipy_loop(model: jm.Model, configurations: np.ndarray) -> tuple[float, str]:
    """Decompositions a second of matrices that are ready, and their size."""
    system, some = model.system(), configurations[:256]
    rest = jnp.zeros(system.structure.nv)
    matrices = np.asarray(
        jax.jit(jax.vmap(lambda q: system.constraint_matrix(q, rest, 0.0)))(jnp.asarray(some))
    )

    def loop() -> None:
        for matrix in matrices:
            sl.qr(matrix, pivoting=True, check_finite=False)

    best = min(_seconds(loop) for _ in range(2 * _CALLS))
    return len(matrices) / best, " x ".join(map(str, matrices.shape[1:]))


def main() -> None:
    """Print a table, and write the results."""
    parser = argparse.ArgumentParser(description="Cases a second of sweeps with assembly.")
    parser.add_argument("--count", type=int, help="cases at most")
    parser.add_argument("--no-write", action="store_true")
    options = parser.parse_args()
    known = hardware(("equinox",))
    results = {}
    print(
        f"{'':36s}{'cases':>7s}{'closed':>8s}{'sweep/s':>10s}{'SciPy/s':>10s}{'ratio':>8s}{'first':>8s}"
    )
    for name, make in ROWS.items():
        row = results[name] = measured(make(), options.count)
        print(
            f"{name:36s}{row['cases']:7d}{row['assembled']:8d}{row['sweep_per_cpu_second']:10.0f}"
            f"{row['scipy_per_cpu_second']:10.0f}{row['ratio']:8.3f}"
            f"{row['first_call_cpu_seconds']:7.1f} s",
            flush=True,
        )
    if not options.no_write:
        renew(result_path("assembling", known), {"hardware": known, "rows": results})


if __name__ == "__main__":
    main()
