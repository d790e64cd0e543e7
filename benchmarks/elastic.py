"""Time of an elastic mechanism against that of the rigid one.

The parallelogram of Wojtyra & Fraczek (2012) with its four lower links split: each becomes two
overlapping rods of half its density, with a sliding joint along the axis and a spring and damper
between the far ends. It runs for 1 s by `GeneralizedAlpha` with steps of 1 ms; the rigid mechanism
by Dopri8 at a relative tolerance of 1e-8. Both are measured after compilation, in turn, in one
process. The error of either is that of the angle theta of the links at 1 s, against a run with
steps of a sixteenth of it (elastic) or a tolerance of 1e-12 (rigid). Then the time of the rigid run
at the loosest tolerance whose error is not larger than that of the elastic one.

And of one state: what the elastic resolution of all six links takes, against one rigid acceleration
with its multipliers.

    taskset -c 0 python benchmarks/elastic.py    # prints a table, writes results/<hardware>.json
    taskset -c 0 python benchmarks/elastic.py --no-file
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
import time
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from _hardware import hardware, renew, result_path
from _timing import best, best_in_turn

import jaxmbs as jm
from jaxmbs import elastic


jax.config.update("jax_enable_x64", True)

DURATION = 1.0
STEP = 1e-3
REFERENCE = STEP / 16
# N/m, and the damper's coefficient relative to it (s).
STIFFNESS, DAMPING = 17e6, 5e-4
LOWER = ("AB", "CD", "EF", "GH")
# Of the rigid run, loosest last: one of them is as exact as the elastic run.
RIGID_TOLERANCES = (1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3)
MOST_RATIO, MOST_ERROR, MOST_RESOLUTION = 10.0, 2e-4, 2.0


def theta(run: jm.results.Trajectory) -> float:
    """Angle of the links at the end (rad), by the platform's centre."""
    names = [body.name for body in run.system.structure.bodies]
    centre = np.asarray(run.q[-1])[7 * names.index("platform") :][:2] - 0.25
    return float(np.arctan2(*centre))


def simulated(system: jm.MultibodySystem, **options: Any) -> jm.results.Trajectory:
    """One run from rest to its end."""
    run = jm.simulate(system, system.reference_q, system.initial_v, DURATION, **options)
    jax.block_until_ready(run.q)
    return run


def rigid_run(system: jm.MultibodySystem, rtol: float, monitor: bool) -> jm.results.Trajectory:
    """By Dopri8."""
    return simulated(system, rtol=rtol, atol=1e-2 * rtol, monitor=monitor)


def elastic_run(system: jm.MultibodySystem, step: float, monitor: bool) -> jm.results.Trajectory:
    """By generalized-alpha."""
    return simulated(system, solver=jm.runs.GeneralizedAlpha(step=step), monitor=monitor)


