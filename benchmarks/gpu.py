"""Verdicts, sweeps, motions and gradients in large batches, and some tests, on one GPU.

At most eight minutes, in parts that share the time:

- `verdicts`: of states in the device's memory by `screen` under `vmap` (as many at a time as a
  sweep takes, and all at once), and of states in the host's memory by a `sweep` in two tiers.
- `sweeps`: with assembly, of a command of a driver and of a mass.
- `motions`: `simulate` under `vmap`, one program for both durations; MJX beside it where it is
  installed. The closure error is the largest position residual (m, rad) of the first runs.
- `multistart`: searches for the least bearing force of a slider-crank, by gradients.
- `tests`: pytest in a process of its own, on linear algebra, verdicts and motions.

Each row is written when it is measured; a row or a part that raises leaves its message, what is
expected to take longer than the time that is left is not tried, and what takes longer nevertheless
is cut off when all the time is used up. Rates are those of a call after one that is not counted;
tracing and compiling stand apart. `peak_bytes` is the most that the process has had on the device
until then; CPUs do not tell.

    python benchmarks/gpu.py                            # writes results/gpu-<hardware>.json
    python benchmarks/gpu.py --part motions             # one part; keeps the others' results
    python benchmarks/gpu.py --small --out FILE         # each part once, about a minute on a CPU
"""

import os


# One thread in each decomposition on the host; to be said before the libraries are loaded.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
import dataclasses
import functools
import importlib.util
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import _crank_peer
import jax
import jax.numpy as jnp
import numpy as np
from _hardware import earlier, hardware, result_path
from _parts import Part, Record, run_parts
from _sweep_methods import joined, WIDTH
from _timing import best
from design import crank_study
from jax import lax
from solvability import parallelogram, robot, robot_times

import jaxmbs as jm
from jaxmbs import design


jax.config.update("jax_enable_x64", True)

SECONDS = 480.0

# Of all random numbers: runs are repeated with the same ones.
_SEED = 0

# What a row of MJX takes, compiling included, for the most part.
_MJX_SECONDS = 30.0

# Different configurations, which are repeated.
_STATES = 64

# Runs whose closure error is computed.
_CLOSED = 64

_ROOT = Path(__file__).parent.parent

# Ranges of the sweeps: the rack (m) and the trolley (rad), and a mass (kg).
RANGES = {
    "mobile-robot": {"steering": (-0.06, 0.06), "joints.A.rotation": (-2.5, 2.5)},
    "parallelogram": {"bodies.platform.mass": (30.0, 50.0)},
}

# What the tests need besides the package, as `tests/conftest.py` imports it.
_NEEDED = ("pytest", "beartype", "hypothesis", "typer")


@dataclasses.dataclass(frozen=True)
class Plan:
    """How much of everything; sizes increase. `at_once`: states in one `vmap`; `tests`: as pytest
    takes them."""

    verdicts: tuple[str, ...]
    states: tuple[int, ...]
    at_once: tuple[int, ...]
    sweeps: tuple[str, ...]
    cases: tuple[int, ...]
    motions: tuple[str, ...]
    runs: tuple[int, ...]
    durations: tuple[float, ...]
    starts: int
    steps: int
    tests: tuple[str, ...]


FULL = Plan(
    verdicts=("mobile-robot", "parallelogram", "bennett"),
    states=(2**12, 2**16, 2**20),
    at_once=(2**16,),
    sweeps=("mobile-robot", "parallelogram"),
    cases=(10_000, 100_000, 1_000_000),
    motions=("four-bar-chain:1", "parallelogram", "mobile-robot"),
    runs=(2**10, 2**13, 2**16),
    durations=(0.1, 1.0),
    starts=1024,
    steps=20,
    tests=(
        "test_pivoted_qr.py::test_it_is_the_pseudoinverse",
        "test_pivoted_qr.py::test_reflections_are_a_pivoted_qr",
        "test_pivoted_qr.py::test_rcond_decides_the_rank",
        "test_pivoted_qr.py::test_what_is_not_a_number_shows",
        "test_pivoted_qr.py::test_derivative_at_constant_rank",
        "test_batched_qr.py",
        "test_sweep.py::TestRobot",
        "test_simulate.py::test_pendulum_keeps_its_energy_and_its_progress_is_shown",
        "test_closed_forms.py::test_sleigh",
        "test_block_sparse.py",
    ),
)
SMALL = Plan(
    verdicts=("bennett",),
    states=(64, 128),
    at_once=(64,),
    sweeps=("parallelogram",),
    cases=(64,),
    motions=("four-bar-chain:1",),
    runs=(8,),
    durations=(0.01, 0.02),
    starts=4,
    steps=2,
    tests=("test_batched_qr.py::test_single_precision",),
)


