"""Work-precision diagram of the explicit methods: CPU time per simulated second over true error.

Each method runs each mechanism of the catalogue that moves at tolerances from coarse to fine, from
the model's own velocities or, where it rests, from the admissible ones next to random ones. The
error is the largest deviation of any coordinate (rad, and lengths relative to the characteristic
length) of states saved each 0.1 s, against Dopri8 at 1e-13 with steps that end there. That of the
last state is told apart: there a step ends, what is saved between steps is interpolated, and then
projected. The time is that of the shortest of several runs, its fixed part (a run of a thousandth
of the time) subtracted: what is compared are the methods' steps. The default of `simulate` is
chosen from this.

    python benchmarks/work_precision.py    # writes results/work-precision-<hardware>.json
    python benchmarks/work_precision.py --mechanism bennett    # renews these rows
    python benchmarks/work_precision.py --figure docs/work-precision.png    # draws that file
"""

import os


# One thread, and each small loop one function, as in the command line's runs; before the libraries
# are loaded.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault(
    "XLA_FLAGS", "--xla_backend_extra_options=xla_cpu_small_while_loop_byte_threshold=300000"
)

import argparse
import time
from pathlib import Path
from typing import Any

import diffrax as dfx
import jax
import jax.numpy as jnp
import numpy as np
from _hardware import earlier, hardware, renew, result_path

import jaxmbs as jm


jax.config.update("jax_enable_x64", True)

# Mechanisms and how long they run (s).
MECHANISMS = {
    "slider-crank": 5.0,
    "bennett": 2.0,
    "sarrus": 2.0,
    "three-crank-parallelogram": 2.0,
    "parallelogram": 1.0,
    "mobile-robot": 2.0,
    "whipple-bicycle": 2.0,
    "four-bar-chain:1": 5.0,
    "four-bar-chain:16": 5.0,
    "four-bar-chain-spatial:4": 2.0,
}
SOLVERS = (dfx.Tsit5(), dfx.Dopri5(), dfx.Dopri8())
TOLERANCES = tuple(10.0**-k for k in range(5, 12))
REFERENCE_TOLERANCE = 1e-13

# Random velocities are of this size (rad/s, characteristic lengths per second): inertia matters.
SPEED = 5.0

# Between saved states (s).
EVERY = 0.1

# A run is repeated for so many CPU seconds.
ENOUGH = 0.3

# What is drawn, and how: readable without colours.
STYLES = {"Tsit5": ("o", "-"), "Dopri5": ("^", ":"), "Dopri8": ("s", "--")}


def start_of(system: Any) -> Any:
    """A state that moves."""
    q, v = system.reference_q, system.initial_v
    if not jnp.any(v):
        length = system.characteristic_length()
        unit = jnp.where(system.structure.length_columns, length, 1.0)
        v = SPEED * unit * np.random.default_rng(0).normal(size=v.shape)
    return jm.consistent_state(system, q, v)


def motion(
    system: Any, start: Any, times: np.ndarray, solver: Any, rtol: float, *, exact: bool = False
) -> jm.results.Trajectory:
    """States at these times; `exact`: steps end there."""
    atol = 1e-2 * rtol
    pid = dfx.PIDController(rtol=rtol, atol=rtol)
    run = jm.simulate(
        system,
        start[0],
        start[1],
        times[-1],
        times=times,
        solver=solver,
        rtol=rtol,
        atol=atol,
        controller=dfx.ClipStepSizeController(pid, step_ts=jnp.asarray(times)) if exact else None,
    )
    return jax.block_until_ready(run)


def seconds(function: Any) -> float:
    """The least CPU time of a call (s), after one that is not counted."""
    function()
    times: list[float] = []
    while len(times) < 5 or sum(times) < ENOUGH:
        start = time.process_time()
        function()
        times.append(time.process_time() - start)
    return min(times)


