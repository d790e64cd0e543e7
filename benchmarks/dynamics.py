"""Time per simulated second and true error of forward dynamics, against other simulators.

Every mechanism here has one degree of freedom and an exact law, so that all are measured
against the truth and not against each other: `four-bar-chain` of N windows, planar and spatial
(redundant), for 10 s, and the parallelogram for 1 s. The peers run in the same process on one
thread; jaxmbs runs with its default formulation, projection and monitor. Compile and build times
stand apart. Then the cost of one evaluation, from q and v to accelerations and multipliers, with N.

    taskset -c 0 python benchmarks/dynamics.py    # prints tables, writes results/<hardware>.json
    taskset -c 0 python benchmarks/dynamics.py --no-peers --windows 1 --windows 4
    taskset -c 0 python benchmarks/dynamics.py --windows 16 --parallelogram    # renews these
    taskset -c 0 python benchmarks/dynamics.py --windows 160 --planar
    taskset -c 0 python benchmarks/dynamics.py --only-scaling
"""

import os


# One thread for every library; to be said before the libraries are loaded.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")
# As the command line says it; XLA_FLAGS="" measures without.
os.environ.setdefault(
    "XLA_FLAGS",
    "--xla_cpu_use_fusion_emitters=false "
    "--xla_backend_extra_options=xla_cpu_small_while_loop_byte_threshold=300000",
)

import argparse
import dataclasses
import json
import time
from collections.abc import Callable, Sequence
from typing import Any

import diffrax as dfx
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from _dynamics_peers import ENOUGH_SECONDS, exact, rows as peer_rows
from _hardware import earlier, hardware, result_path
from _timing import best
from jax import lax

import jaxmbs as jm


jax.config.update("jax_enable_x64", True)

WINDOWS = (1, 4, 16, 40, 160)
SPATIAL = (1, 4, 16, 40)
SCALING = (40, 160, 400, 1000)
# Relative tolerances; the second one makes errors of the size that is asked for: below 1e-6 rad of
# the chains, 1e-7 m of the parallelogram.
TOLERANCES = (3e-7, 3e-8, 3e-9)
PARALLELOGRAM_TOLERANCES = (3e-7, 1e-7, 3e-8)

# Of the command line.
DEFAULT_TOLERANCE = 1e-8

# Attempted at most by a run without monitor, which may creep towards a singular configuration.
FEW_STEPS = 1000

# States are saved this often (s): as often as the peers' for the error, and for the time both
# so and ten times less often, and at the ends alone. A saved state is projected, and comes with its
# accelerations and multipliers.
FINE, COARSE = 0.01, 0.1


@dataclasses.dataclass(frozen=True)
class Row:
    """One run of jaxmbs. Times: wall clock; `ms_per_second`: for each simulated second, with states
    saved each 0.1 s, `_fine`: each 0.01 s, `_ends`: at the start and the end alone; `_passages`:
    what it takes besides to confirm the singular configurations that it passed, which is done when
    they are asked for."""

    name: str
    solver: str
    rtol: float
    monitor: bool
    compile_seconds: float
    ms_per_second: float
    ms_per_second_fine: float
    ms_per_second_ends: float
    ms_per_second_passages: float
    error: float
    unit: str
    closure: float
    steps: int
    rejected: int


@dataclasses.dataclass(frozen=True)
class Case:
    """A mechanism, how long it runs (s), and how wrong a trajectory of it is (rad or m)."""

    name: str
    system: jm.MultibodySystem
    duration: float
    error: Callable[[jm.results.Trajectory], float]
    unit: str
    tolerances: tuple[float, float, float] = TOLERANCES


def chain(windows: int, spatial: bool) -> Case:
    """The chain, its error the largest deviation of any vertical bar's angle."""
    make = jm.mechanisms.four_bar_chain_spatial if spatial else jm.mechanisms.four_bar_chain
    system = make(windows).system()
    size = 7 if spatial else 3

    def error(run: jm.results.Trajectory) -> float:
        bars = np.asarray(run.q).reshape(len(run.times), -1, size)[:, : windows + 1]
        angles = -2 * np.arctan2(bars[..., 6], bars[..., 3]) if spatial else -bars[..., 2]
        angles = np.unwrap(angles - angles[0], axis=0, period=4 * np.pi)
        return exact.chain_error(windows, np.asarray(run.times), angles)

    name = f"four-bar-chain{'-spatial' if spatial else ''} N={windows}"
    return Case(name, system, 10.0, error, "rad")