class States(NamedTuple):
    """Closed configurations (n, nq) of a system, and the times (n,) at which they are closed."""

    system: jm.MultibodySystem
    q: np.ndarray
    t: np.ndarray

    def repeated(self, count: int) -> "States":
        """So many states, by repetition."""
        q = np.resize(self.q, (count, self.q.shape[1]))
        return States(self.system, q, np.resize(self.t, count))


def robot_states() -> States:
    """At the times at which the driver has the displacements of `solvability.py`."""
    return States(*robot(_STATES), robot_times(_STATES))


def parallelogram_states() -> States:
    """Those of `solvability.py`."""
    return States(*parallelogram(_STATES), np.zeros(_STATES))


def bennett_states() -> States:
    """Assembled next to the one that is drawn."""
    system = jm.mechanisms.get("bennett").system()
    random = np.random.default_rng(_SEED).normal(size=(_STATES, system.structure.nv))

    def closed(move: Any) -> Any:
        guess = system.retract(system.reference_q, 0.1 * move)
        return jm.assemble(system, guess, throw=False).q

    q = jax.jit(jax.vmap(closed))(jnp.asarray(random))
    return States(system, np.asarray(q), np.zeros(_STATES))


STATES: dict[str, Callable[[], States]] = {
    "mobile-robot": robot_states,
    "parallelogram": parallelogram_states,
    "bennett": bennett_states,
}


def peak_bytes() -> int | None:
    """The most that this process has had on the device; None where that is not known."""
    found = jax.local_devices()[0].memory_stats()
    return None if found is None else found.get("peak_bytes_in_use")


def elapsed(function: Callable[[], Any]) -> tuple[float, Any]:
    """Seconds of a call, and what it returns."""
    start = time.perf_counter()
    found = jax.block_until_ready(function())
    return time.perf_counter() - start, found


def compiled(function: Callable[..., Any], *arguments: Any) -> tuple[Any, dict[str, Any]]:
    """The program, how long it took to make it, and how much memory it needs besides its arguments
    and results (bytes)."""
    trace, lowered = elapsed(lambda: jax.jit(function).lower(*arguments))
    seconds, program = elapsed(lowered.compile)
    analysis = program.memory_analysis()
    row = {"trace_and_lower_seconds": trace, "compile_seconds": seconds}
    if analysis is not None:
        row["temporary_bytes"] = int(analysis.temp_size_in_bytes)
    return program, row


def verdicts(plan: Plan, record: Record) -> None:
    """Verdicts a second; each mechanism has the same part of the time."""
    for k, name in enumerate(plan.verdicts):
        own = record.share(1 / (len(plan.verdicts) - k))
        what = {"mechanism": name}
        if not own.has_time(0.0, **what):
            continue
        with own.guarded(**what):
            seconds, states = elapsed(STATES[name])
            own.keep(**what, way=f"assembly of {_STATES} states", first_seconds=seconds)
            screened(own, what, states, plan.states, min(WIDTH, plan.states[0]))
            two_tiers(own, what, states, plan.states)
            for count in plan.at_once:
                screened(own, what, states, (count,), count)


def screening(system: jm.MultibodySystem, q: Any, t: Any) -> Any:
    """Rank, verdicts, and whether any is doubtful."""
    found = jm.screen(system, q, t=t)
    rank = len(system.structure.rows) - found.redundancy
    doubtful = found.doubtful | (found.result != jm.results.RESULTS.successful)
    return rank, found.reaction_unique.unique, doubtful