def rows_of(name: str, duration: float) -> list[dict[str, Any]]:
    """Each method at each tolerance."""
    system = jm.mechanisms.get(name).system()
    columns, start = system.structure, start_of(system)
    times = np.linspace(0.0, duration, round(duration / EVERY) + 1)
    exact = motion(system, start, times, dfx.Dopri8(), REFERENCE_TOLERANCE, exact=True)
    length = float(system.characteristic_length())
    found = []
    for solver in SOLVERS:
        for rtol in TOLERANCES:
            try:
                run = motion(system, start, times, solver, rtol)
            except jm.SimulationError as error:
                # Next to a singular configuration a tolerance may be below rounding.
                print(
                    f"{name:26s} {type(solver).__name__:7s} rtol {rtol:6.0e}: {error}", flush=True
                )
                continue
            fixed = seconds(lambda s=solver, r=rtol: motion(system, start, 1e-3 * times, s, r))
            whole = seconds(lambda s=solver, r=rtol: motion(system, start, times, s, r))
            change = jax.vmap(system.difference)(run.q, exact.q)
            scale = jnp.where(columns.length_columns, length, 1.0)
            errors = jnp.max(jnp.abs(change / scale), axis=1)
            row = {
                "mechanism": name,
                "solver": type(solver).__name__,
                "rtol": rtol,
                "error": float(jnp.max(errors)),
                "end_error": float(errors[-1]),
                "ms_per_second": 1e3 * (whole - fixed) / duration,
                "fixed_ms": 1e3 * fixed,
                "accepted": int(run.statistics.accepted),
                "rejected": int(run.statistics.rejected),
            }
            found.append(row)
            print(
                f"{name:26s} {row['solver']:7s} rtol {rtol:6.0e} error {row['error']:8.1e} "
                f"(end {row['end_error']:8.1e}) "
                f"{row['ms_per_second']:9.3f} ms/s, {row['accepted']} + {row['rejected']} steps",
                flush=True,
            )
    return found


def draw(results: dict[str, Any], path: Path) -> None:
    """A panel for each mechanism."""
    # Nothing but the figure needs it.
    import matplotlib.pyplot as plt

    names = [name for name in MECHANISMS if name in results["rows"]]
    columns = 3
    lines = -(-len(names) // columns)
    figure, panels = plt.subplots(
        lines, columns, figsize=(9.5, 2.6 * lines), squeeze=False, layout="constrained"
    )
    for panel in panels.ravel()[len(names) :]:
        panel.set_axis_off()
    for name, panel in zip(names, panels.ravel(), strict=False):
        for solver, (marker, line) in STYLES.items():
            rows = [row for row in results["rows"][name] if row["solver"] == solver]
            panel.loglog(
                [row["error"] for row in rows],
                [row["ms_per_second"] for row in rows],
                marker + line,
                label=solver,
                markersize=4,
                linewidth=1,
            )
        panel.set_title(name, fontsize=9)
        panel.grid(visible=True, alpha=0.3)
        panel.set_xlabel("error (rad, characteristic lengths)", fontsize=8)
        panel.set_ylabel("CPU ms per simulated s", fontsize=8)
        panel.tick_params(labelsize=8)
    panels[0, 0].legend(fontsize=8)
    figure.savefig(path, dpi=120)
    print(f"wrote {path}")


def main() -> None:
    """Measure, or draw what was measured."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--mechanism", action="append", help="one of them; repeats; default all")
    parser.add_argument("--figure", type=Path, help="draw the result file; nothing is measured")
    options = parser.parse_args()
    found = hardware(("equinox", "diffrax"))
    path = result_path("work-precision", found)
    if options.figure is not None:
        draw(earlier(path), options.figure)
        return
    for name in options.mechanism or MECHANISMS:
        rows = {name: rows_of(name, MECHANISMS[name])}
        known = earlier(path).get("rows", {})
        renew(path, {"hardware": found, "xla_flags": os.environ["XLA_FLAGS"], "rows": known | rows})
        jax.clear_caches()


if __name__ == "__main__":
    main()
