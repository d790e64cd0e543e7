"""Configurations and simulations a second, for batches of one to a million.

The verdicts of many configurations by the fast pass, in two tiers, and by pivoted QR (LAPACK's, and
the one for accelerators), from C of q to the end; against a SciPy loop, NumPy's batched SVD and
JAX's own pivoted QR on the same configurations in the same run. The peers fill C by vectorised
NumPy, written by hand. Then motions of 0.1 s at once against MuJoCo and MJX, and how much of
what the device can do is used.

    taskset -c 0 python benchmarks/sweep.py            # prints a table, writes results
    python benchmarks/sweep.py --memory                # peak memory of a large and a small sweep
    python benchmarks/sweep.py --robot                 # the robot's whole range, 100,000 cases
    python benchmarks/sweep.py --masses                # 1,024 motions of different masses, speeds
    python benchmarks/sweep.py --batch 64 --no-simulations
"""

import os


# One thread in each decomposition, for all sides; to be said before the libraries are loaded.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
import json
import warnings
from collections.abc import Callable
from typing import Any

import _sweep_memory
import jax
import jax.numpy as jnp
import numpy as np
from _hardware import hardware, renew, result_path
from _sweep_methods import (
    batched,
    decomposed,
    fast_pass,
    in_precision,
    joined,
    ScipyLoop,
    two_tier,
    vmapped_qr,
    WIDTH,
)
from _sweep_robot import RANGES, robot_range
from _sweep_roofline import ceilings, counted, fractions
from _sweep_simulations import masses_row, METHODS as SIMULATIONS, motions, spread_row
from _timing import best
from solvability import chain, parallelogram, robot, robot_times

import jaxmbs as jm


jax.config.update("jax_enable_x64", True)

ON_CPU = jax.default_backend() == "cpu"
BATCHES = (1, 64, 4096, 65536) if ON_CPU else (1, 64, 4096, 65536, 2**20)
SIMULATED = (1, 64, 4096)
VARIED = 1024
MASSES = ((20.0, 60.0), (0.5, 5.0))  # kg

# Methods that go through the cases one after the other are timed on this many of them at most,
# and so are those that would take longer than that many seconds.
_LOOPED, _LONGEST = 256, 5.0

# Seconds that a batch of simulations may take.
_PATIENCE = 30.0

# A system, closed configurations, and the times (s) at which they are closed.
MECHANISMS: dict[str, Callable[[], tuple[jm.MultibodySystem, np.ndarray, np.ndarray]]] = {
    "mobile-robot": lambda: (*robot(64), robot_times(64)),
    "parallelogram": lambda: (*parallelogram(64), np.zeros(1)),
    "four-bar-chain-spatial N=4": lambda: (*chain(4, True, 64), np.zeros(1)),
}


def methods(
    system: jm.MultibodySystem, times: np.ndarray, dtype: str
) -> dict[str, Callable[[Any], Any]]:
    """The ways of this precision; each from configurations to verdicts."""
    own = in_precision(system, dtype)
    found: dict[str, Callable[[Any], Any]] = {
        "fast pass": batched(fast_pass, own, WIDTH),
        "QR, LAPACK": batched(decomposed(jm.criteria.LapackQR(), dtype), own, WIDTH),
        "QR, batched": batched(decomposed(jm.criteria.BatchedQR(), dtype), own, WIDTH),
        "JAX qr, rank only": batched(vmapped_qr(dtype), own, WIDTH),
    }
    if not ON_CPU or dtype == "float32":
        # There is no such call on some accelerators; and in single precision nobody should.
        del found["QR, LAPACK"], found["JAX qr, rank only"]
    if dtype == "float64":
        peer = ScipyLoop(system)
        found |= {
            "two tiers": lambda qs: two_tier(system, times, np.asarray(qs)),
            "SciPy loop": lambda qs: peer.loop(np.asarray(qs)[:_LOOPED]),
            "SciPy loop, all": lambda qs: peer.everything(np.asarray(qs)[:_LOOPED]),
            "NumPy SVD": lambda qs: peer.singular_values(np.asarray(qs)[:_LOOPED]),
        }
    return found