def parallelogram() -> Case:
    """The parallelogram, its error the largest distance of the platform from its path."""
    system = jm.mechanisms.get("parallelogram").system()
    first = 7 * [info.name for info in system.structure.bodies].index("platform")

    def error(run: jm.results.Trajectory) -> float:
        centres = np.asarray(run.q)[:, first : first + 3]
        return exact.parallelogram_error(np.asarray(run.times), centres)

    return Case("parallelogram", system, 1.0, error, "m", PARALLELOGRAM_TOLERANCES)


def simulate(
    case: Case, solver: dfx.AbstractSolver, rtol: float, **more: Any
) -> jm.results.Trajectory:
    """One run to its end."""
    run = jm.simulate(
        case.system,
        case.system.reference_q,
        case.system.initial_v,
        case.duration,
        solver=solver,
        rtol=rtol,
        atol=1e-2 * rtol,
        **more,
    )
    jax.block_until_ready(run.q)
    return run


def measure(
    case: Case, solver: dfx.AbstractSolver, rtol: float, *, monitor: bool = True, **more: Any
) -> Row:
    """Time and error of one solver at one tolerance."""

    def run_saving(every: float) -> jm.results.Trajectory:
        return simulate(case, solver, rtol, every=every, monitor=monitor, **more)

    # From the second tolerance on nothing is compiled: the first call shows it.
    start = time.perf_counter()
    coarse = run_saving(COARSE)
    first = time.perf_counter() - start
    seconds = best(lambda: run_saving(COARSE), seconds=ENOUGH_SECONDS)
    run = run_saving(FINE)
    fine = best(lambda: run_saving(FINE), seconds=ENOUGH_SECONDS)
    run_saving(case.duration)
    ends = best(lambda: run_saving(case.duration), seconds=ENOUGH_SECONDS)
    passages = best(lambda: run_saving(COARSE).passages, seconds=ENOUGH_SECONDS)
    return Row(
        case.name,
        type(solver).__name__,
        rtol,
        monitor,
        max(first - seconds, 0.0),
        1e3 * seconds / case.duration,
        1e3 * fine / case.duration,
        1e3 * ends / case.duration,
        1e3 * (passages - seconds) / case.duration,
        case.error(run),
        case.unit,
        max(float(jnp.max(run.position_error)), float(jnp.max(coarse.position_error))),
        int(run.statistics.accepted),
        int(run.statistics.rejected),
    )


def own_rows(case: Case) -> list[Row]:
    """Dopri8 at three tolerances, and the command line's defaults with and without the monitor,
    which no peer has."""
    rows = [measure(case, dfx.Dopri8(), rtol) for rtol in case.tolerances]
    rows.append(measure(case, dfx.Dopri8(), DEFAULT_TOLERANCE))
    try:
        rows.append(
            measure(case, dfx.Dopri8(), DEFAULT_TOLERANCE, monitor=False, max_steps=FEW_STEPS)
        )
    except jm.SimulationError as failure:
        print(f"{case.name}: without monitor {failure}")
    for row in rows:
        print(
            f"{row.name:30s} jaxmbs {row.solver:7s} rtol {row.rtol:6.0e} "
            f"{'' if row.monitor else 'without monitor '}"
            f"{row.ms_per_second:9.2f} {row.ms_per_second_fine:9.2f} {row.ms_per_second_ends:9.2f} "
            f"{row.ms_per_second_passages:9.2f} "
            f"{row.error:9.1e} {row.unit:4s}"
            f"{row.compile_seconds:8.1f}   closure {row.closure:.0e}, "
            f"{row.steps} + {row.rejected} steps",
            flush=True,
        )
    return rows


def others(case: Case, mechanism: str, windows: int) -> list[dict[str, Any]]:
    """The peers' rows of the same motion."""
    found = [row._asdict() for row in peer_rows(mechanism, windows)]
    for row in found:
        print(
            f"{case.name:30s} {row['peer']:10s} {row['settings'][:22]:22s} "
            f"{row['milliseconds_per_second']:9.2f} {'':29s} {row['error']:9.1e} {row['unit']:4s}"
            f"{row['setup_seconds']:8.1f}",
            flush=True,
        )
    return found


