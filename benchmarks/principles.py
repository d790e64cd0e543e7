"""What five principles of mechanics cost for the same accelerations: the rod on a cart and the coin
of `examples/29_five_principles.py`.

Unknowns, equations of the traced program, CPU seconds to trace and compile it, and CPU microseconds
of one evaluation, one after another in one program; the joint of each mechanism once and, where the
principle still answers, twice. What is evaluated are accelerations of all bodies along the world's
axes from q and dq/dt and, where the principle says them, the forces of the joint. M and F of
Lagrange, Maggi and Udwadia-Kalaba are derivatives of the Lagrangian. "Eliminated" is the saddle
point matrix by LU, as textbooks have it; the others of Newton-Euler and Lagrange find the rank.

    taskset -c 0 python benchmarks/principles.py    # writes results/principles-<hardware>
"""

import os


os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import importlib
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from _hardware import hardware, renew, result_path
from _weight import weight
from jax import lax


jax.config.update("jax_enable_x64", True)
# Programs are compiled to be timed.
jax.config.update("jax_enable_compilation_cache", False)

sys.path.append(str(Path(__file__).parent.parent / "examples"))
example = importlib.import_module("29_five_principles")

CALLS, ROUNDS = 1000, 60


@eqx.filter_jit
def many(principle: Callable[..., Any], case: Any, q: Any, v: Any) -> Any:
    """Evaluations one after another, each from what the last one gave."""

    def turn(_: Any, state: Any) -> Any:
        q, v = state
        found = principle(case, q, v)
        # All of an answer is needed for the next state, and next to nothing of it goes there.
        total = sum(jnp.sum(x) for x in jax.tree.leaves(found))
        return q + 1e-12 * v, v + 1e-15 * total

    return lax.fori_loop(0, CALLS, turn, (q, v))


def microseconds(principle: Callable[..., Any], case: Any, q: Any, v: Any) -> float:
    """CPU time of one evaluation, the least of some rounds."""
    end, _ = jax.block_until_ready(many(principle, case, q, v))
    if not jnp.all(jnp.isfinite(end)):
        raise FloatingPointError("what is timed became NaN or inf")
    times = []
    for _ in range(ROUNDS):
        start = time.process_time()
        jax.block_until_ready(many(principle, case, q, v))
        times.append(time.process_time() - start)
    return 1e6 * min(times) / CALLS


def measured(name: str, case: Any, q: Any, v: Any) -> dict[str, Any]:
    """One line of the table."""
    principle = (example.PRINCIPLES | example.TEXTBOOK)[name]
    found = eqx.filter_eval_shape(principle, case, q, v)
    program = weight(principle, case, q, v)
    return {
        "unknowns": {kind: x.size for kind, x in found.unknowns.items()},
        "equations": program["equations"],
        "trace and lower (s)": program["trace"] + program["lower"],
        "compile (s)": program["compile"],
        "evaluation (us)": microseconds(principle, case, q, v),
    }


def answers(name: str, case: Any, q: Any, v: Any) -> bool:
    """Does the principle say finite accelerations?"""
    try:
        found = (example.PRINCIPLES | example.TEXTBOOK)[name](case, q, v)
    except ValueError:
        return False
    return bool(jnp.all(jnp.isfinite(found.accelerations)))


def main() -> None:
    """Measure, print, and write the result file."""
    rows: dict[str, Any] = {}
    heads = ("unknowns", "equations", "trace s", "compile s", "us")
    for mechanism, model in example.MECHANISMS.items():
        q, v = (x[0] for x in example.random_states(model, 1))
        for twice in (False, True):
            case = example.case_of(model, twice=twice)
            title = f"{mechanism}, {model.joint} twice" if twice else mechanism
            rows[title] = {}
            print("\n{:28s}{:>9s}{:>10s}{:>9s}{:>11s}{:>8s}".format(title, *heads))
            for name in example.PRINCIPLES | example.TEXTBOOK:
                if not answers(name, case, q, v):
                    print(f"{name:28s}{'no answer':>9s}")
                    rows[title][name] = "no answer"
                    continue
                row = measured(name, case, q, v)
                rows[title][name] = row
                count = sum(row["unknowns"].values())
                print(
                    f"{name:28s}{count:9d}{row['equations']:10d}{row['trace and lower (s)']:9.2f}"
                    f"{row['compile (s)']:11.2f}{row['evaluation (us)']:8.2f}",
                    flush=True,
                )
    device = hardware(("equinox",))
    renew(result_path("principles", device), {"hardware": device, "principles": rows})


if __name__ == "__main__":
    main()