LOOPED = ("SciPy loop", "SciPy loop, all", "NumPy SVD")


def rates(
    ways: dict[str, Callable[[Any], Any]], configurations: np.ndarray, dtype: str, sizes: list[int]
) -> dict[str, dict[str, float]]:
    """Configurations a second of each method and batch."""
    result: dict[str, dict[str, float]] = {}
    for name, method in ways.items():
        row: dict[str, float] = {}
        for size in sizes:
            # A batch that would take too long runs at the rate of the one before.
            if row and size / list(row.values())[-1] > _LONGEST:
                continue
            qs = jnp.asarray(np.resize(configurations, (size, configurations.shape[1])), dtype)
            count = min(size, _LOOPED) if name in LOOPED else size
            row[str(size)] = count / best(lambda m=method, q=qs: m(q), 2)
        result[name] = row
    return result


def agreement(
    ways: dict[str, Callable[[Any], Any]],
    system: jm.MultibodySystem,
    configurations: np.ndarray,
    dtype: str,
) -> dict[str, float]:
    """The share of verdicts on reactions that are those of the SciPy loop."""
    peer = ScipyLoop(system)
    expected = np.stack([peer.reactions(q)[1] for q in configurations])
    qs = jnp.asarray(configurations, dtype)
    found = {n: m(qs) for n, m in ways.items() if n != "JAX qr, rank only"}
    own = {n: joined(x)[1] for n, x in found.items() if n not in LOOPED}
    return {name: float(np.mean(unique == expected)) for name, unique in own.items()}


def switch_precision(dtype: str) -> None:
    """Compute in this precision from here on: a system takes states of that alone."""
    jax.config.update("jax_enable_x64", dtype == "float64")
    # What was compiled for the other one would be taken for this.
    jax.clear_caches()


def verdict_rows(sizes: list[int]) -> dict[str, Any]:
    """The table of configurations a second."""
    result: dict[str, Any] = {}
    print("configurations a second".ljust(40) + "".join(f"{size:>12d}" for size in sizes))
    for name, make in MECHANISMS.items():
        system, configurations, times = make()
        shape = f"{len(system.structure.rows)} x {system.structure.nv}"
        for dtype in ("float64", "float32"):
            # One at a time nobody asks in single precision.
            chosen = [n for n in sizes if n > 1 or dtype == "float64"]
            switch_precision(dtype)
            with warnings.catch_warnings():
                # Single precision is what is measured.
                warnings.filterwarnings("ignore", message="A rank is being decided")
                ways = methods(system, times, dtype)
                found = rates(ways, configurations, dtype, chosen)
                same = agreement(ways, system, configurations, dtype)
            result[f"{name} {dtype}"] = {"C": shape, "per_second": found, "same": same}
            print(f"{name} ({shape}), {dtype}")
            for method, row in found.items():
                cells = "".join(
                    f"{row[str(s)]:12.4g}" if str(s) in row else f"{'':12s}" for s in sizes
                )
                share = f"  {100 * same[method]:.0f} % the same" if method in same else ""
                print(f"  {method:38s}{cells}{share}", flush=True)
        switch_precision("float64")
    return result


def simulation_rows(sizes: list[int]) -> dict[str, Any]:
    """The table of simulations a second."""
    result: dict[str, Any] = {}
    print("simulations of 0.1 s a second; closure error (m)")
    for motion in motions():
        for method, measure in SIMULATIONS.items():
            row: dict[str, Any] = {}
            for size in sizes:
                last = list(row.values())[-1] if row else None
                if row and (last is None or size / last["simulations_per_second"] > _PATIENCE):
                    continue
                row[str(size)] = measure(motion, size)
            result[f"{motion.name}, {method}"] = row
            cells = "".join(
                f"{x['simulations_per_second']:12.4g} {x['closure_error']:8.1e}"
                for x in row.values()
                if x
            )
            print(f"  {motion.name + ', ' + method:34s}{cells}", flush=True)
    return result


