"""Verdicts of many configurations on one core, against SciPy's pivoted QR of the same matrices.

SciPy decomposes C, scaled as for a verdict and computed beforehand, one matrix after the other, by
`scipy.linalg.qr` with pivoting and an explicit Q (from which verdicts would still have to be read).
`screen` gives all verdicts: from the blocks of the same matrices, computed beforehand too (chunks
of states, which are the last axis); from configurations; and through `sweep` with its bookkeeping,
in memory. CPU seconds of the process, which is held on one core; all take turns, and the shortest
time of each counts.

    python benchmarks/verdicts.py    # prints a table, writes results/verdicts-<hardware>.json
"""

import os


# One thread in each decomposition; to be said before the libraries are loaded.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")
if hasattr(os, "sched_setaffinity"):
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})

import time
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import scipy.linalg as sl
from _hardware import hardware, renew, result_path
from _sweep_methods import ScipyLoop
from jax import lax
from solvability import parallelogram, robot

import jaxmbs as jm


jax.config.update("jax_enable_x64", True)

MECHANISMS = {"mobile-robot": robot, "parallelogram": parallelogram}
COUNT, DECOMPOSED, ROUNDS = 8192, 256, 4
WIDTHS = (32, 64)

# As `screen` has it.
_REGULARISATION, _MIDDLE = 1e-9, 1e-6


def cpu_seconds(functions: dict[str, Callable[[], Any]]) -> dict[str, float]:
    """Least CPU time of a call of each, after one that is not counted; they take turns."""
    times: dict[str, list[float]] = {name: [] for name in functions}
    for _ in range(ROUNDS + 1):
        for name, function in functions.items():
            start = time.process_time()
            function()
            times[name].append(time.process_time() - start)
    return {name: min(some[1:]) for name, some in times.items()}


def scaled_columns(system: jm.MultibodySystem) -> Any:
    """What the columns of C are multiplied by."""
    length = system.characteristic_length()
    return jnp.where(system.structure.length_columns, length, 1.0)


def from_blocks(system: jm.MultibodySystem, qs: Any, width: int) -> Callable[[], Any]:
    """Redundancy and verdicts from the blocks of C, computed beforehand."""
    structure, columns = system.structure, scaled_columns(system)
    sets = tuple(tuple(range(c.start, c.stop)) for c in structure.constraints)
    rest = jnp.zeros((structure.nv,))

    def descriptor(q: Any) -> Any:
        return system.descriptor(q, rest, jnp.asarray(0.0))

    parts = jnp.reshape(qs, (-1, width, qs.shape[1]))
    alike = descriptor(qs[0])
    own = jax.vmap(lambda q: descriptor(q).constraint_blocks, out_axes=-1)
    blocks = lax.map(own, parts)

    def verdicts(matrix: Any) -> Any:
        one = eqx.tree_at(lambda d: d.constraint_blocks, alike, matrix)
        found = one.null_projector(columns, sets, _REGULARISATION)
        measure = jnp.maximum(2 * found.measure[1] - found.measure[0], 0.0)
        return jnp.round(2 * found.trace[1] - found.trace[0]), measure <= _MIDDLE

    many = jax.jit(lambda x: lax.map(jax.vmap(verdicts, in_axes=-1), x)).lower(blocks).compile()
    return lambda: jax.block_until_ready(many(blocks))


def from_configurations(system: jm.MultibodySystem, qs: Any, width: int) -> Callable[[], Any]:
    """The same by `screen`, with whether each is certain."""

    def verdicts(system: Any, q: Any) -> Any:
        found = jm.screen(system, q)
        return found.redundancy, found.reaction_unique.unique, found.certain

    def all_of(system: Any, qs: Any) -> Any:
        return lax.map(lambda q: verdicts(system, q), qs, batch_size=width)

    many = jax.jit(all_of).lower(system, qs).compile()
    return lambda: jax.block_until_ready(many(system, qs))


def by_sweep(system: jm.MultibodySystem, qs: np.ndarray) -> Callable[[], Any]:
    """A whole `sweep`."""
    cases, start = jm.Cases({"q": qs}), jnp.asarray(qs[0])
    return lambda: jm.sweep(jm.screen, system, cases, q=start, assemble=False)


def measured(system: jm.MultibodySystem, qs: np.ndarray) -> dict[str, float]:
    """Matrices or configurations a second."""
    peer = ScipyLoop(system)
    matrices = [peer.matrix(q) for q in qs[:DECOMPOSED]]
    states = jnp.asarray(qs)
    _same_verdicts(system, peer, qs)
    functions: dict[str, Callable[[], Any]] = {
        "SciPy qr": lambda: [sl.qr(x, pivoting=True, check_finite=False) for x in matrices],
        "sweep": by_sweep(system, qs),
    }
    for width in WIDTHS:
        functions[f"from blocks, {width} at a time"] = from_blocks(system, states, width)
        functions[f"from q, {width} at a time"] = from_configurations(system, states, width)
    seconds = cpu_seconds(functions)
    return {
        name: (DECOMPOSED if name == "SciPy qr" else len(qs)) / x for name, x in seconds.items()
    }


def _same_verdicts(system: jm.MultibodySystem, peer: ScipyLoop, qs: np.ndarray) -> None:
    """Both ways say what the peer says of the first configurations."""
    some = qs[:64]
    expected = np.stack([peer.reactions(q)[1] for q in some])
    _, unique, certain = from_configurations(system, jnp.asarray(some), 32)()
    blocks = np.concatenate(from_blocks(system, jnp.asarray(some), 32)()[1])
    known = np.asarray(certain)
    np.testing.assert_array_equal(np.asarray(unique)[known], expected[known])
    np.testing.assert_array_equal(blocks[known], expected[known])


def main() -> None:
    """Measure, print, and write the result file."""
    found = hardware()
    results: dict[str, Any] = {}
    for name, make in MECHANISMS.items():
        system, configurations = make(64)
        qs = np.resize(configurations, (COUNT, configurations.shape[1]))
        rates = measured(system, qs)
        shape = f"{len(system.structure.rows)} x {system.structure.nv}"
        ratios = {key: rate / rates["SciPy qr"] for key, rate in rates.items()}
        results[name] = {"C": shape, "per_second": rates, "to_scipy": ratios}
        print(f"{name} ({shape})")
        for key, rate in rates.items():
            print(f"  {key:28s}{rate:12.0f} a second{ratios[key]:8.2f}", flush=True)
        jax.clear_caches()
        renew(result_path("verdicts", found), {"hardware": found, "verdicts": results})


if __name__ == "__main__":
    main()