def screened(
    record: Record, what: dict[str, Any], states: States, sizes: tuple[int, ...], width: int
) -> None:
    """By `screen`, of states in the device's memory, `width` at a time."""
    program, before = None, (1, 0.0)
    for count in sizes:
        row = what | {"way": "screen", "states": count, "width": width}
        if not record.has_time(3 * before[1] * count / before[0], **row):
            break
        with record.guarded(**row):
            system, *numbers = states.repeated(count)
            given = jax.device_put(tuple(numbers))
            made: dict[str, Any] = {}
            if program is None:
                first = (x[:width] for x in given)
                program, made = compiled(jax.vmap(screening, (None, 0, 0)), system, *first)
            parts = functools.partial(in_parts, program, system, given, width)
            seconds = best(parts, 2)
            rank, unique, doubtful = joined(parts())
            before = (count, seconds)
            record.keep(
                **row,
                **made,
                seconds=seconds,
                per_second=count / seconds,
                ranks=np.unique(rank).tolist(),
                unique_reactions=int(np.sum(unique[0])),
                doubtful=int(np.sum(doubtful)),
                peak_bytes=peak_bytes(),
            )


def in_parts(
    program: Any, system: jm.MultibodySystem, given: tuple[jax.Array, ...], width: int
) -> Any:
    """The results of `width` states at a time; no part waits for the one before."""
    starts = range(0, given[0].shape[0], width)
    slices = (tuple(lax.dynamic_slice_in_dim(x, k, width) for x in given) for k in starts)
    return jax.block_until_ready([program(system, *some) for some in slices])


def two_tiers(record: Record, what: dict[str, Any], states: States, sizes: tuple[int, ...]) -> None:
    """By `sweep`, of states in the host's memory, its bookkeeping included."""
    before = (1, 0.0, 0.0)
    for count in sizes:
        row = what | {"way": "sweep in two tiers", "states": count}
        if not record.has_time(before[1] + 2 * before[2] * count / before[0], **row):
            break
        with record.guarded(**row):
            system, q, t = states.repeated(count)
            cases, start = jm.Cases({"q": q, "time": t}), jnp.asarray(q[0])
            call = functools.partial(
                jm.sweep, jm.sweeps.Certification(), system, cases, q=start, t=t[0], assemble=False
            )
            first, _ = elapsed(call)
            second, swept = elapsed(call)
            before = (count, max(first - second, 0.0), second)
            answers = swept.answers()
            record.keep(
                **row,
                first_seconds=first,
                second_seconds=second,
                per_second=count / second,
                ranks=np.unique(answers.rank).tolist(),
                unique_reactions=int(np.sum(answers.reaction_unique.unique[0])),
                rechecked=int(np.sum(answers.rechecked)),
                failed=int(np.sum(swept.result != 0)),
                failures=swept.failures(),
                peak_bytes=peak_bytes(),
            )


def sweeps(plan: Plan, record: Record) -> None:
    """Cases a second of sweeps with assembly: all mechanisms with few cases, then with more."""
    before: dict[str, tuple[int, float, float]] = {}
    for count in plan.cases:
        for name in plan.sweeps:
            row = {"mechanism": name, "varied": list(RANGES[name]), "cases": count}
            # What a mechanism compiles for the first time takes as long as others took.
            expected = max((x[1] for x in before.values()), default=0.0)
            if name in before:
                fewer, compiling, running = before[name]
                expected = compiling + 2 * running * count / fewer
            if not record.has_time(expected, **row):
                continue
            with record.guarded(**row):
                cases = jm.Cases.uniform(RANGES[name], count, seed=_SEED)
                model = jm.mechanisms.get(name)
                call = functools.partial(jm.sweep, jm.sweeps.Certification(), model, cases)
                first, _ = elapsed(call)
                second, swept = elapsed(call)
                before[name] = (count, max(first - second, 0.0), second)
                record.keep(
                    **row,
                    first_seconds=first,
                    second_seconds=second,
                    per_second=count / second,
                    failed=int(np.sum(swept.result != 0)),
                    failures=swept.failures(),
                    rechecked=int(np.sum(swept.answers().rechecked)),
                    peak_bytes=peak_bytes(),
                )


def start_of(system: jm.MultibodySystem) -> tuple[Any, Any]:
    """The model's own state; where it rests, one with velocities that the constraints allow."""
    q, v = system.reference_q, system.initial_v
    if not jnp.any(v):
        length = system.characteristic_length()
        unit = jnp.where(system.structure.length_columns, length, 1.0)
        v = unit * np.random.default_rng(_SEED).normal(size=v.shape)
    found = jm.consistent_state(system, q, v)
    return found[0], found[1]