def roofline(verdicts: dict[str, Any]) -> dict[str, Any]:
    """The fast pass and the batched QR of the parallelogram against the device's ceilings."""
    system, configurations = parallelogram(64)
    result: dict[str, Any] = {}
    for dtype in ("float64", "float32"):
        switch_precision(dtype)
        limits = ceilings(dtype)
        own = in_precision(system, dtype)
        qs = jnp.asarray(np.resize(configurations, (WIDTH, configurations.shape[1])), dtype)
        result[dtype] = limits | {"methods": {}}
        print(
            f"{dtype}: copy {1e-9 * limits['copy_bytes_per_second']:.1f} GB/s, "
            f"{1e-9 * limits['operations_per_second']:.1f} G operations/s"
        )
        counts = counted(fast_pass, own, qs)
        rows = verdicts[f"parallelogram {dtype}"]["per_second"]["fast pass"]
        rate = max(rows.values())
        parts = fractions(rate, counts, limits)
        result[dtype]["methods"]["fast pass"] = counts | parts | {"per_second": rate}
        print(
            f"  fast pass: {counts['operations']:.0f} operations and {counts['bytes']:.0f} bytes "
            f"a configuration; {100 * parts['of_operations']:.1f} % of the operations, "
            f"{100 * parts['of_copy']:.1f} % of the copy"
        )
    switch_precision("float64")
    return result


def arguments() -> argparse.Namespace:
    """What to measure."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--batch", type=int, action="append", help="configurations at once")
    parser.add_argument("--no-simulations", action="store_true", help="verdicts alone")
    parser.add_argument("--simulations", action="store_true", help="these alone; keep the rest")
    parser.add_argument("--memory", action="store_true", help="measure memory alone; keep the rest")
    parser.add_argument("--robot", action="store_true", help="the robot alone; keep the rest")
    parser.add_argument("--masses", action="store_true", help="these alone; keep the rest")
    return parser.parse_args()


def main() -> None:
    """Measure, print, and write the result file."""
    options = arguments()
    found = hardware(("equinox", "diffrax")) | {"cores_used": len(os.sched_getaffinity(0))}
    path = result_path("sweep", found)
    if options.memory:
        memory = _sweep_memory.measured()
        print(f"peak memory (MB): {memory}")
        renew(path, {"hardware": found, "memory_megabytes": memory})
        return
    if options.masses:
        masses = {f"{low:g} to {high:g} kg": masses_row(VARIED, low, high) for low, high in MASSES}
        spread = spread_row(VARIED)
        for name, row in masses.items():
            print(f"{VARIED} parallelograms of {name}: {row}")
        print(f"{VARIED} four-bar loops of different speeds: {spread}")
        renew(path, {"hardware": found, "masses": masses, "speeds": spread})
        return
    if options.robot:
        robot: dict[str, Any] = {}
        for name, limits in RANGES.items():
            robot[name] = robot_range(*limits)
            print(name, json.dumps(robot[name], indent=1))
            renew(path, {"hardware": found, "robot_range": robot})
        return
    if options.simulations:
        renew(path, {"hardware": found, "simulations": simulation_rows(list(SIMULATED))})
        return
    whole = not options.batch
    results: dict[str, Any] = {"hardware": found}
    results["verdicts"] = verdict_rows(options.batch or list(BATCHES))
    results["roofline"] = roofline(results["verdicts"])
    if whole:
        renew(path, results)
    if not options.no_simulations:
        results["simulations"] = simulation_rows(options.batch or list(SIMULATED))
        if whole:
            renew(path, results)


if __name__ == "__main__":
    main()
