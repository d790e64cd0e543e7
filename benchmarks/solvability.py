"""Cost of the whole analysis, C from q and then all verdicts, per configuration.

Against a NumPy and SciPy loop that does the same on the same configurations in the same run;
and the compile time of the constraint functions of a chain of 4 and of 160 windows.

    python benchmarks/solvability.py            # prints a table, writes results/<hardware>.json
"""

import json
import os


# One thread in each decomposition, for both sides; to be said before the libraries are loaded.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import time
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from _hardware import hardware, result_path
from _numpy_peer import NumpyPeer
from _timing import best

import jaxmbs as jm


jax.config.update("jax_enable_x64", True)


def robot_times(count: int) -> np.ndarray:
    """When the rack is at its places of `robot` (s)."""
    return np.linspace(-0.9, 1.0, count)


def robot(count: int) -> tuple[jm.MultibodySystem, np.ndarray]:
    """Configurations assembled at rack displacements between -0.9 a and 1.0 a."""
    motion = jm.motions.Linear(rate=0.05)
    system = jm.mechanisms.mobile_robot(motion).system()
    closed = jax.vmap(lambda t: jm.assemble(system, system.reference_q, t, throw=False).q)
    return system, np.asarray(closed(jnp.asarray(robot_times(count))))


def parallelogram(count: int) -> tuple[jm.MultibodySystem, np.ndarray]:
    """Angles between -1 and 1 rad, in closed form."""
    models = [jm.mechanisms.parallelogram(theta) for theta in np.linspace(-1.0, 1.0, count)]
    start = np.asarray(models[0].system().reference_q)
    # Links are drawn along z at each angle with axes of their own: turn the first model's.
    system = models[0].system()
    closed = jax.vmap(lambda q: jm.assemble(system, q, throw=False).q)
    guesses = np.stack([_with_positions(start, model) for model in models])
    return system, np.asarray(closed(jnp.asarray(guesses)))


def _with_positions(start: np.ndarray, model: jm.Model) -> np.ndarray:
    q = start.copy().reshape(-1, 7)
    for i, body in enumerate(model.bodies):
        q[i, :3] = np.asarray(vars(body)["position"])
    return q.ravel()


def chain(windows: int, spatial: bool, count: int) -> tuple[jm.MultibodySystem, np.ndarray]:
    """Bars turned by 0 to 1 rad from the vertical, in closed form."""
    make = jm.mechanisms.four_bar_chain_spatial if spatial else jm.mechanisms.four_bar_chain
    system = make(windows).system()
    configurations = []
    for angle in np.linspace(0.0, 1.0, count):
        top = np.array([np.sin(angle), np.cos(angle)])
        centres = [np.array([i, 0.0]) + top / 2 for i in range(windows + 1)]
        centres += [np.array([i - 0.5, 0.0]) + top for i in range(1, windows + 1)]
        turns = [-angle] * (windows + 1) + [0.0] * windows
        rows = [
            [*c, 0.0, np.cos(a / 2), 0.0, 0.0, np.sin(a / 2)] if spatial else [*c, a]
            for c, a in zip(centres, turns, strict=True)
        ]
        configurations.append(np.concatenate(rows))
    return system, np.stack(configurations)


CASES: dict[str, Callable[[], tuple[jm.MultibodySystem, np.ndarray]]] = {
    "mobile-robot": lambda: robot(256),
    "parallelogram": lambda: parallelogram(64),
    "four-bar-chain N=4": lambda: chain(4, False, 256),
    "four-bar-chain N=16": lambda: chain(16, False, 64),
    "four-bar-chain N=40": lambda: chain(40, False, 16),
    "four-bar-chain-spatial N=4": lambda: chain(4, True, 64),
    "four-bar-chain-spatial N=16": lambda: chain(16, True, 16),
    "four-bar-chain-spatial N=40": lambda: chain(40, True, 4),
}


def compiled(function: Callable[..., Any], *arguments: Any) -> Any:
    """The function, compiled for such arguments."""
    jitted: Any = eqx.filter_jit(function)
    return jitted.lower(*arguments).compile()


def measure(system: jm.MultibodySystem, configurations: np.ndarray) -> dict[str, Any]:
    """Microseconds per configuration: one at a time, in a batch, and the peer's loop."""
    peer = NumpyPeer(system)
    qs = jnp.asarray(configurations)
    matrix = system.constraint_matrix(qs[0], jnp.zeros(system.structure.nv), 0.0)
    np.testing.assert_allclose(peer.matrix(configurations[0]), matrix, atol=1e-12)

    def alone(q):
        return jm.analyze(system, q)

    start = time.perf_counter()
    batched = compiled(jax.vmap(alone), qs)
    compile_seconds = time.perf_counter() - start
    single = compiled(alone, qs[0])
    report = batched(qs)
    for q, verdicts in zip(configurations, np.asarray(report.reaction_unique), strict=True):
        np.testing.assert_array_equal(peer.analyze(q)[1], verdicts)
    count = len(configurations)
    return {
        "rows": len(system.structure.rows),
        "columns": system.structure.nv,
        "batch": count,
        "compile_seconds": compile_seconds,
        "single_us": 1e6 * best(lambda: jax.block_until_ready(single(qs[0]).rank)),
        "batch_us": 1e6 * best(lambda: jax.block_until_ready(batched(qs).rank)) / count,
        "numpy_us": 1e6 * best(lambda: [peer.analyze(q) for q in configurations]) / count,
    }


def compile_times() -> dict[str, float]:
    """Seconds from the call to compiled code of C, b, Gamma and Phi."""
    result = {}
    for windows in (4, 160):
        system = jm.mechanisms.four_bar_chain_spatial(windows).system()
        times = []
        for _ in range(5):
            jax.clear_caches()
            start = time.perf_counter()
            state = (system.reference_q, system.initial_v, jnp.asarray(0.0))
            compiled(_constraint_functions, system, *state)
            times.append(time.perf_counter() - start)
        result[str(windows)] = float(np.median(times))
    return result


def _constraint_functions(system, q, v, t):
    return (
        system.constraint_matrix(q, v, t),
        system.velocity_residual(q, v, t),
        system.acceleration_offset(q, v, t),
        system.position_residual(q, t),
    )


def main() -> None:
    """Measure, print, and write the result file."""
    results: dict[str, Any] = {"hardware": hardware(), "analysis": {}}
    head = ("mechanism", "C", "compile s", "one us", "batched us", "NumPy us", "ratio")
    print("{:28s} {:>9s} {:>9s} {:>9s} {:>10s} {:>9s} {:>6s}".format(*head))
    for name, make in CASES.items():
        row = measure(*make())
        results["analysis"][name] = row
        print(
            f"{name:28s} {row['rows']:>4d}x{row['columns']:<4d} {row['compile_seconds']:9.2f} "
            f"{row['single_us']:9.1f} {row['batch_us']:10.1f} {row['numpy_us']:9.1f} "
            f"{row['numpy_us'] / row['batch_us']:6.2f}",
            flush=True,
        )
    times = compile_times()
    results["compile_seconds"] = times
    results["compile_ratio_160_to_4"] = times["160"] / times["4"]
    print(f"compile time of C, b, Gamma, Phi: {times} s, ratio {times['160'] / times['4']:.2f}")
    path = result_path("solvability", results["hardware"])
    path.write_text(json.dumps(results, indent=1) + "\n")
    print(f"wrote {path}")


if __name__ == "__main__":
    main()
