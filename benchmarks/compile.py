"""Weight of the programs: CPU seconds of tracing, lowering and compiling, equations and kernels.

Of `analyze`, `assemble`, `kinematics`, `simulate` and the reverse value-and-gradient of `simulate`
on every built-in mechanism, beside the same for Diffrax alone on the Lorenz equations, in one warm
process; of the gradient also with the options that `jm.jit` compiles with. CPU seconds count all
threads of the compiler, and hardly depend on what else the machine does. Programs are traced with
the numbers of the system and its state as arguments, compiled for the CPU, and not run. Nothing is
taken from JAX's caches, in memory or on disk.

    python benchmarks/compile.py            # prints a table, writes results/compile-<hardware>.json
    python benchmarks/compile.py --mechanism door --mechanism four-bar-chain:16
    python benchmarks/compile.py --question analyze --question simulate    # renews these rows
"""

import os


# As the command line says it; before the libraries are loaded.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import argparse
import statistics
from collections.abc import Callable
from typing import Any

import diffrax as dfx
import equinox as eqx
import jax
import jax.numpy as jnp
from _hardware import earlier, hardware, renew, result_path
from _weight import weight

import jaxmbs as jm
from jaxmbs._programs._options import compiler_options, Compiling


jax.config.update("jax_enable_x64", True)
jax.config.update("jax_enable_compilation_cache", False)

MECHANISMS = (*jm.mechanisms.names(), "four-bar-chain:16", "four-bar-chain:160")

# The reference is measured again with each mechanism, so that ratios are those of one run.
REFERENCE = "Diffrax on Lorenz"


def lorenz(y: Any) -> Any:
    """States of the Lorenz equations, as Diffrax's documentation writes such a run; tolerances as
    those that are defaults of `simulate`."""

    def slope(t, y, args):
        del t, args
        a, b, c = y
        return jnp.stack([10 * (b - a), a * (28 - c) - b, a * b - 8 / 3 * c])

    return dfx.diffeqsolve(
        dfx.ODETerm(slope),
        dfx.Tsit5(),
        0.0,
        10.0,
        0.01,
        y,
        saveat=dfx.SaveAt(ts=jnp.linspace(0.0, 10.0, 101)),
        stepsize_controller=dfx.PIDController(rtol=1e-8, atol=1e-10),
        max_steps=100_000,
    ).ys


def lorenz_gradient(y: Any) -> Any:
    """The squared length of the end, and its derivative by the start."""
    return jax.value_and_grad(lambda y: jnp.sum(lorenz(y)[-1] ** 2))(y)


def simulated(system: Any, q: Any, v: Any, t: Any) -> jm.results.Trajectory:
    """Start and end, with the defaults."""
    return jm.simulate(system, q, v, t, throw=False)


def gradient(system: Any, q: Any, v: Any, t: Any) -> Any:
    """The squared length of the last configuration, and its derivative by every number of the
    system and by the initial state."""

    def objective(system_q_v: Any) -> Any:
        system, q, v = system_q_v
        return jnp.sum(simulated(system, q, v, t).q[-1] ** 2)

    return eqx.filter_value_and_grad(objective)((system, q, v))


QUESTIONS: dict[str, Callable[..., Any]] = {
    "analyze": jm.analyze,
    "assemble": lambda system, q, v, t: jm.assemble(system, q, t, throw=False),
    "kinematics": lambda system, q, v, t: jm.kinematics(
        system, q, jnp.stack([0.0 * t, t]), throw=False
    ),
    "simulate": simulated,
    "gradient": gradient,
    "gradient by jm.jit": gradient,
}
OPTIONS = {"gradient by jm.jit": compiler_options(Compiling.QUICK)}


def reference() -> dict[str, dict[str, float]]:
    """Diffrax alone."""
    start = jnp.ones(3)
    return {"solve": weight(lorenz, start), "gradient": weight(lorenz_gradient, start)}


def summary(measured: list[dict[str, dict[str, float]]]) -> dict[str, dict[str, float]]:
    """The median of each number."""
    return {
        name: {key: statistics.median(m[name][key] for m in measured) for key in row}
        for name, row in measured[0].items()
    }


def show(name: str, question: str, row: dict[str, float], ratio: float) -> None:
    """One line of the table."""
    print(
        f"{name:24s} {question:18s} {row['trace']:7.2f} {row['lower']:6.2f} {row['compile']:8.2f} "
        f"{row['seconds']:8.2f} {row['equations']:10.0f} {row['kernels']:8.0f} {ratio:6.1f}",
        flush=True,
    )


def arguments() -> argparse.Namespace:
    """What to measure."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--mechanism", action="append", help="one of them; repeats; default all")
    parser.add_argument("--question", action="append", choices=QUESTIONS, help="likewise")
    return parser.parse_args()


def main() -> None:
    """Measure, print, and write the result file: rows that were not asked for stay in it."""
    options = arguments()
    found = hardware(("equinox", "diffrax"))
    path = result_path("compile", found)
    kept = earlier(path)
    # A first program finds Python's and the compiler's own parts cold.
    reference()
    references = []
    heads = ("trace", "lower", "compile", "CPU s", "equations", "kernels", "ratio")
    print("{:43s} {:>7s} {:>6s} {:>8s} {:>8s} {:>10s} {:>8s} {:>6s}".format("", *heads))
    rows: dict[str, Any] = {}
    for name in options.mechanism or MECHANISMS:
        references.append(reference())
        beside = references[-1]["solve"]["seconds"]
        show(REFERENCE, "solve", references[-1]["solve"], 1.0)
        system = jm.mechanisms.get(name).system()
        state = (system, system.reference_q, system.initial_v, jnp.asarray(1.0))
        rows[name] = dict(kept.get("compile", {}).get(name, {}))
        for question in options.question or QUESTIONS:
            row = weight(QUESTIONS[question], *state, options=OPTIONS.get(question))
            rows[name][question] = row | {"ratio": row["seconds"] / beside}
            show(name, question, row, rows[name][question]["ratio"])
        everything = kept.get("compile", {}) | rows
        renew(
            path,
            {"hardware": found, "reference": summary(references), "compile": everything},
        )


if __name__ == "__main__":
    main()