def evaluation(windows: int, spatial: bool) -> dict[str, float]:
    """Microseconds of one evaluation inside a compiled loop, and its compile time (s)."""
    system = chain(windows, spatial).system
    formulation = jm.formulations.MinimumNorm(clean=False)
    count = max(20, 4000 // windows)

    def loop(system: jm.MultibodySystem, q: Any, v: Any) -> Any:
        def once(_: Any, state: Any) -> Any:
            q, v = state
            found = formulation.solve(system.equations(q, v, 0.0))
            # What depends on the result cannot be left out; what depends on a q that does not
            # change would be computed once, before the loop.
            return system.retract(q, 1e-12 * v), v + 1e-12 * found.acceleration

        return lax.fori_loop(0, count, once, (q, v))

    arguments = (system, system.reference_q, system.initial_v)
    jitted: Any = eqx.filter_jit(loop)
    start = time.perf_counter()
    compiled = jitted.lower(*arguments).compile()
    seconds = time.perf_counter() - start
    duration = best(lambda: jax.block_until_ready(compiled(*arguments)), 10)
    return {"us": 1e6 * duration / count, "compile_seconds": seconds}


def scaling() -> dict[str, Any]:
    """Evaluation times with N, and the exponent between the smallest and the largest."""
    result: dict[str, Any] = {}
    for spatial in (False, True):
        key = "spatial" if spatial else "planar"
        times = {str(n): evaluation(n, spatial) for n in SCALING}
        first, last = (times[str(n)]["us"] for n in (SCALING[0], SCALING[-1]))
        exponent = float(np.log(last / first) / np.log(SCALING[-1] / SCALING[0]))
        result[key] = {"evaluation": times, "exponent": exponent}
        words = ", ".join(f"N={n}: {x['us']:.0f} us" for n, x in times.items())
        print(f"one evaluation, {key}: {words}; grows as N^{exponent:.2f}", flush=True)
    return result


def arguments() -> argparse.Namespace:
    """What to measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=_Plain)
    parser.add_argument(
        "--windows", type=int, action="append", help="chains of N alone; the rest is kept"
    )
    parser.add_argument("--planar", action="store_true", help="planar chains of --windows alone")
    parser.add_argument(
        "--parallelogram", action="store_true", help="the parallelogram alone; the rest is kept"
    )
    parser.add_argument("--no-peers", action="store_true", help="measure jaxmbs alone")
    parser.add_argument(
        "--only-scaling", action="store_true", help="measure evaluations alone; the rest is kept"
    )
    return parser.parse_args()


class _Plain(argparse.RawDescriptionHelpFormatter):
    """The text above as it stands."""


def measured(case: Case, mechanism: str, windows: int, peers: bool) -> dict[str, Any]:
    """Own and peers' rows of one mechanism."""
    own = [dataclasses.asdict(row) for row in own_rows(case)]
    found = others(case, mechanism, windows) if peers else []
    return {"xla_flags": os.environ["XLA_FLAGS"], "jaxmbs": own, "peers": found}


def main() -> None:
    """Measure, print, and write the result file."""
    options = arguments()
    device = hardware(("diffrax", "equinox"))
    path = result_path("dynamics", device)
    chosen: Sequence[int] = options.windows or ()
    peers = not options.no_peers
    everything = not (chosen or options.parallelogram or options.only_scaling)
    results: dict[str, Any] = {"motion": {}} | earlier(path) | {"hardware": device}

    def keep() -> None:
        """What has been measured until now."""
        jax.clear_caches()
        if peers:
            path.write_text(json.dumps(results, indent=1) + "\n")

    print("ms per simulated s: states each 0.1 s, 0.01 s, at the ends; passages; error; compile s")
    for windows in WINDOWS if everything else chosen:
        case = chain(windows, spatial=False)
        results["motion"][case.name] = measured(case, "four-bar-chain", windows, peers)
        keep()
    for windows in SPATIAL if everything else () if options.planar else chosen:
        case = chain(windows, spatial=True)
        # Its exact law is the planar one's, and so are the peers' rows.
        results["motion"][case.name] = measured(case, "four-bar-chain", windows, peers=False)
        keep()
    if everything or options.parallelogram:
        case = parallelogram()
        results["motion"][case.name] = measured(case, "parallelogram", 0, peers)
        keep()
    if everything or options.only_scaling:
        results["scaling"] = scaling()
        keep()
    if peers:
        print(f"wrote {path}")


if __name__ == "__main__":
    main()