class Batch(NamedTuple):
    """How long a batch of motions took (s): its program, and the runs of each duration."""

    runs: int
    making: float
    running: dict[float, float]

    def larger(self, runs: int) -> "Batch":
        """What a larger one is expected to take: not more for each run."""
        factor = runs / self.runs
        return Batch(runs, self.making, {end: x * factor for end, x in self.running.items()})


def motions(plan: Plan, record: Record) -> None:
    """Runs a second: all mechanisms in small batches, then in larger ones."""
    before: dict[str, Batch] = {}
    for count in plan.runs:
        for name in plan.motions:
            what = {"mechanism": name, "runs": count}
            making = max((x.making for x in before.values()), default=0.0)
            expected = before[name].larger(count) if name in before else Batch(count, making, {})
            first = expected.running.get(plan.durations[0], 0.0)
            if record.has_time(expected.making + 2 * first, **what):
                with record.guarded(**what):
                    before[name] = motion_rows(plan, record, what, expected)
    mjx_motions(plan, record)


def motion_rows(plan: Plan, record: Record, what: dict[str, Any], expected: Batch) -> Batch:
    """One batch of one mechanism."""
    program, arguments, made = motion_program(what["mechanism"], expected.runs)
    record.keep(**what, **made)
    running = dict(expected.running)
    # One call before the first that counts.
    jax.block_until_ready(program(*arguments, plan.durations[0]))
    shorter = (1.0, 0.0)
    for end in plan.durations:
        row = what | {"duration": end}
        if not record.has_time(running.get(end, shorter[1] * end / shorter[0]), **row):
            break
        seconds, found = elapsed(functools.partial(program, *arguments, end))
        shorter, running[end] = (end, seconds), seconds
        record.keep(**row, **motion_row(what["mechanism"], found, seconds, end))
    making = made["trace_and_lower_seconds"] + made["compile_seconds"]
    return Batch(expected.runs, making, running)


def motion_program(name: str, count: int) -> tuple[Any, tuple[Any, Any], dict[str, Any]]:
    """A program from states and a duration to the ends of runs, the states (speeds between 0.5 and
    1.5 of the first one's), and the time to make it."""
    system = jm.mechanisms.get(name).system()
    q, v = start_of(system)
    factors = np.random.default_rng(_SEED).uniform(0.5, 1.5, count)
    states = (jnp.broadcast_to(q, (count, q.size)), jnp.asarray(factors)[:, None] * v[None])

    def run(q: Any, v: Any, end: Any) -> Any:
        motion = jm.simulate(system, q, v, end, monitor=False, throw=False)
        return motion.q[-1], motion.result == jm.results.RESULTS.successful, motion.statistics.steps

    program, made = compiled(jax.vmap(run, in_axes=(0, 0, None)), *states, 1.0)
    return program, states, made


def motion_row(name: str, found: Any, seconds: float, end: float) -> dict[str, Any]:
    """What is told of a batch of runs."""
    ends, good, steps = found
    system = jm.mechanisms.get(name).system()
    gaps = jax.vmap(lambda q: system.position_residual(q, end))(ends[:_CLOSED])
    return {
        "seconds": seconds,
        "per_second": len(good) / seconds,
        "succeeded": int(np.sum(good)),
        "closure_error": float(jnp.max(jnp.abs(gaps))),
        "most_steps": int(np.max(steps)),
        "peak_bytes": peak_bytes(),
    }


def mjx_motions(plan: Plan, record: Record) -> None:
    """The two motions of 0.1 s of `sweep.py` by MJX, in the smallest batch."""
    # Asked for one after the other: without the first there is no looking for the second.
    if not all(importlib.util.find_spec(name) for name in ("mujoco", "mujoco.mjx")):
        return
    peers = importlib.import_module("_sweep_simulations")
    for motion in peers.motions():
        row = {"mechanism": motion.name, "peer": "MJX", "runs": plan.runs[0]}
        if record.has_time(_MJX_SECONDS, **row):
            with record.guarded(**row):
                record.keep(**row, **peers.mjx_rows(motion, plan.runs[0]))