def first_seconds(call: Callable[[], Any]) -> float:
    """Of the first call (s), which compiles."""
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def measured(monitor: bool) -> dict[str, Any]:
    """Times (s) of both runs, with the monitor of singular configurations or without, and errors
    (rad)."""
    rigid = jm.mechanisms.parallelogram().system()
    halves = [
        elastic.SplitRod(f"link {ends}", stiffness=STIFFNESS, damping_time=DAMPING)
        for ends in LOWER
    ]
    split = elastic.split_rods(jm.mechanisms.parallelogram(), halves).system()
    calls = {
        "rigid": lambda: rigid_run(rigid, RIGID_TOLERANCES[0], monitor),
        "elastic": lambda: elastic_run(split, STEP, monitor),
    }
    first = {name: first_seconds(call) for name, call in calls.items()}
    seconds = best_in_turn(calls, rounds=10)
    converged = theta(elastic_run(split, REFERENCE, monitor))
    error = abs(theta(calls["elastic"]()) - converged)
    exact = theta(rigid_run(rigid, 1e-12, monitor))
    errors = {
        rtol: abs(theta(rigid_run(rigid, rtol, monitor)) - exact) for rtol in RIGID_TOLERANCES
    }
    # The loosest that is not worse than the elastic run.
    equal = max(rtol for rtol, off in errors.items() if off <= error)
    loose = best(lambda: rigid_run(rigid, equal, monitor), repeats=10)
    found = {
        "monitor": monitor,
        "columns": split.structure.nv,
        "rows": len(split.structure.rows),
        "first_call_seconds": first,
        "seconds": seconds,
        "ratio": seconds["elastic"] / seconds["rigid"],
        "error": error,
        "rigid_error": errors[RIGID_TOLERANCES[0]],
        "equal_accuracy": {
            "rtol": equal,
            "error": errors[equal],
            "seconds": loose,
            "ratio": seconds["elastic"] / loose,
        },
    }
    print(
        f"monitor {monitor!s:5s} rigid {1e3 * seconds['rigid']:7.1f} ms, elastic "
        f"{1e3 * seconds['elastic']:7.1f} ms: {found['ratio']:.1f} (at most {MOST_RATIO:g}); "
        f"error {error:.1e} rad (at most {MOST_ERROR:g}); at equal accuracy (rtol {equal:g}) "
        f"{found['equal_accuracy']['ratio']:.1f}; first calls {first['rigid']:.1f} s and "
        f"{first['elastic']:.1f} s",
        flush=True,
    )
    return found


CALLS = 2000


@eqx.filter_jit
def accelerations(
    system: jm.MultibodySystem, formulation: jm.formulations.AbstractFormulation, count: Any
) -> jax.Array:
    """So many solutions of the equations of motion, one after the other."""
    q, v = system.reference_q, system.initial_v

    def body(_: Any, total: jax.Array) -> jax.Array:
        found = formulation.solve(system.equations(q + 1e-30 * total, v, 0.0))
        return total + jnp.sum(found.acceleration) + jnp.sum(found.multipliers)

    return jax.lax.fori_loop(0, count, body, jnp.zeros(()))


def resolution() -> dict[str, Any]:
    """Times (us) of one rigid acceleration with its multipliers, and of the elastic resolution."""
    model = jm.mechanisms.elastic_parallelogram()
    rigid = jm.mechanisms.parallelogram().system()
    cases = {
        "rigid": (rigid, jm.formulations.MinimumNorm()),
        "rigid_motion_only": (rigid, jm.formulations.MinimumNorm(clean=False)),
        "elastic": (model.system(), jm.formulations.ElasticResolution()),
    }
    count = jnp.asarray(CALLS)
    calls = {
        name: lambda s=system, f=formulation: jax.block_until_ready(accelerations(s, f, count))
        for name, (system, formulation) in cases.items()
    }
    first = {name: first_seconds(call) for name, call in calls.items()}
    each = {name: 1e6 * x / CALLS for name, x in best_in_turn(calls, rounds=5).items()}
    ratio = each["elastic"] / each["rigid"]
    print(
        f"one state: rigid {each['rigid']:.1f} us ({each['rigid_motion_only']:.1f} where "
        f"multipliers need not be exact), elastic resolution {each['elastic']:.1f} us: "
        f"{ratio:.2f} (at most {MOST_RESOLUTION:g})",
        flush=True,
    )
    return {"first_call_seconds": first, "us": each, "ratio": ratio}


def main() -> None:
    """Measure, print, and write the result file."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--no-file", action="store_true", help="print alone")
    options = parser.parse_args()
    device = hardware(("diffrax", "equinox"))
    one = resolution()
    rows = [measured(monitor) for monitor in (True, False)]
    if not options.no_file:
        results = {
            "xla_flags": os.environ["XLA_FLAGS"],
            "resolution": one,
            "runs": rows,
            "hardware": device,
        }
        renew(result_path("elastic", device), results)


if __name__ == "__main__":
    main()