def multistart(plan: Plan, record: Record) -> None:
    """Many searches at once for a slider-crank whose bearing A carries least."""
    study, objective = crank_study()
    starts = jm.Cases.uniform(_crank_peer.PARAMETERS, plan.starts, seed=_SEED)
    optimiser = design.Descent(steps=plan.steps, rate=0.06, every=plan.steps)
    row = {"starts": plan.starts, "steps": plan.steps}

    def call() -> design.Starts:
        bounds = _crank_peer.PARAMETERS
        return design.multistart(objective, study, bounds, starts, optimiser=optimiser)

    first, many = elapsed(call)
    row |= {"failed": int(np.sum(many.codes != 0)), "least_force": float(many.values.min())}
    record.keep(**row, first_seconds=first, peak_bytes=peak_bytes())
    if record.has_time(0.0, **row):
        second, _ = elapsed(call)
        rate = plan.starts * plan.steps / second
        record.keep(**row, second_seconds=second, gradients_per_second=rate)


def tests(plan: Plan, record: Record) -> None:
    """A sample of the tests, in a process that is ended when the time is used up."""
    missing = [name for name in _NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        raise ModuleNotFoundError(f"the tests need {', '.join(missing)}")
    # The compiler's own flags, and what this process leaves of the device's memory.
    environment = {
        "XLA_FLAGS": "",
        "XLA_PYTHON_CLIENT_PREALLOCATE": "false",
        "PYTHONUNBUFFERED": "1",
        "PYTHONPATH": os.pathsep.join([str(_ROOT), os.environ.get("PYTHONPATH", "")]),
    }
    if jax.default_backend() == "gpu":
        environment["JAX_PLATFORMS"] = "cuda,cpu"
    command = [sys.executable, "-m", "pytest", "-o", "addopts=", "-p", "no:cacheprovider"]
    command += ["-v", "-rfE", "--tb=line", "-m", "not thorough"]
    command += ["--continue-on-collection-errors"]
    command += [f"tests/{name}" for name in plan.tests]
    with tempfile.TemporaryFile("w+") as output:
        start = time.perf_counter()
        try:
            ended = subprocess.run(
                command,
                cwd=_ROOT,
                env=os.environ | environment,
                stdout=output,
                stderr=subprocess.STDOUT,
                timeout=max(record.left - 2.0, 1.0),
                check=False,
            )
            end = {"exit_status": ended.returncode}
        except subprocess.TimeoutExpired:
            end = {"cut_off": "the time was used up"}
        output.seek(0)
        text = output.read()
    record.keep(**outcomes(text), **end, seconds=time.perf_counter() - start)
    if end.get("exit_status", 0) not in (0, 1):
        raise RuntimeError(text.strip().splitlines()[-1] if text.strip() else "no output")


def outcomes(text: str) -> dict[str, Any]:
    """How many tests passed and failed in the output of `pytest -v -rfE`, and what those that
    failed say; also of a run that was cut off."""
    lines = [re.match(r"(tests/.+?::.+?) (PASSED|FAILED|ERROR)\b", x) for x in text.splitlines()]
    found = {x[1]: x[2] for x in lines if x}
    failures: dict[str, str] = {}
    for name in (name for name, outcome in found.items() if outcome != "PASSED"):
        said = re.search(rf"^(?:FAILED|ERROR) {re.escape(name)} - (.*)$", text, re.MULTILINE)
        failures[name] = said[1] if said else ""
    return {
        "passed": len(found) - len(failures),
        "failed": len(failures),
        "failures": failures,
    }


PARTS: dict[str, tuple[Callable[[Plan, Record], None], float]] = {
    "verdicts": (verdicts, 0.22),
    "sweeps": (sweeps, 0.2),
    "motions": (motions, 0.35),
    "multistart": (multistart, 0.1),
    "tests": (tests, 0.13),
}


def arguments() -> argparse.Namespace:
    """What to measure."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--part", action="append", choices=list(PARTS), help="this alone")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="for all of it")
    parser.add_argument("--small", action="store_true", help="a little of each part")
    parser.add_argument("--out", type=Path, help="result file, in place of that of the hardware")
    return parser.parse_args()


def main() -> None:
    """Measure, print, and write the result file."""
    options = arguments()
    found = hardware(("equinox", "diffrax")) | {"cores_used": len(os.sched_getaffinity(0))}
    path = options.out or result_path("gpu", found)
    plan = SMALL if options.small else FULL
    contents = (earlier(path) if options.part else {}) | {"hardware": found}
    parts = [
        Part(name, functools.partial(function, plan), share)
        for name, (function, share) in PARTS.items()
        if name in (options.part or PARTS)
    ]
    run_parts(parts, path, contents, options.seconds, strict=True)
    print(f"wrote {path}")


if __name__ == "__main__":
    main()
